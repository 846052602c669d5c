"use strict";
// The page of a result: it stores what the reader has selected, and updates figures and tables
// accordingly.

// These constants of the layout were chosen by eye; no number on the page depends on them.
const FEATURE_TREE_SHARE = 0.13; // proportion of the width for the feature tree
const MIN_VISIBLE_SAMPLES = 4; // zooming in stops here, since fewer columns could not be compared
const POINTER_TOLERANCE = 7; // pixels from a branch at which the mouse selects it
const NARROW_WIDTH = 700; // pixels; the feature tree is left out on narrower screens, such as telephones

class ResultPage {
  constructor(data) {
    this.data = data;
    this.names = data.samples.names;
    this.n = this.names.length;
    this.q = data.features.names.length;
    // Texts that name the features in figures: genes, if the features have a column of genes.
    this.featureLabels = data.features.labels || data.features.names;
    this.tree = new Tree(data.linkage, data.samples.order);
    this.featureTree = this.q > 1 ? new Tree(data.features.tree, leafOrder(data.features.tree)) : null;
    this.values = new FeatureValues(data);
    if (data.consensus) this.consensus = new Uint8Array(decodeBase64(data.consensus));
    this.branches = new Branches(data.branches, this.tree);
    // What the reader has selected. k is null if the clusters of the result are shown, "significant"
    // for the clusters of the significant splits, and otherwise the number of clusters into which the
    // tree is cut.
    this.state = { k: null, labels: data.samples.labels, node: null, sample: null, feature: null, order: "tree" };
    this.updateStatistics();
    this.connectControls();
    connectDownloads(() => this.drawAll());
    this.drawTree();
    this.drawHeat();
    this.connectMouse();
    // Tables and curves are below the first screen, so they are created after the first screen is
    // shown.
    this.settled = afterFrame(() => { this.createTables(); this.updateStatus(); this.drawExplanations(); this.connectConsensusMouse(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawAll());
    // Printed pages are light. All strips are drawn before printing; on screen, a strip is drawn when
    // it becomes visible.
    const print = (on) => { document.documentElement.classList.toggle("printing", on); this.drawAll(); };
    window.addEventListener("beforeprint", () => { print(true); document.querySelectorAll("canvas.strip").forEach((c) => this.paintStrip(c)); });
    window.addEventListener("afterprint", () => print(false));
    window.addEventListener("resize", () => { clearTimeout(this.resizing); this.resizing = setTimeout(() => this.drawAll(), 200); });
  }

  // Return the name of the cluster of a sample in texts. Outlying samples may be in no significant
  // cluster.
  clusterName(i) { return this.state.labels[i] < 0 ? "in no cluster" : `cluster ${this.state.labels[i] + 1}`; }

  // Return the colour of a cluster.
  colour(label) { return adaptColour(this.data.colours[label % this.data.colours.length]); }

  // ---- number of clusters

  // Cut the tree into k clusters, or show the clusters of the result if k is null, or the clusters of
  // the significant splits if k is "significant".
  setCut(k) {
    this.state.k = k;
    const { labels, significant } = this.data.samples;
    this.state.labels = k === null ? labels : k === "significant" ? significant : this.tree.cut(k);
    this.sizes = clusterSizes(this.state.labels);
    this.drawTree();
    this.updateStatus();
    // The slider may have moved on before the tables are built. The tables are needed only for the
    // last cut.
    this.settled = afterFrame(() => { if (this.state.k === k) this.updateDependents(); });
  }

  // Update everything that is too slow to follow each movement of the slider.
  updateDependents() {
    this.updateStatistics();
    this.updateTables();
    if (this.state.order === "effect") this.drawHeat();
    this.drawConsensus();
    this.search(document.getElementById("find").value);
  }

  // Update means, effect sizes and silhouette widths. For the clusters of the result, means and
  // effect sizes come from Python; for other cuts, they are computed from the values on the page.
  updateStatistics() {
    const labels = this.state.labels;
    this.sizes = clusterSizes(labels);
    if (this.state.k === null) {
      this.means = this.data.features.means;
      this.effect = this.data.features.effect;
      this.silhouette = this.data.samples.silhouette;
      return;
    }
    Object.assign(this, this.values.separation(labels, this.sizes));
    this.silhouette = this.state.k === "significant" ? this.significantSilhouettes() : this.values.silhouettes(this.state.k);
  }

  // Return the silhouette widths of the significant clusters. They are known if these clusters are
  // those of the result or of a cut; otherwise they are left out.
  significantSilhouettes() {
    const isShown = (labels) => labels.every((label, i) => label === this.state.labels[i]);
    if (isShown(this.data.samples.labels)) return this.data.samples.silhouette;
    const k = this.sizes.length, isCut = k <= this.values.maxCut && isShown(this.tree.cut(k));
    return isCut ? this.values.silhouettes(k) : new Array(this.n).fill(null);
  }

  // ---- tree and heat map

  drawAll() {
    this.updateStatistics();
    this.drawTree();
    this.drawHeat();
    this.drawExplanations();
    this.updateTables();
    this.updateStatus();
  }

  // ---- geometry of the figures

  isNarrow() { return document.getElementById("tree").clientWidth < NARROW_WIDTH; }

  // Return the proportion of the figure for samples; the feature tree takes the rest.
  plotDomain() { return [this.isNarrow() ? 0 : FEATURE_TREE_SHARE, 1]; }

  // Both figures have the same margins, so the columns of the heat map are below their leaves.
  sideMargins() { return this.isNarrow() ? { l: 62, r: 72 } : { l: 88, r: 112 }; }

  // Return the width in pixels of the part for samples.
  plotWidth() {
    const { l, r } = this.sideMargins();
    return (document.getElementById("tree").clientWidth - l - r) * (1 - this.plotDomain()[0]);
  }

  // Return the rows of colours below the tree: first the clusters, then the annotations.
  annotationBars() {
    const clusters = this.state.labels.map((label) => (label < 0 ? "none" : this.data.colours[label % this.data.colours.length]));
    return [{ name: "cluster", colours: clusters }, ...this.data.samples.bars];
  }

  drawTree() {
    const t = themeColours(), tree = this.tree, bars = this.annotationBars();
    const traces = branchTraces(tree, this.state.labels, this.data.colours, t.soft);
    if (this.state.node !== null) traces.push(this.highlightTrace(t));
    const shown = this.branches.shown(this.state.labels);
    // The label of the root is above the tree.
    const top = tree.height(tree.root) || 1, range = shown.length ? { range: [0, 1.14 * top], autorange: false } : {};
    const names = bars.map((bar) => escapeMarkup(shorten(bar.name, this.isNarrow() ? 8 : 12)));
    bars.forEach((bar, row) => traces.push(barTrace(bar.colours, tree.order, row, "y2")));
    // Each bar takes 18 of about 300 pixels, and all bars together take at most half of the figure.
    const share = Math.min(0.5, (18 * bars.length) / 300);
    const pixels = (1 - share - 0.02) * (288 + 6 * bars.length);
    traces.push(...branchMarkTraces(shown, this.tree, t, {
      width: this.plotWidth(), height: pixels / 1.14, range: this.sampleRange(), hasLabels: !this.isNarrow(),
    }));
    Plotly.react("tree", traces, baseLayout({
      height: 300 + 6 * bars.length, margin: { ...this.sideMargins(), t: 8, b: 4 }, shapes: this.sampleFrames(),
      xaxis: axisLayout({ domain: this.plotDomain(), range: this.sampleRange(), showticklabels: false, ticks: "" }),
      yaxis: axisLayout({ domain: [share + 0.02, 1], title: { text: this.data.height_label }, rangemode: "tozero", fixedrange: true, nticks: 5, anchor: "x", ...range }),
      yaxis2: axisLayout({ domain: [0, share], tickvals: names.map((_, i) => i), ticktext: names, autorange: "reversed", fixedrange: true, ticks: "", anchor: "x" }),
    }), PLOTLY_CONFIG);
  }

  // Thick lines over the selected branch.
  highlightTrace(t) {
    const line = { x: [], y: [] };
    this.tree.mergesBelow(this.state.node).forEach((node) => {
      const bracket = this.tree.bracket(node);
      line.x.push(...bracket.x);
      line.y.push(...bracket.y);
    });
    return { type: "scatter", mode: "lines", ...line, hoverinfo: "skip", line: { width: 3.5, color: t.mark } };
  }

  // Return the range of visible samples: the zoomed range, or all samples.
  sampleRange() { return this.view || [-0.5, this.n - 0.5]; }

  // Frame around the column of the selected sample.
  sampleFrames() {
    if (this.state.sample === null) return [];
    const at = this.tree.position[this.state.sample];
    return [{ type: "rect", xref: "x", yref: "paper", x0: at - 0.5, x1: at + 0.5, y0: 0, y1: 1, line: { width: 1.5, color: themeColours().mark }, fillcolor: "rgba(0,0,0,0)" }];
  }

  // Return the features from top to bottom in the order that the reader has chosen.
  featureOrder() {
    const all = [...Array(this.q).keys()];
    const size = (j) => Math.max(...this.data.features.loadings.map((l) => Math.abs(l[j] || 0)), 0);
    if (this.state.order === "loading") return all.sort((a, b) => size(b) - size(a) || a - b);
    if (this.state.order === "effect") return all.sort((a, b) => (this.effect[b] || 0) - (this.effect[a] || 0) || a - b);
    return this.q < 2 ? all : this.featureTree.order;
  }

  drawHeat() {
    const t = themeColours(), order = this.featureOrder(), samples = this.tree.order;
    this.rows = order;
    const z = order.map((j) => Float32Array.from(samples, (i) => this.values.standardised(i, j)));
    const traces = [{
      type: "heatmap", x: samples.map((_, at) => at), y: order.map((_, at) => at), z,
      zmin: -COLOUR_LIMIT, zmax: COLOUR_LIMIT, colorscale: HEAT_SCALE, hoverinfo: "none", showscale: false,
    }];
    const [left] = this.plotDomain();
    if (left > 0 && this.state.order === "tree" && this.q > 1) {
      const tree = this.featureTree, line = { x: [], y: [] };
      for (let node = tree.n; node <= tree.root; node++) {
        const bracket = tree.bracket(node);
        line.x.push(...bracket.y.map((h) => (h === null ? null : -h)));
        line.y.push(...bracket.x);
      }
      traces.push({ type: "scatter", mode: "lines", ...line, xaxis: "x2", hoverinfo: "skip", line: { width: 1, color: t.soft } });
    }
    // 14 pixels for each feature are enough for its name; the names of samples take another 96
    // pixels.
    const height = Math.max(220, Math.min(900, 14 * this.q)) + 96;
    this.heatHeight = height - 96;
    Plotly.react("heat", traces, baseLayout({
      height, margin: { ...this.sideMargins(), t: 4, b: 92 }, shapes: this.heatShapes(),
      xaxis: axisLayout({ domain: this.plotDomain(), range: this.sampleRange(), tickangle: -90, ticks: "", tickfont: { size: 10 }, ...this.sampleTicks() }),
      xaxis2: axisLayout({ domain: [0, Math.max(0.001, left - 0.01)], showticklabels: false, ticks: "", fixedrange: true, visible: false }),
      yaxis: axisLayout({ range: this.rowView || [this.q - 0.5, -0.5], ticks: "", tickfont: { size: 10 }, side: "right", ...this.featureTicks() }),
    }), PLOTLY_CONFIG);
  }

  // Plotly leaves missing values transparent; a grey rectangle below the heat map gives them a
  // colour.
  heatShapes() {
    const background = { type: "rect", xref: "x domain", yref: "y domain", x0: 0, x1: 1, y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: themeColours().missing };
    return [background, ...this.sampleFrames(), ...this.featureFrames()];
  }

  // Frame around the row of the selected feature.
  featureFrames() {
    if (this.state.feature === null) return [];
    const at = this.rows.indexOf(this.state.feature);
    return [{ type: "rect", xref: "x", yref: "y", x0: -0.5, x1: this.n - 0.5, y0: at - 0.5, y1: at + 0.5, line: { width: 1.5, color: themeColours().mark }, fillcolor: "rgba(0,0,0,0)" }];
  }

  sampleTicks() {
    const [from, to] = this.sampleRange();
    return fittingTicks(this.tree.order.map((i) => this.names[i]), from, to, this.plotWidth(), { space: 13, length: 14 });
  }

  featureTicks() {
    const [from, to] = (this.rowView || [this.q - 0.5, -0.5]).slice().sort((a, b) => a - b);
    return fittingTicks(this.rows.map((j) => this.featureLabels[j]), from, to, this.heatHeight, { space: 12, length: this.isNarrow() ? 10 : 16 });
  }

  // Apply the zoom of one figure to the other. Plotly reports ranges in several forms.
  synchroniseZoom(change) {
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
    const x = { "xaxis.range": this.sampleRange() };
    // relayout also reports a change, which must not be applied again.
    const ticks = this.sampleTicks(), rows = this.featureTicks();
    this.isSynchronising = true;
    Promise.all([
      Plotly.relayout("tree", x),
      Plotly.relayout("heat", {
        ...x, "yaxis.range": this.rowView || [this.q - 0.5, -0.5],
        "xaxis.tickvals": ticks.tickvals, "xaxis.ticktext": ticks.ticktext,
        "yaxis.tickvals": rows.tickvals, "yaxis.ticktext": rows.ticktext,
      }),
    ]).then(() => { this.isSynchronising = false; });
  }

  // Change the visible range by a factor; 0 shows everything.
  zoom(factor) {
    const [from, to] = this.sampleRange(), middle = (from + to) / 2, half = ((to - from) / 2) * factor;
    if (factor && 2 * half < MIN_VISIBLE_SAMPLES) return;
    this.view = factor === 0 || 2 * half >= this.n ? null
      : [Math.max(-0.5, middle - half), Math.min(this.n - 0.5, middle + half)];
    if (factor === 0) this.rowView = null;
    this.applyView();
  }

  // Move the visible range by a share of its width.
  pan(share) {
    const [from, to] = this.sampleRange(), width = to - from;
    const start = Math.min(Math.max(-0.5, from + share * width), this.n - 0.5 - width);
    this.view = [start, start + width];
    this.applyView();
  }

  // ---- selection of branches, samples and features

  selectNode(node) {
    this.state.node = node;
    this.drawTree();
    this.updateStatus();
    this.samplesTable.columns = this.sampleColumns();
    this.samplesTable.render();
  }

  selectSample(sample) {
    this.state.sample = sample;
    this.samplesTable.highlight(sample);
    const at = sample === null ? null : this.tree.position[sample], [from, to] = this.sampleRange();
    if (at !== null && (at < from || at > to)) { this.view = null; this.applyView(); }
    this.drawTree();
    Plotly.relayout("heat", { shapes: this.heatShapes() });
    this.updateStatus();
  }

  selectFeature(feature) {
    this.state.feature = feature;
    this.featuresTable.highlight(feature);
    const at = this.rows.indexOf(feature), view = this.rowView;
    if (view && at >= 0 && (at < Math.min(...view) || at > Math.max(...view))) { this.rowView = null; this.applyView(); }
    Plotly.relayout("heat", { shapes: this.heatShapes() });
    this.updateStatus();
  }

  // Select the sample or feature whose name contains a text.
  search(text) {
    const wanted = text.trim().toLowerCase();
    const status = document.getElementById("search-status");
    if (!wanted) {
      if (status.textContent) { this.selectSample(null); this.selectFeature(null); }
      status.textContent = "";
      return;
    }
    // Names that are equal to the text have precedence over names that contain the text.
    const matches = (names, test) => names.some((name) => test(name.toLowerCase()));
    const isEqual = (names) => matches(names, (name) => name === wanted);
    const hits = (entries) => entries.map((names, i) => [names, i]).filter(([names]) => matches(names, (name) => name.includes(wanted)))
      .sort((a, b) => isEqual(b[0]) - isEqual(a[0]) || a[1] - b[1]).map(([, i]) => i);
    // A feature is found by its name or by its label.
    const namesOfFeatures = this.data.features.names.map((name, j) => [name, this.featureLabels[j]]);
    const samples = hits(this.names.map((name) => [name])), features = hits(namesOfFeatures);
    // A feature whose name is equal to the text has precedence over samples whose names contain the
    // text.
    const isFeatureName = namesOfFeatures.some(isEqual);
    const n = samples.length + features.length, first = n > 1 ? `, first of ${n} matches` : "";
    if (samples.length && !isFeatureName) {
      const [sample] = samples;
      if (sample !== this.state.sample) this.selectSample(sample);
      status.textContent = `Sample ${this.names[sample]}, ${this.clusterName(sample)}${first}`;
    } else if (features.length) {
      const [feature] = features;
      if (feature !== this.state.feature) this.selectFeature(feature);
      status.textContent = `Feature ${this.featureLabels[feature]}, effect size ${formatValue(this.effect[feature])}${first}`;
    } else {
      status.textContent = "No name of a sample or selected feature contains this text.";
    }
  }

  // ---- texts, legends, tables

  updateStatus() {
    const k = this.sizes.length;
    const origin = this.state.k === null ? "as in the result"
      : this.state.k === "significant" ? "significant splits only" : "horizontal cut of the tree";
    const slider = document.getElementById("cut");
    slider.value = k;
    slider.setAttribute("aria-valuetext", `${k} clusters, ${origin}`);
    document.getElementById("cut-status").textContent = `${k} ${k === 1 ? "cluster" : "clusters"}, ${origin}`;
    document.getElementById("restore-result").disabled = this.state.k === null;
    if (this.data.samples.significant) document.getElementById("significant-clusters").disabled = this.state.k === "significant";
    const node = this.state.node, tree = this.tree;
    document.getElementById("branch-status").textContent = node === null ? "none selected"
      : [`${this.branchName(node)}: ${tree.members(node).length} samples`, ...this.branchDescription(node), `merged at height ${formatValue(tree.height(node))}`, ...this.branches.sentence(node)].join("; ");
    document.getElementById("branch-up").disabled = node === null || node === tree.root;
    for (const side of ["left", "right"]) {
      const child = this.selectableChild(side);
      document.getElementById(`branch-${side}`).disabled = child === null;
    }
    document.getElementById("branch-none").disabled = node === null;
    document.getElementById("tree").setAttribute("aria-label", `Tree of ${this.n} samples in ${k} clusters, with bars of annotations below`);
    // A disabled button loses the keyboard focus, so the focus is moved to a control that is still
    // enabled.
    if (document.activeElement.disabled) document.getElementById(node === null ? "cut" : "branch-top").focus();
    this.drawLegends();
  }

  // Return the name of a branch: its clusters, as in branch_names.py. The clusters are those that the
  // page shows.
  branchName(node) {
    const { labels } = this.state, members = this.tree.members(node);
    const clusters = [...new Set(members.map((i) => labels[i]).filter((label) => label >= 0))].sort((a, b) => a - b).map((label) => label + 1);
    if (!clusters.length) return "outlying samples";
    const first = clusters[0], last = clusters[clusters.length - 1];
    const size = clusters.reduce((sum, c) => sum + this.sizes[c - 1], 0), part = members.length < size ? "part of " : "";
    if (clusters.length === 1) return `${part}cluster ${first}`;
    if (clusters.length === this.sizes.length) return `${part}all clusters`;
    if (clusters.length > 2 && last - first + 1 === clusters.length) return `${part}clusters ${first} to ${last}`;
    return `${part}clusters ${clusters.slice(0, -1).join(", ")} and ${last}`;
  }

  // Return texts on the known classes of a branch, as in branch_names.py, and on its strongest
  // markers.
  branchDescription(node) {
    const { annotations, truth } = this.data.samples, known = annotations.find((a) => a.name === truth), texts = [];
    if (known) {
      const counts = new Map();
      this.tree.members(node).map((i) => known.values[i]).filter((v) => v !== null).forEach((v) => counts.set(v, (counts.get(v) || 0) + 1));
      const n = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const [name, count] = [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best), [null, 0]);
      if (n) texts.push(`${truth}: ${count === n ? `all ${name} (${n})` : 2 * count > n ? `mostly ${name} (${count} of ${n})` : "mixed"}`);
    }
    const higher = this.branches.higher.get(node);
    if (higher) texts.push(`higher than in its sibling: ${higher.join(", ")}`);
    return texts;
  }

  // Return the left or right child of the selected branch; null if the branch is a single sample.
  selectableChild(side) {
    if (this.state.node === null) return null;
    const [left, right] = this.tree.children(this.state.node).sort((a, b) => this.tree.position[a] - this.tree.position[b]);
    const child = side === "left" ? left : right;
    return child >= this.tree.n ? child : null;
  }

  drawLegends() {
    const steps = HEAT_SCALE.map(([, colour]) => colour).join(", "), n = this.state.labels.filter((label) => label < 0).length;
    const lines = [
      legendLine("clusters", [
        ...this.sizes.map((size, c) => [`${c + 1} (${size})`, this.colour(c)]),
        ...(n ? [[`outlying samples in no cluster (${n})`, null]] : []),
      ]),
      ...this.branches.legendLines(this.state.labels),
      ...this.data.samples.bars.map(barLegend),
      legendLine("heat map: deviation from the mean of the feature, in standard deviations", [
        [`−${COLOUR_LIMIT} or less`, null],
        [`${COLOUR_LIMIT} or more`, `linear-gradient(90deg, ${steps})`],
        ...(this.data.missing ? [["missing value", themeColours().missing]] : []),
      ]),
    ];
    document.getElementById("legend").replaceChildren(...lines);
  }

  createTables() {
    this.featuresTable = new DataTable("features", {
      columns: this.featureColumns(), n: this.q, fileName: "features.csv", onPick: (row) => this.selectFeature(row),
    });
    this.samplesTable = new DataTable("samples", {
      columns: this.sampleColumns(), n: this.n, fileName: "samples.csv", onPick: (row) => this.selectSample(row),
    });
    if (this.data.markers.contrast_index) this.createMarkersTable();
    if (this.data.gene_sets) this.createGeneSetsTable();
  }

  // Create the table of the markers of one cluster or split, or of all of them.
  createMarkersTable() {
    const { contrast_index: contrastIndex, columns } = this.data.markers, choice = document.getElementById("contrast");
    const direction = document.getElementById("direction"), directions = columns.find((c) => c.name === "direction").values;
    const names = new Map(this.data.features.names.map((name, j) => [name, j]));
    const [inside, outside] = ["mean_inside", "mean_outside"].map((name) => columns.find((c) => c.name === name).values);
    // Both means are shown with enough digits to distinguish them.
    const difference = (row) => Math.abs(inside[row] - outside[row]);
    this.markersTable = new DataTable("markers", {
      columns: columns.map(({ name, numeric, values }, at) => ({
        title: name, numeric, value: (row) => values[row],
        // Annotations of features may have titles such as mean_1; only the own means have digits in common.
        spread: ["mean_inside", "mean_outside"].includes(name) ? difference : undefined,
        parts: at === 0 ? this.featureParts((row) => values[row]) : undefined,
      })),
      n: contrastIndex.length, fileName: "markers.csv",
      keep: (row) => (choice.value === "" || contrastIndex[row] === Number(choice.value))
        && (direction.value === "" || directions[row] === direction.value),
      onPick: (row) => { const j = names.get(columns[0].values[row]); if (j !== undefined) this.selectFeature(j); },
    });
    for (const control of [choice, direction]) control.addEventListener("change", () => this.markersTable.render());
  }

  // Create the table of the gene sets among the markers of one cluster and direction, or of all.
  createGeneSetsTable() {
    const { list_index: listIndex, columns, separator } = this.data.gene_sets, choice = document.getElementById("gene-list");
    const links = this.data.links;
    // Links need the gene only. A template with the name of a feature cannot be filled.
    const geneParts = (text) => text.split(separator).flatMap((gene, i) => [...(i ? [[separator, null]] : []), [gene, fillAddress(links.url, { gene })]]);
    this.geneSetsTable = new DataTable("gene_sets", {
      columns: columns.map(({ name, numeric, values }) => ({
        title: name, numeric, value: (row) => values[row],
        parts: links && name === "genes" ? (row) => geneParts(values[row]) : undefined,
      })),
      n: listIndex.length, fileName: "gene_sets.csv", keep: (row) => choice.value === "" || listIndex[row] === Number(choice.value),
    });
    choice.addEventListener("change", () => this.geneSetsTable.render());
  }

  // Return a function that returns the name of the feature in a row as a link to its gene; undefined
  // if the page has no links. `nameOf(row)` returns the name of the feature.
  featureParts(nameOf) {
    const { links } = this.data;
    if (!links) return undefined;
    return (row) => {
      const feature = nameOf(row), gene = Object.hasOwn(links.genes, feature) ? links.genes[feature] : null;
      return [[feature, fillAddress(links.url, { gene, feature })]];
    };
  }

  updateTables() {
    this.featuresTable.columns = this.featureColumns();
    this.featuresTable.render();
    this.samplesTable.columns = this.sampleColumns();
    this.samplesTable.render();
  }

  // Return the columns of the table of features; their titles are those of features.csv.
  featureColumns() {
    const f = this.data.features, name = this.data.loading_name;
    return [
      { title: "feature", value: (j) => f.names[j], parts: this.featureParts((j) => f.names[j]) },
      ...f.annotations.map((a) => ({ title: a.name, numeric: a.numeric, value: (j) => a.values[j] })),
      { title: "effect_size", numeric: true, value: (j) => this.effect[j] },
      ...(f.q_values ? [{ title: "q_value", numeric: true, value: (j) => f.q_values[j] }] : []),
      ...(f.frequency ? [{ title: "selection_frequency", numeric: true, value: (j) => f.frequency[j] }] : []),
      ...f.loadings.map((l, k) => ({ title: f.loadings.length > 1 ? `${name}_${k + 1}` : name, numeric: true, value: (j) => l[j] })),
      { title: "samples", value: (j) => this.effect[j], draw: (cell, j) => this.appendStrip(cell, j) },
      ...this.means.map((means, c) => ({ title: `mean_cluster_${c + 1}`, numeric: true, value: (j) => means[j], spread: (j) => this.values.spread(j) })),
    ];
  }

  // Return the columns of the table of samples; their titles are those of samples.csv.
  sampleColumns() {
    const s = this.data.samples;
    const inside = this.state.node === null ? null : new Set(this.tree.members(this.state.node));
    return [
      { title: "sample", value: (i) => s.names[i] },
      { title: "cluster", numeric: true, value: (i) => (this.state.labels[i] < 0 ? null : this.state.labels[i] + 1) },
      { title: "silhouette", numeric: true, value: (i) => this.silhouette[i] },
      ...(s.outlying.length ? [{ title: "outlying", value: (i) => (this.values.outlying.has(i) ? "yes" : "no") }] : []),
      ...(s.significant ? [{ title: "significant_cluster", numeric: true, value: (i) => (s.significant[i] < 0 ? null : s.significant[i] + 1) }] : []),
      ...(inside ? [{ title: "in_branch", value: (i) => (inside.has(i) ? "yes" : "no") }] : []),
      ...s.annotations.map((a) => ({ title: a.name, numeric: a.numeric, value: (i) => a.values[i] })),
    ];
  }

  // Create a small plot with a dot for each sample and a row for each cluster. The plot is drawn when
  // it becomes visible, since drawing hundreds of plots at once would delay the page.
  appendStrip(cell, j) {
    const canvas = document.createElement("canvas");
    canvas.className = "strip";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Means of the clusters: ${this.means.map((m, c) => `${c + 1}: ${formatValue(m[j], this.values.spread(j))}`).join(", ")}`);
    cell.append(canvas);
    canvas.dataset.feature = j;
    this.stripObserver ??= new IntersectionObserver((entries) => entries.forEach((e) => {
      if (e.isIntersecting) { this.stripObserver.unobserve(e.target); this.paintStrip(e.target); }
    }));
    this.stripObserver.observe(canvas);
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
    // Transparent dots show where many samples overlap.
    pen.globalAlpha = this.n > 200 ? 0.35 : 0.7;
    for (let i = 0; i < this.n; i++) {
      const v = this.values.cell(i, j), c = this.state.labels[i];
      if (Number.isNaN(v) || c < 0) continue;
      pen.fillStyle = this.colour(c);
      pen.beginPath();
      pen.arc(4 + (162 * (v - low)) / width, 26 * (c + 0.5) / k, Math.min(2.4, 10 / k + 0.8), 0, 7);
      pen.fill();
    }
  }

  drawConsensus() {
    if (this.data.consensus) drawConsensus("consensus", this.consensus, this.tree, this.state.labels);
  }

  drawExplanations() {
    this.drawConsensus();
    this.data.curves.forEach((curve, i) => drawCurve(`curve-${i}`, curve));
    if (this.data.splits.length) drawSplits("splits", this.data.splits, this.data.splits.map(({ node }) => this.branchName(node)));
    this.data.features.loadings.forEach((loadings, k) => drawLoadings(`loadings-${k}`, loadings, this.featureLabels, `${this.data.loading_name} in component ${k + 1}`));
  }

  connectControls() {
    const on = (id, type, listener) => document.getElementById(id).addEventListener(type, listener);
    on("cut", "input", (e) => this.setCut(Number(e.target.value)));
    on("restore-result", "click", () => this.setCut(null));
    if (this.data.samples.significant) on("significant-clusters", "click", () => this.setCut("significant"));
    on("order", "change", (e) => { this.state.order = e.target.value; this.rowView = null; this.drawHeat(); });
    on("find", "input", (e) => this.search(e.target.value));
    on("zoom-in", "click", () => this.zoom(0.5));
    on("zoom-out", "click", () => this.zoom(2));
    on("zoom-all", "click", () => this.zoom(0));
    on("pan-left", "click", () => this.pan(-0.4));
    on("pan-right", "click", () => this.pan(0.4));
    on("branch-up", "click", () => this.selectNode(this.tree.parent[this.state.node]));
    on("branch-left", "click", () => this.selectNode(this.selectableChild("left")));
    on("branch-right", "click", () => this.selectNode(this.selectableChild("right")));
    on("branch-top", "click", () => this.selectNode(this.tree.root));
    on("branch-none", "click", () => this.selectNode(null));
  }

  // Connect tooltips, clicks and zoom with the mouse in the two figures.
  connectMouse() {
    const tree = document.getElementById("tree"), heat = document.getElementById("heat");
    const hide = () => { document.getElementById("tip").style.display = "none"; };
    for (const plot of [tree, heat]) {
      plot.on("plotly_relayout", (change) => { if (!this.isSynchronising) this.synchroniseZoom(change); });
      plot.on("plotly_unhover", hide);
    }
    for (const plot of [tree, heat]) {
      plot.addEventListener("mouseleave", hide);
      plot.on("plotly_doubleclick", () => this.zoom(0));
    }
    tree.on("plotly_hover", (e) => showTooltip(e.event, this.sampleTooltip(this.tree.order[e.points[0].x])));
    tree.on("plotly_click", (e) => this.selectSample(this.tree.order[e.points[0].x]));
    // The distance that the mouse moved distinguishes a click on a branch from a drag, which zooms.
    let pressed = [0, 0];
    tree.addEventListener("mousedown", (e) => { pressed = [e.clientX, e.clientY]; }, true);
    tree.addEventListener("click", (e) => {
      const node = this.nodeAt(e), isClick = Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) < 4;
      if (node !== null && isClick) this.selectNode(node);
    });
    tree.addEventListener("mousemove", (e) => {
      const node = this.nodeAt(e);
      if (node !== null) showTooltip(e, this.nodeTooltip(node));
      else if (e.clientY < this.barsTopEdge()) hide();
    });
    heat.on("plotly_hover", (e) => showTooltip(e.event, this.cellTooltip(e.points[0])));
    heat.on("plotly_click", (e) => {
      this.selectSample(this.tree.order[e.points[0].x]);
      this.selectFeature(this.rows[e.points[0].y]);
    });
  }

  // Show a sentence on the pair of samples below the mouse.
  connectConsensusMouse() {
    if (!this.data.consensus) return;
    const plot = document.getElementById("consensus"), hide = () => { document.getElementById("tip").style.display = "none"; };
    plot.on("plotly_hover", (e) => {
      const [i, j] = [e.points[0].y, e.points[0].x].map((at) => this.tree.order[at]), value = this.consensus[i * this.n + j];
      showTooltip(e.event, `${this.names[i]} and ${this.names[j]}\n${value === MISSING_CONSENSUS ? "no subsample contains both" : `in the same cluster in ${value} % of the subsamples with both`}`);
    });
    plot.on("plotly_unhover", hide);
    plot.addEventListener("mouseleave", hide);
  }

  // Return the node whose bracket is nearest to the mouse, or null. The node is computed from the
  // axes of Plotly, since the hover function of Plotly needs a point for each node and is slow with
  // thousands of points.
  nodeAt(event) {
    const plot = document.getElementById("tree"), box = plot.getBoundingClientRect();
    const { xaxis, yaxis } = plot._fullLayout;
    const x = event.clientX - box.left - xaxis._offset, y = event.clientY - box.top - yaxis._offset;
    if (y < -POINTER_TOLERANCE || y > yaxis._length + POINTER_TOLERANCE) return null;
    let nearest = null, best = POINTER_TOLERANCE;
    for (let node = this.tree.n; node <= this.tree.root; node++) {
      const [left, right] = this.tree.children(node).map((c) => xaxis.l2p(this.tree.position[c]));
      const aside = Math.max(0, Math.min(left, right) - x, x - Math.max(left, right));
      const distance = Math.hypot(aside, y - yaxis.l2p(this.tree.height(node)));
      if (distance < best) [best, nearest] = [distance, node];
    }
    return nearest;
  }

  // Return the position on the screen of the upper edge of the annotation bars.
  barsTopEdge() {
    const plot = document.getElementById("tree"), { yaxis } = plot._fullLayout;
    return plot.getBoundingClientRect().top + yaxis._offset + yaxis._length;
  }

  nodeTooltip(node) {
    const sentence = this.branches.sentence(node);
    return [`${this.branchName(node)}: ${this.tree.members(node).length} samples`, ...this.branchDescription(node), `merged at height ${formatValue(this.tree.height(node))}`, ...sentence, "click to highlight this branch"].join("\n");
  }

  sampleTooltip(i) {
    const about = this.data.samples.annotations.map((a) => `${a.name}: ${formatValue(a.values[i])}`);
    const outlying = this.values.outlying.has(i) ? ["outlying: excluded from the fit, added to the tree last"] : [];
    return [this.names[i], this.clusterName(i), ...outlying, ...about].join("\n");
  }

  cellTooltip(point) {
    const i = this.tree.order[point.x], j = this.rows[point.y], v = this.values.value(i, j);
    const about = this.data.features.annotations.filter((a) => a.values[j] !== null).map((a) => `${a.name}: ${formatValue(a.values[j])}`);
    return [this.names[i], this.data.features.names[j], ...about, `value ${Number.isNaN(v) ? "missing" : formatValue(v, this.values.spread(j))}`, this.clusterName(i)].join("\n");
  }
}

// Run a function after the browser has drawn the current frame; return a promise that resolves when
// it has run.
function afterFrame(task) {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(() => { try { task(); } finally { done(); } })));
}
