"use strict";
// The values of the selected features, and what follows from them and a partition.

class Values {
  constructor(data) {
    this.n = data.samples.names.length;
    this.q = data.features.names.length;
    this.cells = unpacked(data.values);
    this.widths = unpacked(data.samples.silhouettes);
    this.outlying = new Set(data.samples.outlying);
    this.scale = this.standardised();
  }

  at(sample, feature) { return this.cells[sample * this.q + feature]; }

  // In standard deviations from the feature's mean.
  standard(sample, feature) {
    return (this.at(sample, feature) - this.scale[feature][0]) / this.scale[feature][1];
  }

  // Mean and standard deviation of each feature, for colours; outlying samples have no say in them.
  standardised() {
    const scale = [];
    for (let j = 0; j < this.q; j++) {
      const seen = [];
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v) && !this.outlying.has(i)) seen.push(v);
      }
      const count = Math.max(1, seen.length);
      const mean = seen.reduce((sum, v) => sum + v, 0) / count;
      scale.push([mean, Math.sqrt(seen.reduce((sum, v) => sum + (v - mean) ** 2, 0) / count) || 1]);
    }
    return scale;
  }

  // Means of the clusters, and the share of each feature's variance that lies between them.
  separation(labels, sizes) {
    const means = sizes.map(() => new Array(this.q)), effect = new Array(this.q);
    for (let j = 0; j < this.q; j++) {
      const sums = sizes.map(() => 0), counts = sizes.map(() => 0);
      let total = 0, between = 0, n = 0, centre = 0;
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v)) { sums[labels[i]] += v; counts[labels[i]] += 1; centre += v; n += 1; }
      }
      centre /= Math.max(1, n);
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v)) total += (v - centre) ** 2;
      }
      sizes.forEach((_, c) => {
        means[c][j] = counts[c] ? sums[c] / counts[c] : null;
        if (counts[c]) between += counts[c] * (means[c][j] - centre) ** 2;
      });
      effect[j] = total > 0 && sizes.length > 1 ? Math.min(1, between / total) : null;
    }
    return { means, effect };
  }

  // Of the samples if the tree is cut into k clusters.
  silhouettes(k) {
    return k < 2 ? new Array(this.n).fill(0) : [...this.widths.subarray((k - 2) * this.n, (k - 1) * this.n)];
  }
}

function unpacked(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}
