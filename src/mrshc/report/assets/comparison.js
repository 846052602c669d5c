"use strict";
// The page of a comparison shows the trees of all methods, cut into the same number of clusters.

class ComparisonPage {
  constructor(data) {
    this.data = data;
    this.trees = data.methods.map((method) => new Tree(method.linkage, method.order));
    this.k = data.n_clusters;
    const slider = document.getElementById("cut");
    slider.addEventListener("input", () => { this.k = Number(slider.value); this.draw(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
    connectDownloads(() => { this.draw(); this.drawCurves(); });
    this.trees.forEach((tree, m) => this.connectTooltip(tree, m));
    // Figures inside a closed element have no size, so they are drawn when the element is opened.
    document.querySelectorAll("details").forEach((box) => box.addEventListener("toggle", () => this.drawCurves()));
  }

  draw() {
    document.getElementById("cut-status").textContent = `${this.k} ${this.k === 1 ? "cluster" : "clusters"}`;
    document.getElementById("cut").setAttribute("aria-valuetext", `${this.k} clusters`);
    this.labels = this.trees.map((tree) => tree.cut(this.k));
    document.getElementById("legend").replaceChildren(...this.data.samples.bars.map(barLegend));
    this.trees.forEach((tree, m) => this.drawTree(tree, m));
  }

  drawTree(tree, m) {
    const colours = this.labels[m].map((label) => this.data.colours[label % this.data.colours.length]);
    const bars = [{ name: "cluster", colours }, ...this.data.methods[m].bars, ...this.data.samples.bars];
    const traces = branchTraces(tree, this.labels[m], this.data.colours, themeColours().soft);
    bars.forEach((bar, row) => traces.push(barTrace(bar.colours, tree.order, row, "y2")));
    // Each bar takes 9 % of the height, about 20 pixels.
    const share = 0.09 * bars.length, names = bars.map((bar) => escapeMarkup(shorten(bar.name, 12)));
    Plotly.react(`tree-${m}`, traces, baseLayout({
      height: 250, margin: { l: 95, r: 10, t: 8, b: 8 },
      xaxis: axisLayout({ range: [-0.5, tree.n - 0.5], showticklabels: false, ticks: "" }),
      yaxis: axisLayout({ domain: [share + 0.02, 1], title: { text: "height of merge" }, rangemode: "tozero", nticks: 4, fixedrange: true }),
      yaxis2: axisLayout({ domain: [0, share], tickvals: names.map((_, i) => i), ticktext: names, autorange: "reversed", fixedrange: true, ticks: "" }),
    }), PLOTLY_CONFIG);
  }

  // Show the sample, its cluster and its annotations when the mouse is over a bar.
  connectTooltip(tree, m) {
    const plot = document.getElementById(`tree-${m}`), tip = document.getElementById("tip");
    plot.on("plotly_hover", ({ event, points: [point] }) => {
      const i = tree.order[point.x];
      const annotations = this.data.samples.annotations.map((a) => `${a.name}: ${formatValue(a.values[i])}`);
      showTooltip(event, [this.data.samples.names[i], `cluster ${this.labels[m][i] + 1}`, ...annotations].join("\n"));
    });
    plot.on("plotly_unhover", () => { tip.style.display = "none"; });
    plot.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  }

  drawCurves() {
    this.data.methods.forEach((method, m) => method.curves.forEach((curve, i) => {
      if (document.getElementById(`curve-${m}-${i}`).closest("details").open) drawCurve(`curve-${m}-${i}`, curve);
    }));
  }
}
