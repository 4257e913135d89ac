"""Layers: overlapping spans, any number of labels, and labels on a scale, beside votes.

Four tables: time expressions that overlap, with every tick read and none left out; simulated nested
spans beside an oracle that knows how every annotator errs; several relations per sentence, and
simulated labels that go together; truthfulness on a scale.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan import aggregate, read_crowd
from goldspan.crowd import Crowd
from goldspan.crowd.formats.char_spans import CharSpan, cut_text
from goldspan.crowd.formats.json_records import Record
from goldspan.crowd.formats.span_crowd import Labels, SpanCrowd
from goldspan.crowd.layers import answer_sets, sets_of
from goldspan.crowd.model import YES
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import open_source
from goldspan.errors import InputError
from studies.table import Study, Table, check_repeats

REPEATS = 5
ITEMS, TOKENS, WORKERS, ANSWERS, TYPES = 300, 20, 10, 4, 4
LABELS = 12
Told = Callable[[int, int], None]
Unit = tuple[str, int, int]
Answers = list[dict[str, set[Unit]]]
"""The units of every answer by worker, item by item."""


def study(
    data: Path,
    *,
    progress: Told | None = None,
    quick: bool = False,
    repeats: int | None = None,
    threads: int | None = None,  # noqa: ARG001 - everything takes minutes
) -> Study:
    """Make the tables.

    Args:
        data: The folder of the crowds.
        progress: Told how many of all tables are made.
        quick: Whether it is only to be seen that the study runs.
        repeats: Simulated crowds of each kind, 5 by default.
        threads: Of no effect.

    Raises:
        InputError: There is none of the data.
    """
    check_repeats(repeats)
    if not (data / "time_expressions").is_dir():
        raise InputError(f"{data}: there is no folder time_expressions in it")
    times = repeats or (1 if quick else REPEATS)
    size = 40 if quick else ITEMS
    makers: list[Callable[[], Table]] = [
        lambda: _time_expressions(data),
        lambda: _nested(times, size),
        lambda: _relations(data, times, size, quick=quick),
        lambda: _scales(data),
    ]
    tables = []
    for n, make in enumerate(makers):
        tables.append(make())
        if progress:
            progress(n + 1, len(makers))
    return Study("Layers: spans that overlap, several labels, scales", tables, NOTES)


NOTES = (
    "F1 of exact spans or labels in per cent; outermost: those alone that lie in no other of them.",
    (
        "oracle: for every span or label that somebody gave the probability by each annotator's "
        "true rates, and of these the set of the largest expected F1."
    ),
)

# --------------------------------------------------------------------------------------------------
# Time expressions: two thirds of the annotators tick all readings of a place.


def _time_expressions(data: Path) -> Table:
    folder = data / "time_expressions"
    crowd = read_crowd(folder / "crowd.jsonl.gz")
    truth = _truth(crowd, csv.DictReader((folder / "gold.csv").open(encoding="utf-8")))
    rows: list[tuple[Any, ...]] = []
    shares = _shares(_answers(crowd, chars=True))
    for name, least in (("by half", 1 / 2), ("by two thirds", 2 / 3)):
        found = _sets((item, unit) for item, unit, share in shares if share >= least)
        rows.append((f"votes {name}", *_both(truth, found)))
    for method in ("mv-seg", "ds", "bsc-seq", "auto"):
        made = sets_of(aggregate(crowd, method).as_gold(), chars=True)
        found = {n: own or set() for n, own in enumerate(made.values())}
        rows.append((method, *_both(truth, found)))
    heads = ("method", "precision", "recall", "F1", "outermost")
    return Table("Time expressions: 121 sentences, 15 annotators each", heads, tuple(rows),
                 dict.fromkeys(heads, 1))  # fmt: skip


def _truth(crowd: Crowd, rows: Iterable[Mapping[str, str]]) -> dict[int, set[Unit]]:
    ids = {name: n for n, name in enumerate(sets_ids(crowd))}
    found: dict[int, set[Unit]] = defaultdict(set)
    for row in rows:
        found[ids[row["item"]]].add((row["label"], int(row["start"]), int(row["end"])))
    return found


def sets_ids(crowd: Crowd) -> list[str]:
    """Return the ids of whole items in their order."""
    ids = crowd.item_ids if crowd.wholes is None else crowd.wholes
    return list(dict.fromkeys(ids.to_pylist()))


def _answers(crowd: Crowd, *, chars: bool) -> Answers:
    ids = {name: n for n, name in enumerate(sets_ids(crowd))}
    found: Answers = [{} for _ in ids]
    for (item, worker, _), units in answer_sets(crowd, chars=chars).items():
        found[ids[item]][worker] = units
    return found


def _shares(answers: Answers) -> list[tuple[int, Unit, float]]:
    return [
        (n, unit, count / len(own))
        for n, own in enumerate(answers)
        for unit, count in Counter(unit for units in own.values() for unit in units).items()
    ]


def _both(truth: Mapping[int, set[Unit]], found: Mapping[int, set[Unit]]) -> tuple[float, ...]:
    """Return precision, recall and F1, and F1 of the outermost of what was found."""
    outer = {n: _outermost(units) for n, units in found.items()}
    return *_rates(truth, found), _rates(truth, outer)[2]


def _rates(truth: Mapping[int, set[Unit]], found: Mapping[int, set[Unit]]) -> tuple[float, ...]:
    right = sum(len(units & truth.get(n, set())) for n, units in found.items())
    n_found, n_true = sum(map(len, found.values())), sum(map(len, truth.values()))
    f1 = 200 * right / max(1, n_found + n_true)
    return 100 * right / max(1, n_found), 100 * right / max(1, n_true), f1


def _outermost(units: Iterable[Unit]) -> set[Unit]:
    kept: list[Unit] = []
    for one in sorted(units, key=lambda unit: (unit[1] - unit[2], unit)):
        if all(one[2] <= other[1] or other[2] <= one[1] for other in kept):
            kept.append(one)
    return set(kept)


# --------------------------------------------------------------------------------------------------
# Simulated nested spans: two depths, four types; annotators miss, move, rename and invent spans.


def _nested(times: int, size: int) -> Table:
    rows = []
    for noise in (0.5, 1.0, 1.5):
        found = []
        for seed in range(times):
            truth, answers = draw_nested(seed, size, noise)
            shares = _shares(answers)
            vote = _sets((n, unit) for n, unit, share in shares if share >= 1 / 2)
            best = _best(_by_rates(truth, answers, TOKENS * TYPES * 4))
            crowd = nested_crowd(answers)
            made = sets_of(aggregate(crowd, "auto").as_gold(), chars=False)
            auto = {n: own or set() for n, own in enumerate(made.values())}
            found.append([_rates(truth, one)[2] for one in (vote, auto, best)])
        rows.append((f"{noise:g}", *np.mean(found, axis=0).tolist()))
    heads = ("noise", "votes by half", "auto", "oracle")
    caption = f"Simulated nested spans: {size} items, {ANSWERS} answers each, {times} crowds a row"
    return Table(caption, heads, tuple(rows), dict.fromkeys(heads, 1))


def draw_nested(seed: int, n_items: int, noise: float) -> tuple[dict[int, set[Unit]], Answers]:
    """Draw items of nested spans, and answers to them."""
    rng = np.random.default_rng(seed)
    habits = rng.uniform((0.05, 0, 0, 0.05), (0.4, 0.2, 0.2, 0.5), (WORKERS, 4)) * noise
    truth: dict[int, set[Unit]] = {}
    answers: Answers = []
    for n in range(n_items):
        truth[n], place = set(), int(rng.integers(8))
        while place < TOKENS - 3:
            end = min(TOKENS, place + int(rng.integers(3, 8)))
            truth[n].add((f"t{rng.integers(TYPES)}", place, end))
            if end - place > 2 and rng.random() < 0.6:
                first = int(rng.integers(place, end - 1))
                truth[n].add((f"t{rng.integers(TYPES)}", first, first + int(rng.integers(1, 3))))
            place = end + int(rng.integers(8))
        truth[n] = {(kind, a, min(b, TOKENS)) for kind, a, b in truth[n]}
        chosen = rng.choice(WORKERS, ANSWERS, replace=False).tolist()
        answers.append({f"w{k}": _nested_answer(rng, truth[n], habits[k]) for k in chosen})
    return truth, answers


def _nested_answer(
    rng: np.random.Generator, truth: Iterable[Unit], habits: NDArray[np.float64]
) -> set[Unit]:
    misses, moves, renames, invents = habits.tolist()
    found = set()
    for kind, begin, stop in sorted(truth):
        if rng.random() < misses:
            continue
        start, end, said = begin, stop, kind
        if rng.random() < moves:
            start = min(max(0, start + int(rng.choice([-1, 1]))), end - 1)
        if rng.random() < moves:
            end = max(min(TOKENS, end + int(rng.choice([-1, 1]))), start + 1)
        if rng.random() < renames:
            said = f"t{(int(kind[1:]) + rng.integers(1, TYPES)) % TYPES}"
        found.add((said, start, end))
    for _ in range(rng.poisson(invents)):
        length = int(rng.integers(1, 5))
        start = int(rng.integers(TOKENS - length))
        found.add((f"t{rng.integers(TYPES)}", start, start + length))
    return found


def nested_crowd(answers: Answers) -> Crowd:
    """Make a crowd of items whose tokens carry nothing."""
    crowd = SpanCrowd(open_source(b"{}"), "spans", ReadOptions())
    for n, own in enumerate(answers):
        record = Record({}, "simulated", n + 1, item=str(n))
        cut = cut_text(record, None, ["w"] * TOKENS, None)
        item = crowd.item(record, cut)
        for worker, units in own.items():
            spans = [CharSpan(*unit) for unit in sorted(units)]
            crowd.answer(
                item, record.at(worker=worker), Labels(sorted(spans, key=lambda s: s[1:3]))
            )
    return crowd.build()


def _sets(units: Iterable[tuple[int, Unit]]) -> dict[int, set[Unit]]:
    found: dict[int, set[Unit]] = defaultdict(set)
    for n, unit in units:
        found[n].add(unit)
    return found


def _by_rates(
    truth: Mapping[int, set[Unit]], answers: Answers, n_possible: float
) -> list[tuple[int, Unit, float]]:
    """Return how probable everything is that somebody gave, by the true rates of annotators."""
    hit: Counter[str] = Counter()
    true: Counter[str] = Counter()
    stray: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for n, own in enumerate(answers):
        for worker, units in own.items():
            hit[worker] += len(units & truth[n])
            true[worker] += len(truth[n])
            stray[worker] += len(units - truth[n])
            asked[worker] += 1
    prior = sum(map(len, truth.values())) / (n_possible * len(answers))
    found = []
    for n, own in enumerate(answers):
        for unit in set().union(*own.values()):
            odds = np.log(prior / (1 - prior))
            for worker, units in own.items():
                right = (hit[worker] + 0.5) / (true[worker] + 1)
                wrong = (stray[worker] + 0.5) / (n_possible * asked[worker] + 1)
                odds += np.log(right / wrong if unit in units else (1 - right) / (1 - wrong))
            found.append((n, unit, float(1 / (1 + np.exp(-odds)))))
    return found


def _best(units: list[tuple[int, Unit, float]]) -> dict[int, set[Unit]]:
    """Return the set of the largest expected F1."""
    ordered = sorted(units, key=lambda one: -one[2])
    sums = np.cumsum([p for *_, p in ordered])
    size = int((2 * sums / (np.arange(1, len(sums) + 1) + sums[-1])).argmax()) + 1
    return _sets((n, unit) for n, unit, _ in ordered[:size])


# --------------------------------------------------------------------------------------------------
# Any number of labels.


def _relations(data: Path, times: int, size: int, *, quick: bool) -> Table:
    heads = ("crowd", "votes by half", "ds", "mace", "auto", "oracle")
    folder, rows = data / "medical_relations", list[tuple[Any, ...]]()
    if not quick:
        crowd = read_crowd(folder / "answers.csv.gz")
        for name, asked in (("relations, asked", True), ("relations, all", False)):
            known = _known_relations(folder, asked_only=asked)
            rows.append((name, *(_label_f1(crowd, known, method) for method in heads[1:5]), None))
    found = []
    for seed in range(times):
        truth, answers = draw_labels(seed, size)
        given = [
            (str(n), worker, [unit[0] for unit in units])
            for n, own in enumerate(answers)
            for worker, units in own.items()
        ]
        crowd = _label_crowd(given)
        known = {(str(n), f"l{k}"): (f"l{k}", 0, 0) in truth[n]
                 for n in range(size) for k in range(LABELS)}  # fmt: skip
        best = _rates(truth, _best(_by_rates(truth, answers, LABELS)))[2]
        found.append([*(_label_f1(crowd, known, method) for method in heads[1:5]), best])
    rows.append((f"simulated, {LABELS} labels", *np.mean(found, axis=0).tolist()))
    return Table("Any number of labels, micro-F1", heads, tuple(rows), dict.fromkeys(heads, 1))


def _label_crowd(rows: Iterable[tuple[str, str, list[str]]]) -> Crowd:
    listed = [
        {"item": item, "worker": worker, "label": json.dumps(sorted(labels))}
        for item, worker, labels in rows
    ]
    return read_crowd(listed, several="labels")


def _known_relations(folder: Path, *, asked_only: bool) -> dict[tuple[str, str], bool]:
    found = {}
    for name, label in (("cause", "causes"), ("treat", "treats")):
        for row in csv.DictReader((folder / f"gold_{name}.csv").open(encoding="utf-8")):
            if row["asked"] == "yes" or not asked_only:
                found[row["item"], label] = row["label"] == "yes"
    return found


def _label_f1(crowd: Crowd, known: Mapping[tuple[str, str], bool], method: str) -> float:
    """Return the micro-F1 of the labels that hold."""
    if method == "votes by half":
        result = aggregate(crowd, "mv-token", ties="first")
    else:
        result = aggregate(crowd, method)
    assert crowd.wholes is not None
    assert crowd.parts is not None
    columns = crowd.wholes, crowd.parts, result.label_array
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    said = {(item, label): value == YES for item, label, value in rows}
    both = [(said.get(key, False), value) for key, value in known.items()]
    right = sum(a and b for a, b in both)
    return float(200 * right / max(1, sum(int(a) + int(b) for a, b in both)))


def draw_labels(seed: int, n_items: int) -> tuple[dict[int, set[Unit]], Answers]:
    """Draw items with labels that go together, and answers of annotators who miss and add some."""
    rng = np.random.default_rng(seed)
    topics = rng.random((4, LABELS)) < 0.3  # labels of a topic mostly hold together
    hits, strays = rng.uniform(0.45, 0.95, WORKERS), rng.uniform(0.01, 0.15, WORKERS)
    truth: dict[int, set[Unit]] = {}
    answers: Answers = []
    for n in range(n_items):
        holds = topics[rng.integers(4)] & (rng.random(LABELS) < 0.7)
        holds |= rng.random(LABELS) < 0.05
        truth[n] = {(f"l{k}", 0, 0) for k in np.flatnonzero(holds).tolist()}
        own = {}
        for k in rng.choice(WORKERS, ANSWERS, replace=False).tolist():
            said = np.where(holds, rng.random(LABELS) < hits[k], rng.random(LABELS) < strays[k])
            own[f"w{k}"] = {(f"l{c}", 0, 0) for c in np.flatnonzero(said).tolist()}
        answers.append(own)
    return truth, answers


# --------------------------------------------------------------------------------------------------
# Labels on a scale.


SCALES = (
    ("truthfulness, six levels", "truthfulness/six.csv", "truthfulness/truth_six.csv"),
    ("truthfulness, three levels", "truthfulness/three.csv", "truthfulness/truth_three.csv"),
    ("COVID-19, six levels", "covid_truthfulness/labels.csv", "covid_truthfulness/truth.csv"),
)


def _scales(data: Path) -> Table:
    heads = ("crowd", "mean", "median", "mv-token", "ds", "auto", "ordinal")
    rows = []
    for name, labels, truth in SCALES:
        with (data / labels).open(encoding="utf-8") as lines:
            given = [
                {"item": row["item"], "label": row["label"],
                 "worker": "".join(row.get(key, "") for key in ("wave", "returning_from_wave"))
                 + row["worker"]}
                for row in csv.DictReader(lines)
            ]  # fmt: skip
        with (data / truth).open(encoding="utf-8") as lines:
            known = {r["item"]: int(r["label"]) for r in csv.DictReader(lines) if r["label"]}
        said = defaultdict(list)
        for row in given:
            said[row["item"]].append(int(row["label"]))
        every: dict[str, Mapping[str, float]] = {
            "mean": {item: float(np.mean(own)) for item, own in said.items()},
            "median": {item: float(np.median(own)) for item, own in said.items()},
        }
        crowd = read_crowd(given)
        for method in heads[3:]:
            result = aggregate(crowd, method)
            labels_of = map(float, result.labels)
            every[method] = dict(zip(crowd.item_ids.to_pylist(), labels_of, strict=True))
            if method == "ordinal":
                expected = result.item_columns["expected"].tolist()
                places = dict(zip(crowd.item_ids.to_pylist(), expected, strict=True))
        errors = [np.mean([abs(own[item] - value) for item, value in known.items()])
                  for own in every.values()]  # fmt: skip
        follows = [_correlation(own, known) for own in (every["mean"], places)]
        rows.append((name, *map(float, errors), *follows))
    columns = (*heads, "r of the mean", "r of ordinal")
    caption = "Mean absolute error in levels, and correlation with the truth"
    return Table(caption, columns, tuple(rows), dict.fromkeys(columns, 3))


def _correlation(said: Mapping[str, float], known: Mapping[str, int]) -> float:
    both = np.array([[said[item], value] for item, value in known.items()])
    return float(np.corrcoef(both.T)[0, 1])
