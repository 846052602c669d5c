"""One interface to the data: `DataMatrix`, with an implementation for each kind of storage."""
