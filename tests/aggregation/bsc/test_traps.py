"""One test for every mistake that implementations of these models are known to make."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation.bsc.engine import Truth
from goldspan.aggregation.bsc.evidence import lay_out
from goldspan.aggregation.bsc.posterior import best_spans
from goldspan.errors import InputError
from goldspan.spans import Codec

BIO = Codec.from_types(["X"], "BIO")
O, B, I = range(3)
every_model = pytest.mark.parametrize("model", oracle.MODELS)


def rows_by_token(crowd, **options):
    """Return (worker, previous, label) of every given label by token."""
    evidence, rows = lay_out(crowd, has_memory=True, **options)
    found = []
    for t in range(crowd.n_tokens):
        own = evidence.row[evidence.bounds[t] : evidence.bounds[t + 1]]
        keys = zip(rows.worker[own], rows.previous[own], rows.label[own], strict=True)
        found.append([tuple(int(v) for v in key) for key in keys])
    return found


def test_the_previous_label_never_leaks_from_one_item_into_the_next():
    crowd = oracle.crowd_of(BIO, [{0: [O, B]}, {0: [I, I]}, {0: [B]}], workers=1)
    assert rows_by_token(crowd) == [[(0, O, O)], [(0, O, B)], [(0, O, I)], [(0, I, I)], [(0, O, B)]]
    own = rows_by_token(crowd, start="own")
    assert [keys[0][1] for keys in own] == [3, O, 3, I, 3]


def test_after_a_skipped_token_the_previous_label_is_what_the_option_says():
    crowd = oracle.crowd_of(BIO, [{0: [B, -1, I, -1]}], workers=1)
    assert rows_by_token(crowd, skipped="outside") == [[(0, O, B)], [], [(0, O, I)], []]
    assert rows_by_token(crowd, skipped="own") == [[(0, O, B)], [], [(0, 3, I)], []]


def test_rows_of_a_token_stand_in_the_order_of_workers_and_are_sorted():
    crowd = oracle.crowd_of(BIO, [{0: [B], 1: [O], 2: [B]}, {0: [O], 2: [O]}], workers=3)
    assert rows_by_token(crowd) == [[(0, O, B), (1, O, O), (2, O, B)], [(0, O, O), (2, O, O)]]
    _, rows = lay_out(crowd, has_memory=True)
    keys = list(zip(rows.worker, rows.previous, rows.label, strict=True))
    assert keys == sorted(set(keys))


@every_model
def test_the_first_token_is_scored(model):
    """Two items that differ in their first token only end up with another first tag."""
    items = [{k: [B, O] for k in range(3)}, {k: [O, O] for k in range(3)}] * 5
    result = goldspan.aggregate(oracle.crowd_of(BIO, items), f"bsc-{model}")
    assert result.tags[0] == ["B-X", "O"]
    assert result.tags[1] == ["O", "O"]
    single = goldspan.aggregate(
        oracle.crowd_of(BIO, [{k: [B] for k in range(3)}] * 5), f"bsc-{model}"
    )
    assert single.tags == [["B-X"]] * 5


@every_model
def test_a_missing_label_adds_nothing_to_the_token_or_to_its_worker(model):
    """It is not the last class, nor `O`: answers that skip everything change no number."""
    items = [{0: [B, I, O], 1: [B, I, O]}, {0: [O, B], 1: [B, O]}]
    plain = goldspan.aggregate(oracle.crowd_of(BIO, items, workers=3), f"bsc-{model}", max_iter=5)
    more = [{**items[0], 2: [-1, -1, -1]}, {**items[1], 2: [-1, -1]}]
    found = goldspan.aggregate(oracle.crowd_of(BIO, more, workers=3), f"bsc-{model}", max_iter=5)
    assert found.trace == plain.trace
    np.testing.assert_array_equal(found.token_probs, plain.token_probs)


@every_model
def test_gold_is_felt_by_the_neighbours(model):
    """Nobody answers the second token: what is known of it decides whether the first is B."""
    items = [{0: [B, I, O], 1: [B, I, O], 2: [O, O, O]}] * 20 + [{0: [B, -1, -1], 1: [O, -1, -1]}]
    crowd = oracle.crowd_of(BIO, items)
    probs = {}
    for tag in (O, I):
        gold = np.full(crowd.n_tokens, -1, np.int16)
        gold[-2] = tag
        result = goldspan.aggregate(crowd, f"bsc-{model}", gold=crowd.with_gold(gold))
        probs[tag] = result.token_probs[-3]
        assert result.token_probs[-2, tag] == 1
    assert probs[I][O] == 0  # I cannot follow O
    assert probs[O][B] < probs[I][B]


@every_model
def test_gold_counts_in_the_confusions_of_the_workers(model):
    """All say O; gold says that it is B: who says O is then doubted, which no pasted gold does."""
    items = [{0: [O], 1: [O]}] * 10
    crowd = oracle.crowd_of(BIO, items)
    gold = np.full(10, -1, np.int16)
    gold[:5] = B
    plain = goldspan.aggregate(crowd, f"bsc-{model}", epsilon0=2.0)
    known = goldspan.aggregate(crowd, f"bsc-{model}", epsilon0=2.0, gold=crowd.with_gold(gold))
    assert (known.token_probs[:5, B] == 1).all()
    assert (known.token_probs[5:, O] < plain.token_probs[5:, O] - 0.05).all()


@every_model
def test_a_label_that_nobody_ever_gave_is_not_vetoed(model):
    """With the least prior allowed, thirty against one still leaves every label possible."""
    codec = Codec.from_types(["a", "b", "c"], "PLAIN")
    crowd = oracle.crowd_of(codec, [{0: [0]}, {0: [1]}])
    result = goldspan.aggregate(crowd, f"bsc-{model}", alpha0=0.1, epsilon0=0.0)
    assert (result.token_probs > 1e-7).all()
    with pytest.raises(InputError, match=r"at least 0\.1"):
        goldspan.aggregate(crowd, f"bsc-{model}", alpha0=1e-12)


def test_the_start_of_the_truth_has_a_row_of_its_own():
    """Items begin with B and never go on with it: a shared row could not say so."""
    items = [{0: [B, O, O, O], 1: [B, O, O, O]}] * 20
    result = goldspan.aggregate(oracle.crowd_of(BIO, items), "bsc-cm")
    truth = result.memory.sums.truth
    assert truth[0].argmax() == B
    assert truth[1].argmax() == O


def test_what_the_encoding_forbids_has_no_mass_at_all():
    codec = Codec.from_types(["X"], "IOBES")
    tags = list(codec.tags)
    e, i = tags.index("E-X"), tags.index("I-X")
    crowd = oracle.crowd_of(codec, [{k: [e, e, i] for k in range(9)}] * 5, workers=9)
    result = goldspan.aggregate(crowd, "bsc-cm")
    first, last = result.token_probs[0], result.token_probs[2]
    assert first[e] == first[i] == 0
    assert last[i] == last[tags.index("B-X")] == 0


def test_the_chain_of_a_truth_has_the_masks_of_its_encoding():
    truth = Truth.chain(BIO)
    assert truth.allowed.tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    logs = truth.log_table(np.zeros((4, 3)))
    assert (logs == -np.inf).sum() == 2
    assert truth.divergence(np.zeros((4, 3))) == pytest.approx(0, abs=1e-12)


def test_among_equal_paths_the_lower_label_wins_in_every_order_of_workers():
    codec = Codec.from_types(["a", "b"], "PLAIN")
    for pair in ([0, 1], [1, 0]):
        crowd = oracle.crowd_of(codec, [{0: [pair[0]], 1: [pair[1]]}])
        for method in ("bsc-cm", "ibcc", "ds", "one-coin"):
            result = goldspan.aggregate(crowd, method)
            assert result.token_probs[0].tolist() == [0.5, 0.5]
            assert result.labels == ["a"]


def test_a_span_has_more_confidence_than_the_path_that_holds_it():
    """Its posterior sums over all paths around it."""
    items = [{0: [B, I, O, B], 1: [B, O, O, B], 2: [B, I, O, O]}] * 3
    result = goldspan.aggregate(oracle.crowd_of(BIO, items), "bsc-cm", epsilon0=2.0)
    for item in range(3):
        own = result.span_confidence[result.span_array.item == item]
        assert (own >= result.confidence[item] - 1e-6).all()


# Decoding


def schedules(spans):
    """List all sets of spans that do not overlap."""
    if not spans:
        return [[]]
    first, *rest = spans
    found = schedules(rest)
    return found + [
        [first, *one]
        for one in found
        if all(s[0] != first[0] or s[2] <= first[1] or first[2] <= s[1] for s in one)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_chosen_spans_have_the_largest_expected_f1_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    item = np.sort(rng.integers(2, size=n))
    begin = rng.integers(5, size=n)
    stop = begin + rng.integers(1, 4, size=n)
    mass = rng.random(n) ** 2
    chosen, f1 = best_spans(item, begin, stop, mass)
    keys = [
        (int(i), int(a), int(b), k)
        for k, (i, a, b) in enumerate(zip(item, begin, stop, strict=True))
    ]

    def value(which):
        return 2 * sum(mass[k] for *_, k in which) / (len(which) + mass.sum())

    best = max(value(which) for which in schedules(keys))
    assert f1 == pytest.approx(best, abs=1e-9)
    picked = [key for key, one in zip(keys, chosen, strict=True) if one]
    assert sorted(picked) in [sorted(which) for which in schedules(keys)]
    assert value(picked) == pytest.approx(best, abs=1e-9)


def test_no_spans_to_choose_from_are_no_spans():
    empty = np.zeros(0, np.int64)
    chosen, f1 = best_spans(empty, empty, empty, np.zeros(0))
    assert len(chosen) == 0
    assert f1 == 0
