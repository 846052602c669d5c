"""Parts of the reader of delimited text: dialect, lines and rows, the roles of columns."""
