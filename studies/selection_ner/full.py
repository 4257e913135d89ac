"""Study selection-ner-full: which share of the data gives 99 % of the F1 that all of it gives.

Shen et al. (2018) report 24.9 % of the tokens for their deep model on OntoNotes, chosen by MNLP;
theirs are other data and another model. Here a CRF learns from the gold of the chosen sentences of
CoNLL-2003, as in study selection-ner, at random until the whole pool is bought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from goldspan.report.drawing import FONT, INK, MUTED, bare, default_style, new_figure
from goldspan.runners import Threads
from studies.selection_ner.bench import STEPS, Bench
from studies.selection_ner.experiment import Told, carry_out, finished
from studies.selection_ner.journal import Runs
from studies.selection_ner.lines import RANDOM, RULES, SCHEDULE, Extent, Line
from studies.selection_ner.pictures import LOOK
from studies.selection_ner.tables import f1_of, tests_of
from studies.table import Study, Table, check_repeats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
COMPARED = (RANDOM, "mnlp", SCHEDULE)
SHARES = (0.90, 0.95, 0.99)
"""Of the F1 of the whole pool."""
PUBLISHED = 0.249
"""Share of the tokens with which MNLP has 99 % of the best deep model's F1 (Shen et al. 2018)."""
PUBLISHED_NOTE = (
    f"Published: {PUBLISHED:.1%} of the tokens, for 99 % of the F1 of a deep model on OntoNotes "
    "5.0 by MNLP (Shen et al. 2018): other data and another model."
)
ROUNDS = (2500, 5000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000)
"""Tokens after which a rule that asks a model is given a new one. They are far apart where curves
are flat: training takes as long as all stops have tokens together."""
SCORED = (2500, 10_000, 40_000, 80_000, 120_000, 160_000)
"""Tokens after which random is scored; it asks no model, and so needs no rounds."""
FOLLOWED = 0.5
"""Share of the pool to which rules that ask a model are followed; random is until all is bought."""


@dataclass(frozen=True)
class Whole(Extent):
    """Random until the whole pool is bought, and the rules that ask a model until half of it is.

    Attributes:
        n_tokens: Of the pool.
    """

    n_tokens: int = 0

    @property
    def stops(self) -> tuple[int, ...]:
        """Tokens after which random is scored, the whole pool last.

        >>> Whole(n_tokens=9000).stops, Whole(n_tokens=110_000).stops[-2:]
        ((2500, 9000), (80000, 110000))
        """
        return (*(n for n in SCORED if n < self.n_tokens), self.n_tokens)

    @property
    def lines(self) -> list[Line]:
        """The rules that are compared."""
        return [Line(label, RULES[label], self.stops_of(label)) for label in COMPARED]

    def stops_of(self, label: str) -> tuple[int, ...]:
        """Return the stops of a rule.

        >>> Whole(n_tokens=9000).stops_of("mnlp"), Whole(n_tokens=9000).stops_of("random")
        ((2500,), (2500, 9000))
        """
        if label == RANDOM:
            return self.stops
        return tuple(n for n in ROUNDS if n <= FOLLOWED * self.n_tokens) or ROUNDS[:1]


def study(
    data: Path,
    *,
    progress: Told | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the table.

    Args:
        data: The folder that holds `conll2003`.
        progress: Told how many stops of all runs are behind.
        repeats: Seeds; 3 by default.
        quick: Whether it is only to be seen that the study runs: about 600 sentences are the pool.
        state: File of finished runs, to resume from.
        so_far: Make the tables of the repeats that are finished, and do no run.
        threads: How many; all cores by default.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
    """
    check_repeats(repeats)
    bench = Bench.read(data, 600 if quick else None, 600 if quick else None)
    extent = Whole(repeats=repeats or (1 if quick else 3), n_tokens=bench.train.n_tokens)
    kept = None if state is None else Path(state)
    notes = []
    if so_far:
        times, told = finished(bench, extent, kept)
        extent = replace(extent, repeats=times)
        notes.append(told)
    runs = carry_out(bench, extent, Threads(threads), kept, progress)
    notes += _notes(bench, extent)
    if quick:
        notes.insert(0, "QUICK: it shows that the study runs, and no result.")
    else:
        notes.append(PUBLISHED_NOTE)
    title = "How much of the data is enough: selection on CoNLL-2003"
    draw = partial(figure, runs, extent, published=not quick)
    return Study(title, [share_table(runs, extent)], notes, picture=draw)


def _notes(bench: Bench, extent: Whole) -> list[str]:
    """Return how much was done, and how numbers are to be read."""
    pool = f"{bench.train.n_items} sentences with {bench.train.n_tokens} tokens"
    seeds = "1 seed" if extent.repeats == 1 else f"{extent.repeats} seeds"
    followed = extent.stops_of(SCHEDULE)[-1] / extent.n_tokens
    how = f"in at most {STEPS} steps of L-BFGS from the CRF of the stop before"
    return [
        f"{seeds}; the pool has {pool}. A CRF is trained on their gold, {how}.",
        (
            f"The whole F1 is that of the CRFs with which random has bought all. Rules that ask a "
            f"model are followed to {followed:.0%} of the pool; an empty cell was not reached."
        ),
        "Between two stops the F1 is taken to rise in a straight line.",
    ]


def shares_of(runs: Runs, extent: Whole, label: str, test: str) -> tuple[Floats, float]:
    """Return the F1 of a rule at its stops as shares of the whole F1, and the whole F1."""
    whole = float(f1_of(runs, RANDOM, test, extent.stops[-1:]).mean())
    return f1_of(runs, label, test, extent.stops_of(label)).mean(axis=0) / whole, whole


def needed(stops: Sequence[int], reached: Floats, share: float) -> float | None:
    """Return the tokens with which a share is first reached, by straight lines between stops.

    None: it is not reached.

    >>> needed([100, 200, 400], np.array([0.5, 0.75, 1.0]), 0.875)
    300.0
    """
    at = int(np.argmax(reached >= share))
    if at == 0:
        return float(stops[0]) if reached[0] >= share else None
    a, b = reached[at - 1], reached[at]
    return float(stops[at - 1] + (stops[at] - stops[at - 1]) * (share - a) / (b - a))


def share_table(runs: Runs, extent: Whole) -> Table:
    """Return which share of the tokens every rule needs."""
    rows = []
    for test in tests_of(runs):
        for label in COMPARED:
            reached, whole = shares_of(runs, extent, label, test)
            found = (needed(extent.stops_of(label), reached, share) for share in SHARES)
            cells = [None if n is None else 100 * n / extent.n_tokens for n in found]
            rows.append((test, label, whole, *cells))
    heads = tuple(f"{share:.0%} of it" for share in SHARES)
    columns = ("", "rule", "F1 of the whole pool", *heads)
    return Table(
        "Share of the pool's tokens, in per cent, that a share of the whole pool's F1 needs",
        columns, tuple(rows), dict.fromkeys(heads, 1),
    )  # fmt: skip


def figure(runs: Runs, extent: Whole, *, published: bool = True) -> Figure:
    """Draw the share of the F1 by the share of the tokens, a panel per test set.

    Args:
        runs: The runs.
        extent: How much was done.
        published: Whether the published share is drawn, too: not beside a part of the data.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    tests = tests_of(runs)
    found = new_figure(4.6 * len(tests), 3.6)
    with default_style():
        axes = found.subplots(1, len(tests), squeeze=False)[0]
        found.subplots_adjust(left=0.06, right=0.99, top=0.91, bottom=0.26, wspace=0.14)
        for ax, test in zip(axes, tests, strict=True):
            for label in COMPARED:
                look = {**LOOK[label], "markersize": 3.5, "linewidth": 1.3}
                x = 100 * np.array(extent.stops_of(label)) / extent.n_tokens
                ax.plot(x, 100 * shares_of(runs, extent, label, test)[0], label=label, **look)
            ax.axhline(99, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
            if published:
                ax.plot(
                    [100 * PUBLISHED], [99], linestyle="none", marker="*", markersize=9, color=INK,
                    label="Shen et al. 2018 (OntoNotes, deep model)",
                )  # fmt: skip
            ax.set_ylim(bottom=80)
            bare(ax)
            ax.set_title(f"{test}: % of the F1 of the whole pool", size=9, family=FONT, color=INK)
            ax.set_xlabel("% of the pool's tokens", size=8.5, family=FONT, color=INK)
        handles, names = axes[0].get_legend_handles_labels()
        found.legend(
            handles, names, loc="lower center", ncols=len(names), frameon=False,
            prop={"family": FONT, "size": 8.5}, labelcolor=INK,
        )  # fmt: skip
    return found
