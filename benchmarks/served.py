"""A campaign that is served in a process of its own, for a load from outside.

Run as a program it reads from standard input what to serve, and answers on standard output: the
address, the visitors, then for every line that it reads what was used so far, and how long requests
took since the line before, from their arrival in the application to the last byte of the reply.
Requests are answered here or in several web processes, the loop computes in a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from children import settled_memory
from goldspan.store.roles import serving
from goldspan.web import Auth, ServerSettings, create_app, open_service
from goldspan.web.engine import LoopFiles
from goldspan.web.processes import Child, Hosted, WebPart, loop_folder, loop_of
from goldspan.web.running import listen, serve
from goldspan.web.settings import Keys, Rate, Rates

FREE = Rate(1e9, 10**9)


def main() -> None:
    """Serve until standard input ends."""
    asked = json.loads(sys.stdin.readline())
    folder, n_web, how = Path(asked["folder"]), asked["processes"], asked["loop"]
    with listen("127.0.0.1", 0) as listening, loop_folder() as loops, ExitStack() as stack:
        port = listening.getsockname()[1]
        keys = Keys(bytes(range(32)))
        rates = Rates(address=FREE, worker=FREE, login=FREE)
        settings = ServerSettings(keys, f"http://127.0.0.1:{port}", rates=rates, processes=n_web)
        begin = time.perf_counter()
        loop_files = LoopFiles(loops / "0")
        service = open_service(
            folder / "campaign.toml", folder / "out", keys, asked["store"],
            watcher=loop_files.watcher if how == "process" else None,
        )  # fmt: skip
        service.campaign.run()
        tell(opened=time.perf_counter() - begin, memory=settled_memory())
        timed = Timed(create_app(service, settings))
        shared = serving(service.ledger.database, "here", service.deployment, shared=n_web > 1)
        stack.enter_context(shared)
        service.start(loop=how == "thread")
        hosted = Hosted.of(service, loop_files, asked["store"])
        children = [loop_of(hosted, log_level="warning")] if how == "process" else []
        if n_web > 1:
            fd = listening.fileno()
            part = WebPart({"": hosted}, {}, settings, None, fd, None)
            children += [Child("web", part, log_level="warning", fds=[fd]) for _ in range(n_web)]
        for child in children:
            stack.callback(child.stop)
            child.start()
        if how == "process":
            while service.engine.live.state != "waiting":
                time.sleep(0.1)
        tell(visitors=visitors(service, settings, port, asked["workers"]))
        told = service, timed, children
        threading.Thread(target=report, args=told, daemon=True).start()
        with suppress(KeyboardInterrupt):
            if n_web > 1:
                threading.Event().wait()
            serve(timed, listening)


class Timed:
    """An application, and how long its requests took."""

    def __init__(self, app: Any) -> None:
        self.app, self.state, self._seconds = app, app.state, dict[str, list[float]]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        begin = time.perf_counter()
        await self.app(scope, receive, send)
        took = time.perf_counter() - begin
        self._seconds.setdefault(scope["path"].rpartition("/")[2], []).append(took)

    def quantiles(self) -> dict[str, list[float]]:
        """Return p50 and p99 by the end of the path, since this was asked last."""
        seconds, self._seconds = self._seconds, {}
        return {name: np.quantile(one, [0.5, 0.99]).tolist() for name, one in seconds.items()}


def cpu_of(process: int) -> float:
    """Return the seconds of processor time of another process."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def visitors(service: Any, settings: ServerSettings, port: int, n: int) -> list[Any]:
    """Begin sessions as links would."""
    auth = Auth.of(service.ledger, service.inputs.key, settings)
    made = []
    for link, _ in auth.links.make([f"w{k:03d}" for k in range(n)], 30):
        session = auth.sessions.begin_work(link)
        cookie = f"goldspan_worker={auth.sessions.cookie(session)}"
        made.append(["127.0.0.1", port, cookie, auth.sessions.csrf(session)])
    return made


def report(service: Any, timed: Timed, children: list[Child]) -> None:
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
            apart = {one.name: cpu_of(one.process.pid) for one in children if one.process}
            web = [seconds for name, seconds in apart.items() if name == "web"]
            loop = sum(apart.values()) - sum(web)
            tell(cpu=time.process_time() + sum(web), memory=memory, answers=n, loop=loop,
                 aggregated=live.n_answers, looks=live.version,
                 times=timed.quantiles())  # fmt: skip
    signal.raise_signal(signal.SIGTERM)


def tell(**facts: Any) -> None:
    """Write a line."""
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
