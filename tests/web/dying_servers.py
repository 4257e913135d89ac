"""A process that forks real `goldspan serve`s, to be killed from outside.

It has imported and run all that a server needs, so that a fork is at work in a moment. A line on
standard input is JSON: `words` and `log` start a server, whose number is the reply; `reap` waits
for one that was killed, and the reply is its return code.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from goldspan.cli import main
from goldspan.store import roles
from goldspan.web import ServerSettings, create_app
from web.serving import KEYS, answer, serve

# Who was killed is gone indeed. What a server takes for sure follows from both.
roles.LOOK, roles.BEAT = 0.1, 0.2


def warm_up() -> None:
    """Import and run what a server needs, without a thread that a fork would lack."""
    with tempfile.TemporaryDirectory() as folder:
        service = serve(Path(folder))
        service.campaign.run()
        answer(service, "ann")
        service.engine.look()
        create_app(service, ServerSettings(KEYS))
        service.ledger.close()


def start(words: list[str], log: str) -> int:
    """Start a server; its output goes to a file."""
    child = os.fork()
    if child:
        return child
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for n in (1, 2):
        os.dup2(handle, n)
    sys.argv = ["goldspan", *words]
    try:
        main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        if "reap" in asked:
            print(os.waitstatus_to_exitcode(os.waitpid(asked["reap"], 0)[1]), flush=True)
        else:
            print(start(asked["words"], asked["log"]), flush=True)
