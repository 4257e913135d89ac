"""Annotators behind one face: language models, Python callables, taggers, recorded workers.

`open_annotator(entry, task)` makes an `Annotator`, and `Annotator.label(items)` yields an
`ItemAnswer` per item: what it marked, with probabilities, or why there is no answer, and its cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.annotators.base import (
        AnnotationTask,
        Annotator,
        Estimate,
        ItemAnswer,
        SoftSpan,
        WorkerEntry,
    )
    from goldspan.annotators.registry import open_annotator, read_worker

__all__ = [
    "AnnotationTask",
    "Annotator",
    "Estimate",
    "ItemAnswer",
    "SoftSpan",
    "WorkerEntry",
    "open_annotator",
    "read_worker",
]

_BASE = "goldspan.annotators.base"
__getattr__ = lazy(
    __name__,
    {
        "AnnotationTask": _BASE,
        "Annotator": _BASE,
        "Estimate": _BASE,
        "ItemAnswer": _BASE,
        "SoftSpan": _BASE,
        "WorkerEntry": _BASE,
        "open_annotator": "goldspan.annotators.registry",
        "read_worker": "goldspan.annotators.registry",
    },
)
