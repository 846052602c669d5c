"use strict";
// Trees: cuts, positions of nodes, lines of branches. Nodes are numbered as in scipy: samples are
// 0..n-1, merges n..2n-2.

class Tree {
  constructor(linkage, order) {
    this.linkage = linkage;
    this.n = linkage.length + 1;
    this.root = 2 * this.n - 2;
    this.order = order; // samples from left to right
    this.position = new Array(2 * this.n - 1); // horizontal position of each node
    order.forEach((sample, at) => { this.position[sample] = at; });
    this.span = []; // first and last leaf below each node
    for (let i = 0; i < this.n; i++) this.span[i] = [this.position[i], this.position[i]];
    this.parent = new Array(2 * this.n - 1).fill(null);
    // Children precede their parent, so one pass computes all positions.
    linkage.forEach(([left, right], merge) => {
      const node = this.n + merge;
      this.position[node] = (this.position[left] + this.position[right]) / 2;
      this.span[node] = [
        Math.min(this.span[left][0], this.span[right][0]),
        Math.max(this.span[left][1], this.span[right][1]),
      ];
      this.parent[left] = this.parent[right] = node;
    });
  }

  height(node) { return node < this.n ? 0 : this.linkage[node - this.n][2]; }

  children(node) { return node < this.n ? [] : this.linkage[node - this.n].slice(0, 2); }

  // Return the samples below a node, which are neighbours in the order of the leaves.
  members(node) {
    const [from, to] = this.span[node];
    return this.order.slice(from, to + 1);
  }

  // Return the cluster labels after undoing the last k - 1 merges. Clusters are numbered in the order
  // of the leaves, as in Python.
  cut(k) {
    const nodes = [this.root];
    while (nodes.length < k) {
      const last = Math.max(...nodes);
      nodes.splice(nodes.indexOf(last), 1, ...this.children(last));
    }
    const labels = new Array(this.n).fill(-1);
    nodes.sort((a, b) => this.span[a][0] - this.span[b][0]);
    nodes.forEach((node, label) => this.members(node).forEach((sample) => { labels[sample] = label; }));
    return labels;
  }

  // Return the cluster of each node; null for merges that join several clusters.
  nodeClusters(labels) {
    const clusters = labels.slice();
    this.linkage.forEach(([left, right], merge) => {
      clusters[this.n + merge] = clusters[left] === clusters[right] ? clusters[left] : null;
    });
    return clusters;
  }

  // Return the corners of the bracket of a merge. The final null ends the line, so that the brackets
  // of many merges can be drawn as one trace.
  bracket(node) {
    const [left, right] = this.children(node);
    const top = this.height(node);
    return {
      x: [this.position[left], this.position[left], this.position[right], this.position[right], null],
      y: [this.height(left), top, top, this.height(right), null],
    };
  }

  // Return the node and all merges below it. A loop is used, since recursion could exceed the call
  // stack.
  mergesBelow(node) {
    const merges = [], pending = [node];
    while (pending.length) {
      const next = pending.pop();
      if (next < this.n) continue;
      merges.push(next);
      pending.push(...this.children(next));
    }
    return merges;
  }
}

// Return the leaves of a tree from left to right: the left child of each merge comes first.
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

// Return the lines of a tree: one trace for each colour, since a trace has only one colour.
function branchTraces(tree, labels, colours, neutralColour) {
  const clusters = tree.nodeClusters(labels);
  const lines = new Map();
  for (let node = tree.n; node <= tree.root; node++) {
    const key = clusters[node] === null ? -1 : clusters[node];
    if (!lines.has(key)) lines.set(key, { x: [], y: [] });
    const bracket = tree.bracket(node), line = lines.get(key);
    line.x.push(...bracket.x);
    line.y.push(...bracket.y);
  }
  return [...lines].sort((a, b) => a[0] - b[0]).map(([key, line]) => ({
    type: "scatter", mode: "lines", x: line.x, y: line.y, hoverinfo: "skip", showlegend: false,
    line: { width: 1.4, color: key < 0 ? neutralColour : adaptColour(colours[key % colours.length]) },
  }));
}

// Return the number of samples of each cluster. Samples with the label -1 are in no cluster.
function clusterSizes(labels) {
  const sizes = [];
  labels.forEach((label) => { if (label >= 0) sizes[label] = (sizes[label] || 0) + 1; });
  return sizes;
}
