"""Simulation studies and comparisons on real data, including the studies in the paper.

A study is described by a config, which is a TOML file. Running a study writes a table of results
(CSV), metadata (JSON), rendered tables (Markdown) and figures. The package contains the configs of
the studies in the paper and of additional studies.
"""

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of a failed import.
require_packages(["pandas", "psutil", "matplotlib"], purpose="mrshc.study", extra="cli")

from mrshc.study.run import StudyError, render_brief, render_study, run_study

__all__ = ["StudyError", "render_brief", "render_study", "run_study"]
