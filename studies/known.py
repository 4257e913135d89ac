"""What checked items make of the labels of all others: `auto` with and without them.

Of every crowd some items are drawn whose gold is given to the method (of crowd_6056 articles of
the val half, else items), and the labels of all other items are scored (of crowd_6056 those of the
test half), beside those that the method makes without any gold. With articles that are chosen by
`goldspan gold-questions --by information` this is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan import aggregate
from goldspan._arrays import count_in_rows
from goldspan.errors import InputError
from goldspan.workers import choose_gold_questions
from studies.audit import RecordJournal, carry_out
from studies.purity.crowds import (
    LABELS,
    NER,
    SPLIT,
    TIMES,
    Case,
    Shelf,
    all_cases,
    stripped,
)
from studies.purity.scoring import score_result
from studies.table import Study, Table, check_repeats

REPEATS = 10
SIZES, ARTICLES = (20, 50), (10, 20, 50, 100)
CHOSEN = 10
"""Articles that are also chosen by information."""
Told = Callable[[int, int], None]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """Scores with and without known items, by how many of them."""

    score: Mapping[str, float]
    without: Mapping[str, float]
    ece: Mapping[str, float]


def study(
    data: Path,
    *,
    progress: Told | None = None,
    quick: bool = False,
    repeats: int | None = None,
    state: str | Path | None = None,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder of the crowds.
        progress: Told how many of all draws are over.
        quick: Whether it is only to be seen that the study runs.
        repeats: Draws of the known items, 10 by default.
        state: File of finished runs, to go on from after a break.
        threads: Processes side by side; as many as cores by default.

    Raises:
        InputError: There is none of the data.
    """
    check_repeats(repeats)
    times = repeats or (1 if quick else REPEATS)
    cases = [
        case
        for case in all_cases(data, repeats=1)
        if case.part in ("sources", "labels") and case.is_there(data) and case.seed == 0
        and case.source not in (NER, TIMES) and case.source.split("/")[0] != "simulated"
    ]  # fmt: skip
    cases = [case for case in cases if case.source.startswith("btc/a")] if quick else cases
    cases.sort(key=lambda case: case.source == SPLIT)  # which takes longest
    if not cases:
        raise InputError(f"{data}: there are no crowds in it")
    names = {case.name: f"known {Shelf(data).digest(case.source)}" for case in cases}
    kept = RecordJournal(None if state is None else Path(state), names, Run)
    work = {(seed, case.name): partial(play, data, replace(case, seed=seed))
            for case in cases for seed in range(times)}  # fmt: skip
    carry_out(work, kept, threads, progress)
    rows = [(case, [kept.runs[seed, case.name] for seed in range(times)]) for case in cases]
    return Study("What known items make of the others", [_table(rows)], NOTES)


NOTES = (
    (
        "auto with the gold of some items, drawn at random, beside auto without: F1 or accuracy "
        "of all other items, in per cent; of crowd_6056 articles of the val half, and the items of "
        "the test half. ECE: of the spans or labels of the other items, with known ones."
    ),
    f"By information: {CHOSEN} articles of gold-questions --by information; one draw.",
)


def play(data: Path, case: Case) -> Run:
    """Aggregate a crowd with and without known items."""
    crowd = Shelf(data).crowd(case)
    gold = crowd.gold_tagged.codes
    whole = (count_in_rows(gold < 0, crowd.offsets) == 0) & (np.diff(crowd.offsets) > 0)
    rng, bare = np.random.default_rng(100 + case.seed), stripped(crowd)
    none = aggregate(bare, "auto", random_state=case.seed)
    scored, items = whole, np.flatnonzero(whole)
    unit: Ints = np.arange(crowd.n_items)
    sizes: tuple[int, ...] = SIZES
    picks: dict[str, Ints] = {}
    if case.source == SPLIT:
        assert crowd.attributes is not None
        half = np.array(crowd.attributes["half"].to_pylist())
        scored, items = whole & (half == "test"), np.flatnonzero(whole & (half == "val"))
        unit, sizes = crowd.document_of, ARTICLES
        if case.seed == 0:
            half_crowd = bare.select_items(items)
            result = aggregate(half_crowd, "bsc-seq+crf")
            found = choose_gold_questions(half_crowd, len(items), by="information", result=result)
            first = list(dict.fromkeys(unit[items[found.item]].tolist()))[:CHOSEN]
            picks[f"{CHOSEN} by information"] = items[np.isin(unit[items], first)]
    names = rng.permutation(np.unique(unit[items]))
    picks |= {str(n): items[np.isin(unit[items], names[:n])] for n in sizes}
    score, without, ece = {}, {}, {}
    for name, own in picks.items():
        known = np.full(crowd.n_tokens, -1, np.int16)
        is_known = np.isin(np.arange(crowd.n_items), own)
        tokens = np.repeat(is_known, np.diff(crowd.offsets))
        known[tokens] = gold[tokens]
        result = aggregate(bare, "auto", random_state=case.seed, gold=crowd.with_gold(known))
        made = score_result(result, crowd, scored & ~is_known)
        score[name], ece[name] = made.score, made.ece
        without[name] = score_result(none, crowd, scored & ~is_known).score
    return Run(score, without, ece)


def _table(rows: list[tuple[Case, list[Run]]]) -> Table:
    """Make a row for every crowd and number of known items."""
    found: list[tuple[Any, ...]] = []
    for case, runs in rows:
        for n in runs[0].score:
            own = [run for run in runs if n in run.score]
            gains = [run.score[n] - run.without[n] for run in own]
            mean = float(np.mean([run.without[n] for run in own]))
            ece = float(np.mean([run.ece[n] for run in own]))
            found.append((case.name, n, mean, float(np.mean(gains)), min(gains), max(gains), ece))
    names = {case.name for case, _ in rows if case.source.startswith(LABELS)}
    for n in map(str, SIZES):
        sets = [row for row in found if row[0] in names and row[1] == n]
        if sets:
            middle = [float(np.mean([row[k] for row in sets])) for k in (2, 3, 6)]
            ends = min(row[4] for row in sets), max(row[5] for row in sets)
            found.append(("single labels, mean", n, *middle[:2], *ends, middle[2]))
    heads = ("crowd", "known", "without", "gain, mean", "least", "most", "ECE")
    return Table("Gain by known items", heads, tuple(found), {**dict.fromkeys(heads, 1), "ECE": 3})
