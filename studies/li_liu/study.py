"""Study li-liu: the four figures of Li and Liu, bluebirds, and unequal tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from goldspan.runners import Threads
from studies.li_liu.ner import ner_table
from studies.li_liu.panels import Curves, Panel, Told, by_budget, by_gold, by_prior
from studies.li_liu.panels import carry_out as run_panel
from studies.li_liu.pictures import panel_figure
from studies.li_liu.pools import Pool, draw_pool, read_pool
from studies.li_liu.trial import LEARNED, VOTES
from studies.li_liu.unequal import unequal_table
from studies.table import Study, Table, check_repeats

REPEATS, QUICK_REPEATS = 100, 5
REAL_REPEATS = 20
"""Trials on the real crowds beside bluebirds."""
NER_REPEATS = 10
"""Trials on the NER crowd: they differ little, and take long."""
BUDGETS = (3, 5, 7, 9, 11, 15, 19, 23, 27, 31)
BLUEBIRDS = (3, 5, 7, 9, 11, 15, 20, 25, 30, 39)
REAL: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("ducks", 10, (3, 5, 7, 9, 11, 15, 20, 30, 40, 53)),
    ("weather_tweets_amt", 30, (3, 5, 7, 9, 11, 15, 20)),
    ("dog", 80, (3, 5, 7, 10)),
    ("face_sentiment", 58, (3, 5, 7, 9)),
    ("snow_rte", 80, (3, 5, 7, 10)),
)
"""Crowds that stand in for Figures 3 and 4b: name, gold items, budgets."""
WHOLE = frozenset({"ducks"})
"""Where one team answers all items."""
GOLD = (3, 5, 10, 15, 20, 30, 45)
PRIORS = (1.0, 1.5, 2.0, 2.3, 3.0, 4.0, 5.0)
FIXED_BUDGET = 15
TARGETS = (
    ("votes, top K", 0.759, "votes of all 39"),
    ("WMV-lin top K", 0.833, "WMV-linear, all 39"),
    ("WMV-lin selected", 0.854, "WMV-linear, selected"),
    ("EM full top K", 0.899, "EM with full confusions, all 39"),
)
"""The project's own targets on bluebirds with 10 gold items: line, accuracy, in words."""
NOTES = (
    (
        "Means over the trials; a trial draws its gold questions and, where the pool is "
        "simulated, the pool. What is scored are the other items."
    ),
    (
        "Top K: the K workers with the largest share of right answers. Selected: Algorithm 1 with "
        "the unbiased score, workers below chance included with negative weights, as in the paper; "
        "plug-in: the same without the variance; posterior: goldspan's default (Beta posterior, "
        "workers below chance left out, nobody hired where nobody seems to be informative, which "
        "counts as guessing); posterior, negative: with those below chance, as the paper."
    ),
    (
        "Assumed where our copy of the paper has lost its numbers: workers' reliabilities are "
        f"Beta(2.3, 2); Figure 2 has a budget of {FIXED_BUDGET}. The paper's other two crowds are "
        "not public; the densest ones of the data folder stand in for them. Where not every "
        'worker answered every item ("own pools"), the K of an item are the best K of the '
        'workers who answered it, and Algorithm 1 chooses among these; "workers" are then '
        "answers per item. On ducks (40 of 53 workers per image) teams are the same for all items."
    ),
    "EM is smoothed lightly (alpha0 = 0.1, epsilon0 = 0), as the paper's is hardly smoothed.",
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    repeats: int | None = None,
    quick: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `classification`.
        progress: Told how many of all trials are over.
        repeats: Trials of every panel; 100 by default.
        quick: Whether it is only to be seen that the study runs.
        threads: How many; all cores by default.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
    """
    check_repeats(repeats)
    n_trials = repeats or (QUICK_REPEATS if quick else REPEATS)
    panels, runner = _panels(data), Threads(threads)
    times = [n_trials] * N_LONG + [min(REAL_REPEATS, n_trials)] * (len(panels) - N_LONG)
    n_ner = min(NER_REPEATS, n_trials)
    told = _counter(sum(times) + n_trials + n_ner, progress)
    found = [run_panel(panel, n, runner, told) for panel, n in zip(panels, times, strict=True)]
    tables = [_target_table(found[3])]
    for curves in found:
        tables += _tables(curves)
    tables.append(unequal_table(n_trials, told))
    tables.append(ner_table(data, n_ner, runner, told))
    extent = (
        f"{'QUICK: ' if quick else ''}{n_trials} trials of Figures 1, 2 and 4a, {times[-1]} of "
        "other panels."
    )
    title = "Li and Liu 2015: cheaper and better"
    return Study(title, tables, (extent, *NOTES), picture=partial(panel_figure, found))


SHORT = tuple(
    entry
    for entry in (*VOTES, *LEARNED)
    if entry.label not in {"WMV-lin plug-in", "WMV-log selected", "WMV-lin posterior, negative"}
)
"""The lines on real crowds."""
N_LONG = 4
"""Panels of all trials; the last of them is the one on bluebirds."""


def _panels(data: Path) -> list[Panel]:
    """List the panels."""
    bluebirds = read_pool(data, "bluebirds", 10)
    both = (*VOTES, *LEARNED)
    panels = [
        by_budget("Figure 1: 31 × 1,000, 2 labels", partial(_simulated, 2), VOTES, BUDGETS),
        by_gold("Figure 2a", partial(_simulated, 2), VOTES, GOLD, FIXED_BUDGET),
        by_prior("Figure 2b", _with_prior, VOTES, PRIORS, FIXED_BUDGET),
        by_budget("Figure 4a: bluebirds", lambda _: bluebirds, both, BLUEBIRDS),
    ]
    for name, n_gold, budgets in REAL:
        pool, is_own = read_pool(data, name, n_gold), name not in WHOLE
        n_workers, n_labels = pool.crowd.n_workers, len(pool.crowd.tagset.tags)
        title = f"Figure 4, {name}: {n_workers} workers, {n_labels} labels, {n_gold} gold"
        panels.append(
            by_budget(
                f"{title}, own pools" if is_own else title, partial(_same, pool), SHORT, budgets,
                is_own=is_own,
            )
        )  # fmt: skip
    return panels


def _same(pool: Pool, _: int) -> Pool:
    return pool


def _simulated(n_labels: int, seed: int, n_items: int = 1000, n_workers: int = 31) -> Pool:
    return draw_pool(n_labels, n_workers=n_workers, n_items=n_items, seed=seed)


def _with_prior(seed: int, a: float) -> Pool:
    return draw_pool(2, beta=(a, 2.0), seed=seed)


def _counter(total: int, progress: Told | None) -> Callable[[], None]:
    done = 0

    def told() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)

    return told


def _target_table(curves: Curves) -> Table:
    """Set the project's own targets on bluebirds beside what was measured."""
    rows = []
    for label, target, words in TARGETS:
        row = curves.row(label)
        mean, error = float(curves.mean[row, -1]), float(curves.error[row, -1])
        size = float(curves.size[:, row, -1].mean())
        away = abs(mean - target) / error if error else None
        rows.append((words, target, mean, error, away, size))
    return Table(
        "Bluebirds, 10 gold items: the project's own targets and what was measured",
        ("", "target", "measured", "s.e.", "distance in s.e.", "workers"),
        tuple(rows),
        {"target": 3, "measured": 4, "s.e.": 4, "distance in s.e.": 1, "workers": 1},
    )


def _tables(curves: Curves) -> list[Table]:
    panel = curves.panel
    heads = ("", *(f"{place:g}" for place in panel.places))
    right = tuple(
        (entry.label, *(100 * value for value in row.tolist()))
        for entry, row in zip(panel.entries, curves.mean, strict=True)
    )
    ways = {entry.way.name: line for line, entry in enumerate(panel.entries)}
    sizes = tuple(
        (name, *curves.size[:, line].mean(axis=0).tolist())
        for name, line in ways.items()
        if name not in {"top K", "random K"}
    )
    most = 100 * float(curves.error.max())
    return [
        Table(
            f"{panel.title}: accuracy in per cent by {panel.axis} (s.e. at most {most:.2f})",
            heads, right, dict.fromkeys(heads[1:], 1),
        ),
        Table(f"{panel.title}: workers in the team", heads, sizes, dict.fromkeys(heads[1:], 1)),
    ]  # fmt: skip
