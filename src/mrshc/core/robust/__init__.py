"""Treatment of missing values and outliers."""
