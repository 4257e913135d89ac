"""People come in by their link or password, and leave; cookies and pages give nothing away."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.cookies import SimpleCookie

import pytest

from goldspan.web import ServerSettings
from goldspan.web.security import account as limits
from goldspan.web.security import account as passwords
from goldspan.web.settings import Rate, Rates
from web.played import DAY, HOUR, KEYS, MINUTE, PASSWORD, Played, choose, code_of, field_of

SECURE = ServerSettings(KEYS, "https://labels.example.org")


@pytest.fixture
def server():
    return Played()


def cookie_of(answer, name):
    """Return a cookie that an answer sets, with its attributes."""
    for line in answer.headers.get_list("set-cookie"):
        found = SimpleCookie(line)
        if name in found:
            return found[name]
    raise KeyError(name)


def open_login(browser):
    return field_of(browser.get("/login"), "csrf")


def log_in(browser, password=PASSWORD):
    return browser.post("/login", data={"csrf": open_login(browser), "password": password})


def test_a_link_is_exchanged_for_a_cookie_and_leaves_the_address_bar(server):
    browser, link = server.browser(), server.link("ann")
    answer = browser.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert link.rpartition("/")[2] not in answer.text
    assert browser.get("/api/work/me").status_code == 200
    assert server.work.calls == [("me", "ann")]


@pytest.mark.torture("links and cookies are forged", "none is taken")
@pytest.mark.parametrize("kind", ["expired", "revoked", "cut", "other campaign", "nonsense"])
def test_a_link_that_does_not_hold_gives_no_cookie_and_says_why(server, kind):
    link, words = server.link(days=1), "not valid here"
    if kind == "expired":
        server.clock.now += DAY
        words = "has expired"
    elif kind == "revoked":
        server.auth.links.revoke(server.auth.links.all()[0].id)
        words = "was revoked"
    elif kind == "cut":
        link = link[:-5]
    elif kind == "other campaign":
        link = Played(key="weather-2").link()
    else:
        link = "/w/%00%ff<script>"
    answer = server.browser().get(link)
    assert answer.status_code == 403
    assert words in answer.text
    assert "set-cookie" not in answer.headers
    assert link.rpartition("/")[2] not in answer.text


def test_who_tries_links_is_stopped_and_who_has_one_is_not():
    server = Played(settings=ServerSettings(KEYS, rates=Rates(join=Rate(0.1, 3))))
    browser, link = server.browser(), server.link()
    assert [browser.get(f"/w/guess{n}").status_code for n in range(5)] == [403, 403, 403, 429, 429]
    assert browser.get("/setup/guess").status_code == 429
    assert browser.get(link).status_code == 303
    assert server.browser("198.51.100.1").get("/w/guess").status_code == 403


def test_a_link_begins_sessions_now_and_then_and_not_without_end():
    server = Played(settings=ServerSettings(KEYS, rates=Rates(link=Rate(0.1, 3))))
    link, other = server.link("ann"), server.link("bob")
    assert [server.browser().get(link).status_code for _ in range(5)] == [303] * 3 + [429] * 2
    assert server.browser().get(other).status_code == 303
    server.clock.now += 10_000
    assert server.browser().get(link).status_code == 303


def test_a_session_that_was_there_is_not_kept_on(server):
    browser = server.browser()
    browser.get(server.link("eve"))
    before = browser.cookies["goldspan_worker"]
    browser.get(server.link("ann"))
    assert browser.cookies["goldspan_worker"] != before
    browser.get("/api/work/me")
    assert server.work.calls == [("me", "ann")]


def test_the_setup_link_sets_the_password_once(server):
    token = server.auth.account.open_setup()
    browser = server.browser()
    page = browser.get(f"/setup/{token}")  # a mail program that looks first does not use it up
    answer = choose(browser, token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/desk")
    data = {"csrf": field_of(page, "csrf"), "token": token, "password": PASSWORD, "again": PASSWORD}
    assert browser.post("/setup", data=data).status_code == 403
    other = server.browser()
    assert other.get(f"/setup/{token}").status_code == 403
    assert log_in(other).status_code == 303


@pytest.mark.parametrize(
    ("given", "words"),
    [({"again": "another sentence"}, "not the same"), ({"password": "short"}, "12 to 1000")],
)
def test_a_password_that_is_refused_can_be_given_anew(server, given, words):
    token, browser = server.auth.account.open_setup(), server.browser()
    refused = choose(browser, token, **given)
    assert refused.status_code == 422
    assert words in refused.text
    assert given.get("password", PASSWORD) not in refused.text
    data = {"token": token, "password": PASSWORD, "again": PASSWORD}
    again = browser.post("/setup", data={**data, "csrf": field_of(refused, "csrf")})
    assert again.status_code == 303


def test_the_setup_link_expires_and_needs_its_forms_cookie(server):
    token, browser = server.auth.account.open_setup(), server.browser()
    page = browser.get(f"/setup/{token}")
    data = {"csrf": field_of(page, "csrf"), "token": token, "password": PASSWORD, "again": PASSWORD}
    assert server.browser().post("/setup", data=data).status_code == 403
    server.clock.now += HOUR - 1
    assert browser.get(f"/setup/{token}").status_code == 200
    server.clock.now += 1
    assert browser.get(f"/setup/{token}").status_code == 403
    assert browser.post("/setup", data=data).status_code == 403
    assert not server.auth.account.has_password


def test_the_requester_logs_in_with_the_password_alone(server):
    server.requester()
    browser = server.browser()
    refused = log_in(browser, "another good sentence")
    assert refused.status_code == 403
    assert "goldspan_desk" not in browser.cookies
    answer = log_in(browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/desk")
    assert browser.get("/api/openapi.json").status_code == 200


def test_a_login_begins_a_new_session_and_ends_the_one_before(server):
    browser = server.requester()
    before = browser.cookies["goldspan_desk"]
    assert log_in(browser).status_code == 303
    assert browser.cookies["goldspan_desk"] != before
    other = server.browser()
    other.cookies.set("goldspan_desk", before)
    assert other.get("/api/openapi.json").status_code == 401


@pytest.mark.parametrize("change", ["no cookie", "no field", "another form's", "wrong"])
def test_a_login_form_of_another_browser_is_refused(server, change):
    server.requester()
    browser = server.browser()
    csrf = open_login(browser)
    if change == "no cookie":
        browser.cookies.clear()
    elif change == "another form's":
        csrf = open_login(server.browser())
    elif change == "wrong":
        csrf = csrf[::-1]
    data = {"password": PASSWORD} | ({} if change == "no field" else {"csrf": csrf})
    answer = browser.post("/login", data=data)
    assert answer.status_code == (422 if change == "no field" else 403)
    assert "goldspan_desk" not in browser.cookies


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"csrf=a&password=b&password=c", "application/x-www-form-urlencoded"),
        (b"csrf=a&password=b&admin=1", "application/x-www-form-urlencoded"),
        (b"csrf=%ff&password=b", "application/x-www-form-urlencoded"),
        (b"csrf=a&password=" + b"x" * 1_001, "application/x-www-form-urlencoded"),
        (b"&".join(b"f%d=1" % n for n in range(99)), "application/x-www-form-urlencoded"),
        (b"csrf", "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
        (b'{"csrf":"a","password":"b"}', "application/json"),
        (b"csrf=a&password=b", "text/plain"),
    ],
)
def test_a_form_that_is_not_as_it_should_be_is_refused(server, body, kind):
    answer = server.browser().post("/login", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422


def test_passwords_cannot_be_tried_quickly_from_one_address(server, monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_WAIT", 0.0)  # of the account, whatever the address
    server.requester()
    browser = server.browser()
    tries = [log_in(browser, f"a good guess {n}").status_code for n in range(7)]
    assert tries == [403] * 5 + [429] * 2
    assert int(log_in(browser).headers["retry-after"]) == 12
    assert log_in(server.browser("198.51.100.1")).status_code == 303
    server.clock.now += MINUTE
    assert log_in(browser).status_code == 303


def test_a_password_is_guessed_slowly_from_many_addresses_and_its_owner_comes_in(server):
    owner = server.requester()
    known = cookie_of(log_in(owner), "goldspan_known")
    assert known["httponly"]
    assert (known["samesite"], known["max-age"]) == ("strict", str(180 * 24 * 3600))
    tries = [
        log_in(server.browser(f"198.51.100.{n}"), f"a good guess {n}").status_code for n in range(9)
    ]
    assert tries == [403] * 5 + [429] * 4
    stranger = log_in(server.browser("203.0.113.1"))
    assert stranger.status_code == 429
    assert int(stranger.headers["retry-after"]) == 1
    assert log_in(owner).status_code == 303
    # Elsewhere the link that `--reset-password` prints lets the owner in.
    again = server.browser("203.0.113.2")
    assert choose(again, server.auth.account.reset()).status_code == 303
    assert log_in(again).status_code == 303


def test_who_logs_in_takes_no_thread_of_the_workers(server, monkeypatch):
    seen = []
    account = server.auth.account
    monkeypatch.setattr(
        account, "is_password", lambda *_: seen.append(threading.current_thread().name) or False
    )
    assert log_in(server.browser()).status_code == 403
    assert seen[0].startswith("password")


def test_a_login_is_refused_at_once_while_too_many_wait(server, monkeypatch):
    full = threading.BoundedSemaphore(1)
    full.acquire()
    monkeypatch.setattr(passwords.in_turn, "_places", full)
    answer = log_in(server.browser())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")


@pytest.mark.parametrize("how", ["header", "form"])
def test_a_logout_ends_the_session_on_the_server_and_drops_the_cookie(server, how):
    browser = server.requester()
    cookie, token = browser.cookies["goldspan_desk"], browser.headers.pop("X-Goldspan-CSRF")
    given = (
        {"headers": {"X-Goldspan-CSRF": token}} if how == "header" else {"data": {"csrf": token}}
    )
    answer = browser.post("/logout", **given)
    assert answer.status_code == 200
    assert cookie_of(answer, "goldspan_desk")["max-age"] == "0"
    browser.cookies.set("goldspan_desk", cookie)
    assert browser.get("/api/openapi.json").status_code == 401


def test_a_logout_needs_the_sessions_token(server):
    browser = server.requester()
    del browser.headers["X-Goldspan-CSRF"]
    for given in ({"headers": {"X-Goldspan-CSRF": "x"}}, {"data": {"csrf": "x"}}):
        assert browser.post("/logout", **given).status_code == 403
    assert browser.get("/api/openapi.json").status_code == 200


def test_a_worker_logs_out_alone(server):
    browser, other = server.worker(), server.worker()
    assert browser.post("/logout").status_code == 200
    assert browser.get("/api/work/me").status_code == 401
    assert other.get("/api/work/me").status_code == 200


def test_cookies_are_for_this_server_only_and_no_script_reads_them(server):
    worker = server.browser().get(server.link())
    found = cookie_of(worker, "goldspan_worker")
    assert found["httponly"]
    assert not found["secure"]
    assert (found["samesite"], found["path"], found["domain"]) == ("lax", "/", "")
    assert found["max-age"] == str(30 * 24 * 3600)
    server.requester()
    assert cookie_of(log_in(server.browser()), "goldspan_desk")["max-age"] == str(12 * 3600)
    assert cookie_of(server.browser().get("/login"), "goldspan_form")["samesite"] == "strict"


@pytest.mark.parametrize("kind", ["worker", "desk", "form"])
def test_over_https_cookies_are_secure_and_bound_to_the_host(kind):
    server = Played(settings=SECURE)
    browser = server.browser()
    if kind == "worker":
        answer = browser.get(server.link())
    elif kind == "form":
        answer = browser.get("/login")
    else:
        server.requester()
        answer = log_in(browser)
    found = cookie_of(answer, f"__Host-goldspan_{kind}")
    assert found["secure"]
    assert found["httponly"]
    assert (found["path"], found["domain"]) == ("/", "")
    assert found["samesite"] == ("lax" if kind == "worker" else "strict")
    assert answer.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


def test_the_first_page_leads_everybody_to_their_place(server):
    assert "personal link" in server.browser().get("/").text
    assert server.worker().get("/").headers["location"] == "/label"
    assert server.requester().get("/").headers["location"] == "/desk"
    answer = server.browser().get("/label")
    assert answer.status_code == 401
    assert "Open your personal link" in answer.text


def test_a_name_of_a_worker_is_text_on_the_page(server):
    name = "</script><img src=x onerror=alert(1)>"
    page = server.worker(name).get("/label")
    assert page.status_code == 200
    assert "<img src=x" not in page.text


def test_settings_of_the_address_are_what_links_lead_to():
    assert replace(SECURE, public_url="https://a.org/").address("/w/x") == "https://a.org/w/x"
    assert code_of(Played().browser().get("/api/none")) == "unknown"
