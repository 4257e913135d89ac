"""The kinds of annotators by name, and how an entry of a plan becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goldspan.annotators.base import KEYS, AnnotationTask, Annotator, Tariff, WorkerEntry
from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import load

KINDS: dict[str, tuple[str, str]] = {
    "llm": (
        "goldspan.annotators.llm:LanguageModel",
        "a language model behind an endpoint of the OpenAI protocol",
    ),
    "python": ("goldspan.annotators.python:PythonCallable", "any function label(items)"),
    "tagger": (
        "goldspan.annotators.tagger:TrainedTagger",
        "a tagger of goldspan, spaCy, Hugging Face or GLiNER",
    ),
    "simulated": ("goldspan.annotators.crowds:Simulated", "a simulated worker who knows the truth"),
    "replay": ("goldspan.annotators.crowds:Replayed", "a worker of a recorded crowd"),
}
"""Annotators that answer when they are called. A new kind is a class and a line here."""
WAITED_FOR = ("people", "files")
"""Annotators that answer when they like: a campaign collects their answers."""


def read_worker(given: Mapping[str, Any]) -> WorkerEntry:
    """Read the entry of an annotator and check it; nothing is imported but its kind.

    Args:
        given: `kind`; `id` (by default the kind), `family`, `limit`, `prices` (a table), `probe`,
            and what the kind takes.

    Raises:
        InputError: Something is missing or makes no sense.
        UnknownNameError: There is no such kind.

    >>> read_worker({"kind": "python", "call": "my_rules:label", "family": "rules"}).family
    'rules'
    """
    kind = given.get("kind")
    if kind not in KINDS and kind not in WAITED_FOR:
        raise UnknownNameError("kind of worker", kind, [*KINDS, *WAITED_FOR])
    name = given.get("id", kind)
    if not isinstance(name, str) or not name:
        raise InputError(f"the id of a worker must be a name, not {name!r}")
    family, limit = given.get("family", ""), given.get("limit")
    if not isinstance(family, str):
        raise InputError(f"worker {name}: family must be a name, not {family!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InputError(f"worker {name}: limit must be a number of answers, not {limit!r}")
    try:
        tariff = Tariff.read(given.get("prices", {}))
    except InputError as error:
        raise InputError(f"worker {name}: {error}") from None
    probe = given.get("probe", False)
    if not isinstance(probe, bool):
        raise InputError(f"worker {name}: probe must be true or false, not {probe!r:.80}")
    if probe and kind in WAITED_FOR:
        raise InputError(
            f"worker {name}: a probe labels silently when it is called, and {kind} answer when "
            f"they like (choose from {', '.join(KINDS)})"
        )
    options = {key: value for key, value in given.items() if key not in KEYS}
    entry = WorkerEntry(name, str(kind), family, limit, tariff, options, probe)
    if kind in KINDS:
        _class_of(entry).read_options(entry)
    return entry


def open_annotator(entry: WorkerEntry | Mapping[str, Any], task: AnnotationTask) -> Annotator:
    """Return the annotator of an entry.

    Raises:
        InputError: The entry, or a file that it names, is faulty.
        MissingExtraError: What it needs is not installed.

    >>> from goldspan.protocols import PoolItem
    >>> from goldspan.spans import Codec
    >>> task = AnnotationTask(Codec.from_types(["PER"]))
    >>> entry = {"kind": "python", "call": "goldspan.annotators.python:nothing"}
    >>> with open_annotator(entry, task) as annotator:
    ...     [answer.spans for answer in annotator.label([PoolItem("1", ("Ann", "sang"))])]
    [()]
    """
    found = entry if isinstance(entry, WorkerEntry) else read_worker(entry)
    if found.kind not in KINDS:
        raise InputError(
            f"worker {found.id}: workers of the kind {found.kind!r} answer when they like, not when"
            f" they are called: they are asked by a campaign (choose from {', '.join(KINDS)})"
        )
    return _class_of(found)(found, task)


def _class_of(entry: WorkerEntry) -> type[Annotator]:
    found: type[Annotator] = load(KINDS[entry.kind][0])
    return found
