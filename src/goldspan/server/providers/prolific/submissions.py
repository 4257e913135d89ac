"""Submissions at Prolific: whose they are, and what Prolific said of them last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from goldspan.errors import InputError
from goldspan.server.errors import Refused

if TYPE_CHECKING:
    from goldspan.server.providers.protocol import Store

SUBMISSION, STATUS = "submission", "submission-status"
"""Kinds of records: who came with which submission; the messages about it."""
RETURNED = "RETURNED"
COURSE = ("RESERVED", "ACTIVE", "TIMED-OUT", RETURNED, "AWAITING REVIEW",
          "SCREENED OUT", "PARTIALLY APPROVED", "REJECTED", "APPROVED")  # fmt: skip
"""Statuses in the order in which they follow each other within the same second."""
OVER = frozenset(COURSE[2:])
"""Statuses in which nobody works any more."""


class Submissions:
    """The submissions of a campaign.

    Args:
        store: The campaign's ledger.
        clock: The campaign's clock, in milliseconds.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock

    def begin(self, submission: str, worker: str) -> None:
        """Keep whose a submission is.

        Raises:
            Refused: It is somebody else's, or is over.
        """
        if self.status(submission) in OVER:
            raise Refused("study", "Prolific says that this submission is over.", 403)
        try:
            self._store.record(SUBMISSION, submission, {"worker": worker}, self._clock())
        except InputError:
            raise Refused("study", "This submission is somebody else's.", 403) from None

    def worker(self, submission: str) -> str | None:
        """Give whose a submission is."""
        found = self._store.records(SUBMISSION).get(submission)
        return None if found is None else str(found["worker"])

    def of(self, worker: str) -> str | None:
        """Give the last submission of a worker."""
        rows = self._store.records(SUBMISSION).items()
        return next((name for name, row in reversed(rows) if row["worker"] == worker), None)

    def count_paid(self, worker: str) -> int:
        """Count the submissions of a worker for which Prolific pays a reward, or yet may.

        What is paid too much is gone: only a submission that was returned, and so never will be
        paid, does not count. One that has timed out may still be approved.
        """
        rows = self._store.records(SUBMISSION).items()
        mine = [name for name, row in rows if row["worker"] == worker]
        return sum(self.status(name) != RETURNED for name in mine)

    def workers(self) -> list[str]:
        """Give everybody who came."""
        rows = self._store.records(SUBMISSION).values()
        return list(dict.fromkeys(row["worker"] for row in rows))

    def status(self, submission: str) -> str | None:
        """Give the latest status that Prolific sent, None if it sent none."""
        rows = [one for one in self._messages().values() if one["submission"] == submission]
        return str(max(rows, key=_order)["status"]) if rows else None

    def hear(self, message: str, signature: str, facts: dict[str, Any]) -> str:
        """Keep a message; say whether it is "taken", "repeated" or "old".

        Args:
            message: Its id; the same when it is sent again.
            signature: Its signature's fingerprint: a message with it is the same under any id.
            facts: `submission`, `status` and `time`.
        """
        there = self._messages()
        if message in there or signature in {one["signature"] for one in there.values()}:
            return "repeated"
        others = [one for one in there.values() if one["submission"] == facts["submission"]]
        is_old = any(_order(one) > _order(facts) for one in others)
        body = {**facts, "signature": signature}
        self._store.record(STATUS, message, body, self._clock())
        return "old" if is_old else "taken"

    def _messages(self) -> dict[str, dict[str, Any]]:
        return self._store.records(STATUS)


def _order(facts: dict[str, Any]) -> tuple[int, int]:
    status = facts["status"]
    return facts["time"], COURSE.index(status) if status in COURSE else -1
