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

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => (a === "") - (b === "") || a - b || a.localeCompare(b, undefined, { numeric: true });
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}
