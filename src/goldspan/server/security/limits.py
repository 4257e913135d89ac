"""How often something may be done: token buckets in memory, by address or by session."""

from __future__ import annotations

import math
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
