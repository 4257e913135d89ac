"""`python -m goldspan`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:  # Python has put the working folder there
        del sys.path[0]  # nothing is imported that lies beside a plan
    from goldspan import cli

    cli.main()
