"""Missing values and outliers."""
