"""`python -m goldspan`."""

from goldspan.cli import main

if __name__ == "__main__":
    main()
