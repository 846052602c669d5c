# Sparse K-means of Witten and Tibshirani (2010) with the permutation gap, written from the paper,
# with the K-means of R.
#
# Rscript sparse_kmeans.R DATA.csv K BOUND,BOUND,... N_PERMUTATIONS N_STARTS N_LATER_STARTS N_ROUNDS
#
# N_STARTS is the number of random starts of the first K-means, N_LATER_STARTS that of each round; the
# present clusters are a further start. Prints the seconds and the criterion of each bound.

arguments <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(arguments[1], header = FALSE))
n_clusters <- as.integer(arguments[2])
bounds <- as.numeric(strsplit(arguments[3], ",")[[1]])
n_permutations <- as.integer(arguments[4])
n_starts <- as.integer(arguments[5])
n_later_starts <- as.integer(arguments[6])
n_rounds <- as.integer(arguments[7])

# Weights of unit L2 norm with an L1 norm of at most `bound`, by bisection on the soft threshold.
sparse_weights <- function(between, bound) {
  unit <- function(threshold) {
    s <- pmax(between - threshold, 0)
    s / sqrt(sum(s^2))
  }
  if (sum(unit(0)) <= bound) return(unit(0))
  low <- 0
  high <- max(between)
  for (step in 1:60) {
    middle <- (low + high) / 2
    if (sum(unit(middle)) > bound) low <- middle else high <- middle
  }
  unit(low)
}

# Sums of squares between clusters of centred features, whose total sums of squares are `total`.
between_sums <- function(x, total, labels) {
  means <- rowsum(x, labels) / as.vector(table(labels))
  total - colSums((x - means[as.character(labels), ])^2)
}

random_clusters <- function(z, n) {
  suppressWarnings(kmeans(z, n_clusters, nstart = n, iter.max = 30))
}

fit_one <- function(x, total, bound, first_labels) {
  labels <- first_labels
  weights <- rep(1 / sqrt(ncol(x)), ncol(x))
  for (round in 1:n_rounds) {
    between <- between_sums(x, total, labels)
    old <- weights
    weights <- sparse_weights(between, bound)
    if (sum(abs(weights - old)) <= 1e-4 * sum(abs(old))) break
    used <- weights > 0
    z <- sweep(x[, used, drop = FALSE], 2, sqrt(weights[used]), "*")
    centres <- rowsum(z, labels) / as.vector(table(labels))
    best <- tryCatch(
      suppressWarnings(kmeans(z, centres, iter.max = 30)),
      error = function(e) random_clusters(z, 1) # a cluster lost all its samples
    )
    if (n_later_starts > 0) {
      other <- random_clusters(z, n_later_starts)
      if (other$tot.withinss < best$tot.withinss) best <- other
    }
    labels <- best$cluster
    between <- between_sums(x, total, labels)
  }
  sum(weights * between)
}

fit_bounds <- function(x) {
  x <- scale(x, scale = FALSE)
  total <- colSums(x^2)
  first <- random_clusters(x, n_starts)$cluster
  sapply(bounds, function(bound) fit_one(x, total, bound, first))
}

set.seed(1)
seconds <- system.time({
  observed <- fit_bounds(x)
  permuted <- sapply(seq_len(n_permutations), function(i) fit_bounds(apply(x, 2, sample)))
  gaps <- log(observed) - rowMeans(log(permuted))
})[["elapsed"]]
cat(sprintf(
  '{"seconds": %.3f, "criteria": [%s]}\n',
  seconds, paste(sprintf("%.8g", observed), collapse = ", ")
))
