"""Prolific: studies, submissions, signed messages, bonuses."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from hmac import compare_digest, new
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from goldspan.campaign.clock import wall_of
from goldspan.campaign.section import Money, Section
from goldspan.errors import (
    GoldspanError,
    InputError,
    MissingExtraError,
    UnavailableError,
    UnknownNameError,
)
from goldspan.http import ask, without_secret
from goldspan.money import to_micro
from goldspan.web.errors import Refused
from goldspan.web.models import json_object
from goldspan.web.providers.payments import (
    APPROVE,
    BONUS,
    READY,
    REFUSED,
    SENDING,
    SENT,
    Deliver,
    Later,
    PaymentQueue,
    PaymentRequest,
)
from goldspan.web.providers.registry import Event, Provider

if TYPE_CHECKING:
    import httpx2

    from goldspan.store import SqlLedger
from goldspan.plugins import secret_of

# --------------------------------------------------------------------------------------------------
# What a plan says of a study at Prolific; the token and the webhook's secret stand elsewhere.


ID = re.compile(r"[0-9a-f]{24}")
"""How Prolific writes the ids of studies, participants and submissions."""
Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
TOKEN, WEBHOOK = "GOLDSPAN_PROLIFIC_TOKEN", "GOLDSPAN_PROLIFIC_WEBHOOK_SECRET"
"""Variables of the environment that hold a secret, or with _FILE name a file that does."""


class ProlificOptions(Section):
    """A study at Prolific."""

    study: str  # Its id
    code: Code  # The completion code of who has finished
    code_dropped: Code | None = None  # That of who is asked nothing more; `code` by default
    # Whether Prolific is asked who comes in; if not, whoever knows the study's id can come in under
    # any name
    check: bool = True
    # Whether a submission that awaits review is approved, unless its worker was dropped
    approve: bool = False
    # What Prolific pays for a submission; what a worker's answers earned beyond that of all their
    # submissions is sent by `goldspan payments --earned`
    reward: Money = 0
    send: bool = False  # Whether the server sends requests by itself
    # How long a bonus of which no answer came may take to be listed, before it is sent again
    settle_minutes: Annotated[float, Field(ge=10, le=7 * 24 * 60)] = 60.0

    @field_validator("study")
    @classmethod
    def _id(cls, value: str) -> str:
        if not ID.fullmatch(value):
            raise ValueError("must be the study's id, 24 digits and requests from a to f")
        return value


# --------------------------------------------------------------------------------------------------
# Prolific's API: few calls, each with a clear end – done, refused, later, or nobody knows.


URL = "https://api.prolific.com/api/v1/"
TRIES, PAY_TRIES = 5, 2
SECONDS = 30.0
"""How long an answer may take."""
LONGEST_WAIT = 120.0
"""Seconds; who is told to wait longer comes back at another time."""
MOST_WORDS = 300
MOST_BYTES = 10_000_000
"""Of a reply."""


class Declined(GoldspanError):  # noqa: N818 - what happened to the request
    """Prolific has answered that it does not do this."""

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(f"Prolific answered {status}: {words[:MOST_WORDS]}")


class Unclear(GoldspanError):  # noqa: N818 - what is known
    """No clear answer came: it may have been done."""


class Api:
    """Prolific's API."""

    def __init__(
        self,
        token: str,
        client: httpx2.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._token, self._client, self._sleep = token, client or _client(), sleep

    def submission(self, submission: str) -> dict[str, Any]:
        """Return what is known of a submission."""
        return self._object("GET", f"submissions/{submission}/")

    def bonuses(self, submission: str) -> list[float]:
        """Return the bonuses that were paid on a submission, in cents."""
        found = self.submission(submission).get("bonus_payments") or []
        if not isinstance(found, list) or not all(type(one) in {int, float} for one in found):
            raise Later("Prolific's list of bonuses has another form than it is known to have")
        return found

    def transition(self, submission: str, body: dict[str, str]) -> None:
        """Approve or reject a submission; a second time it does nothing."""
        self._ask("POST", f"submissions/{submission}/transition/", body)

    def set_up_bonus(self, study: str, submission: str, cents: int) -> str:
        """Prepare a bonus, which pays nothing yet; give the id by which it is paid."""
        row = f"{submission},{cents // 100}.{cents % 100:02d}"
        body = {"study_id": study, "csv_bonuses": row}
        found = self._object("POST", "submissions/bonus-payments/", body)
        if found.get("amount") not in {None, cents}:
            raise Declined(200, f"the amount is {found['amount']}, where {cents} cents were meant")
        name = found.get("id")
        if not isinstance(name, str) or not name.replace("-", "").isalnum():
            raise Later("Prolific's answer to a bonus has another form than it is known to have")
        return name

    def pay(self, prepared: str) -> None:
        """Pay a prepared bonus: every call that arrives pays."""
        self._ask("POST", f"bulk-bonus-payments/{prepared}/pay/", {}, again=False)

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        found = json_object(self._ask(method, path, body).content)
        if found is None:
            raise Later("Prolific's answer is not a JSON object")
        return found

    def _ask(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        """Ask until there is an answer."""
        tries = TRIES if again else PAY_TRIES
        for attempt in range(tries):
            answer = self._once(method, path, body, again=again)
            if answer is not None and answer.status_code < 300:
                return answer
            wait = _wait(answer, attempt)
            if wait > LONGEST_WAIT or attempt + 1 == tries:
                break
            self._sleep(wait)
        raise Later("Prolific cannot be reached or asks to wait: send again later")

    def _once(self, method: str, path: str, body: Any, *, again: bool) -> Any:
        """Ask once; None where the request did not arrive, or can be made again."""
        import httpx2

        headers = {"Authorization": f"Token {self._token}"}
        try:
            more = {"json": body, "headers": headers}
            answer = ask(self._client, method, URL + path, MOST_BYTES, SECONDS, **more)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            return None  # nothing was sent
        except httpx2.RequestError as error:
            if again:
                return None
            raise Unclear(f"{type(error).__name__} while Prolific was asked") from None
        status = answer.status_code
        if status < 300 or status == 429:
            return answer
        if status >= 500 or status == 408:
            if not again:
                raise Unclear(f"Prolific answered {status}")
            return answer
        if status == 401:  # the account's fault, not the request's
            raise Later("Prolific does not take the token: is it right, and not deleted?")
        raise Declined(status, without_secret(answer.text, self._token))


def _wait(answer: Any, attempt: int) -> float:
    told = "" if answer is None else answer.headers.get("Retry-After", "")
    return float(told[:6]) if told.isascii() and told.isdigit() else 2.0**attempt


def _client() -> httpx2.Client:
    try:
        import httpx2
    except ImportError:  # pragma: no cover - the extra is installed where the tests run
        raise MissingExtraError("httpx2", "server", "Prolific") from None
    return httpx2.Client(timeout=SECONDS, follow_redirects=False)


# --------------------------------------------------------------------------------------------------
# Submissions at Prolific: what Prolific said of them.


SUBMISSION, STATUS = "submission", "submission-status"
"""Kinds of records: who came with which submission; the messages about it."""
RETURNED = "RETURNED"
COURSE = ("RESERVED", "ACTIVE", "TIMED-OUT", RETURNED, "AWAITING REVIEW",
          "SCREENED OUT", "PARTIALLY APPROVED", "REJECTED", "APPROVED")  # fmt: skip
"""Statuses in the order in which they follow each other within the same second."""
OVER = frozenset(COURSE[2:])
"""Statuses in which nobody works any more."""


def _order(facts: dict[str, Any]) -> tuple[int, int]:
    status = facts["status"]
    return facts["time"], COURSE.index(status) if status in COURSE else -1


# --------------------------------------------------------------------------------------------------
# Carries requests to Prolific: approvals and rejections any number of times, a bonus once.


CENT = 10_000
"""Millionths."""
MOST_DELAY = 120_000
"""Milliseconds from keeping that a bonus is sent to sending it; less than any settling time."""


class ProlificSender:
    """Carries requests to Prolific."""

    def __init__(
        self, api: Api, study: str, settle_minutes: float, clock: Callable[[], int]
    ) -> None:
        self._api, self._study, self._clock = api, study, clock
        self._wall = wall_of(clock)
        self._settle = round(settle_minutes * 60_000)

    def deliver(self, request: PaymentRequest, queue: PaymentQueue) -> None:
        """Send a request, and note every step."""
        try:
            if request.act == BONUS:
                self._bonus(request, queue)
            else:
                self._transition(request, queue)
        except Declined as error:
            queue.note(request, REFUSED, why=str(error))

    def _transition(self, request: PaymentRequest, queue: PaymentQueue) -> None:
        """Approve or reject; Prolific ignores the second time."""
        body = {"action": request.act.upper()}
        if request.act != APPROVE:
            body |= {"message": request.why, "rejection_category": request.category}
        wanted = "APPROVED" if request.act == APPROVE else "REJECTED"
        try:
            self._api.transition(request.about, body)
        except Declined:
            # Somebody may have done it on the site, or the answer to the first try was lost.
            if self._api.submission(request.about).get("status") != wanted:
                raise
        queue.note(request, SENT)

    def _bonus(self, request: PaymentRequest, queue: PaymentQueue) -> None:
        if request.amount % CENT:
            queue.note(request, REFUSED, why="Prolific pays whole cents")
            return
        cents = request.amount // CENT
        listed = self._listed(request, cents)
        if request.state == SENDING and listed > request.facts["before"]:
            queue.note(request, SENT, before=request.facts["before"], how="listed")
            return
        # Whether a bonus of this amount may still appear on the list, this one or an earlier
        alike = [
            one
            for one in queue.requests()
            if (one.act, one.about, one.amount) == (BONUS, request.about, request.amount)
            and (one.state == SENDING or (one.state == SENT and listed <= one.facts["before"]))
        ]
        if any(self._clock() - one.time < self._settle for one in alike):
            return
        prepared = self._api.set_up_bonus(self._study, request.about, cents)
        begin = self._wall()
        # Whoever gets to note this pays, and nobody else.
        sending = queue.note(request, SENDING, prepared=prepared, before=listed)
        if sending is not None:
            self._pay(sending, queue, begin)

    def _pay(self, request: PaymentRequest, queue: PaymentQueue, begin: int) -> None:
        # A monotone clock may stand still while the machine sleeps; the wall clock does not.
        delay = max(self._clock() - request.time, self._wall() - begin)
        if delay > MOST_DELAY:  # asleep since, and somebody else may pay
            queue.note(request, READY)
            return
        try:
            self._api.pay(request.facts["prepared"])
        except Later:  # it has not arrived, or was refused for now
            queue.note(request, READY)
            raise
        except Unclear:
            return
        except Declined as error:
            queue.note(request, REFUSED, why=str(error))
        else:
            queue.note(request, SENT, before=request.facts["before"], how="answered")

    def _listed(self, request: PaymentRequest, cents: int) -> int:
        """Count the bonuses of this amount that Prolific lists."""
        try:
            found = self._api.bonuses(request.about)
        except Declined as error:
            if request.state != SENDING:
                raise
            # It may have been paid, so it is not refused.
            raise Later(f"what became of {request.id!r} cannot be asked: {error}") from None
        return sum(abs(one - cents) < 0.5 for one in found)


# --------------------------------------------------------------------------------------------------
# Signed messages of Prolific's (webhooks): what they must be like before they are believed.


WINDOW = 300_000
"""Milliseconds by which a message's time may differ from the clock."""
_TIME = re.compile(r"[0-9]{1,13}(\.[0-9]{1,9})?")
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,100}")


@dataclass(frozen=True)
class Message:
    """A message that is Prolific's."""

    id: str  # The same when it is sent again
    signature: str
    time: int  # When the event was sent, in milliseconds since 1970
    submission: str = ""  # Whose status it tells, "" if it is about something else
    participant: str = ""  # Whose submission it is
    status: str = ""


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message, as Prolific makes it."""
    words = new(secret.encode(), timestamp.encode() + body, sha256).digest()
    return base64.b64encode(words).decode("ascii")


def read_message(headers: Mapping[str, str], body: bytes, secret: str, now: int) -> Message:
    """Read a message."""
    timestamp = headers.get("x-prolific-request-timestamp", "")
    given = headers.get("x-prolific-request-signature", "")
    if not compare_digest(sign(secret, timestamp, body).encode(), given.encode()):
        raise Refused("signature", "This is not signed as it should be.", 401)
    sent = _milliseconds(timestamp)
    if sent is None or abs(now - sent) > WINDOW:
        raise Refused("late", "This was signed too long ago, or a clock is wrong.", 401)
    facts = json_object(body)
    if facts is None:
        raise Refused("invalid", "The body is not a JSON object.", 400)
    signature = sha256(given.encode()).hexdigest()
    name = headers.get("x-event-id") or signature
    if not _NAME.fullmatch(name):
        raise Refused("invalid", "The header X-Event-ID is not an id.", 400)
    # A time that is not signed may put an event back, never before what has not happened yet.
    when = min(_milliseconds(headers.get("x-timestamp", "")) or sent, sent)
    if facts.get("event_type") != "submission.status.change":
        return Message(name, signature, when)
    words = [facts.get(key) for key in ("resource_id", "participant_id", "status")]
    submission, participant, status = (one if isinstance(one, str) else "" for one in words)
    is_status = 0 < len(status) < 100 and status.isprintable()
    if not (ID.fullmatch(submission) and ID.fullmatch(participant) and is_status):
        raise Refused("invalid", "resource_id, participant_id or status is not what it was.", 400)
    return Message(name, signature, when, submission, participant, status.upper())


def _milliseconds(word: str) -> int | None:
    """Read a time of UNIX in seconds, or in milliseconds where it has that many digits."""
    if not word.isascii() or not _TIME.fullmatch(word):
        return None
    value = float(word)
    return round(value if value > 1e11 else value * 1000)


# --------------------------------------------------------------------------------------------------
# Workers come from a study at Prolific, and go back with its completion code.


PARTICIPANT, STUDY, SESSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"
COMPLETE = "https://app.prolific.com/submissions/complete?cc={}"
LEAST_WHY = 100
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK"),
    *("LOW_EFFORT", "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
_STRANGE = "Open the study from its page at Prolific: this address is not complete."


class Prolific(Provider):
    """The provider of participants of a study."""

    Options = ProlificOptions
    name = "prolific"

    def __init__(
        self,
        options: ProlificOptions,
        store: SqlLedger,
        clock: Callable[[], int],
        api: Api | None = None,
    ) -> None:
        super().__init__(options, store, clock)
        self._given = api
        self.checks_people, self.sends_requests = options.check, options.send

    @cached_property
    def api(self) -> Api:
        """Prolific's API."""
        if self._given is not None:
            return self._given
        token = secret_of(TOKEN)
        if token is None:
            raise UnavailableError(
                f"Prolific needs a token: set {TOKEN}, or {TOKEN}_FILE to a file"
            )
        return Api(token)

    def is_new(self, parameters: Mapping[str, str]) -> bool:
        """Whether the submission is of this study and was never here."""
        _, submission = self._read(parameters)
        return self._worker(submission) is None

    def identify(self, parameters: Mapping[str, str]) -> str:
        """Return the participant, the same for all submissions of theirs."""
        participant, submission = self._read(parameters)
        if self._worker(submission) is None and self.options.check:
            self._check(participant, submission)
        if self._status(submission) in OVER:
            raise Refused("study", "Prolific says that this submission is over.", 403)
        try:
            self._store.record(SUBMISSION, submission, {"worker": participant}, self._clock())
        except InputError:
            raise Refused("study", "This submission is somebody else's.", 403) from None
        return participant

    def _read(self, parameters: Mapping[str, str]) -> tuple[str, str]:
        """Return the participant and the submission of an address."""
        words = [parameters.get(key, "") for key in (PARTICIPANT, STUDY, SESSION)]
        if not all(ID.fullmatch(word) for word in words):
            raise Refused("study", _STRANGE, 403)
        participant, study, submission = words
        if study != self.options.study:
            raise Refused("study", "This is not the study that is run here.", 403)
        return participant, submission

    def completion(self, worker: str) -> dict[str, Any] | None:
        """Return the address that ends the submission; none to who did not come from Prolific."""
        if not self._submissions(worker):
            return None
        code = self.options.code
        if self._store.standing().get(worker):
            code = self.options.code_dropped or code
        return {"url": COMPLETE.format(code), "code": code}

    def on_event(self, headers: Mapping[str, str], body: bytes) -> Event:
        """Take a message of Prolific's; see `webhooks`."""
        secret = secret_of(WEBHOOK)
        if secret is None:
            raise Refused("unknown", "This page does not exist.", 404)
        message = read_message(headers, body, secret, wall_of(self._clock)())
        worker = self._worker(message.submission)
        if worker is None or worker != message.participant:  # of another study of the workspace
            return Event("unknown")
        said = self._hear(message)
        status = self._status(message.submission)
        if status == "AWAITING REVIEW":
            self._approve(worker, message.submission)
        is_last = self._submissions(worker)[-1] == message.submission
        return Event(said, worker if status in OVER and is_last else "")

    def workers(self) -> list[str]:
        """Return everybody who came in."""
        rows = self._store.records(SUBMISSION).values()
        return list(dict.fromkeys(row["worker"] for row in rows))

    def owed(self, worker: str, earned: int) -> int:
        """Return what of a worker's earnings the rewards of their submissions do not pay."""
        # What is paid too much is gone: only a submission that was returned, and so never will be
        # paid, does not count. One that has timed out may still be approved.
        n_paid = sum(self._status(one) != RETURNED for one in self._submissions(worker))
        return max(0, earned - n_paid * to_micro(self.options.reward))

    def about(self, worker: str) -> str:
        """Return a worker's last submission."""
        found = self._submissions(worker)
        if not found:
            raise InputError(
                f"{worker} did not come from Prolific: requests are about participants"
            )
        return found[-1]

    def check_rejection(self, why: str, category: str) -> None:
        """Check what Prolific asks of a rejection."""
        if len(why) < LEAST_WHY:
            raise InputError(
                f"Prolific wants the reason of a rejection in {LEAST_WHY} characters or more, and "
                f"these are {len(why)}: say what was wrong with the work"
            )
        if category not in CATEGORIES:
            raise UnknownNameError("category of rejections", category, CATEGORIES)

    def sender(self) -> Deliver:
        """Return what carries requests to Prolific."""
        options = self.options
        return ProlificSender(self.api, options.study, options.settle_minutes, self._clock).deliver

    def _submissions(self, worker: str) -> list[str]:
        rows = self._store.records(SUBMISSION).items()
        return [name for name, row in rows if row["worker"] == worker]

    def _worker(self, submission: str) -> str | None:
        found = self._store.records(SUBMISSION).get(submission)
        return None if found is None else str(found["worker"])

    def _status(self, submission: str) -> str | None:
        """Return the latest status that Prolific sent, None if it sent none."""
        every = self._store.records(STATUS).values()
        rows = [one for one in every if one["submission"] == submission]
        return str(max(rows, key=_order)["status"]) if rows else None

    def _hear(self, message: Message) -> str:
        """Keep a message; say whether it is "taken", "repeated" or "old"."""
        there = self._store.records(STATUS)
        if message.id in there or message.signature in {one["signature"] for one in there.values()}:
            return "repeated"
        facts = {"submission": message.submission, "status": message.status, "time": message.time,
                 "signature": message.signature}  # fmt: skip
        others = [one for one in there.values() if one["submission"] == message.submission]
        is_old = any(_order(one) > _order(facts) for one in others)
        self._store.record(STATUS, message.id, facts, self._clock())
        return "old" if is_old else "taken"

    def _check(self, participant: str, submission: str) -> None:
        """Reject whom Prolific does not know as a participant at work."""
        try:
            found = self.api.submission(submission)
        except Declined:
            raise Refused("study", "Prolific does not know this submission.", 403) from None
        except GoldspanError:
            words = "Prolific cannot be asked now. Load the page again in a minute."
            raise Refused("unavailable", words, 503, retry=60) from None
        is_theirs = found.get("participant") == participant
        if not is_theirs or found.get("study_id") != self.options.study:
            raise Refused("study", "Prolific knows this submission as somebody else's.", 403)
        if str(found.get("status")).upper() in OVER:
            raise Refused("study", "Prolific says that this submission is over.", 403)

    def _approve(self, worker: str, submission: str) -> None:
        """Write an approval, if the plan says so and nothing was decided by hand."""
        if self.options.approve and not self._store.standing().get(worker):
            try:
                PaymentQueue(self._store, self._clock).approve(worker, submission)
            except InputError:  # it is to be rejected
                return
