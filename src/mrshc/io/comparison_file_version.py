"""The file of a comparison of methods: its name, and the format and version that it states."""

COMPARISON_FILE = "comparison.json"
COMPARISON_FORMAT = "mrshc comparison"
# To be increased when the meaning of an entry changes: other versions are refused.
COMPARISON_VERSION = 2
