"""goldspan: turn the annotations of several people into gold labels with a confidence.

Everything is imported at first use, so that `import goldspan` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy
from goldspan._version import __version__ as __version__

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus as Consensus
    from goldspan.aggregation import aggregate as aggregate
    from goldspan.auditing import audit as audit
    from goldspan.auditing import draw_audit as draw_audit
    from goldspan.crowd import Crowd as Crowd
    from goldspan.crowd import Layers as Layers
    from goldspan.crowd import agreement as agreement
    from goldspan.crowd import read_crowd as read_crowd
    from goldspan.crowd import read_layers as read_layers
    from goldspan.crowd import write_crowd as write_crowd
    from goldspan.crowd.measures import score as score
    from goldspan.crowd.model import Tagset as Tagset
    from goldspan.spans import Span as Span

__getattr__, __dir__, __all__ = lazy(__name__)
