"""Where workers stand, in words that are the same at the desk and in commands."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import goldspan.web
from goldspan.cli.desk import STATES
from goldspan.web.desk.desk import brief, standing
from goldspan.web.desk.models import Overview
from goldspan.workers.verdicts import AGREES, DIFFERS, DOUBTFUL, RELIABLE, UNCLEAR
from web.desks import as_json

PAGES = Path(goldspan.web.__file__).parent / "static"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (0, "right in 93 %"),
        (1, "right in 93 %; about 1 gold question would settle it"),
        (16, "right in 93 %; about 16 gold questions would settle it"),
        (None, "right in 93 %; more than 1,000 gold questions would settle it"),
    ],
)
def test_what_is_said_of_a_worker_is_told_in_short(more, said):
    assert brief({"said": "right in 93 %", "more": more}) == said


def test_the_desk_says_what_its_words_rest_on(service):
    rows = [row["verdict"] for row in as_json(service.desk.workers())]
    start = {"gold": "right in ", "others": ("by agreement with the others ", "agrees with each ")}
    assert all(row["why"].startswith(start[row["by"]]) for row in rows)
    assert not any("99.9" in row["why"] for row in rows)


def test_a_decision_goes_before_an_opinion_and_being_barred_before_both():
    assert standing(barred=True, decided="drop", opinion=RELIABLE) == "dropped"
    assert standing(barred=True, decided="", opinion=DOUBTFUL) == "asked no more"
    assert standing(barred=False, decided="keep", opinion=DOUBTFUL) == "kept"
    assert standing(barred=False, decided="", opinion=DOUBTFUL) == "doubtful"
    assert standing(barred=False, decided="", opinion="") == "not clear yet"


def test_the_page_of_workers_knows_every_word():
    page = (PAGES / "desk_workers.js").read_text(encoding="utf-8")
    opinions = [RELIABLE, DOUBTFUL, AGREES, DIFFERS, UNCLEAR, ""]
    every = itertools.product([False, True], ["", "keep", "drop", "test"], opinions)
    words = {standing(barred=b, decided=d, opinion=o) for b, d, o in every}
    assert len(words) == 9
    soon = {UNCLEAR, "tested more"}  # what the page does not name is neither good nor bad
    assert {word for word in words if f'"{word}"' not in page and f"{word}:" not in page} == soon


def test_a_command_calls_a_state_what_the_pages_call_it():
    page = (PAGES / "desk.js").read_text(encoding="utf-8")
    table = page.partition("const WORDS = {")[2].partition("};")[0]
    words = {name: word.lower() for name, word in re.findall(r'(\w+): "(\w+)"', table)}
    states = Overview.model_fields["state"].annotation.__args__
    assert words == {state: STATES.get(state, state) for state in states}
