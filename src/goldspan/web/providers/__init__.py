"""Where workers come from: links of one's own, or a crowd from outside."""

from goldspan._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
