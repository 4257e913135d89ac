"""Payment requests to a provider: written, queued, sent once, settled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from goldspan.errors import GoldspanError, InputError
from goldspan.money import from_micro
from goldspan.store import SqlLedger
from goldspan.web.settings import new_id

# --------------------------------------------------------------------------------------------------
# Payment requests to a provider – approve, reject, pay a bonus – and every step in sending them.


REQUEST, STEP = "outbox", "outbox-step"
"""Kinds of records."""
WAITING, READY, SENDING, SENT, REFUSED = "waiting", "ready", "sending", "sent", "refused"
"""States of a request: not begun; to be sent again; perhaps arrived; arrived; not accepted."""
FINAL = frozenset({SENT, REFUSED})
APPROVE, REJECT, BONUS = "approve", "reject", "bonus"


class Later(GoldspanError):  # noqa: N818 - what to do about it
    """The provider cannot be reached, or asks to wait: nothing is lost, send again later."""


@dataclass(frozen=True)
class PaymentRequest:
    """What the provider is to do: approve, reject or pay."""

    id: str  # Its name, which says what it is about
    act: str  # "approve", "reject" or "bonus"
    worker: str  # Whom it is about
    about: str  # The provider's id of their work
    amount: int = 0  # Of a bonus, in millionths of the currency unit
    why: str = ""  # Said to the worker, or the reason for a bonus
    category: str = ""
    state: str = WAITING  # What has become of it
    time: int = 0  # When it did, in milliseconds since 1970
    facts: Mapping[str, Any] = field(default_factory=dict)  # What was noted then
    n_steps: int = 0  # How many steps were taken


class PaymentQueue:
    """The requests of a campaign."""

    def __init__(self, store: SqlLedger, clock: Callable[[], int]) -> None:
        self._store, self.clock = store, clock
        self._sender = new_id()

    def requests(self) -> list[PaymentRequest]:
        """Return all requests in the order in which they were written, as they are now."""
        steps: dict[str, list[dict[str, Any]]] = {}
        for step in self._store.records(STEP).values():
            steps.setdefault(step["letter"], []).append(step)
        return [
            _request(name, body, steps.get(name, []))
            for name, body in self._store.records(REQUEST).items()
        ]

    def open(self) -> Iterator[PaymentRequest]:
        """Yield the requests that can be sent: the first open one about each work."""
        busy = set()
        for request in self.requests():
            if request.state not in FINAL and request.about not in busy:
                busy.add(request.about)
                yield request

    def approve(self, worker: str, about: str) -> str:
        """Write that a worker's work is taken; return the request's id."""
        return self._decide(APPROVE, worker, about)

    def reject(self, worker: str, about: str, why: str, category: str) -> str:
        """Write that a worker's work is not taken, and why."""
        return self._decide(REJECT, worker, about, why=why, category=category)

    def bonus(self, worker: str, about: str, amount: int, why: str) -> str:
        """Write that a worker gets a bonus, once for every reason; its money is taken at once.

        The reason is the worker's, whatever work of theirs the request is about: with more work
        come in since, it is the same bonus, and is paid on the work that it was written for.
        """
        if not amount:
            raise InputError(f"a bonus of nothing for {worker}")
        there = self._bonus(worker, amount, why)
        if there is not None:
            return there
        name = f"{BONUS}:{worker}:{why}"
        if not self._store.charge(name, amount, self.clock()):
            raise InputError(
                f"the budget does not hold a bonus of {from_micro(amount)} for {worker}: raise "
                "budget.money in the plan"
            )
        try:
            return self._write(name, BONUS, worker, about, amount=amount, why=why)
        except InputError:  # somebody else was first, perhaps about other work
            there = self._bonus(worker, amount, why)
            if there is None:
                raise
            return there

    def earned(self, worker: str, about: str, total: int, unit: int = 10_000) -> str | None:
        """Write that a worker gets as a bonus what their answers earned and was not sent yet.

        The answers have been paid from the budget, so nothing more is taken from it. What was
        refused is sent by `reopen`, and not written again.
        """
        before = [one for one in self.requests() if one.id.startswith(f"earned:{worker}:")]
        amount = (total - sum(one.amount for one in before)) // unit * unit
        if amount <= 0:
            return None
        # The number is taken once: two who write at the same time do not both pay.
        name = f"earned:{worker}:{len(before)}"
        return self._write(name, BONUS, worker, about, amount=amount, why="answers")

    def reopen(self, name: str) -> None:
        """Let a request that was refused be sent again."""
        request = next((one for one in self.requests() if one.id == name), None)
        if request is None or request.state != REFUSED:
            raise InputError(f"there is no request {name!r} that was refused")
        self.note(request, READY)

    def note(self, request: PaymentRequest, state: str, **facts: Any) -> PaymentRequest | None:
        """Keep the next step of a request; None if somebody else was first."""
        now = self.clock()
        body = {"letter": request.id, "state": state, "time": now, "facts": facts}
        name = f"{request.id}#{request.n_steps:04d}"
        try:
            self._store.record(STEP, name, {**body, "sender": self._sender}, now)
        except InputError:
            return None
        return _with_step(request, body, request.n_steps + 1)

    def _write(self, name: str, act: str, worker: str, about: str, **more: Any) -> str:
        body = {"act": act, "worker": worker, "about": about, **more}
        self._store.record(REQUEST, name, body, self.clock())
        return name

    def _bonus(self, worker: str, amount: int, why: str) -> str | None:
        """Return the bonus that was written for a worker and a reason, None if there is none."""
        prefix = f"{BONUS}:"  # what answers earned has no reason of anybody's
        for one in self.requests():
            if (one.worker, one.why) == (worker, why) and one.id.startswith(prefix):
                if one.amount != amount:
                    raise InputError(
                        f"{worker}: a bonus of {from_micro(one.amount)} was written for {why!r}, "
                        f"not of {from_micro(amount)}: give another reason"
                    )
                return one.id
        return None

    def _decide(self, act: str, worker: str, about: str, **more: str) -> str:
        """Write a decision, unless there is one; one that was refused can be written anew."""
        mine = [one for one in self.requests() if one.about == about and one.act != BONUS]
        there = next((one for one in mine if one.state != REFUSED), None)
        if there is None:
            return self._write(f"{act}:{about}:{len(mine)}", act, worker, about, **more)
        if there.act != act or {key: getattr(there, key) for key in more} != more:
            raise InputError(f"{worker}: there is a request to {there.act} already")
        return there.id


Deliver = Callable[[PaymentRequest, PaymentQueue], None]
"""Sends a request, and notes in the queue every step before and after it."""


def send_all(queue: PaymentQueue, deliver: Deliver) -> int:
    """Send what can be sent; count the requests that are done now."""
    done = 0
    tried: set[str] = set()
    while True:
        fresh = [one for one in queue.open() if one.id not in tried]
        if not fresh:
            return done
        for request in fresh:
            tried.add(request.id)
            deliver(request, queue)
        states = {one.id: one.state for one in queue.requests()}
        done += sum(states[one.id] in FINAL for one in fresh)


def _request(name: str, body: Mapping[str, Any], steps: list[dict[str, Any]]) -> PaymentRequest:
    request = PaymentRequest(id=name, **body)
    return _with_step(request, steps[-1], len(steps)) if steps else request


def _with_step(request: PaymentRequest, step: Mapping[str, Any], n_steps: int) -> PaymentRequest:
    now = {"state": step["state"], "time": step["time"], "facts": step["facts"]}
    return replace(request, **now, n_steps=n_steps)


# --------------------------------------------------------------------------------------------------
# A thread of the server that sends requests, if the plan says so.


log = logging.getLogger("goldspan.web.payments")
EVERY = 60.0
"""Seconds."""


class PaymentThread:
    """Sends the requests of a campaign until it is stopped."""

    def __init__(self, queue: PaymentQueue, deliver: Deliver, every: float = EVERY) -> None:
        self._queue, self._send, self._every = queue, deliver, every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.n_faults = 0
        """Attempts to send that failed."""

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="goldspan payments", daemon=True)
        self._thread.start()

    def abandon(self) -> None:
        """Begin no other request; nothing is waited for."""
        self._stop.set()

    def stop(self) -> None:
        """End after the request that is being sent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def _run(self) -> None:
        while True:
            self._once()
            if self._stop.wait(self._every):
                return

    def _deliver(self, request: PaymentRequest, queue: PaymentQueue) -> None:
        if self._stop.is_set():
            raise Later("the server ends")
        self._send(request, queue)

    def _once(self) -> None:
        try:
            done = send_all(self._queue, self._deliver)
        except GoldspanError as error:
            self.n_faults += 1
            log.warning("the queue waits: %s", error)
        except Exception as error:  # noqa: BLE001 - the thread must outlive what it cannot foresee
            self.n_faults += 1
            # Its words might hold what was sent: the kind must do.
            log.error("the queue waits: %s", type(error).__name__)  # noqa: TRY400
        else:
            if done:
                log.info("%d requests sent", done)
