"""Studies: a config in, a table of results, its metadata and its rendering out.

The configs of the paper's studies are part of the package.
"""

from mrshc.study.run import StudyError, render_brief, render_study, run_study

__all__ = ["StudyError", "render_brief", "render_study", "run_study"]
