"""Name, format and version of the file that contains a comparison of methods."""

COMPARISON_FILE = "comparison.json"
COMPARISON_FORMAT = "mrshc comparison"
# This number must be increased when the meaning of an entry changes, since files of other versions
# are not read.
COMPARISON_VERSION = 2
