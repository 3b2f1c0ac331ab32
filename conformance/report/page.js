"use strict";
(() => {
  const cells = [...document.querySelectorAll(".matrix a.cell")];
  let last = null;

  // Marks the cell whose evidence is open. Opening itself needs no script.
  const mark = () => {
    let open = location.hash.slice(1);
    try { open = decodeURIComponent(open); } catch { /* another fragment */ }
    for (const cell of cells) {
      if (cell.dataset.opens === open) {
        cell.setAttribute("aria-current", "true");
        last = cell;
      } else {
        cell.removeAttribute("aria-current");
      }
    }
  };

  // The arrow keys move the focus; cells without checks are skipped.
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const neighbour = (cell, [down, right]) => {
    let row = cell.closest("tr"), column = cell.closest("td").cellIndex;
    for (;;) {
      if (down) row = down > 0 ? row.nextElementSibling : row.previousElementSibling;
      column += right;
      const next = row && row.cells[column];
      if (!next || next.tagName !== "TD") return null;
      const link = next.querySelector("a.cell");
      if (link) return link;
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && location.hash) {
      location.hash = "#matrix";
      if (last) last.focus();
    }
    const step = steps[event.key], cell = event.target.closest && event.target.closest("a.cell");
    if (!step || !cell || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const next = neighbour(cell, step);
    if (next) next.focus();
  });

  // Folded parts would not be printed.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  addEventListener("hashchange", mark);
  mark();
})();
