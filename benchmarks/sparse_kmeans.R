# Sparse K-means of Witten and Tibshirani (2010) with the permutation gap, written from the paper,
# with the K-means of R. Usage: Rscript sparse_kmeans.R DATA.csv K BOUND,BOUND,... N_PERMUTATIONS
#
# Prints the seconds, the chosen bound and the criterion of each bound for the data.

arguments <- commandArgs(trailingOnly = TRUE)
x <- as.matrix(read.csv(arguments[1], header = FALSE))
n_clusters <- as.integer(arguments[2])
bounds <- as.numeric(strsplit(arguments[3], ",")[[1]])
n_permutations <- as.integer(arguments[4])
n_starts <- 20
max_rounds <- 15

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

between_sums <- function(x, labels) {
  means <- rowsum(x, labels) / as.vector(table(labels))
  colSums(scale(x, scale = FALSE)^2) - colSums((x - means[as.character(labels), ])^2)
}

within <- function(fit) fit$tot.withinss

fit_one <- function(x, bound, first_labels) {
  labels <- first_labels
  weights <- rep(1 / sqrt(ncol(x)), ncol(x))
  for (round in 1:max_rounds) {
    between <- between_sums(x, labels)
    old <- weights
    weights <- sparse_weights(between, bound)
    if (sum(abs(weights - old)) <= 1e-4 * sum(abs(old))) break
    used <- weights > 0
    z <- sweep(x[, used, drop = FALSE], 2, sqrt(weights[used]), "*")
    # The present clusters are one start; the others are random.
    centres <- rowsum(z, labels) / as.vector(table(labels))
    from_present <- suppressWarnings(kmeans(z, centres, iter.max = 30))
    random <- suppressWarnings(kmeans(z, n_clusters, nstart = n_starts, iter.max = 30))
    best <- if (within(random) < within(from_present)) random else from_present
    labels <- best$cluster
  }
  sum(weights * between_sums(x, labels))
}

fit_bounds <- function(x) {
  first <- suppressWarnings(kmeans(x, n_clusters, nstart = n_starts, iter.max = 30))$cluster
  sapply(bounds, function(bound) fit_one(x, bound, first))
}

set.seed(1)
seconds <- system.time({
  observed <- fit_bounds(x)
  permuted <- sapply(seq_len(n_permutations), function(i) fit_bounds(apply(x, 2, sample)))
  gaps <- log(observed) - rowMeans(log(permuted))
})[["elapsed"]]
cat(sprintf(
  '{"seconds": %.3f, "bound": %.6f, "criteria": [%s]}\n',
  seconds, bounds[which.max(gaps)], paste(sprintf("%.8g", observed), collapse = ", ")
))
