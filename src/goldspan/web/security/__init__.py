"""Who is who, and what nobody may do: secrets, links, sessions, passwords, limits, headers."""

from goldspan._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
