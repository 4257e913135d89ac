"""Crowds are drawn as the paper says, and the same repeat draws the same crowd."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from goldspan.simulation import measure_workers
from studies.rodrigues.data import read_entities, read_phrases, read_workers
from studies.rodrigues.methods import FULL
from studies.rodrigues.real import one_per_article
from studies.rodrigues.simulated import Simulated

FLIPS = ("flip(0.01)", "flip(0.4)")


def _flips(tiny, **options):
    train = read_phrases(tiny, "train")
    return Simulated("test", train, {}, (), 2, FULL, FLIPS, **options)


def test_with_repetition_everybody_labels_everything(tiny):
    crowd = _flips(tiny).draw(0)
    assert len(crowd.latest) == 2 * crowd.n_items


def test_without_repetition_every_item_has_one_worker_and_parts_are_equal(tiny):
    crowd = _flips(tiny, is_repeated=False).draw(0)
    assert np.diff(crowd.by_item.bounds).tolist() == [1] * crowd.n_items
    assert np.diff(crowd.by_worker.bounds).tolist() == [36, 36]


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_repeat_is_drawn_the_same_way_again(tiny, is_repeated):
    one = _flips(tiny, is_repeated=is_repeated)
    assert one.draw(1) == one.draw(1)
    assert one.draw(1) != one.draw(0)


def test_noise_makes_workers_of_one_trained_crf(tiny):
    train = read_entities(tiny, "train")
    workers = ("crf_noise(0)", "crf_noise(4)")
    one = Simulated("test", train, {}, (), 1, FULL, workers).prepared(_Once())
    good, bad = measure_workers(one.draw(0))
    assert good.f1 > bad.f1


class _Once:
    """A runner that does one shard after the other."""

    def map(self, fn, shards, params):
        return [fn(shard, params) for shard in shards]

    def map_reduce(self, fn, shards, params, merge):
        found = self.map(fn, shards, params)
        for one in found[1:]:
            found[0] = merge(found[0], one)
        return found[0]


def test_one_worker_per_article_is_drawn_from_those_who_labelled_it(tiny):
    crowd = read_workers(tiny)
    drawn = one_per_article(crowd, 0)
    assert np.diff(drawn.by_item.bounds).tolist() == [1] * crowd.n_items
    for item in range(crowd.n_items):
        ((worker, tags),) = drawn.answers_of(item).items()
        assert crowd.answers_of(item)[worker] == tags
    workers = [next(iter(drawn.answers_of(item))) for item in range(crowd.n_items)]
    groups = crowd.groups.to_pylist()
    pairs = list(pairwise(zip(groups, workers, strict=True)))
    assert all(a[1] == b[1] for a, b in pairs if a[0] == b[0])


def test_every_worker_of_an_article_is_drawn_as_often(tiny):
    crowd = read_workers(tiny)
    seen = [next(iter(one_per_article(crowd, seed).answers_of(0))) for seed in range(300)]
    names, counts = np.unique(seen, return_counts=True)
    assert set(names) == set(crowd.answers_of(0))
    assert counts.min() > 70  # of 100 expected; 4.5 standard deviations are 37
