"""Access to the data: `DataMatrix`, its implementations for each type of storage, and centring."""
