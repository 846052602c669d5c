"""The mathematics: numpy, scipy and compiled loops, without estimators, tables, plots or files."""
