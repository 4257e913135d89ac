"""Texts and spans come in exactly: code point for code point, whatever the text is made of."""

from __future__ import annotations

import random

import pytest

import goldspan
from crowd_strategies import folder_of, lines_of
from goldspan.crowd.formats.char_spans import CharSpan, split_overlaps
from goldspan.errors import FormatError, UnknownNameError
from goldspan.spans import find_spans

TEXTS = {
    "apostrophes": ("Toyota's car isn't Ann’s", [("Toyota", "ORG"), ("Ann", "PER")]),
    "compound": ("Die Apple-Watch-Hülle und Autofahrer", [("Apple-Watch", "PRO"), ("Auto", "X")]),
    "address": ("see https://www.apple.com/de?q=1 now", [("apple", "ORG"), ("de?q", "X")]),
    "emoji": ("a 👩🏽‍🚀👍🏿 flies 🇩🇪🇫🇷", [("👩🏽‍🚀", "PER"), ("🇫🇷", "LOC")]),
    "marks": ("le cafe\u0301 d'Ame\u0301lie", [("cafe\u0301", "X"), ("Ame\u0301lie", "PER")]),
    "spaces": ("\u00a0Ann\u00a0Lee\t sang  so ", [("Ann\u00a0Lee", "PER"), ("sang  so", "X")]),
    "arabic": ("زارَ أحمدُ الرياض", [("أحمدُ", "PER"), ("رياض", "LOC")]),
    "hebrew": ("דָּוִד גר בתל־אביב", [("דָּוִד", "PER"), ("תל־אביב", "LOC")]),
    "chinese": ("我住在北京市。", [("北京", "LOC")]),
    "japanese": ("東京タワーへ行く", [("東京", "LOC"), ("タワー", "X")]),
    "thai": ("ฉันอยู่กรุงเทพฯ", [("กรุงเทพ", "LOC")]),
    "korean": ("저는 서울에 산다", [("서울", "LOC")]),
    "invisible": ("a\u200bAnn\u200c b \u200fX", [("\u200bAnn", "PER"), ("\u200fX", "Y")]),
    "math": ("𝔸nn is 𝔹ob", [("𝔸nn", "PER"), ("𝔹", "X")]),
}
ANN = {name: [(text.index(w), text.index(w) + len(w), t) for w, t in found]
       for name, (text, found) in TEXTS.items()}  # fmt: skip
BOB = {name: [(0 if not text[0].isspace() else 1, len(text.rstrip()), "ALL")]
       for name, (text, _) in TEXTS.items()}  # fmt: skip


def doccano():
    return lines_of(
        *(
            {"id": name, "text": text, "label": [list(span) for span in said[name]], "user": who}
            for who, said in (("ann", ANN), ("bob", BOB))
            for name, (text, _) in TEXTS.items()
        )
    )


def brat():
    files = {}
    for who, said in (("ann", ANN), ("bob", BOB)):
        for name, (text, _) in TEXTS.items():
            files[f"{who}__{name}_DOT_txt"] = text + "\n"
            rows = [f"T{n}\t{t} {a} {b}\t{text[a:b]}\n" for n, (a, b, t) in enumerate(said[name])]
            files[f"{who}__{name}_DOT_ann"] = "".join(rows)
    return folder_of(**files)


def selected(crowd):
    """What every worker selected: item, worker, first character, one past the last, type."""
    found = set()
    starts, answers = crowd.token_start.tolist(), crowd.answers
    tagged = goldspan.spans.Tagged(answers.codes, answers.offset)
    rows = find_spans(tagged, crowd.tagset)
    for row, kind, a, b in zip(
        *(column.tolist() for column in (rows.item, rows.type, rows.start, rows.end)), strict=True
    ):
        n = int(answers.item[row])
        shift = int(crowd.offsets[n] - answers.offset[row])
        first, last = a + shift, b - 1 + shift
        stop = starts[last] + len(crowd.tokens.flatten()[last].as_py())
        worker = crowd.worker_ids[int(answers.worker[row])].as_py()
        name = crowd.item_ids[n].as_py().removesuffix("-1")
        found.add((name, worker, starts[first], stop, crowd.tagset.types[kind]))
    return found


MADE = {
    (name, who, *span)
    for who, said in (("ann", ANN), ("bob", BOB))
    for name, listed in said.items()
    for span in listed
}
WAYS = [doccano, brat]


@pytest.mark.parametrize("make", WAYS)
def test_every_text_and_every_span_comes_in_as_it_is(make):
    crowd = goldspan.read_crowd(make())
    names = [name.removesuffix("-1") for name in crowd.item_ids.to_pylist()]
    texts = dict(zip(names, crowd.texts.to_pylist(), strict=True))
    assert texts == {name: text for name, (text, _) in TEXTS.items()}
    assert selected(crowd) == MADE
    report = crowd.import_report
    assert report.adds_up
    assert report.faults == ()
    for text, tokens in zip(crowd.texts.to_pylist(), crowd.tokens_list, strict=True):
        assert not any(char.isspace() for token in tokens for char in token)
        assert all(token in text for token in tokens)


def one(text, *spans, worker="w", **fields):
    return {
        "id": 1,
        "text": text,
        "label": [list(span) for span in spans],
        "user": worker,
        **fields,
    }


def test_the_text_is_cut_only_where_somebody_selected():
    text = "Autofahrer und Autobahn"
    crowd = goldspan.read_crowd(lines_of(one(text, (0, 4, "X")), one(text, worker="v")))
    assert crowd.tokens_list == [["Auto", "fahrer", "und", "Autobahn"]]
    assert crowd.token_start.tolist() == [0, 4, 11, 15]
    assert crowd.answers_of("1") == {"w": ["B-X", "O", "O", "O"], "v": ["O"] * 4}


def test_every_annotator_cuts():
    text = "Donaudampfschiff"
    crowd = goldspan.read_crowd(
        lines_of(one(text, (0, 5, "A")), one(text, (0, 10, "B"), worker="v"))
    )
    assert crowd.tokens_list == [["Donau", "dampf", "schiff"]]
    assert crowd.answers_of("1") == {"w": ["B-A", "O", "O"], "v": ["B-B", "I-B", "O"]}


def test_white_space_at_the_ends_does_not_count_and_is_counted():
    crowd = goldspan.read_crowd(lines_of(one("Ann sang", (0, 4, "PER"), (3, 8, "X"))))
    assert crowd.answers_of("1") == {"w": ["B-PER", "B-X"]}
    (note,) = crowd.import_report.notes
    assert note == (
        "2 spans begin or end with white space, which does not count "
        "(first: item 1, worker w: span PER [0, 4))"
    )
    assert crowd.import_report.faults == ()


@pytest.mark.parametrize(
    ("text", "span", "options", "parts"),
    [
        ("cafe\u0301 au lait", (0, 4, "X"), {}, ["ends within the character 'e\u0301'", "U+0301"]),
        ("a 👩🏽‍🚀", (2, 3, "X"), {}, ["ends within the character '👩🏽‍🚀'", "U+1F469"]),
        ("a 👩🏽‍🚀", (3, 6, "X"), {}, ["begins within the character"]),
        ("🇩🇪🇫🇷", (1, 2, "X"), {}, ["begins within the character '🇩🇪'"]),
        ("😀 Ann", (1, 2, "X"), {"offsets": "utf16"}, ["begins within a character", "UTF-16"]),
        ("é Ann", (0, 1, "X"), {"offsets": "utf8"}, ["ends within a character", "UTF-8"]),
        ("Ann", (2, 2, "X"), {}, ["is empty"]),
        ("Ann", (0, 4, "X"), {}, ["outside the text, which has 3 code points"]),
    ],
)
def test_a_span_that_cuts_a_character_or_leaves_the_text_is_refused(text, span, options, parts):
    with pytest.raises(FormatError) as caught:
        goldspan.read_crowd(lines_of(one(text, span)), **options)
    for part in ["item 1, worker w", *parts]:
        assert part in str(caught.value)


def test_a_character_is_taken_whole_if_that_is_wanted():
    crowd = goldspan.read_crowd(lines_of(one("cafe\u0301 x", (0, 4, "X"))), cut="expand")
    assert crowd.answers_of("1") == {"w": ["B-X", "O"]}
    assert [fault.kind for fault in crowd.import_report.faults] == ["cut"]


@pytest.mark.parametrize(
    ("rule", "tokens"),
    [
        ("fine", ["Ann", "'", "s", "re", "-", "elect"]),
        ("space", ["Ann's", "re-elect"]),
        ("words", ["Ann's", "re-elect"]),
    ],
)
def test_the_rule_for_tokens_can_be_chosen(rule, tokens):
    data = lines_of(one("Ann's re-elect"))
    assert goldspan.read_crowd(data, tokens=rule).tokens_list == [tokens]
    exact = goldspan.read_crowd(lines_of(one("Ann's re-elect", (0, 3, "X"))), tokens=rule)
    assert exact.answers_of("1")["w"][0] == "B-X"
    assert exact.tokens_list[0][0] == "Ann"


def test_an_unknown_rule_is_refused():
    with pytest.raises(UnknownNameError, match="unknown rule for tokens 'finest'"):
        goldspan.read_crowd(b"x", tokens="finest")


def test_tokens_of_the_file_stay_and_are_cut_only_if_needed_which_is_said():
    tokens = {"tokens": ["New York", "'s"], "token_start": [0, 8]}
    whole = goldspan.read_crowd(lines_of(one("New York's", (0, 8, "X"), **tokens)))
    assert whole.tokens_list == [["New York", "'s"]]
    assert whole.import_report.faults == ()
    cut = goldspan.read_crowd(lines_of(one("New York's", (4, 8, "X"), **tokens)))
    assert cut.answers_of("1")["w"][-2:] == ["B-X", "O"]
    (fault,) = cut.import_report.faults
    assert (fault.kind, fault.item, fault.token) == ("cut", "1", 0)
    assert "token 'New York' is cut where spans begin or end" in fault.message
    kept = goldspan.read_crowd(lines_of(one("New York's", (4, 8, "X"), **tokens)), cut="expand")
    assert kept.tokens_list == [["New York", "'s"]]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [("longest", {(1, 9, "B"), (9, 12, "D")}), ("outermost", {(0, 3, "A"), (8, 12, "C")})],
)
def test_overlapping_chooses_among_spans(rule, wanted):
    text = "abcdefghijkl"
    listed = [(0, 3, "A"), (1, 9, "B"), (8, 12, "C"), (9, 12, "D")]
    crowd = goldspan.read_crowd(lines_of(one(text, *listed)), overlapping=rule)
    assert {found[2:] for found in selected(crowd)} == wanted
    assert sum(crowd.import_report.reasons.values()) == 2


def test_overlapping_spans_can_be_refused():
    data = lines_of(one("Ann Lee", (0, 7, "A"), (0, 3, "B"), (0, 3, "B")))
    with pytest.raises(FormatError) as caught:
        goldspan.read_crowd(data, overlapping="refuse")
    assert [fault.kind for fault in caught.value.faults] == ["nested span"] * 2
    assert "item 1, worker w: span B [0, 3) overlaps span A [0, 7)" in str(caught.value)
    with pytest.raises(UnknownNameError, match="longest, outermost, refuse"):
        goldspan.read_crowd(data, overlapping="all")


def test_the_kinds_of_overlap_are_told_apart():
    data = lines_of(
        one("abcdefgh", (0, 4, "A"), (0, 4, "A"), (0, 4, "B"), (1, 2, "C"), (3, 6, "D"))
    )
    assert goldspan.read_crowd(data, overlapping="longest").import_report.reasons == {
        "span given twice": 1,
        "several labels of a span": 1,
        "nested span": 1,
        "overlapping span": 1,
    }


def test_many_spans_that_do_not_overlap_are_all_kept():
    draw = random.Random(3)
    listed = [CharSpan("X", 3 * n, 3 * n + 2) for n in range(2000)]
    shuffled = draw.sample(listed, len(listed))
    assert split_overlaps(shuffled) == (listed, [])


def test_tags_keep_the_tokens_that_they_count():
    lines = [
        {"id": 1, "text": "Ann Lee", "tokens": ["Ann", "Lee"], "tags": ["B-P", "I-P"],
         "worker": "a"},
        {"id": 1, "text": "Ann Lee", "tokens": ["Ann", "Lee"], "unit": "char",
         "spans": [[0, 5, "P"]], "worker": "b"},
    ]  # fmt: skip
    crowd = goldspan.read_crowd(lines_of(*lines))
    assert crowd.tokens_list == [["Ann", "Lee"]]
    assert crowd.answers_of("1") == {"a": ["B-P", "I-P"], "b": ["B-P", "I-P"]}
    assert [fault.kind for fault in crowd.import_report.faults] == ["cut"]


def test_skipped_tokens_stay_skipped_when_others_cut():
    lines = [
        {"id": 1, "text": "Annlee sang", "tokens": ["Annlee", "sang"], "spans": [],
         "skipped": [[0, 1]], "worker": "a"},
        {"id": 1, "text": "Annlee sang", "tokens": ["Annlee", "sang"], "unit": "char",
         "spans": [[0, 3, "P"]], "worker": "b"},
    ]  # fmt: skip
    crowd = goldspan.read_crowd(lines_of(*lines))
    assert crowd.answers_of("1") == {"a": [None, None, "O"], "b": ["B-P", "O", "O"]}
