"""How the study spends money on answers that a crowd really gave."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from goldspan.crowd import read_crowd
from studies.campaign_ner.play import Bench, play_campaign, play_fixed


@pytest.fixture(scope="module")
def bench(tiny):
    return Bench(read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz"), method="bsc-seq")


def test_an_answer_costs_by_its_tokens(bench):
    tokens = np.diff(bench.crowd.offsets)[bench.crowd.latest.item]
    assert bench.prices.tolist() == [20_000 + 2_000 * n for n in tokens.tolist()]


def test_enough_answers_of_every_sentence_are_the_whole_crowd(bench):
    point = play_fixed(bench, 0, 3)
    assert (point.answers, point.money) == (len(bench.crowd.latest), bench.prices.sum())
    assert point.unasked == 0


def test_a_campaign_buys_no_more_than_its_share_in_rounds(bench):
    points = list(play_campaign(bench, 0, 2, 0.5))
    n = len(bench.crowd.latest)
    assert [point.answers for point in points] == [12, 24, n // 2]
    assert all(a.money < b.money for a, b in pairwise(points))
    assert points[0].unasked == bench.crowd.n_items - 6


def test_gold_decides_nothing(bench):
    hidden = Bench(bench.crowd.with_gold(np.zeros_like(bench.crowd.gold)), method="bsc-seq")
    seen, blind = (list(play_campaign(one, 0, 2, 0.5)) for one in (bench, hidden))
    assert [(p.answers, p.money) for p in seen] == [(p.answers, p.money) for p in blind]
    assert seen[-1].f1 > blind[-1].f1
