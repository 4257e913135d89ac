"""What a worker's requests take of the server: CPU and SQL statements, no HTTP and no load.

A campaign as in `bench_server` is opened in this process; then many workers, one after the other,
come by their link, get their first task, ask again while they hold it, answer, and get the next
one. Of every kind of request: CPU of the very first one, median and mean of the others, and SQL
statements. To compare two checkouts call it with each of them on PYTHONPATH in turn.

    python benchmarks/requests_cpu.py [--postgres] [--workers N] [--statements KIND]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from sqlalchemy import event

from postgres import server
from simulated import write_campaign

N_ITEMS, N_WORKERS = 6_000, 200


class Tally:
    """CPU seconds and statements by kind of request."""

    def __init__(self, engine: Any) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.statements: dict[str, list[list[str]]] = defaultdict(list)
        self._said: list[str] = []
        event.listen(engine, "before_cursor_execute", self._hear)

    def _hear(self, _: Any, __: Any, statement: str, *___: Any) -> None:
        self._said.append(statement)

    def of(self, kind: str, act: Callable[[], Any]) -> Any:
        """Do something, and count what it takes."""
        self._said.clear()
        begin = time.thread_time()
        result = act()
        self.seconds[kind].append(time.thread_time() - begin)
        self.statements[kind].append(list(self._said))
        return result


@contextmanager
def places(*, postgres: bool) -> Iterator[str | None]:
    """Yield where the store is: None for SQLite."""
    with server() if postgres else nullcontext() as socket:
        yield f"postgresql+psycopg://goldspan@/postgres?host={quote(socket)}" if socket else None


def measure(n_workers: int, place: str | None) -> Tally:
    """Let the workers come."""
    from goldspan.web import Auth, ServerSettings, open_service
    from goldspan.web.settings import Keys

    with tempfile.TemporaryDirectory(prefix="goldspan-bench-") as folder:
        write_campaign(Path(folder), N_ITEMS, N_ITEMS)
        keys = Keys(bytes(range(32)))
        path = Path(folder)
        service = open_service(path / "campaign.toml", path / "out", keys, place)
        service.campaign.run()
        auth = Auth.of(service.ledger, service.inputs.key, ServerSettings(keys, "http://127.0.0.1"))
        links = auth.links.make([f"w{n:04d}" for n in range(n_workers)], 30)
        tally, work = Tally(service.ledger.database.engine), service.work
        for n, (link, token) in enumerate(links):
            tally.of("log-in", lambda: auth.sessions.begin_work(auth.links.read(token)))  # noqa: B023
            who = link.worker
            told = tally.of("first next", lambda: work.next(who))  # noqa: B023
            tally.of("next, held", lambda: work.next(who))  # noqa: B023
            for turn in ("first", "later"):
                task = told["task"]
                answer: Any = [] if task["kind"] == "spans" else "rain"
                name = f"{n:08d}-{turn}"
                tally.of(f"{turn} answer", lambda: work.submit(who, task["id"], name, answer))  # noqa: B023
                told = tally.of("later next", lambda: work.next(who))  # noqa: B023
        service.close()
        return tally


def main() -> None:
    """Print what was measured as JSON, and the statements of a kind if it is asked for."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--postgres", action="store_true")
    reader.add_argument("--workers", type=int, default=N_WORKERS)
    reader.add_argument("--statements")
    asked = reader.parse_args()
    with places(postgres=asked.postgres) as place:
        tally = measure(asked.workers, place)
    told = {
        kind: {
            "very first, ms": round(1000 * took[0], 2),
            "median, ms": round(1000 * float(np.median(took[1:] or took)), 3),
            "mean, ms": round(1000 * float(np.mean(took[1:] or took)), 3),
            "statements": float(np.median([len(one) for one in tally.statements[kind]])),
        }
        for kind, took in tally.seconds.items()
    }
    print(json.dumps(told, indent=1))
    for words in tally.statements.get(asked.statements or "", [[]])[-1]:
        print("--", " ".join(words.split()))


if __name__ == "__main__":
    main()
