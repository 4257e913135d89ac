"""Annotators behind one face: language models, Python callables, taggers, recorded workers.

`open_annotator(entry, task)` makes an `Annotator`, and `Annotator.label(items)` yields an
`ItemAnswer` per item: what it marked, with probabilities, or why there is no answer, and its cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.annotators.base import AnnotationTask as AnnotationTask
    from goldspan.annotators.base import Annotator as Annotator
    from goldspan.annotators.base import Estimate as Estimate
    from goldspan.annotators.base import ItemAnswer as ItemAnswer
    from goldspan.annotators.base import SoftSpan as SoftSpan
    from goldspan.annotators.base import WorkerEntry as WorkerEntry
    from goldspan.annotators.base import open_annotator as open_annotator
    from goldspan.annotators.base import read_worker as read_worker

__getattr__, __dir__, __all__ = lazy(__name__)
