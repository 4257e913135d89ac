"""A campaign that is served in a process of its own, for a load from outside.

Run as a program it reads from standard input what to serve, and answers on standard output: the
address, the visitors, then for every line that it reads what the process has used so far.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from children import settled_memory
from goldspan.web import Entrance, ServerSettings, create_app, open_service
from goldspan.web.running import listen, serve
from goldspan.web.security.secret import Keys
from goldspan.web.settings import Rate, Rates

PLACES = ("Rome", "Paris", "Kiel", "Bonn", "Lima", "Oslo")
WORDS = ("we", "saw", "the", "boats", "of", "leave", "early", "with", "wind", "again", "and")
FREE = Rate(1e9, 10**9)
PLAN = """\
name = "load"
seed = 3
[task]
types = ["LOC"]
[pool]
file = "pool.conll"
[crowd]
source = "web"
[control]
n = 20
gold = "gold.conll"
share = 0.1
first = 0
least = 0
[page]
training = 0
lease_minutes = 10
[redundancy]
min = 3
max = 3
[prices]
per_answer = "0.05"
[budget]
money = "100000000"
[select]
by = "random"
batch = {batch}
[model]
name = "none"
[aggregate]
method = "{method}"
[stop]
most_rounds = 1
"""


def write_campaign(folder: Path, n_items: int, batch: int, method: str = "ibcc") -> Path:
    """Write a plan, its pool of sentences and the gold of the first 100."""
    rng = random.Random(1)
    with (folder / "pool.conll").open("w") as pool, (folder / "gold.conll").open("w") as gold:
        for n in range(n_items):
            words = [rng.choice(PLACES) if rng.random() < 0.15 else rng.choice(WORDS)
                     for _ in range(10)]  # fmt: skip
            tags = ["B-LOC" if word in PLACES else "O" for word in words]
            lines = [f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)]
            pool.write("".join(lines) + "\n")
            if n < 100:
                gold.write("".join(lines) + "\n")
    path = folder / "campaign.toml"
    path.write_text(PLAN.format(batch=batch, method=method))
    return path


def main() -> None:
    """Serve until standard input ends."""
    asked = json.loads(sys.stdin.readline())
    folder = Path(asked["folder"])
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        keys = Keys(bytes(range(32)))
        rates = Rates(address=FREE, worker=FREE)
        settings = ServerSettings(keys, f"http://127.0.0.1:{port}", rates=rates)
        begin = time.perf_counter()
        service = open_service(folder / "campaign.toml", folder / "out", keys, asked["store"])
        service.campaign.run()
        tell(opened=time.perf_counter() - begin, memory=settled_memory())
        app = create_app(service, settings)
        if asked["loop"]:
            service.start()
        tell(visitors=visitors(service, settings, port, asked["workers"]))
        threading.Thread(target=report, args=(service,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            serve(app, listening)


def visitors(service: Any, settings: ServerSettings, port: int, n: int) -> list[Any]:
    """Begin sessions as links would."""
    entrance = Entrance.of(service.ledger, service.inputs.key, settings)
    made = []
    for link, _ in entrance.links.make([f"w{k:03d}" for k in range(n)], 30):
        session = entrance.sessions.begin_work(link)
        cookie = f"goldspan_worker={entrance.sessions.cookie(session)}"
        made.append(["127.0.0.1", port, cookie, entrance.sessions.csrf(session)])
    return made


def report(service: Any) -> None:
    """Answer every line with what was used so far."""
    for line in sys.stdin:
        if line.strip() == "overview":
            begin = time.perf_counter()
            service.desk.overview()
            tell(seconds=time.perf_counter() - begin)
        else:
            memory = settled_memory()
            n = service.ledger.n_answers
            live = service.engine.live
            tell(cpu=time.process_time(), memory=memory, answers=n, aggregated=live.n_answers,
                 looks=live.version)  # fmt: skip
    signal.raise_signal(signal.SIGTERM)


def tell(**facts: Any) -> None:
    """Write a line."""
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
