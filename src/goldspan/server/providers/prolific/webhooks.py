"""Signed messages of Prolific's (webhooks): what they must be like before they are believed.

As Prolific documents it (API reference, Webhooks, "Verifying"): `X-Prolific-Request-Signature` is
the Base64 of the HMAC-SHA-256, under the workspace's secret, of `X-Prolific-Request-Timestamp`
followed by the body. `X-Event-ID` is the same when a message is sent again, `X-Timestamp` says when
the event was sent, and messages come at least once and in any order.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest, new
from typing import Any

from goldspan.server.errors import Refused
from goldspan.server.providers.prolific.options import ID

WINDOW = 300_000
"""Milliseconds by which a message's time may differ from the clock."""
_TIME = re.compile(r"[0-9]{1,13}(\.[0-9]{1,9})?")
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,100}")


@dataclass(frozen=True)
class Message:
    """A message that is Prolific's.

    Attributes:
        id: The same when it is sent again.
        signature: Fingerprint of its signature.
        time: When the event was sent, in milliseconds since 1970.
        kind: Of the event.
        submission: Whose status it tells, "" if it is about something else.
        participant: Whose submission it is.
        status: The new one.
    """

    id: str
    signature: str
    time: int
    kind: str
    submission: str = ""
    participant: str = ""
    status: str = ""


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Give the signature of a message, as Prolific makes it."""
    words = new(secret.encode(), timestamp.encode() + body, sha256).digest()
    return base64.b64encode(words).decode("ascii")


def read_message(headers: Mapping[str, str], body: bytes, secret: str, now: int) -> Message:
    """Read a message.

    Args:
        headers: Names in lower case.
        body: As it came, byte by byte.
        secret: Of the workspace.
        now: Milliseconds since 1970.

    Raises:
        Refused: It is not signed with the secret, not of this time, or not of a known form.
    """
    timestamp = headers.get("x-prolific-request-timestamp", "")
    given = headers.get("x-prolific-request-signature", "")
    if not compare_digest(sign(secret, timestamp, body).encode(), given.encode()):
        raise Refused("signature", "This is not signed as it should be.", 401)
    sent = _milliseconds(timestamp)
    if sent is None or abs(now - sent) > WINDOW:
        raise Refused("late", "This was signed too long ago, or a clock is wrong.", 401)
    facts = _facts(body)
    signature = sha256(given.encode()).hexdigest()
    name = headers.get("x-event-id") or signature
    if not _NAME.fullmatch(name):
        raise Refused("invalid", "The header X-Event-ID is no id.", 400)
    # A time that is not signed may put an event back, never before what has not happened yet.
    when = min(_milliseconds(headers.get("x-timestamp", "")) or sent, sent)
    if facts.get("event_type") != "submission.status.change":
        return Message(name, signature, when, str(facts.get("event_type"))[:100])
    words = [facts.get(key) for key in ("resource_id", "participant_id", "status")]
    submission, participant, status = (one if isinstance(one, str) else "" for one in words)
    is_status = 0 < len(status) < 100 and status.isprintable()
    if not (ID.fullmatch(submission) and ID.fullmatch(participant) and is_status):
        raise Refused("invalid", "resource_id, participant_id or status is not what it was.", 400)
    kind = "submission.status.change"
    return Message(name, signature, when, kind, submission, participant, status.upper())


def _milliseconds(word: str) -> int | None:
    """Read a time of UNIX in seconds, or in milliseconds where it has that many digits."""
    if not word.isascii() or not _TIME.fullmatch(word):
        return None
    value = float(word)
    return round(value if value > 1e11 else value * 1000)


def _facts(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("invalid", "The body is no JSON object.", 400)
    return found
