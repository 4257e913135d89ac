"""The live view of `goldspan run`: a few lines on a terminal that say how far the campaign is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from goldspan.cli.compiling import notice
from goldspan.cli.output import warn
from goldspan.cli.run_watch import Course

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR = 30
"""Characters of a bar."""


@contextmanager
def shown(course: Course, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a course live on a terminal, in plain lines otherwise; give who is told the lines."""
    if quiet:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        yield warn
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)

    def tell(line: str) -> None:
        if " answers" in line or line.startswith("  "):
            console.print(line, markup=False, highlight=False)
        else:
            course.doing = line

    look: dict[str, Any] = {"console": console, "refresh_per_second": 4, "transient": True}
    with notice.beside_another_display(), Live(get_renderable=lambda: view(course), **look):
        yield tell


def view(course: Course) -> RenderableType:
    """Draw a course."""
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

    row("items", f"{course.items:,} of {course.pool:,}", course.items, course.pool)
    row("answers", answers_words(course))
    if course.cap is not None:
        row("money", money_words(course, course.cap), course.spent, course.cap)
    for name, value in score_words(course):
        row(name, value)
    if course.decision:
        row("decision", course.decision)
    row("now", course.doing or "beginning")
    title = Text(f"{course.name} \u00b7 round {course.round}", style="bold")
    return Panel(grid, title=title, title_align="left", expand=False)


def answers_words(course: Course) -> str:
    """Return how many answers there are, and how many items are doubtful."""
    if course.doubtful is None:
        return f"{course.answers:,}"
    noun = "item" if course.doubtful == 1 else "items"
    return f"{course.answers:,}, {course.doubtful:,} doubtful {noun}"


def money_words(course: Course, cap: int) -> str:
    """Return how much of the cap is spent."""
    from goldspan.money import MICRO

    unit = f" {course.currency}" if course.currency else ""
    share = f" ({100 * course.spent / cap:.0f} %)" if cap else ""
    return f"{course.spent / MICRO:,.2f} of {cap / MICRO:,.2f}{unit}{share}"


def score_words(course: Course) -> list[tuple[str, str]]:
    """Return how good model and labels were after the last round, as far as it is known."""
    rows, facts = [], course.facts
    if facts.get("score"):
        score = facts["score"]
        bounds = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
        words = f"{course.measure} {100 * score['value']:.1f} ({bounds})"
        rows.append((str(facts["model"]), words))
    if facts.get("truth"):
        words = f"{course.measure} {100 * facts['truth']['labels']:.1f} against the hidden gold"
        rows.append(("labels", words))
    return rows
