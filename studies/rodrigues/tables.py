"""The tables of the studies of Rodrigues et al.: means and deviations over repeats, t-tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.rodrigues.journal import Key
from studies.rodrigues.methods import OWN, UPPER, Claim, Reliability, Run
from studies.rodrigues.paired import holm, paired_p
from studies.table import Table

Runs = Mapping[Key, Run]
RATES = ("P", "R", "F1")
P_VALUE, CORRECTED = "p", "p, Holm"
LEVEL = 0.05
"""Of all tests of the paper's order in a study together; the paper's own p values are far below."""
JUDGED = (
    'p is of the paired t-test over the repeats. "p, Holm" is corrected for all comparisons of the '
    "paper's claim in this study, on all items, together, and the verdicts go by it; rows with "
    "which the paper does not compare have none."
)


def columns_of(runs: Runs) -> dict[str, list[Run]]:
    """Return the runs of every method, in the order of the repeats."""
    found: dict[str, list[Run]] = {}
    for _, label in runs:
        found.setdefault(label, [])
    for key in sorted(runs, key=lambda key: key[0]):
        found[key[1]].append(runs[key])
    return found


def rates_of(runs: list[Run], items: str) -> NDArray[np.float64]:
    """Return precision, recall and F1 in per cent, float64 [n_repeats, 3]."""
    return 100 * np.array([run.scores[items] for run in runs])


def score_tables(
    runs: Runs, claim: Claim, published: Mapping[tuple[str, str], float] | None = None
) -> list[Table]:
    """Make a table for the crowd's own items, and one for every test set.

    Args:
        runs: All of them.
        claim: Its method is compared with all others.
        published: F1 that the paper gives, by items and method.
    """
    tests = tests_of(runs, claim)
    names = next(iter(runs.values())).scores
    return [_score_table(runs, items, claim.method, published or {}, tests) for items in names]


def _score_table(
    runs: Runs,
    items: str,
    first: str,
    published: Mapping[tuple[str, str], float],
    tests: Mapping[tuple[str, str], Tested],
) -> Table:
    methods = columns_of(runs)
    counts = {len(own) for label, own in methods.items() if label != UPPER} or {1}
    n_repeats, ahead = max(counts), f"{first} ahead by"
    is_drawn, is_even = n_repeats > 1, len(counts) == 1
    columns = ["method", *([] if is_even else ["repeats"])]
    columns += [c for r in RATES for c in ([r, f"s.d. {r}"] if is_drawn else [r])]
    if first in methods:
        columns += [ahead, P_VALUE, CORRECTED] if is_drawn else [ahead]
    if any(place == items for place, _ in published):
        columns.append("published F1")
    rows = []
    for label, every in methods.items():
        own = every[:1] if label == UPPER else every  # one run, which stands in every repeat
        cells = {"method": label, "repeats": len(own), **_means(rates_of(own, items))}
        cells["published F1"] = published.get((items, label))
        if label != first and first in methods:
            _, cells[ahead], p = _compared(runs, first, label, items)
            cells[P_VALUE] = None if label == UPPER else p
            if (items, label) in tests:
                cells[CORRECTED] = tests[items, label].corrected
        rows.append(tuple(cells.get(column) for column in columns))
    caption = f"{_caption(items)}, span F1 in per cent"
    if not is_even:
        caption += f", {min(counts)} to {n_repeats} repeats"
    elif is_drawn:
        caption += f", {n_repeats} repeats"
    digits: dict[str, int | str] = {P_VALUE: ".1e", CORRECTED: ".1e", "published F1": 1}
    return Table(caption, tuple(columns), tuple(rows), digits)


def _caption(items: str) -> str:
    if items == OWN:
        return "Inferred labels of the items that were labelled"
    return f"Taggers on {items}"


def _means(rates: NDArray[np.float64]) -> dict[str, Any]:
    """Return means and standard deviations by column."""
    cells: dict[str, Any] = dict(zip(RATES, rates.mean(axis=0).tolist(), strict=True))
    if len(rates) > 1:
        spread = rates.std(axis=0, ddof=1).tolist()
        cells |= {f"s.d. {name}": value for name, value in zip(RATES, spread, strict=True)}
    return cells


def _compared(
    runs: Runs, first: str, other: str, items: str
) -> tuple[int, float | None, float | None]:
    """Say in how many repeats both methods ran, by how much the first's F1 is above, and its p."""
    both = [repeat for repeat, label in runs if label == first and (repeat, other) in runs]
    if not both:
        return 0, None, None
    a, b = (rates_of([runs[n, label] for n in both], items)[:, 2] for label in (first, other))
    return len(both), float(a.mean() - b.mean()), paired_p(a.tolist(), b.tolist())


class Tested(NamedTuple):
    """A comparison of the paper's claim.

    Attributes:
        n: Repeats in which both methods ran.
        gap: By how much F1 is ahead, in per cent.
        p: Of the paired t-test; None where it says nothing.
        corrected: The same, for all comparisons of the claim together.
    """

    n: int
    gap: float
    p: float | None
    corrected: float | None


def tests_of(runs: Runs, claim: Claim) -> dict[tuple[str, str], Tested]:
    """Make all comparisons of the paper's claim, by items and method."""
    methods = columns_of(runs)
    if claim.method not in methods:
        return {}
    found = {
        (items, label): _compared(runs, claim.method, label, items)
        for items in next(iter(runs.values())).scores
        for label in claim.below
        if label in methods
    }
    corrected = holm([p for _, _, p in found.values()])
    return {
        key: Tested(n, gap, p, c)
        for (key, (n, gap, p)), c in zip(found.items(), corrected, strict=True)
        if gap is not None
    }


def order_notes(runs: Runs, claim: Claim) -> list[str]:
    """Return against which methods the paper's order holds, by the paired t-test over repeats.

    It holds where the gap is positive and its corrected p value below `LEVEL`, it does not where
    the gap is negative with such a p value; whatever else was measured shows nothing. A single run
    has no p value, and only its gaps are told.
    """
    tests, notes = tests_of(runs, claim), []
    if not tests:
        return []
    counts = {one.n for one in tests.values()}
    n_repeats = max(counts)
    over = f"{n_repeats} repeats" if len(counts) == 1 else "the repeats that both have"
    tested = f"paired t-test over {over}" if n_repeats > 1 else "one run, no test"
    for items in next(iter(runs.values())).scores:
        found: dict[str, list[str]] = {}
        for (place, label), one in tests.items():
            if place != items:
                continue
            p = "" if one.corrected is None else f", p = {one.corrected:.1e} corrected"
            size = f"{label} ({one.gap:+.2f}{p})"
            found.setdefault(_verdict(one.gap, one.corrected, one.n), []).append(size)
        verdicts = "; ".join(f"{verdict} {', '.join(found[verdict])}" for verdict in sorted(found))
        notes.append(f"The paper's order on {items} ({tested}): {claim.method} {verdicts}.")
    return [*notes, JUDGED] if n_repeats > 1 else notes


def _verdict(gap: float, p: float | None, n_repeats: int) -> str:
    if n_repeats == 1:
        return "is ahead of" if gap > 0 else "is NOT ahead of"
    if p is None or p >= LEVEL:
        return "is not shown to be above"
    return "is above" if gap > 0 else "is BELOW"


def worker_table(runs: Runs, workers: Mapping[str, str]) -> Table:
    """Show how good the simulated workers are, and how good the methods think they are.

    Args:
        runs: All of them.
        workers: What every worker is, by id.
    """
    methods = columns_of(runs)
    labels = [label for label in methods if label != UPPER] or list(methods)
    rows = []
    for name, what in workers.items():
        true = _mean_of(methods[labels[0]], name, "true")
        rows.append((what, true, *(_mean_of(methods[m], name, "estimated") for m in labels)))
    caption = "Span F1 of the workers in per cent: true, and against the methods' labels"
    return Table(caption, ("worker", "true", *labels), tuple(rows))


def _mean_of(runs: list[Run], worker: str, what: str) -> float | None:
    found = [getattr(one, what) for run in runs for one in run.workers if one.worker == worker]
    return 100 * float(np.mean(found)) if found else None


def reliability_error(workers: tuple[Reliability, ...]) -> float:
    """Return the root mean square of estimated less true F1, in per cent.

    >>> round(reliability_error((Reliability("a", 0.5, 0.6), Reliability("b", 0.7, 0.5))), 2)
    15.81
    """
    gaps = [one.estimated - one.true for one in workers]
    return 100 * float(np.sqrt(np.mean(np.square(gaps))))


def error_table(runs: Runs, published: Mapping[str, float] | None = None) -> Table:
    """Show how well the methods know the workers.

    Args:
        runs: All of them.
        published: The error in the paper, by method; without any there is no column for it.
    """
    columns = ("method", "RMSE, %", "mean, %", *(["published RMSE, %"] if published else []))
    rows = []
    for label, own in columns_of(runs).items():
        error = float(np.mean([reliability_error(run.workers) for run in own]))
        gaps = [w.estimated - w.true for run in own for w in run.workers]
        known = [published.get(label)] if published else []
        rows.append((label, error, 100 * float(np.mean(gaps)), *known))
    caption = "The workers' F1, estimated less true, over workers"
    return Table(caption, columns, tuple(rows))


def seconds_table(runs: Runs) -> Table:
    """Show how long learning took."""
    rows = [
        (label, float(np.mean([run.seconds for run in own])))
        for label, own in columns_of(runs).items()
    ]
    return Table("Seconds of learning on one thread, beside other runs", ("method", "mean"),
                 tuple(rows), {"mean": 1})  # fmt: skip
