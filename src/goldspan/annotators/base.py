"""What every annotator is that answers when it is called: an entry of a plan, a task, an answer.

`Annotator.label(items)` gives one `ItemAnswer` per item, in the order of the items: spans or a
distribution over labels, each with its probability; or nothing, with the reason, which is not the
same as "nothing here". `Annotator.estimate(items)` says before anything is sent what the answers
will cost at most. Money is in millionths of the currency unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from goldspan.errors import InputError, UnknownNameError
from goldspan.money import MICRO, to_micro
from goldspan.params import check_parameters, parameters
from goldspan.plugins import load
from goldspan.protocols import PoolItem
from goldspan.spans import Codec, Span, parse, write

if TYPE_CHECKING:
    from goldspan.crowd.questions import Answer, Questions

# --------------------------------------------------------------------------------------------------
# What an annotator is paid, and what a call of a model used.


@dataclass(frozen=True)
class Usage:
    """Calls of a model and the tokens of the model that they took."""

    calls: int = 0  # Calls that were, or may have been, paid
    input_tokens: int = 0  # Tokens that were sent
    output_tokens: int = 0  # Tokens that came back
    assumed: int = 0  # Calls among them of which the endpoint did not say what they used

    def __add__(self, other: Usage) -> Usage:
        """Add what was used."""
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.assumed + other.assumed,
        )


@dataclass(frozen=True)
class Tariff:
    """What an annotator is paid: per answer, per token of the item, per token of a model.

    >>> tariff = Tariff.read({"per_thousand_input": 0.00015, "per_thousand_output": "0.0006"})
    >>> tariff.cost(12, Usage(1, input_tokens=400, output_tokens=50))
    90
    """

    answer_micro: int = 0  # For an answer, in millionths of the currency unit
    token_micro: int = 0  # For a token of the item, in millionths
    input_micro: int = 0  # For a million tokens that are sent to a model, in millionths
    output_micro: int = 0  # For a million tokens that a model writes, in millionths

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Tariff:
        """Read `per_answer`, `per_token`, `per_thousand_input` and `per_thousand_output`."""
        if not isinstance(given, Mapping):
            raise InputError(f"prices must be a table such as {{ per_answer = 0.02 }}, not {given}")
        for name in given:
            if name not in _PRICES:
                raise UnknownNameError("price", name, _PRICES)
        # A token costs less than a millionth: the amounts per million tokens are whole.
        thousand = {
            name: to_micro(_times(given[name], 1000), f"prices.{name}, times 1000,")
            for name in given
            if name in _PRICES[2:]
        }
        one = {
            name: to_micro(given[name], f"prices.{name}") for name in given if name in _PRICES[:2]
        }
        found = one | thousand
        return cls(*(found.get(name, 0) for name in _PRICES))

    def cost(self, n_tokens: int, usage: Usage = Usage(), *, answered: bool = True) -> int:
        """Return what an answer costs, in millionths; parts of them are rounded up once."""
        model = usage.input_tokens * self.input_micro + usage.output_tokens * self.output_micro
        own = self.answer_micro + self.token_micro * n_tokens if answered else 0
        return own + -(-model // MICRO)


_PRICES = ("per_answer", "per_token", "per_thousand_input", "per_thousand_output")


def _times(amount: Any, factor: int) -> Any:
    """Multiply an amount of money exactly; what is no number stays, to be rejected by name."""
    try:
        return amount if isinstance(amount, bool) else Decimal(str(amount).strip()) * factor
    except ArithmeticError:
        return amount


@dataclass(frozen=True)
class Estimate:
    """What answers will cost, known before anything is sent."""

    answers: int = 0  # Items that will be asked about
    cached: int = 0  # Items among them whose replies are stored: they cost nothing more
    same_text: int = 0  # Items among those that have the text of another, and share its reply
    input_tokens: int = 0  # Tokens of the model that are expected to be sent
    output_tokens: int = 0  # Tokens that are expected to come back
    expected_micro: int = 0  # What that costs, in millionths of the currency unit
    most_micro: int = 0  # The most that it can cost, every repetition counted


# --------------------------------------------------------------------------------------------------
# An answer: spans or labels with their probabilities, or nothing and why.


class SoftSpan(NamedTuple):
    """A span of tokens that an annotator marked, with a probability."""

    type: str  # For example "PER"
    start: int  # First token
    end: int  # One past the last token
    probability: float = 1.0  # How sure the annotator is; 1 where it does not say


@dataclass(frozen=True)
class ItemAnswer:
    """What an annotator answered about one item.

    Exactly one of `spans`, `classes`, `layers` and `missing` is given.

    >>> ItemAnswer("s1", spans=(SoftSpan("PER", 0, 1, 0.9),)).labels(Codec.from_types(["PER"]), 2)
    ['B-PER', 'O']
    """

    item: str  # Its id
    spans: tuple[SoftSpan, ...] | None = None  # Of tokens, in order; none means "nothing here"
    classes: Mapping[str, float] | None = None  # Probabilities of labels that sum to 1
    # The hard labels, of annotators that decide themselves; None where a token was skipped
    tags: tuple[str | None, ...] | None = None
    missing: str = ""  # Why there is no answer: refused, cut, invalid, …
    cost: int = 0  # In millionths of the currency unit, also where nothing came of it
    usage: Usage = Usage()  # What a model used
    unplaced: tuple[str, ...] = ()  # What was said and has no place in the text
    unsure: tuple[int, ...] = ()  # Tokens that this may be about: where they have no span, no label
    layers: Answer | None = None  # By layer, as `Questions.clean` gives it
    # Whether it was stored before: `cost` and `usage` are what was paid then
    repeated: bool = field(default=False, compare=False)

    def labels(self, codec: Codec, n_tokens: int) -> Any:
        """Return the hard labels, one per token, or by layer; None where there is no answer.

        A token has None in the place of a label where something was said of it that has no place.
        Where the annotator decided, it is what it says. Else spans that are less likely than not
        are left out; of spans that overlap the likelier one stays. Of single labels the likeliest
        counts, of equals the first of the tag set.
        """
        if self.layers is not None:
            return {**self.layers}
        tags: Sequence[str | None] | None = self.tags
        if tags is None and self.classes is not None:
            shares = self.classes
            return [max(codec.tags, key=lambda tag: shares.get(tag, 0.0))] * n_tokens
        if tags is None and self.spans is not None:
            likely = [span for span in self.spans if span.probability >= 0.5]
            tags = written(likely, n_tokens, codec)
        if tags is None:
            return None
        unsure = {*self.unsure}
        return [None if n in unsure and tag == "O" else tag for n, tag in enumerate(tags)]


def without_overlaps(spans: Sequence[SoftSpan]) -> list[SoftSpan]:
    """Return spans in order; of those that overlap the likelier stays, of equals the earlier."""
    kept: list[SoftSpan] = []
    for span in sorted(spans, key=lambda one: (-one.probability, one.start, one.end, one.type)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda one: one.start)


def written(spans: Sequence[SoftSpan], n_tokens: int, codec: Codec) -> tuple[str, ...]:
    """Return the tags of spans, however likely they are; of those that overlap the likelier."""
    kept = [Span(*span[:3]) for span in without_overlaps(spans)]
    return tuple(write(kept, n_tokens, codec.encoding))


def answer_of_tags(item: PoolItem, tags: Sequence[str | None], codec: Codec) -> ItemAnswer:
    """Return the answer that some tags are; None where a token was skipped."""
    # Its spans are those that conlleval reads, its tags stay as they are
    kept = tuple(tags)
    if codec.rules.is_plain:
        shares = Counter(tag for tag in tags if tag is not None)
        if not shares:
            return ItemAnswer(item.id, missing="the item was skipped")
        classes = {tag: n / shares.total() for tag, n in shares.items()}
        return ItemAnswer(item.id, classes=classes, tags=kept)
    read = parse([tag or "O" for tag in tags], codec.encoding)
    return ItemAnswer(item.id, spans=tuple(SoftSpan(*span) for span in read), tags=kept)


# --------------------------------------------------------------------------------------------------
# What is asked, the entry of a plan, and the face of all annotators.


Known: TypeAlias = "Sequence[str] | Answer"
"""Known labels of an item: a tag per token, or by layer."""


@dataclass(frozen=True)
class AnnotationTask:
    """What annotators are asked to do."""

    codec: Codec  # The tags: of spans in an encoding, or PLAIN single labels
    instructions: str = ""  # What people are told too: what is to be labelled, with examples
    # Items with known labels, to be shown to models; they are not asked about
    examples: tuple[tuple[PoolItem, Known], ...] = ()
    folder: Path = Path()  # Where the paths of an entry begin
    cache: Path | None = None  # Folder in which replies of models are kept, if any
    send_text: bool = False  # Whether texts may leave this machine's process for an endpoint
    # Folder in which answers of functions and taggers are kept, for a run that goes on
    answers: Path | None = None
    allow_code: tuple[str, ...] = ()  # Modules, and paths of files, whose code an entry may name
    questions: Questions | None = None  # The layers, of a task that has several; `codec` is of one

    @property
    def is_single(self) -> bool:
        """Whether every item gets one label."""
        return self.codec.rules.is_plain

    @property
    def names(self) -> tuple[str, ...]:
        """The labels, or the types of spans."""
        return self.codec.tags if self.is_single else self.codec.types


@dataclass(frozen=True)
class WorkerEntry:
    """An annotator in a plan: a table such as `[[crowd.workers]]`."""

    id: str  # Its name among the workers
    kind: str  # One of `KINDS`, which answer when called, or of `WAITED_FOR`
    family: str = ""  # Workers of a family err together; "" for none
    limit: int | None = None  # Most answers that it gives
    tariff: Tariff = Tariff()  # What it is paid
    options: Mapping[str, Any] = field(default_factory=dict)  # What else its kind takes
    probe: bool = False  # Whether its answers count for nothing, and show who pastes them


class Annotator(ABC):
    """An annotator that answers when it is called. A kind is a subclass with its `Options`.

    Used as a context manager, or closed: some hold connections or files.
    """

    Options: type[Any]
    """A frozen dataclass of what the kind takes, with bounds (`goldspan.params`)."""

    def __init__(self, entry: WorkerEntry, task: AnnotationTask) -> None:
        self.entry, self.task = entry, task
        self.options = self.read_options(entry)

    @property
    def id(self) -> str:
        """Its name among the workers."""
        return self.entry.id

    @property
    def family(self) -> str:
        """Its family; "" for none."""
        return self.entry.family

    @classmethod
    def read_options(cls, entry: WorkerEntry) -> Any:
        """Read the options of an entry.

        Raises:
            InputError: One makes no sense, is missing or unknown; the entry is named.
        """
        known = {one.name: one for one in parameters(cls.Options)}
        try:
            for name in entry.options:
                if name not in known:
                    raise UnknownNameError(f"key of kind {entry.kind!r}", name, [*KEYS, *known])
            for name, one in known.items():
                if one.is_required and name not in entry.options:
                    raise InputError(f"kind {entry.kind!r} needs {name}")  # noqa: TRY301
            found = cls.Options(**entry.options)
            check_parameters(found)
        except InputError as error:
            raise InputError(f"worker {entry.id}: {error}") from None
        return found

    @abstractmethod
    def label(self, items: Sequence[PoolItem]) -> Iterator[ItemAnswer]:
        """Yield one answer per item, in the order of the items, each as soon as it is known.

        Asked again about the same items an annotator answers the same, and is paid nothing twice.
        Where it cannot work at all an InputError is raised; what was answered before holds.
        """

    def estimate(
        self,
        items: Sequence[PoolItem],
        *,
        retry_missing: bool = False,  # noqa: ARG002 - only replies that are stored can be missing
    ) -> Estimate:
        """Return what the answers will cost; nothing is sent."""
        cost = sum(map(self.most, items))
        return Estimate(len(items), expected_micro=cost, most_micro=cost)

    def knows(self, item: PoolItem) -> bool:
        """Whether it can be asked about an item: a recorded worker only about what it answered."""
        del item
        return True

    def most(self, item: PoolItem) -> int:
        """Return the most that an answer to an item can cost, in millionths; to be reserved."""
        return self.entry.tariff.cost(len(item.tokens))

    def facts(self) -> dict[str, Any]:
        """Return what belongs into the log: the model, its versions, what is not settled."""
        return {}

    def load(self) -> None:  # noqa: B027 - most have all at once
        """Load what it works with, code or a model; else it is done at the first label."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Close what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


KEYS = ("id", "kind", "family", "limit", "prices", "probe")
"""Keys of every entry; the others are of its kind."""


def priced(annotator: Annotator, item: PoolItem, answer: ItemAnswer) -> ItemAnswer:
    """Return an answer with its cost; where there is none what a model used is paid."""
    tariff = annotator.entry.tariff
    cost = tariff.cost(len(item.tokens), answer.usage, answered=not answer.missing)
    return replace(answer, cost=cost)


# --------------------------------------------------------------------------------------------------
# The kinds of annotators by name, and how an entry of a plan becomes one.

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
OF_LAYERS = ("llm", "python")
"""Those that answer all layers of a task at once."""
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


def open_annotator(
    entry: WorkerEntry | Mapping[str, Any], task: AnnotationTask, *, load: bool = True
) -> Annotator:
    """Return the annotator of an entry; with `load` its code or model is loaded now.

    Raises:
        InputError: The entry, or a file that it names, is faulty, or its code is not allowed.
        MissingExtraError: What it needs is not installed.

    >>> from goldspan.protocols import PoolItem
    >>> from goldspan.spans import Codec
    >>> own = "goldspan.annotators.python"
    >>> task = AnnotationTask(Codec.from_types(["PER"]), allow_code=(own,))
    >>> entry = {"kind": "python", "call": f"{own}:nothing"}
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
    if task.questions is not None:
        check_layers(found)
    made = _class_of(found)(found, task)
    if load:
        made.load()
    return made


def check_layers(entry: WorkerEntry) -> None:
    """Reject an entry that cannot answer several layers.

    Raises:
        InputError: It cannot.
    """
    why = ""
    if entry.kind in KINDS and entry.kind not in OF_LAYERS:
        why = f"the kind {entry.kind!r} answers one (choose from {', '.join(OF_LAYERS)})"
    elif entry.probe:
        why = "a probe finds who pastes answers to one"
    elif entry.options.get("logprobs"):
        why = "logprobs are of an answer to one"
    elif entry.options.get("style") == "completion":
        why = "a completion answers one"
    if why:
        raise InputError(f"worker {entry.id}: the task has several questions, and {why}")


def _class_of(entry: WorkerEntry) -> type[Annotator]:
    found: type[Annotator] = load(KINDS[entry.kind][0])
    return found
