"""Run the command line, by `mrshc` or by `python -m mrshc`."""

import os
import sys

from mrshc.errors import MissingPackageError
from mrshc.optional_packages import CLI_PACKAGES, require_packages


def main() -> None:
    """Run the command line; print a message and exit with code 2 if its packages are missing."""
    try:
        require_packages(CLI_PACKAGES, purpose="The command line", extra="all")
    except MissingPackageError as error:
        sys.stderr.write(f"mrshc: {error}\n")
        sys.exit(2)
    os.environ["MPLBACKEND"] = "agg"  # pictures are written to files; another value may be invalid
    # Imported here, since the module imports the packages that are checked above.
    from mrshc.app.cli import main as run

    run()


if __name__ == "__main__":
    main()
