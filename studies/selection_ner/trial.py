"""One run: a rule spends its budget step by step; after each a new CRF is trained and scored.

A batch is chosen, its gold is looked up, and a CRF is trained on all that was bought by then,
beginning with the weights of the one before. It is scored on the test sets, and asked by the rule
for the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import keys_of
from goldspan.selection import Schedule
from goldspan.tagger import CRF
from studies.selection_ner.bench import Bench
from studies.selection_ner.lines import Line

Items = NDArray[np.int64]
CROSS = 4
"""Folds in which wrong sentences are found."""


@dataclass(frozen=True)
class Stop:
    """What had come of a run when it had spent some of its budget.

    Attributes:
        limit: What it might have spent, in the line's unit.
        items: Sentences that it had bought.
        tokens: Their tokens.
        names: Their names (gold spans).
        words: Their distinct words.
        unique: Those of them that occur once in the whole pool.
        f1: Span F1 of the CRF, 0 to 1, by test set.
    """

    limit: int
    items: int
    tokens: int
    names: int
    words: int
    unique: int
    f1: Mapping[str, float]


def run_line(
    bench: Bench, line: Line, seed: int, listen: Callable[[], None] | None = None
) -> tuple[Stop, ...]:
    """Let a rule spend its budget.

    Args:
        bench: The pool and the test sets.
        line: The rule, its budget and its stops.
        seed: Of everything random.
        listen: Called at every stop; what it raises ends the run.

    Returns:
        What was there at every stop. A budget that is spent with a token left is not made up for.
    """
    rule = Schedule(text=line.rule)
    asks = line.asks
    lengths = np.diff(bench.train.offsets)
    bought = np.zeros(0, np.int64)
    model: CRF | None = None
    wrong = Wrong(bench)
    stops: list[Stop] = []
    for limit in line.limits:
        spent = int(lengths[bought].sum()) if line.unit == "tokens" else len(bought)
        batch = rule.select(
            bench.pool,
            labelled=bought,
            errors=wrong.items if line.errors else None,
            model=model if asks else None,
            budget=f"{limit - spent}{line.unit}",
            features=bench.features,
            random_state=seed,
        ).item
        bought = np.concatenate([bought, batch])
        if len(batch) or not stops:
            model, stop = _learn(bench, bought, model)
            if line.errors:
                wrong.find(bought)
        stops.append(replace(stop, limit=limit))
        if listen:
            listen()
    return tuple(stops)


class Wrong:
    """The sentences that a CRF gets wrong if it was not trained on them, found by cross-validation.

    A sentence stays in its fold, so that every CRF can begin with the weights of the one before.

    Attributes:
        items: Their ids.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench, self.items = bench, list[str]()
        self._fold = (keys_of(bench.pool.item_ids) % np.uint64(CROSS)).astype(np.int64)
        self._models: list[CRF | None] = [None] * CROSS

    def find(self, bought: Items) -> None:
        """Train on what was bought, fold by fold, and compare with its gold."""
        text, self.items = self._bench.pool.text, []
        assert text is not None
        for fold in range(CROSS):
            out, rest = (bought[(self._fold[bought] == fold) == is_out] for is_out in (True, False))
            if not len(out) or not len(rest):
                continue
            model = self._models[fold] = self._bench.learn(rest, self._models[fold])
            found = model.predict(text.select(out))
            differ = [
                n
                for n, tags in zip(out.tolist(), found, strict=True)
                if tags != self._bench.tags[n]
            ]
            self.items += self._bench.pool.item_ids.take(pa.array(differ, pa.int64())).to_pylist()


def _learn(bench: Bench, bought: Items, start: CRF | None) -> tuple[CRF, Stop]:
    """Train on what was bought, and score."""
    model = bench.learn(bought, start)
    f1 = {name: model.score(marks, tags) for name, (marks, tags) in bench.tested.items()}
    token = _tokens_of(bench, bought)
    words = np.unique(bench.word_ids[token])
    n_unique = int((np.bincount(bench.word_ids)[words] == 1).sum())
    n_names = int(bench.begins[token].sum())
    counts = (len(bought), len(token), n_names, len(words), n_unique)
    return model, Stop(0, *counts, f1)


def _tokens_of(bench: Bench, items: Items) -> NDArray[np.int64]:
    """Return the tokens of some items, int64 [n]."""
    offsets = bench.train.offsets
    return np.concatenate([np.arange(offsets[n], offsets[n + 1]) for n in items.tolist()])
