"""The file of a comparison of methods: its name, and the format and version that it states."""

ABOUT_COMPARISON = "comparison.json"
COMPARISON_FORMAT = "mrshc comparison"
# To be raised when a comparison changes its meaning.
COMPARISON_VERSION = 2
