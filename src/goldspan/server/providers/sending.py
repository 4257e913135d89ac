"""A thread of the server that sends letters, if the plan says so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from goldspan.errors import GoldspanError
from goldspan.server.providers.outbox import Later, Letter, Outbox, send_all
from goldspan.server.providers.protocol import Courier, Provider, Store

log = logging.getLogger("goldspan.server.outbox")
EVERY = 60.0
"""Seconds."""


class Sending:
    """Sends the letters of a campaign until it is stopped.

    Args:
        outbox: The letters.
        courier: Who carries them.
        every: Seconds between two looks at the outbox.
    """

    def __init__(self, outbox: Outbox, courier: Courier, every: float = EVERY) -> None:
        self._outbox, self._courier, self._every = outbox, courier, every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="goldspan outbox", daemon=True)
        self._thread.start()

    def abandon(self) -> None:
        """Begin no other letter; nothing is waited for."""
        self._stop.set()

    def stop(self) -> None:
        """End after the letter that is being sent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def _run(self) -> None:
        while True:
            self._once()
            if self._stop.wait(self._every):
                return

    def _deliver(self, letter: Letter, outbox: Outbox) -> None:
        if self._stop.is_set():
            raise Later("the server ends")
        self._courier.deliver(letter, outbox)

    def _once(self) -> None:
        try:
            done = send_all(self._outbox, self._deliver)
        except GoldspanError as error:
            log.warning("the outbox waits: %s", error)
        except Exception as error:  # noqa: BLE001 - the thread must outlive what it cannot foresee
            # Its words might hold what was sent: the kind must do.
            log.error("the outbox waits: %s", type(error).__name__)  # noqa: TRY400
        else:
            if done:
                log.info("%d letters sent", done)


def open_sending(provider: Provider, store: Store, clock: Callable[[], int]) -> Sending | None:
    """Give what sends a provider's letters; None if its plan does not say so.

    Raises:
        InputError: The provider's token is missing.
    """
    courier = provider.courier() if provider.sends_letters else None
    return None if courier is None else Sending(Outbox(store, clock), courier)
