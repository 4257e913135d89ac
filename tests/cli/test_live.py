"""The live view of `goldspan run`: what it hears, and how it looks on a terminal."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from itertools import count

import pytest
from rich.console import Console

from campaign.tiny import campaign_of, ledger_of, write_files
from goldspan.campaign import Campaign
from goldspan.campaign.protocols import AnswerTaken, AskedAgain
from goldspan.cli.campaign import Status, draw, interruptible


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A campaign that ran, and the status that its events led to."""
    folder = tmp_path_factory.mktemp("view")
    write_files(folder)
    first = campaign_of(
        folder,
        control={"n": 4, "gold": "truth.csv", "share": 0.2},
        aggregate={"method": "mv-token"},
        redundancy={"stop": "clear_majority(ahead=2, least=2)"},
        model={"name": "none"},
    )
    status = Status.of(first.inputs, first.ledger)
    Campaign(first.inputs, first.ledger, on_event=status.hear).run()
    yield first, status
    first.ledger.close()


def drawn(status, width=100):
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False, color_system=None).print(draw(status))
    return out.getvalue()


def test_what_was_heard_is_what_the_ledger_says(ended):
    campaign, status = ended
    read = Status.of(campaign.inputs, campaign.ledger)
    assert (status.answers, status.spent) == (read.answers, read.spent)
    assert (status.round, status.items) == (2, 16)
    assert status.facts == read.facts
    assert status.decision == "stop: no item of the pool is left to pick"


def test_a_terminal_shows_items_answers_money_and_score(ended):
    _, status = ended
    score = {"value": 0.9, "low": 0.8, "high": 0.95}
    facts = {**status.facts, "model": "naive-bayes", "score": score}
    text = drawn(replace(status, facts=facts))
    for words in (
        "weather · round 2",
        "16 of 16",
        f"{status.answers}, ",
        f"{status.spent / 1e6:.2f} of 8.00",
        "naive-bayes  accuracy 90.0 (80.0 to 95.0)",
        "against the hidden gold",
        "stop: no item of the pool is left to pick",
    ):
        assert words in text


def test_a_narrow_terminal_is_not_overrun(ended):
    assert max(map(len, drawn(ended[1], width=50).splitlines())) <= 50


def test_answers_are_counted_once_and_none_that_is_refused(ended):
    campaign, _ = ended
    heard = []
    Campaign(campaign.inputs, campaign.ledger, on_event=heard.append).run()
    assert not [one for one in heard if isinstance(one, AnswerTaken)]  # they were there before


def test_uncertain_items_are_those_asked_about_again():
    status = Status("c", "F1", "EUR", 10, 100)
    assert "uncertain" not in drawn(status)
    status.hear(AskedAgain(1))
    status.hear(AnswerTaken(7))
    assert "1, 1 uncertain item\n" in drawn(status)
    assert (status.answers, status.spent) == (1, 7)


def test_a_campaign_stops_between_two_steps_and_a_new_one_ends_like_one_that_ran_through(
    ended, tmp_path
):
    first, _ = ended
    write_files(tmp_path)
    inputs, place = first.inputs, tmp_path / "stopped.sqlite"
    ledger, heard, n_stops = ledger_of(inputs, place), [], 0
    for after in count(1):
        heard.clear()
        campaign = Campaign(
            inputs, ledger, on_event=heard.append, stop_requested=lambda n=after: len(heard) >= n
        )
        try:
            campaign.run()
        except KeyboardInterrupt:
            n_stops += 1
            continue
        break
    assert n_stops > 5
    assert [one.body for one in ledger.events()] == [one.body for one in first.ledger.events()]
    ledger.close()


def test_the_first_ctrl_c_waits_and_the_second_does_not():
    with interruptible() as typed:
        assert not typed()
        signal.raise_signal(signal.SIGINT)
        assert typed()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_names_are_no_markup():
    assert "[red]x" in drawn(Status("[red]x", "F1", "", 10, 0, now="[/nothing]"))
