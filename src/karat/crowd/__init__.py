"""Crowds: items, workers, answers and gold; reading, writing, agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.crowd.builder import CrowdBuilder
    from karat.crowd.convert import convert_crowd
    from karat.crowd.io import read_crowd, write_crowd
    from karat.crowd.measures import Agreement, agreement
    from karat.crowd.model import Answers, Crowd, Tagset
    from karat.crowd.options import ReadOptions
    from karat.crowd.report import ImportReport

__all__ = [
    "Agreement",
    "Answers",
    "Crowd",
    "CrowdBuilder",
    "ImportReport",
    "ReadOptions",
    "Tagset",
    "agreement",
    "convert_crowd",
    "read_crowd",
    "write_crowd",
]

_HOME = {
    "Agreement": "karat.crowd.measures",
    "Answers": "karat.crowd.model",
    "Crowd": "karat.crowd.model",
    "CrowdBuilder": "karat.crowd.builder",
    "ImportReport": "karat.crowd.report",
    "ReadOptions": "karat.crowd.options",
    "Tagset": "karat.crowd.model",
    "agreement": "karat.crowd.measures",
    "convert_crowd": "karat.crowd.convert",
    "read_crowd": "karat.crowd.io",
    "write_crowd": "karat.crowd.io",
}

__getattr__ = lazy(__name__, _HOME)
