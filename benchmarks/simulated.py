"""Simulated crowds of any size, made of arrays, and campaigns over pools of any size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.model import Answers, list_array
from goldspan.spans import Codec

if TYPE_CHECKING:
    import pandas as pd

ANSWERS_PER_ITEM = 5
TYPES = ("LOC", "MISC", "ORG", "PER")
MEAN_LENGTH = 14.7
"""Of a sentence, in tokens."""
BLOCK = 1 << 20
"""Labels that are drawn at a time: their probabilities take memory."""
PLACES = ("Rome", "Paris", "Kiel", "Bonn", "Lima", "Oslo")
WORDS = ("we", "saw", "the", "boats", "of", "leave", "early", "with", "wind", "again", "and")
PLAN = """\
name = "load"
seed = 3
[task]
types = ["LOC"]
[pool]
file = "pool.conll"
[crowd]
source = "web"
[control]
n = 20
gold = "gold.conll"
share = 0.1
first = 0
least = 0
[page]
training = 0
lease_minutes = 10
[redundancy]
min = 3
max = 3
[prices]
per_answer = "0.05"
[budget]
money = "100000000"
[select]
by = "random"
batch = {batch}
[model]
name = "none"
[aggregate]
method = "{method}"
[stop]
most_rounds = 1
"""


@dataclass(frozen=True, eq=False)
class Labels:
    """Single labels with their truth.

    Attributes:
        task: int64 [n_labels].
        worker: int64 [n_labels].
        label: int64 [n_labels].
        truth: int64 [n_tasks].
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    truth: NDArray[np.int64]

    def frame(self) -> pd.DataFrame:
        """Return columns task, worker, label; ids are strings, as in the crowds that are shared."""
        import pandas as pd

        tasks = np.char.add("t", self.task.astype(str))
        workers = np.char.add("w", self.worker.astype(str))
        return pd.DataFrame(
            {
                "task": pd.array(tasks.tolist(), dtype="str"),
                "worker": pd.array(workers.tolist(), dtype="str"),
                "label": self.label,
            }
        )

    def accuracy(self, labels: pd.Series) -> float:
        """Return the share of right labels; the index is `frame`'s tasks, labels may be strings."""
        tasks = labels.index.astype(str).str.slice(1).astype("int64").to_numpy()
        assert len(tasks) == len(self.truth)
        return float((self.truth[tasks] == labels.astype("int64").to_numpy()).mean())


def single_labels(
    n_tasks: int, n_workers: int, *, per_task: int = 5, n_classes: int = 4, seed: int = 0
) -> Labels:
    """Let workers of unequal skill label tasks; nobody labels a task twice.

    Everyone is right with a probability of his own for every class, between .4 and .95, and has
    wrong labels that he likes. Rows stand in order of tasks.
    """
    rng = np.random.default_rng(seed)
    right = rng.uniform(0.4, 0.95, (n_workers, n_classes))
    wrong = rng.dirichlet(np.ones(n_classes - 1), (n_workers, n_classes))
    matrix = np.zeros((n_workers, n_classes, n_classes))
    for j in range(n_classes):
        matrix[:, j, j] = right[:, j]
        matrix[:, j, np.arange(n_classes) != j] = (1 - right[:, j, None]) * wrong[:, j]
    shares = np.arange(1, n_classes + 1)
    truth = rng.choice(n_classes, n_tasks, p=shares / shares.sum())
    task, worker = (
        np.repeat(np.arange(n_tasks), per_task),
        _teams(n_tasks, n_workers, per_task, rng),
    )
    bounds = np.cumsum(matrix, axis=2)[:, :, :-1]
    label = np.empty(len(task), np.int64)
    for first in range(0, len(task), BLOCK):
        block = slice(first, first + BLOCK)
        own = bounds[worker[block], truth[task[block]]]
        label[block] = (rng.random((len(own), 1)) > own).sum(axis=1)
    return Labels(task, worker, label, truth)


def tagged_crowd(
    n_labels: int, *, n_workers: int = 50, types: Sequence[str] = TYPES, seed: int = 0
) -> Crowd:
    """Make a crowd of BIO sentences with about so many answered tokens, five answers each."""
    rng = np.random.default_rng(seed)
    codec = Codec.from_types(tuple(types))
    n_tokens = n_labels // ANSWERS_PER_ITEM
    lengths = rng.poisson(MEAN_LENGTH - 3, int(n_tokens / MEAN_LENGTH * 1.2) + 10) + 3
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_items = int(np.searchsorted(offsets, n_tokens))
    offsets = offsets[: n_items + 1]
    truth = _truth(offsets, codec, rng)
    item = np.repeat(np.arange(n_items), ANSWERS_PER_ITEM)
    worker = _teams(n_items, n_workers, ANSWERS_PER_ITEM, rng)
    spread = np.diff(offsets)[item]
    bounds = np.concatenate([[0], np.cumsum(spread)])
    token = np.repeat(offsets[item] - bounds[:-1], spread) + np.arange(bounds[-1])
    codes = truth[token]
    skill = rng.uniform(0.7, 0.98, n_workers)
    wrong = rng.random(len(codes)) > np.repeat(skill[worker], spread)
    codes[wrong] = rng.integers(len(codec.tags), size=int(wrong.sum()))
    answers = Answers(
        item.astype(np.int32),
        worker.astype(np.int32),
        bounds,
        codes,
        np.zeros(len(item), np.int16),
    )
    tokens = list_array(pa.repeat("x", int(offsets[-1])), offsets)
    return Crowd(_names(n_items), tokens, _names(n_workers), codec, answers)


def _teams(n_items: int, n_workers: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw different workers for every item, int64 [n_items * size]."""
    gaps = rng.integers(1, max(2, n_workers // size), (n_items, size))
    gaps[:, 0] = rng.integers(n_workers, size=n_items)
    return np.asarray(np.cumsum(gaps, axis=1) % n_workers).ravel()


def _truth(offsets: NDArray[np.int64], codec: Codec, rng: np.random.Generator) -> NDArray[np.int16]:
    """Draw well-formed tags: a token in ten begins a span, four spans in ten have two tokens."""
    n_tokens = int(offsets[-1])
    codes = np.full(n_tokens, codec.outside, np.int16)
    begins = rng.random(n_tokens) < 0.11
    kinds = rng.integers(len(codec.types), size=n_tokens)
    codes[begins] = codec.code_of[1][kinds[begins]]
    follows = np.zeros(n_tokens, np.bool_)
    follows[1:] = begins[:-1] & ~begins[1:] & (rng.random(n_tokens - 1) < 0.4)
    follows[offsets[:-1]] = False
    at = np.flatnonzero(follows)
    codes[at] = codec.code_of[2][kinds[at - 1]]
    return codes


def _names(n: int) -> pa.Array:
    return pc.cast(pa.array(np.arange(n)), pa.string())


def write_campaign(folder: Path, n_items: int, batch: int, method: str = "ibcc") -> Path:
    """Write a plan, its pool of sentences and the gold of the first 100."""
    rng = random.Random(1)
    with (folder / "pool.conll").open("w") as pool, (folder / "gold.conll").open("w") as gold:
        for n in range(n_items):
            words = [rng.choice(PLACES) if rng.random() < 0.15 else rng.choice(WORDS)
                     for _ in range(10)]  # fmt: skip
            tags = ["B-LOC" if word in PLACES else "O" for word in words]
            lines = [f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)]
            pool.write("".join(lines) + "\n")
            if n < 100:
                gold.write("".join(lines) + "\n")
    path = folder / "campaign.toml"
    path.write_text(PLAN.format(batch=batch, method=method))
    return path
