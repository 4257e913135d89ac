"""`state.js`: what is marked, as plain values, without the page."""

from __future__ import annotations

import random

import pytest

from web.pages.fake import MOODS


@pytest.fixture
def run(visit, fake):
    """Run commands from an empty text of so many tokens: a list of [name, arguments …]."""
    fake.reset(MOODS, [])
    page = visit()
    address = page.get_attribute("script[src$='label.js']", "src").replace("label.js", "state.js")

    def go(size, *commands):
        return page.evaluate(
            """async ([address, size, commands]) => {
            const marks = await import(address);
            let state = marks.begin(size);
            for (const [name, ...rest] of commands) state = marks[name](state, ...rest);
            return state;
            }""",
            [address, size, list(commands)],
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


def test_whatever_is_done_spans_are_legal_and_undo_leads_back(run):
    rng = random.Random(7)
    makers = [
        lambda: ("select", rng.randrange(-1, 9), rng.randrange(-1, 9)),
        lambda: ("move", rng.randrange(9)), lambda: ("stretch", rng.randrange(-1, 9)),
        lambda: ("put", rng.choice("AB")), lambda: ("remove",), lambda: ("clear",),
        lambda: ("edge", rng.choice(["start", "end"]), rng.choice([-1, 1])),
        lambda: ("toggleNothing",), lambda: ("undo",), lambda: ("redo",),
    ]  # fmt: skip
    for _ in range(60):
        commands = [rng.choice(makers)() for _ in range(rng.randrange(30))]
        state = run(8, *commands)
        ends = [0, *(place for span in spans(state) for place in span[:2]), 8]
        assert ends == sorted(ends)
        assert all(start < end for start, end, _ in spans(state))
        assert not (state["nothing"] and state["spans"])
        back = run(8, *commands, *[("undo",)] * len(state["past"]))
        assert (spans(back), back["nothing"]) == ([], False)
        again = run(8, *commands, *[(way,) for way in ("undo", "redo") for _ in state["past"]])
        assert (spans(again), again["nothing"]) == (spans(state), state["nothing"])
