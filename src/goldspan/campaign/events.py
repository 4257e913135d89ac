"""What the observer of a campaign hears: one typed event after each step that is kept.

`Campaign` calls `on_event` between two transactions, so an observer that raises ends the campaign
at a point from which it can go on. `lines()` says an event in words, for a log or a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


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
