"""Build the result of a fitted method: tables of samples and features, scores and a description."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.app.confidence import FRACTION, Confidence
from mrshc.app.genes import gene_set_table
from mrshc.app.messages import comparison_notes, out_of_core_notes
from mrshc.app.plan import Plan
from mrshc.comparison import Comparison, agreement_scores, convert_counts_to_integers
from mrshc.core.data.matrix import to_host
from mrshc.core.trees import Tree, silhouette_widths
from mrshc.io.comparison_file_version import COMPARISON_FORMAT, COMPARISON_VERSION
from mrshc.io.raw_table import clean_unique_names
from mrshc.io.result import FORMAT, FORMAT_VERSION, MAX_CUTS, Result
from mrshc.io.result_files import learnt_column
from mrshc.preprocessing.chains import learnt_values, needed_features, step_use
from mrshc.version import __version__

# Packages whose versions are stored with a result, since other versions may give other numbers or
# pictures.
_RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "matplotlib")
# Largest number of clusters for methods without a rule for the number of clusters. The trees of
# these methods are cut into the number of clusters with the largest average silhouette. Pictures
# and tables with more clusters are hard to read.
_MAX_CLUSTERS = 10
# Kind of an annotation for each `kind` of its numpy dtype. Annotations with any other dtype have
# the kind "text".
_KIND_BY_DTYPE = {"f": "number", "i": "whole"}
# Ratio of a standard deviation and a difference of means that is due to rounding errors. The value
# is not tuned: it is well above the rounding error of a mean and well below any real ratio.
_ROUNDING = 1e-12
# Columns of the table of markers, except the annotations of the features.
_MARKER_COLUMNS = (
    *("contrast", "node", "inside", "outside", "n_inside", "n_outside", "feature"),
    *("selected", "mean_inside", "mean_outside", "effect_size", "p_value", "q_value", "direction"),
)


def build_result(
    plan: Plan, model: Any, fit_warnings: tuple[str, ...], *, confidence: Confidence
) -> Result:
    """Return the result of a fitted estimator: its tables and its description."""
    support = model.get_support()
    distances = model.sample_distances(plan.data)
    labels, search = _final_labels_and_search(model, distances)
    features = _feature_table(plan, model, labels, confidence=confidence)
    samples = _sample_table(plan, model, labels, distances=distances, confidence=confidence)
    about = _describe_run(plan, model, labels, search=search, fit_warnings=fit_warnings)
    about |= _describe_confidence(plan, confidence)
    annotations = plan.table.sample_annotations
    n_own = samples.shape[1] - annotations.shape[1]
    # The annotation with the known classes may have been renamed in the table of samples, because
    # its title was that of another column. The title in this table is stored.
    if about["scores"] is not None:
        titles = dict(zip(annotations, samples.columns[n_own:], strict=True))
        about["scores"]["truth"] = titles[plan.truth]
    about["chosen"]["silhouette"] = _average_silhouette(distances, labels)
    about["annotations"] = {
        "samples": _annotation_kinds(samples, skip=n_own),
        "features": _annotation_kinds(features, skip=0)[: plan.table.feature_annotations.shape[1]],
    }
    # The titles of the annotations are those of the table of features, which may have been changed.
    annotations_of_features = features.iloc[:, : plan.table.feature_annotations.shape[1]]
    markers = _marker_table(plan, model, labels, annotations=annotations_of_features)
    gene_sets = None
    if plan.genes.is_given:
        renamed = dict(zip(plan.table.feature_annotations, annotations_of_features, strict=True))
        column = None if plan.genes.column is None else renamed[plan.genes.column]
        about["genes"] = {"column": column, "url": plan.genes.url, "sets": None}
        if plan.genes.sets is not None:
            gene_sets, about["genes"]["sets"] = gene_set_table(
                plan.genes, markers, features=features, column=column
            )
    centers, about["prediction"] = _center_table(plan, model, labels)
    about["n_rows"] = {
        "features": len(features),
        "markers": len(markers),
        "centers": len(centers),
    }
    return Result(
        about=about,
        samples=samples,
        # A stable sort keeps features with equal effect sizes in the order of the data.
        features=features.sort_values(
            ["selected", "effect_size"], ascending=False, kind="stable", na_position="last"
        ),
        selected=pd.DataFrame(
            plan.matrix.columns(np.flatnonzero(support)).astype(np.float64),
            index=samples.index,
            columns=pd.Index(plan.feature_names[support], name="feature", dtype=object),
        ),
        # Silhouette widths are stored for several cuts, so that the report can show each cut
        # without recomputing distances.
        silhouettes=pd.DataFrame(
            {
                f"cut_{k}": silhouette_widths(distances, model.cut(k))
                for k in range(2, min(MAX_CUTS, len(samples)) + 1)
            },
            index=samples.index,
        ),
        markers=markers,
        linkage_matrix_=model.linkage_matrix_,
        centers=centers,
        branches=_branch_table(model.linkage_matrix_, confidence),
        consensus=None if confidence.stability is None else confidence.stability.consensus,
        gene_sets=gene_sets,
    )


def final_labels(plan: Plan, model: Any) -> NDArray[np.intp]:
    """Return the cluster of each sample in the result of a fitted model, counted from 0."""
    return _final_labels_and_search(model, model.sample_distances(plan.data))[0]


def _average_silhouette(distances: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Return the mean silhouette width of a partition; 0 if there is only one cluster."""
    return float(silhouette_widths(distances, labels).mean())


def _final_labels_and_search(
    model: Any, distances: NDArray[np.float64]
) -> tuple[NDArray[np.intp], list[dict[str, Any]]]:
    """Return the cluster label of each sample, and one row for each candidate of the search.

    The labels have shape (n_samples,). If the method has no search, the candidates are cuts of its
    tree.
    """
    search = _search_rows(model)
    given = int(model.labels_.max()) + 1 if hasattr(model, "labels_") else None
    # If refinement showed that the clusters are not supported, and the user did not give their
    # number, all samples are put into one cluster.
    if given is None and getattr(model, "supported_", None) is False:
        return model.cut(1), search
    if given is not None and search:
        return model.labels_, search
    cuts = {*range(2, min(_MAX_CLUSTERS, len(model.linkage_matrix_)) + 1), given} - {None}
    widths = {k: _average_silhouette(distances, model.cut(k)) for k in sorted(cuts)}
    best = max(widths, key=lambda k: widths[k]) if given is None else given
    # If the method has no search, the table of candidates lists the cuts and their average
    # silhouettes.
    if not search:
        search = [
            {"n_clusters": k, "silhouette": width, "chosen": k == best}
            for k, width in widths.items()
        ]
    return model.cut(best), search


def _search_rows(model: Any) -> list[dict[str, Any]]:
    """Return the search results of a model, with one row for each candidate.

    The list is empty if the model has no search results.
    """
    columns = getattr(model, "search_results_", {})
    return [
        {name: _to_json_value(column[i]) for name, column in columns.items()}
        for i in range(len(next(iter(columns.values()), ())))
    ]


def _feature_table(
    plan: Plan, model: Any, labels: NDArray[np.intp], *, confidence: Confidence
) -> pd.DataFrame:
    """Return a table with one row for each feature of the fit, in the order of the data.

    The columns include annotations, effect sizes, q-values (if features were tested for
    association), selection frequencies (if the stability was computed), loadings, cluster means,
    and scores of the clusters.
    """
    p = plan.kept_features.size
    annotations = plan.table.feature_annotations.iloc[plan.kept_features]
    loadings = _loadings(model, n_features=p)
    means, effect, scores = _cluster_statistics(plan, model, labels)
    columns: dict[str, Any] = {
        "position": np.arange(1, p + 1),
        "selected": model.get_support(),
        "effect_size": effect,
    }
    if hasattr(model, "feature_qvalues_"):
        columns["q_value"] = model.feature_qvalues_
        columns["associated"] = np.isin(np.arange(p), model.associated_features_)
    if confidence.stability is not None:
        columns["selection_frequency"] = confidence.stability.feature_frequency
    columns |= {f"loading_{k}": row for k, row in enumerate(loadings, start=1)}
    columns |= {f"mean_cluster_{k}": row for k, row in enumerate(means, start=1)}
    columns |= {f"score_cluster_{k}": row for k, row in enumerate(scores, start=1)}
    # No annotation may have the title of a column of the table of markers, which contains the
    # annotations, too, or of a column that depends on the analyses; see `_sample_table`.
    reserved = dict.fromkeys(["feature", *columns, "selection_frequency", *_MARKER_COLUMNS])
    titles = _annotation_titles(annotations, reserved=list(reserved))
    own = pd.DataFrame(columns, index=pd.Index(plan.feature_names, name="feature", dtype=object))
    renamed = annotations.set_axis(titles, axis=1).set_axis(own.index, axis=0)
    return pd.concat([renamed, own], axis=1)


def _loadings(model: Any, *, n_features: int) -> NDArray[np.float64]:
    """Return the loadings of the features, with one row for each column of the feature table.

    MrSHC has one row of loadings for each component, and SHC has one vector of weights. COSA has
    weights for each sample, of which the means are returned. HC has neither, so there are no rows.
    """
    for name in ("components_", "mean_feature_weights_", "feature_weights_"):
        if hasattr(model, name):
            return np.atleast_2d(getattr(model, name))
    return np.empty((0, n_features))


def _cluster_statistics(
    plan: Plan, model: Any, labels: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return cluster means, effect sizes and scores of all features, without outlying samples.

    The effect size of a feature is the sum of squares between clusters, divided by the total sum of
    squares. The score of a feature for a cluster is the difference between the mean of the cluster
    and that of all other samples, divided by the pooled standard deviation within the two groups.
    """
    data = model.data_of_fit(plan.data)
    usual = np.delete(np.arange(len(labels)), getattr(model, "outlier_samples_", []))
    n_clusters = int(labels.max()) + 1
    function = partial(
        _block_statistics, samples=usual, labels=labels[usual], n_clusters=n_clusters
    )
    blocks = data.map(function)
    means, effects, scores = zip(*blocks, strict=True)
    return (
        np.concatenate(means, axis=1),
        np.concatenate(effects),
        np.concatenate(scores, axis=1)[: n_clusters if n_clusters > 1 else 0],
    )


def _block_statistics(
    block: Any,
    _: int,
    *,
    samples: NDArray[np.intp],
    labels: NDArray[np.intp],
    n_clusters: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return cluster means, effect sizes and scores of a block of features.

    `samples` are the rows of the block that are used, and `labels` their clusters.
    """
    X = to_host(block)[samples]
    with warnings.catch_warnings():
        # If a cluster has no observed value of a feature, the mean is NaN. The warning that numpy
        # then issues is not needed.
        warnings.simplefilter("ignore", RuntimeWarning)
        groups = [X[labels == k] for k in range(n_clusters)]
        means = np.array([np.nanmean(group, axis=0, dtype=np.float64) for group in groups])
        centre = np.nanmean(X, axis=0, dtype=np.float64)
    # Missing values are excluded from the means and from the sums of squares.
    counts = np.array([np.sum(~np.isnan(group), axis=0) for group in groups])
    between = np.nansum(counts * (means - centre) ** 2, axis=0)
    total, within = np.zeros(X.shape[1]), np.zeros((n_clusters, X.shape[1]))
    # Rows are added one at a time, since the squared differences of all rows would need as much
    # memory as the block.
    for row, label in zip(X, labels, strict=True):
        total += np.nan_to_num((row - centre) ** 2)
        within[label] += np.nan_to_num((row - means[label]) ** 2)
    # The effect size is undefined for a constant feature, and for all features if there is only one
    # cluster. The sums of squares of a constant feature may differ from zero by rounding.
    is_constant = np.sum(np.fmax.reduce(X, axis=0) == X, axis=0) == counts.sum(axis=0)
    varies = (total > 0) & ~is_constant & (n_clusters > 1)
    effect = np.divide(between, total, out=np.full(X.shape[1], np.nan), where=varies)
    scores = np.where(is_constant, np.nan, _cluster_scores(means, within, counts=counts))
    # Rounding may give an effect size slightly above 1.
    return means, np.minimum(effect, 1.0), scores


def _cluster_scores(
    means: NDArray[np.float64], within: NDArray[np.float64], *, counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the score of each feature for each cluster, compared with all other samples.

    The arrays have the shape (n_clusters, n_features): the means, the sums of squared deviations
    from them, and the numbers of observed values. The scores are described in
    `_cluster_statistics`.
    """
    observed = np.nan_to_num(means)
    scores = np.full(means.shape, np.nan)
    for k in range(len(means)):
        others = np.delete(np.arange(len(means)), k)
        n_others = counts[others].sum(axis=0)
        sums = (counts[others] * observed[others]).sum(axis=0)
        mean_others = sums / np.maximum(n_others, 1)
        # The deviations from the mean of all other samples are those within the other clusters
        # and those of the means of the other clusters.
        squares = within[k] + within[others].sum(axis=0)
        squares += (counts[others] * (observed[others] - mean_others) ** 2).sum(axis=0)
        # Two degrees of freedom are subtracted because two means are estimated.
        pooled = np.sqrt(squares / np.maximum(counts[k] + n_others - 2, 1))
        difference = means[k] - mean_others
        # A smaller ratio is due to rounding: the feature does not vary within the two groups.
        pooled[pooled <= _ROUNDING * np.abs(difference)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            score = difference / pooled
        scores[k] = np.where((counts[k] > 0) & (n_others > 0), score, np.nan)
    return scores


def _sample_table(
    plan: Plan,
    model: Any,
    labels: NDArray[np.intp],
    *,
    distances: NDArray[np.float64],
    confidence: Confidence,
) -> pd.DataFrame:
    """Return a table with one row for each sample, in the order of the data.

    The columns are the cluster, the position among the leaves of the tree, the silhouette width, an
    indicator of outlying samples (only for robust fits), the Jaccard index of the cluster and the
    significant cluster (if they were computed), and annotations.
    """
    # Inverting the order of the leaves gives the position of each sample among the leaves.
    order = Tree(linkage_matrix=model.linkage_matrix_).leaf_order
    columns: dict[str, Any] = {
        "cluster": labels + 1,
        "leaf": np.argsort(order) + 1,
        "silhouette": silhouette_widths(distances, labels),
    }
    if hasattr(model, "outlier_samples_"):
        columns["outlying"] = np.isin(np.arange(labels.size), model.outlier_samples_)
    if confidence.stability is not None:
        columns["jaccard"] = confidence.stability.cluster_jaccard[labels]
    if confidence.significance is not None:
        columns["significant_cluster"] = _numbers_from_1(confidence.significance.labels)
    annotations = plan.table.sample_annotations
    # Only robust fits have a column "outlying". For other fits, too, no annotation may have this
    # title, so programs that read the table can rely on the meaning of the column.
    optional = ("outlying", "jaccard", "significant_cluster")
    reserved = dict.fromkeys(["sample", *columns, *optional])
    titles = _annotation_titles(annotations, reserved=list(reserved))
    own = pd.DataFrame(
        columns, index=pd.Index(plan.table.sample_names, name="sample", dtype=object)
    )
    renamed = annotations.set_axis(titles, axis=1).set_axis(own.index, axis=0)
    return pd.concat([own, renamed], axis=1)


def _numbers_from_1(labels: NDArray[np.intp]) -> Any:
    """Return clusters counted from 1, with missing values for samples in no cluster (label -1)."""
    numbers = pd.array(labels + 1, dtype="Int64")
    numbers[labels < 0] = pd.NA
    return numbers


def _branch_table(
    linkage_matrix: NDArray[np.float64], confidence: Confidence
) -> pd.DataFrame | None:
    """Return a table with one row for each node of the tree, from the root downwards.

    Return None if neither stability nor significance was computed.
    """
    stable, tests = confidence.stability, confidence.significance
    if stable is None and tests is None:
        return None
    n = len(linkage_matrix) + 1
    columns: dict[str, Any] = {
        "node": np.arange(n, 2 * n - 1),
        "n_samples": linkage_matrix[:, 3].astype(np.intp),
        "height": linkage_matrix[:, 2],
    }
    if stable is not None:
        columns["support"] = stable.branch_support
    table = pd.DataFrame(columns)
    if tests is not None:
        # The index of the tested nodes is their row. Other nodes have missing values.
        tested = pd.DataFrame(
            {
                "statistic": tests.statistic,
                "p_value": tests.p_value,
                "threshold": tests.threshold,
                "significant": pd.array(tests.significant, dtype="boolean"),
                "agreement": tests.agreement,
                "n_simulations": pd.array(tests.n_simulations, dtype="Int64"),
            },
            index=tests.node,
        )
        table = table.join(tested)
    # A merge comes after its parts, so the reverse order begins with the root.
    return table.iloc[::-1].reset_index(drop=True)


def _annotation_titles(annotations: pd.DataFrame, *, reserved: list[str]) -> list[str]:
    """Return titles of the annotations that differ from each other and from the reserved titles.

    A number is appended to titles that occur more than once or are reserved.
    """
    titles = [*reserved, *map(str, annotations.columns)]
    return clean_unique_names(titles, "annotation")[len(reserved) :]


def _marker_table(
    plan: Plan, model: Any, labels: NDArray[np.intp], *, annotations: pd.DataFrame
) -> pd.DataFrame:
    """Return a table of markers.

    A marker is a feature that differs between one cluster and all other samples, or between the two
    branches of a split. The table contains the names and the annotations of the features, the
    numbers of the clusters, which start at 1, and the direction of the difference.
    """
    # If the model has `labels_`, markers are computed for these clusters, which need not be a cut
    # of the tree. For other models, the tree is cut into k clusters.
    k = None if hasattr(model, "labels_") else int(labels.max()) + 1
    markers = model.markers(plan.data, k=k)
    for side in ("inside", "outside"):
        markers[side] = [
            ", ".join(str(int(cluster) + 1) for cluster in text.split(", "))
            for text in markers[side]
        ]
    # Only data in memory are passed to the estimator with the names of their features.
    if plan.matrix.in_memory:
        positions = pd.Index(plan.feature_names, dtype=object).get_indexer(markers["feature"])
    else:
        positions = markers["feature"].to_numpy(dtype=np.intp)
    own = markers.assign(feature=plan.feature_names[positions])
    described = annotations.iloc[positions].reset_index(drop=True)
    # The annotations follow the name of the feature.
    return pd.concat([own, described], axis=1)[
        [*_MARKER_COLUMNS[:7], *described.columns, *_MARKER_COLUMNS[7:]]
    ]


def _center_table(
    plan: Plan, model: Any, labels: NDArray[np.intp]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of the features that new samples need, and the entry "prediction".

    The table contains the centres of the clusters, and values that preprocessing steps learnt.
    """
    # As for markers, clusters that are not in `labels_` are a cut of the tree.
    k = None if hasattr(model, "labels_") else int(labels.max()) + 1
    centres = model.cluster_centres(plan.data, k=k)
    used = plan.kept_features[centres.features]
    needed = needed_features(plan, used)
    is_used = np.isin(needed, used)
    learnt = learnt_values(plan, needed)

    def fill(values: NDArray[np.float64]) -> NDArray[np.float64]:
        column = np.full(needed.size, np.nan)
        column[is_used] = values
        return column

    counts = plan.table.name_counts
    columns: dict[str, Any] = {
        "n_same": np.ones(needed.size, np.intp) if counts is None else counts[needed],
        "n_steps": plan.n_steps_passed[needed],
    }
    columns |= {learnt_column(step + 1, name): values for (step, name), values in learnt.items()}
    columns |= {"used": is_used, "weight": fill(centres.weights)}
    if plan.parameters.get("robust"):
        limits = np.full((2, used.size), np.nan) if centres.limits is None else centres.limits
        # An infinite limit is written as an empty cell.
        columns |= {
            title: fill(np.where(np.isfinite(values), values, np.nan))
            for title, values in zip(("lower", "upper"), limits, strict=True)
        }
    columns |= {f"center_{i}": fill(row) for i, row in enumerate(centres.values, start=1)}
    names = pd.Index(plan.table.feature_names[needed], name="feature", dtype=object)
    entry = {
        "metric": centres.metric,
        "learnt": [{"step": step + 1, "name": name} for step, name in learnt],
    }
    return pd.DataFrame(columns, index=names), entry


def _describe_steps(plan: Plan) -> list[dict[str, Any]]:
    """Return the entry "preprocessing" of result.json: what each step is, did, and needs."""
    entries = []
    for report, step in zip(plan.log, plan.steps, strict=True):
        use = step_use(step)
        # The parameters of steps that cannot be repeated may be arbitrary objects.
        parameters = {} if use == "impossible" else step.get_params(deep=False)
        entries.append(
            {
                **asdict(report),
                "name": type(step).__name__,
                "parameters": {name: _to_json_value(value) for name, value in parameters.items()},
                "new_samples": use,
            }
        )
    return entries


def _annotation_kinds(frame: pd.DataFrame, *, skip: int) -> list[dict[str, str]]:
    """Return the name and the kind of each column of a table after the first `skip` columns.

    The kind is "number", "whole" (whole number) or "text".
    """
    return [
        {"name": str(name), "kind": _KIND_BY_DTYPE.get(frame[name].dtype.kind, "text")}
        for name in frame.columns[skip:]
    ]


def _describe_run(
    plan: Plan,
    model: Any,
    labels: NDArray[np.intp],
    *,
    search: list[dict[str, Any]],
    fit_warnings: tuple[str, ...],
) -> dict[str, Any]:
    """Return the content of result.json, except the entries that are computed from the tables.

    `search` contains one row for each candidate, and `fit_warnings` the warnings of the fit.
    """
    n_clusters = int(labels.max()) + 1
    associated = getattr(model, "associated_features_", None)
    outlying = getattr(model, "outlier_samples_", ())
    tests = getattr(model, "split_tests_", {})
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "command": plan.command,
        "data": describe_data(plan),
        "preprocessing": _describe_steps(plan),
        "method": plan.method,
        "parameters": {name: _to_json_value(v) for name, v in plan.parameters.items()},
        "chosen": {
            "n_features": int(model.n_features_selected_),
            "rank": _to_json_value(getattr(model, "rank_", None)),
            "n_clusters": n_clusters,
        },
        "cluster_sizes": np.bincount(labels, minlength=n_clusters).tolist(),
        "supported": getattr(model, "supported_", None),
        "n_associated": None if associated is None else len(associated),
        "outliers": [str(plan.table.sample_names[i]) for i in outlying],
        "scores": _score_clusters(plan, model, labels),
        "warnings": [*plan.concerns, *fit_warnings],
        "search": search,
        "splits": [
            {name: _to_json_value(column[i]) for name, column in tests.items()}
            for i in range(len(tests.get("node", ())))
        ],
        "versions": package_versions(),
    }


def _describe_confidence(plan: Plan, confidence: Confidence) -> dict[str, Any]:
    """Return the entries of result.json on significance and stability that were computed."""
    entries: dict[str, Any] = {}
    if (tests := confidence.significance) is not None:
        entries["significance"] = {
            "alpha": tests.alpha,
            "n_simulations": plan.confidence.n_simulations,
            "statistic": tests.statistic_name,
            "n_clusters": int(tests.labels.max()) + 1,
        }
    if (stable := confidence.stability) is not None:
        entries["stability"] = {
            "n_resamples": stable.n_resamples,
            "fraction": FRACTION,
            "cluster_jaccard": _to_json_value(stable.cluster_jaccard),
        }
    return entries


def describe_data(plan: Plan) -> dict[str, Any]:
    """Return a description of the data: source, size, missing values and notes."""
    table = plan.table
    return {
        "source": table.source,
        "reading": table.reading,
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "n_missing": plan.n_missing,
        "notes": [*table.notes, *out_of_core_notes(plan)],
    }


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can affect a result."""
    versions = {package: version(package) for package in _RECORDED_PACKAGES}
    return {"mrshc": __version__} | versions | {"python": platform.python_version()}


def known_classes(plan: Plan) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a mask of the samples whose class is known, and the classes of these samples."""
    if plan.truth is None:
        return np.zeros(len(plan.table.sample_names), dtype=bool), np.array([])
    classes = plan.table.sample_annotations[plan.truth]
    known = classes.notna().to_numpy()
    return known, classes[known].astype(str).to_numpy()


def _score_clusters(plan: Plan, model: Any, labels: NDArray[np.intp]) -> dict[str, Any] | None:
    """Return scores of the clusters against the known classes; None if no class is known."""
    known, classes = known_classes(plan)
    if not known.any():
        return None
    n_classes = len(set(classes))
    # The number of clusters may differ from the number of classes. Therefore the tree is also cut
    # into as many clusters as there are classes. The score of this cut shows whether errors are due
    # to the tree or to the number of clusters.
    at_n_classes = agreement_scores(classes, model.cut(min(n_classes, len(labels)))[known])
    return {
        "truth": plan.truth,
        "n_samples": int(known.sum()),
        "n_classes": n_classes,
        **agreement_scores(classes, labels[known]),
        "cer_at_n_classes": at_n_classes["cer"],
        "ari_at_n_classes": at_n_classes["ari"],
    }


def comparison_json_content(
    plan: Plan, comparison: Comparison, *, n_clusters: int | None
) -> dict[str, Any]:
    """Return the content of comparison.json, from which the report is made."""
    scores = convert_counts_to_integers(comparison.scores).reset_index()
    annotations = plan.table.sample_annotations
    classes = {} if plan.truth is None else {plan.truth: annotations[plan.truth].tolist()}
    return {
        "format": COMPARISON_FORMAT,
        "format_version": COMPARISON_VERSION,
        "command": plan.command,
        "data": describe_data(plan),
        "preprocessing": [asdict(step) for step in plan.log],
        "samples": [str(name) for name in plan.table.sample_names],
        "truth": plan.truth,
        "annotations": {
            name: [None if pd.isna(value) else _to_json_value(value) for value in values]
            for name, values in classes.items()
        },
        "n_clusters": n_clusters,
        "notes": [*plan.concerns, *comparison_notes(comparison, plan)],
        "scores": [
            {name: None if pd.isna(value) else _to_json_value(value) for name, value in row.items()}
            for row in scores.to_dict("records")
        ],
        "methods": {
            name: {
                "linkage": model.linkage_matrix_.tolist(),
                "search": _search_rows(model),
                "outliers": [int(i) for i in getattr(model, "outlier_samples_", ())],
            }
            for name, model in comparison.models.items()
            if hasattr(model, "linkage_matrix_")  # clusterers of scikit-learn have no tree
        },
        "versions": package_versions(),
    }


def _to_json_value(value: Any) -> Any:
    """Return a numpy or Python value, converted to a type that JSON supports.

    NaN and infinity are converted to None.
    """
    if hasattr(value, "tolist"):  # numpy arrays become lists, numpy scalars become numbers
        value = value.tolist()
    if isinstance(value, list):
        return [_to_json_value(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value
