"""A server that forks real `goldspan run`s, each of which kills itself at its n-th statement.

A line on standard input is JSON: n, and the words of the command; the reply is the return code,
negative for a signal. With n = 0 it runs through, in the server itself, which then has imported and
compiled all that is needed: the forks need no seconds for that. The kills fall everywhere: between
statements, before commits, between an answer and its settlement.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from sqlalchemy import Engine, event

from goldspan.cli import main
from goldspan.store import roles

roles.LOOK, roles.LOOKS = 0.05, 4  # who was killed is gone indeed


def die_at(n: int) -> None:
    """Kill this process at its n-th statement or commit."""
    left = n

    def tick(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", tick)
    event.listen(Engine, "commit", tick)


def run(words: list[str]) -> int:
    """Be a `goldspan run`."""
    sys.argv = ["goldspan", *words]
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def fork(n: int, words: list[str]) -> int:
    """Run in another process, which dies at its n-th statement."""
    child = os.fork()
    if not child:
        die_at(n)
        os._exit(run(words))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for line in sys.stdin:
    asked = json.loads(line)
    code = fork(asked["n"], asked["words"]) if asked["n"] else run(asked["words"])
    print(code, flush=True)
