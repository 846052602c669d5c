"""The interface to the data, `DataMatrix`, and one implementation for each type of storage."""
