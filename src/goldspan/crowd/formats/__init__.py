"""One file per format; see `crowd/registry.py` for what a format has."""

from goldspan._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
