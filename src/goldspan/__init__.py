"""goldspan: turn the annotations of several people into gold labels with a confidence.

Everything is imported at first use, so that `import goldspan` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy
from goldspan._version import __version__

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus, aggregate
    from goldspan.crowd import Crowd, agreement, read_crowd, write_crowd
    from goldspan.crowd.measures import score
    from goldspan.crowd.model import Tagset
    from goldspan.spans import Span

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
    "Consensus": "goldspan.aggregation",
    "Crowd": "goldspan.crowd",
    "Span": "goldspan.spans",
    "Tagset": "goldspan.crowd.model",
    "aggregate": "goldspan.aggregation",
    "agreement": "goldspan.crowd",
    "read_crowd": "goldspan.crowd",
    "score": "goldspan.crowd.measures",
    "write_crowd": "goldspan.crowd",
}

__getattr__ = lazy(__name__, _HOME)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
