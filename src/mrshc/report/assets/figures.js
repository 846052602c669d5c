"use strict";
// Figures, drawn with Plotly in the colours of the page.

const PLOTLY_CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };
// Diverging colour scale from blue over white to red (RdBu of ColorBrewer), as in heatmap.png.
const HEAT_SCALE = [
  [0, "#053061"], [0.1, "#2166ac"], [0.2, "#4393c3"], [0.3, "#92c5de"], [0.4, "#d1e5f0"],
  [0.5, "#f7f7f7"], [0.6, "#fddbc7"], [0.7, "#f4a582"], [0.8, "#d6604d"], [0.9, "#b2182b"],
  [1, "#67001f"],
];
// The colour scale ends at plus and minus this number of standard deviations, as in heatmap.png.
// Without a limit, a single outlier would make all other values pale.
const COLOUR_LIMIT = 3;

// Colours of the style sheet, which differ between light and dark mode.
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    paper: of("--paper"), ink: of("--ink"), soft: of("--soft"), line: of("--line"),
    accent: of("--accent"), mark: of("--mark"), missing: of("--missing"), panel: of("--panel"),
  };
}

// Return whether the page is dark. Printed pages are light.
function isDark() {
  const printing = document.documentElement.classList.contains("printing");
  return window.matchMedia("(prefers-color-scheme: dark)").matches && !printing;
}

// Return a colour for the current mode: dark colours are lightened on a dark page.
function adaptColour(colour) {
  if (!isDark()) return colour;
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  // The proportion of white depends on the perceived brightness of red, green and blue. Colours with
  // a brightness of 0.75 or more are not changed. The constants were chosen by eye.
  const share = Math.max(0, 0.45 - (0.6 * (0.3 * channels[0] + 0.59 * channels[1] + 0.11 * channels[2])) / 255);
  return `#${channels.map((c) => Math.round(c + (255 - c) * share).toString(16).padStart(2, "0")).join("")}`;
}

// Return text that Plotly does not interpret as markup or as a formula, since names come from files
// of users.
function escapeMarkup(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("$", "&#36;");
}

// Return text with its middle replaced by an ellipsis if it is too long, as in the plots of Python.
function shorten(text, length = 16) {
  const letters = [...String(text)];
  if (letters.length <= length) return letters.join("");
  const half = Math.floor((length - 1) / 2);
  return `${letters.slice(0, length - 1 - half).join("")}…${letters.slice(-half).join("")}`;
}

// Save a text as a file of the given type.
function saveFile(text, type, fileName) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = fileName;
  link.click();
  // The address is revoked later, since the download must start first.
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Save a figure as an SVG file with its size on the screen. The colours are those of the printed page,
// also if the page is dark.
async function downloadSvg(id, redraw) {
  const plot = document.getElementById(id), wasDark = isDark();
  const print = (on) => { document.documentElement.classList.toggle("printing", on); redraw(); };
  if (wasDark) print(true);
  try {
    const { data, layout } = plot, { width, height } = plot._fullLayout;
    const figure = { data, layout: { ...layout, paper_bgcolor: "#ffffff" } };
    const address = await Plotly.toImage(figure, { format: "svg", width, height });
    saveFile(decodeURIComponent(address.slice(address.indexOf(",") + 1)), "image/svg+xml", `${id}.svg`);
  } finally {
    if (wasDark) print(false);
  }
}

// Connect the buttons below the figures; `redraw` draws all figures of the page again.
function connectDownloads(redraw) {
  document.querySelectorAll(".download-svg").forEach((button) => {
    button.addEventListener("click", () => downloadSvg(button.dataset.plot, redraw));
  });
}

// Return the layout that all figures share.
function baseLayout(more) {
  const t = themeColours();
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: t.ink },
    showlegend: false, dragmode: "zoom", hovermode: "closest", ...more,
  };
}

// Return the layout that all axes share.
function axisLayout(more) {
  const t = themeColours();
  return { showgrid: false, zeroline: false, automargin: true, linecolor: t.soft, tickcolor: t.soft, ...more };
}

// Show a text next to the mouse pointer, inside the window.
function showTooltip(event, text) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.style.display = "block";
  tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
}

// Create a line of the legend: a title, followed by texts with a colour (or gradient) before each
// text.
function legendLine(title, entries) {
  const line = document.createElement("div"), heading = document.createElement("b");
  line.className = "legend";
  heading.textContent = title;
  line.append(heading);
  entries.forEach(([text, colour]) => {
    const entry = document.createElement("span");
    if (colour) {
      const patch = document.createElement("i");
      patch.style.background = colour;
      if (colour.startsWith("linear")) patch.style.width = "9rem";
      entry.append(patch);
    }
    entry.append(document.createTextNode(text));
    line.append(entry);
  });
  return line;
}

// Legend of an annotation bar.
function barLegend(bar) {
  return legendLine(bar.name, bar.legend.map(([text, colour]) => [text, colour && adaptColour(colour)]));
}

// Return a row of colours as a trace; the colour "none" leaves a gap. Plotly cannot draw given
// colours directly, so the trace is a heat map whose scale has one step for each colour.
function barTrace(colours, order, row, yaxis) {
  colours = colours.map((colour) => (colour === "none" ? null : adaptColour(colour)));
  const levels = [...new Set(colours)].filter((colour) => colour !== null);
  const scale = levels.flatMap((colour, i) => [[i / levels.length, colour], [(i + 1) / levels.length, colour]]);
  return {
    type: "heatmap", x: order.map((_, at) => at), y: [row], yaxis, hoverinfo: "none",
    z: [order.map((sample) => (colours[sample] === null ? null : levels.indexOf(colours[sample]) + 0.5))],
    zmin: 0, zmax: levels.length, colorscale: scale, showscale: false, ygap: 2,
  };
}

// Return the tick labels that fit: every step-th name of the visible range, at least `space` pixels
// apart.
function fittingTicks(names, from, to, pixels, { space, length }) {
  const first = Math.max(0, Math.ceil(from)), last = Math.min(names.length - 1, Math.floor(to));
  const step = Math.max(1, Math.ceil((space * Math.max(1, to - from)) / Math.max(1, pixels)));
  const places = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) places.push(at);
  return { tickvals: places, ticktext: places.map((at) => escapeMarkup(shorten(names[at], length))) };
}

// Draw the candidates of a search, with the chosen candidate highlighted.
function drawCurve(id, curve) {
  const t = themeColours();
  const looks = {
    kept: { symbol: "circle", color: t.accent },
    removed: { symbol: "circle-open", color: t.accent },
    "screened out": { symbol: "x-thin-open", color: t.soft },
  };
  const at = curve.values.map((_, i) => i);
  const marker = {
    opacity: 1,
    size: at.map((i) => (i === curve.chosen ? 16 : 9)),
    symbol: at.map((i) => (i === curve.chosen ? "star" : looks[curve.states[i]].symbol)),
    color: at.map((i) => (i === curve.chosen ? t.mark : looks[curve.states[i]].color)),
    line: { width: 2, color: at.map((i) => (i === curve.chosen ? t.mark : looks[curve.states[i]].color)) },
  };
  const kept = at.filter((i) => curve.states[i] === "kept" || i === curve.chosen);
  const traces = [
    { type: "scatter", mode: "lines", x: kept, y: kept.map((i) => curve.values[i]), hoverinfo: "skip", line: { color: t.line, width: 1.5 } },
    {
      type: "scatter", mode: "markers", x: at, y: curve.values, marker,
      error_y: curve.errors ? { array: curve.errors, color: t.soft } : undefined,
      text: at.map((i) => escapeMarkup(`${curve.x_name} ${curve.ticks[i]}${curve.notes[i] ? `, ${curve.notes[i]}` : ""}\u2003${i === curve.chosen ? "chosen" : curve.states[i]}`)),
      hovertemplate: "%{text}<br>" + escapeMarkup(curve.y_name) + " %{y:.3f}<extra></extra>",
    },
  ];
  Plotly.react(id, traces, baseLayout({
    height: 300, margin: { l: 55, r: 15, t: 10, b: 50 },
    xaxis: axisLayout({ tickvals: at, ticktext: curve.ticks.map(escapeMarkup), title: { text: escapeMarkup(curve.x_name) } }),
    yaxis: axisLayout({ title: { text: escapeMarkup(curve.y_name) }, showline: true }),
  }), PLOTLY_CONFIG);
}

// Draw the gap test of each node: the decrease in the log dispersion due to the split, in the data
// and in simulated reference data sets without clusters. `names` are the names of the branches.
function drawSplits(id, splits, names) {
  const t = themeColours();
  const rows = splits.map((_, i) => splits.length - 1 - i);
  const reference = { x: [], y: [] };
  splits.forEach((split, i) => split.reference_drops.forEach((drop, j) => {
    reference.x.push(drop);
    // The dots are spread vertically in a fixed pattern, so that they do not cover each other.
    reference.y.push(rows[i] + (((j * 7) % 11) / 11 - 0.5) * 0.5);
  }));
  const verdict = (s) => (s.split
    ? (s.supported ? "split" : "split, although the test was not passed")
    : s.supported ? "test passed, but not split: the number of clusters is reached" : "not split");
  Plotly.react(id, [
    { type: "scatter", mode: "markers", x: reference.x, y: reference.y, name: "without clusters", hoverinfo: "skip", marker: { size: 4, color: t.soft, opacity: 0.5 } },
    { type: "scatter", mode: "markers", x: splits.map((s) => s.expected_drop + s.standard_error), y: rows, hoverinfo: "skip", marker: { symbol: "line-ns-open", size: 22, color: t.ink, line: { width: 2 } } },
    {
      type: "scatter", mode: "markers", x: splits.map((s) => s.drop), y: rows,
      marker: { size: 12, symbol: splits.map((s) => (s.split ? "diamond" : "diamond-open")), color: t.mark, line: { width: 2, color: t.mark } },
      text: splits.map((s, i) => `${names[i]}, ${s.n_samples} samples: ${verdict(s)}`),
      hovertemplate: "%{text}<br>decrease %{x:.3f}<extra></extra>",
    },
  ], baseLayout({
    height: Math.max(160, 70 + 34 * splits.length), margin: { l: 120, r: 15, t: 10, b: 50 },
    xaxis: axisLayout({ title: { text: "decrease of the log dispersion by the split" }, showline: true }),
    yaxis: axisLayout({ tickvals: rows, ticktext: splits.map((s, i) => `${names[i]} (${s.n_samples} samples)`), range: [-0.7, splits.length - 0.3] }),
  }), PLOTLY_CONFIG);
}

// Draw the 25 largest loadings of a component. More loadings would not fit on a screen.
function drawLoadings(id, loadings, names, title) {
  const t = themeColours();
  const top = loadings.map((value, i) => [value, i]).filter(([value]) => value !== 0 && value !== null)
    .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 25).reverse();
  Plotly.react(id, [{
    type: "bar", orientation: "h", x: top.map(([value]) => value), y: top.map((_, at) => at),
    marker: { color: top.map(([value]) => (value > 0 ? t.accent : t.mark)) },
    text: top.map(([, i]) => escapeMarkup(names[i])), textposition: "none",
    hovertemplate: "%{text}: %{x:.3f}<extra></extra>",
  }], baseLayout({
    height: 60 + 19 * Math.max(4, top.length), margin: { l: 150, r: 10, t: 10, b: 45 },
    xaxis: axisLayout({ title: { text: title }, showline: true }),
    yaxis: axisLayout({ tickvals: top.map((_, at) => at), ticktext: top.map(([, i]) => escapeMarkup(shorten(names[i], 20))) }),
  }), PLOTLY_CONFIG);
}
