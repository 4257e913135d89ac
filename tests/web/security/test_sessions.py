"""Sessions end at their time, when idle, at logout, with the password and with the link."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from goldspan.web import Auth, ServerSettings
from goldspan.web.errors import Refused
from goldspan.web.security import access as csrf
from goldspan.web.security import account, sessions
from goldspan.web.security.access import FormSigner
from web.played import DAY, HOUR, KEYS, MINUTE, PASSWORD


def holds(auth, role, cookie):
    try:
        return auth.sessions.read(role, cookie).role == role
    except Refused as refused:
        return (refused.code, refused.status) != ("session", 401)


def work(auth, days=100.0):
    """Return the link and the cookie of a worker."""
    ((link, _),) = auth.links.make(["ann"], days)
    return link, auth.sessions.cookie(auth.sessions.begin_work(link))


def desk(auth):
    return auth.sessions.cookie(auth.sessions.begin_desk())


def test_a_worker_is_known_for_thirty_days(auth, clock):
    _, cookie = work(auth)
    assert auth.sessions.read("worker", cookie).person == "ann"
    clock.now += 30 * DAY - 1
    assert holds(auth, "worker", cookie)
    clock.now += 1
    assert not holds(auth, "worker", cookie)


def test_a_worker_is_known_no_longer_than_the_link_holds(auth, clock):
    _, cookie = work(auth, days=1)
    clock.now += DAY
    assert not holds(auth, "worker", cookie)


def test_a_requester_is_out_after_twelve_hours_whatever_is_done(auth, clock):
    cookie = desk(auth)
    for _ in range(23):
        clock.now += 30 * MINUTE
        assert holds(auth, "desk", cookie)
    clock.now += 30 * MINUTE
    assert not holds(auth, "desk", cookie)


def test_looking_whether_a_session_holds_does_not_prolong_it(auth, clock):
    session = auth.sessions.begin_desk()
    for _ in range(3):
        clock.now += 19 * MINUTE
        assert auth.sessions.holds(session)
    clock.now += 3 * MINUTE
    assert not auth.sessions.holds(session)


def test_after_a_restart_idle_time_counts_from_the_beginning(auth, ledger, clock):
    cookie = desk(auth)
    clock.now += 50 * MINUTE
    assert holds(auth, "desk", cookie)
    again = Auth.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
    assert holds(again, "desk", cookie)
    clock.now += 20 * MINUTE
    later = Auth.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
    assert not holds(later, "desk", cookie)


def test_a_new_password_ends_the_requesters_sessions_and_no_workers(auth):
    _, worker = work(auth)
    before = desk(auth)
    auth.account.choose(auth.account.open_setup(), PASSWORD)
    assert not holds(auth, "desk", before)
    after = desk(auth)
    assert holds(auth, "desk", after)
    assert holds(auth, "worker", worker)
    auth.account.reset()
    assert not holds(auth, "desk", after)


def test_a_cookie_whose_facts_have_another_form_is_none(auth):
    session = auth.sessions.begin_desk()
    signed = auth.sessions._seal.sign({**asdict(session), "more": 1})
    assert not holds(auth, "desk", signed)


def test_no_memory_is_kept_of_cookies_that_others_make_up(auth, monkeypatch):
    for n in range(50):
        assert not holds(auth, "worker", f"guess{n}")
        assert not holds(auth, "desk", f"{n}" + "a" * 100_000)
    assert not auth.sessions._opened
    monkeypatch.setattr(sessions, "KEPT", 5)
    for _ in range(9):
        _, cookie = work(auth)
        assert holds(auth, "worker", cookie)
    assert len(auth.sessions._opened) == 5


def test_a_cookie_that_is_too_long_is_not_looked_at(auth, monkeypatch):
    monkeypatch.setattr(auth.sessions._seal, "read", None)
    assert not holds(auth, "worker", "a" * 4_001)


def test_sessions_that_would_be_over_anyway_are_not_read_again(auth, ledger, clock):
    asked = []
    records = ledger.records
    ledger.records = lambda kind: asked.append(kind) or records(kind)
    link, cookie = work(auth)
    for _ in range(9):
        auth.sessions.end(auth.sessions.begin_work(link))
    old = set(asked)
    clock.now += 61 * DAY
    ((link, _),) = auth.links.make(["bob"], 30)
    asked.clear()
    session = auth.sessions.begin_work(link)
    assert auth.sessions.holds(session)
    assert sessions.ended_kind(session) in asked
    assert not {kind for kind in asked if kind.startswith(sessions.ENDED)} & old
    assert not holds(auth, "worker", cookie)


@pytest.mark.parametrize("role", ["worker", "desk"])
def test_a_session_is_read_with_what_was_at_hand_though_it_is_old_by_then(
    auth, ledger, clock, role
):
    cookie = work(auth)[1] if role == "worker" else desk(auth)
    assert holds(auth, role, cookie)
    facts = auth.sessions.at_hand(role, cookie)
    assert facts is not None
    clock.now += 1_000
    ledger.records = None  # whoever reads breaks
    assert auth.sessions.read(role, cookie, facts).role == role
    assert auth.sessions.at_hand(role, cookie) is None


@pytest.mark.parametrize("role", ["worker", "desk"])
def test_what_is_no_cookie_is_refused_without_the_ledger(auth, ledger, role):
    ledger.records = None
    for cookie in (None, "", "guess", "a" * 9_000):
        facts = auth.sessions.at_hand(role, cookie)
        with pytest.raises(Refused):
            auth.sessions.read(role, cookie, facts)


def test_the_memory_of_idle_sessions_is_bounded(auth, clock):
    for _ in range(50):
        auth.sessions.begin_desk()
        clock.now += HOUR
    assert len(auth.sessions._seen) < 15


def test_the_token_of_a_page_belongs_to_one_session(auth):
    first, second = auth.sessions.begin_desk(), auth.sessions.begin_desk()
    token = auth.sessions.csrf(first)
    assert auth.sessions.is_csrf(first, token)
    assert not auth.sessions.is_csrf(second, token)
    for bad in (None, "", token[:-1], token.upper(), "é", first.id):
        assert not auth.sessions.is_csrf(first, bad)


def test_what_a_browser_keeps_is_named_alike_on_every_visit_and_unlike_for_others(auth):
    ((ann, _),) = auth.links.make(["ann"], 1)
    ((bob, _),) = auth.links.make(["bob"], 1)
    begin, scope = auth.sessions.begin_work, auth.sessions.scope
    assert scope(begin(ann)) == scope(begin(ann)) != scope(begin(bob))
    assert "ann" not in scope(begin(ann))
    assert scope(replace(begin(ann), campaign="names-2")) != scope(begin(ann))


def test_a_form_fits_the_cookie_that_came_with_it():
    forms = FormSigner(KEYS.of("form"))
    cookie, other = forms.new(), forms.new()
    assert forms.fits(cookie, forms.token(cookie))
    assert not forms.fits(other, forms.token(cookie))
    assert not forms.fits(None, forms.token(""))
    assert not forms.fits("", forms.token(""))
    assert not forms.fits(cookie, "")


def test_secrets_are_compared_in_constant_time(auth, monkeypatch):
    seen = []

    def watched(a, b):
        seen.append((a, b))
        return a == b

    for module in (csrf, sessions, account):
        monkeypatch.setattr(module, "compare_digest", watched)
    session = auth.sessions.begin_desk()
    assert auth.sessions.is_csrf(session, auth.sessions.csrf(session))
    assert not FormSigner(bytes(32)).fits("cookie", "token")
    with pytest.raises(Refused):
        auth.account.check_setup("guess")
    assert len(seen) == 3
