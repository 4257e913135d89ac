"""A client of a served campaign: what the desk's API offers, with typed results.

Results are the views of `goldspan.web.desk.models`; what a newer server sends beyond them is left
out. What can be repeated without harm is sent again, with growing pauses, when the server is busy
or the network fails; a decision carries a key, so that it counts once however often it is sent.
"""

from __future__ import annotations

import base64
import hmac
import json
import random
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import quote, urlsplit

from goldspan.errors import GoldspanError, InputError, MissingExtraError
from goldspan.http import ask, is_download, without_secret
from goldspan.plugins import secret_of

try:
    from pydantic import TypeAdapter, ValidationError

    from goldspan.web.desk.models import (
        Export,
        FoundSpan,
        Item,
        ItemPage,
        ItemRow,
        LinkRow,
        NewLink,
        Overview,
        UncertainItem,
        Worker,
    )
    from goldspan.web.models import SpanBody
except ImportError:  # pragma: no cover - the extra is installed where the tests run
    raise MissingExtraError("pydantic", "client", "the client") from None

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "Client",
    "FoundSpan",
    "Item",
    "Overview",
    "RefusedError",
    "UnreachableError",
    "read_webhook",
]
Made = TypeVar("Made")


TOKEN = "GOLDSPAN_TOKEN"  # noqa: S105 - the name of a variable
"""The variable of the environment that holds the token, or with _FILE names a file that does."""
LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
SECONDS = 30.0
"""How long the server may take to answer."""
TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before the second try, which double with each one, and most of them; also of what the
server asks for: who is told to wait longer gets the refusal."""
PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed; 429 alone says that nothing was done."""
LARGEST = 64_000_000
"""Bytes of a reply that is no file."""
_DEVICE = re.compile(r"(con|prn|aux|nul|com.|lpt.)(\..*)?", re.IGNORECASE)
_NO_WORDS = (ValueError, LookupError, TypeError, RecursionError)  # of strange or deep JSON
_FILE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?")
"""What Windows takes for devices; what else a file of a campaign can be called."""


# --------------------------------------------------------------------------------------------------
# Errors


class RefusedError(GoldspanError):
    """The server refused a request, or answered something else than was asked.

    Attributes:
        status: Of HTTP.
        code: A short name, the same for the same reason: "token", "scope", "unknown", "invalid", …
        message: What was wrong, in words.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(f"{message} ({status} {code})")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status, self.code, self.message)


class UnreachableError(GoldspanError):
    """The server cannot be reached: nothing is known of what became of a change."""


# --------------------------------------------------------------------------------------------------
# The client


class Client:
    """A campaign that is served, seen through its API.

    Args:
        url: The address of the server, such as https://labels.example.org.
        token: A token of `goldspan tokens add`; by default what the variable GOLDSPAN_TOKEN of the
            environment holds, or the file that GOLDSPAN_TOKEN_FILE names.
        insecure: Whether the token may be sent without HTTPS to another machine.
        tries: How often a request is sent at most.
        seconds: How long the server may take to answer.
        sleep: Waits for some seconds between two tries.
        transport: How requests travel, for tests.

    Raises:
        InputError: The address or the token cannot be used.
        MissingExtraError: httpx2 is not installed.

    >>> client = Client("https://labels.example.org", token="gst_1_a")
    >>> client
    Client('https://labels.example.org')
    >>> client.close()
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        insecure: bool = False,
        tries: int = TRIES,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        if tries < 1:
            raise InputError(f"must be at least 1, not {tries}", parameter="tries")
        self.url, is_local = _checked(url, insecure=insecure)
        token = token or secret_of(TOKEN)
        if not token:
            raise InputError(f"no token: give one, or set {TOKEN} or {TOKEN}_FILE")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("the token must be one word of ASCII characters")
        try:
            import httpx2
        except ImportError:  # pragma: no cover - the extra is installed where the tests run
            raise MissingExtraError("httpx2", "client", "the client") from None
        from goldspan import __version__

        self._tries, self._seconds, self._sleep, self._token = tries, seconds, sleep, token
        self._http = httpx2.Client(
            base_url=f"{self.url}/api/desk/", timeout=seconds, follow_redirects=False,
            trust_env=not is_local, transport=transport,
            headers={"Authorization": f"Bearer {token}", "User-Agent": f"goldspan/{__version__}"},
        )  # fmt: skip

    def __repr__(self) -> str:
        """Name the server; the token is a secret."""
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # ---- what there is ----

    def overview(self) -> Overview:
        """Return how far the campaign is (scope "progress")."""
        return self._get(Overview, "overview")

    def uncertain(self, limit: int = 20, by: str = "confidence") -> tuple[UncertainItem, ...]:
        """Return items by "confidence" or "information" (scope "results" or "review")."""
        return self._get(tuple[UncertainItem, ...], f"uncertain?limit={int(limit)}&by={quote(by)}")

    def items(
        self,
        find: str = "",
        state: Literal["all", "open", "done", "flagged", "gold"] = "all",
        page: int = 100,
    ) -> Iterator[ItemRow]:
        """Yield the items that were asked about, in order (scope "results").

        Args:
            find: Only those whose id or text contains this.
            state: Only those in this state.
            page: How many are fetched at once, 200 at most.
        """
        after, more = "", True
        while more:
            asked = {"after": after, "find": find, "state": state, "limit": page}
            got = self._typed(ItemPage, self._send("GET", "items", params=asked))
            for row in got.items:
                yield row
                after = row.item
            more = got.more and bool(got.items)

    def item(self, item: str, page: int = 1) -> Item:
        """Return all that is known of an item, 50 answers a page (scope "results" or "review")."""
        return self._get(Item, f"items/{quote(item, safe='')}?page={int(page)}")

    def workers(self) -> tuple[Worker, ...]:
        """Return the annotators, those with most answers first (scope "people")."""
        return self._get(tuple[Worker, ...], "workers")

    def links(self) -> tuple[LinkRow, ...]:
        """Return the personal links that were made (scope "links"; for names also "people")."""
        return self._get(tuple[LinkRow, ...], "links")

    def files(self) -> tuple[Export, ...]:
        """Return the files that can be downloaded (scope "results")."""
        return self._get(tuple[Export, ...], "exports")

    def download(self, name: str, folder: str | Path, *, names: bool = False) -> Path:
        """Write a file of the campaign into a folder, and nowhere else.

        A file of the same name is replaced when the new one is whole.

        Args:
            name: As in `files()`: letters, digits and . _ - alone, whatever the server says.
            folder: Where to.
            names: Whether it names the annotators (scope "people"; the campaign's log records it).
        """
        from goldspan.crowd.atomic import new_file

        if not _FILE.fullmatch(name) or _DEVICE.fullmatch(name):
            raise InputError(f"{name!r:.100} is not the name of a file of a campaign")
        target = Path(folder, name)
        params = {"names": "true"} if names else {}
        with new_file(target) as temporary, temporary.open("wb") as file:
            answer = self._send("GET", f"exports/{name}", params=params, file=file)
            if not is_download(answer):
                raise self._strange(answer, "it sent no file")
        return target

    # ---- what is decided ----

    def decide(
        self,
        item: str,
        *,
        label: str | None = None,
        spans: Sequence[tuple[int, int, str] | SpanBody | FoundSpan] | None = None,
    ) -> None:
        """Decide what an item's labels are: from now on they are gold (scope "review").

        Args:
            item: The item.
            label: Its label, in a task with one label per item.
            spans: Otherwise its spans as (start, end, type) in tokens; an empty list: none.
        """
        if (label is None) == (spans is None):
            raise InputError("give either a label or spans")
        body: dict[str, Any] = {"label": label}
        if spans is not None:
            body = {"spans": list(map(_span, spans))}
        self._decide(f"items/{quote(item, safe='')}/gold", body, item=item)

    def undo(self, item: str) -> None:
        """Take the last decision about an item back; the one before it holds (scope "review")."""
        path = f"items/{quote(item, safe='')}/gold"
        self._check(self._send("DELETE", path, again=False), item=item)  # twice: two of them

    def judge(self, worker: str, verdict: Literal["keep", "drop", "test"], why: str = "") -> None:
        """Keep an annotator, drop them, or ask them more gold questions (scope "people")."""
        body = {"verdict": verdict, "why": why}
        self._decide(f"workers/{quote(worker, safe='')}/verdict", body, worker=worker)

    def pause(self) -> None:
        """Hand out no new tasks (scope "steer")."""
        self._check(self._send("POST", "pause"), paused=True)

    def resume(self) -> None:
        """Hand out tasks again (scope "steer")."""
        self._check(self._send("POST", "resume"), paused=False)

    def stop(self) -> None:
        """End the campaign with what there is, which cannot be taken back (scope "steer")."""
        self._check(self._send("POST", "stop"), ended=True)

    def make_links(self, workers: Sequence[str], days: float = 30) -> tuple[NewLink, ...]:
        """Make a personal link for each annotator (scope "links"; who is known: also "people").

        It is not sent again where it may have been done: an error then says so, and `links()` shows
        whether there are new ones, whose addresses nobody has.
        """
        body = {"workers": list(workers), "days": days}
        answer = self._send("POST", "links", json=body, again=False)
        return self._typed(tuple[NewLink, ...], answer)

    def revoke_link(self, link: str) -> None:
        """Take a personal link back (scope "links")."""
        self._check(self._send("DELETE", f"links/{quote(link, safe='')}"), revoked=True)

    # ---- how requests are made ----

    def _get(self, kind: type[Made], path: str) -> Made:
        return self._typed(kind, self._send("GET", path))

    def _typed(self, kind: type[Made], answer: Any) -> Made:
        try:
            return TypeAdapter(kind).validate_json(answer.content, extra="ignore")
        except ValidationError as error:
            raise self._strange(answer, str(error.errors()[0]["msg"])) from None

    def _decide(self, path: str, body: dict[str, Any], **done: Any) -> None:
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        self._check(self._send("POST", path, json=body, headers=headers), **done)

    def _check(self, answer: Any, **done: Any) -> None:
        """Raise an error unless the server says what was done: a proxy may have answered."""
        try:
            found = answer.json()
            if {name: found[name] for name in done} == done:
                return
        except _NO_WORDS:
            pass
        raise self._strange(answer, "it does not say that it did it")

    def _strange(self, answer: Any, why: str) -> RefusedError:
        words = f"{self.url} did not answer as goldspan does: {why}"
        return RefusedError(answer.status_code, "form", words)

    def _send(self, method: str, path: str, *, again: bool = True, **more: Any) -> Any:
        """Send a request until it is answered; `again`: also if it may have been done."""
        for attempt in range(self._tries):
            is_last = attempt + 1 == self._tries
            answer = self._once(method, path, again=again and not is_last, **more)
            if answer is not None and answer.is_success:
                return answer
            passes = answer is None or answer.status_code in (PASSING if again else {429})
            pause = FIRST_PAUSE * 2.0**attempt * (0.5 + random.random() / 2)  # noqa: S311
            told = _retry_after(answer)
            if is_last or not passes or (told is not None and told > LONGEST_PAUSE):
                assert answer is not None  # the last try raises
                raise _refusal(answer, self._token)
            self._sleep(min(max(pause, told or 0.0), LONGEST_PAUSE))
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, *, again: bool, **more: Any) -> Any:
        """Send a request once; None where it is to be sent again."""
        import httpx2

        try:
            return ask(self._http, method, path, LARGEST, self._seconds, **more)
        except httpx2.TransportError as error:
            if again:
                return None
            words = "; nothing is known of what became of the change" if method != "GET" else ""
            why = f"{type(error).__name__}: {without_secret(str(error), self._token)}"
            raise UnreachableError(f"{self.url} cannot be reached: {why}{words}") from None
        except httpx2.DecodingError as error:
            raise UnreachableError(f"the answer of {self.url} cannot be read: {error}") from None


def _span(span: tuple[int, int, str] | SpanBody | FoundSpan) -> dict[str, Any]:
    """Return a span as it is sent."""
    if isinstance(span, SpanBody | FoundSpan):
        names = {"start", "end", "type", "from_char", "to_char"}
        return span.model_dump(include=names, exclude_none=True)
    try:
        start, end, kind = span
    except (TypeError, ValueError):
        raise InputError(f"a span is (start, end, type), not {span!r:.80}") from None
    return {"start": start, "end": end, "type": kind}


def _checked(url: str, *, insecure: bool) -> tuple[str, bool]:
    """Return an address as it is used, and whether it is this machine's."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "@" in parts.netloc:
        raise InputError(f"{url!r} is not the address of a server: https://labels.example.org")
    is_local = parts.hostname in LOCAL
    if parts.scheme == "http" and not is_local and not insecure:
        raise InputError(
            f"{url} would send the token over the network for all to read: use https://, or in a "
            "network that you trust alone insecure=True"
        )
    return url.rstrip("/"), is_local


def _retry_after(answer: Any) -> float | None:
    """Return the seconds that the server asks to wait."""
    told = "" if answer is None else answer.headers.get("Retry-After", "")
    return float(told[:9]) if told.isascii() and told.isdigit() else None


def _refusal(answer: Any, token: str) -> RefusedError:
    """Return what the server refused, in its own words; whoever answers may echo the token."""
    try:
        said = answer.json()["error"]
        code, words = (without_secret(str(said[name]), token) for name in ("code", "message"))
        return RefusedError(answer.status_code, code, words)
    except _NO_WORDS:
        words = "The server answered something else than goldspan does: is the address right?"
        return RefusedError(answer.status_code, "form", words)


# --------------------------------------------------------------------------------------------------
# Webhooks: what the server sends to a program


@dataclass(frozen=True)
class Webhook:
    """A message of a campaign's server.

    Attributes:
        id: The same whenever the message comes again: handle each id once.
        event: "round.closed", "campaign.ended" or "answer".
        campaign: The campaign's id.
        time: When it happened, in milliseconds since 1970.
        data: What happened.
    """

    id: str
    event: str
    campaign: str
    time: int
    data: Mapping[str, Any]


def read_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = 300.0,
    now: Callable[[], float] = time.time,
) -> Webhook:
    """Check the signature of a message, and read it.

    The signature is that of Standard Webhooks: HMAC-SHA-256 over id, timestamp and body.

    Args:
        body: As it came, to the byte.
        headers: `webhook-id`, `webhook-timestamp` and `webhook-signature`, in any case.
        secret: The same as the server's.
        tolerance: Seconds that the timestamp may be away from now: what is older was replayed.
        now: The time, in seconds since 1970.

    Raises:
        InputError: The signature is missing, wrong or too old.
    """
    if not isinstance(body, bytes | bytearray):
        raise InputError("body must be the bytes as they came, not text that was read from them")
    given = {name.lower(): value for name, value in headers.items()}
    name, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not name or not (sent.isascii() and sent.isdigit() and len(sent) <= 12):
        raise InputError("the message has no webhook-id or webhook-timestamp")
    right = sign_webhook(secret, name, sent, body)
    signatures = given.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(right.encode(), one.encode()) for one in signatures):
        raise InputError("the signature of the message is wrong: is the secret the server's?")
    if abs(now() - int(sent)) > tolerance:
        raise InputError(f"the message was signed more than {tolerance:g} seconds from now")
    try:
        found = json.loads(body)
        told = str(found["type"]), str(found["campaign"]), int(found["time"])
        return Webhook(name, *told, dict(found["data"]))
    except _NO_WORDS as error:
        raise InputError(f"the message is not one of goldspan's: {error}") from None


def sign_webhook(secret: str, name: str, sent: str, body: bytes) -> str:
    """Return the signature of a message: "v1," and Base64.

    A secret that begins with "whsec_" is Base64 after that, as Standard Webhooks has it; any other
    is taken as it is.

    >>> sign_webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
    ...              "1614265330", b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = secret.encode()
    if secret.startswith("whsec_"):
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except ValueError:
            raise InputError("a secret that begins with whsec_ must be Base64 after it") from None
    made = hmac.new(key, f"{name}.{sent}.".encode() + body, sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"
