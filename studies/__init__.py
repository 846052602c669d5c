"""The studies of the paper and others: tables and figures in the documentation, made by scripts."""
