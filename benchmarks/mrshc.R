# Multi-rank sparse hierarchical clustering, written from the paper (Zhang and Zamar 2014,
# https://arxiv.org/abs/1409.0745), in R.
#
# Rscript mrshc.R DATA.csv Q,Q,... LARGEST_RANK N_REFERENCES N_TESTED
#
# Needs R and its recommended package cluster (Debian: r-base-core and r-cran-cluster). If the package
# PMA is installed, its function SPC computes the sparse components, as in the paper; otherwise the
# function sparse_components below does.
#
# DATA.csv has no header; rows are samples. One Q is case 2 of the paper, several are case 3. Each gap
# test evaluates 1 to N_TESTED clusters. The paper does not state this number. Two are sufficient: the
# rule of Tibshirani and others (2001) prefers more than one cluster if two are better than one.
#
# Prints as JSON the seconds of the procedure without reading the data, how the components were
# computed, and the result. Features are counted from 1.

suppressPackageStartupMessages(library(cluster))
use_pma <- requireNamespace("PMA", quietly = TRUE)

arguments <- commandArgs(trailingOnly = TRUE)
x <- unname(as.matrix(read.csv(arguments[1], header = FALSE)))
targets <- as.integer(strsplit(arguments[2], ",")[[1]])
ranks <- seq_len(as.integer(arguments[3]))
n_references <- as.integer(arguments[4])
n_tested <- as.integer(arguments[5])

# Unit vector along `a` with an L1 norm of at most `bound`: soft threshold by bisection.
sparse_direction <- function(a, bound) {
  size <- abs(a)
  if (sum(size) <= bound * sqrt(sum(size^2))) return(a / sqrt(sum(a^2)))
  low <- 0
  # With the second largest value as the threshold, a single feature is left, which any bound admits.
  high <- max(size[-which.max(size)])
  # Six digits, about as many as PMA computes.
  tolerance <- 1e-6 * high
  while (high - low > tolerance) {
    middle <- (low + high) / 2
    soft <- size[size > middle] - middle
    if (sum(soft) > bound * sqrt(sum(soft^2))) low <- middle else high <- middle
  }
  v <- sign(a) * pmax(size - high, 0)
  v / sqrt(sum(v^2))
}

# Loadings, one column for each component: at most 20 alternations from the right singular vectors in
# `starts`; the matrix is deflated after each component.
sparse_components <- function(x, bound, starts) {
  for (k in seq_len(ncol(starts))) {
    v <- starts[, k]
    for (alternation in 1:20) {
      old <- v
      u <- x %*% v
      u <- u / sqrt(sum(u^2))
      v <- sparse_direction(drop(crossprod(x, u)), bound)
      if (sum(abs(v - old)) < 1e-7) break
    }
    starts[, k] <- v
    if (k < ncol(starts)) x <- x - sum(u * (x %*% v)) * tcrossprod(u, v)
  }
  starts
}

selected_features <- function(centred, bound, starts) {
  loadings <- if (use_pma) {
    PMA::SPC(
      centred, sumabsv = bound, K = ncol(starts), v = starts, niter = 20, trace = FALSE,
      center = FALSE, compute.pve = FALSE
    )$v
  } else {
    sparse_components(centred, bound, starts)
  }
  which(rowSums(loadings != 0) > 0)
}

# Algorithm 1 with d = 0, and the closest set if no bound gives q features, the smaller of two.
feature_set <- function(centred, q, starts) {
  low <- 1
  high <- sqrt(ncol(centred))
  best <- selected_features(centred, low, starts)
  if (length(best) >= q) return(best)
  while (length(best) != q && high - low > 1e-7) {
    middle <- (low + high) / 2
    set <- selected_features(centred, middle, starts)
    if (length(set) > q) high <- middle else low <- middle
    distances <- abs(c(length(set), length(best)) - q)
    if (distances[1] < distances[2] ||
          (distances[1] == distances[2] && length(set) < length(best))) best <- set
  }
  best
}

complete_tree <- function(x) hclust(dist(x)^2, "complete")

# Samples below a node, which is a row of `merge`, or a single sample if it is negative.
members <- function(tree, node) {
  if (node < 0) return(-node)
  unlist(lapply(tree$merge[node, ], members, tree = tree))
}

# Gap test of a node: is one cluster not enough?
prefers_split <- function(x) {
  if (nrow(x) < 3 || all(dist(x) == 0)) return(FALSE)
  cut_tree <- function(x, k) list(cluster = cutree(complete_tree(x), k))
  largest <- min(n_tested, nrow(x) - 1)
  gap <- clusGap(x, cut_tree, K.max = largest, B = n_references, verbose = FALSE)$Tab
  maxSE(gap[, "gap"], gap[, "SE.sim"], method = "Tibs2001SEmax") > 1
}

# Algorithm 2. The results of tests are kept in `tested`, since pruning to K leaves repeats the tests of
# pruning without a limit.
prune <- function(candidate, n_leaves) {
  tree <- candidate$tree
  active <- nrow(tree$merge)
  inactive <- integer()
  while (length(active) > 0 && length(active) + length(inactive) < n_leaves) {
    # Rows of `merge` are ordered by height; single samples are negative.
    node <- max(active)
    active <- active[active != node]
    key <- as.character(node)
    if (is.null(candidate$tested[[key]])) {
      candidate$tested[[key]] <- node > 0 && prefers_split(candidate$x[members(tree, node), ])
    }
    if (candidate$tested[[key]]) active <- c(active, tree$merge[node, ])
    else inactive <- c(inactive, node)
  }
  c(active, inactive)
}

labels_of <- function(tree, leaves) {
  labels <- integer(nrow(tree$merge) + 1)
  for (i in seq_along(leaves)) labels[members(tree, leaves[i])] <- i
  labels
}

average_silhouette <- function(x, labels) {
  if (max(labels) == 1) return(0)
  mean(silhouette(labels, dist(x)^2)[, "sil_width"])
}

# Algorithms 3 and 4: position of the chosen candidate. End points can be local minima.
choose <- function(values) {
  left <- seq_along(values)
  repeat {
    s <- values[left]
    if (all(diff(s) <= 0)) return(left[1])
    if (all(diff(s) >= 0)) return(left[which.max(diff(s)) + 1])
    is_minimum <- s <= c(Inf, s[-length(s)]) & s <= c(s[-1], Inf)
    left <- left[-max(which(is_minimum))]
  }
}

make_candidate <- function(x, features, q, rank) {
  candidate <- new.env()
  candidate$q <- q
  candidate$rank <- rank
  candidate$features <- features
  candidate$x <- x[, features, drop = FALSE]
  candidate$tree <- complete_tree(candidate$x)
  candidate$tested <- list()
  candidate
}

# The default of the paper; with several q, the largest number that at least two of them reach.
reference_number <- function(candidates) {
  first <- Filter(function(candidate) candidate$rank <= 3, candidates)
  n_leaves <- vapply(first, function(candidate) length(prune(candidate, Inf)), 0L)
  largest <- tapply(n_leaves, vapply(first, function(candidate) candidate$q, 0L), max)
  max(2, sort(largest, decreasing = TRUE)[min(2, length(largest))])
}

mrshc <- function(x) {
  centred <- scale(x, scale = FALSE)
  starts <- svd(centred, nu = 0, nv = max(ranks))$v
  candidates <- list()
  for (q in targets) for (rank in ranks) {
    features <- feature_set(centred, q, starts[, seq_len(rank), drop = FALSE])
    candidates[[length(candidates) + 1]] <- make_candidate(x, features, q, rank)
  }
  n_clusters <- reference_number(candidates)
  for (candidate in candidates) {
    candidate$labels <- labels_of(candidate$tree, prune(candidate, n_clusters))
    candidate$silhouette <- average_silhouette(candidate$x, candidate$labels)
  }
  choose_candidate(candidates, n_clusters)
}

choose_candidate <- function(candidates, n_clusters) {
  score <- vapply(candidates, function(candidate) candidate$silhouette, 0)
  q <- vapply(candidates, function(candidate) candidate$q, 0L)
  n_leaves <- vapply(candidates, function(candidate) max(candidate$labels), 0L)
  complete <- which(n_leaves == n_clusters)
  if (length(complete) == 0) return(candidates[[order(-n_leaves, -score)[1]]])
  best <- vapply(split(complete, q[complete]), function(row) row[choose(score[row])], 0L)
  candidates[[best[choose(score[best])]]]
}

set.seed(1)
seconds <- system.time(result <- mrshc(x))[["elapsed"]]
versions <- paste0(
  "R ", getRversion(), ", cluster ", packageVersion("cluster"),
  if (use_pma) paste0(", PMA ", packageVersion("PMA"))
  else ", sparse components by a function of the script"
)
cat(sprintf(
  '{"seconds": %.3f, "versions": "%s", "q": %d, "rank": %d, "features": [%s], "labels": [%s]}\n',
  seconds, versions, result$q, result$rank,
  paste(result$features, collapse = ", "), paste(result$labels, collapse = ", ")
))
