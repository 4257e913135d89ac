"""A server whose database restarts goes on; one that was replaced takes nothing more, and ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from cli.test_invite import write_plan
from goldspan.store.engine import LostError, connect, to_url
from goldspan.web import ServerSettings, create_app
from web.serving import KEYS, serve

GOLDSPAN = [sys.executable, "-c", "from goldspan.cli import main; main()"]
# Nobody counts as gone because the machine is busy.
PATIENT = "from goldspan.store import roles; roles.LOOKS = 10**6; "
MODES = ["immediate", *(["fast"] if os.environ.get("GOLDSPAN_TORTURE") else [])]
"""Starting servers takes long; `tests/store/test_roles.py` restarts the database in both modes."""


@pytest.fixture
def url(own_postgres, request):
    """Address of a schema on a server that may be restarted."""
    schema = re.sub(r"\W", "_", request.node.name)[-40:].lower()
    engine = connect(to_url(own_postgres.url))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    return f"{own_postgres.url}&options=-csearch_path%3D{schema}"


@pytest.fixture
def started():
    """Starts servers."""
    made = []

    def start(plan, out, store, before="", *, refused=False):
        words = [GOLDSPAN[0], "-c", before + GOLDSPAN[2]]
        words += ["serve", str(plan), "--out", str(out), "--port", "0", "--store", store]
        log = (out.parent / f"log{len(made)}").open("w+")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        made.append((process, log))
        said = ""
        while not refused and "Ctrl-C ends it" not in said:
            line = process.stdout.readline()
            assert line, (log.seek(0), log.read())
            said += line
        if refused:
            process.wait()
            return process, "", log
        return process, re.findall(r"http://127\.0\.0\.1:\d+", said)[0], log

    yield start
    for process, log in made:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        log.close()


def read(log):
    log.seek(0)
    return log.read()


def stop_between_writes(process, path):
    """Stop a process while it holds no lock of a SQLite file: nobody could open the file."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:  # it was writing
                process.send_signal(signal.SIGCONT)
                os.waitpid(process.pid, os.WCONTINUED)
                continue
            connection.execute("ROLLBACK")
            return


def asked(url):
    """Ask a server; return status and code of the refusal, (0, "") where nobody answers."""
    try:
        urllib.request.urlopen(f"{url}/api/work/me", timeout=60).close()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]["code"]
    except OSError:
        return 0, ""
    raise AssertionError


@pytest.mark.torture(
    "PostgreSQL is restarted under load",
    "one process has the campaign; who was replaced writes nothing",
)
@pytest.mark.parametrize("mode", MODES)
def test_a_server_goes_on_after_a_restart_and_no_second_one_comes_in(
    tmp_path, own_postgres, url, started, mode
):
    plan, out = write_plan(tmp_path), tmp_path / "out"
    process, address, log = started(plan, out, url, PATIENT)
    assert asked(address)[0] == 401
    own_postgres.restart(mode)
    second, _, told = started(plan, out, url, PATIENT, refused=True)
    assert second.returncode == 1
    assert f"is served already, by process {process.pid} at {address}: use that" in read(told)
    while asked(address)[0] == 503:
        assert process.poll() is None
    assert asked(address)[0] == 401
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert "Traceback" not in read(log)
    assert len(read(log).splitlines()) < 30


@pytest.mark.torture(
    "a process is stopped for longer than its heartbeat",
    "it writes nothing once another has its place",
)
def test_a_server_that_was_stopped_too_long_ends_when_it_wakes(tmp_path, url, started):
    plan, out = write_plan(tmp_path), tmp_path / "out"
    first, address, log = started(plan, out, url)
    first.send_signal(signal.SIGSTOP)
    second, other, told = started(plan, out, url)
    assert f"process {first.pid} at {address} did not answer" in read(told)
    first.send_signal(signal.SIGCONT)
    # It may take nothing from the moment on at which it wakes.
    assert asked(address) in {(0, ""), (503, "replaced"), (503, "unavailable")}
    assert first.wait(120) == 1
    said = read(log)
    assert said.count("this server ends") == 1
    assert f"process {second.pid} at {other} serves it now" in said
    assert "Traceback" not in said
    while asked(other)[0] == 503:
        assert second.poll() is None
    assert asked(other)[0] == 401


@pytest.mark.torture(
    "a process is stopped for longer than its heartbeat",
    "it writes nothing once another has its place",
)
def test_a_stopped_server_on_sqlite_keeps_its_campaign(tmp_path, started):
    plan, out = write_plan(tmp_path), tmp_path / "out"
    place = f"sqlite:///{tmp_path / 'c.db'}"
    first, address, log = started(plan, out, place)
    stop_between_writes(first, tmp_path / "c.db")
    second, _, told = started(plan, out, place, refused=True)
    assert second.returncode == 1, read(told)
    assert f"served already, by process {first.pid} at {address}" in read(told)
    first.send_signal(signal.SIGCONT)
    assert asked(address)[0] == 401
    first.kill()
    first.wait()
    third, other, _ = started(plan, out, place)
    assert asked(other)[0] == 401
    third.send_signal(signal.SIGINT)
    assert third.wait(120) == 130
    assert "Traceback" not in read(log)


def test_what_a_replaced_server_says_to_programs_and_people(tmp_path, caplog):
    service = serve(tmp_path)
    held = service.ledger.database.held
    with TestClient(
        create_app(service, ServerSettings(KEYS)), base_url="http://127.0.0.1:8080"
    ) as c:
        assert c.get("/api/work/me").status_code == 401
        held.sure_until["web"] = 0.0  # PostgreSQL is silent
        assert c.get("/api/work/me").json()["error"]["code"] == "unavailable"
        del held.sure_until["web"]
        held.lose(LostError("another process took over"))
        answer = c.get("/api/work/me")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json()["error"]["code"] == "replaced"
        page = c.get("/login")
        assert page.status_code == 503
        assert "Another server has taken over this campaign" in page.text
    assert caplog.text.count("this server ends: another process took over") == 1
    service.close()
