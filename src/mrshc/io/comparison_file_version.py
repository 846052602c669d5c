"""Name, format identifier and format version of the file that stores a comparison of methods."""

COMPARISON_FILE = "comparison.json"
COMPARISON_FORMAT = "mrshc comparison"
# This number must be increased when the meaning of an entry changes, since files with another
# version number are not read.
COMPARISON_VERSION = 4
