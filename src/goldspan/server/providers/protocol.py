"""What a provider of workers does; each method can be called again after a break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from goldspan.protocols import Lease
from goldspan.server.providers.outbox import Letter, Outbox


class Store(Protocol):
    """What providers need of the ledger."""

    def record(self, kind: str, name: str, body: Mapping[str, Any], now: int) -> None:
        """Keep a fact under a name, once."""
        ...

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Give all facts of a kind by name, in their order."""
        ...

    def charge(self, name: str, amount: int, now: int) -> bool:
        """Pay something other than an answer, once per name."""
        ...

    def held(self, worker: str, now: int) -> list[Lease]:
        """Give the tasks that a worker holds."""
        ...

    def release(self, worker: str, item: str, now: int, skip: str = "") -> bool:
        """Give a task back."""
        ...

    def standing(self) -> dict[str, bool]:
        """Say of every worker whether they are asked nothing more."""
        ...


@dataclass(frozen=True)
class Event:
    """What a message of the provider's meant.

    Attributes:
        said: "taken"; "repeated": it came before; "old": a later one came before it; "unknown": it
            is about nobody here.
        left: The worker whose work here is over, "" if nobody's is.
    """

    said: str
    left: str = ""


class Courier(Protocol):
    """Carries letters to a provider."""

    def deliver(self, letter: Letter, outbox: Outbox) -> None:
        """Send a letter, and note in the outbox every step before and after it.

        Raises:
            goldspan.server.providers.outbox.Later: The provider cannot be reached now.
        """
        ...


class Provider(Protocol):
    """Where workers come from and go to.

    Attributes:
        name: As in the plan.
        checks_people: Whether `identify` asks the provider who somebody is.
        sends_letters: Whether the server sends letters by itself.
    """

    name: str
    checks_people: bool
    sends_letters: bool

    def identify(self, parameters: Mapping[str, str]) -> str:
        """Give the id of the worker who came with these parameters of an address.

        Raises:
            goldspan.server.errors.Refused: They are nobody's whom this campaign is for.
        """
        ...

    def is_new(self, parameters: Mapping[str, str]) -> bool:
        """Whether `identify` would keep something for these parameters, as far as can be known."""
        ...

    def completion(self, worker: str) -> dict[str, Any] | None:
        """Give what a worker who is finished needs: an address `url`, a `code`, or nothing."""
        ...

    def on_event(self, headers: Mapping[str, str], body: bytes) -> Event:
        """Take a message that the provider sent to the server.

        Raises:
            goldspan.server.errors.Refused: It is not the provider's, or too old.
        """
        ...

    def workers(self) -> list[str]:
        """Give everybody who came in from the provider."""
        ...

    def owed(self, worker: str, earned: int) -> int:
        """Give what of a worker's earnings is paid in bonuses, in millionths."""
        ...

    def about(self, worker: str) -> str:
        """Give the provider's id of a worker's work, for letters.

        Raises:
            goldspan.errors.InputError: The worker did not come from the provider.
        """
        ...

    def check_rejection(self, why: str, category: str) -> None:
        """Check the reasons of a rejection before it is written.

        Raises:
            goldspan.errors.InputError: The provider would refuse them.
        """
        ...

    def courier(self) -> Courier | None:
        """Give who carries letters, None if there is nobody to write to.

        Raises:
            goldspan.errors.InputError: The provider's token is missing.
        """
        ...
