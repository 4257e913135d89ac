"""How the study spends money on answers that a crowd really gave."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from goldspan.crowd import read_crowd
from studies.campaign_ner.play import (
    Bench,
    ask,
    begin,
    play_fixed,
    play_policy,
    play_random,
)
from studies.campaign_ner.policy import Policy


@pytest.fixture(scope="module")
def bench(tiny):
    return Bench(read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz"), rounds=1)


def test_an_answer_costs_by_its_tokens(bench):
    tokens = np.diff(bench.crowd.offsets)[bench.crowd.latest.item]
    assert bench.prices.tolist() == [20_000 + 2_000 * n for n in tokens.tolist()]


def test_the_most_promising_answers_are_asked_for_one_of_a_sentence(bench):
    revealed = bench.revealed(0)
    rest = np.arange(len(revealed.asked))
    promised = np.random.default_rng(1).random(len(rest))
    last = ask(revealed, rest, promised, 5)
    asked = np.flatnonzero(revealed.asked >= 0)
    item = revealed.answers.item
    best = sorted((max(promised[item == n]) for n in np.unique(item)), reverse=True)[:5]
    assert sorted(promised[asked], reverse=True) == best
    assert last == best[-1]


def test_equal_promises_are_taken_in_the_random_order(bench):
    revealed = bench.revealed(0)
    ask(
        revealed, np.arange(len(revealed.asked)), np.zeros(len(revealed.asked)), bench.crowd.n_items
    )
    assert (revealed.rank[revealed.asked >= 0] == 0).all()


def test_without_a_least_number_a_quarter_of_the_sentences_gets_two_answers(bench):
    revealed = bench.revealed(3)
    begin(revealed, 0, 3)
    told = np.bincount(revealed.answers.item[revealed.asked >= 0], minlength=bench.crowd.n_items)
    assert sorted(told.tolist()) == [0] * 18 + [2] * 6


def test_enough_answers_of_every_sentence_are_the_whole_crowd(bench):
    point = play_fixed(bench, 0, 3, 0.25)
    assert (point.answers, point.money) == (len(bench.crowd.latest), bench.prices.sum())
    assert point.unasked == 0


def test_a_random_share_is_that_share(bench):
    point = play_random(bench, 0, 0.5, 0.25)
    assert point.answers == len(bench.crowd.latest) // 2


def test_a_loop_buys_no_more_than_its_shares_and_never_gives_back(bench):
    points = list(play_policy(bench, Policy(), 0, (0.4, 0.6), 0.25))
    n = len(bench.crowd.latest)
    assert [point.answers for point in points] == [12, int(0.4 * n), int(0.6 * n)]
    assert all(a.money < b.money for a, b in pairwise(points))


def test_gold_decides_nothing(bench):
    hidden = Bench(bench.crowd.with_gold(np.zeros_like(bench.crowd.gold)), rounds=1)
    seen = list(play_policy(bench, Policy(), 0, (0.5,), 0.25))
    blind = list(play_policy(hidden, Policy(), 0, (0.5,), 0.25))
    assert [(p.answers, p.money, p.gain) for p in seen[1:]] == [
        (p.answers, p.money, p.gain) for p in blind[1:]
    ]
    assert seen[-1].f1 > blind[-1].f1
