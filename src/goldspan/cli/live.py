"""What `goldspan run` shows while it works, and how Ctrl-C ends it.

On a terminal a few lines say how far the campaign is; elsewhere each event is a line.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goldspan.cli.compiling import notice
from goldspan.cli.output import plural, warn

if TYPE_CHECKING:
    from rich.console import RenderableType

    from goldspan.campaign.events import CampaignEvent
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.store import SqlLedger

BAR = 30
"""Characters of a bar."""


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait for the end of a step; give whether it was typed. A second one does not wait.

    The campaign asks between two steps, see `goldspan.campaign.Campaign`.
    """
    typed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield typed.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        typed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield typed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class Status:
    """How far a campaign is, kept up to date by its events."""

    name: str
    measure: str  # What its scores are
    currency: str
    pool: int  # Items in all, without the gold questions
    cap: int | None  # What may be spent, in millionths; None where nobody is paid
    round: int = 0  # The number of the round, 0 before the first
    items: int = 0  # Items picked so far
    answers: int = 0  # Answers that count
    spent: int = 0
    uncertain: int | None = None  # Items of the round that are asked about again
    facts: Mapping[str, Any] = field(default_factory=dict)  # Of the last round that is done
    decision: str = ""  # The last decision, in words
    now: str = ""  # What goes on

    @classmethod
    def of(cls, inputs: CampaignInputs, ledger: SqlLedger) -> Status:
        """Read it from a ledger."""
        totals, plan = ledger.totals(), inputs.plan
        picks = [one["items"] for one in ledger.records("picks").values() if one["items"]]
        rounds = list(ledger.records("round").values())
        return cls(
            name=plan.name,
            measure="accuracy" if plan.is_single else "F1",
            currency=totals.currency,
            pool=len(inputs.ids) - len(inputs.control),
            cap=totals.cap if plan.is_paid else None,
            round=len(picks),
            items=sum(map(len, picks)),
            answers=ledger.n_answers,
            spent=totals.spent,
            facts=rounds[-1] if rounds else {},
        )

    def hear(self, event: CampaignEvent) -> None:
        """Take in an event."""
        from goldspan.campaign import events

        match event:
            case events.AnswerTaken(cost):
                self.answers += 1
                self.spent += cost
            case events.RoundOpened(number, n_items) if number > self.round:
                self.round, self.items, self.uncertain = number, self.items + n_items, None
            case events.AskedAgain(n_items):
                self.uncertain = n_items
            case events.RoundEnded(_, facts):
                self.facts = facts
            case events.WorkerDropped(worker, why):
                self.decision = f"{worker} is asked no more: {why}"
            case events.Decided(stop, why):
                self.decision = f"stop: {why}" if stop else "go on"


class Display:
    """Shows nothing; what is told to it keeps the status up to date."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def hear(self, event: CampaignEvent) -> None:
        """Take in an event, and show its lines."""
        self.status.hear(event)
        for line in event.lines():
            self.show(line, lasting=line.startswith("  ") or " answers" in line)

    def show(self, line: str, *, lasting: bool = False) -> None:
        """Show a line; one that lasts stays on a terminal."""


class Lines(Display):
    """Prints every line on standard error."""

    def show(self, line: str, *, lasting: bool = False) -> None:
        """Print a line."""
        del lasting
        warn(line)


class Live(Display):
    """Draws the status on a terminal; lines that last are printed above it."""

    def __init__(self, status: Status, console: Any) -> None:
        super().__init__(status)
        self.console = console

    def show(self, line: str, *, lasting: bool = False) -> None:
        """Print a line that lasts; put another one into the drawing."""
        if lasting:
            self.console.print(line, markup=False, highlight=False)
        else:
            self.status.now = line


@contextmanager
def shown(status: Status, *, quiet: bool) -> Iterator[Display]:
    """Show a campaign live on a terminal, in plain lines elsewhere, and not at all if quiet."""
    if quiet or not sys.stderr.isatty():
        yield Display(status) if quiet else Lines(status)
        return
    from rich import live
    from rich.console import Console

    console = Console(stderr=True)
    look: dict[str, Any] = {"console": console, "refresh_per_second": 4, "transient": True}
    with (
        notice.beside_another_display(),
        live.Live(get_renderable=lambda: draw(status), **look),
    ):
        yield Live(status, console)


def draw(status: Status) -> RenderableType:
    """Draw a status."""
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column(width=BAR)

    def row(name: str, value: str, done: int = 0, total: int = 0) -> None:
        bar = ProgressBar(total=total, completed=done, width=BAR) if total else ""
        grid.add_row(name, Text(value), bar)

    row("items", f"{status.items:,} of {status.pool:,}", status.items, status.pool)
    row("answers", _answers(status))
    if status.cap is not None:
        row("money", _money(status, status.cap), status.spent, status.cap)
    for name, value in _scores(status):
        row(name, value)
    if status.decision:
        row("decision", status.decision)
    row("now", status.now or "beginning")
    title = Text(f"{status.name} \u00b7 round {status.round}", style="bold")
    return Panel(grid, title=title, title_align="left", expand=False)


def _answers(status: Status) -> str:
    """Return how many answers there are, and how many items are uncertain."""
    if status.uncertain is None:
        return f"{status.answers:,}"
    return f"{status.answers:,}, {plural(status.uncertain, 'uncertain item')}"


def _money(status: Status, cap: int) -> str:
    """Return how much of the cap is spent."""
    from goldspan.money import MICRO

    unit = f" {status.currency}" if status.currency else ""
    share = f" ({100 * status.spent / cap:.0f} %)" if cap else ""
    return f"{status.spent / MICRO:,.2f} of {cap / MICRO:,.2f}{unit}{share}"


def _scores(status: Status) -> Iterator[tuple[str, str]]:
    """Yield how good model and labels were after the last round, as far as it is known."""
    facts = status.facts
    if facts.get("score"):
        score = facts["score"]
        bounds = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
        yield str(facts["model"]), f"{status.measure} {100 * score['value']:.1f} ({bounds})"
    if facts.get("truth"):
        value = 100 * facts["truth"]["labels"]
        yield "labels", f"{status.measure} {value:.1f} against the hidden gold"
