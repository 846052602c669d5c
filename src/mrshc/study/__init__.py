"""Simulation studies and comparisons on real data that reproduce the tables of the paper.

A study is described by a config, which is a TOML file. Running a study writes a table of results
(CSV), metadata (JSON), rendered tables (Markdown) and figures. The configs of the paper's studies
are part of the package.
"""

from mrshc.study.run import StudyError, render_brief, render_study, run_study

__all__ = ["StudyError", "render_brief", "render_study", "run_study"]
