"""All runs of the study: every way with every seed, one after the other, each kept when it is over.

The labels of one run are made in threads; how many there are changes no bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from goldspan import __version__
from goldspan.crowd import Crowd
from studies.campaign_ner.journal import Journal, Key, Runs
from studies.campaign_ner.play import PER_ANSWER, PER_TOKEN, Bench
from studies.campaign_ner.selecting import Selecting
from studies.campaign_ner.ways import Way
from studies.journal import whole_repeats

VERSION = 2
Told = Callable[[int, int], None]


def carry_out(
    bench: Bench,
    ways: Sequence[Way | Selecting],
    repeats: int,
    state: Path | None = None,
    told: Told | None = None,
) -> Runs:
    """Do all runs that are not in the journal yet.

    Args:
        bench: The crowd.
        ways: How the money is spent.
        repeats: Seeds of every way, but of those for which one is enough.
        state: The file in which finished runs are kept, or None.
        told: Told how many points are behind, of how many.

    Returns:
        The runs by seed and way.

    Raises:
        InputError: The file cannot be read or written.
    """
    by_label = {way.label: way for way in ways}
    journal, keys = _journal(bench, ways, state), _keys(ways, repeats)
    total, done = sum(by_label[label].n_points for _, label in keys), 0
    for key in keys:
        done += _run(bench, by_label[key[1]], key, journal)
        if told:
            told(done, total)
    return {key: journal.runs[key] for key in keys}


def finished(
    bench: Bench, ways: Sequence[Way | Selecting], repeats: int, state: Path | None
) -> tuple[int, str]:
    """Return how many repeats all ways have finished, and a note that says so.

    Raises:
        InputError: None, or the file cannot be read.
    """
    return whole_repeats(_journal(bench, ways, state).runs, _keys(ways, repeats))


def _journal(bench: Bench, ways: Sequence[Way | Selecting], state: Path | None) -> Journal:
    data = _digest(bench.crowd)
    return Journal(state, {way.label: _name(bench, way, data) for way in ways})


def _keys(ways: Sequence[Way | Selecting], repeats: int) -> list[Key]:
    return [
        (seed, way.label) for seed in range(repeats) for way in ways if seed == 0 or not way.alone
    ]


def _run(bench: Bench, way: Way | Selecting, key: Key, journal: Journal) -> int:
    """Do a run unless it is kept, and say how many points it is."""
    if key not in journal.runs:
        journal.add(key, tuple(way.play(bench, key[0])))
    return way.n_points


def _name(bench: Bench, way: Way | Selecting, data: str) -> str:
    """Name the data and all parameters: what a kept run belongs to."""
    parts = [VERSION, __version__, way, bench.method, PER_ANSWER, PER_TOKEN, data]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _digest(crowd: Crowd) -> str:
    """Name the data."""
    digest = hashlib.blake2b(digest_size=16)
    for words in (crowd.item_ids, crowd.tokens.flatten(), crowd.worker_ids):
        digest.update("\n".join(words.to_pylist()).encode())
    answers = crowd.latest
    own = (answers.item, answers.worker, answers.codes)
    for part in (crowd.offsets, crowd.gold_tagged.codes, *own):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
