"""Crowds: items, workers, answers and gold; reading, writing, agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.crowd.builder import CrowdBuilder
    from goldspan.crowd.io import convert_crowd, read_crowd, write_crowd
    from goldspan.crowd.measures import agreement
    from goldspan.crowd.model import Answers, Crowd
    from goldspan.crowd.options import ReadOptions

__all__ = [
    "Answers",
    "Crowd",
    "CrowdBuilder",
    "ReadOptions",
    "agreement",
    "convert_crowd",
    "read_crowd",
    "write_crowd",
]

_HOME = {
    "Answers": "goldspan.crowd.model",
    "Crowd": "goldspan.crowd.model",
    "CrowdBuilder": "goldspan.crowd.builder",
    "ReadOptions": "goldspan.crowd.options",
    "agreement": "goldspan.crowd.measures",
    "convert_crowd": "goldspan.crowd.io",
    "read_crowd": "goldspan.crowd.io",
    "write_crowd": "goldspan.crowd.io",
}

__getattr__ = lazy(__name__, _HOME)
