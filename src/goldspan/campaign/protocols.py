"""The six steps of a campaign each of which can be replaced.

Select → label → aggregate → model → evaluate → stop → select …: the components of Ntoulas et al.
(section 2), but that labelling is two steps here, and that the initial items and the later ones are
picked by the same step, which is told the round. A step decides; the loop keeps the decision in the
ledger before it acts on it. So a step must be a function of its arguments and of
what the ledger holds: after a break it is asked again, and its answer must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.selection import Pool

Labels = Sequence[Sequence[str]]
"""The labels of items: one per token, or a single one."""


@dataclass(frozen=True)
class Picks:
    """The items of a round."""

    items: tuple[str, ...]  # Their ids, in order of priority
    rules: tuple[str, ...]  # The rule that picked each
    stopped: str = ""  # Why there are no more, in a word
    # Items of earlier rounds that get more answers, and how many they then want in all
    more: Mapping[str, int] = field(default_factory=dict)
    # The worker whom to ask about an item, where that is chosen too; "" for whoever comes
    whom: Mapping[str, str] = field(default_factory=dict)
    # The model that is asked about an item besides, or alone
    models: Mapping[str, str] = field(default_factory=dict)
    # Where a wrong label has a price: what the next unit of `money` and the next `hour` would save
    saves: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Measure:
    """How good a model is."""

    value: float  # F1 of spans, or accuracy
    low: float  # Lower bound of its 95 % interval
    high: float
    n: int  # Items that it was measured on


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    # On all items that it looks at, None if the model could not be measured
    score: Measure | None = None
    # On those of them that were drawn at random, which no rule has bent; None if there are too few
    control: Measure | None = None
    wrong: Sequence[bool | None] = ()


@dataclass(frozen=True)
class Labelled:
    """What is labelled so far."""

    items: NDArray[np.int64]  # [n], indexes in the pool, in a random order
    labels: Labels
    is_random: NDArray[np.bool_]  # [n], drawn at random


SOMEBODY = ""
"""Whoever comes to a page or takes a file next: nobody can choose who."""


@dataclass(frozen=True)
class Offers:
    """Answers that can be bought."""

    items: list[str] = field(default_factory=list)  # Ids of the items, one per answer
    # Ids of the workers, `SOMEBODY` for whoever comes
    workers: list[str] = field(default_factory=list)
    prices: list[int] = field(default_factory=list)  # The most that each costs, in millionths
    # How many answers may still be asked of a worker; who is missing has no limit
    room: dict[str, int] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)  # Workers who are models
    # Seconds that an answer takes of workers who work side by side, as far as that is known
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, item: str, worker: str, price: int) -> None:
        """Add one."""
        self.items.append(item)
        self.workers.append(worker)
        self.prices.append(price)


@dataclass(frozen=True)
class Waiting:
    """Answers are awaited from outside."""

    answers: int
    items: int  # Of how many items
    where: str  # What to do, in words


@dataclass(frozen=True)
class Decision:
    """Whether to go on."""

    stop: bool  # Whether not
    rule: str = ""  # The rule that decided
    why: str = ""  # A sentence
    facts: Mapping[str, Any] = field(default_factory=dict)  # Numbers behind it


class Trained(Protocol):
    """A model that learned."""

    @property
    def name(self) -> str:
        """Which model it is."""
        ...

    @property
    def model(self) -> Any:
        """The model as the rules of selection take it."""
        ...

    def predict(self, pool: Pool, items: NDArray[np.int64]) -> list[list[str]]:
        """Label items of a pool."""
        ...


class Select(Protocol):
    """Which items come next."""

    def pick(self, number: int, taken: Sequence[str], trained: Trained | None, left: int) -> Picks:
        """Pick the items of a round, 1 for the first; `left` money in millionths is left."""
        ...


class Label(Protocol):
    """Where answers come from."""

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        ...

    def collect(self, name: str, items: Sequence[str], on_event: OnEvent) -> Waiting | None:
        """Get answers for the open places of items of a batch; None when nothing is awaited."""
        # `on_event` hears of every answer that counts, and may end the campaign after it
        ...

    def offers(self, items: Sequence[str]) -> Offers:
        """Return the answers about items that can be bought now; asked with `by = "gain"` alone."""
        ...


class Aggregate(Protocol):
    """How answers become labels."""

    def labels(self, crowd: Crowd) -> Consensus:
        """Aggregate; the crowd's gold is what is known."""
        ...

    def open_items(self, crowd: Crowd, result: Consensus, items: Sequence[str]) -> list[str]:
        """Name those of the items that need another answer."""
        ...


class Model(Protocol):
    """What is trained on the labels."""

    def train(self, items: NDArray[np.int64], labels: Labels) -> Trained | None:
        """Train on items of the pool; None where there is too little to learn from."""
        ...


class Evaluate(Protocol):
    """How a model is measured."""

    def measure(self, model: Model, labelled: Labelled) -> Evaluation:
        """Measure it."""
        ...


class Stop(Protocol):
    """When to stop."""

    def decide(self, rounds: Sequence[Mapping[str, Any]]) -> Decision:
        """Decide after a round, from the facts of all rounds so far."""
        ...


# --------------------------------------------------------------------------------------------------
# What the observer of a campaign hears: one typed event after each step that is kept.
#
# `Campaign` calls `on_event` between two transactions, so an observer that raises ends the campaign
# at a point from which it can go on. `lines()` says an event in words, for a log or a terminal.


@dataclass(frozen=True)
class CampaignEvent:
    """Something that happened in a campaign."""

    def lines(self) -> list[str]:
        """Return it in words; no line if it happens too often to be told."""
        return []


@dataclass(frozen=True)
class PlanChanged(CampaignEvent):
    """The plan or the pool is not what it was when the campaign last ran; or it has faults."""

    text: str

    def lines(self) -> list[str]:
        """Return what changed."""
        return [self.text]


@dataclass(frozen=True)
class RoundOpened(CampaignEvent):
    """The items of a round can be labelled; told again when a run goes on with the round."""

    round: int
    n_items: int

    def lines(self) -> list[str]:
        """Return which round it is."""
        return [f"round {self.round}: {self.n_items} items to label"]


@dataclass(frozen=True)
class AnswerTaken(CampaignEvent):
    """An answer counts now; `cost` in millionths of the currency unit."""

    cost: int


@dataclass(frozen=True)
class AskedAgain(CampaignEvent):
    """It is decided which items of the round need another answer."""

    n_items: int


@dataclass(frozen=True)
class WorkerDropped(CampaignEvent):
    """A worker gets no more items."""

    worker: str
    why: str

    def lines(self) -> list[str]:
        """Return who and why."""
        return [f"  {self.worker} is asked no more: {self.why}"]


@dataclass(frozen=True)
class RoundEnded(CampaignEvent):
    """A round was labelled, and a model trained and evaluated; `facts` as the ledger keeps them."""

    round: int
    facts: Mapping[str, Any]

    def lines(self) -> list[str]:
        """Return how far the campaign is, and how good the model."""
        from goldspan.money import from_micro

        facts, score = self.facts, self.facts["score"]
        line = f"round {self.round}: {facts['items']} items, {facts['answers']} answers"
        if facts["cap"] is not None:
            line += f", spent {from_micro(facts['spent'])} of {from_micro(facts['cap'])}"
        if "mistakes" in facts:
            line += f", {facts['mistakes']:.1f} labels expected to be wrong"
        if score is not None:
            line += f", the {facts['model']} scores {100 * score['value']:.1f}"
            line += f" ({100 * score['low']:.1f} to {100 * score['high']:.1f})"
        return [line, f"  no model: {facts['note']}"] if facts.get("note") else [line]


@dataclass(frozen=True)
class Decided(CampaignEvent):
    """It is decided whether the campaign goes on after a round."""

    stop: bool
    why: str


OnEvent = Callable[[CampaignEvent], None]
"""An observer; what it raises ends the campaign."""
