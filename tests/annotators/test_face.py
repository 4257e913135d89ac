"""The face of annotators: entries of a plan, prices, answers and their hard labels."""

from __future__ import annotations

import pytest

from goldspan.annotators import (
    AnnotationTask,
    Estimate,
    ItemAnswer,
    SoftSpan,
    open_annotator,
    read_worker,
)
from goldspan.annotators.base import Tariff, Usage, answer_of_tags
from goldspan.errors import InputError, UnknownNameError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec

NAMES = Codec.from_types(["LOC", "PER"])
LABELS = Codec.from_types(["no", "yes"], "PLAIN")
NOTHING = {"kind": "python", "call": "goldspan.annotators.python:nothing"}
ITEM = PoolItem("s1", ("Ann", "met", "Bob", "Ray"))


def test_an_entry_is_read_with_what_its_kind_takes():
    entry = read_worker(
        {**NOTHING, "id": "rules", "family": "f", "limit": 5, "prices": {"per_answer": 0.01}}
    )
    assert (entry.id, entry.kind, entry.family, entry.limit) == ("rules", "python", "f", 5)
    assert entry.tariff == Tariff(answer_micro=10_000)
    assert entry.options == {"call": "goldspan.annotators.python:nothing"}


def test_people_are_read_and_not_called():
    entry = read_worker({"kind": "people", "id": "experts", "prices": {"per_answer": "0.50"}})
    assert entry.tariff.answer_micro == 500_000
    with pytest.raises(InputError, match="they are asked by a campaign"):
        open_annotator(entry, AnnotationTask(NAMES))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "oracle"}, "unknown kind of worker 'oracle': choose from llm, python, tagger"),
        ({"kind": "python"}, "worker python: kind 'python' needs call"),
        ({**NOTHING, "calls": "x"}, "worker python: unknown key of kind 'python' 'calls'"),
        ({**NOTHING, "batch": 0}, "batch must be a whole number of at least 1"),
        ({**NOTHING, "id": ""}, "the id of a worker must be a name"),
        ({**NOTHING, "family": 3}, "family must be a name, not 3"),
        ({**NOTHING, "limit": -1}, "limit must be a number of answers, not -1"),
        ({**NOTHING, "limit": True}, "limit must be a number of answers, not True"),
        ({**NOTHING, "prices": {"per_call": 1}}, "worker python: unknown price 'per_call'"),
        ({**NOTHING, "prices": {"per_answer": "dear"}}, "prices.per_answer must be a number"),
        ({**NOTHING, "prices": {"per_thousand_input": "x"}}, "prices.per_thousand_input"),
        ({**NOTHING, "prices": 3}, "prices must be a table"),
        ({"kind": "tagger", "model": "m", "library": "nltk"}, "unknown value of library"),
    ],
)
def test_a_faulty_entry_is_named_with_what_is_allowed(given, message):
    with pytest.raises(InputError) as caught:
        read_worker(given)
    assert message in str(caught.value)


def test_an_unknown_kind_names_all_kinds():
    with pytest.raises(UnknownNameError, match="people, files"):
        read_worker({"kind": "people "})


def test_prices_are_whole_numbers_and_parts_are_rounded_up_once():
    tariff = Tariff.read(
        {
            "per_answer": "0.01",
            "per_token": 0.001,
            "per_thousand_input": 0.000_037_5,
            "per_thousand_output": 0.0006,
        }
    )
    assert tariff == Tariff(10_000, 1000, 37_500, 600_000)
    # 1000 * 0.0375 + 10 * 0.6 = 43.5 millionths
    assert tariff.cost(4, Usage(1, 1000, 10)) == 10_000 + 4000 + 44
    assert tariff.cost(4, Usage(1, 1000, 10), answered=False) == 44
    assert tariff.cost(4) == 14_000


def test_usage_adds_up():
    assert Usage(1, 10, 2) + Usage(2, 5, 1, assumed=1) == Usage(3, 15, 3, 1)


def test_hard_labels_leave_out_what_is_less_likely_than_not_and_what_overlaps():
    spans = (
        SoftSpan("PER", 0, 1, 0.5),
        SoftSpan("LOC", 2, 3, 0.6),
        SoftSpan("PER", 2, 4, 0.7),
        SoftSpan("LOC", 1, 2, 0.4),
    )
    answer = ItemAnswer("s1", spans=spans)
    assert answer.labels(NAMES, 4) == ["B-PER", "O", "B-PER", "I-PER"]
    assert answer.labels(Codec.from_types(["LOC", "PER"], "IOBES"), 4) == [
        "S-PER", "O", "B-PER", "E-PER",
    ]  # fmt: skip


def test_nothing_marked_is_an_answer_and_a_missing_one_is_none():
    assert ItemAnswer("s1", spans=()).labels(NAMES, 2) == ["O", "O"]
    assert ItemAnswer("s1", missing="refused").labels(NAMES, 2) is None


def test_of_single_labels_the_likeliest_counts_and_of_equals_the_first():
    assert ItemAnswer("s1", classes={"yes": 0.6, "no": 0.4}).labels(LABELS, 1) == ["yes"]
    assert ItemAnswer("s1", classes={"yes": 0.5, "no": 0.5}).labels(LABELS, 1) == ["no"]


def test_tags_that_were_given_stay_as_they_are():
    answer = answer_of_tags(ITEM, ["I-PER", None, "B-LOC", "I-LOC"], NAMES)
    assert answer.labels(NAMES, 4) == ["I-PER", None, "B-LOC", "I-LOC"]
    assert answer.spans == (SoftSpan("PER", 0, 1), SoftSpan("LOC", 2, 4))
    single = answer_of_tags(PoolItem("1", ("x",)), ["yes"], LABELS)
    assert (single.classes, single.labels(LABELS, 1)) == ({"yes": 1.0}, ["yes"])
    assert answer_of_tags(PoolItem("1", ("x",)), [None], LABELS).missing


def test_by_default_an_estimate_is_what_the_answers_cost():
    entry = {**NOTHING, "prices": {"per_answer": 0.01, "per_token": 0.001}}
    task = AnnotationTask(NAMES, allow_code=("goldspan.annotators.python",))
    with open_annotator(entry, task) as annotator:
        assert annotator.estimate([ITEM, ITEM]) == Estimate(
            2, expected_micro=28_000, most_micro=28_000
        )
        assert [answer.cost for answer in annotator.label([ITEM, ITEM])] == [14_000, 14_000]
        assert (annotator.id, annotator.family, annotator.facts()) == ("python", "", {})
