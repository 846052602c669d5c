"""Parts of the reader of delimited text: separators, lines, rows, and roles of the columns."""
