"""A server that keeps the contract of the worker's API in memory, with our pages in front of it."""

from __future__ import annotations

import time
from contextlib import contextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from goldspan.campaign.plan import Layer
from goldspan.web.pages import LabelPage, static_files, worker_pages
from goldspan.web.security.middleware import Headers
from web.loops import in_thread

CSRF = "csrf-token"
SPANS = LabelPage(
    campaign="names-1a2b",
    title="Names in the news",
    kind="spans",
    labels=("PER", "LOC", "ORG"),
    instructions="Mark **people**, places and companies.\n\n> [Ann Lee](PER) lives in [Rome](LOC).",
)
MOODS = LabelPage(
    campaign="moods-3c4d", title="Moods", kind="single", labels=("glad", "sad", "neither")
)


LAYERS = LabelPage(
    campaign="layers-5e6f",
    title="Names and moods",
    kind="layers",
    labels=("PER", "LOC", "ORG"),
    layers=(
        Layer(name="names", kind="spans", types=("PER", "LOC", "ORG"), overlapping=True),
        Layer(
            name="mood", kind="label", labels=("very bad", "bad", "neither", "good", "very good"),
            ordinal=True, instructions="What the writer feels.",
        ),
        Layer(name="topics", kind="labels", labels=("money", "sport", "travel"), required=False),
        Layer(name="style", kind="label", labels=("plain", "ornate"), required=False),
    ),
)  # fmt: skip


def span_task(words="Ann Lee went to New York .", number=1, **more):
    """A task of spans whose tokens stand between spaces, unless `tokens` and `text` are given."""
    given = {"tokens": words.split(), "text": None, "starts": None, "kind": "spans"}
    return {"id": f"task-{number}", "training": False, **given, **more}


def single_task(text="I sang all day.", number=1, **more):
    """A task for one label."""
    return span_task("", number, text=text, kind="single", **more)


def layers_task(words="The Bank of England in London said so .", number=1, **more):
    """A task of several layers."""
    return span_task(words, number, kind="layers", **more)


class Fake:
    """What the server knows, and what tests may turn.

    Attributes:
        address: Where it is.
        tasks: What is still to be done; the first is given.
        answers: Bodies that were taken, by key.
        posts: All requests to the API: (path, body).
        truth: Right answers by task, shown as feedback.
        status: What is said of an answer.
        broken: So many requests are answered 503.
        busy: So many requests find no place: 503, and come again in two seconds.
        times: When a request came, in seconds.
        lost: So many answers are taken, and the reply is an error.
        refused: So many answers are refused, with `refusal`: status, code and message.
        end: What is said when no task is left.
        done: Answers of before.
        total: How many texts there are in all, None where nobody knows.
        closed: Why answers can no longer be changed, by task.
    """

    def __init__(self):
        self.address = ""
        self.reset(SPANS, [])

    def reset(self, page, tasks, **turned):
        """Begin anew with another campaign."""
        self.page, self.tasks, self.answers, self.posts = page, list(tasks), {}, []
        self.truth, self.status, self.message = {}, "accepted", ""
        self.times = []
        self.broken = self.busy = self.lost = self.refused = self.delay = 0
        self.refusal = 422, "invalid", "The spans do not fit."
        self.session, self.done, self.total = True, 0, None
        self.shown, self.closed = {}, {}
        self.end = {"state": "done", "message": "That was all.", "completion": None}
        for name, value in turned.items():
            setattr(self, name, value)
        self.app = self._build()

    async def __call__(self, scope, receive, send):
        """Pass on to the campaign of the moment."""
        if scope["type"] == "http":
            await self.app(scope, receive, send)

    @property
    def me(self):
        """What the worker is told about themselves."""
        done = self.done + len(self.sent)
        earned = f"{done * 0.05:.2f}" if self.page.paid else None
        return {"done": done, "earned": earned, "currency": "EUR", "drafts": 0, "total": self.total}

    def _build(self):
        app = FastAPI()
        app.include_router(worker_pages(self.page, lambda _: {"scope": "w1", "csrf": CSRF}))
        app.include_router(static_files())

        @app.post("/api/work/{path}")
        def work(path: str, body: dict, request: Request):
            assert request.headers["X-Goldspan-CSRF"] == CSRF
            self.posts.append((path, body))
            self.times.append(time.monotonic())
            return self._answer(path, body)

        return Headers(app, secure=False)

    def _answer(self, path, body):
        time.sleep(self.delay)
        if not self.session:
            return _error(401, "session", "Open your link again.")
        if self.busy > 0:
            self.busy -= 1
            refused = _error(503, "busy", "The server has no place left.")
            refused.headers["Retry-After"] = "2"
            return refused
        if self.broken > 0:
            self.broken -= 1
            return _error(503, "unavailable", "")
        if path == "next":
            return self._next()
        if path == "given":
            rows = [{"task": task, "open": task not in self.closed} for task in self.versions]
            return {"answers": rows[::-1]}
        if path == "recall":
            return self._recall(body["task"])
        return self._take(path, body)

    def _next(self):
        if not self.tasks:
            return {**self.end, "me": self.me}
        self.shown[self.tasks[0]["id"]] = self.tasks[0]
        expires = time.time_ns() // 1_000_000 + 600_000
        return {"state": "task", "task": {"expires": expires, **self.tasks[0]}, "me": self.me}

    @property
    def versions(self):
        """The answers that count, by task."""
        sent = (body for path, body in self.answers.values() if path in {"answers", "change"})
        return {body["task"]: body for body in sent}

    def _recall(self, task):
        kinds = {"spans", "label", "layers"}
        labels = {n: v for n, v in self.versions[task].items() if n in kinds}
        why = self.closed.get(task, "")
        shown = {"expires": 0, **self.shown[task]}
        return {"task": shown, "open": not why, "why": why, **labels}

    def _take(self, path, body):
        if self.refused > 0:
            self.refused -= 1
            return _error(*self.refusal)
        old = self.answers.get(body["key"])
        if old is not None and old != (path, body):
            return _error(409, "conflict", "Another answer was sent under this key.")
        if path == "change" and old is None and body["task"] in self.closed:
            return _error(
                409, "closed", f"{self.closed[body['task']]} Your answer stays as you gave it."
            )
        self.answers[body["key"]] = (path, body)
        self.tasks = [task for task in self.tasks if task["id"] != body["task"]]
        if self.lost > 0:
            self.lost -= 1
            return _error(502, "gateway", "")
        if path == "change":
            return {"status": "changed", "message": "Your answer was changed."}
        if path != "answers":
            return {"status": {"skip": "skipped", "flag": "flagged"}[path]}
        return {
            "status": self.status, "message": self.message, "paid": "0.05",
            "feedback": self.truth.get(body["task"]),
        }  # fmt: skip

    @property
    def sent(self):
        """The bodies of the answers that were taken, without task and key."""
        return [
            {name: value for name, value in body.items() if name not in {"task", "key"}}
            for path, body in self.answers.values()
            if path == "answers"
        ]


def _error(status, code, message):
    return JSONResponse({"error": {"code": code, "message": message}}, status)


@contextmanager
def running_fake():
    """Run the fake server; it knows its address."""
    fake = Fake()

    def make(address):
        fake.address = address
        return fake

    with in_thread(make):
        yield fake
