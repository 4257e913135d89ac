"""Building a crowd piece by piece: all faults at once, each with its place; and the report."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd import CrowdBuilder, ReadOptions
from goldspan.crowd.model import ANSWER_COLUMNS
from goldspan.crowd.source import ImportReport
from goldspan.errors import Fault, FormatError, InputError


def refused(builder, **options):
    with pytest.raises(FormatError) as caught:
        builder.build(**options)
    return caught.value


def one(**options):
    builder = CrowdBuilder(ReadOptions(**options), "answers.x", "x")
    return builder, builder.add_item("s1", ["Ann", "sang"], gold=["B-PER", None], line=3)


@st.composite
def parts(draw):
    """Items with gold and answers as plain lists."""
    tags = st.sampled_from(["O", "B-X", "I-X", "B-Y", None])
    items = []
    for n in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 4))
        row = st.lists(tags, min_size=size, max_size=size)
        answers = draw(st.lists(st.tuples(st.sampled_from("uvw"), row), max_size=5))
        items.append((f"s{n}", draw(st.none() | row), answers))
    return items


@given(parts())
def test_what_was_put_in_is_in_the_crowd(items):
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    for name, gold, answers in items:
        size = len(gold or (answers[0][1] if answers else "x"))
        rows = [(who, tags) for who, tags in answers if len(tags) == size]
        place = builder.add_item(name, ["t"] * size, gold=gold)
        assert builder.id_of(place) == name
        assert builder.item_place(name) == place
        for who, tags in rows:
            builder.add_answer(place, who, tags)
    crowd = builder.build()
    assert (crowd.gold is not None) == any(gold is not None for _, gold, _ in items)
    for name, gold, answers in items:
        last = {who: list(tags) for who, tags in answers}
        assert crowd.answers_of(name) == last
        if crowd.gold is not None:
            size = len(crowd.tagged_by_id()[name])
            wanted = list(gold or [None] * size)
            assert crowd.tagged_by_id()[name] == wanted
    repeats = Counter((name, who) for name, _, answers in items for who, _ in answers)
    notes = crowd.import_report.notes
    assert len(crowd.answers) == sum(repeats.values())
    extra = sum(n - 1 for n in repeats.values())
    said = f"{extra} repeated answers: all kept, the last one counts"
    assert notes == ((said,) if extra else ())


def test_all_faults_are_raised_at_once_each_with_its_place():
    builder, item = one(encoding="BIO")
    builder.add_item("s1", ["x"], line=7)
    builder.add_item("s2", [], line=8)
    builder.add_item("s3", ["x"], gold=["O", "O"], line=9)
    builder.add_answer(item, "w", ["O"], line=10)
    builder.add_answer(item, "w", ["O", "Q-X"], line=11)
    builder.add_answer(item, "v", ["Q-X", "O"], token_lines=[12, 13], file="other.x")
    assert str(refused(builder)).splitlines() == [
        "answers.x line 7, item s1: the item id appears twice",
        "answers.x line 8, item s2: an item without tokens: leave it out, or give it a text",
        "answers.x line 9, item s3: 2 gold tags for 1 tokens",
        "answers.x line 10, item s1, worker w: 1 labels for 2 tokens",
        *(
            f"{place}: tag 'Q-X' is not in BIO: allowed are B-TYPE, I-TYPE and O; to rename or "
            "drop it, pass labels={…} (--label OLD=NEW, or --label OLD= to drop)"
            for place in (
                "answers.x line 11, item s1 token 1, worker w",
                "other.x line 12, item s1 token 0, worker v",
            )
        ),
    ]


def test_of_every_token_the_start_is_given_and_fits():
    builder = CrowdBuilder(source="a.x")
    builder.add_item("s1", ["x", "y"], token_start=[0], line=1)
    builder.add_item("s2", ["x", "y"], token_start=[-1, 2**31], line=2)
    rule = "token_start must be a number from 0 to 2147483647"
    assert str(refused(builder)).splitlines() == [
        "a.x line 1, item s1: token_start has 1 numbers for 2 tokens: give one per token",
        f"a.x line 2, item s2 token 0: {rule}, not -1",
        f"a.x line 2, item s2 token 1: {rule}, not 2147483648",
    ]


def test_an_empty_token_is_refused():
    builder = CrowdBuilder(source="a.x")
    builder.add_item("s1", ["x", "", "z"], line=1)
    message = "the token is empty: a token has one character at least; leave it out"
    assert str(refused(builder)) == f"a.x line 1, item s1 token 1: {message}"


def test_half_a_character_is_refused_wherever_it_stands():
    builder = CrowdBuilder(source="a.x")
    item = builder.add_item("s1", ["x", "y\ud83d"], text="x \udc00", group="\ud800", line=1)
    builder.add_item("\ud800", ["x"], line=2)
    builder.add_answer(item, "w\udfff", ["O", "O"], line=3)
    tail = "holds half of a surrogate pair, which no file can hold: it was cut within a character"
    assert [fault.message for fault in refused(builder).faults] == [
        f"the group '\\ud800' {tail}",
        f"the text 'x \\udc00' {tail}",
        f"the token 'y\\ud83d' {tail}",
        f"the item id '\\ud800' {tail}",
        f"the worker id 'w\\udfff' {tail}",
    ]


def test_half_a_character_in_an_attribute_is_refused():
    builder = CrowdBuilder(source="a.x")
    builder.add_item("s1", ["x"], attributes={"n": "\ud83d"})
    with pytest.raises(InputError, match=r"a\.x: an item attribute '\\ud83d' holds half of"):
        builder.build()


@pytest.mark.parametrize("name", ["attempt", *ANSWER_COLUMNS])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70])
def test_a_number_that_does_not_fit_is_refused(name, value):
    builder, item = one()
    builder.add_answer(item, "w", ["O", "O"], line=5, **{name: value})
    message = str(refused(builder))
    assert message.startswith(f"answers.x line 5, item s1, worker w: {name} (")
    assert message.endswith(f"from {-(2**63)} to {2**63 - 1}, not {value}")


def test_of_a_label_that_stands_often_a_hundred_places_are_listed():
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    for n in range(103):
        builder.add_item(f"s{n}", ["x"], gold=["Q-X"])
    faults = refused(builder).faults
    assert len(faults) == 101
    assert str(faults[-1]).endswith("(and 3 more times)")


def test_nothing_is_refused():
    assert (
        str(refused(CrowdBuilder(source="a.x")))
        == "a.x: the file holds no item: is the path right?"
    )


def test_attempts_can_be_given_and_must_be_different_and_small():
    builder, item = one(encoding="BIO")
    for attempt in (3, 3, -1, 40_000):
        builder.add_answer(item, "w", ["O", "O"], attempt=attempt, line=5)
    assert [fault.message for fault in refused(builder).faults] == [
        "attempt 3 appears twice: give repeated answers different numbers",
        "attempt must be a number from 0 to 32767, not -1",
        "attempt must be a number from 0 to 32767, not 40000",
    ]


@pytest.mark.parametrize(("rule", "wanted"), [("last", ["B-X", "O"]), ("first", ["O", "O"])])
@pytest.mark.parametrize("numbers", [(None, None), (4, 9)])
def test_the_rule_for_repeats_holds_for_numbered_attempts_too(rule, wanted, numbers):
    builder, item = one(encoding="BIO", repeated=rule)
    for tags, attempt in zip((["O", "O"], ["B-X", "O"]), numbers, strict=True):
        builder.add_answer(item, "w", tags, attempt=attempt)
    crowd = builder.build()
    assert crowd.answers_of("s1") == {"w": wanted}
    assert f"the {rule} one counts" in crowd.import_report.notes[0]


def test_optional_columns_are_there_if_one_answer_has_them():
    builder, item = one()
    builder.add_answer(item, "v", ["O", "O"], started=5)
    builder.add_answer(item, "w", ["O", "O"], cost=7)
    answers = builder.build().answers
    assert answers.started.tolist() == [5, -1]
    assert answers.cost.tolist() == [-1, 7]
    assert answers.submitted is None


def test_optional_columns_of_items():
    builder = CrowdBuilder()
    builder.add_item(
        "a", ["x", "y"], group="d", text="x y", token_start=[0, 2], attributes={"n": 1}
    )
    builder.add_item("b", ["z"], token_start=[0])
    crowd = builder.build()
    assert crowd.groups.to_pylist() == ["d", None]
    assert crowd.texts.to_pylist() == ["x y", None]
    assert crowd.token_start.tolist() == [0, 2, 0]
    assert crowd.attributes.to_pydict() == {"n": [1, None]}
    assert crowd.gold is None


@pytest.mark.parametrize("values", [(1, "x"), (2**70, 1)])
def test_attributes_that_arrow_cannot_hold_are_refused(values):
    builder = CrowdBuilder(source="a.x")
    for n, value in enumerate(values):
        builder.add_item(f"s{n}", ["x"], attributes={"n": value})
    with pytest.raises(InputError, match=r"a\.x: a column of item attributes mixes types"):
        builder.build()


def test_strict_refuses_what_is_only_a_warning():
    for strict in (False, True):
        builder, item = one(strict=strict)
        builder.add_answer(item, "w", ["O", "O"])
        builder.warnings.append(Fault("odd", "answers.x", 4, kind="odd"))
        if strict:
            assert str(refused(builder)) == "answers.x line 4: odd"
        else:
            assert builder.build().import_report.kinds == {"odd": 1}


def test_single_labels_are_plain():
    builder = CrowdBuilder()
    builder.add_answer(builder.add_item("a", ["a"]), "w", ["B-X"])
    assert builder.build(single=True).tagset.tags == ("B-X",)


# The report


def test_a_report_adds_up_and_prints_itself():
    faults = (
        Fault("m", "f", 1, kind="cut"),
        Fault("m", "f", 2, kind="cut"),
        Fault("m", kind="odd"),
    )
    report = ImportReport("f.x", "x", 10, 7, {"lost": 2, "gone": 1}, faults, ("a note",))
    assert report.adds_up
    assert not ImportReport("f.x", "x", 10, 7, {"lost": 2}).adds_up
    assert report.kinds == {"cut": 2, "odd": 1}
    assert str(report).splitlines() == [
        "f.x: read as format x",
        "  a note",
        "  10 labels, 7 of them placed on tokens",
        "  2 not placed: lost",
        "  1 not placed: gone",
        "  2 faults of kind cut, the first: f line 1: m",
        "  1 fault of kind odd, the first: m",
    ]
    told = report.to_dict(max_faults=1)
    assert told["not_placed"] == {"lost": 2, "gone": 1}
    assert told["faults"] == ["f line 1: m"]
    assert told["adds_up"] is True


def test_the_reasons_of_a_reader_are_part_of_the_report():
    builder, item = one()
    builder.add_answer(item, "w", ["B-PER", None])
    builder.reasons["thrown away"] = 4
    report = builder.build().import_report
    assert (report.n_labels, report.n_placed, report.adds_up) == (5, 1, True)
