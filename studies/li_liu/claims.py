"""Study li-liu-claims: where "selected" beats "top K" at every budget (Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from goldspan.workers import Reliability
from goldspan.workers.teams import team_values, worker_scores
from studies.journal import Key, whole_repeats
from studies.li_liu.journal import Found, Journal
from studies.li_liu.panels import Told
from studies.li_liu.pools import Pool, read_pool
from studies.table import Study, Table, check_repeats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

REPEATS, QUICK_REPEATS = 100, 4
N_ITEMS = 1000
BUDGET = 15
"""Of Figure 2."""
REAL = ("bluebirds", "ducks")
"""Crowds that the claim is looked at on."""
LEVEL = 0.05
"""Of all budgets of a setting together (Bonferroni)."""


@dataclass(frozen=True)
class Setting:
    """A simulated world; the defaults are those of Figure 1.

    Attributes:
        n_labels: Labels, all as frequent.
        a: Of the workers' Beta(a, b).
        b: Of the workers' Beta(a, b).
        n_gold: Gold questions.
        guessers: Share of the workers who guess, whatever the Beta.
        hard: Share of hard items: who is right with probability w elsewhere knows them with w³,
            and all others give the same wrong label.
        is_cut: Whether answers of workers who tested below chance count nothing, in place of
            counting against what they say.
        n_workers: Size of the pool.
        crowd: Name of a real crowd whose answers are taken in place of drawn ones; "" for none.
    """

    n_labels: int = 2
    a: float = 2.3
    b: float = 2.0
    n_gold: int = 10
    guessers: float = 0.0
    hard: float = 0.0
    is_cut: bool = False
    n_workers: int = 31
    crowd: str = ""

    def __str__(self) -> str:
        """Name it, with all that it is."""
        if self.crowd:
            return f"{self.crowd}, {self.n_gold} gold"
        return (
            f"{self.n_labels} labels, Beta({self.a:g}, {self.b:g}), {self.n_gold} gold, "
            f"{self.guessers:g} guess, {self.hard:g} hard, {'cut' if self.is_cut else 'negative'}, "
            f"{self.n_workers} workers"
        )


BASE = Setting()
GROUPS: dict[str, dict[str, Setting]] = {
    "Labels": {
        "2 (the paper)": BASE, "3": Setting(n_labels=3), "4": Setting(n_labels=4),
        "8": Setting(n_labels=8),
    },
    "Abilities": {
        "Beta(2.3, 2) (the paper)": BASE, "Beta(1, 1)": Setting(a=1, b=1),
        "Beta(4, 2)": Setting(a=4), "Beta(8, 2)": Setting(a=8), "Beta(2, 4)": Setting(a=2, b=4),
        "Beta(20, 20)": Setting(a=20, b=20),
    },
    "Gold questions": {
        "10 (the paper)": BASE, "3": Setting(n_gold=3), "5": Setting(n_gold=5),
        "20": Setting(n_gold=20), "45": Setting(n_gold=45), "100": Setting(n_gold=100),
    },
    "Below chance": {
        "counted negatively (the paper)": BASE, "not counted": Setting(is_cut=True),
        "not counted, 4 labels": Setting(is_cut=True, n_labels=4),
        "not counted, Beta(4, 2)": Setting(is_cut=True, a=4),
    },
    "Guessers": {
        "none (the paper)": BASE, "half": Setting(guessers=0.5),
        "four fifths": Setting(guessers=0.8),
        "four fifths, Beta(8, 2)": Setting(guessers=0.8, a=8),
        "four fifths, Beta(8, 2), 100 workers": Setting(guessers=0.8, a=8, n_workers=100),
    },
    "Shared mistakes": {
        "none (the paper)": BASE, "10 % of the items": Setting(hard=0.1),
        "20 %": Setting(hard=0.2), "40 %": Setting(hard=0.4),
        "20 %, Beta(4, 2)": Setting(hard=0.2, a=4), "20 %, 4 labels": Setting(hard=0.2, n_labels=4),
    },
}  # fmt: skip
"""What is varied, one thing at a time or two."""
WORLDS: dict[str, Setting] = {
    "as the paper": BASE,
    "4 labels": Setting(n_labels=4),
    "below chance not counted": Setting(is_cut=True),
    "shared mistakes, 20 %": Setting(hard=0.2),
}
CONTROL = (3, 5, 10, 15, 20, 30, 45)
PRIORS = (1.0, 1.5, 2.0, 2.3, 3.0, 4.0, 5.0)
TOP, SELECTED, PLUGIN, SIZE = "top K", "selected", "plug-in", "size"


def study(
    data: Path,
    *,
    progress: Told | None = None,
    repeats: int | None = None,
    quick: bool = False,
    threads: int | None = None,  # noqa: ARG001 - trials are short
    state: Path | None = None,
    so_far: bool = False,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `classification`.
        progress: Told how many trials are over, of how many.
        repeats: Trials of every setting; 100 by default.
        quick: Whether it is only to be seen that the study runs.
        threads: Not needed.
        state: The file in which finished trials are kept, or None.
        so_far: Make the tables of the repeats that are finished, and do no run.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
    """
    check_repeats(repeats)
    n_trials = repeats or (QUICK_REPEATS if quick else REPEATS)
    settings = dict.fromkeys(one for group in GROUPS.values() for one in group.values())
    grids = [(_with_gold, CONTROL), (_with_prior, PRIORS)]
    for change, values in grids:
        settings |= dict.fromkeys(change(w, v) for w in WORLDS.values() for v in values)
    real = {name: relabelled(read_pool(data, name, 10)) for name in REAL}
    pools = {Setting(crowd=name, n_workers=len(own)): own for name, own in real.items()}
    every, notes = [*pools, *settings], list(NOTES)
    if so_far:
        n_trials, told = whole_repeats(_journal(every, state).runs, _keys(every, n_trials))
        notes.insert(0, told)
    found = carry_out(every, n_trials, pools, state, progress)
    groups = {**GROUPS, "Real crowds": {one.crowd: one for one in pools}}
    tables = [
        _claims(found, groups, quick=quick),
        *(_figure_2(found, name) for name in (PLUGIN, TOP)),
    ]
    extent = f"{'QUICK: ' if quick else ''}{n_trials} trials of every setting, {N_ITEMS} items."
    return Study(
        "Li and Liu 2015: which settings reproduce the claims?", tables, (extent, *notes),
        picture=partial(_picture, found),
    )  # fmt: skip


NOTES = (
    (
        "Votes with linear weights. Top K: the K with the largest shares of right gold answers; "
        "selected: Algorithm 1 with the unbiased score; plug-in: without the variance. The teams "
        "of a trial are chosen by the same test results and vote on the same answers."
    ),
    (
        '"Top K is better from K =": the smallest budget from which, up to the whole pool, top K '
        "is better than selected at the same budget (paired t test, 5 % for all budgets of a "
        'setting together); "nowhere" means that nothing was shown against the claim, not that it '
        'holds. "Selected is better at K =": the budgets at which that is shown by the same test. '
        'Figure 1a "holds" where selected is shown better at some budget and is below top K in the '
        'mean at none; it "fails" where top K is shown better at some.'
    ),
    (
        "Hard items: who is right with probability w elsewhere knows them with w³, and all others "
        "give the same wrong label. Guessers are right by chance."
    ),
)  # fmt: skip


def _with_gold(world: Setting, number: float) -> Setting:
    return Setting(**{**vars(world), "n_gold": int(number)})


def _with_prior(world: Setting, a: float) -> Setting:
    return Setting(**{**vars(world), "a": a})


def relabelled(pool: Pool) -> NDArray[np.int64]:
    """Return all answers as if the truth were label 0, int64 [n_workers, n_items], -1 for none."""
    answers, n_labels = pool.crowd.latest, len(pool.crowd.tagset.tags)
    found = np.full((pool.crowd.n_workers, pool.crowd.n_items), -1)
    right = pool.gold[answers.item].astype(np.int64)
    found[answers.worker, answers.item] = (answers.codes - right) % n_labels
    return found


def carry_out(
    settings: Sequence[Setting],
    n_trials: int,
    pools: Mapping[Setting, NDArray[np.int64]],
    state: Path | None,
    told: Told | None,
) -> dict[Setting, dict[str, Floats]]:
    """Do all trials that are not kept yet.

    Returns:
        Of every setting the lines, float64 [n_trials, n_workers], by budget 1, 2, ….
    """
    kept, keys = _journal(settings, state), _keys(settings, n_trials)
    named = {str(setting): setting for setting in settings}
    for done, (seed, name) in enumerate(keys, start=1):
        if (seed, name) not in kept.runs:
            kept.add((seed, name), trial(named[name], seed, pools.get(named[name])))
        if told:
            told(done, len(keys))
    found = {}
    for name, setting in named.items():
        runs = [kept.runs[seed, name] for seed in range(n_trials)]
        found[setting] = {
            line: np.array([run[line][0] for run in runs]) for line in runs[0]
        }  # fmt: skip
    return found


def _journal(settings: Sequence[Setting], state: Path | None) -> Journal:
    return Journal(state, {str(one): f"li-liu-claims 1 {N_ITEMS} items" for one in settings})


def _keys(settings: Sequence[Setting], n_trials: int) -> list[Key]:
    """List the trials, seed by seed, so that a study that is stopped has whole repeats."""
    return [(seed, str(setting)) for seed in range(n_trials) for setting in settings]


def trial(setting: Setting, seed: int, pool: NDArray[np.int64] | None = None) -> Found:
    """Draw a pool, test it, and let teams of every budget vote.

    Args:
        setting: The world.
        seed: Of the draws.
        pool: Of a real crowd, as of `relabelled`.

    Returns:
        By line, accuracies by budget 1, 2, … in one row; and the size of the selected team.
    """
    rng = np.random.default_rng((seed, 5))
    if pool is None:
        answers = draw_answers(setting, rng)  # the truth is label 0
    else:
        answers = pool[:, rng.permutation(pool.shape[1])]
    judged = answers[:, : setting.n_gold]
    tested = Reliability.from_counts(
        (judged == 0).sum(axis=1),
        (judged >= 0).sum(axis=1),
        n_labels=setting.n_labels,
        prior=(1.0, 1.0),
    )
    weights = setting.n_labels * np.nan_to_num(tested.share, nan=tested.chance) - 1
    if setting.is_cut:
        weights = np.maximum(weights, 0)
    votes, noise = answers[:, setting.n_gold :], rng.random(setting.n_workers)
    tie = 1e-9 * rng.random((votes.shape[1], setting.n_labels))
    by_share = np.lexsort((noise, -np.nan_to_num(tested.share, nan=-1.0)))
    found: Found = {TOP: [_rounded(prefix_accuracies(votes[by_share], weights[by_share], tie))]}
    for name, score in ((SELECTED, "unbiased"), (PLUGIN, "plugin")):
        scores = worker_scores(tested, score)
        if setting.is_cut:
            scores = np.where(weights > 0, scores, -np.inf)
        scores = np.nan_to_num(scores, nan=-np.inf)
        order = np.lexsort((noise, -scores))
        order = order[np.isfinite(scores[order])]
        right_by_size = np.append(
            1 / setting.n_labels, prefix_accuracies(votes[order], weights[order], tie)
        )
        size = best_sizes(scores[order], setting.n_workers)
        found[name] = [_rounded(right_by_size[size])]
        if name == SELECTED:
            found[SIZE] = [size.astype(float).tolist()]
    return found


def draw_answers(setting: Setting, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the answers to the gold questions and then to the items, int64 [n_workers, n]."""
    n, n_workers, n_labels = setting.n_gold + N_ITEMS, setting.n_workers, setting.n_labels
    ability = rng.beta(setting.a, setting.b, n_workers)
    ability[: round(setting.guessers * n_workers)] = 1 / n_labels
    is_hard = rng.random(n) < setting.hard
    chance = np.where(is_hard, ability[:, None] ** 3, ability[:, None])
    wrong = rng.integers(1, n_labels, (n_workers, n))
    wrong = np.where(is_hard, rng.integers(1, n_labels, n), wrong)
    return np.where(rng.random((n_workers, n)) < chance, 0, wrong)


def best_sizes(scores: Floats, most: int) -> NDArray[np.int64]:
    """Return the size that Algorithm 1 takes of sorted scores, by budget 1, 2, …, `most`.

    >>> best_sizes(np.array([4.0, 3.5, 0.1]), 4).tolist()
    [1, 2, 2, 2]
    """
    curve = team_values(scores)
    sizes = [int(np.argmax(curve[:budget])) + 1 for budget in range(1, most + 1) if len(curve)]
    return np.array(sizes or [0] * most, np.int64)


def prefix_accuracies(votes: NDArray[np.int64], weights: Floats, tie: Floats) -> Floats:
    """Return how often the weighted votes of the first 1, 2, … workers give label 0.

    Args:
        votes: int64 [n_workers, n_items], -1 for no answer.
        weights: float64 [n_workers].
        tie: float64 [n_items, n_labels], tiny numbers that decide among equals.
    """
    sums, items = tie.copy(), np.arange(len(tie))
    found = np.empty(len(weights))
    for worker, weight in enumerate(weights.tolist()):
        there = items[votes[worker] >= 0]
        sums[there, votes[worker, there]] += weight
        found[worker] = (sums.argmax(axis=1) == 0).mean()
    return found


def _rounded(values: Floats) -> list[float]:
    return [round(value, 5) for value in values.tolist()]


# --------------------------------------------------------------------------------------------------
# Tables and picture.


def _claims(
    found: dict[Setting, dict[str, Floats]],
    groups: Mapping[str, Mapping[str, Setting]],
    *,
    quick: bool = False,
) -> Table:
    """Set selected beside top K in every setting; few trials of a quick form give no verdicts."""
    rows = []
    for group, settings in groups.items():
        for name, setting in settings.items():
            lines = found[setting]
            gap, plug = lines[SELECTED] - lines[TOP], lines[SELECTED] - lines[PLUGIN]
            best = int(gap.mean(axis=0).argmax())
            rows.append(
                (
                    group, name, 100 * float(lines[TOP][:, -1].mean()),
                    100 * float(lines[SELECTED][:, -1].mean()), float(lines[SIZE][:, -1].mean()),
                    _signed(gap[:, -1]), f"{_signed(gap[:, best])} (K = {best + 1})",
                    *(verdicts(gap) if not quick else ("?",) * 3), _signed(plug[:, -1]),
                )
            )  # fmt: skip
    return Table(
        "Selected against top K, linear weights: accuracy in per cent and differences in points "
        "[95 %]",
        (
            "varied", "to", "all K", "selected", "its workers", "selected - all",
            "largest gain of selected", "top K is better from K =", "selected is better at K =",
            "Figure 1a", "selected - plug-in",
        ),
        tuple(rows),
        {"all K": 1, "selected": 1, "its workers": 1},
    )  # fmt: skip


def _signed(values: Floats) -> str:
    """Write the mean of differences in points with its interval."""
    n, mean = len(values), 100 * float(values.mean())
    if n < 2:
        return f"{mean:+.1f}"
    half = 100 * float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return f"{mean:+.1f} ± {half:.1f}"


def verdicts(gap: Floats) -> tuple[str, str, str]:
    """Say where selected is shown to be worse or better, and whether the claim of Figure 1a holds.

    Args:
        gap: float64 [n_trials, n_budgets], selected minus top K.

    Returns:
        The budget from which selected is worse, up to the whole pool, or "nowhere"; the budgets at
        which it is better, or "nowhere"; "holds", "fails", or "not shown". All "?" of one trial.
    """
    n, n_budgets = gap.shape
    if n < 2:
        return "?", "?", "?"
    mean = gap.mean(axis=0)
    error = np.maximum(gap.std(axis=0, ddof=1) / np.sqrt(n), 1e-12)
    limit = student.ppf(1 - LEVEL / n_budgets / 2, n - 1)
    is_worse, is_better = mean < -limit * error, mean > limit * error
    worse = _listed(is_worse)
    if is_worse[-1]:
        last = np.flatnonzero(~is_worse)
        worse = str(int(last[-1]) + 2 if len(last) else 1)
    elif is_worse.any():
        worse = f"only {worse}"
    holds = is_better.any() and (mean > -1e-12).all()
    claim = "fails" if is_worse.any() else "holds" if holds else "not shown"
    return worse, _listed(is_better), claim


def _listed(at: NDArray[np.bool_]) -> str:
    """List the budgets 1, 2, … at which something is so, neighbours as a range.

    >>> _listed(np.array([True, False, True, True, True]))
    '1, 3 … 5'
    """
    ends = np.flatnonzero(np.diff(np.r_[0, at.astype(int), 0]))
    pairs = zip((ends[::2] + 1).tolist(), ends[1::2].tolist(), strict=True)
    names = (f"{a}" if a == b else f"{a}, {b}" if a + 1 == b else f"{a} … {b}" for a, b in pairs)
    return ", ".join(names) or "nowhere"


def _figure_2(found: dict[Setting, dict[str, Floats]], other: str) -> Table:
    rows = []
    for panel, change, values in (
        ("2a, gold questions", _with_gold, CONTROL), ("2b, a of Beta(a, 2)", _with_prior, PRIORS),
    ):  # fmt: skip
        assert len(values) == len(CONTROL)
        for name, world in WORLDS.items():
            cells = []
            for value in values:
                lines = found[change(world, value)]
                at = min(BUDGET, world.n_workers) - 1
                mine = 100 * float(lines[SELECTED][:, at].mean())
                cells.append(
                    f"{mine:.1f} ({_signed(lines[SELECTED][:, at] - lines[other][:, at])})"
                )
            rows.append((panel, name, *cells))
    heads = tuple(f"{n} / {a:g}" for n, a in zip(CONTROL, PRIORS, strict=True))
    return Table(
        f"Figure 2, budget {BUDGET}: accuracy of selected in per cent (minus {other} [95 %])",
        ("figure", "world", *heads),
        tuple(rows),
    )


COLOURS = ("#222222", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")
"""Told apart under every colour blindness."""


def _picture(found: dict[Setting, dict[str, Floats]]) -> Figure:
    """Draw selected minus top K by budget, a panel per thing that is varied.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    from goldspan.report.drawing import FONT, GRID, INK, MUTED, bare, default_style, new_figure
    from goldspan.report.drawing import write as write_words

    figure = new_figure(8.4, 7.6)
    with default_style():
        axes = figure.subplots(3, 2)
        figure.subplots_adjust(left=0.07, right=0.98, top=0.96, bottom=0.06, hspace=0.42)
        for ax, (group, settings) in zip(axes.ravel(), GROUPS.items(), strict=True):
            for (name, setting), colour in zip(settings.items(), COLOURS, strict=False):
                lines = found[setting]
                gap = 100 * (lines[SELECTED] - lines[TOP]).mean(axis=0)
                share = 100 * np.arange(1, len(gap) + 1) / len(gap)
                ax.plot(share, gap, color=colour, linewidth=1.4, label=name)
            ax.axhline(0, color=MUTED, linewidth=0.8)
            bare(ax)
            ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
            ax.set_axisbelow(True)
            ax.set_xlabel("budget, % of the pool", fontfamily=FONT, fontsize=8, color=MUTED)
            title = f"{group}: selected minus top K, points"
            write_words(ax, 0, 1.03, title, weight="bold", size=8.5)
            ax.legend(frameon=False, prop={"family": FONT, "size": 7}, labelcolor=INK)
    return figure
