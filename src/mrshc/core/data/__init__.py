"""The interface to the data, `DataMatrix`, and one implementation for each storage backend."""
