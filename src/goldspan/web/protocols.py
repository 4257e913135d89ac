"""What the routes need of what stands behind them; `goldspan.web.service` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from goldspan.campaign import CampaignInputs
from goldspan.protocols import Ledger
from goldspan.spans import Span

if TYPE_CHECKING:
    from goldspan.web.desk import Desk


class WorkFace(Protocol):
    """A worker's work, without HTTP; every method gives the body of the answer.

    Raises:
        goldspan.web.errors.Refused: What was asked is refused.
    """

    def next(self, worker: str) -> dict[str, Any]:
        """Return the next task, or say why there is none."""
        ...

    def submit(
        self, worker: str, task: str, key: str, answer: Sequence[Span] | str
    ) -> dict[str, Any]:
        """Take an answer."""
        ...

    def given(self, worker: str, since: int) -> dict[str, Any]:
        """Return the answers that a worker has given since a time, the last one first."""
        ...

    def recall(self, worker: str, task: str, since: int) -> dict[str, Any]:
        """Return a task that a worker has answered, with the answer."""
        ...

    def change(
        self, worker: str, task: str, key: str, answer: Sequence[Span] | str, since: int
    ) -> dict[str, Any]:
        """Put another version of an answer in the place of the one that counts."""
        ...

    def skip(self, worker: str, task: str, key: str, reason: str) -> dict[str, Any]:
        """Return a task back for good."""
        ...

    def flag(self, worker: str, task: str, key: str, reason: str, note: str) -> dict[str, Any]:
        """Say that something is wrong with an item; gives it back for good."""
        ...

    def release(self, worker: str, task: str) -> dict[str, Any]:
        """Return a task back for others."""
        ...

    def me(self, worker: str) -> dict[str, Any]:
        """Return what the worker has done and earned."""
        ...


class ServiceFace(Protocol):
    """A campaign that is being served."""

    @property
    def inputs(self) -> CampaignInputs:
        """The plan with its files."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where the campaign is kept."""
        ...

    @property
    def clock(self) -> Callable[[], int]:
        """The campaign's clock, in milliseconds."""
        ...

    @property
    def work(self) -> WorkFace:
        """What workers do."""
        ...

    @property
    def desk(self) -> Desk:
        """What the requester sees and does."""
        ...
