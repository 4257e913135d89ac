"""The server under load on loopback: 200 workers who think, saturation, memory.

The load is a second process (`load.py`) with a connection per worker; the server is a third one
(`served.py`), without its limits of how often one address may ask. All three share the machine's
cores with whatever else runs, so beside every time stand the processor time of the server, which is
steadier, and the machine's load.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from postgres import server
from simulated import write_campaign

HERE = Path(__file__).parent
THINK, N_WORKERS, BEGIN_SECONDS, SECONDS = 5.0, 200, 15.0, 60.0
N_BUSY, BUSY_SECONDS = 40, 30.0
MEMORY_ANSWERS, MEMORY_SECONDS = 100_000, 3600.0
COLUMNS = (
    "what", "answers", "answers/s", "p50, ms", "p99, ms", "server's p99 of next, ms",
    "server's p99 of answers, ms", "errors", "CPU of the pages, ms an answer",
    "CPU of the loop, ms an answer", "load",
)  # fmt: skip
LOOPS = {"process": "aggregation in its own process", "thread": "aggregation in the pages' process",
         "none": "no aggregation"}  # fmt: skip


class Server:
    """A campaign that is served by another process."""

    def __init__(
        self, folder: Path, store: str | None, workers: int, *, loop: str, processes: int = 1
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "served.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        asked = {"folder": str(folder), "store": store, "workers": workers, "loop": loop,
                 "processes": processes}  # fmt: skip
        self.opened = self.ask(json.dumps(asked))
        self.visitors = self._hear()["visitors"]

    def ask(self, line: str = "used") -> dict[str, Any]:
        """Send a line and give the reply; "used" is what the process has used so far."""
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(line + "\n")
        pipe.flush()
        return self._hear()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def report() -> str:
    """Measure all, and give the tables."""
    rows = [_paced("process", 1), _paced("none", 1), _paced("thread", 1), _paced("process", 0)]
    with server() as socket:
        rows.append(_saturated("SQLite", None))
        if socket is None:
            print("PostgreSQL is not installed: its line is left out", file=sys.stderr)
        else:
            place = f"postgresql+psycopg://goldspan@/postgres?host={quote(socket)}"
            rows += [_saturated("PostgreSQL", place, n) for n in (1, 2)]
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1), *rows]
    return "\n".join([*lines, "", _memory()])


def _paced(loop: str, n_busy: int) -> str:
    """Measure with the loop in a process, in a thread or without, and with cores kept busy.

    Two rows: when all workers begin, and afterwards.
    """
    with _served(6_000, None, N_WORKERS, loop=loop) as served, _busy(n_busy):
        cores = f", {n_busy} core kept busy" if n_busy else ""
        what = f"{N_WORKERS} workers, {THINK:g} s to think, SQLite, {LOOPS[loop]}{cores}"
        begin = f"{what}: the first {BEGIN_SECONDS:g} s, in which all come"
        first = _row(begin, served, THINK, BEGIN_SECONDS)
        return f"{first}\n{_row(f'{what}: then', served, THINK, SECONDS)}"


def _saturated(name: str, store: str | None, n: int = 1) -> str:
    if store is not None:
        store = _schema(store, f"n{n}")
    with _served(3_000, store, N_BUSY, loop="none" if n == 1 else "process", processes=n) as served:
        what = f"{N_BUSY} workers without thinking, {name}, {n} web process{'es' * (n > 1)}"
        return _row(what, served, 0.0, BUSY_SECONDS)


def _schema(store: str, name: str) -> str:
    """Make a schema of its own for a campaign."""
    from goldspan.store.engine import connect, to_url

    engine = connect(to_url(store))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    return f"{store}&options={quote(f'-csearch_path={name}')}"


@contextmanager
def _busy(n: int) -> Iterator[None]:
    """Keep cores busy meanwhile, as other programs would."""
    words = [sys.executable, "-S", "-c", "while True: pass"]
    made = [subprocess.Popen(words) for _ in range(n)]
    try:
        yield
    finally:
        for one in made:
            one.kill()
            one.wait()


def _row(what: str, served: Server, think: float, seconds: float) -> str:
    before = served.ask()
    tally = _load(served, think, seconds)
    after = served.ask()
    half, tail = np.quantile(tally["pairs"], [0.5, 0.99]) * 1000
    n = after["answers"] - before["answers"]
    cpu, loop = (1000 * (after[name] - before[name]) / n for name in ("cpu", "loop"))
    own = [after["times"].get(name) for name in ("next", "answers")]
    cells = (
        what, f"{n:,}", f"{n / seconds:.1f}", f"{half:.0f}", f"{tail:.0f}",
        *("–" if one is None else f"{1000 * one[1]:.0f}" for one in own),
        str(len(tally["errors"])), f"{cpu:.1f}", f"{loop:.1f}", f"{os.getloadavg()[0]:.0f}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _memory() -> str:
    """Count the memory after every block of answers."""
    begin, found = time.monotonic(), []
    with _served(MEMORY_ANSWERS // 2, None, N_BUSY, loop="process") as served:
        while not found or found[-1][0] < MEMORY_ANSWERS:
            if time.monotonic() - begin > MEMORY_SECONDS:
                break
            _load(served, 0.0, BUSY_SECONDS)
            used = served.ask()
            found.append((used["answers"], used["memory"]))
    answers, memory = np.array(found).T
    late = answers >= answers[-1] / 2
    slope = np.polyfit(answers[late], memory[late], 1)[0] if late.sum() > 1 else float("nan")
    return (
        f"Memory of the server after {answers[0]:,.0f} answers {memory[0]:.0f} MiB, after "
        f"{answers[-1]:,.0f} {memory[-1]:.0f} MiB; in the second half it grows by "
        f"{1000 * slope:.3f} MiB per 1,000 answers."
    )


@contextmanager
def _served(
    n_items: int, store: str | None, workers: int, *, loop: str, processes: int = 1
) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="goldspan-bench-") as folder:
        write_campaign(Path(folder), n_items, n_items)
        served = Server(Path(folder), store, workers, loop=loop, processes=processes)
        try:
            yield served
        finally:
            served.close()


def _load(served: Server, think: float, seconds: float) -> dict[str, Any]:
    """Let the workers label for some seconds, from another process."""
    asked = {"visitors": served.visitors, "think": think, "seconds": seconds}
    # Keys must not come again.
    asked["seed"] = time.time_ns() // 1_000_000
    words = [sys.executable, str(HERE / "load.py")]
    done = subprocess.run(
        words, input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
