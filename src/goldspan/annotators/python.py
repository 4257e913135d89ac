"""Any Python function as an annotator: `label(items)` returns what it marked in every item."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast

from goldspan.annotators.base import (
    AnnotationTask,
    Annotator,
    ItemAnswer,
    SoftSpan,
    WorkerEntry,
    answer_of_tags,
    priced,
)
from goldspan.annotators.placing import place_characters, with_text
from goldspan.crowd.questions import Questions
from goldspan.errors import InputError
from goldspan.params import Whole
from goldspan.plugins import plugins
from goldspan.protocols import PoolItem

# --------------------------------------------------------------------------------------------------
# Answers of functions and taggers, kept on the disk a batch at a time.
#
# Where the task names a folder (`answers`), as in campaigns, a batch is kept in `answers.sqlite` in
# one transaction before its first answer is used: after a break nothing that was computed is
# computed again, even if the function draws at random or pays for what it does. An answer is known
# by the annotator's kind, options and version (the source of a function, the bytes of a model), by
# the labels of the task and by the item.


FILE = "answers.sqlite"
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID"


class Batched(Annotator):
    """An annotator that works on this machine, on batches of items; its options have `batch`."""

    @abstractmethod
    def work(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Return an answer for each of some items that have texts, without their costs."""

    @abstractmethod
    def version(self) -> str:
        """Return what changes when the same items may be answered otherwise."""

    @cached_property
    @abstractmethod
    def loaded(self) -> Callable[[Sequence[PoolItem]], Any]:
        """What it works with: a function of items."""

    def load(self) -> None:
        """Load what it works with."""
        _ = self.loaded

    @property
    def batch(self) -> int:
        """Items that it works on at once."""
        return int(self.options.batch)

    def label(self, items: Sequence[PoolItem]) -> Iterator[ItemAnswer]:
        """Yield the answers, a batch at a time; those that are kept are not computed again."""
        waiting = iter(items)
        while batch := [with_text(item) for item in islice(waiting, self.batch)]:
            for item, answer in zip(batch, self._answers_to(batch), strict=True):
                yield priced(self, item, answer)

    def _answers_to(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Return the answers that are kept; where one is missing, work on the whole batch."""
        if self._kept is None:
            return self.work(batch)
        keys = [self._key(item) for item in batch]
        found = self._kept.read(keys)
        if any(answer is None for answer in found):
            self._kept.add(keys, self.work(batch))
            found = self._kept.read(keys)
        return [answer for answer in found if answer is not None]

    @cached_property
    def _kept(self) -> _Answers | None:
        return None if self.task.answers is None else _Answers(self.task.answers)

    @cached_property
    def _head(self) -> list[Any]:
        """What all answers of this annotator have in common."""
        asked = self.task.questions or self.task.codec
        return [self.entry.kind, asdict(self.options), self.version(), asked.encoding, *asked.tags]

    def _key(self, item: PoolItem) -> str:
        words = [self._head, item.id, item.text, [*item.tokens], item.group]
        return blake2b(json.dumps(words, default=str).encode(), digest_size=16).hexdigest()

    def close(self) -> None:
        """Close the file of answers."""
        if "_kept" in vars(self) and self._kept is not None:
            self._kept.close()


class _Answers:
    """Answers by their keys, in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Whichever thread is the last to know it closes it.
            self._base = sqlite3.connect(
                self._file, timeout=60, isolation_level=None, check_same_thread=False
            )
            self._file.chmod(0o600)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute(_TABLE)
        except OSError as error:
            raise InputError(f"cannot keep answers in {folder}: {error.strerror}") from None
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def read(self, keys: Sequence[str]) -> list[ItemAnswer | None]:
        """Return the answers of some keys, None where there is none."""
        query = "SELECT answer FROM answers WHERE key = ?"
        try:
            rows = [self._base.execute(query, (key,)).fetchone() for key in keys]
            return [None if row is None else _read(json.loads(row[0])) for row in rows]
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise self._damaged(error) from None

    def add(self, keys: Sequence[str], answers: Sequence[ItemAnswer]) -> None:
        """Keep answers, all or none; those that are there stay."""
        rows = [(k, json.dumps(_plain(one))) for k, one in zip(keys, answers, strict=True)]
        try:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self._file} cannot be used ({error}): is the disk full, or is it another file? "
            "Where it is removed, what was under way is computed again"
        )


def _plain(answer: ItemAnswer) -> dict[str, Any]:
    """Return an answer as JSON holds it."""
    return {
        "item": answer.item,
        "spans": answer.spans,
        "classes": None if answer.classes is None else dict(answer.classes),
        "tags": answer.tags,
        "missing": answer.missing,
        "unplaced": answer.unplaced,
        "unsure": answer.unsure,
        "layers": answer.layers,
    }


def _read(found: dict[str, Any]) -> ItemAnswer:
    spans, tags = found["spans"], found["tags"]
    return ItemAnswer(
        found["item"],
        None if spans is None else tuple(SoftSpan(*span) for span in spans),
        found["classes"],
        None if tags is None else tuple(tags),
        found["missing"],
        unplaced=tuple(found["unplaced"]),
        unsure=tuple(found.get("unsure", ())),
        layers=found.get("layers"),
        repeated=True,
    )


def digest_of(path: Path) -> str:
    """Return a hash of a file, or of all files of a folder with their names."""
    found = blake2b(digest_size=16)
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for file in files:
        found.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as source:
            while block := source.read(1 << 20):
                found.update(block)
    return found.hexdigest()


# --------------------------------------------------------------------------------------------------
# A function, and what it may return.


GROUP = "goldspan.annotators"
"""Entry points of functions that can be called by name."""


@dataclass(frozen=True)
class PythonOptions:
    """What the kind "python" takes."""

    # The function: "module:function", or its name under the entry points "goldspan.annotators"
    call: str
    batch: Annotated[int, Whole(1)] = 32  # Items that are given to it at once


class PythonCallable(Batched):
    """A function that is given items and returns, for each of them and in their order, its answer.

    Items are `goldspan.protocols.PoolItem` objects with `id`, `text`, `tokens`, `token_start`. An
    answer about spans is a list of dicts with `start`, `end` (characters of the text), `label` and,
    if there is one, `probability` (or `score`), or of tuples in this order; or a tag per token. A
    single label is a name, or a dict of probabilities by name. To a task of several layers it is a
    dict with spans, a name or a list of names by layer. None means that there is no answer.
    """

    Options = PythonOptions

    @cached_property
    def loaded(self) -> Callable[[Sequence[PoolItem]], Any]:
        """The function."""
        (place, name), who = self._code, f"worker {self.id}"
        try:
            found: Any = _module(place)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, OSError) as error:
            raise InputError(f"{who}: cannot import {place}: {error}") from error
        except AttributeError:
            raise InputError(f"{who}: {place} has no function {name!r}") from None
        if not callable(found):
            raise InputError(f"{who}: {self.options.call} is not a function")
        return cast("Callable[[Sequence[PoolItem]], Any]", found)

    @cached_property
    def _code(self) -> tuple[str, str]:
        return code_of(self.entry, self.task.allow_code)

    def work(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Call the function, and read what it returned."""
        try:
            given = list(self.loaded(batch))
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
        file = getattr(_module(self._code[0]), "__file__", None)
        return digest_of(Path(file)) if file and Path(file).is_file() else ""


def answer_of(item: PoolItem, value: Any, task: AnnotationTask, who: str) -> ItemAnswer:
    """Read what a function returned for an item."""
    if value is None:
        return ItemAnswer(item.id, missing="none was given")
    if task.questions is not None:
        return _of_layers(item, value, task.questions, f"{who}, item {item.id}")
    if task.is_single:
        return _single(item, value, task, who)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(
            f"{who}, item {item.id}: spans must be a list of {{'start', 'end', 'label'}} or of "
            f"tags, not {value!r:.80}"
        )
    if value and all(isinstance(one, str) for one in value):
        return _of_tags(item, value, task, who)
    said = [_span(one, f"{who}, item {item.id}") for one in value]
    return place_characters(item, said, task.names).answer(item)


def _of_layers(item: PoolItem, value: Any, questions: Questions, where: str) -> ItemAnswer:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: give a dict by layer, not {value!r:.80}")
    found, unplaced = dict(value), list[str]()
    for one in questions.each:
        given = found.get(one.name)
        if one.kind == "spans" and isinstance(given, list | tuple):
            said = [_span(span, f"{where}: {one.name}") for span in given]
            placed = place_characters(item, said, one.names, overlapping=one.overlapping)
            found[one.name], unplaced = placed.likely, [*unplaced, *placed.unplaced]
            if placed.unsure:  # a layer holds no tokens without a label
                why = f"not all spans of {one.name} can be placed"
                return ItemAnswer(item.id, missing=why, unplaced=tuple(unplaced))
    try:
        layers = questions.clean(found, len(item.tokens))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return ItemAnswer(item.id, layers=layers, unplaced=tuple(unplaced))


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


def code_of(entry: WorkerEntry, allow_code: Collection[str]) -> tuple[str, str]:
    """Return the module, or the file, and the function that an entry names, if it may run.

    A plan is data, whoever wrote it: nothing is imported here. Entry points were allowed when they
    were installed.
    """
    call, who = str(entry.options["call"]), f"worker {entry.id}"
    place = call if ":" in call else plugins(GROUP).get(call, "")
    module, _, name = place.partition(":")
    if not (module and name):
        known = ", ".join(plugins(GROUP)) or "none is installed"
        raise InputError(
            f"{who}: {call!r} must look like module:function, or be an entry point of {GROUP} "
            f"({known})"
        )
    if place != call or module in allow_code:
        return module, name
    parts = tuple(module.split("."))
    for file in (Path(one) for one in allow_code if one.endswith(".py")):
        if file.with_suffix("").parts[-len(parts) :] == parts:
            return str(file.resolve()), name
    raise InputError(
        f"{who} runs code of the module {module}: if you trust it, add --allow-code {module}, or "
        f"for a file its path, --allow-code ./{'/'.join(parts)}.py"
    )


def _module(place: str) -> ModuleType:
    """Import a module, or a file under its path as a name, which hides no module."""
    if place in sys.modules:  # also "./rules.py", which import_module takes for a relative name
        return sys.modules[place]
    if not place.endswith(".py"):
        return import_module(place)
    spec: Any = spec_from_file_location(place, place)
    sys.modules[place] = made = module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[place]
        raise
    return made


def nothing(items: Sequence[PoolItem]) -> list[list[Any]]:
    """Mark nothing in any item: a function to begin with, and for tests."""
    return [[] for _ in items]
