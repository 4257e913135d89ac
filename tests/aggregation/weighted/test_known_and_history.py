"""Every method on single labels takes known truth and an earlier result, and votes say what of it.

Methods with a CRF or with words are left out: single labels have no text to learn from. So is
`mv-seg`, which refuses labels without prefixes.
"""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from aggregation.weighted import dense
from goldspan.aggregation import get_aggregator, methods
from goldspan.spans import Codec, validate

SINGLE = [
    m for m in methods() if "crf" not in m and "+" not in m and m not in {"mv-seg", "ordinal"}
]
VOTES = {"mv-token", "mv-seq"}
WEIGHTED = ["wmv-linear", "wmv-log", "wawa", "zbs", "glad"]
NUMBERS = Codec.from_types(["1", "2", "4"], "PLAIN")
BIO = Codec.from_types(["X", "Y"], "BIO")
every_method = pytest.mark.parametrize("method", SINGLE)
with_history = pytest.mark.parametrize(
    "method", [name for name in SINGLE if "history" in get_aggregator(name).parameter_names()]
)


def crowd_of(seed):
    """Draw 30 items of labels 1, 2, 4; and the truth."""
    labels, truth = dense.draw(seed, n_items=30, n_workers=6)
    items = [{k: [int(c)] for k, c in enumerate(row) if c >= 0} for row in labels]
    return oracle.crowd_of(NUMBERS, items, workers=6), truth


@every_method
def test_known_labels_stand_in_the_result_with_certainty(method):
    crowd, truth = crowd_of(0)
    known = np.arange(8)
    wrong = (truth + 1) % 3  # what is known need not be what the crowd says
    result = get_aggregator(method).fit(crowd, dense.gold_of(crowd, wrong, known)).result_
    np.testing.assert_array_equal(result.codes[known], wrong[known])
    np.testing.assert_allclose(result.token_confidence[known], 1, atol=1e-6)
    np.testing.assert_allclose(result.confidence[known], 1, atol=1e-6)
    assert any("8 " in note and "known" in note for note in result.notes)


@every_method
def test_known_labels_are_evidence_on_workers_but_for_votes(method):
    crowd, truth = crowd_of(1)
    gold = dense.gold_of(crowd, (truth + 1) % 3, np.arange(15))
    plain = get_aggregator(method).fit(crowd).result_
    told = get_aggregator(method).fit(crowd, gold).result_
    moved = np.abs(told.token_probs[15:] - plain.token_probs[15:]).max()
    assert moved == 0 if method in VOTES else moved > 1e-4


@with_history
def test_an_earlier_result_tells_of_workers_but_not_to_votes(method):
    (crowd, _), (old, truth) = crowd_of(2), crowd_of(3)
    gold = dense.gold_of(old, (truth + 1) % 3, np.arange(30))
    past = get_aggregator(method).fit(old, gold).result_
    plain = get_aggregator(method).fit(crowd).result_
    told = get_aggregator(method, history=past).fit(crowd).result_
    moved = np.abs(told.token_probs - plain.token_probs).max()
    if method in VOTES:
        assert moved == 0
        assert "votes make no use of an earlier result" in told.notes
    else:
        assert moved > 1e-4


@pytest.mark.parametrize("method", WEIGHTED)
@pytest.mark.parametrize("source", ["mv-token", "ds", "glad"])
def test_weighted_votes_take_the_result_of_any_method_as_history(method, source):
    (crowd, _), (old, _) = crowd_of(4), crowd_of(5)
    past = goldspan.aggregate(old, source)
    told = goldspan.aggregate(crowd, method, history=past)
    assert np.abs(told.token_probs - goldspan.aggregate(crowd, method).token_probs).max() > 1e-4


@pytest.mark.parametrize("method", WEIGHTED)
def test_what_there_was_to_go_on_from_is_not_used_and_notes_say_so(method):
    crowd, _ = crowd_of(6)
    plain = goldspan.aggregate(crowd, method)
    unused = {f"{method} makes no use of start", f"{method} makes no use of a checkpoint"}
    assert not unused & set(plain.notes)
    again = get_aggregator(method).fit(crowd, start=plain, checkpoint=object()).result_
    assert unused < set(again.notes)
    np.testing.assert_array_equal(again.token_probs, plain.token_probs)


@pytest.mark.parametrize("method", ["mv-token", "mv-seq", "mv-seg", *WEIGHTED])
@pytest.mark.parametrize("seed", range(3))
def test_on_tagged_tokens_known_tags_stand_and_items_stay_legal(method, seed):
    rng = np.random.default_rng(seed)
    items = oracle.random_items(rng, BIO, n_items=10, n_workers=3)
    crowd = oracle.crowd_of(BIO, items, workers=3)
    known = np.full(crowd.n_tokens, -1, np.int16)
    first = BIO.index["B-X"]
    known[crowd.offsets[:-1]] = first
    result = get_aggregator(method).fit(crowd, crowd.with_gold(known)).result_
    assert (result.codes[crowd.offsets[:-1]] == first).all()
    assert not any(validate(tags, "BIO") for tags in result.tags)
    assert (result.token_confidence[crowd.offsets[:-1]] == 1).all()
    alone = np.diff(crowd.offsets) == 1
    assert (result.confidence[alone] == 1).all()


def test_a_known_tag_mends_its_neighbours_and_keeps_what_it_can():
    builder = goldspan.crowd.CrowdBuilder()
    item = builder.add_item("s", ["a", "b", "c"], gold=["O", None, None])
    builder.add_answer(item, "w", ["B-X", "I-X", "O"])
    crowd = builder.build()
    result = get_aggregator("mv-token").fit(crowd, crowd).result_
    assert result.tags in ([["O", "B-X", "O"]], [["O", "O", "O"]])
    raw = get_aggregator("mv-token", legal=False).fit(crowd, crowd).result_
    assert raw.tags == [["O", "I-X", "O"]]


def test_an_item_that_nobody_answered_is_known_or_open():
    builder = goldspan.crowd.CrowdBuilder()
    for name, gold in (("a", None), ("b", "x"), ("c", None)):
        place = builder.add_item(name, ["t"], gold=[gold])
        if name == "a":
            builder.add_answer(place, "w", ["x"])
    crowd = builder.build()
    for method in ("mv-token", "wawa"):
        result = get_aggregator(method).fit(crowd, crowd).result_
        assert result.labels == ["x", "x", None]
        assert "1 item without answers is left open" in result.notes
