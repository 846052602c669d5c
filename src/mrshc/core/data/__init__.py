"""The data matrix, wherever it is stored."""
