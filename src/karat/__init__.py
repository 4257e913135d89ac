"""karat: from a crowd of imperfect annotators to gold.

Everything is imported at first use, so that `import karat` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Consensus": "karat.aggregate",
    "Crowd": "karat.crowd",
    "Span": "karat.spans",
    "Tagset": "karat.crowd",
    "aggregate": "karat.aggregate",
    "agreement": "karat.crowd",
    "read_crowd": "karat.crowd",
    "score": "karat.spans",
    "write_crowd": "karat.crowd",
}

__all__ = sorted([*_HOME, "__version__"])

if TYPE_CHECKING:
    from karat.aggregate import Consensus, aggregate
    from karat.crowd import Crowd, Tagset, agreement, read_crowd, write_crowd
    from karat.spans import Span, score


def __getattr__(name: str) -> Any:
    """Import a public name from its room at first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
