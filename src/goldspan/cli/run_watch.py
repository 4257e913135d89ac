"""A ledger under watch: Ctrl-C waits for the end of a call, and the progress view hears of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs
    from goldspan.protocols import Ledger

Listen = Callable[[str, tuple[Any, ...], Any], None]
"""Hears the name of a call that is over, its arguments, and what it gave."""


@contextmanager
def watched(ledger: Ledger, listen: Listen) -> Iterator[Ledger]:
    """Let Ctrl-C wait for the end of the transaction; a second one does not wait."""
    watch = _Watch(ledger, listen)
    if threading.current_thread() is not threading.main_thread():
        yield cast("Ledger", watch)
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        watch.interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield cast("Ledger", watch)
    finally:
        signal.signal(signal.SIGINT, before)


class _Watch:
    """A ledger that ends the campaign between two calls when it was interrupted."""

    def __init__(self, ledger: Ledger, listen: Listen) -> None:
        self._ledger, self._listen, self.interrupted = ledger, listen, False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if not callable(method):
            return method

        def call(*args: Any, **given: Any) -> Any:
            if self.interrupted:
                raise KeyboardInterrupt
            found = method(*args, **given)
            self._listen(name, args, found)
            return found

        return call


@dataclass
class Course:
    """How far a campaign is, by the calls of its ledger.

    Attributes:
        name: Of the campaign.
        measure: What its scores are.
        currency: Of its money.
        pool: Items in all, control questions aside.
        cap: What may be spent, in millionths; None where nobody is paid.
        round: The number of the round, 0 before the first.
        items: Items picked so far.
        answers: Answers that count.
        spent: Millionths.
        doubtful: Items of the round that are asked about again; None while it is not known.
        facts: Of the last round that is done.
        decision: The last decision, in words.
        doing: What goes on.
    """

    name: str
    measure: str
    currency: str
    pool: int
    cap: int | None
    round: int = 0
    items: int = 0
    answers: int = 0
    spent: int = 0
    doubtful: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    decision: str = ""
    doing: str = ""

    @classmethod
    def of(cls, inputs: CampaignInputs, ledger: Ledger) -> Course:
        """Read it from a ledger."""
        totals, plan = ledger.totals(), inputs.plan
        picks = list(ledger.records("picks").values())
        rounds = list(ledger.records("round").values())
        return cls(
            name=plan.name,
            measure="accuracy" if plan.is_single else "F1",
            currency=totals.currency,
            pool=len(inputs.ids) - len(inputs.control),
            cap=totals.cap if plan.is_paid else None,
            round=len(picks),
            items=sum(len(one["items"]) for one in picks),
            answers=ledger.n_answers,
            spent=totals.spent,
            facts=rounds[-1] if rounds else {},
        )

    def hear(self, call: str, args: tuple[Any, ...], found: Any) -> None:
        """Hear of a call."""
        if call == "submit" and found.counts and not found.repeated:
            self.answers += 1
            self.spent += found.cost
        elif call == "record":
            self._keep(*args[:3])

    def _keep(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        if kind == "picks" and body["items"]:
            self.round, self.items = self.round + 1, self.items + len(body["items"])
            self.doubtful = None
        elif kind == "wave":
            self.doubtful = len(body["more"])
        elif kind == "round":
            self.facts = body
        elif kind == "bar":
            self.decision = f"{name} is asked no more: {body['why']}"
        elif kind == "stop":
            self.decision = f"stop: {body['why']}" if body["stop"] else "go on"
