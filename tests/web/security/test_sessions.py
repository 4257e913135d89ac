"""Sessions end at their time, when idle, at logout, with the password and with the link."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from goldspan.web import Entrance, Keys, ServerSettings
from goldspan.web.errors import Refused
from goldspan.web.security import account, sessions
from goldspan.web.security import entrance as csrf
from goldspan.web.security.entrance import FormSeal
from web.houses import DAY, HOUR, KEYS, MINUTE, PASSWORD, Clock, Records


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger():
    return Records()


@pytest.fixture
def entrance(ledger, clock):
    return Entrance.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))


def holds(entrance, role, cookie):
    try:
        return entrance.sessions.read(role, cookie).role == role
    except Refused as refused:
        return (refused.code, refused.status) != ("session", 401)


def work(entrance, days=100.0):
    """Return the link and the cookie of a worker."""
    ((link, _),) = entrance.links.make(["ann"], days)
    return link, entrance.sessions.cookie(entrance.sessions.begin_work(link))


def desk(entrance):
    return entrance.sessions.cookie(entrance.sessions.begin_desk())


def test_a_worker_is_known_for_thirty_days(entrance, clock):
    _, cookie = work(entrance)
    assert entrance.sessions.read("worker", cookie).person == "ann"
    clock.now += 30 * DAY - 1
    assert holds(entrance, "worker", cookie)
    clock.now += 1
    assert not holds(entrance, "worker", cookie)


def test_a_worker_is_known_no_longer_than_the_link_holds(entrance, clock):
    _, cookie = work(entrance, days=1)
    clock.now += DAY
    assert not holds(entrance, "worker", cookie)


def test_a_worker_whose_link_is_revoked_is_out(entrance):
    link, cookie = work(entrance)
    entrance.links.revoke(link.id)
    assert not holds(entrance, "worker", cookie)


def test_a_requester_who_does_nothing_for_an_hour_is_out(entrance, clock):
    cookie = desk(entrance)
    for _ in range(5):
        clock.now += 59 * MINUTE
        assert holds(entrance, "desk", cookie)
    clock.now += 60 * MINUTE
    assert not holds(entrance, "desk", cookie)


def test_a_requester_is_out_after_twelve_hours_whatever_is_done(entrance, clock):
    cookie = desk(entrance)
    for _ in range(23):
        clock.now += 30 * MINUTE
        assert holds(entrance, "desk", cookie)
    clock.now += 30 * MINUTE
    assert not holds(entrance, "desk", cookie)


def test_looking_whether_a_session_holds_does_not_prolong_it(entrance, clock):
    session = entrance.sessions.begin_desk()
    for _ in range(3):
        clock.now += 19 * MINUTE
        assert entrance.sessions.holds(session)
    clock.now += 3 * MINUTE
    assert not entrance.sessions.holds(session)


def test_after_a_restart_idle_time_counts_from_the_beginning(entrance, ledger, clock):
    cookie = desk(entrance)
    clock.now += 50 * MINUTE
    assert holds(entrance, "desk", cookie)
    again = Entrance.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
    assert holds(again, "desk", cookie)
    clock.now += 20 * MINUTE
    later = Entrance.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
    assert not holds(later, "desk", cookie)


def test_a_copy_of_the_cookie_is_worth_nothing_after_the_logout(entrance, ledger, clock):
    _, worker = work(entrance)
    for role, cookie in (("worker", worker), ("desk", desk(entrance))):
        entrance.sessions.end(entrance.sessions.read(role, cookie))
        assert not holds(entrance, role, cookie)
        again = Entrance.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
        assert not holds(again, role, cookie)


def test_a_new_password_ends_the_requesters_sessions_and_no_workers(entrance):
    _, worker = work(entrance)
    before = desk(entrance)
    entrance.account.choose(entrance.account.open_setup(), PASSWORD)
    assert not holds(entrance, "desk", before)
    after = desk(entrance)
    assert holds(entrance, "desk", after)
    assert holds(entrance, "worker", worker)
    entrance.account.reset()
    assert not holds(entrance, "desk", after)


def test_a_cookie_of_one_role_opens_no_other_door(entrance):
    _, worker = work(entrance)
    assert not holds(entrance, "desk", worker)
    assert not holds(entrance, "worker", desk(entrance))
    assert not holds(entrance, "worker", None)
    assert not holds(entrance, "worker", "")


def test_a_cookie_of_another_campaign_or_server_is_none(entrance, ledger, clock):
    for campaign, keys in (("names-2", KEYS), ("names-1", Keys(bytes(32)))):
        other = Entrance.of(ledger, campaign, ServerSettings(keys, clock=clock))
        _, cookie = work(other)
        assert holds(other, "worker", cookie)
        assert not holds(entrance, "worker", cookie)


def test_a_cookie_whose_facts_have_another_form_is_none(entrance):
    session = entrance.sessions.begin_desk()
    signed = entrance.sessions._seal.sign({**asdict(session), "more": 1})
    assert not holds(entrance, "desk", signed)


def test_nobody_gets_the_same_session_twice(entrance):
    ((link, _),) = entrance.links.make(["ann"], 1)
    assert len({entrance.sessions.begin_work(link).id for _ in range(9)}) == 9


def test_no_memory_is_kept_of_cookies_that_others_make_up(entrance, monkeypatch):
    for n in range(50):
        assert not holds(entrance, "worker", f"guess{n}")
        assert not holds(entrance, "desk", f"{n}" + "a" * 100_000)
    assert not entrance.sessions._opened
    monkeypatch.setattr(sessions, "KEPT", 5)
    for _ in range(9):
        _, cookie = work(entrance)
        assert holds(entrance, "worker", cookie)
    assert len(entrance.sessions._opened) == 5


def test_a_cookie_that_is_too_long_is_not_looked_at(entrance, monkeypatch):
    monkeypatch.setattr(entrance.sessions._seal, "read", None)
    assert not holds(entrance, "worker", "a" * 4_001)


def test_sessions_that_would_be_over_anyway_are_not_read_again(entrance, ledger, clock):
    asked = []
    records = ledger.records
    ledger.records = lambda kind: asked.append(kind) or records(kind)
    link, cookie = work(entrance)
    for _ in range(9):
        entrance.sessions.end(entrance.sessions.begin_work(link))
    old = set(asked)
    clock.now += 61 * DAY
    ((link, _),) = entrance.links.make(["bob"], 30)
    asked.clear()
    session = entrance.sessions.begin_work(link)
    assert entrance.sessions.holds(session)
    assert sessions.ended_kind(session) in asked
    assert not {kind for kind in asked if kind.startswith(sessions.ENDED)} & old
    assert not holds(entrance, "worker", cookie)


@pytest.mark.parametrize("role", ["worker", "desk"])
def test_a_session_is_read_with_what_was_at_hand_though_it_is_old_by_then(
    entrance, ledger, clock, role
):
    cookie = work(entrance)[1] if role == "worker" else desk(entrance)
    assert holds(entrance, role, cookie)
    facts = entrance.sessions.at_hand(role, cookie)
    assert facts is not None
    clock.now += 1_000
    ledger.records = None  # whoever reads breaks
    assert entrance.sessions.read(role, cookie, facts).role == role
    assert entrance.sessions.at_hand(role, cookie) is None


@pytest.mark.parametrize("role", ["worker", "desk"])
def test_what_is_no_cookie_is_refused_without_the_ledger(entrance, ledger, role):
    ledger.records = None
    for cookie in (None, "", "guess", "a" * 9_000):
        facts = entrance.sessions.at_hand(role, cookie)
        with pytest.raises(Refused):
            entrance.sessions.read(role, cookie, facts)


def test_the_memory_of_idle_sessions_is_bounded(entrance, clock):
    for _ in range(50):
        entrance.sessions.begin_desk()
        clock.now += HOUR
    assert len(entrance.sessions._seen) < 15


def test_the_token_of_a_page_belongs_to_one_session(entrance):
    first, second = entrance.sessions.begin_desk(), entrance.sessions.begin_desk()
    token = entrance.sessions.csrf(first)
    assert entrance.sessions.is_csrf(first, token)
    assert not entrance.sessions.is_csrf(second, token)
    for bad in (None, "", token[:-1], token.upper(), "é", first.id):
        assert not entrance.sessions.is_csrf(first, bad)


def test_what_a_browser_keeps_is_named_alike_on_every_visit_and_unlike_for_others(entrance):
    ((ann, _),) = entrance.links.make(["ann"], 1)
    ((bob, _),) = entrance.links.make(["bob"], 1)
    begin, scope = entrance.sessions.begin_work, entrance.sessions.scope
    assert scope(begin(ann)) == scope(begin(ann)) != scope(begin(bob))
    assert "ann" not in scope(begin(ann))
    assert scope(replace(begin(ann), campaign="names-2")) != scope(begin(ann))


def test_a_form_fits_the_cookie_that_came_with_it():
    forms = FormSeal(KEYS.of("form"))
    cookie, other = forms.new(), forms.new()
    assert forms.fits(cookie, forms.token(cookie))
    assert not forms.fits(other, forms.token(cookie))
    assert not forms.fits(None, forms.token(""))
    assert not forms.fits("", forms.token(""))
    assert not forms.fits(cookie, "")


def test_secrets_are_compared_in_constant_time(entrance, monkeypatch):
    seen = []

    def watched(a, b):
        seen.append((a, b))
        return a == b

    for module in (csrf, sessions, account):
        monkeypatch.setattr(module, "compare_digest", watched)
    session = entrance.sessions.begin_desk()
    assert entrance.sessions.is_csrf(session, entrance.sessions.csrf(session))
    assert not FormSeal(bytes(32)).fits("cookie", "token")
    with pytest.raises(Refused):
        entrance.account.check_setup("guess")
    assert len(seen) == 3
