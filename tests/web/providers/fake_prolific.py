"""Prolific's API as it is documented, in memory, with the faults that a test asks for.

A call to pay is carried out every time that it comes, as the real one does; bonuses are listed
`lists_after` seconds later. `faults` says what goes wrong with the next calls of a kind: a status
("400", "429", "429 long", "503"), "lost" (nothing arrives), "cut" (it is done, the answer is lost),
"500 after" (it is done, the answer is an error).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import httpx2

from goldspan.web.providers.prolific import URL, Api

STUDY = "5" * 24
TOKEN = "prolific-token-that-nobody-may-see"


def ident(n: int) -> str:
    """Return the id of a participant or a submission."""
    return f"{n:024x}"


@dataclass
class FakeProlific:
    """The other side.

    Attributes:
        clock: Milliseconds.
        lists_after: Seconds until a paid bonus is listed.
        understands: What amounts are multiplied by.
        faults: By kind of call: "get", "transition", "set up", "pay".
    """

    clock: Any
    lists_after: float = 0
    understands: int = 1
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    calls: list[str] = field(default_factory=list)
    prepared: dict[str, tuple[str, int]] = field(default_factory=dict)
    paid: list[tuple[int, str, int]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def add(self, participant: str, submission: str, status: str = "ACTIVE", study: str = STUDY):
        self.submissions[submission] = {
            "id": submission, "study_id": study, "participant": participant, "status": status,
        }  # fmt: skip

    def api(self) -> Api:
        client = httpx2.Client(transport=httpx2.MockTransport(self))
        return Api(TOKEN, client, self.slept.append)

    def cents_of(self, submission: str) -> list[int]:
        """Return what a submission has been paid, listed or not."""
        return [cents for _, of, cents in self.paid if of == submission]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == f"Token {TOKEN}"
        path = str(request.url).removeprefix(URL)
        kind, act = self._route(request.method, path, request.content)
        self.calls.append(kind)
        fault = self.faults[kind].pop(0) if self.faults[kind] else ""
        if fault == "lost":
            raise httpx2.ConnectTimeout("no way", request=request)
        if fault[:3] in {"400", "401", "429", "503"}:
            wait = "3600" if "long" in fault else "7"
            headers = {"Retry-After": wait} if fault.startswith("429") else {}
            return httpx2.Response(int(fault[:3]), headers=headers, text="not now")
        answer = act()
        if fault == "cut":
            raise httpx2.ReadTimeout("no answer", request=request)
        return httpx2.Response(500) if fault == "500 after" else answer

    def _route(self, method, path, content):
        body = json.loads(content) if content else None
        if path == "submissions/bonus-payments/":
            return "set up", lambda: self._set_up(body)
        if found := re.fullmatch(r"bulk-bonus-payments/([^/]+)/pay/", path):
            return "pay", lambda: self._pay(found[1])
        if found := re.fullmatch(r"submissions/([^/]+)/transition/", path):
            return "transition", lambda: self._transition(found[1], body)
        found = re.fullmatch(r"submissions/([^/]+)/", path)
        assert method == "GET"
        return "get", lambda: self._get(found[1])

    def _get(self, submission):
        if submission not in self.submissions:
            return httpx2.Response(404, text="Not found")
        now = self.clock()
        listed = [
            cents for at, of, cents in self.paid
            if of == submission and now - at >= 1000 * self.lists_after
        ]  # fmt: skip
        return httpx2.Response(200, json={**self.submissions[submission], "bonus_payments": listed})

    def _transition(self, submission, body):
        there = self.submissions[submission]
        wanted = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
        if there["status"] not in {"AWAITING REVIEW", wanted}:
            return httpx2.Response(400, text=f"it is {there['status']}")
        there["status"] = wanted
        return httpx2.Response(200, json=there)

    def _set_up(self, body):
        submission, amount = body["csv_bonuses"].split(",")
        if submission not in self.submissions or body["study_id"] != STUDY:
            return httpx2.Response(400, text="no such submission")
        cents = round(100 * float(amount))
        cents *= self.understands
        name = f"bulk{len(self.prepared)}"
        self.prepared[name] = submission, cents
        return httpx2.Response(200, json={"id": name, "amount": cents, "fees": 1})

    def _pay(self, name):
        self.paid.append((self.clock(), *self.prepared[name]))
        return httpx2.Response(202, json="It is being processed.")
