"""What the command line, the files, the plots and the report have in common."""
