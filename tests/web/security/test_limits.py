"""Buckets hold what they should, forget what is old, and take networks as one."""

from __future__ import annotations

import pytest

from goldspan.web.errors import Refused
from goldspan.web.security import account as limits
from goldspan.web.security.account import Buckets, Delays, address_name
from goldspan.web.settings import Rate
from web.played import Clock


def taken(buckets, name, n):
    """Count how many of n are given."""
    given = 0
    for _ in range(n):
        try:
            buckets.take(name)
        except Refused:
            continue
        given += 1
    return given


def test_a_bucket_gives_its_burst_and_then_what_flows_in():
    clock = Clock()
    buckets = Buckets(Rate(2, 5), clock)
    assert taken(buckets, "a", 9) == 5
    clock.now += 1_000
    assert taken(buckets, "a", 9) == 2
    clock.now += 3_600_000
    assert taken(buckets, "a", 9) == 5


def test_who_asks_in_vain_does_not_wait_longer_for_it():
    clock = Clock()
    buckets = Buckets(Rate(1, 1), clock)
    for _ in range(100):
        taken(buckets, "a", 1)
        clock.now += 10
    assert taken(buckets, "a", 1) == 1


def test_a_clock_that_goes_back_gives_nothing_and_breaks_nothing():
    clock = Clock()
    buckets = Buckets(Rate(1, 2), clock)
    taken(buckets, "a", 2)
    clock.now -= 60_000
    assert taken(buckets, "a", 1) == 0
    clock.now += 62_000
    assert taken(buckets, "a", 3) == 2


def test_the_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(limits, "MOST", 10)
    buckets = Buckets(Rate(1, 1), Clock())
    for n in range(100):
        buckets.take(f"a{n}")
    assert len(buckets._where.kept) == 10


def test_the_memory_of_delays_is_bounded_and_forgets_who_tried_longest_ago(monkeypatch):
    monkeypatch.setattr(limits, "MOST", 10)
    delays = Delays(lambda: 0.0)
    for _ in range(limits.FREE):
        delays.begin("requester")
    for n in range(9):
        delays.begin(f"browser {n}")
    with pytest.raises(Refused):
        delays.begin("requester")
    delays.begin("browser 9")
    assert len(delays._where.kept) == 10
    assert "requester" not in delays._where.kept


def test_a_wait_does_not_grow_without_end():
    now = 0.0
    delays = Delays(lambda: now)
    for _ in range(3_000):
        delays.begin("requester")
        now += limits.LONGEST_WAIT
    with pytest.raises(Refused) as refused:
        delays.begin("requester")
        delays.begin("requester")
    assert refused.value.retry == limits.LONGEST_WAIT


def test_an_address_that_a_proxy_passes_on_is_cut():
    assert len(address_name("a" * 60_000)) == limits.LONGEST


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        (None, "unknown"),
        ("", "unknown"),
    ],
)
def test_an_address_has_one_bucket(host, name):
    assert address_name(host) == name
