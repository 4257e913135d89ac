"""The fair lock: one at a time, in the order of coming."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.store.journal import FairLock


def wait_until(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it never came true")


def test_waiters_go_in_the_order_in_which_they_came():
    turn, order = FairLock(), []

    def take(n):
        with turn:
            order.append(n)

    threads = [threading.Thread(target=take, args=(n,)) for n in range(6)]
    with turn:
        for n, thread in enumerate(threads):
            thread.start()
            wait_until(lambda n=n: turn.waiting == n + 1)
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_only_one_is_in_at_a_time():
    turn, inside, most = FairLock(), 0, 0

    def work(_):
        nonlocal inside, most
        with turn:
            inside += 1
            most = max(most, inside)
            time.sleep(0)
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(400)))
    assert (most, inside, turn.waiting) == (1, 0, 0)


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_thread_that_stops_waiting_lets_the_next_go_on(monkeypatch, handed_over):
    turn, real = FairLock(), threading.Lock

    class Interrupted:
        """A lock that is interrupted while it is waited for."""

        def __init__(self):
            self.calls = 0

        def acquire(self):
            self.calls += 1
            if self.calls == 2:
                if handed_over:
                    turn.__exit__()
                raise KeyboardInterrupt

        def release(self):
            pass

    turn.__enter__()
    monkeypatch.setattr("goldspan.store.journal.threading.Lock", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        turn.__enter__()
    monkeypatch.setattr("goldspan.store.journal.threading.Lock", real)
    if not handed_over:
        turn.__exit__()
    with turn:
        assert turn.waiting == 0
