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
  }

  draw() {
    const t = theme(), bars = this.data.samples.bars;
    document.getElementById("cut-said").textContent = `${this.k} ${this.k === 1 ? "cluster" : "clusters"}`;
    document.getElementById("cut").setAttribute("aria-valuetext", `${this.k} clusters`);
    this.trees.forEach((tree, m) => {
      const labels = tree.cut(this.k);
      const traces = branchTraces(tree, labels, this.data.colours, t.soft);
      bars.forEach((bar, row) => traces.push(barTrace(bar.colours, tree.order, row, "y2")));
      const share = bars.length ? 0.12 * bars.length : 0.001;
      Plotly.react(`tree-${m}`, traces, baseLayout({
        height: 240, margin: { l: 95, r: 10, t: 8, b: 8 },
        xaxis: axis({ range: [-0.5, tree.n - 0.5], showticklabels: false, ticks: "" }),
        yaxis: axis({ domain: [share + 0.02, 1], title: { text: "height" }, rangemode: "tozero", nticks: 4, fixedrange: true }),
        yaxis2: axis({ domain: [0, share], tickvals: bars.map((_, i) => i), ticktext: bars.map((b) => literal(shortened(b.name, 14))), autorange: "reversed", fixedrange: true, ticks: "" }),
      }), CONFIG);
    });
  }
}
