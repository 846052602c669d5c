"use strict";
// The values of the selected features, and what follows from them and a partition.

class Values {
  constructor(data) {
    this.n = data.samples.names.length;
    this.q = data.features.names.length;
    // Held in single precision, relative to each feature's centre and scale: a common offset would
    // leave no digits for the differences between samples.
    ({ centre: this.centre, scale: this.scale } = data.values);
    this.cells = new Float32Array(unpacked(data.values.cells));
    // Means and effect sizes rest on the cells as the fit saw them: outlying samples are left out.
    this.seen = this.cells.slice();
    const changed = new Float32Array(unpacked(data.values.changed.cells));
    new Uint32Array(unpacked(data.values.changed.at)).forEach((at, i) => { this.seen[at] = changed[i]; });
    this.widths = new Float32Array(unpacked(data.samples.silhouettes));
    this.outlying = new Set(data.samples.outlying);
    this.flat = new Set(data.values.flat);
    this.moments = Array.from({ length: this.q }, (_, j) => this.momentsOf(j));
  }

  // Relative to the centre, in units of the scale: for everything that depends on neither.
  cell(sample, feature) { return this.cells[sample * this.q + feature]; }

  // A value as it was read, in double precision.
  at(sample, feature) { return this.restored(this.cell(sample, feature), feature); }

  restored(cell, feature) { return this.centre[feature] + this.scale[feature] * cell; }

  // In standard deviations from the feature's mean.
  standard(sample, feature) {
    const [mean, deviation] = this.moments[feature], cell = this.cell(sample, feature);
    const varies = deviation > 0 && !this.flat.has(feature);
    return varies ? (cell - mean) / deviation : 0 * cell; // which is NaN where it is missing
  }

  // How far values are apart: numbers are shown with digits enough for that.
  spread(feature) { return this.moments[feature][1] * this.scale[feature]; }

  // Mean and standard deviation of a feature's cells; outlying samples do not count.
  momentsOf(feature) {
    const known = [];
    for (let i = 0; i < this.n; i++) {
      const v = this.cell(i, feature);
      if (!Number.isNaN(v) && !this.outlying.has(i)) known.push(v);
    }
    const count = Math.max(1, known.length);
    const mean = known.reduce((sum, v) => sum + v, 0) / count;
    return [mean, Math.sqrt(known.reduce((sum, v) => sum + (v - mean) ** 2, 0) / count)];
  }

  // Means of the clusters, and the share of each feature's variance that lies between them.
  separation(labels, sizes) {
    const means = sizes.map(() => new Array(this.q)), effect = new Array(this.q);
    for (let j = 0; j < this.q; j++) {
      const sums = sizes.map(() => 0), counts = sizes.map(() => 0);
      let total = 0, between = 0, n = 0, centre = 0;
      for (let i = 0; i < this.n; i++) {
        const v = this.seen[i * this.q + j];
        if (!Number.isNaN(v)) { sums[labels[i]] += v; counts[labels[i]] += 1; centre += v; n += 1; }
      }
      centre /= Math.max(1, n);
      for (let i = 0; i < this.n; i++) {
        const v = this.seen[i * this.q + j];
        if (!Number.isNaN(v)) total += (v - centre) ** 2;
      }
      sizes.forEach((_, c) => {
        const mean = sums[c] / counts[c];
        means[c][j] = counts[c] ? this.restored(mean, j) : null;
        if (counts[c]) between += counts[c] * (mean - centre) ** 2;
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
  return bytes.buffer;
}
