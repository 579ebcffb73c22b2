"use strict";
// A click on a heading of a table of rows sorts them; another click turns the order round.
(function () {
  // Numbers come before texts, and both before what is empty.
  function compare(a, b) {
    const x = Number(a);
    const y = Number(b);
    const blank = (a === "") - (b === "");
    if (blank) return blank;
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b, "en", { numeric: true });
  }

  // As Python writes them.
  function valueOf(line, column) {
    const text = line.cells[column].textContent.trim();
    return text.replace(/^(-?)inf$/, "$1Infinity");
  }

  function sort(table, column) {
    const headings = [...table.tHead.rows[0].cells];
    const up = headings[column].getAttribute("aria-sort") !== "ascending";
    const body = table.tBodies[0];
    const lines = [...body.rows].map((line) => [valueOf(line, column), line]);
    lines.sort(([a], [b]) => (up ? compare(a, b) : compare(b, a)));
    body.append(...lines.map(([, line]) => line));
    for (const heading of headings) heading.removeAttribute("aria-sort");
    headings[column].setAttribute("aria-sort", up ? "ascending" : "descending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, column));
      heading.append(button);
    });
  }
})();
