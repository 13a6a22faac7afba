"""`python -m ewe` is the command `ewe`."""

from ewe.cli.main import main

if __name__ == "__main__":
    main()
