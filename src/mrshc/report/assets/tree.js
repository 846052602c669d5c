"use strict";
// Trees: cuts, colours of branches, where lines run. Nodes are numbered as in scipy.

class Tree {
  constructor(linkage, order) {
    this.linkage = linkage;
    this.n = linkage.length + 1;
    this.root = 2 * this.n - 2;
    this.order = order;
    this.place = new Array(2 * this.n - 1);
    order.forEach((sample, at) => { this.place[sample] = at; });
    this.span = [];
    for (let i = 0; i < this.n; i++) this.span[i] = [this.place[i], this.place[i]];
    this.parent = new Array(2 * this.n - 1).fill(null);
    linkage.forEach(([left, right], merge) => {
      const node = this.n + merge;
      this.place[node] = (this.place[left] + this.place[right]) / 2;
      this.span[node] = [
        Math.min(this.span[left][0], this.span[right][0]),
        Math.max(this.span[left][1], this.span[right][1]),
      ];
      this.parent[left] = this.parent[right] = node;
    });
  }

  height(node) { return node < this.n ? 0 : this.linkage[node - this.n][2]; }

  children(node) { return node < this.n ? [] : this.linkage[node - this.n].slice(0, 2); }

  // Samples below a node are neighbours in the order of the leaves.
  members(node) {
    const [from, to] = this.span[node];
    return this.order.slice(from, to + 1);
  }

  // Undo the last k - 1 merges; clusters are numbered by their first sample.
  cut(k) {
    const nodes = [this.root];
    while (nodes.length < k) {
      const last = Math.max(...nodes);
      nodes.splice(nodes.indexOf(last), 1, ...this.children(last));
    }
    const labels = new Array(this.n).fill(-1);
    const groups = nodes.map((node) => this.members(node));
    groups.sort((a, b) => Math.min(...a) - Math.min(...b));
    groups.forEach((group, label) => group.forEach((sample) => { labels[sample] = label; }));
    return labels;
  }

  // The cluster of every node; null above the clusters.
  clusters(labels) {
    const found = labels.slice();
    this.linkage.forEach(([left, right], merge) => {
      found[this.n + merge] = found[left] === found[right] ? found[left] : null;
    });
    return found;
  }

  // Corners of the fork of one merge.
  fork(node) {
    const [left, right] = this.children(node);
    const top = this.height(node);
    return {
      x: [this.place[left], this.place[left], this.place[right], this.place[right], null],
      y: [this.height(left), top, top, this.height(right), null],
    };
  }

  below(node) {
    const found = [], waiting = [node];
    while (waiting.length) {
      const next = waiting.pop();
      if (next < this.n) continue;
      found.push(next);
      waiting.push(...this.children(next));
    }
    return found;
  }
}

// Leaves from left to right.
function leafOrder(linkage) {
  const n = linkage.length + 1, starts = new Array(2 * n - 1), sizes = new Array(2 * n - 1).fill(1);
  linkage.forEach(([left, right], merge) => { sizes[n + merge] = sizes[left] + sizes[right]; });
  starts[2 * n - 2] = 0;
  for (let merge = linkage.length - 1; merge >= 0; merge--) {
    const [left, right] = linkage[merge];
    starts[left] = starts[n + merge];
    starts[right] = starts[n + merge] + sizes[left];
  }
  const order = new Array(n);
  for (let leaf = 0; leaf < n; leaf++) order[starts[leaf]] = leaf;
  return order;
}

// Lines of a tree, one trace for each colour.
function branchTraces(tree, labels, colours, plainColour) {
  const clusters = tree.clusters(labels);
  const lines = new Map();
  for (let node = tree.n; node <= tree.root; node++) {
    const key = clusters[node] === null ? -1 : clusters[node];
    if (!lines.has(key)) lines.set(key, { x: [], y: [] });
    const fork = tree.fork(node), line = lines.get(key);
    line.x.push(...fork.x);
    line.y.push(...fork.y);
  }
  return [...lines].sort((a, b) => a[0] - b[0]).map(([key, line]) => ({
    type: "scatter", mode: "lines", x: line.x, y: line.y, hoverinfo: "skip", showlegend: false,
    line: { width: 1.4, color: key < 0 ? plainColour : adapted(colours[key % colours.length]) },
  }));
}

function groupSizes(labels) {
  const sizes = [];
  labels.forEach((label) => { sizes[label] = (sizes[label] || 0) + 1; });
  return sizes;
}
