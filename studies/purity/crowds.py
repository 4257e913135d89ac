"""The crowds of the study: files of the data folder, cuts and copies of them, and simulated ones.

The gold stays with the crowd for scoring; `stripped` makes what a method sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd, read_crowd
from goldspan.crowd.model import list_array
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray, write_codes
from studies.purity.simulated import family_labels, family_spans, long_span_crowd

NER = "ner_mturk/crowd.tsv.gz"
PICO = "pico/crowd.tsv.gz"
SPAN_FILES = {
    NER: "crowd.tsv",
    "ner_mturk/crowd_6056.tsv.gz": "crowd_6056",
    "ner_mturk/raw.zip": "raw.zip",
    PICO: "pico",
    "btc/a_per.tsv.gz": "btc per",
    "btc/a_loc.tsv.gz": "btc loc",
    "btc/a_org.tsv.gz": "btc org",
}
"""The span crowds and their names in the tables."""
LABELS = "classification"
"""The folder of the single-label sets."""
SIMULATED = "simulated"


class Seen(NamedTuple):
    """What of a folder's crowds was looked at while methods were built.

    Attributes:
        half: The half of the items that was looked at; "all" if everything was.
        unseen: The half that was not; "" if there is none.
        items: Which items `half` has, in words.
    """

    half: str
    unseen: str
    items: str


_EVEN = Seen("even", "odd", "items with an even number, counted from 0 as they stand in the file")
LOOKED_AT = {
    "ner_mturk": Seen(
        "val", "test", "val articles by docs.tsv, also of crowd.tsv's subsamples and copies"
    ),
    "pico": _EVEN,
    "btc": _EVEN,
    LABELS: Seen("all", "", "all items of all sets"),
    SIMULATED: Seen("all", "", "all items of all seeds"),
}
"""What was looked at while methods were built, by folder: the one list that all tables use."""

ANSWERS = (1, 2, 3)
"""Answers per item of the subsamples."""
SIZES = {NER: (20, 50, 100, 300), PICO: (20, 50)} | {
    source: (100,) for source in SPAN_FILES if source.startswith("btc/")
}
"""Items of the small crowds, by the file that they are cut from."""
COPIES = {
    "a worker twice": (2, 0.0, 0.0),
    "a worker 3 times": (3, 0.0, 0.0),
    "a worker 5 times": (5, 0.0, 0.0),
    "a worker 3 times, 10 % blank": (3, 0.1, 0.0),
    "a worker 3 times, 30 % blank": (3, 0.3, 0.0),
    "a worker 3 times, 5 % wrong types": (3, 0.0, 0.05),
}
"""By name: how often the worker with most answers is in the crowd, and in the copies the share of
span tokens that are blank and of spans that have another type."""
RHOS = (0.3, 0.6, 1.0)
"""How much the members of simulated families share."""


@dataclass(frozen=True)
class Case:
    """A crowd of the study.

    Attributes:
        name: In the tables; cases of one name and several seeds are averaged.
        seed: Of what is drawn.
        source: File or folder below the data folder, or "simulated".
        change: Makes the crowd of that of the file, and of nothing for simulated ones.
        is_whole: Whether it is a crowd as it stands in the folder: all methods run on it.
    """

    name: str
    seed: int
    source: str
    change: Callable[[Crowd | None], Crowd]
    is_whole: bool = False

    @property
    def folder(self) -> str:
        """Its key in `LOOKED_AT`."""
        return self.source.partition("/")[0]

    @property
    def is_label_set(self) -> bool:
        """Whether its items are single labels."""
        return self.folder == LABELS or self.name.startswith("labels,")

    def is_there(self, data: Path) -> bool:
        """Say whether its file is in the data folder."""
        return self.source == SIMULATED or (data / self.source).exists()


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
            return case.change(None)
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
        crowd = read_crowd(path)
        if source.startswith("ner_mturk"):
            half = self._splits(crowd)
        else:
            half = ["even" if n % 2 == 0 else "odd" for n in range(crowd.n_items)]
        return replace(crowd, attributes=pa.table({"half": pa.array(half, pa.string())}))

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
        parts |= {name: half == name for name in ("val", "test", "even", "odd")}
    return {name: items for name, items in parts.items() if items.any()}


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


def fewer_answers(crowd: Crowd, k: int, seed: int) -> Crowd:
    """Keep k random answers of every item, or all that it has."""
    answers = crowd.latest
    order = np.lexsort((np.random.default_rng([seed, k]).random(len(answers)), answers.item))
    item = answers.item[order]
    first = np.searchsorted(item, item, side="left")
    kept = np.zeros(len(answers), np.bool_)
    kept[order[np.arange(len(item)) - first < k]] = True
    return replace(crowd, answers=answers.take(kept))


def fewer_items(crowd: Crowd, n_items: int, seed: int) -> Crowd:
    """Keep so many items: whole documents in random order, the last one cut.

    Workers without an answer are left out.
    """
    names = [str(n) for n in range(crowd.n_items)]
    if crowd.groups is not None:
        names = [str(name) for name in crowd.groups.to_pylist()]
    _, document = np.unique(names, return_inverse=True)
    place = np.random.default_rng([seed, n_items]).permutation(int(document.max()) + 1)
    order = np.argsort(place[document.ravel()], kind="stable")[:n_items]
    few = crowd.select_items(np.sort(order))
    return few.select_workers(np.unique(few.answers.worker).astype(np.intp))


def with_copies(
    crowd: Crowd, times: int, *, blank: float = 0.0, wrong_type: float = 0.0, seed: int = 0
) -> Crowd:
    """Enter the worker with most answers several times.

    Args:
        crowd: The answers; of repeated ones the latest counts.
        times: How often the worker is in the new crowd.
        blank: Share of the copies' span tokens that become O (drawn for every copy).
        wrong_type: Share of the copies' spans that get another type.
        seed: Of the draws.
    """
    answers = crowd.latest
    own = answers.take(crowd.by_worker[int(np.bincount(answers.worker).argmax())])
    rng = np.random.default_rng([seed, times])
    copies = {}
    for n in range(1, times):
        codes = _blanked(_retyped(own, crowd.tagset, wrong_type, rng), crowd.tagset, blank, rng)
        copies[f"copy{n}"] = replace(own, codes=codes)
    return with_workers(crowd, copies)


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


def _blanked(
    codes: NDArray[np.int16], codec: Codec, share: float, rng: np.random.Generator
) -> NDArray[np.int16]:
    hit = (codes >= 0) & (codes != codec.outside) & (rng.random(len(codes)) < share)
    return np.where(hit, np.int16(codec.outside), codes).astype(np.int16)


def _retyped(
    answers: Answers, codec: Codec, share: float, rng: np.random.Generator
) -> NDArray[np.int16]:
    if not share:
        return answers.codes
    spans = find_spans(Tagged(answers.codes, answers.offset), codec)
    hit = rng.random(len(spans)) < share
    step = rng.integers(1, max(2, len(codec.types)), len(spans))
    kind = np.where(hit, (spans.type + step) % len(codec.types), spans.type).astype(np.int16)
    retyped = SpanArray(spans.start, spans.end, kind, spans.item, spans.worker)
    return np.where(
        answers.codes < 0, answers.codes, write_codes(retyped, answers.offset, codec)
    ).astype(np.int16)


# --------------------------------------------------------------------------------------------------
# Which crowds there are.


def all_cases(data: Path, *, repeats: int) -> list[Case]:
    """List the crowds of the whole study; files need not be there.

    Args:
        data: The data folder, in which the single-label sets are looked up.
        repeats: Seeds of subsamples and of simulated crowds; small crowds have four times as many.
    """
    cases = [_whole(source, name) for source, name in SPAN_FILES.items()]
    cases += [_whole(source, source.partition("/")[2]) for source in _label_sets(data)]
    cases += [_fewer_answers(k, seed) for k in ANSWERS for seed in range(repeats)]
    cases += [
        _fewer_items(source, n, seed)
        for source, sizes in SIZES.items()
        for n in sizes
        for seed in range(4 * repeats)
    ]
    cases += [_copied(NER, name) for name in COPIES]
    cases += [_copied(PICO, name) for name, (_, _, wrong) in COPIES.items() if not wrong]
    for seed in range(repeats):
        cases += _families(seed)
        long_spans = partial(long_span_crowd, seed=seed)
        cases.append(_simulated("long spans, rough ends", seed, long_spans))
    # A file is read once: its cases stand together.
    place = {case.source: n for n, case in reversed(list(enumerate(cases)))}
    return sorted(cases, key=lambda case: place[case.source])


def quick_cases(data: Path) -> list[Case]:
    """List a few crowds of every kind."""
    return [
        _whole(NER, SPAN_FILES[NER]),
        _fewer_answers(1, 0),
        _fewer_items(NER, 100, 0),
        _whole(PICO, SPAN_FILES[PICO]),
        _copied(PICO, "a worker 3 times, 10 % blank"),
        _whole("btc/a_per.tsv.gz", SPAN_FILES["btc/a_per.tsv.gz"]),
        *(_whole(source, source.partition("/")[2]) for source in _label_sets(data)[:4]),
        *_families(0)[2:4],
    ]


def _label_sets(data: Path) -> list[str]:
    return sorted(f"{LABELS}/{path.parent.name}" for path in data.glob(f"{LABELS}/*/truth.csv"))


def _whole(source: str, name: str) -> Case:
    return Case(name, 0, source, _given, is_whole=True)


def _given(crowd: Crowd | None) -> Crowd:
    assert crowd is not None
    return crowd


def _fewer_answers(k: int, seed: int) -> Case:
    name = f"{SPAN_FILES[NER]}, {k} answer{'s' * (k > 1)} per item"
    return Case(name, seed, NER, lambda crowd: fewer_answers(_given(crowd), k, seed))


def _fewer_items(source: str, n_items: int, seed: int) -> Case:
    name = f"{SPAN_FILES[source]}, {n_items} items"
    return Case(name, seed, source, lambda crowd: fewer_items(_given(crowd), n_items, seed))


def _copied(source: str, copies: str) -> Case:
    times, blank, wrong = COPIES[copies]
    return Case(
        f"{SPAN_FILES[source]}, {copies}",
        0,
        source,
        lambda crowd: with_copies(_given(crowd), times, blank=blank, wrong_type=wrong),
    )


def _families(seed: int) -> list[Case]:
    """List the simulated families of a seed, labels and spans; last, one member of a family."""
    makers = {"labels": family_labels, "spans": family_spans}
    found = [
        _simulated(f"{what}, family of {rho:g}", seed, partial(make, rho, seed=seed))
        for rho in RHOS
        for what, make in makers.items()
    ]
    return found + [
        _simulated(f"{what}, one of the family", seed, partial(make, 1.0, size=1, seed=seed))
        for what, make in makers.items()
    ]


def _simulated(name: str, seed: int, make: Callable[[], Crowd]) -> Case:
    return Case(name, seed, SIMULATED, lambda _: make())
