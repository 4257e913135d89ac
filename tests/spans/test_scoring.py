"""Exact scores, their interval and the list of wrong spans, against sets counted by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import FaultsError, InputError, UnknownNameError
from goldspan.spans import Codec, Tagged, score
from goldspan.spans.corpus import POLICIES
from goldspan.spans.scoring import Rates, Score, WrongSpan, score_codes
from looping import each
from spans import oracle

TRUTH = [["B-PER", "I-PER", "O", "B-LOC"], [], ["B-LOC", "O"], ["O", "O", "B-ORG"]]
FOUND = [["B-PER", "I-PER", "O", "B-PER"], [], ["B-LOC", "O"], ["B-ORG", "O", "O"]]

every_encoding = pytest.mark.parametrize("encoding", oracle.ENCODINGS)
every_policy = each("policy", oracle.POLICIES)


@st.composite
def corpora(draw, encoding, *, gaps=False, max_items=5):
    """Draw two sides of a corpus, tags legal or not."""
    tags = [*oracle.alphabet(encoding), *([None] if gaps else [])]
    lengths = draw(st.lists(st.integers(0, 5), max_size=max_items))
    rows = [st.lists(st.sampled_from(tags), min_size=n, max_size=n) for n in lengths]
    return draw(st.tuples(*rows)), draw(st.tuples(*rows))


def _random_corpus(seed, n_items=30, rate=0.3):
    """Make a truth and a prediction that errs at random."""
    rng = np.random.default_rng(seed)
    tags = np.array(["O", "O", "B-X", "I-X", "B-Y"])
    truth = [rng.choice(tags, size=rng.integers(0, 7)).tolist() for _ in range(n_items)]
    found = [[t if rng.random() > rate else str(rng.choice(tags)) for t in row] for row in truth]
    return truth, found


def _sets(side, encoding, policy):
    """Return the spans of a side as a set of (item, type, start, end); a gap cuts the item."""
    return {
        (n, kind, start + first, end + first)
        for n, tags in enumerate(side)
        for first, piece in oracle.split_at_gaps(list(tags))
        for kind, start, end in oracle.READINGS[policy](piece, encoding)
    }


def _rates(gold, found):
    right = len(gold & found)
    precision = right / len(found) if found else 0.0
    recall = right / len(gold) if gold else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


# Counts and rates


@every_encoding
@given(data=st.data(), policy=st.sampled_from(oracle.POLICIES))
def test_scores_equal_the_comparison_of_two_sets_of_spans(encoding, data, policy):
    truth, predicted = data.draw(corpora(encoding, gaps=True))
    result = score(truth, predicted, encoding=encoding, policy=policy, wrong=True)
    gold, found = _sets(truth, encoding, policy), _sets(predicted, encoding, policy)
    assert result.micro[:3] == pytest.approx(_rates(gold, found))
    assert result.micro[3:] == (len(gold & found), len(found), len(gold))
    kinds = {span[1] for span in gold | found}
    per_type = {
        kind: _rates({s for s in gold if s[1] == kind}, {s for s in found if s[1] == kind})
        for kind in kinds
    }
    assert {kind for kind, r in result.types.items() if r.n_true + r.n_predicted} == kinds
    for kind, rates in per_type.items():
        assert result.types[kind][:3] == pytest.approx(rates)
    means = np.mean(list(per_type.values()), axis=0) if kinds else np.zeros(3)
    assert result.macro == pytest.approx(tuple(means))
    sides = {"missed": gold - found, "spurious": found - gold}
    expected = {(n, side, *span) for side, spans in sides.items() for n, *span in spans}
    assert set(result.wrong) == expected
    assert len(result.wrong) == len(expected)


@given(data=st.data())
def test_accuracy_is_the_share_of_equal_tags_among_tokens_that_have_both(data):
    truth, predicted = data.draw(corpora("BIO", gaps=True))
    pairs = [(a, b) for left, right in zip(truth, predicted, strict=True)
             for a, b in zip(left, right, strict=True) if a and b]  # fmt: skip
    result = score(truth, predicted)
    assert result.n_tokens == len(pairs)
    assert result.accuracy == (sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0)
    assert result.n_items == len(truth)


def test_the_scores_of_a_small_corpus_are_those_counted_by_hand():
    result = score(TRUTH, FOUND)
    assert result.micro == Rates(0.5, 0.5, 0.5, 2, 4, 4)
    assert (result.precision, result.recall, result.f1) == (0.5, 0.5, 0.5)
    assert result.types["PER"] == Rates(0.5, 1.0, pytest.approx(2 / 3), 1, 2, 1)
    assert result.types["LOC"] == Rates(1.0, 0.5, pytest.approx(2 / 3), 1, 1, 2)
    assert result.types["ORG"] == Rates(0.0, 0.0, 0.0, 0, 1, 1)
    assert result.macro == pytest.approx((0.5, 0.5, 4 / 9))
    assert result.accuracy == 6 / 9
    assert (result.n_items, result.n_tokens) == (4, 9)


@each("corpus", [[], [[]], [["O"]], [["O", "O"], [], ["O"]]])
def test_a_corpus_without_spans_scores_zero_and_warns_of_nothing(corpus):
    result = score(corpus, corpus, bootstrap=100, wrong=True)
    assert result.micro == Rates(0.0, 0.0, 0.0, 0, 0, 0)
    assert result.macro == (0.0, 0.0, 0.0)
    assert result.types == {}
    assert result.wrong == ()
    assert result.interval == (0.0, 0.0)
    assert str(result)


# Policy and encoding


def test_the_policy_decides_what_a_malformed_prediction_is_worth():
    truth, found = [["O", "B-X", "I-X"]], [["O", "I-X", "I-X"]]
    assert score(truth, found).f1 == 1.0
    assert score(truth, found, policy="strict").f1 == 0.0
    assert score(truth, found, policy="boundaries").f1 == 0.0
    with pytest.raises(FaultsError, match="follows O"):
        score(truth, found, policy="raise")


@each("policy", POLICIES)
@every_encoding
def test_policy_and_encoding_are_in_the_result_and_in_every_printout(encoding, policy):
    corpus = [oracle.alphabet(encoding)[:1] * 2]
    result = score(corpus, corpus, encoding=encoding.lower(), policy=policy)
    assert (result.policy, result.encoding) == (policy, encoding)
    assert (result.to_dict()["policy"], result.to_dict()["encoding"]) == (policy, encoding)
    for printout in (str(result), repr(result)):
        assert policy in printout
        assert encoding in printout


def test_unknown_policies_and_encodings_are_refused_with_all_names():
    with pytest.raises(UnknownNameError, match="conlleval, strict, boundaries, raise"):
        score([["O"]], [["O"]], policy="perl")
    with pytest.raises(UnknownNameError, match="IOB, BIO, IOBES, BILOU, BMEWO, PLAIN"):
        score([["O"]], [["O"]], encoding="BMES")


# Printing


def test_the_printout_is_a_table_in_per_cent():
    lines = str(score(TRUTH, FOUND)).splitlines()
    assert lines[0] == "4 items, encoding BIO, malformed tags read by policy conlleval"
    assert lines[1].split() == ["precision", "recall", "F1", "true", "found"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:7]}
    assert rows["PER"] == ["50.00", "100.00", "66.67", "1", "2"]
    assert rows["micro"] == ["50.00", "50.00", "50.00", "4", "4"]
    assert rows["macro"] == ["50.00", "50.00", "44.44"]
    assert [line.split()[0] for line in lines[8:12]] == ["strict", "exact", "partial", "type"]
    assert lines[-1] == "token accuracy 66.67 over 9 tokens"


@each(("level", "told"), [(0.95, "95 %"), (0.9, "90 %"), (0.995, "99.5 %")])
def test_the_printout_names_the_level_of_the_interval(level, told):
    result = score(TRUTH, FOUND, bootstrap=100, level=level)
    low, high = result.interval
    line = f"F1 {told} interval by item: {100 * low:.2f} to {100 * high:.2f}"
    assert str(result).splitlines()[-1] == line
    assert result.to_dict()["level"] == level


def test_to_dict_is_json():
    result = score(TRUTH, FOUND, bootstrap=100, wrong=True)
    again = json.loads(json.dumps(result.to_dict()))
    assert again["micro"] == result.micro._asdict()
    assert again["macro"]["f1"] == result.macro[2]
    assert again["types"]["PER"]["n_predicted"] == 2
    assert again["schemes"]["partial"]["correct"] == 3
    assert again["interval"] == list(result.interval)
    assert again["wrong"][0] == result.wrong[0]._asdict()


# Wrong spans


def test_wrong_spans_are_listed_by_place_with_their_side():
    assert score(TRUTH, FOUND, wrong=True).wrong == (
        WrongSpan(0, "missed", "LOC", 3, 4),
        WrongSpan(0, "spurious", "PER", 3, 4),
        WrongSpan(3, "spurious", "ORG", 0, 1),
        WrongSpan(3, "missed", "ORG", 2, 3),
    )


# The bootstrap


def _resampled(truth, found, n_resamples, level, seed):
    """Draw items, score the drawn corpus anew, and take percentiles."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_resamples):
        drawn = rng.integers(len(truth), size=len(truth))
        values.append(score([truth[i] for i in drawn], [found[i] for i in drawn]).f1)
    return tuple(np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))


@each("seed", [0, 7])
@each("level", [0.5, 0.95])
def test_the_interval_is_that_of_scoring_drawn_items_anew(seed, level):
    truth, found = _random_corpus(seed)
    result = score(truth, found, bootstrap=100, level=level, random_state=seed)
    assert result.interval == pytest.approx(_resampled(truth, found, 100, level, seed))


def test_a_generator_serves_as_random_state():
    sides = _random_corpus(1)
    first = score(*sides, bootstrap=100, random_state=5).interval
    generator = np.random.default_rng(5)
    assert score(*sides, bootstrap=100, random_state=generator).interval == first
    assert score(*sides, bootstrap=100, random_state=generator).interval != first


@each("level", [0, 1, -0.5, 95, float("nan")])
def test_a_level_that_is_no_share_is_refused(level):
    with pytest.raises(InputError, match="between 0 and 1"):
        score(TRUTH, FOUND, bootstrap=100, level=level)


@each("few", [-1, 1, 99])
def test_too_few_resamples_are_refused(few):
    with pytest.raises(InputError, match=f"bootstrap must be 0 or at least 100, not {few}"):
        score(TRUTH, FOUND, bootstrap=few)


# What is refused


@each(
    ("truth", "found", "why"),
    [
        ([["O"]], [["O"], ["O"]], "1 items on one side, 2"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "item 1: 2 tags on one side, 1"),
        (["O", "B-X"], ["O", "B-X"], "one list per item"),
        ([["O"]], ["O"], "one list per item"),
        ("O", [["O"]], "one list per item"),
    ],
)
def test_sides_that_do_not_fit_are_refused(truth, found, why):
    with pytest.raises(InputError, match=why):
        score(truth, found)


@each("tag", ["junk", "b-X", "B", "E-X"])
@each("policy", POLICIES)
def test_a_string_that_is_no_tag_is_refused_on_either_side(tag, policy):
    for sides in ([["O"]], [[tag]]), ([[tag]], [["O"]]):
        with pytest.raises(FaultsError, match=repr(tag)):
            score(*sides, policy=policy)


# Codes


def test_score_codes_does_what_score_does():
    codec = Codec.from_types(["PER", "LOC", "ORG"], "BIO")
    options = {"policy": "strict", "bootstrap": 100, "level": 0.8, "random_state": 4, "wrong": True}
    by_codes = score_codes(codec.encode(TRUTH), codec.encode(FOUND), codec, **options)
    assert isinstance(by_codes, Score)
    assert by_codes == score(TRUTH, FOUND, **options)


def test_codes_of_different_items_are_refused():
    codec = Codec.from_types(["X"], "BIO")
    codes = np.array([1, 2, 2], np.int16)
    sides = (Tagged(codes, np.array([0, 1, 3])), Tagged(codes, np.array([0, 2, 3])))
    with pytest.raises(InputError, match="offsets differ"):
        score_codes(*sides, codec)


def test_codes_of_different_lengths_are_refused():
    codec = Codec.from_types(["X"], "BIO")
    with pytest.raises(InputError, match="2 tokens on one side, 1"):
        score_codes(codec.encode([["O", "O"]]), codec.encode([["O"]]), codec)


# Rates
