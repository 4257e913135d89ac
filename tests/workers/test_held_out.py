"""Votes measured on held-out gold: by hand, without leaks, and where it cannot be done."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import measure_reliability, measure_votes, select_workers


def tagged(docs: int = 8, *, skip: str = "") -> Crowd:
    """Documents of two sentences: ann is right, bob misses one of two spans, con marks nothing."""
    rows = ["doc\ttoken\tgold\tann\tbob\tcon"]
    for doc in range(docs):
        for sentence in range(2):
            answers = [
                "B-X\tB-X\tB-X\tO",
                "O\tO\tO\tO",
                f"B-Y\tB-Y\t{'O' if sentence else 'B-Y'}\tO",
            ]
            if skip == "ann" and sentence:
                answers = [line.split("\t", 2) for line in answers]
                answers = [f"{gold}\t?\t{rest}" for gold, _, rest in answers]
            rows += [f"d{doc}\tw\t{line}" for line in answers] + [""]
    return goldspan.read_crowd("\n".join(rows).encode())


def drawn(n_items: int, chances: list[float], *, length: int = 6, answering: float = 1.0) -> Crowd:
    """Sentences without documents, of workers who tag a token rightly with these chances."""
    rng, names = np.random.default_rng(1), "\t".join(f"w{n}" for n in range(len(chances)))
    rows = [f"token\tgold\t{names}"]
    for _ in range(n_items):
        gone = rng.random(len(chances)) > answering
        for true in rng.random(length) < 0.5:
            said = np.where(rng.random(len(chances)) < chances, true, not true)
            tags = np.where(gone, "?", np.where(said, "B-X", "O"))
            rows.append("\t".join(["w", "B-X" if true else "O", *tags]))
        rows.append("")
    return goldspan.read_crowd("\n".join(rows).encode())


def test_the_best_is_ranked_first_and_scored_on_the_other_half():
    found = measure_votes(tagged())
    assert found.accuracy[0] == 1
    assert (found.low[0], found.high[0]) == (1, 1)
    assert found.answers[:2].tolist() == [1, 2]
    assert (found.n_groups, found.unit, found.measure) == (8, "documents", "span_f1")


def test_items_that_nobody_of_the_team_answered_count_as_nothing_found():
    found = measure_votes(tagged(skip="ann"), sizes=[1])
    # Half of the spans are found, none is spurious: F1 = 2 · 1/2 / (1/2 + 1).
    assert found.accuracy == pytest.approx([2 / 3])
    assert found.answers == pytest.approx([0.5])


def test_the_score_is_that_of_the_vote_on_either_half():
    crowd = drawn(40, [0.9, 0.85, 0.7, 0.7, 0.5], answering=0.6)
    found = measure_votes(crowd, sizes=[2], halvings=1, random_state=4, measure="token_accuracy")
    order, right = np.random.default_rng(4).permutation(40), 0
    first = np.isin(np.arange(40), order[:20])
    for test in (first, ~first):
        tested = measure_reliability(crowd.select_items(test), measure="token_accuracy")
        two = select_workers(tested, budget=2, strategy="top").worker_ids.to_pylist()
        rest = crowd.select_items(~test)
        vote = goldspan.aggregate(rest.with_gold(None), "wmv-linear", reliability=tested, only=two)
        right += (vote.codes == rest.gold).sum()
    assert found.accuracy[0] == pytest.approx(right / crowd.n_tokens)


def test_workers_who_are_only_lucky_gain_nothing():
    crowd = drawn(12, [0.5] * 30, length=3)
    found = measure_votes(crowd, sizes=[1], measure="token_accuracy")
    seen = measure_reliability(crowd, measure="token_accuracy").share.max()
    everybody = measure_reliability(crowd, measure="token_accuracy").share.mean()
    assert found.accuracy[0] == pytest.approx(everybody, abs=0.08)
    assert seen > everybody + 0.1


def test_money_is_that_of_the_answers_there_are():
    found = measure_votes(tagged(skip="ann"), sizes=[1], prices=np.array([100_000, 1, 1]))
    assert (found.cost.tolist(), found.in_money) == ([50_000], True)
    assert found.cost_to(0.6).cost == 50_000


def test_sizes_that_a_half_cannot_rank_are_left_out():
    found = measure_votes(tagged(), sizes=[1, 2, 50])
    assert found.sizes.tolist() == [1, 2]
    with pytest.raises(InputError, match="workers only"):
        measure_votes(tagged(), sizes=[50])


def test_items_stand_for_documents_where_there_are_none():
    crowd = drawn(10, [0.9] * 3)
    assert measure_votes(crowd, measure="token_accuracy").unit == "items"


@pytest.mark.parametrize("docs", [0, 5])
def test_too_little_gold_to_halve_is_refused(docs):
    crowd = tagged()
    gold = np.where(np.repeat(np.arange(8), 6) < docs, crowd.gold, -1).astype(np.int16)
    with pytest.raises(InputError, match=f"gold of 6 documents: there are {docs}"):
        measure_votes(crowd.with_gold(gold))


def test_single_labels_are_refused():
    crowd = simulate_crowd(draw_truth(10), ["flip(0.1)"])
    with pytest.raises(InputError, match="see forecast_accuracy"):
        measure_votes(crowd)


def test_it_says_that_it_was_measured_and_how_many_answers_there_are():
    found = measure_votes(tagged(skip="ann"), sizes=[1])
    assert str(found).splitlines()[:2] == [
        "span F1 measured on held-out gold of 8 documents, not a model",
        "workers  answers per item        F1  95 % interval",
    ]
    assert found.to_dict()["answers_per_item"] == [0.5]
    assert found.at(1).answers.tolist() == [0.5]


def test_the_same_seed_gives_the_same_curve():
    one, same = (measure_votes(tagged(), random_state=1).to_dict() for _ in range(2))
    assert one == same


@pytest.mark.realdata
def test_what_was_measured_is_what_the_other_articles_had(data):
    crowd = goldspan.read_crowd(str(data / "ner_mturk" / "crowd.tsv.gz"))
    doc = crowd.groups.dictionary_encode().indices.to_numpy()
    missed = []
    for seed in range(3):
        few = np.isin(doc, np.random.default_rng(seed).permutation(doc.max() + 1)[:20])
        found = measure_votes(crowd.select_items(few), sizes=[10], random_state=seed)
        tested, rest = measure_reliability(crowd.select_items(few)), crowd.select_items(~few)
        ids = select_workers(tested, budget=10, strategy="top").worker_ids.to_pylist()
        vote = goldspan.aggregate(
            rest.with_gold(None), "wmv-linear", unit="span", reliability=tested, only=ids
        )
        had = goldspan.spans.score(rest, vote).f1
        assert found.low[0] < had < found.high[0]
        missed.append(found.accuracy[0] - had)
    assert abs(np.mean(missed)) < 0.06
