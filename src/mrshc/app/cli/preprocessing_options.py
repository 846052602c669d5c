"""Options for preprocessing steps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter
from mrshc.app.cli.options_from_dataclasses import enum_to_text

_preprocessing_option = option_factory("Preparing the data")


class ImputationAxis(StrEnum):
    """Whether missing values are imputed from the nearest features or from the nearest samples."""

    features = "features"
    samples = "samples"


class StandardizedAxis(StrEnum):
    """Whether samples, features or both are standardised; with "both", samples come first."""

    samples = "samples"
    features = "features"
    both = "both"


class Preset(StrEnum):
    """Several steps by one name; the steps are in `mrshc.preprocessing.chains.PRESETS`."""

    dudoit2002 = "dudoit2002"


class Normalization(StrEnum):
    """Normalisations of counts."""

    cpm = "cpm"
    size_factors = "size-factors"
    none = "none"


@dataclass(frozen=True, kw_only=True)
class PreprocessingOptions:
    """Options for preprocessing steps, which `mrshc.preprocessing.chain` puts in order."""

    preset: Annotated[
        Preset | None,
        _preprocessing_option(
            "--preset",
            help="Several steps by one name. dudoit2002, for raw Affymetrix intensities: floor 100,"
            " ceiling 16000, max/min above 5, max-min above 500, log2.",
        ),
    ] = None
    impute: Annotated[
        ImputationAxis | None,
        _preprocessing_option(
            "--impute",
            help="Fill in missing values from the nearest features or samples, before all other "
            "steps. Without it, missing values are allowed: distances are then estimated from the "
            "observed values.",
        ),
    ] = None
    # The default of 5 is that of scikit-learn's KNNImputer.
    neighbors: Annotated[
        int,
        _preprocessing_option(
            "--neighbors", min=1, help="Number of neighbours from which --impute fills in values."
        ),
        SetsParameter("n_neighbors"),
    ] = 5
    min_count: Annotated[
        float | None,
        _preprocessing_option(
            "--min-count",
            help="Keep features with at least this value in at least --min-samples samples, such "
            "as 10 for counts.",
        ),
    ] = None
    min_samples: Annotated[
        int | None,
        _preprocessing_option(
            "--min-samples", help="Number of samples for --min-count (default 2)."
        ),
    ] = None
    normalize: Annotated[
        Normalization | None,
        _preprocessing_option(
            "--normalize",
            help="Normalise counts, add 1 (or --pseudocount) and take log2. cpm: counts per "
            "million. size-factors: median of ratios (Anders and Huber 2010). none: use the values "
            "as they are, without a warning on counts and raw intensities.",
        ),
    ] = None
    floor: Annotated[
        float | None, _preprocessing_option("--floor", help="Raise lower values to this value.")
    ] = None
    ceiling: Annotated[
        float | None, _preprocessing_option("--ceiling", help="Lower higher values to this value.")
    ] = None
    min_ratio: Annotated[
        float | None,
        _preprocessing_option("--min-ratio", help="Keep features with max/min above this value."),
    ] = None
    min_difference: Annotated[
        float | None,
        _preprocessing_option(
            "--min-difference", help="Keep features with max-min above this value."
        ),
    ] = None
    log2: Annotated[bool, _preprocessing_option("--log2", help="Take logarithms to base 2.")] = (
        False
    )
    pseudocount: Annotated[
        float | None,
        _preprocessing_option(
            "--pseudocount",
            help="Take logarithms after adding this value, such as 1 for counts.",
        ),
    ] = None
    standardize: Annotated[
        StandardizedAxis | None,
        _preprocessing_option(
            "--standardize",
            help="Scale samples, features or both to mean 0 and standard deviation 1.",
        ),
    ] = None
    top_variance: Annotated[
        int | None,
        _preprocessing_option(
            "--top-variance", help="Keep this number of features, those of highest variance."
        ),
        SetsParameter("n_features"),
    ] = None

    @property
    def reports_scale(self) -> bool:
        """Whether a warning is printed if the values look like counts or raw intensities."""
        return self.normalize != "none"

    def make_steps(self) -> list[Any]:
        """Return the preprocessing transformers.

        Options that were given individually override the values in the preset.
        """
        # Without options, scikit-learn, which is slow to import, is not needed before the table is
        # read.
        if self == PreprocessingOptions():
            return []
        from mrshc.preprocessing.chains import PRESETS, chain

        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "preset"}
        # A pseudocount is used only with a logarithm, so --pseudocount implies --log2.
        given["log2"] = self.log2 or self.pseudocount is not None or None
        preset = {} if self.preset is None else PRESETS[self.preset]
        return chain(**preset | {n: enum_to_text(v) for n, v in given.items() if v is not None})
