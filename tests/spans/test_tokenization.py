"""The rules that cut a text into tokens, against Unicode's own character classes."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import UnknownNameError
from goldspan.spans import tokenize
from looping import each

SAMPLES = (
    "Toyota's Apple-Watch-Hülle 3M's foo_bar www.apple.com a@b.org 1,000.50",
    "naïve ‘Ann’ — e\u0301t\u00e9 Z\u0351\u036b\u0343 \u200fשלום\u200f مرحبا بالعالم ١٢٣ نمی‌شود",
    "東京タワーは高い 我爱北京 ภาษาไทย ພາສາລາວ ភាសាខ្មែរ မြန်မာ 서울특별시 ｶﾞｷﾞ々〆ー",
    "👍🏽 👩‍👩‍👧‍👦 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "🇩🇪🇫🇷 1️⃣ ☂️ \u0600123 m² ½",
    " \u0301x \u00a0\u3000\u2003tab\there\r\nnew\u2028line \ufeffBOM\u00adsoft \x00\x07",
    "हिन्दी में लिखा ক্ষ தமிழ் Ⅷ Ж",
)


def pieces(text: str, rule: str = "fine") -> list[str]:
    return [text[a:b] for a, b in tokenize(text, rule)]


@each(
    ("text", "tokens"),
    [
        ("Toyota's", ["Toyota", "'", "s"]),
        ("Apple-Watch-Hülle", ["Apple", "-", "Watch", "-", "Hülle"]),
        ("3M's", ["3", "M", "'", "s"]),
        ("foo_bar", ["foo", "_", "bar"]),
        ("www.apple.com", ["www", ".", "apple", ".", "com"]),
        ("1,000.50", ["1", ",", "000", ".", "50"]),
        ("Cafe\u0301", ["Cafe\u0301"]),
        ("👍🏽👩‍👩‍👧‍👦🇩🇪🇫🇷", ["👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🇫🇷"]),
        ("21️⃣", ["2", "1️⃣"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("서울", ["서", "울"]),
        ("กำลัง", ["กำ", "ลั", "ง"]),
        ("مرحبا", ["مرحبا"]),
        ("می‌شود", ["می‌شود"]),
        ("हिन्दी", ["हिन्दी"]),
        ("Donau\u00addampf", ["Donau", "dampf"]),
        (" \u0301x", ["\u0301", "x"]),
        ("a\u00a0b\u3000c\td\r\ne", ["a", "b", "c", "d", "e"]),
        ("\ufeff\u200f \x00", []),
        ("\u0600123", ["\u0600123"[:2], "23"]),
        ("m²", ["m", "²"]),
        ("", []),
    ],
)
def test_fine_tokens(text, tokens):
    assert pieces(text) == tokens


def test_the_rule_space_cuts_at_white_space_alone():
    assert pieces(" a-b\u00a0c,\td👍🏽 ", "space") == ["a-b", "c,", "d👍🏽"]


@each(
    ("text", "tokens"),
    [
        ("Apfel 1.", ["A", "p", "f", "e", "l", "1", "."]),
        ("והספר", ["ו", "ה", "ס", "פ", "ר"]),
        ("👩🏽\u200d🚀 Zoe\u0301 🇵🇹1️⃣", ["👩🏽\u200d🚀", "Z", "o", "e\u0301", "🇵🇹", "1️⃣"]),
        ("स्ते", ["स्ते"]),
        ("Donau\u00addampf\x07", [*"Donaudampf"]),
        (" \r\n", []),
    ],
)
def test_the_rule_characters_cuts_at_what_a_reader_sees_as_one(text, tokens):
    assert pieces(text, "characters") == tokens


def test_an_unknown_rule_is_refused_with_the_names():
    with pytest.raises(UnknownNameError, match="fine"):
        tokenize("a", "fein")


def visible(char: str) -> bool:
    """Whether a character needs a token: no white space, nothing invisible."""
    kind = unicodedata.category(char)
    return not (char.isspace() or kind in {"Cc", "Cf"})


texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.lists(st.sampled_from("".join(SAMPLES)), max_size=40).map("".join),
    st.sampled_from(SAMPLES),
)  # fmt: skip


@given(texts, st.sampled_from(["fine", "space", "words"]))
def test_tokens_follow_each_other_and_leave_out_only_what_nobody_sees(text, rule):
    bounds = tokenize(text, rule)
    end = 0
    for a, b in bounds:
        assert end <= a < b <= len(text)
        assert not any(visible(char) for char in text[end:a])
        assert not text[a].isspace()
        end = b
    assert not any(visible(char) for char in text[end:])


@given(texts)
def test_fine_tokens_never_cut_what_a_reader_sees_as_one_character(text):
    inside = {
        place
        for found in regex.finditer(r"\X", text)
        for place in range(found.start() + 1, found.end())
        if not text[found.start()].isspace() and visible(text[found.start()])
    }
    for a, b in tokenize(text, "fine"):
        assert a not in inside
        assert b not in inside


@given(texts)
def test_a_fine_token_is_letters_or_digits_or_one_cluster(text):
    for piece in pieces(text):
        clusters = regex.findall(r"\X", piece)
        kinds = {unicodedata.category(cluster[0])[0] for cluster in clusters}
        if "C" in kinds and regex.match(r"\p{L}", piece):
            kinds = {"L"}  # letters that came to Unicode after Python's tables were made
        assert len(clusters) == 1 or kinds in ({"L"}, {"N"})
        if len(clusters) > 1 and kinds == {"N"}:
            assert piece.isdecimal()


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_plain_ascii_goes_the_same_way_as_everything_else(text):
    longer = tokenize(f"{text} é", "fine")
    assert tokenize(text, "fine") == longer[:-1]
