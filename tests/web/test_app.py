"""What every request passes, whatever it asks for; a walk over all routes as the wrong person."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest
from starlette.routing import Route

from goldspan.web import Keys, ServerSettings
from goldspan.web.logs import LogFormatter
from goldspan.web.security.middleware import POLICY
from goldspan.web.settings import Rate, Rates
from web.loops import run_loop
from web.played import KEYS, Played, code_of

BODY = {"task": "t", "key": "0b9f3a6f-2c8e", "label": "rain"}
# What answers without a session, and why.
OPEN = {
    ("GET", "/"): "leads people to where they work",
    ("GET", "/login"): "the form",
    ("POST", "/login"): "the password, with a token of the form",
    ("GET", "/w/{token}"): "the link",
    ("GET", "/r/{token}"): "the link of a reviewer",
    ("GET", "/setup/{token}"): "the link",
    ("POST", "/setup"): "the link, with a token of the form",
    ("POST", "/logout"): "ends what there is, with its token",
    ("GET", "/static/{version}/{name}"): "scripts and styles",
    ("GET", "/healthz"): "says that the server answers",
}
WORKERS = ("/api/work/", "/label", "/help")
REQUESTERS = ("/api/desk", "/desk", "/api/openapi.json")


@pytest.fixture(scope="module")
def server():
    wide = Rate(1e6, 1_000_000)
    rates = Rates(wide, wide, wide, wide, wide)
    return Played(settings=ServerSettings(KEYS, rates=rates))


def routes():
    """Return method and pattern of every route."""
    found = []
    for route in Played().app.routes:
        assert isinstance(route, Route), route
        found += [(method, route.path) for method in sorted(route.methods - {"HEAD"})]
    return found


ROUTES = routes()


def path_of(pattern):
    pattern = pattern.replace("/desk/{name}", "/desk/workers")
    return re.sub(r"\{[^}]*\}", "x1", pattern)


def ask(browser, method, pattern, **options):
    options = options if method == "GET" else {"json": {}, **options}
    return browser.request(method, path_of(pattern), **options)


def test_every_route_belongs_to_somebody():
    for method, pattern in ROUTES:
        mine = [(method, pattern) in OPEN, *(pattern.startswith(REQUESTERS + WORKERS),)]
        assert sum(mine) == 1, f"{method} {pattern}: whose is it?"
    assert OPEN.keys() <= set(ROUTES)


def is_refused(answer):
    """Whether somebody without a session got nothing; from pages one is led to the login."""
    return answer.status_code == 401 or answer.headers.get("location") == "/login"


CLOSED = [one for one in ROUTES if one not in OPEN]


@pytest.mark.parametrize(("method", "pattern"), CLOSED)
def test_nobody_is_let_in_without_a_session(server, method, pattern):
    for cookie in (None, "planted", server.auth.links.make(["ann"], 1)[0][1]):
        browser = server.browser()
        if cookie:
            browser.cookies.set("goldspan_worker", cookie)
            browser.cookies.set("goldspan_desk", cookie)
        answer = ask(browser, method, pattern)
        assert is_refused(answer), answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(("method", "pattern"), CLOSED)
def test_nobody_is_let_in_by_the_other_roles_cookie(server, method, pattern):
    worker, requester = server.worker(), server.requester()
    wrong = requester if pattern.startswith(WORKERS) else worker
    assert is_refused(ask(wrong, method, pattern))
    # The cookie under the other role's name is none either.
    renamed = server.browser()
    for theirs, name in (
        ("goldspan_worker", "goldspan_desk"),
        ("goldspan_desk", "goldspan_worker"),
    ):
        if theirs in wrong.cookies:
            renamed.cookies.set(name, wrong.cookies[theirs])
    assert is_refused(ask(renamed, method, pattern))


@pytest.mark.parametrize(("method", "pattern"), CLOSED)
def test_nobody_is_let_in_by_another_campaigns_cookie(server, method, pattern):
    other = Played(key="weather-2", settings=server.settings)
    for stranger in (other.worker(), other.requester()):
        browser = server.browser()
        browser.cookies.update(stranger.cookies)
        assert is_refused(ask(browser, method, pattern))


@pytest.mark.parametrize(("method", "pattern"), [one for one in CLOSED if one[0] != "GET"])
def test_no_change_is_made_without_the_sessions_own_token(server, method, pattern):
    def person():
        return server.worker() if pattern.startswith(WORKERS) else server.requester()

    browser, other = person(), person()
    for token in ("", "x", other.headers["X-Goldspan-CSRF"]):
        answer = ask(browser, method, pattern, headers={"X-Goldspan-CSRF": token})
        assert (answer.status_code, code_of(answer)) == (403, "csrf")
    del browser.headers["X-Goldspan-CSRF"]
    assert code_of(ask(browser, method, pattern)) == "csrf"
    assert server.work.calls == []


@pytest.mark.parametrize(("method", "pattern"), [one for one in ROUTES if one[0] != "GET"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Origin": "https://127.0.0.1:8080"},
        {"Origin": "http://127.0.0.1:8080.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_no_change_is_made_by_a_foreign_page(server, method, pattern, headers):
    answer = ask(server.browser(), method, pattern, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.text


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "http://localhost:8080", None])
def test_the_servers_own_pages_may_change(server, origin):
    headers = {"Sec-Fetch-Site": "same-origin"} | ({"Origin": origin} if origin else {})
    answer = server.worker().post("/api/work/answers", json=BODY, headers=headers)
    assert answer.status_code == 200, answer.text


WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": POLICY,
    "cache-control": "no-store",
}


@pytest.mark.parametrize(("method", "pattern"), [*ROUTES, ("GET", "/none"), ("PUT", "/login")])
def test_every_answer_has_the_headers_that_protect_it(server, method, pattern):
    answer = ask(server.browser(), method, pattern)
    assert {name: answer.headers.get(name) for name in WANTED} == WANTED
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "server" not in answer.headers
    assert "strict-transport-security" not in answer.headers
    assert answer.headers.get("access-control-allow-origin") is None


def test_pages_of_people_who_are_in_have_them_too(server):
    for browser, path in ((server.worker(), "/label"), (server.requester(), "/api/openapi.json")):
        answer = browser.get(path)
        assert answer.status_code == 200
        assert {name: answer.headers.get(name) for name in WANTED} == WANTED


def test_the_policy_allows_this_servers_files_and_nothing_else():
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == rules["object-src"] == rules["base-uri"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


def test_scripts_and_styles_may_be_kept_for_ever_and_are_protected_else(server):
    browser = server.worker()
    (path, *_) = re.findall(r'"(/static/[^"]+)"', browser.get("/label").text)
    answer = server.browser().get(path)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-security-policy"] == POLICY
    for bad in ("/static/x/base.css", path + "x", path.replace("/static/", "/static/../")):
        assert server.browser().get(bad).status_code in {404, 405}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "", "127.0.0.1:8080.x"]
)
def test_another_name_of_the_server_is_refused(server, host):
    for path in ("/", "/login", "/api/work/me", "/static/x/y"):
        answer = server.browser().get(path, headers={"Host": host})
        assert answer.status_code == 400
        assert host not in answer.text or not host


@pytest.mark.parametrize(
    ("public_url", "good", "bad"),
    [
        ("https://labels.example.org", "labels.example.org", "labels.example.org:8080"),
        ("https://labels.example.org", "LABELS.example.org:443", "www.labels.example.org"),
        ("http://127.0.0.1:8080", "localhost:8080", "localhost"),
        ("http://127.0.0.1:8080", "[::1]:8080", "192.0.2.1:8080"),
        ("http://192.0.2.1:8080", "192.0.2.1:8080", "localhost:8080"),
    ],
)
def test_the_names_of_the_server_follow_its_address(public_url, good, bad):
    browser = Played(settings=ServerSettings(KEYS, public_url)).browser()
    assert browser.get("/login", headers={"Host": good}).status_code == 200
    assert browser.get("/login", headers={"Host": bad}).status_code == 400


def pieces(total, size=10_000):
    for _ in range(total // size):
        yield b" " * size


@pytest.mark.parametrize("path", ["/api/work/answers", "/api/desk/links", "/login", "/none"])
def test_a_large_body_is_refused_whether_its_length_is_said_or_not(server, path):
    most = 2**18
    browser = server.browser()
    if path.startswith("/api/desk/"):
        most, browser = 2**20, server.requester()
    for content in (b" " * (most + 1), pieces(most + 20_000)):
        answer = browser.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.headers["content-security-policy"] == POLICY


def test_a_large_body_needs_a_cookie_of_the_desk_that_this_server_has_made(server):
    other = Played(key="weather-1", settings=ServerSettings(Keys(bytes(32))))
    for stranger in (server.browser(), server.worker(), other.requester()):
        browser = server.browser()
        browser.cookies.update(stranger.cookies)
        answer = browser.post("/api/desk/links", content=b" " * (2**18 + 1))
        assert answer.status_code == 413


def test_all_bodies_together_are_bounded_and_strangers_do_not_take_the_workers_room():
    server = Played(settings=ServerSettings(KEYS, held=100))
    cookie = f"goldspan_worker={server.worker().cookies['goldspan_worker']}".encode()

    async def ask():
        over = asyncio.Event()
        held = [asyncio.create_task(raw(server, [], [b"a" * 25], over)) for _ in range(2)]
        await asyncio.sleep(0.01)
        full = await raw(server, [], [b"b"])
        room = await raw(server, [(b"cookie", cookie)], [b"b" * 50])
        none = await raw(server, [(b"cookie", cookie)], [b"b" * 51])
        over.set()
        await asyncio.gather(*held)
        after = await raw(server, [], [b"b" * 50])
        return [one[0] for one in (full, room, none, after)]

    assert run_loop(ask) == [503, 403, 503, 401]


def test_a_path_with_a_stroke_too_many_leads_nowhere(server):
    assert server.browser().get("/label/").status_code == 404
    assert server.browser().get("/login/").status_code == 404


def test_a_body_of_the_most_bytes_is_read(server):
    browser = server.worker()
    words = b'{"task":"t","key":"0b9f3a6f-2c8e","label":"rain"'
    content = words + b" " * (2**18 - len(words) - 1) + b"}"
    headers = {"Content-Type": "application/json"}
    assert browser.post("/api/work/answers", content=content, headers=headers).status_code == 200
    content = (words, b"}")
    assert browser.post("/api/work/answers", content=content, headers=headers).status_code == 200


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "", "9" * 40, "0x10"])
def test_a_length_that_is_none_is_refused(server, length):
    answer = run_loop(raw, server, [(b"content-length", length.encode())], [b"{}"])
    assert answer[0] == 413


def test_a_body_that_never_comes_is_given_up():
    server = Played(settings=ServerSettings(KEYS, body_seconds=0.05))
    status, body = run_loop(raw, server, [], None)
    assert status == 408
    assert b"too long" in body


async def raw(server, headers, parts, over=None):
    """Ask as no client would: headers and parts of a body as they are; None: it never ends.

    With an event, the end comes when it is set.
    """
    sent, left = [], list(parts or [])

    async def receive():
        if parts is None:
            await asyncio.sleep(3_600)
        if over and not left:
            await over.wait()
            return {"type": "http.request", "body": b"", "more_body": False}
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left or over)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/api/work/next", "raw_path": b"/api/work/next",
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1:8080"), *headers], "client": ("192.0.2.1", 1),
        "server": ("127.0.0.1", 8080),
    }  # fmt: skip
    await server.app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def test_an_address_that_floods_is_slowed_down_and_no_other():
    server = Played(settings=ServerSettings(KEYS, rates=Rates(address=Rate(10, 3))))
    browser = server.browser()
    found = [browser.get("/login").status_code for _ in range(5)]
    assert found == [200, 200, 200, 429, 429]
    assert server.browser("198.51.100.1").get("/login").status_code == 200
    server.clock.now += 1_000
    assert browser.get("/login").status_code == 200


def test_a_websocket_is_closed(server):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), server.browser().websocket_connect("/api/desk/live"):
        pass


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"])
def test_the_documentation_of_the_api_is_not_for_everybody(server, path):
    assert server.browser().get(path).status_code == 404


def test_pages_answer_in_words_and_the_api_in_json(server):
    page, api = server.browser().get("/none"), server.browser().get("/api/none")
    assert page.headers["content-type"].startswith("text/html")
    assert api.json() == {"error": {"code": "unknown", "message": "This page does not exist."}}
    assert server.browser().put("/login").headers["allow"]


def test_no_token_password_cookie_or_answer_is_in_the_log(caplog):
    caplog.set_level(logging.DEBUG, logger="goldspan")
    caplog.handler.setFormatter(LogFormatter())
    server = Played()
    link, token = server.link("ann"), server.auth.account.open_setup()
    requester = server.requester("a sentence only I write")
    worker = server.browser()
    secrets = [link, token, "a sentence only I write", "private note"]
    for path in (link, link + "x", f"/setup/{token}", f"/login?password={token}", f"/none/{token}"):
        worker.get(path)
    secrets += [value for one in (worker, requester) for value in one.cookies.values()]
    worker.headers["X-Goldspan-CSRF"] = server.csrf(worker, "worker")
    secrets += [one.headers["X-Goldspan-CSRF"] for one in (worker, requester)]
    note = {"task": "t", "key": "0b9f3a6f-2c8e", "reason": "bad", "note": "private note"}
    assert worker.post("/api/work/flag", json=note).status_code == 200
    worker.post("/api/work/flag", json={**note, "more": "private note"})
    assert "method=GET route=/w/{token} status=303" in caplog.text
    assert "method=POST route=/api/work/flag status=200" in caplog.text
    for secret in secrets:
        assert secret.rpartition("/")[2] not in caplog.text


def test_what_looks_like_an_attack_is_in_the_log_with_its_address(caplog):
    server = Played()
    browser = server.browser("203.0.113.9")
    browser.get("/w/guess")
    browser.post("/login", data={"csrf": "x", "password": "x"})
    browser.post("/login", data={"csrf": "x", "password": "x"}, headers={"Origin": "https://evil"})
    told = [one.getMessage() for one in caplog.records if one.name == "goldspan.web.security"]
    assert len(told) == 3
    assert all("203.0.113.9" in one for one in told)


@pytest.mark.parametrize(
    "url",
    ["", "labels.example.org", "ftp://a.org", "https://", "https://a.org/path", "https://a.org?q",
     "https://user@a.org", "https://a.org:0", "https://a.org:99999", "https://[::1", "https://a#b"],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_refused(url):
    with pytest.raises(ValueError, match="not the address of a server"):
        ServerSettings(KEYS, url)
