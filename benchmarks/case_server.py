"""Run cases of the benchmarks, each in a new fork of a process that has imported the package.

Standard input has a request per line: the module, the function and its arguments as JSON. Standard
output gets two lines for each case: its figures as JSON, and the seconds of processor time. A fork
has neither compiled functions nor memory of earlier cases, and does not spend seconds on importing
packages.
"""

import json
import os
import sys
from importlib import import_module

import cases  # noqa: F401 - the module that takes long to import; forks find it loaded


def main():
    """Answer requests until standard input ends, or until a case fails."""
    for request in sys.stdin:
        module, function, arguments = json.loads(request)
        fork = os.fork()
        if not fork:
            figures = getattr(import_module(module), function)(**arguments)
            sys.stdout.write(json.dumps(figures) + "\n")
            return
        _, status, used = os.wait4(fork, 0)
        if status:
            sys.exit(1)
        sys.stdout.write(f"{used.ru_utime + used.ru_stime}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
