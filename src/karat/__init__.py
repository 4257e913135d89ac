"""karat: from a crowd of imperfect annotators to gold.

Everything is imported at first use, so that `import karat` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.aggregate import Consensus, aggregate
    from karat.crowd import Crowd, Tagset, agreement, read_crowd, write_crowd
    from karat.spans import Span, score

__version__ = "0.1.0"

__all__ = [
    "Consensus",
    "Crowd",
    "Span",
    "Tagset",
    "__version__",
    "aggregate",
    "agreement",
    "read_crowd",
    "score",
    "write_crowd",
]

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

__getattr__ = lazy(__name__, _HOME)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
