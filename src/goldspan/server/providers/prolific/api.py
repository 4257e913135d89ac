"""Prolific's API: few calls, each with a clear end – done, refused, later, or nobody knows.

What does no harm twice is tried again after 429, 5xx and broken connections, with growing pauses or
as long as `Retry-After` says. What pays is sent once; when no clear answer comes, `Unclear` is
raised, and whoever asked must find out before sending it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from goldspan.errors import GoldspanError, MissingExtraError
from goldspan.server.providers.outbox import Later

if TYPE_CHECKING:
    import httpx2

URL = "https://api.prolific.com/api/v1/"
TRIES, PAY_TRIES = 5, 2
SECONDS = 30.0
"""How long an answer may take."""
LONGEST_WAIT = 120.0
"""Seconds; who is told to wait longer comes back at another time."""
MOST_WORDS = 300


class Declined(GoldspanError):  # noqa: N818 - what happened to the request
    """Prolific has answered that it does not do this.

    Attributes:
        status: Of HTTP.
    """

    def __init__(self, status: int, words: str) -> None:
        self.status = status
        super().__init__(f"Prolific answered {status}: {words[:MOST_WORDS]}")


class Unclear(GoldspanError):  # noqa: N818 - what is known
    """No clear answer came: it may have been done."""


class Api:
    """Prolific's API.

    Args:
        token: Of the account; it stands in no message and no log.
        client: By which it is reached.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        token: str,
        client: httpx2.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._token, self._client, self._sleep = token, client or _client(), sleep

    def submission(self, submission: str) -> dict[str, Any]:
        """Give what is known of a submission."""
        return self._object("GET", f"submissions/{submission}/")

    def bonuses(self, submission: str) -> list[float]:
        """Give the bonuses that were paid on a submission, in cents."""
        found = self.submission(submission).get("bonus_payments") or []
        if not isinstance(found, list) or not all(type(one) in {int, float} for one in found):
            raise Later("Prolific's list of bonuses has another form than it is known to have")
        return found

    def transition(self, submission: str, body: dict[str, str]) -> None:
        """Approve or reject a submission; a second time it does nothing."""
        self._ask("POST", f"submissions/{submission}/transition/", body)

    def set_up_bonus(self, study: str, submission: str, cents: int) -> str:
        """Prepare a bonus, which pays nothing yet; give the id by which it is paid.

        Raises:
            Declined: Prolific has understood another amount.
        """
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
        """Pay a prepared bonus: every call that arrives pays.

        Raises:
            Unclear: It may have arrived.
        """
        self._ask("POST", f"bulk-bonus-payments/{prepared}/pay/", {}, again=False)

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._ask(method, path, body)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Later("Prolific's answer is no JSON object")
        return found

    def _ask(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        """Ask until there is an answer.

        Args:
            method: Of HTTP.
            path: Below the API.
            body: Sent as JSON.
            again: Whether asking twice does no harm.
        """
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
            answer = self._client.request(method, URL + path, json=body, headers=headers)
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
        if status == 401:  # it is the account's fault, and no letter's
            raise Later("Prolific does not take the token: is it right, and not deleted?")
        raise Declined(status, answer.text)


def _wait(answer: Any, attempt: int) -> float:
    """Give the seconds until the next try."""
    told = "" if answer is None else answer.headers.get("Retry-After", "")
    return float(told[:6]) if told.isascii() and told.isdigit() else 2.0**attempt


def _client() -> httpx2.Client:
    try:
        import httpx2
    except ImportError:  # pragma: no cover - the extra is installed where the tests run
        raise MissingExtraError("httpx2", "server", "Prolific") from None
    return httpx2.Client(timeout=SECONDS, follow_redirects=False)
