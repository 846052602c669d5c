"use strict";
// The page of one result: what is chosen on it, and what follows from that everywhere.

const LEFT = 0.13; // share of the width for the feature tree
const FEWEST = 4; // samples that a view holds
const NEAR = 7; // pixels within which the mouse finds a branch
const NARROW = 700; // pixels below which the feature tree is left out

class ResultPage {
  constructor(data) {
    this.data = data;
    this.names = data.samples.names;
    this.n = this.names.length;
    this.q = data.features.names.length;
    this.tree = new Tree(data.linkage, data.samples.order);
    this.ofFeatures = this.q > 1 ? new Tree(data.features.tree, leafOrder(data.features.tree)) : null;
    this.values = new Values(data);
    this.state = { k: null, labels: data.samples.found, node: null, sample: null, feature: null, order: "tree" };
    this.found = groupSizes(data.samples.found).length;
    this.describe();
    this.listen();
    this.drawTree();
    this.drawHeat();
    this.watch();
    // What lies further down can wait for the first look.
    this.settled = afterFrame(() => { this.makeTables(); this.say(); this.drawWhy(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawAll());
    // On paper everything is light, and no strip waits to be scrolled to.
    const print = (on) => { document.documentElement.classList.toggle("printing", on); this.drawAll(); };
    window.addEventListener("beforeprint", () => { print(true); document.querySelectorAll("canvas.strip").forEach((c) => this.paintStrip(c)); });
    window.addEventListener("afterprint", () => print(false));
    window.addEventListener("resize", () => { clearTimeout(this.resizing); this.resizing = setTimeout(() => this.drawAll(), 200); });
  }

  colour(label) { return adapted(this.data.colours[label % this.data.colours.length]); }

  // ---- clusters and what follows from them

  setCut(k) {
    this.state.k = k;
    this.state.labels = k === null ? this.data.samples.found : this.tree.cut(k);
    this.sizes = groupSizes(this.state.labels);
    this.drawTree();
    this.say();
    // While the slider moves on, only the last cut needs tables.
    this.settled = afterFrame(() => { if (this.state.k === k) this.follows(); });
  }

  // What takes longer than the eye.
  follows() {
    this.describe();
    this.tables();
    if (this.state.order === "effect") this.drawHeat();
    this.search(document.getElementById("find").value);
  }

  // Exact as found; for other cuts from what the page holds.
  describe() {
    const labels = this.state.labels;
    this.sizes = groupSizes(labels);
    if (this.state.k === null) {
      this.means = this.data.features.means;
      this.effect = this.data.features.effect;
      this.silhouette = this.data.samples.silhouette;
      return;
    }
    Object.assign(this, this.values.separation(labels, this.sizes));
    this.silhouette = this.values.silhouettes(this.state.k);
  }

  // ---- tree and heat map

  drawAll() {
    this.describe();
    this.drawTree();
    this.drawHeat();
    this.drawWhy();
    this.tables();
    this.say();
  }

  narrow() { return document.getElementById("tree").clientWidth < NARROW; }

  domain() { return [this.narrow() ? 0 : LEFT, 1]; }

  // The same margins in both figures: columns must stay aligned.
  sides() { return this.narrow() ? { l: 62, r: 72 } : { l: 88, r: 112 }; }

  room() {
    const { l, r } = this.sides();
    return (document.getElementById("tree").clientWidth - l - r) * (1 - this.domain()[0]);
  }

  bars() {
    const clusters = this.state.labels.map((label) => this.data.colours[label % this.data.colours.length]);
    return [{ name: "cluster", colours: clusters }, ...this.data.samples.bars];
  }

  drawTree() {
    const t = theme(), tree = this.tree, bars = this.bars();
    const traces = branchTraces(tree, this.state.labels, this.data.colours, t.soft);
    if (this.state.node !== null) traces.push(this.highlight(t));
    const names = bars.map((bar) => literal(shortened(bar.name, this.narrow() ? 8 : 12)));
    bars.forEach((bar, row) => traces.push(barTrace(bar.colours, tree.order, row, "y2")));
    const share = Math.min(0.5, (18 * bars.length) / 300);
    Plotly.react("tree", traces, baseLayout({
      height: 300 + 6 * bars.length, margin: { ...this.sides(), t: 8, b: 4 }, shapes: this.marks(),
      xaxis: axis({ domain: this.domain(), range: this.range(), showticklabels: false, ticks: "" }),
      yaxis: axis({ domain: [share + 0.02, 1], title: { text: "height of merge" }, rangemode: "tozero", fixedrange: true, nticks: 5, anchor: "x" }),
      yaxis2: axis({ domain: [0, share], tickvals: names.map((_, i) => i), ticktext: names, autorange: "reversed", fixedrange: true, ticks: "", anchor: "x" }),
    }), CONFIG);
  }

  highlight(t) {
    const line = { x: [], y: [] };
    this.tree.below(this.state.node).forEach((node) => {
      const fork = this.tree.fork(node);
      line.x.push(...fork.x);
      line.y.push(...fork.y);
    });
    return { type: "scatter", mode: "lines", ...line, hoverinfo: "skip", line: { width: 3.5, color: t.mark } };
  }

  range() { return this.view || [-0.5, this.n - 0.5]; }

  marks() {
    if (this.state.sample === null) return [];
    const at = this.tree.place[this.state.sample];
    return [{ type: "rect", xref: "x", yref: "paper", x0: at - 0.5, x1: at + 0.5, y0: 0, y1: 1, line: { width: 1.5, color: theme().mark }, fillcolor: "rgba(0,0,0,0)" }];
  }

  featureOrder() {
    const all = [...Array(this.q).keys()];
    const size = (j) => Math.max(...this.data.features.loadings.map((l) => Math.abs(l[j] || 0)), 0);
    if (this.state.order === "loading") return all.sort((a, b) => size(b) - size(a) || a - b);
    if (this.state.order === "effect") return all.sort((a, b) => (this.effect[b] || 0) - (this.effect[a] || 0) || a - b);
    return this.q < 2 ? all : this.ofFeatures.order;
  }

  drawHeat() {
    const t = theme(), order = this.featureOrder(), samples = this.tree.order;
    this.rows = order;
    const z = order.map((j) => Float32Array.from(samples, (i) => this.values.standard(i, j)));
    const traces = [{
      type: "heatmap", x: samples.map((_, at) => at), y: order.map((_, at) => at), z,
      zmin: -FAR, zmax: FAR, colorscale: HEAT, hoverinfo: "none", showscale: false,
    }];
    const [left] = this.domain();
    if (left > 0 && this.state.order === "tree" && this.q > 1) {
      const tree = this.ofFeatures, line = { x: [], y: [] };
      for (let node = tree.n; node <= tree.root; node++) {
        const fork = tree.fork(node);
        line.x.push(...fork.y.map((h) => (h === null ? null : -h)));
        line.y.push(...fork.x);
      }
      traces.push({ type: "scatter", mode: "lines", ...line, xaxis: "x2", hoverinfo: "skip", line: { width: 1, color: t.soft } });
    }
    const height = Math.max(220, Math.min(900, 14 * this.q)) + 96;
    this.heatHeight = height - 96;
    Plotly.react("heat", traces, baseLayout({
      height, margin: { ...this.sides(), t: 4, b: 92 }, shapes: this.heatShapes(),
      xaxis: axis({ domain: this.domain(), range: this.range(), tickangle: -90, ticks: "", tickfont: { size: 10 }, ...this.sampleTicks() }),
      xaxis2: axis({ domain: [0, Math.max(0.001, left - 0.01)], showticklabels: false, ticks: "", fixedrange: true, visible: false }),
      yaxis: axis({ range: this.rowView || [this.q - 0.5, -0.5], ticks: "", tickfont: { size: 10 }, side: "right", ...this.featureTicks() }),
    }), CONFIG);
  }

  // Missing cells show what lies below; what is picked has a frame.
  heatShapes() {
    const below = { type: "rect", xref: "x domain", yref: "y domain", x0: 0, x1: 1, y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: theme().missing };
    return [below, ...this.marks(), ...this.featureMarks()];
  }

  featureMarks() {
    if (this.state.feature === null) return [];
    const at = this.rows.indexOf(this.state.feature);
    return [{ type: "rect", xref: "x", yref: "y", x0: -0.5, x1: this.n - 0.5, y0: at - 0.5, y1: at + 0.5, line: { width: 1.5, color: theme().mark }, fillcolor: "rgba(0,0,0,0)" }];
  }

  sampleTicks() {
    const [from, to] = this.range();
    return thinned(this.tree.order.map((i) => this.names[i]), from, to, this.room(), { space: 13, length: 14 });
  }

  featureTicks() {
    const [from, to] = (this.rowView || [this.q - 0.5, -0.5]).slice().sort((a, b) => a - b);
    return thinned(this.rows.map((j) => this.data.features.names[j]), from, to, this.heatHeight, { space: 12, length: this.narrow() ? 10 : 16 });
  }

  // Zooming one of the two figures zooms the other.
  follow(change) {
    const has = (key) => change[key] !== undefined;
    if (has("xaxis.range[0]")) this.view = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (has("xaxis.range")) this.view = change["xaxis.range"];
    if (has("yaxis.range")) this.rowView = change["yaxis.range"];
    if (has("yaxis.range[0]")) this.rowView = [change["yaxis.range[0]"], change["yaxis.range[1]"]];
    if (has("xaxis.autorange")) this.view = null;
    if (has("yaxis.autorange")) this.rowView = null;
    if (!Object.keys(change).some((key) => key.startsWith("xaxis") || key.startsWith("yaxis"))) return;
    this.applyView();
  }

  applyView() {
    const x = { "xaxis.range": this.range() };
    const ticks = this.sampleTicks(), rows = this.featureTicks();
    this.moving = true;
    Promise.all([
      Plotly.relayout("tree", x),
      Plotly.relayout("heat", {
        ...x, "yaxis.range": this.rowView || [this.q - 0.5, -0.5],
        "xaxis.tickvals": ticks.tickvals, "xaxis.ticktext": ticks.ticktext,
        "yaxis.tickvals": rows.tickvals, "yaxis.ticktext": rows.ticktext,
      }),
    ]).then(() => { this.moving = false; });
  }

  zoom(factor) {
    const [from, to] = this.range(), middle = (from + to) / 2, half = ((to - from) / 2) * factor;
    if (factor && 2 * half < FEWEST) return;
    this.view = factor === 0 || 2 * half >= this.n ? null
      : [Math.max(-0.5, middle - half), Math.min(this.n - 0.5, middle + half)];
    if (factor === 0) this.rowView = null;
    this.applyView();
  }

  pan(share) {
    const [from, to] = this.range(), width = to - from;
    const start = Math.min(Math.max(-0.5, from + share * width), this.n - 0.5 - width);
    this.view = [start, start + width];
    this.applyView();
  }

  // ---- picking

  pickNode(node) {
    this.state.node = node;
    this.drawTree();
    this.say();
    this.samplesTable.columns = this.sampleColumns();
    this.samplesTable.render();
  }

  pickSample(sample) {
    this.state.sample = sample;
    this.samplesTable.mark(sample);
    const at = sample === null ? null : this.tree.place[sample], [from, to] = this.range();
    if (at !== null && (at < from || at > to)) { this.view = null; this.applyView(); }
    this.drawTree();
    Plotly.relayout("heat", { shapes: this.heatShapes() });
    this.say();
  }

  pickFeature(feature) {
    this.state.feature = feature;
    this.featuresTable.mark(feature);
    const at = this.rows.indexOf(feature), view = this.rowView;
    if (view && at >= 0 && (at < Math.min(...view) || at > Math.max(...view))) { this.rowView = null; this.applyView(); }
    Plotly.relayout("heat", { shapes: this.heatShapes() });
    this.say();
  }

  search(text) {
    const wanted = text.trim().toLowerCase();
    const said = document.getElementById("search-said");
    if (!wanted) {
      if (said.textContent) { this.pickSample(null); this.pickFeature(null); }
      said.textContent = "";
      return;
    }
    // Names that are it first, then names that hold it.
    const hits = (names) => names.map((name, i) => [name.toLowerCase(), i]).filter(([name]) => name.includes(wanted))
      .sort((a, b) => (b[0] === wanted) - (a[0] === wanted) || a[1] - b[1]).map(([, i]) => i);
    const samples = hits(this.names), features = hits(this.data.features.names);
    const exactly = this.data.features.names.some((name) => name.toLowerCase() === wanted);
    const n = samples.length + features.length, first = n > 1 ? `, first of ${n}` : "";
    if (samples.length && !exactly) {
      const [sample] = samples;
      if (sample !== this.state.sample) this.pickSample(sample);
      said.textContent = `Sample ${this.names[sample]}, cluster ${this.state.labels[sample] + 1}${first}`;
    } else if (features.length) {
      const [feature] = features;
      if (feature !== this.state.feature) this.pickFeature(feature);
      said.textContent = `Feature ${this.data.features.names[feature]}, effect ${shown(this.effect[feature])}${first}`;
    } else {
      said.textContent = "No sample or selected feature has this in its name.";
    }
  }

  // ---- words, legends, tables

  say() {
    const k = this.sizes.length;
    const how = this.state.k === null ? "as found" : "cut through the tree";
    const slider = document.getElementById("cut");
    slider.value = k;
    slider.setAttribute("aria-valuetext", `${k} clusters, ${how}`);
    document.getElementById("cut-said").textContent = `${k} ${k === 1 ? "cluster" : "clusters"}, ${how}`;
    document.getElementById("as-found").disabled = this.state.k === null;
    const node = this.state.node, tree = this.tree;
    document.getElementById("branch-said").textContent = node === null ? "no branch picked"
      : `${tree.members(node).length} samples, merged at height ${shown(tree.height(node))}`;
    document.getElementById("branch-up").disabled = node === null || node === tree.root;
    for (const side of ["left", "right"]) {
      const child = this.child(side);
      document.getElementById(`branch-${side}`).disabled = child === null;
    }
    document.getElementById("branch-none").disabled = node === null;
    document.getElementById("tree").setAttribute("aria-label", `Tree of ${this.n} samples in ${k} clusters, with bars of annotations below`);
    // A button that was just pressed may have nothing more to do.
    if (document.activeElement.disabled) document.getElementById(node === null ? "cut" : "branch-top").focus();
    this.legends();
  }

  child(side) {
    if (this.state.node === null) return null;
    const [left, right] = this.tree.children(this.state.node).sort((a, b) => this.tree.place[a] - this.tree.place[b]);
    const child = side === "left" ? left : right;
    return child >= this.tree.n ? child : null;
  }

  legends() {
    const steps = HEAT.map(([, colour]) => colour).join(", ");
    const lines = [
      legendLine("clusters", this.sizes.map((size, c) => [`${c + 1} (${size})`, this.colour(c)])),
      ...this.data.samples.bars.map(barLegend),
      legendLine("values", [
        [`${FAR} below`, null],
        [`${FAR} standard deviations above the feature's mean`, `linear-gradient(90deg, ${steps})`],
        ...(this.data.missing ? [["missing", theme().missing]] : []),
      ]),
    ];
    document.getElementById("legend").replaceChildren(...lines);
  }

  makeTables() {
    this.featuresTable = new DataTable("features", {
      columns: this.featureColumns(), n: this.q, fileName: "features.csv", onPick: (row) => this.pickFeature(row),
    });
    this.samplesTable = new DataTable("samples", {
      columns: this.sampleColumns(), n: this.n, fileName: "samples.csv", onPick: (row) => this.pickSample(row),
    });
    if (this.data.markers.of) this.makeMarkers();
  }

  // What marks one cluster, what tells the two sides of a split apart, or all of it.
  makeMarkers() {
    const { of, columns } = this.data.markers, choice = document.getElementById("contrast");
    const names = new Map(this.data.features.names.map((name, j) => [name, j]));
    const [inside, outside] = ["mean_inside", "mean_outside"].map((name) => columns.find((c) => c.name === name).values);
    const apart = (row) => Math.abs(inside[row] - outside[row]);
    this.markersTable = new DataTable("markers", {
      columns: columns.map(({ name, numeric, values }) => ({
        title: name, numeric, value: (row) => values[row], spread: name.startsWith("mean_") ? apart : undefined,
      })),
      n: of.length, fileName: "markers.csv", keep: (row) => choice.value === "" || of[row] === Number(choice.value),
      onPick: (row) => { const j = names.get(columns[0].values[row]); if (j !== undefined) this.pickFeature(j); },
    });
    choice.addEventListener("change", () => this.markersTable.render());
  }

  tables() {
    this.featuresTable.columns = this.featureColumns();
    this.featuresTable.render();
    this.samplesTable.columns = this.sampleColumns();
    this.samplesTable.render();
  }

  featureColumns() {
    const f = this.data.features, name = this.data.loading_name;
    return [
      { title: "feature", value: (j) => f.names[j] },
      ...f.annotations.map((a) => ({ title: a.name, numeric: a.numeric, value: (j) => a.values[j] })),
      { title: "effect_size", numeric: true, value: (j) => this.effect[j] },
      ...(f.q_values ? [{ title: "q_value", numeric: true, value: (j) => f.q_values[j] }] : []),
      ...f.loadings.map((l, k) => ({ title: f.loadings.length > 1 ? `${name}_${k + 1}` : name, numeric: true, value: (j) => l[j] })),
      { title: "samples", value: (j) => this.effect[j], draw: (cell, j) => this.strip(cell, j) },
      ...this.means.map((means, c) => ({ title: `mean_cluster_${c + 1}`, numeric: true, value: (j) => means[j], spread: (j) => this.values.spread(j) })),
    ];
  }

  sampleColumns() {
    const s = this.data.samples;
    const inside = this.state.node === null ? null : new Set(this.tree.members(this.state.node));
    return [
      { title: "sample", value: (i) => s.names[i] },
      { title: "cluster", numeric: true, value: (i) => this.state.labels[i] + 1 },
      { title: "silhouette", numeric: true, value: (i) => this.silhouette[i] },
      ...(s.outlying.length ? [{ title: "outlying", value: (i) => (this.values.outlying.has(i) ? "yes" : "no") }] : []),
      ...(inside ? [{ title: "in_branch", value: (i) => (inside.has(i) ? "yes" : "no") }] : []),
      ...s.annotations.map((a) => ({ title: a.name, numeric: a.numeric, value: (i) => a.values[i] })),
    ];
  }

  // A dot for each sample, a row for each cluster; drawn when it comes into view.
  strip(cell, j) {
    const canvas = document.createElement("canvas");
    canvas.className = "strip";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Values by cluster: ${this.means.map((m, c) => `${c + 1}: ${shown(m[j], this.values.spread(j))}`).join(", ")}`);
    cell.append(canvas);
    canvas.dataset.feature = j;
    this.watcher ??= new IntersectionObserver((entries) => entries.forEach((e) => {
      if (e.isIntersecting) { this.watcher.unobserve(e.target); this.paintStrip(e.target); }
    }));
    this.watcher.observe(canvas);
  }

  paintStrip(canvas) {
    const j = Number(canvas.dataset.feature), k = this.sizes.length, ratio = window.devicePixelRatio || 1;
    canvas.width = 170 * ratio;
    canvas.height = 26 * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < this.n; i++) {
      const v = this.values.cell(i, j);
      if (v < low) low = v;
      if (v > high) high = v;
    }
    const width = high - low || 1;
    pen.globalAlpha = this.n > 200 ? 0.35 : 0.7;
    for (let i = 0; i < this.n; i++) {
      const v = this.values.cell(i, j), c = this.state.labels[i];
      if (Number.isNaN(v)) continue;
      pen.fillStyle = this.colour(c);
      pen.beginPath();
      pen.arc(4 + (162 * (v - low)) / width, 26 * (c + 0.5) / k, Math.min(2.4, 10 / k + 0.8), 0, 7);
      pen.fill();
    }
  }

  drawWhy() {
    this.data.curves.forEach((curve, i) => curveFigure(`curve-${i}`, curve));
    if (this.data.splits.length) splitsFigure("splits", this.data.splits);
    this.data.features.loadings.forEach((loadings, k) => loadingsFigure(`loadings-${k}`, loadings, this.data.features.names, `${this.data.loading_name} in component ${k + 1}`));
  }

  listen() {
    const on = (id, kind, what) => document.getElementById(id).addEventListener(kind, what);
    on("cut", "input", (e) => this.setCut(Number(e.target.value)));
    on("as-found", "click", () => this.setCut(null));
    on("order", "change", (e) => { this.state.order = e.target.value; this.rowView = null; this.drawHeat(); });
    on("find", "input", (e) => this.search(e.target.value));
    on("zoom-in", "click", () => this.zoom(0.5));
    on("zoom-out", "click", () => this.zoom(2));
    on("zoom-all", "click", () => this.zoom(0));
    on("pan-left", "click", () => this.pan(-0.4));
    on("pan-right", "click", () => this.pan(0.4));
    on("branch-up", "click", () => this.pickNode(this.tree.parent[this.state.node]));
    on("branch-left", "click", () => this.pickNode(this.child("left")));
    on("branch-right", "click", () => this.pickNode(this.child("right")));
    on("branch-top", "click", () => this.pickNode(this.tree.root));
    on("branch-none", "click", () => this.pickNode(null));
  }

  // What the mouse does on the two figures.
  watch() {
    const tree = document.getElementById("tree"), heat = document.getElementById("heat");
    const hide = () => { document.getElementById("tip").style.display = "none"; };
    for (const plot of [tree, heat]) {
      plot.on("plotly_relayout", (change) => { if (!this.moving) this.follow(change); });
      plot.on("plotly_unhover", hide);
    }
    for (const plot of [tree, heat]) {
      plot.addEventListener("mouseleave", hide);
      plot.on("plotly_doubleclick", () => this.zoom(0));
    }
    tree.on("plotly_hover", (e) => showTip(e.event, this.aboutSample(this.tree.order[e.points[0].x])));
    tree.on("plotly_click", (e) => this.pickSample(this.tree.order[e.points[0].x]));
    let pressed = [0, 0];
    tree.addEventListener("mousedown", (e) => { pressed = [e.clientX, e.clientY]; }, true);
    tree.addEventListener("click", (e) => {
      const node = this.nodeAt(e), still = Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) < 4;
      if (node !== null && still) this.pickNode(node);
    });
    tree.addEventListener("mousemove", (e) => {
      const node = this.nodeAt(e);
      if (node !== null) showTip(e, this.aboutNode(node));
      else if (e.clientY < this.barsTop()) hide();
    });
    heat.on("plotly_hover", (e) => showTip(e.event, this.aboutCell(e.points[0])));
    heat.on("plotly_click", (e) => {
      this.pickSample(this.tree.order[e.points[0].x]);
      this.pickFeature(this.rows[e.points[0].y]);
    });
  }

  // The node whose fork is under the mouse; thousands of invisible points would be slow.
  nodeAt(event) {
    const plot = document.getElementById("tree"), box = plot.getBoundingClientRect();
    const { xaxis, yaxis } = plot._fullLayout;
    const x = event.clientX - box.left - xaxis._offset, y = event.clientY - box.top - yaxis._offset;
    if (y < -NEAR || y > yaxis._length + NEAR) return null;
    let found = null, best = NEAR;
    for (let node = this.tree.n; node <= this.tree.root; node++) {
      const [left, right] = this.tree.children(node).map((c) => xaxis.l2p(this.tree.place[c]));
      const aside = Math.max(0, Math.min(left, right) - x, x - Math.max(left, right));
      const distance = Math.hypot(aside, y - yaxis.l2p(this.tree.height(node)));
      if (distance < best) [best, found] = [distance, node];
    }
    return found;
  }

  barsTop() {
    const plot = document.getElementById("tree"), { yaxis } = plot._fullLayout;
    return plot.getBoundingClientRect().top + yaxis._offset + yaxis._length;
  }

  aboutNode(node) {
    return `${this.tree.members(node).length} samples below\nmerged at height ${shown(this.tree.height(node))}\nclick to highlight`;
  }

  aboutSample(i) {
    const about = this.data.samples.annotations.map((a) => `${a.name}: ${shown(a.values[i])}`);
    const apart = this.values.outlying.has(i) ? ["outlying: set apart, attached last"] : [];
    return [this.names[i], `cluster ${this.state.labels[i] + 1}`, ...apart, ...about].join("\n");
  }

  aboutCell(point) {
    const i = this.tree.order[point.x], j = this.rows[point.y], v = this.values.at(i, j);
    return [this.names[i], this.data.features.names[j], `value ${Number.isNaN(v) ? "missing" : shown(v, this.values.spread(j))}`, `cluster ${this.state.labels[i] + 1}`].join("\n");
  }
}

// Let the browser show what was drawn, then go on.
function afterFrame(work) {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(() => { try { work(); } finally { done(); } })));
}
