const all = (selector) => [...document.querySelectorAll(selector)];
const views = new Map(); // null while a chart is being drawn
const hidden = () => all("[data-pick]").filter((box) => !box.checked).map((box) => box.value);

// Data come in columns, whose repeated texts are indices `at` into `of`; Vega-Lite wants rows.
const rows = (columns) => {
  const lists = Object.entries(columns).map(([name, it]) => [name, it.of ? it.at.map((place) => it.of[place]) : it]);
  return (lists[0]?.[1] ?? []).map((_, row) => Object.fromEntries(lists.map(([name, list]) => [name, list[row]])));
};

const save = (name, url) => Object.assign(document.createElement("a"), { download: name, href: url }).click();
const cell = (value) => {
  const text = typeof value === "string" && /^\s*[=+@-]/.test(value) && isNaN(value) ? `'${value}` : String(value ?? "");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = ({ datasets, usermeta: { data, titles } }) => {
  const table = datasets[data], names = Object.keys(table[0] ?? {});
  return [names.map((name) => titles[name] ?? name), ...table.map((row) => names.map((name) => row[name]))]
    .map((line) => line.map(cell).join(",")).join("\n") + "\n";
};

const offer = (element, spec, view) => {
  const saved = document.createElement("p");
  saved.className = "saved";
  const name = element.dataset.chart.replace("chart-", ""), title = element.closest("figure").querySelector("h3").textContent;
  const make = {
    CSV: async () => URL.createObjectURL(new Blob([csv(spec)], { type: "text/csv" })),
    SVG: () => view.toImageURL("svg"),
    PNG: () => view.toImageURL("png", 2),
  };
  for (const [kind, url] of Object.entries(make)) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: kind });
    button.setAttribute("aria-label", `Save ${title} as ${kind}`);
    button.addEventListener("click", async () => save(`${name}.${kind.toLowerCase()}`, await url()));
    saved.append(button);
  }
  element.after(saved);
};

const draw = async (element) => {
  if (views.has(element)) return;
  views.set(element, null);
  try {
    const spec = JSON.parse(document.getElementById(element.dataset.chart).textContent);
    for (const name in spec.datasets) spec.datasets[name] = rows(spec.datasets[name]);
    for (const param of spec.params ?? []) if (param.name === "hidden") param.value = hidden();
    const { view } = await vegaEmbed(element, spec, { renderer: "svg", actions: false });
    for (const mark of element.querySelectorAll("[role=graphics-symbol]:not([aria-label])")) mark.setAttribute("aria-hidden", "true"); // a brush
    views.set(element, view);
    offer(element, spec, view);
    element.dataset.state = "drawn";
  } catch (error) {
    element.dataset.state = "failed";
    element.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
};

// What is in view is drawn first, the rest one by one, so that the page can be read at once.
const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)));
all("[data-chart]").forEach((element) => seen.observe(element));
(async () => {
  for (const element of all("[data-chart]")) {
    await new Promise((resolve) => setTimeout(resolve));
    await draw(element);
  }
})();

for (const box of all("[data-pick]")) {
  box.addEventListener("change", () => {
    for (const element of all("[data-variant]")) element.hidden = hidden().includes(element.dataset.variant);
    for (const view of views.values()) {
      if (view && "hidden" in view.getState({ signals: (name) => name === "hidden" }).signals) view.signal("hidden", hidden()).runAsync();
    }
  });
}

for (const table of all("table.sortable")) {
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

// A table that is wider than its place is shown as a list, a line for each cell, so that no column is out of sight.
const fit = new ResizeObserver((entries) => requestAnimationFrame(() => {
  for (const { target } of entries) {
    const table = target.querySelector("table");
    table.classList.remove("stacked");
    table.classList.toggle("stacked", table.scrollWidth > target.clientWidth);
  }
}));
for (const place of all(".scroll:not(:has([rowspan]))")) {
  const table = place.querySelector("table"), heads = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, column) => { cell.dataset.label = heads[column]; });
  fit.observe(place);
}
