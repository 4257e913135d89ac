"""What tests wait for: conditions, and event loops and servers in threads of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import uvicorn

from goldspan.web.running import listen


def wait_until(holds, seconds=120.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def run_loop(make, *args):
    """Run the coroutine that a function makes, and give what it gives.

    It runs in a thread of its own, for a browser's loop may run in the first one.
    """

    def run():
        return asyncio.run(make(*args))

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def at_once(do, n=4):
    """Call a function in so many threads at the same moment."""
    ready = threading.Barrier(n)

    def run(_):
        ready.wait()
        do()

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(run, range(n)))


@contextmanager
def in_thread(make_app):
    """Serve the application that a function makes of its address, on a free port."""
    with listen("127.0.0.1", 0) as listening:
        app = make_app(f"http://127.0.0.1:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app, lifespan="off", log_level="error", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield app
        server.should_exit = True
        thread.join(timeout=10)
