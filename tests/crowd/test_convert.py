"""A crowd in another encoding: sequence by sequence the same as converting plain tags."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd_strategies import crowds
from crowd_tables import assert_same, crowd_of
from goldspan.crowd import convert_crowd, read_crowd
from goldspan.crowd.io import all_faults, encoding_faults
from goldspan.errors import FaultsError, FormatError, InputError, UnknownNameError
from goldspan.spans import convert, parse, validate

SPANS = ("BIO", "IOB", "IOBES", "BILOU", "BMEWO")


def sequences(crowd):
    """Return gold and every answer as runs of tags without gaps, by place."""
    found, words = {}, crowd.tagset.tags
    answers, rows = crowd.answers, []
    if crowd.gold is not None:
        bounds = pairwise(crowd.offsets.tolist())
        rows = [((a, "gold"), crowd.gold[a:b]) for a, b in bounds]
    bounds = enumerate(pairwise(answers.offset.tolist()))
    rows += [((n, "answer"), answers.codes[a:b]) for n, (a, b) in bounds]
    for place, codes in rows:
        run = []
        for token, code in enumerate([*codes.tolist(), -1]):
            if code >= 0:
                run.append(words[code])
            elif run:
                found[*place, token - len(run)] = run
                run = []
    return found


@given(crowds(encodings=SPANS, odd=False), st.sampled_from(SPANS))
def test_every_sequence_is_converted_and_gaps_stay(crowd, target):
    found = convert_crowd(crowd, target)
    source = crowd.tagset.encoding
    assert found.tagset.encoding == target
    assert sequences(found) == {
        place: list(convert(run, source, target)) for place, run in sequences(crowd).items()
    }


@given(crowds(encodings=SPANS, odd=False), st.sampled_from(SPANS))
def test_there_and_back_is_the_same_crowd(crowd, target):
    assert_same(convert_crowd(convert_crowd(crowd, target), crowd.tagset.encoding), crowd)


@given(crowds(encodings=SPANS), st.sampled_from(SPANS), st.sampled_from(["conlleval", "strict"]))
def test_malformed_tags_are_read_by_the_policy(crowd, target, policy):
    found = convert_crowd(crowd, target, policy)
    rows, before = sequences(found), sequences(crowd)
    assert rows.keys() == before.keys()
    for place, run in before.items():
        assert not validate(rows[place], target)
        assert parse(rows[place], target) == parse(run, crowd.tagset.encoding, policy)


def test_malformed_tags_are_refused_with_file_item_token_and_worker():
    crowd = crowd_of([{"w": ["O", "I-X"]}], gold=[["I-X", "O"]])
    with pytest.raises(FaultsError) as caught:
        convert_crowd(crowd, "IOBES")
    places = [(f.item, f.token, f.worker) for f in caught.value.faults]
    assert places == [("s0", 0, "gold"), ("s0", 1, "w")]
    assert str(caught.value).startswith("2 tags break the rules of BIO")


@given(crowds(encodings=SPANS))
def test_the_faults_are_those_of_every_sequence(crowd):
    wanted = sum(len(validate(run, crowd.tagset.encoding)) for run in sequences(crowd).values())
    assert len(encoding_faults(crowd)) == wanted


def test_plain_labels_are_refused():
    crowd = crowd_of([{"w": ["a"]}], encoding="PLAIN")
    with pytest.raises(InputError, match="PLAIN labels hold no spans"):
        convert_crowd(crowd, "BIO")
    with pytest.raises(InputError, match="PLAIN labels hold no spans"):
        convert_crowd(crowd_of([{"w": ["O"]}]), "PLAIN")


def test_unknown_names_are_refused():
    crowd = crowd_of([{"w": ["B-X"]}])
    with pytest.raises(UnknownNameError, match="unknown encoding 'BIOX'"):
        convert_crowd(crowd, "BIOX")
    with pytest.raises(UnknownNameError, match="unknown policy 'perl'"):
        convert_crowd(crowd, "IOBES", policy="perl")


WIDE = b"token\tgold\tann\tbob\na\tB-X\tI-X\tQ-X\nb\tX\tB-X\tI-X\n"
LONG = b"""item,worker,position,token,label,gold
1,ann,0,a,I-X,B-X
1,bob,0,a,Q-X,B-X
1,ann,1,b,B-X,X
1,bob,1,b,I-X,X
"""


@pytest.mark.parametrize("data", [WIDE, LONG])
def test_unknown_tags_and_broken_rules_are_listed_together_and_counted_as_outside(data):
    crowd = read_crowd(data, encoding="BIO", unknown="outside")
    assert crowd.answers_of("1") == {"ann": ["I-X", "B-X"], "bob": ["O", "I-X"]}
    assert crowd.tagged_by_id() == {"1": ["B-X", "O"]}
    assert crowd.import_report.adds_up
    found = [(fault.worker, fault.kind) for fault in all_faults(crowd)]
    assert sorted(found) == [
        ("ann", "no-begin"),
        ("bob", "no-begin"),
        ("bob", "unknown-label"),
        ("gold", "unknown-label"),
    ]
    with pytest.raises(FormatError, match="'Q-X' is not in BIO"):
        read_crowd(data, encoding="BIO", unknown="outside", strict=True)


def test_all_faults_stand_in_the_order_of_a_wide_table():
    crowd = read_crowd(WIDE, encoding="BIO", unknown="outside")
    found = [(fault.token, fault.worker) for fault in all_faults(crowd)]
    assert found == [(0, "ann"), (0, "bob"), (1, "gold"), (1, "bob")]


def test_an_unknown_rule_for_unknown_tags_is_refused():
    with pytest.raises(UnknownNameError, match="'drop': choose from raise, outside"):
        read_crowd(WIDE, unknown="drop")


def test_every_place_of_an_unknown_tag_is_listed():
    data = b"token\tann\n" + b"a\tB-X\nb\tQ-X\n" * 150
    assert len(all_faults(read_crowd(data, encoding="BIO", unknown="outside"))) == 150
