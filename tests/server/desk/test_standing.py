"""Where workers stand, in words that are the same at the desk and in commands."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import goldspan.server
from goldspan.cli.desk_view import STATES
from goldspan.server.desk.standing import brief, standing
from goldspan.server.desk_models import Overview

PAGES = Path(goldspan.server.__file__).parent / "static"
FOUND = {"verdict": "test more", "judged": 9.0, "p_above": 0.88, "more": 16}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "probably good enough (88 %); about 16 more spans to be sure"),
        ({"p_above": 0.12}, "probably not good enough (88 %); about 16 more spans to be sure"),
        ({"more": 1}, "probably good enough (88 %); about 1 more span to be sure"),
        ({"more": None}, "probably good enough (88 %); more than 1,000 spans to be sure"),
        ({"judged": 0.0}, "not judged yet; about 16 more spans to be sure"),
        ({"verdict": "keep", "p_above": 0.9962}, "good enough (99.6 %)"),
        ({"verdict": "drop", "p_above": 0.0}, "not good enough (over 99.9 %)"),
    ],
)
def test_a_verdict_is_told_in_short(change, said):
    assert brief({**FOUND, **change}, single=False) == said


def test_single_labels_are_judged_by_texts():
    assert brief(FOUND, single=True).endswith("about 16 more texts to be sure")


def test_the_desk_shows_the_short_words(service):
    whys = [row["verdict"]["why"] for row in service.desk.workers()]
    assert all(re.match(r"(probably )?(not )?good enough \(|not judged yet;", why) for why in whys)


def test_a_decision_goes_before_a_verdict_and_being_barred_before_both():
    assert standing(barred=True, decided="drop", verdict="keep") == "dropped"
    assert standing(barred=True, decided="", verdict="drop") == "asked no more"
    assert standing(barred=False, decided="keep", verdict="drop") == "kept"
    assert standing(barred=False, decided="", verdict="drop") == "doubtful"
    assert standing(barred=False, decided="", verdict="") == "not clear yet"


def test_the_page_of_workers_has_the_same_words():
    page = (PAGES / "desk_workers.js").read_text(encoding="utf-8")
    decisions, verdicts = ["", "keep", "drop", "test"], ["", "keep", "drop", "test more"]
    every = itertools.product([False, True], decisions, verdicts)
    words = {standing(barred=b, decided=d, verdict=v) for b, d, v in every}
    assert len(words) == 7
    assert not {word for word in words if f'"{word}"' not in page and ".standing" not in page}


def test_a_command_calls_a_state_what_the_pages_call_it():
    page = (PAGES / "desk.js").read_text(encoding="utf-8")
    table = page.partition("const WORDS = {")[2].partition("};")[0]
    words = {name: word.lower() for name, word in re.findall(r'(\w+): "(\w+)"', table)}
    states = Overview.model_fields["state"].annotation.__args__
    assert words == {state: STATES.get(state, state) for state in states}
