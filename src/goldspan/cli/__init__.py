"""The `goldspan` command: a thin shell over the library; see `goldspan.cli.app`."""

from goldspan._lazy import lazy
from goldspan.cli.app import app as app
from goldspan.cli.app import main as main

__getattr__, __dir__, __all__ = lazy(__name__)
