"use strict";
// The values of the selected features, and what follows from them and a partition.

class Values {
  constructor(data) {
    this.n = data.samples.names.length;
    this.q = data.features.names.length;
    this.cells = unpacked(data.values);
    this.city = data.metric === "cityblock";
    this.weights = data.weights ? data.features.loadings[0] : null;
    this.scale = this.standardised();
  }

  at(sample, feature) { return this.cells[sample * this.q + feature]; }

  // In standard deviations from the feature's mean.
  standard(sample, feature) {
    return (this.at(sample, feature) - this.scale[feature][0]) / this.scale[feature][1];
  }

  // Mean and standard deviation of each feature, for colours.
  standardised() {
    const scale = [];
    for (let j = 0; j < this.q; j++) {
      let sum = 0, square = 0, count = 0;
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v)) { sum += v; count += 1; }
      }
      const mean = sum / Math.max(1, count);
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v)) square += (v - mean) ** 2;
      }
      scale.push([mean, Math.sqrt(square / Math.max(1, count - 1)) || 1]);
    }
    return scale;
  }

  // Means of the clusters, and the share of each feature's variance that lies between them.
  separation(labels, sizes) {
    const means = sizes.map(() => new Array(this.q)), effect = new Array(this.q);
    for (let j = 0; j < this.q; j++) {
      const sums = sizes.map(() => 0), counts = sizes.map(() => 0);
      let total = 0, between = 0;
      for (let i = 0; i < this.n; i++) {
        const v = this.at(i, j);
        if (!Number.isNaN(v)) { sums[labels[i]] += v; counts[labels[i]] += 1; total += (v - this.scale[j][0]) ** 2; }
      }
      sizes.forEach((_, c) => {
        means[c][j] = counts[c] ? sums[c] / counts[c] : null;
        if (counts[c]) between += counts[c] * (means[c][j] - this.scale[j][0]) ** 2;
      });
      effect[j] = total > 0 ? Math.min(1, between / total) : null;
    }
    return { means, effect };
  }

  distances() {
    if (this.between) return this.between;
    const { n, q, city, weights } = this;
    const between = new Float32Array(n * n);
    for (let a = 0; a < n; a++) {
      for (let b = 0; b < a; b++) {
        let sum = 0;
        for (let j = 0; j < q; j++) {
          const gap = this.cells[a * q + j] - this.cells[b * q + j];
          sum += (city ? Math.abs(gap) : gap * gap) * (weights ? weights[j] : 1);
        }
        between[a * n + b] = between[b * n + a] = sum;
      }
    }
    this.between = between;
    return between;
  }

  silhouettes(labels, sizes) {
    if (sizes.length < 2) return labels.map(() => 0);
    const between = this.distances();
    return labels.map((own, a) => {
      if (sizes[own] === 1) return 0;
      const sums = sizes.map(() => 0);
      for (let b = 0; b < this.n; b++) sums[labels[b]] += between[a * this.n + b];
      const within = sums[own] / (sizes[own] - 1);
      const nearest = Math.min(...sums.map((sum, c) => (c === own ? Infinity : sum / sizes[c])));
      const larger = Math.max(within, nearest);
      return larger > 0 ? (nearest - within) / larger : larger === 0 ? 0 : null;
    });
  }
}

function unpacked(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}
