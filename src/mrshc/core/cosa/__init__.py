"""COSA, clustering objects on subsets of attributes (Friedman and Meulman 2004)."""
