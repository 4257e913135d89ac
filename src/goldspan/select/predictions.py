"""What models say of a pool: probabilities of labels, or of tag sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.chains.kernels.nbest import nbest_step
from goldspan.errors import InputError
from goldspan.select.pool import Pool
from goldspan.tagger import Text
from goldspan.tagger.base import Tagger

Floats = NDArray[np.float64]
BLOCK_TOKENS = 50_000
"""Tokens that are tagged at once."""
BLOCK_ROWS = 2_000
"""Items that a classifier is asked about at once: some need a dense matrix of all their words."""


def is_tagger(model: Any) -> bool:
    """Say whether a model is one of goldspan's taggers."""
    return isinstance(model, Tagger)


def class_probs(model: Any, pool: Pool, index: NDArray[np.int64]) -> Floats:
    """Give the probabilities of the labels of some items, float64 [len(index), n_labels].

    Args:
        model: Probabilities of all items, float64 [n_items, n_labels], or a classifier with
            `predict_proba`, which is given the rows of the pool's table, or texts.
        pool: The items.
        index: int64, those asked for.

    Raises:
        InputError: It is neither, or what it gives are no probabilities of the items.
    """
    if hasattr(model, "predict_proba"):
        found = [model.predict_proba(pool.rows(block)) for block in row_blocks(index)]
        probs = np.concatenate([np.asarray(one, np.float64) for one in found])
        n_rows = len(index)
    elif isinstance(model, np.ndarray | list):
        every = np.asarray(model, np.float64)
        probs, n_rows = every, pool.n_items
    else:
        raise InputError(
            f"a model is a trained tagger, a classifier with predict_proba, or a matrix of "
            f"probabilities, not {_named(model)}"
        )
    if probs.ndim != 2 or len(probs) != n_rows or not probs.shape[1]:
        raise InputError(
            f"the probabilities must have {n_rows} rows, one per item, not shape {probs.shape}"
        )
    sums = probs.sum(axis=1)
    if not ((probs >= 0).all() and np.allclose(sums, 1, atol=1e-6)):
        raise InputError("the probabilities of an item must not be negative, and add up to 1")
    return probs if hasattr(model, "predict_proba") else probs[index]


def row_blocks(index: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut items into blocks that a classifier is asked about one after the other."""
    for at in range(0, max(len(index), 1), BLOCK_ROWS):
        yield index[at : at + BLOCK_ROWS]


def _named(model: Any) -> str:
    """Name a model that has no probabilities; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def by_blocks(
    tagger: Tagger, pool: Pool, index: NDArray[np.int64], measure: Callable[[Text], Floats]
) -> Floats:
    """Measure some items with a tagger, block by block.

    Args:
        tagger: A trained tagger of words. One that looks at whole documents sees those of the
            pool whole.
        pool: Texts.
        index: int64, items asked for.
        measure: Gives a number per item of a text, float64 [n_items].

    Raises:
        InputError: The pool is a table.
    """
    if pool.text is None:
        raise InputError("a tagger reads words, and this pool is a table of attributes")
    if tagger.documents_:
        return measure(pool.text)[index]
    text = replace(pool.text, group=None)
    found = [measure(text.select(block)) for block in _blocks(pool.n_tokens, index)]
    return np.concatenate(found) if found else np.zeros(0)


def _blocks(n_tokens: NDArray[np.int64], index: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    number = np.cumsum(n_tokens[index]) // BLOCK_TOKENS
    for block in np.split(index, np.flatnonzero(np.diff(number)) + 1):
        if len(block):
            yield block


def path_log_probs(tagger: Tagger, text: Text, n: int) -> Floats:
    """Give ln P of the n best tag sequences of every item, float64 [n_items, n]; -inf for none.

    The logarithm is taken before it can underflow: a long sentence's best path is improbable.
    """
    p = tagger.log_potentials(text)
    offsets = (p.offsets - p.offsets[0]).tolist()
    found = np.full((len(offsets) - 1, n), -np.inf)
    for item in range(len(offsets) - 1):
        a, b = offsets[item], offsets[item + 1]
        paths, log_probs = np.empty((n, b - a), np.int16), np.empty(n)
        known = nbest_step(p.unary[a:b], p.start, p.step, p.end, paths, log_probs)
        found[item, :known] = np.minimum(log_probs[:known], 0.0)
    return found
