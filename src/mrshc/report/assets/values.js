"use strict";
// Values of the selected features, with statistics of features and clusters.

class FeatureValues {
  constructor(data) {
    this.n = data.samples.names.length;
    this.q = data.features.names.length;
    // Values are stored in single precision, relative to the centre and scale of each feature, since
    // a large common offset would leave no digits for the differences between samples.
    ({ centre: this.centre, scale: this.scale } = data.values);
    this.cells = new Float32Array(decodeBase64(data.values.cells));
    // Means and effect sizes are computed from the values of the fit. A robust fit winsorises values
    // and excludes outlying samples.
    this.fittedCells = this.cells.slice();
    const changed = new Float32Array(decodeBase64(data.values.changed.cells));
    new Uint32Array(decodeBase64(data.values.changed.positions)).forEach((at, i) => { this.fittedCells[at] = changed[i]; });
    this.widths = new Float32Array(decodeBase64(data.samples.silhouettes));
    this.maxCut = this.widths.length / this.n + 1; // largest cut whose silhouettes are on the page
    this.outlying = new Set(data.samples.outlying);
    this.constant = new Set(data.values.constant);
    this.moments = Array.from({ length: this.q }, (_, j) => this.computeMoments(j));
  }

  // Return a value relative to the centre, in units of the scale.
  cell(sample, feature) { return this.cells[sample * this.q + feature]; }

  // Return a value as it was read, in double precision.
  value(sample, feature) { return this.unpack(this.cell(sample, feature), feature); }

  unpack(cell, feature) { return this.centre[feature] + this.scale[feature] * cell; }

  // Return the deviation from the mean of the feature in standard deviations; 0 for constant
  // features.
  standardised(sample, feature) {
    const [mean, deviation] = this.moments[feature], cell = this.cell(sample, feature);
    const varies = deviation > 0 && !this.constant.has(feature);
    return varies ? (cell - mean) / deviation : 0 * cell; // 0 * NaN keeps missing values missing
  }

  // Return the standard deviation of a feature, which determines how many digits of its values are
  // shown.
  spread(feature) { return this.moments[feature][1] * this.scale[feature]; }

  // Return the mean and standard deviation of the stored values of a feature, without outlying
  // samples.
  computeMoments(feature) {
    const observed = [];
    for (let i = 0; i < this.n; i++) {
      const v = this.cell(i, feature);
      if (!Number.isNaN(v) && !this.outlying.has(i)) observed.push(v);
    }
    const count = Math.max(1, observed.length);
    const mean = observed.reduce((sum, v) => sum + v, 0) / count;
    return [mean, Math.sqrt(observed.reduce((sum, v) => sum + (v - mean) ** 2, 0) / count)];
  }

  // Return the means of the clusters, and the effect size of each feature: the proportion of its
  // variance that is between the clusters. The sums are computed as in Python for features.csv.
  separation(labels, sizes) {
    const means = sizes.map(() => new Array(this.q)), effect = new Array(this.q);
    for (let j = 0; j < this.q; j++) {
      const sums = sizes.map(() => 0), counts = sizes.map(() => 0);
      let total = 0, between = 0, n = 0, centre = 0;
      for (let i = 0; i < this.n; i++) {
        const v = this.fittedCells[i * this.q + j];
        // Samples with the label -1 are in no cluster.
        if (!Number.isNaN(v) && labels[i] >= 0) { sums[labels[i]] += v; counts[labels[i]] += 1; centre += v; n += 1; }
      }
      centre /= Math.max(1, n);
      for (let i = 0; i < this.n; i++) {
        const v = this.fittedCells[i * this.q + j];
        if (!Number.isNaN(v) && labels[i] >= 0) total += (v - centre) ** 2;
      }
      sizes.forEach((_, c) => {
        const mean = sums[c] / counts[c];
        means[c][j] = counts[c] ? this.unpack(mean, j) : null;
        if (counts[c]) between += counts[c] * (mean - centre) ** 2;
      });
      // Rounding can make the ratio slightly larger than one.
      effect[j] = total > 0 && sizes.length > 1 ? Math.min(1, between / total) : null;
    }
    return { means, effect };
  }

  // Return the silhouette widths of the samples if the tree is cut into k clusters. The widths are
  // computed in Python, since the page does not contain the distances. The first row is for two
  // clusters.
  silhouettes(k) {
    return k < 2 ? new Array(this.n).fill(0) : [...this.widths.subarray((k - 2) * this.n, (k - 1) * this.n)];
  }
}

function decodeBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes.buffer;
}
