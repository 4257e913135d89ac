"""The live view of `goldspan run`: what it hears, and how it looks on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from campaign.tiny import campaign_of, write_files
from goldspan.campaign import Campaign
from goldspan.cli.run_view import answers_words, view
from goldspan.cli.run_watch import Course, watched


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A campaign that ran under watch, its course, and the course that a new run would begin."""
    folder = tmp_path_factory.mktemp("view")
    write_files(folder)
    first = campaign_of(
        folder,
        control={"n": 4, "gold": "truth.csv", "share": 0.2},
        aggregate={"method": "mv-token"},
        redundancy={"stop": "clear_majority(ahead=2, least=2)"},
        model={"name": "none"},
    )
    course = Course.of(first.inputs, first.ledger)
    with watched(first.ledger, course.hear) as ledger:
        Campaign(first.inputs, ledger).run()
    yield first, course
    first.ledger.close()


def drawn(course, width=100):
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False, color_system=None).print(view(course))
    return out.getvalue()


def test_what_was_heard_is_what_the_ledger_says(ended):
    campaign, course = ended
    read = Course.of(campaign.inputs, campaign.ledger)
    assert (course.answers, course.spent) == (read.answers, read.spent)
    assert (course.round, course.items) == (2, 16)
    assert course.facts == read.facts
    assert course.decision == "stop: no item of the pool is left to pick"


def test_a_terminal_shows_items_answers_money_and_score(ended):
    _, course = ended
    score = {"value": 0.9, "low": 0.8, "high": 0.95}
    facts = {**course.facts, "model": "naive-bayes", "score": score}
    text = drawn(replace(course, facts=facts))
    for words in (
        "weather · round 2",
        "16 of 16",
        f"{course.answers}, ",
        f"{course.spent / 1e6:.2f} of 8.00",
        "naive-bayes  accuracy 90.0 (80.0 to 95.0)",
        "against the hidden gold",
        "stop: no item of the pool is left to pick",
    ):
        assert words in text
    assert "━" in text


def test_a_narrow_terminal_is_not_overrun(ended):
    assert max(map(len, drawn(ended[1], width=50).splitlines())) <= 50


def test_repeated_and_refused_answers_are_not_counted():
    course = Course("c", "F1", "EUR", 10, 100)
    for counts, repeated in ((True, False), (True, True), (False, False)):
        receipt = SimpleNamespace(counts=counts, repeated=repeated, cost=7)
        course.hear("submit", (), receipt)
    assert (course.answers, course.spent) == (1, 7)


def test_doubtful_items_are_those_asked_about_again():
    course = Course("c", "F1", "EUR", 10, 100)
    assert answers_words(course) == "0"
    course.hear("record", ("wave", "r001.1", {"more": {"a": 3}, "closed": {}}, 0), None)
    assert answers_words(course) == "0, 1 doubtful item"


def test_names_are_no_markup():
    assert "[red]x" in drawn(Course("[red]x", "F1", "", 10, 0, doing="[/nothing]"))
