"""Any Python function as an annotator: `label(items)` returns what it marked in every item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from goldspan.annotators.base import AnnotationTask, ItemAnswer, WorkerEntry, answer_of_tags
from goldspan.annotators.computed import Batched, digest_of
from goldspan.annotators.placing import place_characters
from goldspan.errors import InputError
from goldspan.params import Whole
from goldspan.plugins import plugins
from goldspan.protocols import PoolItem

GROUP = "goldspan.annotators"
"""Entry points of functions that can be called by name."""


@dataclass(frozen=True)
class PythonOptions:
    """What the kind "python" takes.

    Attributes:
        call: The function: "module:function", or its name under the entry points
            "goldspan.annotators".
        batch: Items that are given to it at once.
    """

    call: str
    batch: Annotated[int, Whole(1)] = 32


class PythonCallable(Batched):
    """A function that is given items and returns, for each of them and in their order, its answer.

    Items are `goldspan.protocols.PoolItem` objects with `id`, `text`, `tokens`, `token_start`. An
    answer about spans is a list of dicts with `start`, `end` (characters of the text), `label` and,
    if there is one, `probability` (or `score`), or of tuples in this order; or a tag per token. A
    single label is a name, or a dict of probabilities by name. None means that there is no answer.
    """

    Options = PythonOptions

    def __init__(self, entry: WorkerEntry, task: AnnotationTask) -> None:
        super().__init__(entry, task)
        self._function = _function(self.options.call, entry.id)

    def work(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Call the function, and read what it returned."""
        try:
            given = list(self._function(batch))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise InputError(
                f"worker {self.id}: {self.options.call} failed on items {batch[0].id} to "
                f"{batch[-1].id}: {why}"
            ) from error
        if len(given) != len(batch):
            raise InputError(
                f"worker {self.id}: {self.options.call} returned {len(given)} answers for "
                f"{len(batch)} items: it must return one per item, None where it has none"
            )
        who = f"worker {self.id}"
        return [answer_of(i, value, self.task, who) for i, value in zip(batch, given, strict=True)]

    def version(self) -> str:
        """Return a hash of the file that holds the function; "" where there is none."""
        module = import_module(_place(self.options.call).partition(":")[0])
        file = getattr(module, "__file__", None)
        return digest_of(Path(file)) if file and Path(file).is_file() else ""


def answer_of(item: PoolItem, value: Any, task: AnnotationTask, who: str) -> ItemAnswer:
    """Read what a function returned for an item."""
    if value is None:
        return ItemAnswer(item.id, missing="none was given")
    if task.is_single:
        return _single(item, value, task, who)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(
            f"{who}, item {item.id}: spans must be a list of {{'start', 'end', 'label'}} or of "
            f"tags, not {value!r:.80}"
        )
    if value and all(isinstance(one, str) for one in value):
        return _of_tags(item, value, task, who)
    placed = place_characters(
        item, [_span(one, f"{who}, item {item.id}") for one in value], task.names
    )
    return ItemAnswer(item.id, spans=tuple(placed.spans), unplaced=tuple(placed.unplaced))


def _of_tags(item: PoolItem, tags: Sequence[str], task: AnnotationTask, who: str) -> ItemAnswer:
    if len(tags) != len(item.tokens):
        raise InputError(f"{who}, item {item.id}: {len(tags)} tags for {len(item.tokens)} tokens")
    unknown = [tag for tag in tags if tag not in task.codec.index]
    if unknown:
        known = ", ".join(task.codec.tags)
        raise InputError(f"{who}, item {item.id}: tag {unknown[0]!r:.60} is not in {known}")
    return answer_of_tags(item, tags, task.codec)


def _span(value: Any, where: str) -> tuple[str, int, int, float]:
    """Read a span: a dict, or start, end, label and perhaps a probability."""
    if isinstance(value, Mapping):
        sure = value.get("probability", value.get("score", 1.0))
        parts = [value.get("start"), value.get("end"), value.get("label"), sure]
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) in {3, 4}:
        parts = [*value, 1.0][:4]
    else:
        parts = []
    whole = [type(one) is int for one in parts[:2]] == [True, True]
    if not whole or not isinstance(parts[2], str) or not _is_share(parts[3]):
        raise InputError(
            f"{where}: a span has start and end (characters), a label, and perhaps a probability "
            f"from 0 to 1; not {value!r:.80}"
        )
    return parts[2], parts[0], parts[1], float(parts[3])


def _single(item: PoolItem, value: Any, task: AnnotationTask, who: str) -> ItemAnswer:
    shares = {value: 1.0} if isinstance(value, str) else value
    if not isinstance(shares, Mapping) or not all(
        isinstance(key, str) and _is_number(one) and one >= 0 for key, one in shares.items()
    ):
        raise InputError(
            f"{who}, item {item.id}: a single label is a name, or a dict of probabilities by name; "
            f"not {value!r:.80}"
        )
    known = {name: float(shares[name]) for name in task.names if shares.get(name)}
    unknown = tuple(
        f"{name!r:.60} is not a label of the task" for name in shares if name not in task.names
    )
    total = sum(known.values())
    if not total > 0:
        return ItemAnswer(item.id, missing="no label of the task was given", unplaced=unknown)
    classes = {name: one / total for name, one in known.items()}
    return ItemAnswer(item.id, classes=classes, unplaced=unknown)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool | str) and math.isfinite(value)
    except TypeError:
        return False


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _function(call: str, worker: str) -> Callable[[Sequence[PoolItem]], Any]:
    """Import a function by "module:function" or by the name of an entry point."""
    place = _place(call)
    if not place:
        known = ", ".join(plugins(GROUP)) or "none is installed"
        raise InputError(
            f"worker {worker}: {call!r} must look like module:function, or be an entry point of "
            f"{GROUP} ({known})"
        )
    module, _, name = place.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise InputError(f"worker {worker}: cannot import {module}: {error}") from error
    except AttributeError:
        raise InputError(f"worker {worker}: {module} has no function {name!r}") from None
    if not callable(found):
        raise InputError(f"worker {worker}: {place} is not a function")
    function: Callable[[Sequence[PoolItem]], Any] = found
    return function


def _place(call: str) -> str:
    """Return "module:function" of a function by this or by the name of an entry point, else ""."""
    return call if ":" in call else plugins(GROUP).get(call, "")


def nothing(items: Sequence[PoolItem]) -> list[list[Any]]:
    """Mark nothing in any item: a function to begin with, and for tests."""
    return [[] for _ in items]
