"""Reliability: counts against counting by hand, effective numbers, gold of every make, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.measures import token_accuracy, worker_rates
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import Reliability, measure_reliability, review_workers
from goldspan.workers.reliability import design_effect, find_truth, judge_answers

ANSWERS = b"""task,worker,label
1,ann,x
1,bob,y
2,ann,y
2,bob,y
3,ann,x
3,cat,x
"""


@pytest.fixture
def answers() -> Crowd:
    return read_crowd(ANSWERS)


@pytest.fixture(scope="module")
def tagged(root) -> Crowd:
    return read_crowd(root / "examples" / "crowd.tsv")


def counts(found: Reliability) -> list[tuple[float, float]]:
    return list(zip(found.right.tolist(), found.total.tolist(), strict=True))


def test_gold_judges_what_it_knows(answers):
    found = measure_reliability(answers, {"1": "x", "2": "y"})
    assert counts(found) == [(2, 2), (1, 2), (0, 0)]
    assert (found.measure, found.source, found.n_labels) == ("accuracy", "gold", 2)
    assert found.worker_ids.to_pylist() == ["ann", "bob", "cat"]


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=40, unique=True))
def test_counts_are_those_of_counting_by_hand(rows):
    cells = {(item, worker): label for item, worker, label in rows}
    text = "".join(f"{i},w{w},{c}\n" for (i, w), c in cells.items())
    crowd = read_crowd(f"task,worker,label\n{text}".encode())
    truth = {str(i): str(i % 3) for i, _ in cells}
    found = measure_reliability(crowd, truth, prior=(1, 1))
    for n, name in enumerate(crowd.worker_ids.to_pylist()):
        own = {i: c for (i, w), c in cells.items() if f"w{w}" == name}
        assert found.total[n] == len(own)
        assert found.right[n] == sum(c == i % 3 for i, c in own.items())


def test_a_result_counts_as_much_as_it_is_sure(answers):
    result = goldspan.aggregate(answers, "ds")
    found = measure_reliability(answers, result=result, prior=(1, 1))
    probs, tags = result.token_probs.astype(float), answers.tagset.tags
    x, y = tags.index("x"), tags.index("y")
    expected = [probs[0, x] + probs[1, y] + probs[2, x], probs[0, y] + probs[1, y], probs[2, x]]
    assert found.right == pytest.approx(expected, abs=1e-9)
    assert found.source == "crowd"


def test_gold_goes_before_the_result_where_there_is_both(answers):
    result = goldspan.aggregate(answers, "ds")
    found = measure_reliability(answers, {"1": "y"}, result, prior=(1, 1))
    alone = measure_reliability(answers, result=result, prior=(1, 1))
    x = answers.tagset.tags.index("x")
    assert found.source == "both"
    assert found.right[0] == pytest.approx(alone.right[0] - float(result.token_probs[0, x]))
    assert found.total.tolist() == alone.total.tolist()


def test_gold_everywhere_leaves_nothing_to_the_result(answers):
    gold = {"1": "y", "2": "y", "3": "y"}
    found = measure_reliability(answers, gold, goldspan.aggregate(answers, "ds"))
    assert (counts(found), found.source) == ([(1, 3), (2, 2), (0, 1)], "gold")


def test_a_label_that_only_gold_has_is_one_to_choose_from(answers):
    found = measure_reliability(answers, {"1": "z"}, goldspan.aggregate(answers, "ds"))
    assert found.n_labels == 3
    assert found.right[0] < 2  # the first answer is wrong


@pytest.mark.parametrize("make", ["mapping", "file", "frame"])
def test_several_truths_of_an_item_are_refused(answers, make, tmp_path):
    import pandas as pd

    rows = [("1", "x"), ("1", "y"), ("2", "y"), ("2", "y"), ("3", "z")]
    path = tmp_path / "gold.csv"
    frame = pd.DataFrame(rows, columns=["item", "label"])
    frame.to_csv(path, index=False)
    gold = {"1": ["x", "y"], "2": "y", "3": {"z"}}
    source = {"mapping": gold, "file": path, "frame": frame}[make]
    with pytest.raises(InputError, match="gold 'y' where an earlier row has 'x'"):
        measure_reliability(answers, source)


def test_span_counts_are_those_of_the_workers_rates(tagged):
    truth = find_truth(tagged, None, None)
    judged = judge_answers(truth, "span_f1")
    right = np.bincount(tagged.latest.worker, judged.right, tagged.n_workers)
    total = np.bincount(tagged.latest.worker, judged.total, tagged.n_workers)
    for n, rates in enumerate(worker_rates(tagged, truth.gold)):
        assert right[n] == rates.n_right
        assert total[n] == (rates.n_predicted + rates.n_true) / 2
        assert measure_reliability(tagged).share[n] == pytest.approx(rates.f1, abs=1e-9)


def test_the_share_of_tokens_is_their_accuracy(tagged):
    found = measure_reliability(tagged, measure="token_accuracy")
    assert found.share == pytest.approx(token_accuracy(tagged, tagged.gold), abs=1e-9)
    assert found.n_labels == len(tagged.tagset.tags)


def test_spans_of_a_result_count_with_their_confidence(tagged):
    result = goldspan.aggregate(tagged, "bsc-seq")
    truth = find_truth(tagged.with_gold(None), None, result)
    judged = judge_answers(truth, "span_f1")
    whole = np.bincount(result.span_array.item, result.span_confidence, tagged.n_items)
    spans = np.bincount(tagged.latest.item, judged.total, tagged.n_items)
    per_item = np.bincount(tagged.latest.item, minlength=tagged.n_items)
    skipped = np.unique(tagged.token_of[tagged.latest.codes < 0])  # their spans do not count
    full = np.ones(tagged.n_items, np.bool_)
    full[np.searchsorted(tagged.offsets, skipped, side="right") - 1] = False
    given = (2 * spans - whole * per_item)[full]  # what is left are spans given: whole numbers
    assert full.sum() > 90
    assert given == pytest.approx(given.round(), abs=1e-4)
    by_gold = measure_reliability(tagged)
    by_crowd = measure_reliability(tagged.with_gold(None), result=result)
    assert np.corrcoef(by_gold.share, by_crowd.share)[0, 1] > 0.8


def test_gold_of_some_items_and_a_result_of_the_others_judge_spans(tagged):
    result = goldspan.aggregate(tagged, "bsc-seq")
    half = np.repeat(np.arange(tagged.n_items) % 2 == 0, np.diff(tagged.offsets))
    some = tagged.with_gold(np.where(half, tagged.gold, -1).astype(np.int16))
    both = judge_answers(find_truth(some, None, result), "span_f1")
    parts = [
        judge_answers(find_truth(tagged, None, None), "span_f1"),
        judge_answers(find_truth(tagged.with_gold(None), None, result), "span_f1"),
    ]
    even = tagged.latest.item % 2 == 0
    assert both.right == pytest.approx(np.where(even, parts[0].right, parts[1].right))


def test_repeated_tokens_tell_no_more():
    """Every item holds the same token ten times: ten answers are one question."""
    rng = np.random.default_rng(3)
    rows = ["doc\tsent\ttoken\tgold\ta\tb"]
    for n in range(60):
        truth, lies = "yes", rng.random(2) < 0.3
        cells = "\t".join("no" if lie else "yes" for lie in lies)
        rows += [f"{n}\t0\tw\t{truth}\t{cells}"] * 10
    crowd = read_crowd("\n".join(rows).encode(), encoding="PLAIN", format="wide")
    found = measure_reliability(crowd, prior=(1, 1))
    assert found.measure == "token_accuracy"
    assert found.total == pytest.approx(60, rel=0.05)


def test_independent_tokens_count_in_full():
    rng = np.random.default_rng(4)
    rows = ["doc\tsent\ttoken\tgold\ta\tb\tc"]
    for n in range(400):
        cells = "\t".join("no" if lie else "yes" for lie in rng.random(3) < 0.3)
        rows.append(f"{n // 10}\t0\tw\tyes\t{cells}")
    crowd = read_crowd("\n".join(rows).encode(), encoding="PLAIN", format="wide")
    effect = design_effect(crowd, judge_answers(find_truth(crowd, None, None), "token_accuracy"))
    assert (effect >= 1).all()
    assert effect == pytest.approx(1, abs=0.35)


def test_the_design_effect_is_that_of_kish():
    """Of four answers in each of three documents 4, 3 and 2 are right.

    The share is 3/4 and the squares of 1, 0 and −1 sum to 2: times 3 / (3 − 1), 3 where independent
    answers have 12 · 3/4 · 1/4 = 9/4. So rho = (3 − 9/4) / (9/4 · (4 − 1)) = 1/9.
    """
    rows = ["doc\tsent\ttoken\tgold\ta"]
    for doc, right in enumerate((4, 3, 2)):
        rows += [f"{doc}\t{n}\tw\tyes\t{'yes' if n < right else 'no'}" for n in range(4)]
    crowd = read_crowd("\n".join(rows).encode(), encoding="PLAIN", format="wide")
    effect = design_effect(crowd, judge_answers(find_truth(crowd, None, None), "token_accuracy"))
    assert effect == pytest.approx(1 + (4 - 1) / 9)


@pytest.mark.realdata
def test_intervals_of_half_the_documents_cover_the_other_half(data):
    """Without the design effect they cover 61 % of the workers, not 95 %."""
    crowd = read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    group = crowd.groups.dictionary_encode().indices.to_numpy()
    covered = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        first = (rng.permutation(group.max() + 1) % 2 == 0)[group]
        halves = [measure_reliability(crowd.select_items(which)) for which in (first, ~first)]
        drawn = [rng.beta(h.a[:, None], h.b[:, None], (len(h), 2000)) for h in halves]
        low, high = np.percentile(drawn[0] - drawn[1], [2.5, 97.5], axis=1)
        known = (halves[0].total > 0) & (halves[1].total > 0)
        covered.append(((low <= 0) & (high >= 0))[known].mean())
    assert 0.9 < np.mean(covered) < 0.99


def test_simulated_skill_is_found_without_gold():
    truth = draw_truth(600, 3, seed=1)
    crowd = simulate_crowd(truth, ["flip(0.1) x4", "flip(0.4) x4"], seed=2).with_gold(None)
    found = measure_reliability(crowd, result=goldspan.aggregate(crowd, "ds"))
    low, high = found.interval(0.999)
    for n, skill in enumerate([0.9] * 4 + [0.6] * 4):
        assert low[n] < skill < high[n]


def test_gold_that_nobody_saw_is_refused(answers):
    unseen = answers.select_items(np.array([0, 1, 2]))
    kept = unseen.answers.item != 1
    unseen = replace(unseen, answers=unseen.answers.take(kept))
    with pytest.raises(InputError, match="no worker answered an item with gold"):
        measure_reliability(unseen, {"2": "y"})


def test_with_neither_gold_nor_result_the_message_says_what_to_give(answers):
    with pytest.raises(InputError, match=r"give known labels.*or a result"):
        measure_reliability(answers)


def test_gold_of_other_items_is_refused(answers):
    with pytest.raises(InputError, match="none of its 1 items is in the crowd"):
        measure_reliability(answers, {"9": "x"})


def test_a_result_of_another_crowd_is_refused(answers, tagged):
    with pytest.raises(InputError, match="not dict"):
        measure_reliability(answers, result={"1": "x"})
    with pytest.raises(InputError, match="another crowd"):
        measure_reliability(answers, result=goldspan.aggregate(tagged, "mv-token"))
    other = goldspan.aggregate(read_crowd(ANSWERS.replace(b"3,", b"4,")), "mv-token")
    with pytest.raises(InputError, match="another crowd"):
        measure_reliability(answers, result=other)


@pytest.mark.parametrize("measure", ["span_f1", "token_f1"])
def test_a_measure_that_does_not_suit_is_refused(answers, measure):
    wanted = UnknownNameError if measure == "token_f1" else InputError
    with pytest.raises(wanted):
        measure_reliability(answers, {"1": "x"}, measure=measure)


def test_accuracy_of_sequences_names_the_measure_to_take(tagged):
    with pytest.raises(InputError, match="token_accuracy"):
        measure_reliability(tagged, measure="accuracy")


def test_gold_tags_of_another_length_name_the_item(tagged):
    name = tagged.item_ids[0].as_py()
    with pytest.raises(InputError, match=f"{name}.* has 1 tags"):
        measure_reliability(tagged, {name: ["O"]})
    tags = tagged.tagged_by_id()
    assert counts(measure_reliability(tagged, tags)) == counts(measure_reliability(tagged))


def test_items_with_any_number_of_labels_count_once():
    rows = [f"{n},{who},x|{label}\n" for n in range(6) for who, label in (("a", "y"), ("b", "z"))]
    gold = {str(n): ["x", "y"] for n in range(6)}
    crowd = read_crowd(f"item,worker,label\n{''.join(rows)}".encode(), several="labels", gold=gold)
    found = measure_reliability(crowd, prior=(1, 1))
    assert found.total.tolist() == pytest.approx([6, 6])
    assert found.share.tolist() == pytest.approx([1, 1 / 3])
    notes = review_workers(crowd, method="mv-token").notes
    assert any("the median worker answered 6 items with gold" in note for note in notes)
