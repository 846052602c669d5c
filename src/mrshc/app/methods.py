"""Methods of clustering by the names that the command line and results give them.

Imports nothing: the help of the command line lists them.
"""

# The class of the package that fits each of them.
METHODS = {
    "mrshc": "MrSHC",
    "shc": "SHC",
    "hc": "HighVarianceHC",  # on all features
    "hmv": "HighVarianceHC",
}
