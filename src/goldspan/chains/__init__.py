"""Inference on chains of J tags, by kernels of Numba; `step` has the previous tag in rows."""

from goldspan._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
