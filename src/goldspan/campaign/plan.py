"""The plan of a campaign: its sections and keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    StrictStr,
    model_validator,
)

from goldspan.aggregation.registry import DEFAULT, canonical
from goldspan.campaign.section import (
    Count,
    Currency,
    Money,
    Name,
    Number,
    OpenId,
    Section,
    Share,
    Webhook,
    Words,
    newer,
)
from goldspan.campaign.stopping import StopSection
from goldspan.crowd.questions import Question, Questions
from goldspan.errors import InputError
from goldspan.money import UNLIMITED, to_micro
from goldspan.spans import Codec

if TYPE_CHECKING:
    from goldspan.annotators.base import WorkerEntry

# --------------------------------------------------------------------------------------------------
# Keys of answers: what makes sending one again change nothing.


def key_of(item: str, worker: str, attempt: int = 0) -> str:
    """Return the key of a worker's answer to an item; names may be long and hold any sign.

    Under a key an answer that did not count never does: to send it again takes another attempt.
    """
    words = [item, worker, attempt] if attempt else [item, worker]
    return blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()


# --------------------------------------------------------------------------------------------------
# The plan of a campaign: everything that it does is decided here, and nothing else is.


ORDINAL = "ordinal"
"""The method for layers whose labels are levels of a scale."""


class Layer(Section):
    """One of several questions about an item, answered together: a table `[[task.layers]]`."""

    name: Name  # By which answers, files and pages call it
    # "spans" of `types`; "label": one of `labels`; "labels": any number of them
    kind: Literal["spans", "label", "labels"]
    types: Words = ()  # Types of spans
    labels: Words = ()  # Labels; of an ordinal layer from the least to the most
    overlapping: bool = False  # Whether spans may overlap
    ordinal: bool = False  # Whether the labels are levels of a scale
    required: bool = True  # Whether a label must be chosen; spans may always be none
    instructions: str = ""  # Above the question, as plain text
    # What its doubt counts for when answers are bought by gain; an item of a layer of weight 0 is
    # not asked about again for its sake
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0

    @property
    def question(self) -> Question:
        """The layer as answers and the store have it."""
        names = self.types or self.labels
        flags = self.overlapping, self.ordinal, self.required
        return Question(self.name, self.kind, names, *flags)


class Task(Section):
    """What is to be labelled: spans of these types, or one of these labels, or several layers."""

    types: Words = ()  # Types of spans
    labels: Words = ()  # Single labels, in place of types
    encoding: str = "BIO"  # Of the tags of spans
    # How texts are cut into the smallest pieces that can be selected; "given": as the pool says.
    # By default "given" where the pool has tokens, else "fine".
    tokens: Literal["fine", "space", "characters", "given"] | None = None
    layers: Annotated[tuple[Layer, ...], Field(strict=False)] = newer(default=())

    @property
    def learned(self) -> Layer | None:
        """The layer that a model learns: the first of spans, else of one label; None for none."""
        kinds = ("spans", "label")
        found = sorted(
            (one for one in self.layers if one.kind in kinds), key=lambda one: kinds.index(one.kind)
        )
        return next(iter(found), None)

    @property
    def questions(self) -> Questions | None:
        """The layers as answers and the store have them; None where there are none."""
        return Questions(tuple(one.question for one in self.layers)) if self.layers else None


class Items(Section):
    """The raw items."""

    file: str  # Texts, a table or a crowd's file, or a folder of texts; beside the plan
    # As for `goldspan select --format`; by the name and the content by default
    format: str | None = None
    text: str | None = None  # Column of a table that holds the texts, where it cannot be told
    id: str | None = None  # Column that holds the items' ids
    document: str | None = None  # Column that holds the documents that items are part of


def _workers(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Reject what is neither text nor a table, and both together."""
    kinds = {isinstance(one, str) for one in given}
    if len(kinds) > 1 or not all(isinstance(one, str | Mapping) for one in given):
        raise InputError(
            "must be a list of simulated workers in text, or tables [[crowd.workers]], not "
            f"{[*given]!r:.80}"
        )
    return given


class Workers(Section):
    """Who answers."""

    # "simulated", "files" that go out and come back, "web": people in a browser, "replay": a
    # recorded crowd answers again, or "mixed": entries of several kinds
    source: Literal["simulated", "files", "web", "replay", "mixed"]
    # Simulated workers in text: "flip(0.1) x3"; or the entries of a mixed workforce, tables with
    # id, kind, family, limit, prices and what the kind takes
    workers: Annotated[tuple[Any, ...], Field(strict=False), AfterValidator(_workers)] = ()
    # Whether texts may be sent to the endpoints of language models
    send_text: bool = newer(default=False)
    # Folder in which the replies of language models are kept
    replies: str = newer(default="replies")
    # File of the gold that simulated workers know; the campaign never looks at it but to say at the
    # end how good it was
    truth: str | None = None
    # What a simulated answer takes; workers work side by side
    seconds: Annotated[float, Field(gt=0)] = 30.0
    out: str = "tasks"  # Folder of the tasks that go out
    back: str = "answers"  # Folder of the answers that come back
    answers: str | None = None  # File of the recorded crowd
    # Names of people in a browser: `goldspan serve` prints a personal link for each
    annotators: Words = ()

    @property
    def tables(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of a mixed workforce as they are written."""
        return tuple(one for one in self.workers if isinstance(one, Mapping))

    @property
    def is_served(self) -> bool:
        """Whether people answer in a browser."""
        has_people = any(one.get("kind") == PEOPLE for one in self.tables)
        return self.source == "web" or (self.source == "mixed" and has_people)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of people in a browser, also those of entries."""
        people = [one.get(NAMES) for one in self.tables if one.get("kind") == PEOPLE]
        lists = [names for names in people if isinstance(names, list)]  # else it is refused
        return (*self.annotators, *(str(name) for names in lists for name in names))


PEOPLE, NAMES = "people", "names"
"""Kind of the entries of people in a browser, and the key of their names; without it: all others
who come in."""
_PAID_BY_THE_PLAN = (PEOPLE, "simulated", "replay")
"""Kinds of workers who are paid by `[prices]` where they have no prices of their own."""


def entry_of(given: Mapping[str, Any], crowd: Workers, prices: Prices) -> WorkerEntry:
    """Read an entry of a workforce; what it leaves out and the plan says is the plan's."""
    from goldspan.annotators.base import read_worker

    kind, found = given.get("kind"), dict(given)
    if not isinstance(kind, str):
        raise InputError(f'an entry needs a kind, such as "llm", not {kind!r:.80}')
    if kind in _PAID_BY_THE_PLAN and "prices" not in given:
        found["prices"] = {"per_answer": prices.per_answer, "per_token": prices.per_token}
    for its, key, value in (
        ("simulated", "truth", crowd.truth),
        ("replay", "answers", crowd.answers),
    ):
        if kind == its and value is not None:
            found.setdefault(key, value)
    return read_worker(found)


class Redundancy(Section):
    """How many answers an item gets: min, then one more at a time until the rule is content."""

    # Answers of every item, no fewer and no more: in place of min and max, as which it is kept
    overlap: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude=True)
    # "rule": as above; "gain": every round after the first buys, about any item of the pool and of
    # any worker, the answers that promise most for their price
    by: Literal["rule", "gain"] = newer(default="rule")
    min: Count = 2  # Answers that every item gets
    max: Count = 5  # Most answers of an item
    stop: str = "confident(0.95)"  # When an item has enough, as for `goldspan next --rule`
    # Workers of one family whose answers an item takes, as long as anybody else at work could
    # answer it; by default 1 of a family of the plan, any number of one that was found
    per_family: Count | None = newer(default=None)

    @model_validator(mode="before")
    @classmethod
    def _same_for_all(cls, given: Any) -> Any:
        """Read overlap = 2 as min = max = 2."""
        if not isinstance(given, Mapping) or given.get("overlap") is None:
            return given
        both = [name for name in ("min", "max") if name in given]
        if both:
            raise InputError(
                f"overlap = {given['overlap']} is the number of answers of every item, so "
                f"{' and '.join(both)} cannot be set beside it: leave out the one or the other"
            )
        n = given["overlap"]
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            return given  # the field says so
        return {**given, "min": n, "max": n}


class Control(Section):
    """Questions whose answer is known, mixed among the others."""

    n: Count  # How many items serve as such
    gold: str | None = None  # File of their known labels
    share: Share = 0.1  # Of every worker's answers, that go to them
    first: Number = 0  # As many of them come first: a qualification test
    least: Share = 0.0  # Share that must be right in it to go on


class Judging(Section):
    """Who is asked on, decided after every round."""

    drop: bool = True  # Whether workers are dropped at all
    # How often workers shall be right; halfway between chance and 1 by default
    threshold: Annotated[float, Field(gt=0, lt=1)] | None = None
    # Probability of being below it at which a worker is dropped
    sure: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    answers: Number = 10  # Fewest judged answers before that


class Prices(Section):
    """What an answer costs: per_answer + per_token * tokens; nothing where nobody is paid."""

    per_answer: Money = 0
    per_token: Money = 0
    per_check: Money = newer(default=0)  # Of a check of the audit, whoever makes it
    hour: Money = newer(default=0)  # What it costs to wait an hour for the end; belongs to [value]
    currency: Currency = ""

    @cached_property
    def answer_micro(self) -> int:
        """`per_answer` in millionths of the currency unit."""
        return to_micro(self.per_answer)

    @cached_property
    def token_micro(self) -> int:
        """`per_token` in millionths of the currency unit."""
        return to_micro(self.per_token)

    @cached_property
    def check_micro(self) -> int:
        """`per_check` in millionths of the currency unit."""
        return to_micro(self.per_check)

    @cached_property
    def hour_micro(self) -> int:
        """`hour` in millionths of the currency unit."""
        return to_micro(self.hour)


class Value(Section):
    """What right labels are worth: with it, every decision of a campaign has one currency."""

    # What a wrong label costs whoever uses it; rounds then buy what saves more than it costs
    mistake: Money = 0

    @cached_property
    def mistake_micro(self) -> int:
        """`mistake` in millionths of the currency unit."""
        return to_micro(self.mistake)


class Budget(Section):
    """What may be used up: money, and hours from the first question on."""

    money: Money | None = None  # What may be spent at most; belongs to prices
    # From the first question on, by the campaign's clock: those in which it is served
    hours: Annotated[float, Field(gt=0)] | None = None

    @cached_property
    def micro(self) -> int | None:
        """`money` in millionths of the currency unit."""
        return None if self.money is None else to_micro(self.money)


class Selecting(Section):
    """Which items come next, and how many in a round."""

    # A rule or a schedule, as for `goldspan select --by`
    by: str = "coverage, then mnlp, 10% random"
    batch: Count = 50  # Items of a round
    first: Count | None = None  # Items of the first round; as many as of the others by default
    # Whether the rules are told which labelled items the model gets wrong when it has not learned
    # from them: what is like these comes first then
    errors: bool = newer(default=False)


class AggregateSection(Section):
    """How answers become labels; by default "auto"."""

    method: Annotated[str, AfterValidator(canonical)] | None = None  # Name of the method
    params: dict[str, Any] = Field(default_factory=dict)  # Its parameters
    # Workers who err together and count as fewer: "auto" finds them by the answers, "none" does not
    # look for any, a table gives names of families to workers, or a file with columns worker and
    # family does, which `read_plan` reads; by default as the method does
    families: StrictStr | dict[StrictStr, StrictStr] | None = newer(default=None)

    @property
    def has_families(self) -> bool:
        """Whether the plan itself says who belongs together."""
        return isinstance(self.families, Mapping)

    @property
    def all_params(self) -> dict[str, Any]:
        """The parameters, the families among them."""
        return self.params | ({} if self.families is None else {"families": self.families})

    def family_of(self, worker: str) -> str | None:
        """Return the family that the plan gives to a worker, None for none."""
        return self.families.get(worker) if isinstance(self.families, Mapping) else None


class Learning(Section):
    """What is trained on the labels."""

    # "crf" or "hmm" for spans; for single labels a classifier of scikit-learn by short name
    # ("logistic") or by its whole one; "auto" chooses by cross-validation; "none"
    name: str = "auto"
    params: dict[str, Any] = Field(default_factory=dict)  # Its parameters


class EvaluateSection(Section):
    """How the model is measured."""

    # "cv": on labelled items that it did not learn from; "test": on a file with gold; "slice": on
    # the items that were drawn at random, which it then never learns from
    by: Literal["cv", "test", "slice"] = "cv"
    folds: Annotated[int, Field(ge=2)] = 5  # Of the cross-validation
    file: str | None = None  # The test file


class Page(Section):
    """What people see who label in a browser."""

    title: str = ""  # Above the task; the campaign's name by default
    # Text or Markdown file beside the plan: what is to be labelled, with examples
    instructions: str | None = None
    # How long a task is held for who has it before them
    lease_minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 10.0
    # So many gold questions come first as practice, with the right answer shown
    training: Number = 0
    # Whose labels are shown before an annotator answers: a worker of the plan that answers at once,
    # or "consensus": what more than half of the answers so far say, those given with a suggestion
    # aside. Gold questions are never shown with a suggestion.
    suggest: Name | None = newer(default=None)
    # Of an annotator's other items that are shown with one, drawn at random; half of them by
    # default. Without one, an answer is blind.
    suggest_share: Annotated[float, Field(gt=0, le=0.9)] | None = newer(default=None)
    # What can be said when a task is passed
    skip_reasons: Words = ("I do not understand it", "It is not in my language", "It is broken")
    # What is said to who has no more to do
    finished: str = "That was all for now. Thank you for your work."
    # Bounds of the server: no record and no id of a campaign depends on them.
    # Requests of one worker on one day that change something, at most; by default 500 and ten times
    # the items, 50,000 at most
    daily_writes: Annotated[int, Field(ge=20)] | None = Field(default=None, exclude=True)
    # New people of a provider that does not say who they are, at most, on one day; by default 100
    # and as many as all items can have answers, 10,000 at most
    daily_joins: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude=True)

    @property
    def shown_share(self) -> float:
        """Share of an annotator's items that are shown with a suggestion, where there is one."""
        return 0.5 if self.suggest_share is None else self.suggest_share


CONSENSUS = "consensus"
"""In place of a worker's id: what most of the answers so far say."""


class Provider(Section):
    """Where the workers of a page come from."""

    name: str = "link"  # "link": personal links; "prolific": a study at Prolific
    # Of the provider; never a token or a password
    options: dict[str, Any] = Field(default_factory=dict)


class Privacy(Section):
    """How long it is known who the workers are; nothing of it changes what is asked or paid."""

    # Days after the campaign's end from which on they are forgotten; None: nobody is forgotten but
    # by `goldspan forget PLAN WORKER`
    keep_days: Annotated[float, Field(ge=0, le=36_500)] | None = None


class Plan(Section):
    """A campaign's plan; see the sections."""

    name: Name  # Of the campaign; letters, digits, spaces, points, dashes, underscores
    seed: Number = 0  # Of everything random
    task: Task
    pool: Items
    crowd: Workers
    redundancy: Redundancy = Redundancy()
    control: Control | None = None
    judging: Judging = Judging()
    prices: Prices = Prices()
    value: Value = newer(default=Value())
    budget: Budget = Budget()
    select: Selecting = Selecting()
    aggregate: AggregateSection = AggregateSection()
    model: Learning = Learning()
    evaluate: EvaluateSection = EvaluateSection()
    stop: StopSection = StopSection()
    page: Page = Page()
    provider: Provider | None = None
    # These are no part of what a campaign is known by, and may be set or changed at any time.
    privacy: Privacy = Field(default=Privacy(), exclude=True)
    oidc: OpenId | None = Field(default=None, exclude=True)
    webhooks: Annotated[tuple[Webhook, ...], Field(strict=False)] = Field(default=(), exclude=True)
    # Where `goldspan run` computes: "threads", "threads(2)", "ray" or "ray(ADDRESS)", as
    # `goldspan.runners.working` reads it; by default in one thread. The results are the same.
    runner: StrictStr | None = Field(default=None, exclude=True)

    @property
    def is_single(self) -> bool:
        """Whether items have no tokens to label: what is asked is about all of an item."""
        asked = self.task.questions
        return bool(self.task.labels) if asked is None else not asked.has_spans

    @property
    def kind(self) -> Literal["spans", "single", "layers"]:
        """What a page asks for."""
        return "layers" if self.task.layers else "single" if self.is_single else "spans"

    @property
    def codec(self) -> Codec:
        """The tags of the task; of several layers those of the one that a model learns."""
        asked = self.task.learned or next(iter(self.task.layers), self.task)
        names = asked.types or asked.labels
        return Codec.from_types(names, "PLAIN" if self.is_single else self.task.encoding)

    @property
    def tagset(self) -> Codec | Questions:
        """What a store keeps answers by."""
        return self.task.questions or self.codec

    @property
    def method(self) -> str:
        """How answers become labels; a campaign keeps what it began with, see `method_of`."""
        return self.aggregate.method or DEFAULT

    @property
    def learner(self) -> str:
        """The name of the model; none learns any number of labels."""
        return "none" if self.task.layers and self.task.learned is None else self.model.name

    def method_for(self, layer: Layer | None) -> tuple[str, dict[str, Any]]:
        """Return method and parameters for a layer; a scale has its own unless one is named."""
        params = self.aggregate.all_params
        if layer is None or not layer.ordinal or self.aggregate.method not in {None, ORDINAL}:
            return self.method, params
        return ORDINAL, {"levels": list(layer.labels)}

    @property
    def is_paid(self) -> bool:
        """Whether answers are paid; else nothing speaks of money."""
        return self.budget.money is not None

    @property
    def cap(self) -> int:
        """What may be spent, in millionths of the currency unit; unpaid work has no limit."""
        return UNLIMITED if self.budget.micro is None else self.budget.micro

    @cached_property
    def workforce(self) -> tuple[WorkerEntry, ...]:
        """The entries of a mixed workforce, in their order."""
        return tuple(entry_of(one, self.crowd, self.prices) for one in self.crowd.tables)

    def entry_of_person(self, name: str) -> WorkerEntry | None:
        """Return the entry of somebody who answers in a browser, None where there is none."""
        people = [one for one in self.workforce if one.kind == PEOPLE]
        named = [one for one in people if name in one.options.get(NAMES, ())]
        return next(iter(named or [one for one in people if NAMES not in one.options]), None)

    def cost(self, n_tokens: int) -> int:
        """Return what an answer to an item costs, in millionths of the currency unit.

        Workers with prices of their own are paid by these. Where all people have some, it is what
        the cheapest of them get.
        """
        own = self.prices.answer_micro + self.prices.token_micro * n_tokens
        if own or not self.workforce:
            return own
        people = [one.tariff.cost(n_tokens) for one in self.workforce if one.kind == PEOPLE]
        return min(people, default=0)
