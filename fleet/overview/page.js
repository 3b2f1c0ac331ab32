"use strict";
(() => {
  const table = document.querySelector(".clusters"), rows = [...table.tBodies]; // one a cluster, with its details
  const form = document.querySelector(".filters"), seen = form.querySelector("output");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

  // A filter hides rows; what is hidden is counted.
  const filter = () => {
    const text = form.elements.text.value.toLowerCase(), state = form.elements.state.value;
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(texts.get(row).includes(text) && (!state || row.dataset.state === state));
      shown += row.hidden ? 0 : 1;
    }
    seen.textContent = shown + " of " + rows.length + " clusters";
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());

  // Numbers in names sort as numbers; states sort by how severe they are.
  const order = new Intl.Collator("en", { numeric: true }).compare;
  const value = (row, column) => column === 0 ? row.querySelector("summary").textContent : column === 1 ? row.dataset.rank : row.rows[0].cells[column].textContent;
  [...document.querySelectorAll(".clusters > thead th")].forEach((head, column, heads) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = rows.map((row) => [value(row, column), row]).sort((a, b) => (down ? -1 : 1) * order(a[0], b[0]));
      table.append(...sorted.map((pair) => pair[1]));
    });
  });
  addEventListener("beforeprint", () => rows.forEach((row) => { if (!row.hidden) row.querySelector("details").open = true; }));
  filter();
})();
