"""Logging in by OpenID Connect: who may, comes in; nothing forged, old or replayed does."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("authlib")

import httpx2

from goldspan.campaign import read_plan
from goldspan.campaign.section import OpenId
from goldspan.errors import FaultsError
from goldspan.web.security import oidc
from goldspan.web.security.oidc import role_of
from goldspan.web.service import open_service
from goldspan.web.settings import Rate, Rates
from web.desks import Served
from web.oidc_provider import ALICE, CLIENT, SECRET, Provider
from web.serving import KEYS, Clock, plan_file, serve

MAY = {"requesters": ["alice@example.org"], "reviewer_subjects": ["u-2"]}


@pytest.fixture(scope="module")
def one_provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def provider(one_provider):
    one_provider.person, one_provider.claims, one_provider.wrong = dict(ALICE), {}, set()
    one_provider.codes, one_provider.seen = {}, []
    keys = one_provider.keys
    yield one_provider
    one_provider.keys = keys


def open_campaign(folder, **section):
    """Open a campaign whose plan has a provider."""
    path = plan_file(folder, oidc=section)
    return open_service(path, folder / "out", KEYS, clock=Clock(round(time.time() * 1000)))


@pytest.fixture
def served(tmp_path, provider, monkeypatch):
    monkeypatch.setenv("GOLDSPAN_OIDC_SECRET", SECRET)
    service = open_campaign(tmp_path, issuer=provider.issuer, client_id=CLIENT, local=True, **MAY)
    yield Served(service=service)
    service.close()


def leave(browser):
    """Go to the provider, and return the address to which it sends the browser back."""
    begun = browser.get("/login/oidc")
    assert begun.status_code == 303, begun.text
    with httpx2.Client(trust_env=False) as other:
        back = other.get(begun.headers["location"]).headers["location"]
    url = urlsplit(back)
    assert url.path == "/login/oidc/callback"
    return f"{url.path}?{url.query}"


def log_in(served, browser=None):
    browser = browser or served.browser()
    return browser, browser.get(leave(browser))


def is_in(browser):
    return browser.get("/api/desk/overview").status_code == 200


def test_a_requester_comes_in(served, provider, caplog):
    with caplog.at_level(logging.DEBUG):
        browser, told = log_in(served)
    assert told.status_code == 200
    assert told.headers["refresh"] == "0; url=/desk"
    assert is_in(browser)
    assert browser.get("/desk").status_code == 200
    asked, form = provider.seen
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["scope"] == "openid email"
    assert asked["redirect_uri"] == f"{served.url}/login/oidc/callback"
    assert "code_verifier" in form
    assert "client_secret" not in form
    secret = [SECRET, asked["state"], asked["nonce"], form["code"], form["code_verifier"],
              "alice", "u-1"]  # fmt: skip
    told = [one.getMessage() for one in caplog.records if one.name.startswith("goldspan")]
    assert any("logged in by OpenID Connect as desk" in line for line in told)
    said = "\n".join(told).casefold()
    assert [one for one in secret if one.casefold() in said] == []
    assert 'href="/login/oidc"' in served.browser().get("/login").text


def test_a_reviewer_comes_in_as_one(served, provider):
    provider.person = {"sub": "u-2"}
    browser, told = log_in(served)
    assert told.headers["refresh"] == "0; url=/desk/review"
    assert browser.get("/desk/review").status_code == 200
    assert browser.get("/api/desk/uncertain").status_code == 200
    assert browser.get("/api/desk/overview").status_code == 403


@pytest.mark.parametrize(
    "person",
    [
        {"sub": "u-9", "email": "eve@example.org", "email_verified": True},
        {"sub": "u-9", "email": "alice@example.org"},
        {"sub": "u-9", "email": "alice@example.org", "email_verified": False},
        {"sub": "u-9", "email": "alice@example.org", "email_verified": "true"},
        {"sub": "alice@example.org"},
        {"sub": "sub:u-2"},
        {"sub": "u-9", "email": "u-2", "email_verified": True},
        {"sub": "u-9", "email": "sub:u-2", "email_verified": True},
        {"sub": "u-9", "email": "alice@example.org\u3000", "email_verified": True},
    ],
)
def test_who_is_not_named_stays_outside(served, provider, person):
    provider.person = person
    browser, told = log_in(served)
    assert told.status_code == 403
    assert "may not enter here" in told.text
    assert not is_in(browser)


@pytest.mark.parametrize(
    "fault",
    ["signature", "payload", "none", "symmetric", "no token", "down", "html", "array", "deep",
     "deep header"],
)  # fmt: skip
def test_a_token_that_the_provider_has_not_signed_is_refused(served, provider, fault):
    browser = served.browser()
    back = leave(browser)
    provider.wrong = {fault}
    told = browser.get(back)
    assert told.status_code == 502
    assert not is_in(browser)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"aud": [CLIENT, "another-client"]},
        {"aud": [CLIENT, "another-client"], "azp": "another-client"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"nbf": 10**11},
        {"iat": 10**11, "exp": 10**11 + 300},
        {"sub": None},
        {"sub": 7},
        {"at_hash": "AAAA"},
        {"exp": "soon"},
    ],
    ids=str,
)
def test_a_token_for_somebody_else_or_another_time_is_refused(served, provider, claims):
    provider.claims = dict(claims)
    browser, told = log_in(served)
    assert told.status_code == 502
    assert not is_in(browser)


def test_an_audience_of_several_is_taken_if_the_token_is_for_this_client(served, provider):
    provider.claims = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert is_in(log_in(served)[0])


def test_a_token_that_has_just_expired_is_taken_for_a_minute(served, provider):
    now = int(time.time())
    provider.claims = {"iat": now - 330, "exp": now - 30}
    assert is_in(log_in(served)[0])
    provider.claims = {"iat": now - 900, "exp": now - 600}
    assert not is_in(log_in(served)[0])


def test_a_state_is_used_once(served):
    browser = served.browser()
    back = leave(browser)
    cookie = browser.cookies["goldspan_oidc"]
    assert browser.get(back).status_code == 200
    thief = served.browser()
    thief.cookies.set("goldspan_oidc", cookie)
    told = thief.get(back)
    assert told.status_code == 403
    assert "was used before" in told.text
    assert not is_in(thief)


@pytest.mark.parametrize("state", ["", "x" * 43, None])
def test_a_state_of_another_browser_is_refused(served, state):
    browser, victim = served.browser(), served.browser()
    back = leave(browser)
    leave(victim)  # it has a cookie of its own
    assert victim.get(back).status_code == 403  # logged in as somebody else by a foreign page
    assert served.browser().get(back).status_code == 403  # no cookie at all
    code = parse_qs(urlsplit(back).query)["code"][0]
    query = f"code={code}" + ("" if state is None else f"&state={state}")
    assert browser.get(f"/login/oidc/callback?{query}").status_code == 403
    assert not is_in(browser)
    assert not is_in(victim)


def test_a_cookie_of_another_server_or_of_long_ago_is_refused(served):
    browser = served.browser()
    back = leave(browser)
    served.service.clock.time += 10 * 60_000
    told = browser.get(back)
    assert told.status_code == 403
    assert "took too long" in told.text
    browser.cookies.set("goldspan_oidc", "e30.AAAA")
    assert browser.get(back).status_code == 403


def test_who_says_no_at_the_provider_or_comes_from_another_is_refused(served):
    for more in ("error=access_denied", "code=a&iss=https://evil.example", "code=", "code=made-up"):
        browser = served.browser()
        state = parse_qs(urlsplit(leave(browser)).query)["state"][0]
        told = browser.get(f"/login/oidc/callback?state={state}&{more}")
        assert told.status_code in {403, 502}
        assert not is_in(browser)


@pytest.mark.parametrize("fault", ["issuer", "endpoint", "down", "html", "array", "deep"])
def test_a_provider_whose_description_is_wrong_is_not_used(served, provider, fault):
    provider.wrong = {fault}
    browser = served.browser()
    begun = browser.get("/login/oidc")
    if fault == "endpoint":
        back = leave(browser)
        begun = browser.get(back)
    assert begun.status_code == 502
    assert not is_in(browser)


def test_new_keys_of_the_provider_are_looked_for(served, provider, monkeypatch):
    assert is_in(log_in(served)[0])
    provider.rotate()
    assert not is_in(log_in(served)[0])  # not asked again and again
    monkeypatch.setattr(oidc, "PATIENCE", 0.0)
    assert is_in(log_in(served)[0])


def test_the_client_needs_its_secret(served, monkeypatch):
    monkeypatch.setenv("GOLDSPAN_OIDC_SECRET", "another")
    assert not is_in(log_in(served)[0])
    monkeypatch.delenv("GOLDSPAN_OIDC_SECRET")
    assert not is_in(log_in(served)[0])


def test_tries_are_limited_as_those_of_a_password(served):
    browser = Served(service=served.service, rates=Rates(login=Rate(5 / 60, 5))).browser()
    codes = [browser.get("/login/oidc/callback?state=x").status_code for _ in range(7)]
    assert codes == [403] * 5 + [429] * 2
    assert browser.get("/login/oidc").status_code == 429


def test_a_session_ends_when_the_plan_lets_others_in_or_the_password_is_reset(served, provider):
    browser, _ = log_in(served)
    reviewing = served.browser()
    provider.person = {"sub": "u-2"}
    log_in(served, reviewing)
    assert is_in(browser)
    policy = served.auth.sessions.policy
    served.auth.sessions.policy = "oidc of another plan"
    assert not is_in(browser)
    assert reviewing.get("/api/desk/uncertain").status_code == 401
    provider.person = dict(ALICE)
    served.auth.sessions.policy = policy
    browser, _ = log_in(served)
    assert is_in(browser)
    served.auth.account.reset()
    served.service.clock.time += 1_000
    assert not is_in(browser)


def test_a_campaign_without_a_provider_has_no_such_login(tmp_path):
    with closing(serve(tmp_path)) as service:
        browser = Served(service=service).browser()
        assert browser.get("/login/oidc").status_code == 404
        assert "/login/oidc" not in browser.get("/login").text


# ---- who enters as what ----


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["staff", "admins"]}, "desk"),
        ({"groups": ["checkers"]}, "reviewer"),
        ({"groups": ["checkers", "admins"]}, "desk"),
        ({"groups": "admins"}, "desk"),
        ({"groups": ["admin"]}, None),
        ({"groups": {"admins": True}}, None),
        ({"groups": [["admins"]]}, None),
        ({}, None),
    ],
)
def test_a_claim_lets_people_in(claims, role):
    plan = OpenId(
        issuer="https://a", client_id="c", claim="groups", requester_values=("admins",),
        reviewer_values=("checkers",),
    )  # fmt: skip
    assert role_of(plan, {"sub": "u", **claims}) == role


@pytest.mark.parametrize(
    ("email", "role"),
    [
        ("BOSS@Example.org", "desk"),
        ("bo\u017f\u017f@example.org", None),
        ("bo\u00df@example.org", None),
    ],
)
def test_addresses_differ_in_all_but_the_case_of_ascii(email, role):
    plan = OpenId(issuer="https://a", client_id="c", requesters=("Boss@example.org",))
    assert role_of(plan, {"sub": "u", "email": email, "email_verified": True}) == role


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"issuer": "http://a.example", "client_id": "c", **MAY}, "oidc.issuer: must be"),
        ({"issuer": "https://u:p@a.example", "client_id": "c", **MAY}, "oidc.issuer: must be"),
        ({"issuer": "https://a.example", "client_id": "c"}, "nobody could log in"),
        ({"issuer": "https://a.example", "client_id": " ", **MAY}, "client_id: is empty"),
        ({"issuer": "https://a.example", "client_id": "c", "claim": "groups", **MAY}, "oidc.claim"),
        ({"issuer": "https://a.example", "client_id": "c", "requesters": ["sub:a"]}, "no e-mail"),
        ({"issuer": "https://a.example", "client_id": "c", "secret": "s3cret", **MAY}, "variable"),
        ({"issuer": "https://a.example", **MAY}, "oidc.client_id: is missing"),
    ],
)
def test_a_faulty_section_is_refused_with_the_plan(tmp_path, section, words):
    with pytest.raises(FaultsError, match=words):
        open_campaign(tmp_path, **section)


def test_the_section_is_no_part_of_what_a_campaign_is_known_by(tmp_path):
    path = plan_file(tmp_path)
    plain = read_plan(path)
    section = {"issuer": "https://a.example", "client_id": "c", "requester_subjects": ["a"]}
    plan_file(tmp_path, oidc=section)
    assert read_plan(path).model_dump(mode="json") == plain.model_dump(mode="json")
