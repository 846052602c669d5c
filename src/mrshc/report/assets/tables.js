"use strict";
// Tables that can be sorted, filtered, copied and downloaded.

// Return the text of a value: four significant digits, or more if values are large compared with
// their spread, since all values would otherwise look equal.
function formatValue(value, spread = 0) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isSafeInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  // Number of leading digits that all values of the feature share.
  const common = spread > 0 && size > spread ? Math.ceil(Math.log10(size / spread)) : 0;
  const digits = Math.min(4 + common, 16); // double precision has at most 16 digits
  // Large numbers are written without an exponent only if all digits of their integer part are shown.
  const plain = size >= 0.001 && (size < 1e6 || (common > 0 && size < 10 ** Math.min(digits, 15)));
  return plain ? value.toLocaleString("en", { maximumSignificantDigits: digits })
    : value.toExponential(spread > 0 ? digits - 1 : 2);
}

// Return whether a spreadsheet would execute a text as a formula. An apostrophe is put before such a
// text, as in guard_formula of mrshc.shell.text_cleaning. An apostrophe is also put before a text
// that begins with one, so that the original text can be restored. Numbers and individual signs are
// left unchanged.
function isFormula(text) {
  const number = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$|^[+-]?(inf(inity)?|nan)$/i;
  return text.length > 1 && /^'*[=+\-@\t\r]/.test(text) && !number.test(text.trim());
}

// Return a value as a field of a CSV file.
function formatCsvCell(value) {
  let text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
  if (typeof value === "string" && isFormula(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Return the text of a cell of a table.
function cellText(column, row) {
  return formatValue(column.value(row), column.spread ? column.spread(row) : 0);
}

// Largest number of rows of a table in the page. Browsers become slow with more rows. Filters and
// downloads include all rows. The number is not tuned: it does not affect any result.
const MAX_ROWS = 1000;

// Return the web address of a gene, given a template with {gene} or {feature}; null if a name in it is
// not known. Names are percent-encoded, so they cannot change the rest of the address.
function fillAddress(template, names) {
  const isKnown = (name) => names[name] !== null && names[name] !== undefined;
  if (![...template.matchAll(/\{(\w+)\}/g)].every(([, name]) => isKnown(name))) return null;
  return template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name]));
}

// Create a link that opens another page. The other page is not told where the reader comes from.
function createLink(text, address) {
  const link = document.createElement("a");
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.textContent = text;
  return link;
}

class DataTable {
  // columns: [{ title, numeric, value(row), spread(row)?, draw(cell, row)?, parts(row)? }]. Rows are
  // numbered 0..n-1. `parts(row)` returns the text of a cell in parts, each [text, address or null].
  // `keep(row)` returns whether a row passes a filter elsewhere on the page.
  constructor(id, { columns, n, onPick, fileName, keep = () => true }) {
    this.id = id;
    this.n = n;
    this.keep = keep;
    this.columns = columns;
    this.onPick = onPick;
    // Columns are identified by title, since their positions change with the number of clusters.
    this.sorting = { title: null, descending: false };
    this.highlightedRow = null;
    this.table = document.querySelector(`#${id} table`);
    this.status = document.querySelector(`#${id} .status`);
    this.filter = document.querySelector(`#${id} input`);
    this.filter.addEventListener("input", () => this.render());
    document.querySelector(`#${id} .copy`).addEventListener("click", () => this.copy());
    document.querySelector(`#${id} .download`).addEventListener("click", () => this.download(fileName));
    this.render();
  }

  // Return the rows that pass the filters, in the chosen order.
  visibleRows() {
    const wanted = this.filter.value.trim().toLowerCase();
    let rows = [...Array(this.n).keys()].filter(this.keep);
    if (wanted) {
      rows = rows.filter((row) => this.columns.some(
        (c) => !c.draw && cellText(c, row).toLowerCase().includes(wanted)));
    }
    const { title, descending } = this.sorting, column = this.columns.find((c) => c.title === title);
    if (column) {
      const value = column.value, sign = descending ? -1 : 1;
      const isMissing = (v) => v === null || v === undefined || Number.isNaN(v);
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        // Missing values come last in ascending and in descending order.
        if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y) || a - b;
        const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return sign * order || a - b;
      });
    }
    return rows;
  }

  sortBy(at) {
    const { title, numeric } = this.columns[at], isSame = this.sorting.title === title;
    // The first click on a numeric column sorts it in descending order, since the largest values are
    // usually of most interest.
    this.sorting = { title, descending: isSame ? !this.sorting.descending : numeric };
    this.render();
    // The button has been replaced, so the new button gets the focus; keyboard users would otherwise
    // lose their position.
    this.table.querySelectorAll("thead button")[at].focus();
  }

  render() {
    const head = document.createElement("tr");
    this.columns.forEach((column, at) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = column.numeric ? "number" : "";
      const isSorted = this.sorting.title === column.title, { descending } = this.sorting;
      cell.setAttribute("aria-sort", isSorted ? (descending ? "descending" : "ascending") : "none");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = column.title + (isSorted ? (descending ? " ▾" : " ▴") : "");
      button.addEventListener("click", () => this.sortBy(at));
      cell.append(button);
      head.append(cell);
    });
    this.table.tHead.replaceChildren(head);
    const body = document.createDocumentFragment();
    const rows = this.visibleRows();
    rows.slice(0, MAX_ROWS).forEach((row) => body.append(this.createRow(row)));
    this.table.tBodies[0].replaceChildren(body);
    const all = this.n.toLocaleString("en"), left = rows.length.toLocaleString("en");
    this.status.textContent = (rows.length === this.n ? `${all} rows` : `${left} of ${all} rows`)
      + (rows.length > MAX_ROWS ? `, the first ${MAX_ROWS.toLocaleString("en")} shown` : "");
  }

  createRow(row) {
    const line = document.createElement("tr");
    line.dataset.row = row;
    if (row === this.highlightedRow) line.className = "highlighted";
    this.columns.forEach((column, at) => {
      const cell = document.createElement(at === 0 ? "th" : "td");
      if (at === 0) cell.scope = "row";
      if (column.numeric) cell.className = "number";
      if (column.draw) column.draw(cell, row);
      else if (column.parts) {
        cell.append(...column.parts(row).map(([text, address]) => (address === null ? text : createLink(text, address))));
        cell.title = cellText(column, row);
      } else {
        cell.textContent = cellText(column, row);
        cell.title = cell.textContent;
      }
      line.append(cell);
    });
    line.addEventListener("click", () => this.onPick && this.onPick(row));
    return line;
  }

  // Highlight one row and scroll to it; highlight no row if the argument is null.
  highlight(row) {
    this.highlightedRow = row;
    this.table.querySelectorAll("tr.highlighted").forEach((line) => line.classList.remove("highlighted"));
    const line = this.table.querySelector(`tbody tr[data-row="${row}"]`);
    if (line) {
      line.classList.add("highlighted");
      const box = line.closest(".scroll");
      box.scrollTop = line.offsetTop - box.clientHeight / 2;
    }
  }

  // Return all rows that pass the filters as CSV, even those beyond the largest number of rows in the
  // page. Columns that are drawn have no values and are left out.
  csv() {
    const columns = this.columns.filter((column) => !column.draw);
    const lines = [columns.map((column) => formatCsvCell(column.title))];
    this.visibleRows().forEach((row) => lines.push(columns.map((column) => formatCsvCell(column.value(row)))));
    return lines.map((cells) => cells.join(",")).join("\n") + "\n";
  }

  async copy() {
    const text = this.csv();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Browsers do not let pages opened from disk use the clipboard; the older command still works.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.status.textContent = "Copied to the clipboard.";
  }

  download(fileName) {
    saveFile(this.csv(), "text/csv", fileName);
    this.status.textContent = `Saved as ${fileName}.`;
  }
}
