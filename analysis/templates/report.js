for (const element of document.querySelectorAll("[data-chart]")) {
  const spec = JSON.parse(document.getElementById(element.dataset.chart).textContent);
  const actions = { export: true, source: false, compiled: false, editor: false };
  vegaEmbed(element, spec, { renderer: "svg", actions, downloadFileName: element.dataset.chart }).then(
    () => { element.dataset.state = "drawn"; },
    (error) => {
      element.dataset.state = "failed";
      element.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    },
  );
}
