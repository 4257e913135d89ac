"""The tables: F1 by tokens, gains over random in pairs, what was picked, what costs change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from studies.rodrigues.paired import paired_p
from studies.selection_ner.journal import Runs
from studies.selection_ner.lines import (
    BY_COST,
    BY_ERRORS,
    BY_ITEMS,
    RANDOM,
    RULES,
    SCHEDULE,
    Extent,
)
from studies.selection_ner.trial import Stop
from studies.table import Table

Floats = NDArray[np.float64]
NEEDED = 22_000
"""Tokens with which the default schedule is to reach what random has at the last budget."""


def values_of(
    runs: Runs, label: str, limits: Sequence[int], value: Callable[[Stop], float]
) -> Floats:
    """Return a value of a line at some of its stops, float64 [n_seeds, n_limits]."""
    rows = []
    for seed in sorted({seed for seed, own in runs if own == label}):
        at = {stop.limit: stop for stop in runs[seed, label]}
        rows.append([value(at[limit]) for limit in limits])
    return np.array(rows, np.float64)


def f1_of(runs: Runs, label: str, test: str, limits: Sequence[int]) -> Floats:
    """Return span F1 in per cent, float64 [n_seeds, n_limits]."""
    return 100 * values_of(runs, label, limits, lambda stop: stop.f1[test])


def error_of(values: Floats) -> Floats:
    """Return the standard error of the mean over seeds, float64 [n_limits]; NaN for one seed."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def tests_of(runs: Runs) -> list[str]:
    """Name the test sets, the one for final numbers first."""
    return sorted(next(iter(runs.values()))[0].f1, reverse=True)


def target_table(runs: Runs, extent: Extent) -> Table:
    """Set the default schedule beside random where we set it a target."""
    last = extent.budgets[-1]
    pairs = [(extent.budgets[0],) * 2]
    if NEEDED in extent.budgets:
        pairs.append((NEEDED, last))
    rows = []
    for test in tests_of(runs):
        for ours, others in pairs:
            a = f1_of(runs, SCHEDULE, test, [ours])[:, 0]
            b = f1_of(runs, RANDOM, test, [others])[:, 0]
            means = float(a.mean()), float(b.mean())
            rows.append((test, ours, means[0], others, means[1], *_compared(a, b)))
    heads = ("", "tokens", SCHEDULE, "tokens of random", RANDOM, *COMPARED)
    caption = f"Our target: the {SCHEDULE} against random, span F1 in per cent"
    return Table(caption, heads, tuple(rows), {"p": ".1g"})


COMPARED = ("ahead by", "s.e.", "p", "seeds ahead")


def _compared(ours: Floats, other: Floats) -> tuple[float, float | None, float | None, str]:
    """Compare two lines seed by seed: mean difference, its error, p of the paired t-test."""
    gap = (ours - other)[:, None]
    error = float(error_of(gap)[0])
    p = paired_p(ours.tolist(), other.tolist())
    won = f"{int((gap > 0).sum())} of {len(gap)}"
    return float(gap.mean()), None if np.isnan(error) else error, p, won


def reach_table(runs: Runs, extent: Extent) -> Table:
    """Say with how many tokens rules reach what random has at the last budget.

    Rules that ask a model are scored after every round, the others at the budgets.
    """
    last, limits = extent.budgets[-1], {line.label: line.limits for line in extent.lines}
    rows = []
    for test in tests_of(runs):
        goal = f1_of(runs, RANDOM, test, [last])[:, 0]
        for label in RULES:
            found = f1_of(runs, label, test, limits[label])
            each = [_first(row, own, limits[label]) for row, own in zip(found, goal, strict=True)]
            mean = _first(found.mean(axis=0), float(goal.mean()), limits[label])
            reached = [tokens for tokens in each if tokens is not None]
            worst = max(reached) if len(reached) == len(each) else None
            rows.append((test, label, mean, worst))
    caption = f"Tokens with which random's F1 at {last:,} is reached"
    return Table(caption, ("", "rule", "by the mean F1", "by every seed"), tuple(rows))


def _first(f1: Floats, goal: float, limits: Sequence[int]) -> int | None:
    reached = np.flatnonzero(f1 >= goal)
    return int(limits[int(reached[0])]) if len(reached) else None


def f1_tables(runs: Runs, extent: Extent) -> list[Table]:
    """Show F1 by tokens, and its standard errors, for every test set."""
    heads = ("", *(f"{budget:,}" for budget in extent.budgets))
    tables = []
    for test in tests_of(runs):
        found = {label: f1_of(runs, label, test, extent.budgets) for label in RULES}
        means = tuple((label, *own.mean(axis=0).tolist()) for label, own in found.items())
        errors = tuple((label, *error_of(own).tolist()) for label, own in found.items())
        title = f"{test}: span F1 in per cent by tokens"
        tables.append(Table(f"{title}, mean of {extent.repeats} seeds", heads, means))
        if extent.repeats > 1:
            tables.append(Table(f"{title}: standard error of the mean", heads, errors))
    return tables


def gain_table(runs: Runs, extent: Extent) -> Table:
    """Compare every rule with random at the same tokens, seed by seed."""
    tests = tests_of(runs)
    rows = []
    for label in [label for label in RULES if label != RANDOM]:
        for at, budget in enumerate(extent.budgets):
            cells: list[float | str | None] = []
            for test in tests:
                ours, other = (f1_of(runs, one, test, extent.budgets) for one in (label, RANDOM))
                cells += _compared(ours[:, at], other[:, at])
            rows.append((label, budget, *cells))
    heads = ("rule", "tokens", *(f"{test}: {head}" for test in tests for head in COMPARED))
    caption = "Ahead of random at the same tokens, span F1 in per cent"
    return Table(caption, heads, tuple(rows), {f"{test}: p": ".1g" for test in tests})


def errors_table(runs: Runs, extent: Extent) -> Table:
    """Compare rules that are told what a CRF gets wrong with those that are not."""
    tests = tests_of(runs)
    rows = []
    for label, (_, _, other) in BY_ERRORS.items():
        for budget in extent.told:
            cells: list[float | str | None] = []
            for test in tests:
                ours, plain = (f1_of(runs, one, test, [budget])[:, 0] for one in (label, other))
                cells += [float(ours.mean()), *_compared(ours, plain)]
            rows.append((label, other, budget, *cells))
    heads = (f"{test}: {head}" for test in tests for head in ("F1", *COMPARED))
    caption = (
        "Told what a CRF gets wrong: span F1 in per cent beside the same rule that is not told"
    )
    return Table(
        caption, ("rule", "compared with", "tokens", *heads), tuple(rows),
        {f"{test}: p": ".1g" for test in tests},
    )  # fmt: skip


def picks_table(runs: Runs, extent: Extent) -> Table:
    """Show what was picked by the first and by the last budget."""
    columns: tuple[tuple[str, Callable[[Stop], float], int], ...] = (
        ("sentences", lambda stop: stop.items, 0),
        ("tokens", lambda stop: stop.tokens, 0),
        ("tokens per sentence", lambda stop: stop.tokens / stop.items, 1),
        ("names per 100 tokens", lambda stop: 100 * stop.names / stop.tokens, 1),
        ("distinct words", lambda stop: stop.words, 0),
        ("of them once in the pool, %", lambda stop: 100 * stop.unique / stop.words, 0),
    )
    ends = list(dict.fromkeys((extent.budgets[0], extent.budgets[-1])))
    rows = []
    for budget in ends:
        for label in RULES:
            means = (float(values_of(runs, label, [budget], one).mean()) for _, one, _ in columns)
            rows.append((budget, label, *means))
    return Table(
        "What was picked (means over the seeds)",
        ("budget", "rule", *(head for head, _, _ in columns)),
        tuple(rows),
        {head: digits for head, _, digits in columns},
    )


def length_table(runs: Runs, extent: Extent) -> Table:
    """Show the mean length of what was picked between two budgets."""
    heads = ("", *(f"to {budget:,}" for budget in extent.budgets))
    rows = []
    for label in RULES:
        tokens = values_of(runs, label, extent.budgets, lambda stop: stop.tokens).mean(axis=0)
        items = values_of(runs, label, extent.budgets, lambda stop: stop.items).mean(axis=0)
        new = np.diff(items, prepend=0)
        each = np.divide(np.diff(tokens, prepend=0), new, out=np.full(len(new), np.nan),
                         where=new > 0)  # fmt: skip
        rows.append((label, *(None if np.isnan(one) else one for one in each.tolist())))
    caption = "Tokens per sentence of what was picked since the budget before"
    return Table(caption, heads, tuple(rows), dict.fromkeys(heads[1:], 1))


def cost_tables(runs: Runs, extent: Extent) -> list[Table]:
    """Show coverage with both of our changes, one and neither."""
    named = {rule: label for label, rule in RULES.items()}
    budgets = extent.early
    heads = ("pairs weigh", "gain per token", "tokens per sentence", *(f"{b:,}" for b in budgets))
    tables = []
    for test in tests_of(runs):
        rows = []
        for (weights, cost), rule in BY_COST.items():
            label = named.get(rule, rule)
            length = values_of(runs, label, budgets[:1], lambda stop: stop.tokens / stop.items)
            f1 = f1_of(runs, label, test, budgets).mean(axis=0)
            rows.append((weights, cost, float(length.mean()), *f1.tolist()))
        caption = f"Coverage by weights and costs: span F1 on {test} by tokens"
        tables.append(Table(caption, heads, tuple(rows), {"tokens per sentence": 1}))
    return tables


def item_table(runs: Runs, extent: Extent) -> Table:
    """Show the same rules where every sentence costs the same, whatever its length."""
    tests = tests_of(runs)
    rows = []
    for budget in extent.items:
        for rule in BY_ITEMS:
            label = f"{rule} by items"
            tokens = float(values_of(runs, label, [budget], lambda stop: stop.tokens).mean())
            cells: list[float | None] = []
            for test in tests:
                f1 = f1_of(runs, label, test, [budget])
                error = float(error_of(f1)[0])
                cells += [float(f1.mean()), None if np.isnan(error) else error]
            rows.append((budget, rule, tokens, tokens / budget, *cells))
    scores = (head for test in tests for head in (f"F1 on {test}", f"s.e. on {test}"))
    heads = ("sentences", "rule", "tokens", "tokens per sentence", *scores)
    caption = "If every sentence cost the same: equal budgets of sentences"
    return Table(caption, heads, tuple(rows), {"tokens": 0, "tokens per sentence": 1})
