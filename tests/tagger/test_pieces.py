"""Words as pieces and windows, with a tokenizer of our own: no library is needed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.tagger import Text
from goldspan.tagger.text import (
    MARKS,
    MOST_PIECES,
    Pieces,
    by_length,
    reads_small_letters_only,
    shuffled,
)

BEFORE, AFTER, SEPARATOR, UNKNOWN = 1, 2, 2, 3


class Letters:
    """A tokenizer whose pieces are the letters of a word, small ones if `lower`."""

    sep_token_id, unk_token_id, pad_token_id = SEPARATOR, UNKNOWN, 0

    def __init__(self, lower=False):
        self.lower = lower

    def __call__(self, given, add_special_tokens=True):
        texts = [given] if isinstance(given, str) else given
        rows = [[100 + ord(c) for c in self._read(text)] for text in texts]
        if add_special_tokens:
            rows = [[BEFORE, *row, AFTER] for row in rows]
        return {"input_ids": rows[0] if isinstance(given, str) else rows}

    def _read(self, text):
        text = text.replace(" ", "").replace("\0", "")
        return text.lower() if self.lower else text

    def convert_tokens_to_ids(self, tokens):
        return [10 + MARKS.index(token) for token in tokens]


def pieces(size=64, *, case=False, documents=False, lower=False):
    return Pieces(Letters(lower), size, case=case, documents=documents)


def first_letters(windows, n_words):
    """Return the piece that stands where each word is scored."""
    found = [None] * n_words
    for window in windows:
        for at, token in zip(window.at, window.token, strict=True):
            assert found[token] is None, "a word is scored once"
            found[token] = window.ids[at]
    return found


words = st.lists(st.text("abCD", min_size=1, max_size=30), max_size=60)


@given(st.lists(words, min_size=1, max_size=4), st.booleans(), st.booleans(), st.data())
def test_every_word_is_scored_once_at_its_first_piece_in_windows_that_fit(
    items, case, documents, data
):
    groups = [data.draw(st.sampled_from("xy")) for _ in items]
    text = Text.of(items, groups)
    windows = pieces(case=case, documents=documents).windows(text)
    flat = [word for item in items for word in item]
    assert first_letters(windows, len(flat)) == [100 + ord(word[0]) for word in flat]
    for window in windows:
        assert len(window.ids) <= 64
        assert (window.ids[0], window.ids[-1]) == (BEFORE, AFTER)


def test_an_item_that_fits_is_one_window():
    [window] = pieces().windows(Text.of([["ab", "c"]]))
    assert window.ids == [BEFORE, 197, 198, 199, AFTER]
    assert window.at.tolist() == [1, 3]
    assert window.token.tolist() == [0, 1]


def test_a_word_of_a_long_item_is_scored_far_from_the_edges_of_its_window():
    n_words, size = 300, 64
    windows = pieces(size).windows(Text.of([["a"] * n_words]))
    assert len(windows) > 1
    for window in windows:
        inner = [t for t in window.token.tolist() if 0 < t < n_words - 1]
        at = dict(zip(window.token.tolist(), window.at.tolist(), strict=True))
        for t in inner:
            left, right = at[t] - 1, len(window.ids) - 2 - at[t]
            assert min(left, right) >= 7 or t < size or t >= n_words - size


def test_documents_are_read_side_by_side_with_a_separator_and_others_are_not():
    text = Text.of([["a"], ["b", "c"], ["d"]], ["x", "y", "x"])
    together = pieces(documents=True).windows(text)
    assert [w.ids for w in together] == [
        [BEFORE, 197, SEPARATOR, 200, AFTER], [BEFORE, 198, 199, AFTER],
    ]  # fmt: skip
    assert [w.token.tolist() for w in together] == [[0, 3], [1, 2]]
    assert len(pieces().windows(text)) == 3


@pytest.mark.parametrize(
    ("word", "mark"),
    [
        ("rome", None),
        ("Rome", 10),
        ("ROME", 11),
        ("A", 10),
        ("iPad", 12),
        ("McCoy", 12),
        ("12", None),
    ],
)
def test_words_with_capitals_are_marked_for_an_encoder_that_reads_small_letters(word, mark):
    [window] = pieces(case=True, lower=True).windows(Text.of([[word]]))
    assert window.ids[1] == (mark or 100 + ord(word[0].lower()))
    assert window.ids[window.at[0]] == 100 + ord(word[0].lower())


def test_words_without_pieces_and_endless_ones_are_scored_too():
    [window] = pieces().windows(Text.of([["\0", "a" * 1000]]))
    assert window.ids[1] == UNKNOWN
    assert len(window.ids) == 2 + 1 + MOST_PIECES


def test_items_without_words_have_no_window():
    assert pieces().windows(Text.of([[], []])) == []
    assert [w.token.tolist() for w in pieces().windows(Text.of([[], ["a"]]))] == [[0]]


def test_windows_that_hold_nothing_are_refused():
    with pytest.raises(InputError, match="windows of 40 pieces are too short"):
        pieces(40)


def test_whether_capitals_are_read_is_seen():
    assert reads_small_letters_only(Letters(lower=True))
    assert not reads_small_letters_only(Letters())


@pytest.mark.parametrize("deal", [by_length, lambda w, n: shuffled(w, n, np.random.default_rng(0))])
def test_batches_hold_all_windows_and_not_more_pieces_than_allowed(deal):
    rng = np.random.default_rng(1)
    items = [["a"] * rng.integers(1, 50) for _ in range(40)]
    windows = pieces().windows(Text.of(items))
    found = deal(windows, 200)
    assert sorted(n for batch in found for n in batch) == list(range(40))
    for batch in found:
        assert len(batch) * max(len(windows[n].ids) for n in batch) <= 200


def test_batches_follow_from_the_seed():
    windows = pieces().windows(Text.of([["a"] * n for n in range(1, 40)]))
    first, again, other = (shuffled(windows, 200, np.random.default_rng(s)) for s in (0, 0, 1))
    assert first == again != other
    sizes = [len(windows[batch[0]].ids) for batch in first]
    assert any(a > b for a, b in pairwise(sizes))  # not in the order of length
