"""Study li-liu-teams: whom can I drop without loss? One coin against confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import t as student

from goldspan.aggregation import Consensus, aggregate
from goldspan.aggregation.families import Families, families_for
from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.model import Answers
from goldspan.errors import InputError
from goldspan.runners import Threads
from goldspan.spans import score
from goldspan.workers import measure_reliability, select_by_gain, select_workers
from studies.journal import Key, whole_repeats
from studies.li_liu.journal import Found, Journal
from studies.li_liu.panels import Told
from studies.table import Study, Table, check_repeats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from goldspan.protocols import Runner

SHARES = (0.1, 0.2, 0.35, 0.5, 0.75)
"""Sizes of teams, as shares of the pool."""
REPEATS, QUICK_REPEATS = 20, 2
NER_REPEATS = 5
"""Draws on the NER crowd: a fit takes seconds."""
FIRST_SEED = 1000
"""Draws of gold questions on which nothing was chosen."""


@dataclass(frozen=True)
class Case:
    """A crowd, how many items have gold, and what aggregates the answers of a team."""

    name: str
    n_gold: int
    method: str = "ds"
    is_quick: bool = False
    n_copied: int = 0

    @property
    def title(self) -> str:
        """Its name, and what was done to it."""
        return f"{self.name}, {self.n_copied} workers three times" if self.n_copied else self.name

    @property
    def is_ner(self) -> bool:
        """Whether spans are scored, and gold is of whole articles."""
        return self.method != "ds"


CASES = (
    Case("bluebirds", 10, is_quick=True),
    Case("ducks", 20, is_quick=True),
    Case("weather_tweets_amt", 30),
    Case("snow_rte", 80),
    Case("snow_temp", 46),
    Case("snow_wsd", 18),
    Case("dog", 80),
    Case("adult_content2", 33),
    Case("face_sentiment", 58),
    Case("bluebirds", 10, n_copied=8),
    Case("dog", 80, n_copied=20),
    Case("ner_mturk", 20, "bsc-seq"),
)
"""Crowds of at least nine answers per item with gold, two with copies, and the NER crowd."""

TOP, RANDOM, PAPER = "top K", "random K", "one coin, paper"
COIN, COIN_BOTH = "one coin, by gold", "one coin, by gold and crowd"
GAIN, GAIN_BOTH = "gain, by gold", "gain, by gold and crowd"
ALL = "everyone"
OURS = (COIN, GAIN, COIN_BOTH, GAIN_BOTH)
LINES = (RANDOM, TOP, PAPER, *OURS)
KIN = ", families"
PAIRS = ((GAIN, COIN), (GAIN_BOTH, COIN_BOTH), (GAIN_BOTH, COIN))


def study(
    data: Path,
    *,
    progress: Told | None = None,
    repeats: int | None = None,
    quick: bool = False,
    threads: int | None = None,
    state: Path | None = None,
    so_far: bool = False,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `classification` and `ner_mturk`.
        progress: Told how many trials are over, of how many.
        repeats: Draws of gold questions per crowd; by default 20, on the NER crowd 5.
        quick: Whether it is only to be seen that the study runs.
        threads: For aggregation; all cores by default.
        state: The file in which finished trials are kept, or None.
        so_far: Make the tables of the repeats that are finished, and do no run.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
    """
    check_repeats(repeats)
    cases = [case for case in CASES if case.is_quick or not quick]
    n_trials = repeats or (QUICK_REPEATS if quick else REPEATS)
    times = {case: min(n_trials, NER_REPEATS) if case.is_ner else n_trials for case in cases}
    crowds, notes = {case: _read(data, case) for case in cases}, list(NOTES)
    if so_far:
        n_trials, told = whole_repeats(_journal(crowds, state).runs, _keys(times))
        times = {case: min(n, n_trials) for case, n in times.items()}
        notes.insert(0, told)
    found = carry_out(crowds, times, Threads(threads), state, progress)
    tables = [_overview(found)]
    tables += [_pairs(found, *pair) for pair in PAIRS]
    tables += [_sizes(case, runs) for case, runs in found.items()]
    extent = f"{'QUICK: ' if quick else ''}{n_trials} draws of gold questions per crowd"
    extent += "".join(f", on {case.name} {n}" for case, n in times.items() if n != n_trials)
    return Study(
        "Whom can I drop without loss?", tables, (f"{extent}.", *notes),
        picture=partial(_picture, found),
    )  # fmt: skip


NOTES = (
    (
        "A trial draws the items with gold; the team is chosen, the method (`ds`, on ner_mturk "
        "`bsc-seq`) aggregates the team's answers to all items knowing that gold, and the other "
        "items are scored: share of right labels, on ner_mturk F1 of spans. What a team leaves "
        "open is wrong. Intervals: 95 %, paired by trial, Student's t over the draws; they say "
        "nothing about other crowds."
    ),
    (
        "Top K: share of right gold answers; one coin, paper: Algorithm 1 with the unbiased score "
        "and workers below chance; one coin: `select_workers`, by gold or with the result of all "
        "answers; gain: `select_by_gain`, the first K. Algorithm 1 may take fewer than K."
    ),
)


def carry_out(
    crowds: dict[Case, Crowd], times: dict[Case, int], runner: Runner, state: Path | None,
    told: Told | None,
) -> dict[Case, list[Found]]:  # fmt: skip
    """Do all trials that are not kept yet."""
    kept, keys = _journal(crowds, state), _keys(times)
    named = {case.title: case for case in times}
    for done, (seed, title) in enumerate(keys, start=1):
        if (seed, title) not in kept.runs:
            case = named[title]
            kept.add((seed, title), trial(crowds[case], case, seed, runner))
        if told:
            told(done, len(keys))
    return {
        case: [kept.runs[seed, case.title] for seed in range(FIRST_SEED, FIRST_SEED + n)]
        for case, n in times.items()
    }


def _journal(crowds: dict[Case, Crowd], state: Path | None) -> Journal:
    names = {
        case.title: f"li-liu-teams 4 {case.title} gold {case.n_gold} {case.method} "
        f"{crowd.n_items} items {len(crowd.latest)} answers"
        for case, crowd in crowds.items()
    }
    return Journal(state, names)


def _keys(times: dict[Case, int]) -> list[Key]:
    """List the trials, seed by seed, so that a study that is stopped has whole repeats."""
    return [
        (FIRST_SEED + n, case.title)
        for n in range(max(times.values()))
        for case in times
        if n < times[case]
    ]


def _read(data: Path, case: Case) -> Crowd:
    """Read a crowd; items without gold are left out."""
    if case.is_ner:
        path = data / case.name / "crowd.tsv.gz"
        if not path.is_file():
            raise InputError(f"{path} is not there: study li-liu-teams needs it")
        return read_crowd(path)
    folder = data / "classification" / case.name
    packed = folder / "labels.csv.gz"
    path = packed if packed.is_file() else folder / "labels.csv"
    if not path.is_file():
        raise InputError(f"{folder} is not there: study li-liu-teams needs it")
    crowd = read_crowd(path, gold=folder / "truth.csv")
    crowd = crowd.select_items(crowd.gold_tagged.codes >= 0)
    return crowd.select_workers(np.unique(crowd.latest.worker).astype(np.int64))


def sizes_of(n_workers: int) -> list[int]:
    """Return the sizes of teams.

    >>> sizes_of(39)
    [4, 8, 14, 20, 29]
    """
    return [max(1, round(share * n_workers)) for share in SHARES]


def trial(crowd: Crowd, case: Case, seed: int, runner: Runner) -> Found:
    """Draw gold, choose teams, and score what their answers give.

    Returns:
        Of every line [score, workers, share of all answers] per size, and last of the team that
        the method chooses by itself; `ALL` has a single row.
    """
    known = _draw(crowd, case, seed)
    gold = np.where(np.repeat(known, np.diff(crowd.offsets)), crowd.gold_tagged.codes, -1)
    if case.n_copied:
        crowd = _with_copies(crowd, case.n_copied, seed)
    # From here on only the gold questions are known; the truth is looked at for the score.
    seen = crowd.with_gold(gold.astype(np.int16))
    fit = partial(_fit, method=case.method, runner=runner)
    everyone = fit(seen)
    kin = families_for("auto", seen.with_gold(None), seen.gold)
    scored: dict[tuple[int, ...], float] = {}

    def row(team: NDArray[np.int64]) -> list[float]:
        key = tuple(np.sort(team).tolist())
        if key not in scored:
            part = seen.select_workers(np.array(key, np.int64))
            result = everyone if len(key) == crowd.n_workers else fit(part) if key else None
            scored[key] = _score(result, crowd, ~known) if result else 0.0
        share = np.isin(crowd.latest.worker, key).mean()
        return [scored[key], float(len(key)), float(share)]

    sizes = sizes_of(crowd.n_workers)
    found: Found = {ALL: [row(np.arange(crowd.n_workers))]}
    for name, (ranked, alone) in _teams(seen, everyone, kin, sizes, seed).items():
        found[name] = [row(team) for team in ranked]
        if alone is not None:
            found[name].append(row(alone))
    return found


def _with_copies(crowd: Crowd, n_copied: int, seed: int) -> Crowd:
    """Let two more workers give the same answers as each of some."""
    drawn = np.random.default_rng((seed, 2)).permutation(crowd.n_workers)[:n_copied]
    answers, ids, parts = crowd.latest, crowd.worker_ids.to_pylist(), [crowd.latest]
    own = answers.take(np.isin(answers.worker, drawn))
    place = np.zeros(crowd.n_workers, np.int32)
    for copy in range(2):
        place[drawn] = crowd.n_workers + copy * n_copied + np.arange(n_copied)
        parts.append(replace(own, worker=place[own.worker]))
        ids += [f"{ids[one]} copy {copy + 1}" for one in drawn.tolist()]
    return _joined(crowd, parts, ids)


def _joined(crowd: Crowd, parts: list[Answers], ids: list[str]) -> Crowd:
    """Return the crowd with the answers of all parts; items are single labels."""
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in
               ("item", "worker", "codes", "attempt")]  # fmt: skip
    offset = np.arange(len(columns[0]) + 1, dtype=np.int64)
    answers = Answers(columns[0], columns[1], offset, columns[2], columns[3])
    return replace(crowd, answers=answers, worker_ids=pa.array(ids))


def _draw(crowd: Crowd, case: Case, seed: int) -> NDArray[np.bool_]:
    """Draw the items with gold, or the articles: bool [n_items]."""
    unit = np.arange(crowd.n_items)
    if case.is_ner:
        assert crowd.groups is not None
        unit = crowd.groups.dictionary_encode().indices.to_numpy()
    drawn = np.random.default_rng((seed, 0)).permutation(unit.max() + 1)[: case.n_gold]
    return np.isin(unit, drawn)


def _fit(seen: Crowd, method: str, runner: Runner) -> Consensus:
    return aggregate(seen.with_gold(None), method, gold=seen, runner=runner)


def _score(result: Consensus, truth: Crowd, rest: NDArray[np.bool_]) -> float:
    """Score items without known gold, in per cent."""
    if truth.is_classification:
        tags = np.array([*truth.tagset.tags, ""])
        own = np.array([*result.tagset.tags, ""])
        return 100 * float((own[result.codes] == tags[truth.gold_tagged.codes])[rest].mean())
    tags_of, right = result.tagged_by_id(), truth.select_items(rest).tagged_by_id()
    found = [["O" if tag is None else tag for tag in tags_of[name]] for name in right]
    return 100 * score(list(right.values()), found).f1


Teams = dict[str, tuple[list[NDArray[np.int64]], NDArray[np.int64] | None]]


def _teams(
    seen: Crowd, everyone: Consensus, kin: Families | None, sizes: list[int], seed: int
) -> Teams:
    """Choose a team of every size by every line, and one of its own size where a line has one."""
    by_gold, n = measure_reliability(seen), seen.n_workers
    both = measure_reliability(seen, result=everyone)
    noise = np.random.default_rng((seed, 1)).random(n)
    share = np.nan_to_num(by_gold.share, nan=-1.0)
    top, drawn = np.lexsort((noise, -share)), np.argsort(noise)
    found: Teams = {
        RANDOM: ([drawn[:size] for size in sizes], None),
        TOP: ([top[:size] for size in sizes], None),
    }
    for families, suffix in ((None, ""), (kin, KIN)):
        if suffix and not kin:
            break
        coins: tuple[tuple[str, Any, dict[str, Any]], ...] = (
            (COIN, by_gold, {"families": families}),
            (COIN_BOTH, both, {"families": families}),
        )
        if not suffix:
            coins += ((PAPER, by_gold, {"score": "unbiased", "below": "negative"}),)
        for name, tested, options in coins:
            teams = [
                select_workers(tested, budget=size, random_state=seed, **options).index
                for size in (*sizes, n)
            ]
            found[name + suffix] = (teams[:-1], teams[-1])
        for name, result in ((GAIN, None), (GAIN_BOTH, everyone)):
            chosen = select_by_gain(
                seen, result=result, budget=n, families=families, random_state=seed
            )
            # Workers join one by one: the first K are the team of size K.
            found[name + suffix] = ([chosen.ranked[:size] for size in sizes], chosen.index)
    return found


# --------------------------------------------------------------------------------------------------
# Tables and picture.


def _column(runs: list[Found], line: str, place: int, what: int = 0) -> NDArray[np.float64]:
    # Where no family was found, heeding families changes nothing.
    own = [run.get(line) or run[line.removesuffix(KIN)] for run in runs]
    return np.array([rows[place][what] for rows in own])


def _interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return mean, low and high at 95 % by Student's t; a single value has no interval."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def _signed(values: NDArray[np.float64]) -> str:
    mean, low, high = _interval(values)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _overview(found: dict[Case, list[Found]]) -> Table:
    """Set the teams that the methods choose by themselves beside everyone."""
    rows = []
    for case, runs in found.items():
        whole = _column(runs, ALL, 0)
        row: list[Any] = [case.title, float(whole.mean()), int(runs[0][ALL][0][1])]
        for line in (PAPER, *OURS):
            lost = _column(runs, line, -1) - whole
            size, share = (_column(runs, line, -1, what).mean() for what in (1, 2))
            row.append(f"{_signed(lost)}, {size:.0f} ({100 * share:.0f} %)")
        rows.append(tuple(row))
    return Table(
        "Teams of their own size: score minus that of everyone [95 %], workers (share of answers)",
        ("crowd", ALL, "workers", PAPER, *OURS),
        tuple(rows),
        {ALL: 1},
    )


def _pairs(found: dict[Case, list[Found]], first: str, second: str) -> Table:
    rows = tuple(
        (
            case.title,
            *(
                _signed(_column(runs, first, place) - _column(runs, second, place))
                for place in range(len(SHARES))
            ),
        )
        for case, runs in found.items()
    )
    heads = tuple(f"{100 * share:g} % of the workers" for share in SHARES)
    return Table(f"{first}, minus {second}: points [95 %]", ("crowd", *heads), rows)


def _sizes(case: Case, runs: list[Found]) -> Table:
    sizes = sizes_of(int(runs[0][ALL][0][1]))
    rows = []
    has_kin = any(line.endswith(KIN) for run in runs for line in run)
    for line in (*LINES, *(f"{line}{KIN}" for line in OURS if has_kin)):
        cells = []
        for place in range(len(sizes)):
            mean, size = (float(_column(runs, line, place, what).mean()) for what in (0, 1))
            fewer = "" if round(size) == sizes[place] else f" ({size:.0f})"
            cells.append(f"{mean:.1f}{fewer}")
        rows.append((line, *cells))
    whole = float(_column(runs, ALL, 0).mean())
    what = "F1 of spans" if case.is_ner else "accuracy"
    unit = "articles" if case.is_ner else "items"
    return Table(
        f"{case.title}: {what} in per cent by size of the team (in brackets, where fewer were "
        f"chosen); everyone {whole:.1f}; gold of {case.n_gold} {unit}; {len(runs)} draws",
        ("", *map(str, sizes)),
        tuple(rows),
    )


LOOK = {
    RANDOM: ("#8a8a8a", ":"), TOP: ("#222222", "--"), COIN: ("#56b4e9", "--"),
    GAIN: ("#d55e00", "--"), COIN_BOTH: ("#56b4e9", "-"), GAIN_BOTH: ("#d55e00", "-"),
}  # fmt: skip
"""Colours that are told apart under every colour blindness."""
COLUMNS = 3


def _picture(found: dict[Case, list[Found]]) -> Figure:
    """Draw the score by the size of the team, a panel per crowd.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    from goldspan.report.drawing import FONT, GRID, INK, MUTED, bare, default_style, new_figure
    from goldspan.report.drawing import write as write_words

    n_rows = -(-len(found) // COLUMNS)
    height = 2.3 * n_rows + 0.7
    figure = new_figure(8.4, height)
    with default_style():
        axes = figure.subplots(n_rows, COLUMNS, squeeze=False).ravel()
        figure.subplots_adjust(
            left=0.06, right=0.98, top=1 - 0.3 / height, bottom=1.0 / height, hspace=0.6
        )
        for ax, (case, runs) in zip(axes, found.items(), strict=False):
            sizes = sizes_of(int(runs[0][ALL][0][1]))
            for line, (colour, style) in LOOK.items():
                means = [_column(runs, line, place).mean() for place in range(len(sizes))]
                ax.plot(sizes, means, color=colour, linestyle=style, linewidth=1.3, label=line)
            whole = float(_column(runs, ALL, 0).mean())
            ax.axhline(whole, color=MUTED, linewidth=0.8, label=ALL)
            bare(ax)
            ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
            ax.set_axisbelow(True)
            ax.set_ylim(bottom=max(ax.get_ylim()[0], whole - 40))
            ax.set_xlabel("workers", fontfamily=FONT, fontsize=8, color=MUTED, labelpad=1)
            write_words(ax, 0, 1.03, f"{case.title}, %", weight="bold", size=8.5)
        for ax in axes[len(found) :]:
            ax.set_visible(False)
        lines = axes[0].get_lines()
        figure.legend(
            lines, [str(line.get_label()) for line in lines], loc="lower center", ncols=4,
            frameon=False, prop={"family": FONT, "size": 7.5}, labelcolor=INK,
        )  # fmt: skip
    return figure
