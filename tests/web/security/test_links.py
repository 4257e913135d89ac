"""A worker's link holds for its worker, its campaign and its days, until it is taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goldspan.errors import FaultsError, InputError
from goldspan.web import Auth, Keys, ServerSettings
from goldspan.web.errors import Refused
from web.played import BEGIN, DAY, KEYS, Clock, Records


def auth(ledger=None, clock=None, campaign="names-1", keys=KEYS):
    settings = ServerSettings(keys, clock=clock or Clock())
    return Auth.of(ledger or Records(), campaign, settings)


def one(links, worker="ann", days=30.0):
    ((link, token),) = links.make([worker], days)
    return link, token


def test_a_link_is_read_as_it_was_made():
    links = auth().links
    link, token = one(links, days=2)
    assert links.read(token) == link
    assert (link.worker, link.issued, link.expires) == ("ann", BEGIN, BEGIN + 2 * DAY)
    assert links.all() == [link]


def test_the_token_itself_is_kept_nowhere():
    ledger = Records()
    _, token = one(auth(ledger).links)
    assert token not in str(ledger.kept)
    assert token.rpartition(".")[2] not in str(ledger.kept)


def test_it_holds_until_its_last_millisecond():
    clock = Clock()
    links = auth(clock=clock).links
    link, token = one(links, days=1)
    clock.now = link.expires - 1
    assert links.read(token)
    clock.now += 1
    with pytest.raises(Refused, match="expired"):
        links.read(token)


def test_one_that_was_revoked_holds_no_more_and_another_does():
    links = auth().links
    (first, gone), (_, kept) = *links.make(["ann"], 1), *links.make(["bob"], 1)
    links.revoke(first.id)
    links.revoke(first.id)
    with pytest.raises(Refused, match="was revoked"):
        links.read(gone)
    assert links.read(kept).worker == "bob"
    assert [link.revoked for link in links.all()] == [True, False]


def test_what_another_process_revokes_ends_within_a_second():
    ledger, clock = Records(), Clock()
    here, there = auth(ledger, clock).links, auth(ledger, clock).links
    link, token = one(here)
    assert here.read(token)
    there.revoke(link.id)
    clock.now += 1_000
    with pytest.raises(Refused, match="was revoked"):
        here.read(token)


@pytest.mark.parametrize("other", [{"campaign": "names-2"}, {"keys": Keys(bytes(32))}])
def test_one_of_another_campaign_or_server_does_not_hold(other):
    _, token = one(auth(**other).links)
    with pytest.raises(Refused, match="is not valid here"):
        auth().links.read(token)


def test_a_link_with_other_facts_needs_the_secret():
    links = auth().links
    link, token = one(links)
    body, _, mark = token.rpartition(".")
    forged = links.token(replace(link, worker="bob")).rpartition(".")[0]
    for bad in (f"{forged}.{mark}", f"{body}.", body, "", f"{token}x", f".{token}"):
        with pytest.raises(Refused, match="not valid"):
            links.read(bad)


@pytest.mark.parametrize("days", [0, -1, 367, float("nan"), float("inf")])
def test_days_that_make_no_sense_are_refused(days):
    with pytest.raises(InputError, match="up to 366 days"):
        auth().links.make(["ann"], days)


def test_all_faulty_names_are_told_at_once_and_nothing_is_made():
    links = auth().links
    with pytest.raises(FaultsError) as refused:
        links.make(["ann", "", " ", "a\nb", "a\0", "x" * 201, "ann", "\ud800"], 1)
    assert len(refused.value.faults) == 7
    assert links.all() == []
    with pytest.raises(InputError, match="at least one"):
        links.make([], 1)


def test_links_lead_to_where_the_server_was_last():
    links = auth().links
    assert links.place() is None
    for url in (
        "http://127.0.0.1:8080",
        "https://labels.example.org",
        "https://labels.example.org",
    ):
        links.move(url)
        assert links.place() == url
    links.move("http://127.0.0.1:8080")
    assert links.place() == "http://127.0.0.1:8080"
