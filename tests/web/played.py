"""A server over a small campaign whose work is played, with a clock that tests move."""

from __future__ import annotations

import atexit
import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from starlette.testclient import TestClient

from campaign.tiny import inputs_of, write_files
from goldspan.errors import InputError
from goldspan.store.journal import Held
from goldspan.web import Auth, Keys, ServerSettings, create_app

KEYS = Keys(bytes(range(32)))
BEGIN = 1_700_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
URL = "http://127.0.0.1:8080"
PASSWORD = "correct horse battery"
ME = {"done": 1, "total": 4, "earned": "0.05", "currency": "EUR", "drafts": 0}


@dataclass
class Clock:
    """Milliseconds since 1970, as a test says."""

    now: int = BEGIN

    def __call__(self):
        return self.now


@dataclass
class Records:
    """The records of a ledger, in memory."""

    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    database: Any = field(default_factory=lambda: SimpleNamespace(held=Held(), on_write=[]))

    def record(self, kind, name, body, _):
        there = self.kept.setdefault(kind, {})
        if there.setdefault(name, dict(body)) != dict(body):
            raise InputError(f"the {kind} {name!r} is kept with other content")

    def take(self, *_):
        pass

    def records(self, kind):
        return dict(self.kept.get(kind, {}))


class PlayedWork:
    """Answers as the real one does, and writes down who asked."""

    def __init__(self):
        self.calls = []
        self.fails = None

    def _call(self, *call):
        self.calls.append(call)
        if self.fails:
            raise self.fails

    def next(self, worker):
        self._call("next", worker)
        task = {"id": "t", "tokens": ["a"], "kind": "spans", "expires": 9, "is_control": True}
        return {"state": "task", "task": task, "me": ME}

    def submit(self, worker, task, key, answer):
        self._call("submit", worker, task, key, answer)
        return {"status": "accepted", "message": "", "paid": "0.05", "feedback": None}

    def given(self, worker, since):
        self._call("given", worker, since)
        return {"answers": [{"task": "t", "open": True, "is_control": True}]}

    def recall(self, worker, task, since):
        self._call("recall", worker, task, since)
        task = {"id": "t", "tokens": ["a"], "kind": "spans", "expires": 0, "is_control": True}
        return {"task": task, "open": True, "why": "", "spans": []}

    def change(self, worker, task, key, answer, since):
        self._call("change", worker, task, key, answer, since)
        return {"status": "changed", "message": ""}

    def skip(self, worker, task, reason):
        self._call("skip", worker, task, reason)
        return {"status": "skipped"}

    def flag(self, worker, task, key, reason, note):
        self._call("flag", worker, task, key, reason, note)
        return {"status": "flagged"}

    def release(self, worker, task):
        self._call("release", worker, task)
        return {"status": "released"}

    def me(self, worker):
        self._call("me", worker)
        return ME


class LateDesk:
    """The desk of a real campaign without answers, opened when it is first asked."""

    def __getattr__(self, name):
        return getattr(tiny_desk(), name)


@cache
def tiny_desk():
    """Return a desk that is closed when the tests are over."""
    from web.serving import open_round, serve

    folder = TemporaryDirectory()
    service = serve(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(service.close)
    open_round(service)
    return service.desk


@cache
def tiny_setting():
    """Return the inputs of a campaign of twenty items, read once."""
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        crowd = {"source": "web", "truth": None, "workers": []}
        return inputs_of(Path(folder), crowd=crowd)


@dataclass
class Played:
    """A server for tests."""

    clock: Clock = field(default_factory=Clock)
    ledger: Any = field(default_factory=Records)
    work: Any = field(default_factory=PlayedWork)
    settings: ServerSettings = None
    key: str = "weather-1"

    def __post_init__(self):
        base = self.settings or ServerSettings(KEYS)
        self.settings = replace(base, clock=self.clock)
        inputs = SimpleNamespace(
            key=self.key, plan=tiny_setting().plan, folder=tiny_setting().folder, daily_joins=100,
            guideline="",
        )  # fmt: skip
        service = SimpleNamespace(
            inputs=inputs, ledger=self.ledger, work=self.work, clock=self.clock, engine=None,
            desk=LateDesk(),
        )  # fmt: skip
        self.app = create_app(service, self.settings)

    @property
    def auth(self) -> Auth:
        return self.app.state.context.auth

    def browser(self, address="192.0.2.1", **options):
        """Return a browser that has never been here."""
        return TestClient(
            self.app, base_url=self.settings.public_url, follow_redirects=False,
            client=(address, 50_000), **options,
        )  # fmt: skip

    def link(self, worker="ann", days=30):
        ((_, token),) = self.auth.links.make([worker], days)
        return f"/w/{token}"

    def worker(self, worker="ann"):
        """Return the browser of a worker who has opened their link, with the token of its page."""
        browser = self.browser()
        assert browser.get(self.link(worker)).status_code == 303
        return with_token(browser, self.csrf(browser, "worker"))

    def requester(self, password=PASSWORD):
        """Return the browser of the requester: who sets the password first, and else logs in."""
        browser = self.browser()
        if self.auth.account.has_password:
            csrf = field_of(browser.get("/login"), "csrf")
            answer = browser.post("/login", data={"csrf": csrf, "password": password})
            assert answer.status_code == 303, answer.text
            return with_token(browser, self.csrf(browser, "desk"))
        answer = choose(browser, self.auth.account.open_setup(), password)
        assert answer.status_code == 303, answer.text
        return with_token(browser, self.csrf(browser, "desk"))

    def csrf(self, browser, role):
        context = self.app.state.context
        cookie = browser.cookies[context.cookie_name(role)]
        return self.auth.sessions.csrf(self.auth.sessions.read(role, cookie))


def with_token(browser, csrf):
    browser.headers["X-Goldspan-CSRF"] = csrf
    return browser


def choose(browser, token, password=PASSWORD, again=None):
    """Choose the requester's password on the page of a link."""
    page = browser.get(f"/setup/{token}")
    form = {"csrf": field_of(page, "csrf"), "token": token, "password": password}
    return browser.post("/setup", data={**form, "again": again or password})


def field_of(page, name):
    """Return the value of a hidden field."""
    return re.search(f'name="{name}" value="([^"]*)"', page.text)[1]


def code_of(answer):
    return answer.json()["error"]["code"]
