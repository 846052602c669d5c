"""Rules that choose the rank and the number of features among candidates."""
