"""A PostgreSQL server of our own in a temporary folder, where its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server() -> Iterator[str | None]:
    """Return the folder of its Unix socket, None without PostgreSQL.

    It waits for the disk as it does by default (`fsync`, `synchronous_commit`).
    """
    initdb, postgres = _find("initdb"), _find("postgres")
    if initdb is None or postgres is None:
        yield None
        return
    folder, user = Path(tempfile.mkdtemp(prefix="goldspan-bench-")), _other_user()
    if user is not None:
        shutil.chown(folder, user)
    words = [initdb, "-U", "goldspan", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", "data"]
    subprocess.run(words, cwd=folder, user=user, check=True, capture_output=True)
    words = [postgres, "-D", "data", "-k", str(folder), "-c", "listen_addresses="]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, user=user, stdout=log, stderr=log)
    try:
        _wait(folder)
        yield str(folder)
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _find(program: str) -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(debian[-1]) if debian else shutil.which(program)


def _other_user() -> str | None:
    """Whom to run it as: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    return "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"


def _wait(folder: Path) -> None:
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(host=str(folder), user="goldspan", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError((folder / "log").read_text())
