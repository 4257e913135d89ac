"""From label strings to a tag set: renaming, guessing the encoding, refusing mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd_tables import crowd_of
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions, read_crowd
from goldspan.crowd.labels import guess_encoding, joined, read_labels, respelled, settle
from goldspan.crowd.options import ALTERED, MISSING, ROLES, reading_options
from goldspan.errors import FormatError, InputError, UnknownNameError
from goldspan.spans import Codec, Span, write
from goldspan.spans.encoding import ENCODINGS

SPANS = st.lists(
    st.tuples(st.sampled_from(["PER", "LOC", "a-b"]), st.integers(1, 3), st.integers(0, 2)),
    max_size=4,
)


def tags_of(spans, encoding):
    """Write spans (type, length, gap behind) as tags."""
    found, place = [], 0
    for kind, length, gap in spans:
        found.append(Span(kind, place, place + length))
        place += length + gap
    return write(found, place + 1, encoding)


def guessed(rows, gold=None):
    """Return the encoding that a reader finds in rows of tags."""
    builder = CrowdBuilder()
    for n, row in enumerate(rows):
        item = builder.add_item(f"s{n}", ["t"] * len(row), gold=gold[n] if gold else None)
        builder.add_answer(item, "w", row)
    return builder.build().tagset.encoding


@pytest.mark.parametrize("encoding", ["BIO", "IOBES", "BILOU", "BMEWO"])
@given(spans=SPANS)
def test_the_guess_reads_all_tags_and_names_no_other_encoding_if_one_shows(encoding, spans):
    tags = tags_of(spans, encoding)
    found = ENCODINGS[guess_encoding(tags)]
    letters = {tag[0] for tag in tags if tag != "O"}
    assert letters <= found.prefixes.keys()
    fits = [
        e for e in ("BIO", "IOBES", "BILOU", "BMEWO") if letters <= ENCODINGS[e].prefixes.keys()
    ]
    assert found.name == fits[0]
    if encoding not in fits or fits == [encoding]:
        assert found.name == encoding


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        (["O"], "BIO"),
        ([], "BIO"),
        (["NOUN", "O"], "PLAIN"),
        (["pos-neg"], "PLAIN"),
        (["B-X", "E-X", "L-X"], "IOBES"),
        (["W-X"], "BMEWO"),
        (["U-X", "I-X"], "BILOU"),
    ],
)
def test_the_encoding_is_guessed_from_the_prefixes(tags, wanted):
    assert guess_encoding(tags) == wanted


def test_if_most_spans_open_with_inside_tags_it_is_iob():
    assert guessed([["I-X", "I-X", "O"], ["I-X", "O", "B-X"]]) == "IOB"
    assert guessed([["B-X", "I-X", "O"], ["I-X", "O", "B-X"]]) == "BIO"
    assert guessed([["I-X", "O", "B-X"]]) == "BIO"  # half of them are not most


def test_the_gold_decides_between_bio_and_iob_if_there_is_some():
    assert guessed([["I-X", "O"]], gold=[["B-X", "I-X"]]) == "BIO"
    assert guessed([["B-X", "O"]], gold=[["I-X", "I-X"]]) == "IOB"


def test_reading_as_iob_is_noted_with_the_way_back():
    builder = CrowdBuilder()
    builder.add_item("a", ["x", "y"], gold=["I-X", "I-X"])
    assert builder.build().import_report.notes == (
        "1 of 1 spans open with I-: read as IOB; pass encoding='BIO' if not",
    )


def _table(rename=str):
    """Twenty sentences that three annotators tag alike; the third opens spans with I-."""
    tags = [("O", "O"), ("B-PER", "I-PER"), ("I-PER", "I-PER"), ("O", "O")]
    rows = [
        [f"s{n}", "word", rename(bio), rename(bio), rename(iob)]
        for n in range(20)
        for bio, iob in tags
    ]
    lines = ["\t".join(row) for row in [["item", "token", "a", "b", "c"], *rows]]
    return "\n".join(lines).encode()


def test_who_writes_iob_where_others_write_bio_is_named():
    (note,) = read_crowd(_table()).import_report.notes
    assert note.startswith("spans that open with I-, where others write B-: c 20 of 20.")
    assert read_crowd(_table(lambda tag: tag.replace("I-", "B-"))).import_report.notes == ()


@pytest.mark.parametrize(
    ("rename", "kind"),
    [
        (str.lower, "per"),
        (lambda tag: tag.replace("-", "_"), "PER"),
        (lambda tag: "-".join(reversed(tag.split("-"))), "PER"),
        (lambda tag: "_".join(reversed(tag.split("-"))), "PER"),
        (lambda tag: tag[0], "SPAN"),
        (lambda tag: tag[0].lower(), "SPAN"),
    ],
)
def test_tags_in_another_spelling_are_tags_of_spans_with_a_note(rename, kind):
    crowd, usual = read_crowd(_table(rename)), read_crowd(_table())
    assert crowd.tagset.types == (kind,)
    assert (crowd.answers.codes == usual.answers.codes).all()
    assert crowd.import_report.notes[0].startswith("tags of spans in another spelling: ")
    assert read_crowd(_table(rename), encoding="PLAIN").tagset.rules.is_plain


@pytest.mark.parametrize(
    "tags", [("PER-B", "B-PER"), ("vitamin-X", "B"), ("B", "b"), ("PER-B", "PER-U", "PER-E")]
)
def test_tags_that_may_mean_something_else_are_not_respelled(tags):
    assert respelled([*tags, "O"]) == {}
    assert respelled(["PER-B", "PER-I"]) == {}


def test_labels_beside_outside_are_labels_of_tokens_with_a_note():
    crowd = read_crowd(b"token\ta\nAnn\tPER\nsang\tO\n", format="wide")
    assert crowd.tagset.rules.is_plain
    assert "pass labels={'PER': 'I-PER', …}" in crowd.import_report.notes[0]
    found = read_crowd(b"token\ta\nAnn\tPER\nsang\tO\n", labels={"PER": "I-PER"})
    assert found.tagset.types == ("PER",)
    mixed = read_crowd(b"token\ta\nAnn\tB\nsang\tO\nso\tx\n", format="wide")
    assert "look like tags of spans" in mixed.import_report.notes[0]


def test_one_side_that_never_closes_its_spans_is_refused_by_name():
    rows = {"v": ["B-X", "E-X", "O"], "w": ["B-X", "I-X", "O"]}
    crowd = crowd_of([rows], gold=[["B-X", "I-X", "I-X"]], encoding="IOBES")
    with pytest.raises(
        FormatError, match="two encodings are mixed: others use IOBES, but gold, worker w never"
    ):
        settle(crowd, ReadOptions())
    assert isinstance(settle(crowd, ReadOptions(encoding="IOBES")), Crowd)


@pytest.mark.parametrize("row", [["B-X", "O", "O"], ["O", "O", "O"], ["B-X", "I-X", None]])
def test_a_single_open_span_is_no_other_encoding_unless_it_goes_on(row):
    crowd = crowd_of([{"v": ["B-X", "E-X", "O"], "w": row}], encoding="IOBES")
    if row[1] == "I-X":
        with pytest.raises(FormatError, match="worker w never closes"):
            settle(crowd, ReadOptions())
    else:
        settle(crowd, ReadOptions())


# Reading labels


def test_labels_are_read_to_codes_of_the_complete_tag_set():
    read = read_labels(["B-X", "?", "O", "I-Y"], ReadOptions())
    assert read.tagset == Codec.from_types(["X", "Y"], "BIO")
    assert [read.tagset.tags[c] if c >= 0 else None for c in read.codes] == [
        "B-X",
        None,
        "O",
        "I-Y",
    ]
    assert read.codes.dtype == np.int16
    assert read.bad == {}


def test_bad_labels_are_said_with_what_is_allowed_and_how_to_rename():
    read = read_labels(["B-X", "b-X", "B-", "L-X", "X"], ReadOptions(encoding="BIO"))
    assert sorted(read.bad) == [1, 2, 3, 4]
    assert read.codes.tolist()[1:] == [-1] * 4
    for why in read.bad.values():
        assert "allowed are B-TYPE, I-TYPE and O" in why
        assert "--label OLD=NEW, or --label OLD= to drop" in why
    assert "wrong case" in read.bad[1]
    assert "has no type" in read.bad[2]
    assert 'looks like BILOU: pass encoding="BILOU"' in read.bad[3]
    assert "two encodings seem to be mixed" in read.bad[3]
    assert "mixed" not in read.bad[4]


def test_single_labels_are_plain_unless_the_encoding_is_named():
    assert read_labels(["B-X", "O"], ReadOptions(), single=True).tagset.encoding == "PLAIN"
    assert read_labels(["B-X"], ReadOptions(encoding="BIO"), single=True).tagset.encoding == "BIO"


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        ("person", "PER"),
        ("B-person", "B-PER"),
        ("I-person", "I-PER"),
        ("B-other", "B-other"),
        ("junk", None),
        ("B-junk", None),
        ("x-y-z", "x-y-z"),
        ("O", "O"),
        *((missing, None) for missing in MISSING),
        (" person ", "PER"),
        ("  ", None),
    ],
)
def test_labels_are_renamed_whole_or_behind_their_prefix(label, wanted):
    assert ReadOptions(labels={"person": "PER", "junk": ""}).rename(label) == wanted


def test_the_whole_label_is_renamed_before_its_type():
    assert ReadOptions(labels={"B-a": "O", "a": "b"}).rename("B-a") == "O"


def test_an_empty_label_is_none_whatever_else_means_none():
    options = ReadOptions(missing=("-",))
    assert [options.rename(x) for x in ("", "-", "?", "NA")] == [None, None, "?", "NA"]


# Two tag sets, and what a file loses


def test_two_tag_sets_are_joined_by_their_types():
    one, two = Codec.from_types(["X"]), Codec.from_types(["Y"])
    assert joined(one, one) is one
    assert joined(one, two) == Codec.from_types(["X", "Y"])
    with pytest.raises(InputError, match="the tags of one side are BIO, those of the other IOBES"):
        joined(one, Codec.from_types(["X"], "IOBES"))


# Options


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("altered", "drop", ALTERED),
        ("repeated", "all", reading_options()["repeated"].choices),
        ("offsets", "bytes", ("codepoint", "utf16", "utf8")),
        ("cut", "widen", ("expand", "contract", "error")),
        ("encoding", "BIOX", tuple(ENCODINGS)),
        ("columns", {"wrker": "a"}, ROLES),
    ],
)
def test_unknown_options_are_refused_with_those_that_are_known(option, value, allowed):
    with pytest.raises(UnknownNameError) as caught:
        ReadOptions(**{option: value})
    message = str(caught.value)
    assert repr(value if isinstance(value, str) else "wrker") in message
    assert all(name in message for name in allowed)


def test_minus_one_beside_whole_numbers_is_a_label_with_a_note_that_says_how_to_read_none():
    data = b"item,worker,label\n1,a,-1\n1,b,1\n2,a,0\n2,b,-1\n"
    crowd = read_crowd(data)
    assert "-1" in crowd.tagset.tags
    assert any("missing=['-1'] (--missing=-1)" in note for note in crowd.import_report.notes)
    assert len(read_crowd(data, missing=["-1"]).answers) == 2
    scale = read_crowd(data.replace(b"0", b"-2"))
    assert not any("Snorkel" in note for note in scale.import_report.notes)
