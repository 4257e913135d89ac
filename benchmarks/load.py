"""Simulated workers as a load: one asyncio process with plain sockets, one connection each.

It reads only what it must of HTTP, so that it takes little of the cores that it shares with the
server. Every worker labels: `next`, a while to think, `answers`.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Visitor(NamedTuple):
    """What a browser carries: the address, and a worker's cookie and token."""

    host: str
    port: int
    cookie: str
    csrf: str


@dataclass
class Tally:
    """What came of it: seconds of every pair of next + answer, and what went wrong."""

    pairs: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waits: int = 0


class Line:
    """A connection that is kept open."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, what: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Send a body and give status and answer.

        A connection that the server has closed is opened again, as in a browser: nothing comes
        twice of it, for answers have keys.
        """
        try:
            return await self._post(what, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._ends = None
            return await self._post(what, body)

    async def _post(self, what: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if self._ends is None:
            self._ends = await asyncio.open_connection(self._visitor.host, self._visitor.port)
        reader, writer = self._ends
        words, v = json.dumps(body), self._visitor
        writer.write(
            f"POST /api/work/{what} HTTP/1.1\r\nHost: {v.host}:{v.port}\r\nCookie: {v.cookie}\r\n"
            f"X-Goldspan-CSRF: {v.csrf}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(words)}\r\n\r\n{words}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(head[9:12]), await reader.readexactly(length)


async def work(visitor: Visitor, think: float, until: float, tally: Tally, seed: int) -> None:
    """Label until a time, thinking some seconds in the mean."""
    line, rng = Line(visitor), random.Random(seed)
    n = 0
    await asyncio.sleep(rng.uniform(0, think))
    while time.monotonic() < until:
        n += 1
        begin = time.perf_counter()
        status, got = await line.post("next", {})
        asked = time.perf_counter() - begin
        task = json.loads(got).get("task") if status == 200 else None
        if task is None:
            tally.waits += status == 200
            if status != 200:
                tally.errors.append(f"next {status}")
            await asyncio.sleep(max(think, 0.5))
            continue
        if think:
            await asyncio.sleep(rng.expovariate(1 / think))
        body = {"task": task["id"], "key": f"{seed:014d}-{n:06d}", **_answer(task, rng)}
        begin = time.perf_counter()
        status, got = await line.post("answers", body)
        tally.pairs.append(asked + time.perf_counter() - begin)
        if status != 200:
            tally.errors.append(f"answers {status} {got[:200]!r}")


def _answer(task: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Find the capital letters, mostly."""
    if task["kind"] == "single":
        return {"label": rng.choice(["rain", "sun"])}
    capital = [n for n, word in enumerate(task["tokens"]) if word[:1].isupper() and n]
    kept = [n for n in capital if rng.random() < 0.9]
    return {"spans": [{"start": n, "end": n + 1, "type": "LOC"} for n in kept]}


async def load(visitors: list[Visitor], think: float, seconds: float, seed: int) -> Tally:
    """Let all work for some seconds."""
    tally, until = Tally(), time.monotonic() + seconds
    jobs = [work(v, think, until, tally, seed + n) for n, v in enumerate(visitors)]
    found = await asyncio.gather(*jobs, return_exceptions=True)
    tally.errors += [f"{type(e).__name__} {e}" for e in found if isinstance(e, Exception)]
    return tally


def main() -> None:
    """Read what to do from standard input, and write what came of it."""
    asked = json.loads(sys.stdin.read())
    visitors = [Visitor(*one) for one in asked["visitors"]]
    tally = asyncio.run(load(visitors, asked["think"], asked["seconds"], asked["seed"]))
    used = time.process_time()
    print(json.dumps({**vars(tally), "cpu": used}))


if __name__ == "__main__":
    main()
