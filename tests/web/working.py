"""Workers who label over HTTP, and write down what was acknowledged."""

from __future__ import annotations

import json
import random
import re
import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from campaign.tiny import WORDS
from web.serving import key

TWICE = 0.05
"""How often an answer is sent twice."""
CHANGED = 0.2
"""How often an answer is changed."""


@dataclass
class Hand:
    """A worker's browser, which lives longer than the server.

    Attributes:
        name: The worker's id.
        sent: By key, the task and the label of every answer that was sent, or sent anew.
        changes: The keys of those that were sent anew.
        told: By key, the reply.
        replies: Set for every reply.
    """

    name: str
    rng: random.Random
    cookie: str = ""
    csrf: str = ""
    sent: dict[str, dict[str, str]] = field(default_factory=dict)
    changes: set[str] = field(default_factory=set)
    told: dict[str, dict] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def come_in(self, url: str, path: str) -> None:
        """Open the personal link, and read the page's token."""
        line = self.browser(url)
        line.request("GET", path)
        answer = line.getresponse()
        answer.read()
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        line.request("GET", "/label", headers={"Cookie": self.cookie})
        page = line.getresponse().read().decode()
        data = re.search(
            r'<script type="application/json" id="page">(.*?)</script>', page, re.DOTALL
        )
        self.csrf = json.loads(data[1])["csrf"]
        line.close()

    def browser(self, url: str) -> HTTPConnection:
        """Return a connection."""
        return HTTPConnection(urlsplit(url).netloc, timeout=30)

    def work(self, url: str, over: threading.Event, took: threading.Semaphore) -> None:
        """Label until the server is gone; what got no reply is sent again first."""
        line = self.browser(url)
        try:
            for name in [name for name in self.sent if name not in self.told]:
                self._send(line, name)
                self._send(line, name)
            while not over.is_set():
                if self._do_one(line):
                    took.release()
        except (OSError, HTTPException):  # it was killed
            pass
        except Exception as error:  # noqa: BLE001 - the test tells it
            self.faults.append(f"{self.name}: {type(error).__name__} {error}")
        finally:
            line.close()

    def _do_one(self, line: HTTPConnection) -> bool:
        status, got = self._post(line, "next", {})
        if status != 200 or got["state"] != "task":
            threading.Event().wait(0.1)
            return False
        task = got["task"]
        if self.rng.random() < 0.05:
            body = {"task": task["id"], "key": key(), "reason": "too hard"}
            self._post(line, "skip", body)
            return False
        known = "rain" if task["text"].split()[0] in WORDS["rain"] else "sun"
        label = known if self.rng.random() < 0.9 else "sun"
        name = key()
        self.sent[name] = {"task": task["id"], "label": label}
        self._send(line, name)
        if self.rng.random() < TWICE:
            self._send(line, name)
        if name in self.told and self.rng.random() < CHANGED:
            again = key()
            self.sent[again] = {"task": task["id"], "label": known}
            self.changes.add(again)
            self._send(line, again)
        return name in self.told

    def _send(self, line: HTTPConnection, name: str) -> None:
        """Send an answer; the same reply must come every time."""
        if name not in self.sent:
            return
        path = "change" if name in self.changes else "answers"
        status, got = self._post(line, path, {"key": name, **self.sent[name]})
        if status == 429:
            return
        if path == "change" and status in {404, 409}:  # practice, a draft, or closed meanwhile
            if name in self.told:
                self.faults.append(f"{self.name}: {name} was {self.told[name]}, then {got}")
            del self.sent[name]
            return
        if status != 200:
            self.faults.append(f"{self.name}: {status} {got}")
            return
        if self.told.setdefault(name, got) != got:
            self.faults.append(f"{self.name}: {name} was {self.told[name]}, then {got}")

    def _post(self, line: HTTPConnection, what: str, body: dict) -> tuple[int, dict]:
        headers = {
            "Cookie": self.cookie,
            "X-Goldspan-CSRF": self.csrf,
            "Content-Type": "application/json",
        }
        line.request("POST", f"/api/work/{what}", json.dumps(body), headers)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
