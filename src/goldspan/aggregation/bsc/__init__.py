"""Bayesian sequence combination and the Dawid–Skene family (docs/math.md, sections 3, 4, 7)."""

from goldspan._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
