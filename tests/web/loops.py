"""Event loops for tests: each in a thread of its own, for a browser's may run in the first one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run_loop(make, *args):
    """Run the coroutine that a function makes, and give what it gives."""

    def run():
        return asyncio.run(make(*args))

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()
