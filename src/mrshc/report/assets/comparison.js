"use strict";
// The page of a comparison: the trees of all methods, cut at the same number of clusters.

class ComparisonPage {
  constructor(data) {
    this.data = data;
    this.trees = data.methods.map((method) => new Tree(method.linkage, method.order));
    this.k = data.n_clusters;
    const slider = document.getElementById("cut");
    slider.addEventListener("input", () => { this.k = Number(slider.value); this.draw(); });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
    this.trees.forEach((tree, m) => this.watch(tree, m));
    // Hidden figures have no size: they are drawn when they are opened.
    document.querySelectorAll("details").forEach((box) => box.addEventListener("toggle", () => this.drawCurves()));
  }

  draw() {
    document.getElementById("cut-said").textContent = `${this.k} ${this.k === 1 ? "cluster" : "clusters"}`;
    document.getElementById("cut").setAttribute("aria-valuetext", `${this.k} clusters`);
    this.labels = this.trees.map((tree) => tree.cut(this.k));
    document.getElementById("legend").replaceChildren(...this.data.samples.bars.map(barLegend));
    this.trees.forEach((tree, m) => this.drawTree(tree, m));
  }

  drawTree(tree, m) {
    const colours = this.labels[m].map((label) => this.data.colours[label % this.data.colours.length]);
    const bars = [{ name: "cluster", colours }, ...this.data.methods[m].bars, ...this.data.samples.bars];
    const traces = branchTraces(tree, this.labels[m], this.data.colours, theme().soft);
    bars.forEach((bar, row) => traces.push(barTrace(bar.colours, tree.order, row, "y2")));
    const share = 0.09 * bars.length, names = bars.map((bar) => literal(shortened(bar.name, 12)));
    Plotly.react(`tree-${m}`, traces, baseLayout({
      height: 250, margin: { l: 95, r: 10, t: 8, b: 8 },
      xaxis: axis({ range: [-0.5, tree.n - 0.5], showticklabels: false, ticks: "" }),
      yaxis: axis({ domain: [share + 0.02, 1], title: { text: "height" }, rangemode: "tozero", nticks: 4, fixedrange: true }),
      yaxis2: axis({ domain: [0, share], tickvals: names.map((_, i) => i), ticktext: names, autorange: "reversed", fixedrange: true, ticks: "" }),
    }), CONFIG);
  }

  // Hovering the bars tells the sample, its cluster and its class.
  watch(tree, m) {
    const plot = document.getElementById(`tree-${m}`), tip = document.getElementById("tip");
    plot.on("plotly_hover", ({ event, points: [point] }) => {
      const i = tree.order[point.x];
      const known = this.data.samples.annotations.map((a) => `${a.name}: ${shown(a.values[i])}`);
      showTip(event, [this.data.samples.names[i], `cluster ${this.labels[m][i] + 1}`, ...known].join("\n"));
    });
    plot.on("plotly_unhover", () => { tip.style.display = "none"; });
    plot.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  }

  drawCurves() {
    this.data.methods.forEach((method, m) => method.curves.forEach((curve, i) => {
      if (document.getElementById(`curve-${m}-${i}`).closest("details").open) curveFigure(`curve-${m}-${i}`, curve);
    }));
  }
}
