"use strict";
// Tables that sort, filter, copy and download.

// Four digits, and more where values are large beside their spread: they would all look equal.
function shown(value, spread = 0) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isSafeInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  const common = spread > 0 && size > spread ? Math.ceil(Math.log10(size / spread)) : 0;
  const digits = Math.min(4 + common, 16); // of which double precision has no more
  // Long numbers are written out while all of their whole part is shown.
  const plain = size >= 0.001 && (size < 1e6 || (common > 0 && size < 10 ** Math.min(digits, 15)));
  return plain ? value.toLocaleString("en", { maximumSignificantDigits: digits })
    : value.toExponential(spread > 0 ? digits - 1 : 2);
}

// As guard_formula of mrshc.utils.text_cleaning: an apostrophe is put in front of text that a
// spreadsheet would run as a formula, or that is guarded already. Numbers and single signs stay.
function isFormula(text) {
  const number = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$|^[+-]?(inf(inity)?|nan)$/i;
  return text.length > 1 && /^'*[=+\-@\t\r]/.test(text) && !number.test(text.trim());
}

function csvCell(value) {
  let text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
  if (typeof value === "string" && isFormula(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function cellText(column, row) {
  return shown(column.value(row), column.spread ? column.spread(row) : 0);
}

const MOST_ROWS = 1000; // more would make the page slow; filters and downloads see all

class DataTable {
  // columns: [{ title, numeric, value(row), spread(row)?, draw(cell, row)? }]; rows are numbers 0..n-1.
  // A choice elsewhere on the page may keep some of the rows only.
  constructor(id, { columns, n, onPick, fileName, keep = () => true }) {
    this.id = id;
    this.n = n;
    this.keep = keep;
    this.columns = columns;
    this.onPick = onPick;
    this.sorted = { title: null, down: false };
    this.marked = null;
    this.table = document.querySelector(`#${id} table`);
    this.said = document.querySelector(`#${id} .said`);
    this.filter = document.querySelector(`#${id} input`);
    this.filter.addEventListener("input", () => this.render());
    document.querySelector(`#${id} .copy`).addEventListener("click", () => this.copy());
    document.querySelector(`#${id} .download`).addEventListener("click", () => this.download(fileName));
    this.render();
  }

  rows() {
    const wanted = this.filter.value.trim().toLowerCase();
    let rows = [...Array(this.n).keys()].filter(this.keep);
    if (wanted) {
      rows = rows.filter((row) => this.columns.some(
        (c) => !c.draw && cellText(c, row).toLowerCase().includes(wanted)));
    }
    const { title, down } = this.sorted, column = this.columns.find((c) => c.title === title);
    if (column) {
      const value = column.value, sign = down ? -1 : 1;
      const empty = (v) => v === null || v === undefined || Number.isNaN(v);
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (empty(x) || empty(y)) return empty(x) - empty(y) || a - b;
        const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return sign * order || a - b;
      });
    }
    return rows;
  }

  sort(at) {
    const { title, numeric } = this.columns[at], same = this.sorted.title === title;
    // Numbers are most often wanted from the largest.
    this.sorted = { title, down: same ? !this.sorted.down : numeric };
    this.render();
    this.table.querySelectorAll("thead button")[at].focus();
  }

  render() {
    const head = document.createElement("tr");
    this.columns.forEach((column, at) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = column.numeric ? "number" : "";
      const here = this.sorted.title === column.title;
      cell.setAttribute("aria-sort", here ? (this.sorted.down ? "descending" : "ascending") : "none");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = column.title + (here ? (this.sorted.down ? " ▾" : " ▴") : "");
      button.addEventListener("click", () => this.sort(at));
      cell.append(button);
      head.append(cell);
    });
    this.table.tHead.replaceChildren(head);
    const body = document.createDocumentFragment();
    const rows = this.rows();
    rows.slice(0, MOST_ROWS).forEach((row) => body.append(this.line(row)));
    this.table.tBodies[0].replaceChildren(body);
    const all = this.n.toLocaleString("en"), left = rows.length.toLocaleString("en");
    this.said.textContent = (rows.length === this.n ? `${all} rows` : `${left} of ${all} rows`)
      + (rows.length > MOST_ROWS ? `, the first ${MOST_ROWS.toLocaleString("en")} shown` : "");
  }

  line(row) {
    const line = document.createElement("tr");
    line.dataset.row = row;
    if (row === this.marked) line.className = "marked";
    this.columns.forEach((column, at) => {
      const cell = document.createElement(at === 0 ? "th" : "td");
      if (at === 0) cell.scope = "row";
      if (column.numeric) cell.className = "number";
      if (column.draw) column.draw(cell, row);
      else {
        cell.textContent = cellText(column, row);
        cell.title = cell.textContent;
      }
      line.append(cell);
    });
    line.addEventListener("click", () => this.onPick && this.onPick(row));
    return line;
  }

  mark(row) {
    this.marked = row;
    this.table.querySelectorAll("tr.marked").forEach((line) => line.classList.remove("marked"));
    const line = this.table.querySelector(`tbody tr[data-row="${row}"]`);
    if (line) {
      line.classList.add("marked");
      const box = line.closest(".scroll");
      box.scrollTop = line.offsetTop - box.clientHeight / 2;
    }
  }

  csv() {
    const columns = this.columns.filter((column) => !column.draw);
    const lines = [columns.map((column) => csvCell(column.title))];
    this.rows().forEach((row) => lines.push(columns.map((column) => csvCell(column.value(row)))));
    return lines.map((cells) => cells.join(",")).join("\n") + "\n";
  }

  async copy() {
    const text = this.csv();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page opened from disk may not use the clipboard: the old way still works.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.said.textContent = "Copied.";
  }

  download(fileName) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
    link.download = fileName;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    this.said.textContent = `Saved as ${fileName}.`;
  }
}
