"""How often something may be done: token buckets by address or session, delays by account.

All of it is in memory, bounded, and forgotten when the server is started again.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from threading import Lock

from goldspan.server.errors import Refused
from goldspan.server.settings import Rate

MOST = 10_000
"""Buckets that are kept; those that were used longest ago are forgotten."""
LONGEST = 64
"""Characters of an address that are looked at."""
FREE = 5
"""Passwords that may be tried for an account, from wherever, before the next one has to wait."""
LONGEST_WAIT = 30.0
"""Seconds that it has to wait at most. Whoever tries from many addresses keeps the owner waiting
too, in a browser that is not known: so no wait is long."""
FORGOTTEN = 3_600.0
"""Seconds after the last wrong password in which wrong ones are forgotten."""


class Buckets:
    """Buckets of one rate, by name.

    Args:
        rate: How they are filled.
        clock: The campaign's clock, in milliseconds.
    """

    def __init__(self, rate: Rate, clock: Callable[[], int]) -> None:
        self._rate, self._clock = rate, clock
        self._filled: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._turn = Lock()

    def take(self, name: str) -> None:
        """Take one from a bucket.

        Raises:
            Refused: It is empty.
        """
        with self._turn:
            level = self._level(name)
            if level >= 1:
                self._put(name, level - 1)
                return
        seconds = math.ceil((1 - level) / self._rate.per_second)
        words = f"That was too often: try again in {seconds} seconds."
        raise Refused("slow-down", words, 429, retry=seconds)

    def _level(self, name: str) -> float:
        then, level = self._filled.get(name, (self._clock(), float(self._rate.burst)))
        # A clock that goes back fills nothing.
        gained = max(self._clock() - then, 0) / 1000 * self._rate.per_second
        return min(level + gained, float(self._rate.burst))

    def _put(self, name: str, level: float) -> None:
        self._filled[name] = self._clock(), level
        self._filled.move_to_end(name)
        if len(self._filled) > MOST:
            self._filled.popitem(last=False)


class Delays:
    """Slows down the guessing of one password, from however many addresses: 1, 2, 4, … seconds.

    A try that comes too early is refused unseen, right or wrong, and does not make the wait longer.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By name, when one was tried last, and how many since the last right one."""
        self._turn = Lock()

    def begin(self, name: str) -> None:
        """Count a try as wrong before it is known: of many at once, only so many are looked at.

        Raises:
            Refused: It comes too early.
        """
        with self._turn:
            now = self._clock()
            then, n_wrong = self._wrong.get(name, (now, 0))
            if now - then >= FORGOTTEN:
                n_wrong = 0
            # Doubling is bounded before it is done: nobody counts the tries of a year.
            wait = min(2.0 ** min(n_wrong - FREE, 30), LONGEST_WAIT) if n_wrong >= FREE else 0.0
            left = then + wait - now
            if left <= 0:
                self._wrong[name] = now, n_wrong + 1
                self._wrong.move_to_end(name)
                if len(self._wrong) > MOST:
                    self._wrong.popitem(last=False)
                return
        seconds = math.ceil(left)
        words = f"Wrong passwords were tried too often: try again in {seconds} seconds."
        raise Refused("slow-down", words, 429, retry=seconds)

    def forget(self, name: str) -> None:
        """Begin anew: the password was right."""
        with self._turn:
            self._wrong.pop(name, None)


def address_name(host: str | None) -> str:
    """Give the name of an address's bucket; a network of IPv6 (/64) is one.

    >>> address_name("192.0.2.7"), address_name("2001:db8::1:2"), address_name(None)
    ('192.0.2.7', '2001:db8::/64', 'unknown')
    """
    # A proxy may pass on what somebody made up, of any length.
    return _name((host or "unknown")[:LONGEST])


@lru_cache(maxsize=4_096)
def _name(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(address)
