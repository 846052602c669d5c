"""Reading of delimited text: detection of separators and column roles, reading of rows."""
