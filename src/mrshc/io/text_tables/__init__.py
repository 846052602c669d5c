"""Parts of the reader of delimited text: dialect, lines and rows, roles of the columns."""
