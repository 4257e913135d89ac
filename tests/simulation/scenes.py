"""Small truths with known spans, and one worker's answers to them, for the tests of this room."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from goldspan.crowd import Answers, Crowd
from goldspan.crowd.model import list_array
from goldspan.simulation import parse_worker, simulate_crowd
from goldspan.spans import Codec


def truth_of(items, *, types=("LOC", "ORG", "PER"), encoding="BIO", ids=None):
    """Make a truth of lists of tags; items may be empty."""
    codec = Codec.from_types(types, encoding)
    tagged = codec.encode([list(tags) for tags in items])
    ids = ids or [f"s{n}" for n in range(len(items))]
    words = [f"word{n % 50}" for n in range(len(tagged.codes))]
    return Crowd(
        item_ids=pa.array(ids, pa.string()),
        tokens=list_array(pa.array(words, pa.string()), tagged.offsets),
        worker_ids=pa.array([], pa.string()),
        tagset=codec,
        answers=Answers.none(),
        gold=tagged.codes,
    )


def random_truth(seed=0, *, n_items=200, length=10, n_types=3, encoding="BIO"):
    """Draw labels of any kind, legal or not, in items of different lengths."""
    rng = np.random.default_rng(seed)
    types = [f"t{n}" for n in range(n_types)]
    tags = np.array(Codec.from_types(types, encoding).tags)
    lengths = rng.integers(0, 2 * length, n_items)
    return truth_of([rng.choice(tags, n) for n in lengths], types=types, encoding=encoding)


def answer(truth, worker, **options):
    """Return the codes of a single worker who answers everything."""
    return simulate_crowd(truth, {"w1": worker}, **options).answers.codes


def tags_of(tags, worker, *, encoding="BIO", types=("LOC", "ORG", "PER"), **options):
    """Return one worker's tags to one item, as one string."""
    truth = truth_of([tags.split()], encoding=encoding, types=types)
    codes = answer(truth, worker, **options)
    return " ".join(truth.tagset.tags[code] for code in codes)


def named(text):
    """Read a worker (short for tests)."""
    return parse_worker(text)
