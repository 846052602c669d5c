"use strict";
// Significance and support of branches: markers on the tree, sentences, and the consensus of samples.

const MISSING_CONSENSUS = 255; // byte of a pair of samples without a value, as in Python
// White to blue (Blues of ColorBrewer), as in consensus.png.
const CONSENSUS_SCALE = [[0, "#f7fbff"], [0.25, "#c6dbef"], [0.5, "#6baed6"], [0.75, "#2171b5"], [1, "#08306b"]];
// Approximate size of the characters of a label, in pixels, at font size 11.
const LABEL_FONT = 11, CHARACTER_PIXELS = 6.2, LINE_PIXELS = 14;

class Branches {
  // data: { support, tests, higher }, as in page_data.py; support and tests are null if they were not
  // computed.
  constructor({ support, tests, higher }, tree) {
    this.support = support;
    this.higher = new Map(higher); // names of the strongest markers by node
    this.hasTests = tests !== null;
    this.tests = new Map((tests || []).map((test) => [test.node, test]));
    this.tree = tree;
  }

  // Return the support of the branch below a node in percent; null if it is not known.
  percentage(node) {
    const support = this.support && node >= this.tree.n ? this.support[node - this.tree.n] : null;
    return support === null ? null : Math.round(100 * support);
  }

  // Return the nodes with a marker, from the root downwards: tested nodes, nodes that join clusters,
  // and the top nodes of clusters. Support is not shown inside clusters, where nodes are too close.
  shown(labels) {
    const { tree } = this, clusters = tree.nodeClusters(labels), nodes = [];
    for (let node = tree.root; node >= tree.n; node--) {
      const above = tree.parent[node], test = this.tests.get(node) || null;
      const isShown = clusters[node] === null || (above !== null && clusters[above] === null);
      const support = isShown ? this.percentage(node) : null;
      if (test || support !== null) nodes.push({ node, test, support });
    }
    return nodes;
  }

  // Return a list with one sentence on a node, or no sentence if nothing was computed.
  sentence(node) {
    const { tree } = this, test = this.tests.get(node), support = this.percentage(node);
    const sizes = tree.children(node).map((child) => tree.members(child).length).join(" and ");
    const parts = [];
    if (test) {
      const verdict = test.significant ? "significant" : "not significant";
      parts.push(`split into ${sizes} samples: ${test.text}, ${verdict} (threshold ${test.threshold})`);
      // Features are selected again below the root, so another split may have been tested.
      if (test.agreement !== null && test.agreement < 0.995) parts.push(`the tested split differs, agreement ${test.agreement.toFixed(2)}`);
    } else if (this.hasTests) {
      parts.push(`split into ${sizes} samples: not tested`);
    }
    if (support !== null) parts.push(`support ${support} %`);
    return parts.length ? [parts.join("; ")] : [];
  }

  // Return lines of the legend that explain the markers.
  legendLines(labels) {
    const shown = this.shown(labels), entries = [];
    if (shown.some(({ test }) => test && test.significant)) entries.push(["● significant", null]);
    if (shown.some(({ test }) => test && !test.significant)) entries.push(["○ not significant", null]);
    if (shown.some(({ support }) => support !== null)) entries.push(["%: support of the branch below the node", null]);
    return entries.length ? [legendLine("splits of the tree", entries)] : [];
  }
}

// Return the markers of nodes as traces. Labels are left out where they would overlap. `width` and
// `height` are the size of the tree in pixels, `range` is the visible range of samples.
function branchMarkTraces(shown, tree, t, { width, height, range, hasLabels }) {
  if (!shown.length) return [];
  const top = tree.height(tree.root) || 1, unit = width / (range[1] - range[0]);
  const boxes = shown.map(({ node }) => {
    const x = (tree.position[node] - range[0]) * unit, y = (height * tree.height(node)) / top;
    return [x - 5, y - 5, x + 5, y + 5];
  });
  const positions = [], texts = shown.map(({ test, support }, i) => {
    const lines = [...(test ? [test.text] : []), ...(support === null ? [] : [`${support} %`])];
    const [left, low, right, high] = boxes[i];
    const w = CHARACTER_PIXELS * Math.max(...lines.map((line) => line.length)), h = LINE_PIXELS * lines.length;
    const candidates = [["top right", [right, high, right + w, high + h]], ["top left", [left - w, high, left, high + h]]];
    const free = candidates.find(([, box]) => box[0] >= 0 && box[2] <= width && !boxes.some((other) => areOverlapping(box, other)));
    positions.push(free ? free[0] : "top right");
    if (!free || !hasLabels) return "";
    boxes.push(free[1]);
    return lines.map(escapeMarkup).join("<br>");
  });
  const isSignificant = ({ test }) => test && test.significant;
  return [{
    type: "scatter", mode: "markers+text", hoverinfo: "skip", text: texts, textposition: positions,
    textfont: { size: LABEL_FONT, color: t.ink },
    x: shown.map(({ node }) => tree.position[node]), y: shown.map(({ node }) => tree.height(node)),
    marker: {
      opacity: 1, size: shown.map(({ test }) => (test ? 9 : 5)),
      color: shown.map((mark) => (!mark.test ? t.soft : isSignificant(mark) ? t.ink : t.paper)),
      line: { width: shown.map(({ test }) => (test ? 1.5 : 0)), color: t.ink },
    },
  }];
}

// Return whether two boxes [left, bottom, right, top] overlap.
function areOverlapping(a, b) { return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]; }

// Draw the consensus of all pairs of samples, in the order of the tree, with a frame around each
// cluster. `values` are percentages, with samples in the order of the data.
function drawConsensus(id, values, tree, labels) {
  const t = themeColours(), { n, order } = tree, plot = document.getElementById(id);
  const z = order.map((i) => order.map((j) => {
    const value = values[i * n + j];
    return value === MISSING_CONSENSUS ? null : value / 100;
  }));
  // The matrix is a square. Its colour bar takes about 90 pixels.
  const side = Math.min(plot.clientWidth - 90, 520), at = order.map((_, k) => k);
  const frames = [{ type: "rect", xref: "x", yref: "y", x0: -0.5, x1: n - 0.5, y0: -0.5, y1: n - 0.5, layer: "below", line: { width: 0 }, fillcolor: t.missing }];
  for (let start = 0, end; start < n; start = end) {
    for (end = start + 1; end < n && labels[order[end]] === labels[order[start]]; end++);
    const label = labels[order[start]];
    if (label >= 0) frames.push({ type: "rect", xref: "x", yref: "y", x0: start - 0.5, x1: end - 0.5, y0: start - 0.5, y1: end - 0.5, line: { width: 2, color: t.mark }, fillcolor: "rgba(0,0,0,0)" });
  }
  const axis = { range: [-0.5, n - 0.5], showticklabels: false, ticks: "", showline: false, fixedrange: true };
  Plotly.react(id, [{
    type: "heatmap", x: at, y: at, z, zmin: 0, zmax: 1, colorscale: CONSENSUS_SCALE, hoverinfo: "none",
    colorbar: { title: { text: "share of subsamples with<br>both samples in one cluster", side: "right" }, thickness: 14, outlinewidth: 0, len: 1 },
  }], baseLayout({
    width: side + 90, height: side + 20, margin: { l: 4, r: 84, t: 10, b: 10 }, shapes: frames, dragmode: false,
    xaxis: axisLayout(axis), yaxis: axisLayout({ ...axis, range: [n - 0.5, -0.5] }),
  }), { ...PLOTLY_CONFIG, responsive: false });
}
