"""The crowds of the study: files of the data folder, cuts and copies of them, and simulated ones.

The gold stays with the crowd for scoring; `stripped` makes what a method sees.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd, read_crowd
from goldspan.crowd.model import list_array
from goldspan.spans import Codec
from studies.purity.simulated import (
    family_labels,
    family_spans,
    independent_labels,
    independent_spans,
    long_span_crowd,
    rare_label,
)

NER = "ner_mturk/crowd.tsv.gz"
SPLIT = "ner_mturk/crowd_6056.tsv.gz"
PICO = "pico/crowd.tsv.gz"
TIMES = "time_expressions/crowd.jsonl.gz"
TEXTS = "conll2003/testa.tsv.gz"
"""Sentences with gold that an undeclared model learned from."""
_DEXA = ("interventions", "outcomes", "participants")
SOURCES = {
    "news": {NER: "crowd.tsv", SPLIT: "crowd_6056"},
    "PICO": {PICO: "pico"},
    "BTC-A": {f"btc/a_{one}.tsv.gz": f"btc a {one}" for one in ("per", "loc", "org")},
    "BTC-E": {f"btc/e_{one}.tsv.gz": f"btc e {one}" for one in ("per", "loc", "org")},
    "WNUT-17": {"wnut17/crowd.tsv.gz": "wnut17"},
    "AURC": {"aurc/crowd.tsv.gz": "aurc"},
    "DEXA sentences": {f"dexa/{one}_sentences6.tsv.gz": f"{one}, sentences" for one in _DEXA},
    "DEXA abstracts": {f"dexa/{one}_baseline.tsv.gz": f"{one}, abstracts" for one in _DEXA},
    "time expressions": {TIMES: "time expressions"},
}
"""The span crowds by source, and their names in the tables; every source weighs the same."""
SPAN_FILES = {file: name for files in SOURCES.values() for file, name in files.items()}
LABELS = "classification"
"""The folder of the single-label sets."""
RARE = "rare label, spammers"
SIMULATED = "simulated"

_REBUILT = (
    "given in November 2026; all items were looked at while the judge of auto was rebuilt; what "
    "was fitted or chosen was judged by leaving the source out"
)
_OLDER = "until November 2026 half of the items, all of them while the judge of auto was rebuilt"
LOOKED_AT = {
    "ner_mturk": f"{_OLDER}; the first half is val of docs.tsv",
    "pico": _OLDER,
    "btc": f"a: {_OLDER}; e: {_REBUILT}",
    **dict.fromkeys(("wnut17", "aurc", "dexa", "time_expressions"), _REBUILT),
    LABELS: "all items of all sets: the rules for single labels were chosen on them",
    SIMULATED: "all items of all seeds",
}
"""What was looked at while methods were built, by folder."""

N_SEEDS = {NER: 2}
"""Seeds of `auto` at most: nearly all of this crowd is in crowd_6056."""
ONLY_AUTO = ("copies", "families", "models", "speed")
"""Parts for which no other method runs."""
ANSWERS = (1, 2, 3)
"""Answers per item of the subsamples."""
SIZES = {NER: (20, 50, 100, 300), PICO: (20, 50)} | dict.fromkeys(SOURCES["BTC-A"], (100,))
"""Items of the small crowds, by the file that they are cut from."""
TIMES_COPIED = (2, 3, 5)
"""How often the worker with most answers is in the crowds of the part `copies`."""
FAMILIES: dict[str, Callable[..., Crowd]] = {
    "labels, independent": independent_labels,
    "spans, independent": independent_spans,
    **{
        f"{what}, {size} of {size + 5} with rho {rho:g}": partial(make, rho, size=size)
        for what, make in {"labels": family_labels, "spans": family_spans}.items()
        for size in (3, 5)
        for rho in (0.6, 1.0)
    },
}
"""Simulated crowds in which nobody, or who is called family1, family2, …, errs together."""
N_INDEPENDENT = 4
"""How many independent crowds there are for one with a family: their share is to be small."""
SIZES_TIMED = {"6,000 sentences": 6000, "500 sentences": 500}
PEOPLE = "two people per article"
TEAMS = {
    PEOPLE: (0, False),
    f"{PEOPLE} and a model": (1, False),
    f"{PEOPLE} and a model, declared": (1, True),
    f"{PEOPLE} and a model twice": (2, False),
}
"""By name: columns of the model, and whether `auto` is told of it."""


@dataclass(frozen=True)
class Case:
    """A crowd of the study.

    Attributes:
        name: In the tables.
        seed: Of what is drawn, and the `random_state` of `auto`.
        source: File or folder below the data folder, or "simulated".
        change: Makes the crowd of that of the file, and of nothing for simulated ones; other
            processes can be sent it.
        part: Of the study, one of `PARTS`.
        params: Of `auto`, beside the seed.
        needs: Another file below the data folder.
    """

    name: str
    seed: int
    source: str
    change: Callable[..., Crowd]
    part: str
    params: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""

    @property
    def folder(self) -> str:
        """Its key in `LOOKED_AT`."""
        return self.source.partition("/")[0]

    @property
    def is_label_set(self) -> bool:
        """Whether its items are single labels."""
        return self.part == "labels" or self.name.startswith("labels,")

    @property
    def only_auto(self) -> bool:
        """Whether no other method runs on it: fixed ones run once on a crowd."""
        is_again = self.seed > 0 and self.source != SIMULATED
        return self.part in ONLY_AUTO or (self.part != "cuts" and is_again)

    def is_there(self, data: Path) -> bool:
        """Say whether its files are in the data folder."""
        is_made = self.source == SIMULATED or (data / self.source).exists()
        return is_made and (not self.needs or (data / self.needs).exists())


class Shelf:
    """Reads files of the data folder, and keeps the last one.

    Args:
        data: The folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._last: tuple[str, Crowd] | None = None
        self._halves: dict[str, str] | None = None

    def crowd(self, case: Case) -> Crowd:
        """Make the crowd of a case, with gold; an item attribute `half` tells its half."""
        if case.source == SIMULATED:
            return case.change()
        if self._last is None or self._last[0] != case.source:
            self._last = (case.source, self._read(case.source))
        return case.change(self._last[1])

    def digest(self, source: str) -> str:
        """Name the content of a source."""
        if source == SIMULATED:
            return source
        path = self._data / source
        files = sorted(path.glob("[lt]*.csv*")) if path.is_dir() else [path]
        found = hashlib.blake2b(digest_size=16)
        for file in files:
            found.update(file.read_bytes())
        return found.hexdigest()

    def _read(self, source: str) -> Crowd:
        path = self._data / source
        if source.startswith(LABELS):
            crowd = read_crowd(next(path.glob("labels.csv*")), gold=path / "truth.csv")
            return _anonymous(crowd)
        crowd = read_crowd(path, overlapping="longest")
        if source == TIMES:
            return with_known_spans(crowd, path.with_name("gold.csv"))
        if not source.startswith("ner_mturk"):
            return crowd
        half = pa.array(self._splits(crowd), pa.string())
        return replace(crowd, attributes=pa.table({"half": half}))

    def _splits(self, crowd: Crowd) -> list[str | None]:
        """Return the half of every item by its document; None where docs.tsv does not tell."""
        if self._halves is None:
            file = self._data / "ner_mturk" / "docs.tsv"
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            rows = [line.split("\t") for line in lines]
            self._halves = {row[0]: row[1] for row in rows if len(row) > 1}
        documents = [] if crowd.groups is None else crowd.groups.to_pylist()
        return [self._halves.get(name) for name in documents] or [None] * crowd.n_items


def parts_of(crowd: Crowd) -> dict[str, NDArray[np.bool_]]:
    """Return all items and the halves, bool [n_items] each, by name; none without an item."""
    parts = {"all": np.ones(crowd.n_items, np.bool_)}
    if crowd.attributes is not None and "half" in crowd.attributes.column_names:
        half = np.array(crowd.attributes.column("half").to_pylist(), object)
        parts |= {name: half == name for name in ("val", "test")}
    return {name: items for name, items in parts.items() if items.any()}


def with_known_spans(crowd: Crowd, file: Path) -> Crowd:
    """Set as gold the spans of a file of `item`, `start`, `end` and `label`.

    Offsets count code points of the item's text. Items without a row have no span; all are known.
    """
    assert crowd.token_start is not None
    start = np.asarray(crowd.token_start)
    end = start + np.array([len(word) for words in crowd.tokens_list for word in words])
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    gold = np.full(crowd.n_tokens, crowd.tagset.outside, np.int16)
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            item = place[row["item"]]
            own = slice(crowd.offsets[item], crowd.offsets[item + 1])
            inside = own.start + np.flatnonzero(
                (start[own] < int(row["end"])) & (end[own] > int(row["start"]))
            )
            gold[inside] = crowd.tagset.index[f"I-{row['label']}"]
            gold[inside[0]] = crowd.tagset.index[f"B-{row['label']}"]
    return replace(crowd, gold=gold)


def stripped(crowd: Crowd) -> Crowd:
    """Return what a method may see: no gold, no label that only the gold has, no attributes."""
    codec = crowd.tagset
    used = [codec.tags[code] for code in np.unique(crowd.answers.codes[crowd.answers.codes >= 0])]
    own = Codec.from_tags(used, codec.encoding)
    answers = replace(crowd.answers, codes=translated(crowd.answers.codes, codec, own))
    return replace(crowd, tagset=own, answers=answers, gold=None, attributes=None)


def translated(codes: NDArray[np.int16], old: Codec, new: Codec) -> NDArray[np.int16]:
    """Return codes of another tag set; -1 stays, and so does what the other one lacks."""
    table = np.array([*(new.index.get(tag, -1) for tag in old.tags), -1], np.int16)
    return np.asarray(table[codes])


def _anonymous(crowd: Crowd) -> Crowd:
    """Number the items: names of files can tell the truth."""
    ids = [f"q{n + 1}" for n in range(crowd.n_items)]
    tokens = list_array(pa.array(ids, pa.string()), crowd.offsets)
    return replace(
        crowd, item_ids=pa.array(ids, pa.string()), tokens=tokens, texts=None, token_start=None,
        groups=None, attributes=None,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Cuts and copies.


def fewer_answers(crowd: Crowd, k: int, seed: int, *, per_document: bool = False) -> Crowd:
    """Keep k random answers of every item, or all that it has; of a document the same workers'."""
    answers, rng = crowd.latest, np.random.default_rng([seed, k])
    draws = rng.random(len(answers))
    if per_document:
        document = _documents(crowd)
        draws = rng.random((document.max() + 1, crowd.n_workers))[
            document[answers.item], answers.worker
        ]
    order = np.lexsort((draws, answers.item))
    item = answers.item[order]
    first = np.searchsorted(item, item, side="left")
    kept = np.zeros(len(answers), np.bool_)
    kept[order[np.arange(len(item)) - first < k]] = True
    return replace(crowd, answers=answers.take(kept))


def fewer_items(crowd: Crowd, n_items: int, seed: int) -> Crowd:
    """Keep so many items: whole documents in random order, the last one cut.

    Workers without an answer are left out.
    """
    document = _documents(crowd)
    place = np.random.default_rng([seed, n_items]).permutation(int(document.max()) + 1)
    order = np.argsort(place[document], kind="stable")[:n_items]
    few = crowd.select_items(np.sort(order))
    return few.select_workers(np.unique(few.answers.worker).astype(np.intp))


def _documents(crowd: Crowd) -> NDArray[np.int64]:
    """Number the document of every item; without documents every item is one."""
    if crowd.groups is None:
        return np.arange(crowd.n_items)
    names = [str(name) for name in crowd.groups.to_pylist()]
    return np.asarray(np.unique(names, return_inverse=True)[1], np.int64).ravel()


def first_items(crowd: Crowd, n_items: int | None = None) -> Crowd:
    """Keep the first items, or all."""
    return crowd if n_items is None else crowd.select_items(np.arange(crowd.n_items) < n_items)


def with_copies(crowd: Crowd, times: int) -> Crowd:
    """Enter the worker with most answers several times; of repeated answers the latest counts."""
    own = crowd.latest.take(crowd.by_worker[int(np.bincount(crowd.latest.worker).argmax())])
    return with_workers(crowd, {f"copy{n}": own for n in range(1, times)})


def with_workers(crowd: Crowd, more: Mapping[str, Answers]) -> Crowd:
    """Add workers.

    Args:
        crowd: The answers; of repeated ones the latest counts.
        more: The answers of every new worker, by id.
    """
    every = [_plain(crowd.latest)]
    for n, own in enumerate(more.values()):
        worker = np.full(len(own), crowd.n_workers + n, np.int32)
        every.append(replace(_plain(own), worker=worker))
    item, lengths = (
        np.concatenate([getattr(one, name) for one in every]) for name in ("item", "lengths")
    )
    joined = Answers(
        item,
        np.concatenate([one.worker for one in every]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([one.codes for one in every]),
        np.zeros(len(item), np.int16),
    )
    ids = [*crowd.worker_ids.to_pylist(), *more]
    order = np.argsort(item, kind="stable")
    return replace(crowd, answers=joined.take(order), worker_ids=pa.array(ids, pa.string()))


def _plain(answers: Answers) -> Answers:
    """Leave out the optional columns."""
    return replace(answers, started=None, submitted=None, cost=None, guideline=None)


# --------------------------------------------------------------------------------------------------
# Which crowds there are.


def all_cases(data: Path, *, repeats: int) -> list[Case]:
    """List the crowds of the whole study; files need not be there.

    Args:
        data: The data folder, in which the single-label sets are looked up.
        repeats: Seeds of `auto`, of draws and of simulated crowds; small crowds have four times as
            many.
    """
    seeds = range(repeats)
    cases = [
        _whole("sources", source, name, seed)
        for source, name in SPAN_FILES.items()
        for seed in range(min(repeats, N_SEEDS.get(source, repeats)))
    ]
    cases += [
        _whole("labels", source, source.partition("/")[2], seed)
        for source in _label_sets(data)
        for seed in seeds
    ]
    cases += [_simulated("labels", RARE, seed, rare_label) for seed in seeds]
    for source in (NER, PICO):
        name = SPAN_FILES[source]
        cases.append(_whole("copies", source, name, 0))
        cases += [
            Case(f"{name}, a worker {n} times", 0, source, partial(with_copies, times=n), "copies")
            for n in TIMES_COPIED
        ]
    for name, make in FAMILIES.items():
        n_seeds = repeats * (N_INDEPENDENT if "independent" in name else 1)
        cases += [_simulated("families", name, seed, make) for seed in range(n_seeds)]
    cases += _models(data, repeats)
    cases += [
        Case(name, 0, SPLIT, partial(first_items, n_items=n), "speed")
        for name, n in SIZES_TIMED.items()
    ]
    return [*cases, *_cuts(repeats)]


def quick_cases(data: Path) -> list[Case]:
    """List a few crowds of every part."""
    sources = [NER, PICO, "btc/a_per.tsv.gz", TIMES]
    named = {SPAN_FILES[source] for source in sources}
    named |= {source.partition("/")[2] for source in _label_sets(data)[:2]}
    named |= {RARE, f"{SPAN_FILES[PICO]}, a worker 3 times", "500 sentences", *list(TEAMS)[:2]}
    named |= {name for name in FAMILIES if name.startswith("labels")}
    named |= {f"{SPAN_FILES[NER]}, 100 items", f"{SPAN_FILES[PICO]}, 20 items"}
    return [case for case in all_cases(data, repeats=2) if case.name in named and case.seed < 2]


def _label_sets(data: Path) -> list[str]:
    return sorted(f"{LABELS}/{path.parent.name}" for path in data.glob(f"{LABELS}/*/truth.csv"))


def _whole(part: str, source: str, name: str, seed: int) -> Case:
    return Case(name, seed, source, first_items, part)


def _simulated(part: str, name: str, seed: int, make: Callable[..., Crowd]) -> Case:
    return Case(name, seed, SIMULATED, partial(make, seed=seed), part)


@cache
def _answers_of_model(data: Path) -> Answers:
    from studies.people_models import Bench, read_crowds

    return Bench(*read_crowds(data, "purity")).tagged


def _team(crowd: Crowd, data: Path, seed: int, models: tuple[str, ...]) -> Crowd:
    """Choose two people for every article, and enter a weak model so many times."""
    people = fewer_answers(crowd, 2, seed, per_document=True)
    return with_workers(people, {name: _answers_of_model(data) for name in models})


def _models(data: Path, draws: int) -> list[Case]:
    """List two people per article of the news crowd, beside them a weak model or none."""
    cases = list[Case]()
    for name, (n_models, is_declared) in TEAMS.items():
        models = tuple(f"model{n + 1}" for n in range(n_models))
        params = {"models": models} if is_declared else {}
        for seed in range(draws):
            change = partial(_team, data=data, seed=seed, models=models)
            cases.append(Case(name, seed, NER, change, "models", params, TEXTS))
    return cases


def _cuts(repeats: int) -> list[Case]:
    """List subsamples, small crowds and simulated crowds, for all methods."""
    found: list[tuple[str, str, Callable[..., Crowd], int]] = [
        (NER, f"{k} answer{'s' * (k > 1)} per item", partial(fewer_answers, k=k), repeats)
        for k in ANSWERS
    ]
    for source, sizes in SIZES.items():
        found += [
            (source, f"{n} items", partial(fewer_items, n_items=n), 4 * repeats) for n in sizes
        ]
    simulated: dict[str, Callable[..., Crowd]] = {
        "spans, one of the family": partial(family_spans, 1.0, size=1),
        "spans, family of 0.3": partial(family_spans, 0.3),
        "long spans, rough ends": long_span_crowd,
    }
    return [
        Case(f"{SPAN_FILES[source]}, {name}", seed, source, partial(change, seed=seed), "cuts")
        for source, name, change, n_seeds in found
        for seed in range(n_seeds)
    ] + [
        _simulated("cuts", name, seed, make)
        for name, make in simulated.items()
        for seed in range(repeats)
    ]
