"""The `goldspan` command: a thin shell over the library; see `goldspan.cli.app`."""

from goldspan.cli.app import app, main

__all__ = ["app", "main"]
