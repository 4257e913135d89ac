"""From a list of workers, in text or as objects, to workers by id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from goldspan.errors import InputError
from goldspan.simulate.base import SimulatedWorker
from goldspan.simulate.parsing import parse_worker

Entry = str | SimulatedWorker

MOST_WORKERS = 1_000_000
"""Larger teams are refused: each worker has his own row of answers and random numbers."""

_ENTRY = re.compile(
    r"\s*(?:(?P<id>[\w.-]+)\s*=)?\s*(?P<worker>.*?)\s*(?:\s[x×]\s*(?P<count>\d+))?\s*", re.DOTALL
)


def read_team(workers: Sequence[Entry] | Mapping[str, Any]) -> dict[str, SimulatedWorker]:
    """Read the workers of a crowd.

    Args:
        workers: A list of workers in text or as objects; in text a worker may have an id, `ana =
            flip(0.1)`, and a number of workers alike, `flip(0.1) x3`. Or a mapping: from a worker
            in text to a number of workers, or from an id to a worker. Workers without an id are
            w1, w2, … by their place; several of one id are ana1, ana2, ….

    Raises:
        InputError: There is no worker, an id stands twice, a number is none, or there are more than
            a million workers.
        UnknownNameError: There is no such kind of worker.

    >>> {name: str(worker) for name, worker in read_team(["flip(.1) x2", "ana = acc"]).items()}
    {'w1': 'flip(0.1)', 'w2': 'flip(0.1)', 'ana': 'acc'}
    """
    if isinstance(workers, str | SimulatedWorker):
        workers = [workers]
    entries = _of_mapping(workers) if isinstance(workers, Mapping) else map(_read, workers)
    team: dict[str, SimulatedWorker] = {}
    place = 0
    for name, worker, count in entries:
        if place + count > MOST_WORKERS:
            raise InputError(f"there are more than {MOST_WORKERS:,} workers: simulate fewer")
        for n in range(1, count + 1):
            place += 1
            own = f"w{place}" if not name else f"{name}{n}" if count > 1 else name
            if own in team:
                raise InputError(f"two workers have the id {own!r}: give them different ones")
            team[own] = worker
    if not team:
        raise InputError('there is no worker: give at least one, such as "flip(0.1)"')
    return team


def _of_mapping(workers: Mapping[str, Any]) -> list[tuple[str, SimulatedWorker, int]]:
    found = []
    for key, value in workers.items():
        if isinstance(value, int) and not isinstance(value, bool):
            found.append(_counted(*_read(key)[:2], value))
        else:
            found.append((str(key), _worker(value), 1))
    return found


def _read(entry: Entry) -> tuple[str, SimulatedWorker, int]:
    if not isinstance(entry, str):
        return "", _worker(entry), 1
    parts = _ENTRY.fullmatch(entry)
    assert parts is not None  # every part may be empty
    count = _number(parts["count"] or "1")
    return _counted(parts["id"] or "", parse_worker(parts["worker"]), count)


def _number(digits: str) -> int:
    """Read a number; of a very long one it is enough that it is too large."""
    return int(digits) if len(digits) < 20 else MOST_WORKERS + 1


def _counted(name: str, worker: SimulatedWorker, count: int) -> tuple[str, SimulatedWorker, int]:
    if count < 1:
        raise InputError(f"the number of workers {worker} must be at least 1, not {count}")
    return name, worker, count


def _worker(value: Any) -> SimulatedWorker:
    if isinstance(value, str):
        return parse_worker(value)
    if not isinstance(value, SimulatedWorker):
        raise InputError(f"a worker must be text such as 'flip(0.1)' or an object, not {value!r}")
    return value
