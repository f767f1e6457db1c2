// A table.list can be sorted by its columns, and filtered if it has many rows. What has no number
// is last in a column of numbers.
"use strict";
const number = (text, otherwise) => {
  const found = text.replaceAll(",", "").match(/-?\d+(\.\d+)?(e[+-]?\d+)?/);
  return found ? Number(found[0]) : otherwise;
};
const made = (tag, fields, ...inside) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...inside);
  return element;
};
for (const table of document.querySelectorAll("table.list")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 2) continue;
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const text = (row) => row.cells[column].textContent.trim();
    const button = made("button", {type: "button"}, ...head.childNodes);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      const value = (row) => number(text(row), sign * Infinity);
      const compare = head.classList.contains("num") ? (a, b) => value(a) - value(b) || 0
        : (a, b) => text(a).localeCompare(text(b), undefined, {numeric: true});
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.sort((a, b) => sign * compare(a, b)));
    };
    head.append(button);
  });
  if (rows.length <= 20) continue;
  const search = made("input", {type: "search", placeholder: "text in a row"});
  const count = made("output", {});
  const chosen = heads.flatMap((head, column) => {
    if (!("choose" in head.dataset)) return [];
    const values = new Map();
    for (const row of rows) {
      const value = row.cells[column].textContent;
      values.set(value, (values.get(value) ?? 0) + 1);
    }
    const options = [...values].map(([value, num]) =>
      made("option", {value: `=${value}`}, `${value || "none"} (${num})`));
    const select = made("select", {}, made("option", {value: ""}, "all"), ...options);
    return [{column, select, label: made("label", {}, `${head.textContent} `, select)}];
  });
  const show = () => {
    const wanted = search.value.toLowerCase();
    for (const row of rows)
      row.hidden = !row.textContent.toLowerCase().includes(wanted) || chosen.some(({column, select}) =>
        select.value && select.value !== `=${row.cells[column].textContent}`);
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const labels = [made("label", {}, "filter ", search), ...chosen.map(({label}) => label)];
  const bar = made("form", {className: "bar", oninput: show, onsubmit: () => false}, ...labels, count);
  table.parentElement.before(bar);
  show();
}
