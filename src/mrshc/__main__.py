"""Run the command line by `python -m mrshc`."""

from mrshc.app.cli import main

if __name__ == "__main__":
    main()
