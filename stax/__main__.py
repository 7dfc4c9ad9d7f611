"""`python -m stax` is `stax`."""

from stax.cli.app import main

if __name__ == "__main__":
    main()
