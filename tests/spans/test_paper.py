"""Lester 2020 (iobes): its table, its figures and its examples."""

from __future__ import annotations

import pytest

from goldspan.errors import FaultsError
from goldspan.spans import (
    Span,
    convert,
    parse,
    score,
    validate,
)
from goldspan.spans.codec import transition_mask
from goldspan.spans.parsing import parse_with_errors

# Table 1: to First National Bank
GOLD = ["O", "B-ORG", "I-ORG", "E-ORG"]
PREDICTED = ["O", "B-ORG", "I-MISC", "E-ORG"]


def test_in_table_1_the_gold_is_one_organisation_at_1_to_3_under_every_policy():
    for policy in ("conlleval", "strict", "boundaries", "raise"):
        assert parse(GOLD, "IOBES", policy) == [("ORG", 1, 4)]


def test_in_table_1_conlleval_finds_three_entities():
    found = parse(PREDICTED, "IOBES", "conlleval")
    assert found == [("ORG", 1, 2), ("MISC", 2, 3), ("ORG", 3, 4)]


def test_in_table_1_boundaries_find_the_organisation_as_ncrfpp_does():
    assert parse(PREDICTED, "IOBES", "boundaries") == [("ORG", 1, 4)]


def test_in_table_1_nothing_is_well_formed():
    assert parse(PREDICTED, "IOBES", "strict") == []


def test_in_table_1_raise_tells_both_changes_of_type():
    with pytest.raises(FaultsError) as caught:
        parse(PREDICTED, "IOBES", "raise")
    told = [(fault.token, fault.kind) for fault in caught.value.faults]
    assert told == [(2, "type-change"), (3, "type-change")]


@pytest.mark.parametrize(
    ("policy", "counts"),
    [("conlleval", (0, 3, 1)), ("strict", (0, 0, 1)), ("boundaries", (1, 1, 1))],
)
def test_table_1_renders_results_incomparable(policy, counts):
    result = score([GOLD], [PREDICTED], encoding="IOBES", policy=policy)
    assert result.micro[3:] == counts
    assert result.policy == policy


def test_figure_1_end_is_one_more_than_the_last_token():
    span = parse(GOLD, "IOBES")[0]
    words = ["to", "First", "National", "Bank"]
    assert words[span.start : span.end] == ["First", "National", "Bank"]
    assert tuple(span.tokens) == (1, 2, 3)


def test_section_2_real_madrid_in_every_format():
    assert convert(["I-ORG", "I-ORG"], "IOB", "BIO") == ["B-ORG", "I-ORG"]
    assert convert(["I-ORG", "I-ORG"], "IOB", "IOBES") == ["B-ORG", "E-ORG"]
    assert convert(["I-ORG", "I-ORG"], "IOB", "BILOU") == ["B-ORG", "L-ORG"]
    assert convert(["I-ORG", "I-ORG"], "IOB", "BMEWO") == ["B-ORG", "E-ORG"]


def test_section_2_in_iob_the_begin_tag_depends_on_the_span_before():
    tags = ["B-ORG", "B-ORG", "I-ORG", "B-LOC"]
    assert convert(tags, "BIO", "IOB") == ["I-ORG", "B-ORG", "I-ORG", "I-LOC"]


def test_section_3_1_two_entities_that_touch_stay_two():
    tags = ["I-MISC", "B-MISC", "I-MISC"]
    assert parse(tags, "IOB") == [Span("MISC", 0, 1), Span("MISC", 1, 3)]
    assert convert(tags, "IOB", "IOBES") == ["S-MISC", "B-MISC", "E-MISC"]


def test_section_3_2_a_creative_work_without_its_begin_tag_is_found():
    errors = validate(["O", "I-creative-work", "I-creative-work"], "BIO")
    assert [(e.index, e.kind) for e in errors] == [(1, "no-begin")]


def test_section_3_3_a_person_and_a_location_make_two_spans():
    assert parse(["B-PER", "I-LOC"]) == [("PER", 0, 1), ("LOC", 1, 2)]


def test_section_4_1_common_errors_are_located():
    tags = ["I-PER", "O", "B-PER", "I-LOC", "O", "B-ORG", "I-ORG", "O"]
    told = [(e.index, e.kind) for e in parse_with_errors(tags, "IOBES")[1]]
    assert told == [
        (0, "no-begin"),
        (0, "not-closed"),
        (3, "type-change"),
        (3, "not-closed"),
        (6, "not-closed"),
    ]


def test_section_4_2_malformed_gold_is_not_converted():
    with pytest.raises(FaultsError, match="I-LOC follows B-PER"):
        convert(["B-PER", "I-LOC"], "BIO", "IOBES")


def test_section_4_3_outside_cannot_follow_inside():
    mask = transition_mask(["O", "I-X"], "IOBES")
    assert not mask[1, 0]
