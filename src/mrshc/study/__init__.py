"""Studies: a committed config in, a table of results, its metadata and its rendering out."""

from mrshc.study.run import StudyError, render_study, run_study

__all__ = ["StudyError", "render_study", "run_study"]
