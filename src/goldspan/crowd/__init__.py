"""Crowds: items, workers, answers and gold; reading, writing, agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.crowd.builder import CrowdBuilder as CrowdBuilder
    from goldspan.crowd.io import convert_crowd as convert_crowd
    from goldspan.crowd.io import read_crowd as read_crowd
    from goldspan.crowd.io import read_layers as read_layers
    from goldspan.crowd.io import write_crowd as write_crowd
    from goldspan.crowd.layers import Layers as Layers
    from goldspan.crowd.measures import agreement as agreement
    from goldspan.crowd.model import Answers as Answers
    from goldspan.crowd.model import Crowd as Crowd
    from goldspan.crowd.options import ReadOptions as ReadOptions

__getattr__, __dir__, __all__ = lazy(__name__)
