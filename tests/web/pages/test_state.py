"""`state.js`: what is marked, as plain values, without the page."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from web.pages.fake import MOODS


@pytest.fixture
def run(visit, fake):
    """Run commands from an empty text of so many tokens: a list of [name, arguments …]."""
    fake.reset(MOODS, [])
    page = visit()
    address = page.get_attribute("script[src$='label.js']", "src").replace("label.js", "state.js")

    def go(size, *commands, overlapping=False):
        return page.evaluate(
            """async ([address, size, commands, overlapping]) => {
            const marks = await import(address);
            let state = marks.begin(size, [], false, [], overlapping);
            for (const [name, ...rest] of commands) state = marks[name](state, ...rest);
            const rows = [...marks.rowsOf(state.spans)]
              .map(([{ start, end }, row]) => [start, end, row]);
            return { ...state, current: marks.current(state), rows };
            }""",
            [address, size, list(commands), overlapping],
        )

    return go


def spans(state):
    return [(span["start"], span["end"], span["type"]) for span in state["spans"]]


def test_a_span_stretches_up_to_its_neighbours(run):
    two = [("select", 0, 1), ("put", "A"), ("select", 4, 4), ("put", "B")]
    assert spans(run(6, *two, ("stretch", 0))) == [(0, 2, "A"), (2, 5, "B")]
    assert spans(run(6, *two, ("move", 1), ("stretch", 5))) == [(0, 4, "A"), (4, 5, "B")]
    edges = [("edge", "start", 1)] * 5 + [("edge", "end", 1)] * 5
    assert spans(run(6, *two, *edges)) == [(0, 2, "A"), (2, 6, "B")]


def test_a_stretched_span_is_held_by_its_other_end(run):
    span = [("select", 2, 4), ("put", "A"), ("move", 2)]
    assert spans(run(9, *span, ("stretch", 1), ("stretch", 0))) == [(0, 5, "A")]
    assert spans(run(9, *span, ("stretch", 3), ("stretch", 4), ("stretch", 5))) == [(4, 6, "A")]


def test_an_edge_leaves_one_token(run):
    span = [("select", 2, 4), ("put", "A")]
    assert spans(run(9, *span, *[("edge", "end", -1)] * 9)) == [(2, 3, "A")]


NESTED = [
    ("select", 1, 6),
    ("put", "A"),
    ("select", 3, 4),
    ("put", "B"),
    ("select", 4, 8),
    ("put", "C"),
]
"""B lies in A, and C overlaps both."""


def test_spans_that_may_overlap_leave_each_other_alone(run):
    state = run(9, *NESTED, overlapping=True)
    assert spans(state) == [(1, 7, "A"), (3, 5, "B"), (4, 9, "C")]
    twice = [("select", 1, 6), ("put", "B"), ("select", 1, 6), ("put", "B"), ("put", "B")]
    again = run(9, *NESTED, *twice, overlapping=True)
    assert spans(again) == [(1, 7, "A"), (1, 7, "B"), (3, 5, "B"), (4, 9, "C")]
    assert len(again["past"]) == 4  # the same once more is no change
    longest = run(
        9, ("select", 0, 0), ("put", "A"), ("select", 0, 3), ("put", "A"), overlapping=True
    )
    assert spans(longest) == [(0, 4, "A"), (0, 1, "A")]


def test_commands_are_about_the_chosen_span_and_the_innermost_comes_first(run):
    def after(*commands):
        return run(9, *NESTED, ("move", 4), *commands, overlapping=True)

    chosen = [after(*[("other",)] * n)["current"]["type"] for n in range(4)]
    assert chosen == ["B", "C", "A", "B"]
    assert spans(after(("other",), ("remove",))) == [(1, 7, "A"), (3, 5, "B")]
    # What was moved stays chosen, also when the cursor goes with it and when it is undone.
    moved = after(*[("other",)] * 2, *[("edge", "end", 1)] * 2)
    assert (spans(moved)[0], moved["current"]["type"]) == ((1, 9, "A"), "A")
    assert after(*[("other",)] * 2, *[("edge", "end", 1), ("undo",)] * 2)["current"]["type"] == "A"
    assert spans(after(("other",), ("stretch", 2)))[:2] == [(1, 7, "A"), (2, 9, "C")]
    # A chosen span becomes another kind; over a selection a second span is put.
    assert spans(after(("put", "D"))) == [(1, 7, "A"), (3, 5, "D"), (4, 9, "C")]
    assert len(after(("select", 3, 4), ("put", "D"))["spans"]) == 4
    # Only what lies in a selection is taken away.
    assert spans(after(("select", 3, 8), ("remove",))) == [(1, 7, "A")]


def test_inner_spans_are_nearer_to_the_words_and_none_of_a_row_overlap(run):
    assert run(9, *NESTED, overlapping=True)["rows"] == [[3, 5, 0], [4, 9, 1], [1, 7, 2]]
    aside = [("select", 7, 8), ("put", "A"), ("select", 0, 1), ("put", "A"), ("select", 1, 7)]
    rows = run(9, *aside, ("put", "B"), overlapping=True)["rows"]
    assert sorted(rows) == [[0, 2, 0], [1, 8, 1], [7, 9, 0]]


def test_whatever_is_done_spans_are_legal_and_undo_leads_back(run):
    rng = random.Random(7)
    makers = [
        lambda: ("select", rng.randrange(-1, 9), rng.randrange(-1, 9)),
        lambda: ("move", rng.randrange(9)), lambda: ("stretch", rng.randrange(-1, 9)),
        lambda: ("put", rng.choice("AB")), lambda: ("remove",), lambda: ("clear",),
        lambda: ("edge", rng.choice(["start", "end"]), rng.choice([-1, 1])),
        lambda: ("toggleNothing",), lambda: ("undo",), lambda: ("redo",), lambda: ("other",),
    ]  # fmt: skip
    for n in range(80):
        commands = [rng.choice(makers)() for _ in range(rng.randrange(30))]
        overlapping = n % 2 == 1
        state = run(8, *commands, overlapping=overlapping)
        ends = [0, *(place for span in spans(state) for place in span[:2]), 8]
        assert ends == sorted(ends) or overlapping
        assert len(set(spans(state))) == len(spans(state))
        assert all(0 <= start < end <= 8 for start, end, _ in spans(state))
        rows = [(row, start, end) for start, end, row in state["rows"]]
        assert all(a[0] < b[0] or a[2] <= b[1] for a, b in pairwise(sorted(rows)))
        assert not (state["nothing"] and state["spans"])
        back = run(8, *commands, *[("undo",)] * len(state["past"]), overlapping=overlapping)
        assert (spans(back), back["nothing"]) == ([], False)
        both = [(way,) for way in ("undo", "redo") for _ in state["past"]]
        again = run(8, *commands, *both, overlapping=overlapping)
        assert (spans(again), again["nothing"]) == (spans(state), state["nothing"])
