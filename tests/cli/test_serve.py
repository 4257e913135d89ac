"""`goldspan serve`: a process that lets in whom it should, and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from cli.test_invite import write_plan
from goldspan.cli import app

GOLDSPAN = [sys.executable, "-c", "from goldspan.cli import main; main()"]


def started(plan, out, *words, until="Ctrl-C ends it"):
    """Start a server on a free port; give the process and what it said at first."""
    command = [*GOLDSPAN, "serve", str(plan), "--out", str(out), "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    while until not in said:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        said += line
    return process, said


def status_of(url):
    request = urllib.request.Request(url)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_it_serves_until_ctrl_c(tmp_path):
    process, said = started(write_plan(tmp_path), tmp_path / "out", "--no-loop")
    try:
        (setup,) = re.findall(r"http://127\.0\.0\.1:\d+/setup/\S+", said)
        links = f"goldspan invite {tmp_path / 'campaign.toml'} --workers ann,bob"
        assert f"{links} --out {tmp_path / 'out'}" in said
        assert status_of(setup) == 200
        assert status_of(setup + "x") == 403
        assert status_of(setup.partition("/setup")[0] + "/api/work/me") == 401
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "the same command goes on" in log
    assert "method=GET route=/api/work/me status=401" in log
    assert setup.rpartition("/")[2] not in log
    assert "Traceback" not in log


def test_the_address_and_the_links_are_json_for_a_program(tmp_path):
    plan = write_plan(tmp_path)
    plan.write_text(
        plan.read_text().replace(
            "[crowd]\n", '[crowd]\nannotators = ["ann", "bob", "cid", "dee"]\n'
        )
    )
    words = ["--no-loop", "--json", "--metrics-port", "0"]
    process, said = started(plan, tmp_path / "out", *words, until="\n}\n")
    try:
        facts = json.loads(said)
        assert list(facts["links"]) == ["ann", "bob", "cid", "dee"]
        for url in (facts["setup"], facts["login"], facts["metrics"]):
            assert status_of(url) == 200
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert rest == ""  # the log is on standard error


def test_it_logs_json_and_offers_metrics_to_this_machine(tmp_path):
    words = ["--no-loop", "--metrics-port", "0", "--log-format", "json", "--log-level", "debug"]
    process, said = started(write_plan(tmp_path), tmp_path / "out", *words)
    try:
        (metrics,) = re.findall(r"http://127\.0\.0\.1:\d+/metrics", said)
        (home,) = re.findall(r"serves \S+ at (\S+)", said)
        assert status_of(f"{home}/") == 200
        assert status_of(f"{home}/metrics") == 404
        with urllib.request.urlopen(metrics, timeout=60) as answer:
            samples = answer.read().decode().splitlines()
        assert 'goldspan_requests_total{method="GET",route="/",status="200"} 1.0' in samples
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    routes = [(one["route"], one["status"]) for one in lines if one["message"] == "request"]
    assert routes == [("/", 200), ("(no route)", 404)]


def invoke(plan, *words):
    out = ["--out", str(plan.parent / "out")]
    result = CliRunner().invoke(app, ["serve", str(plan), *out, *words])
    assert result.exit_code == 1
    return str(result.exception)


def test_a_port_that_is_taken_is_said_so(tmp_path):
    plan = write_plan(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in invoke(plan, "--port", str(port))


def test_the_metrics_ports_of_all_web_processes_are_looked_at_first(tmp_path):
    words = ["--processes", "2", "--store", "postgresql://nowhere/x", "--metrics-port", "65535"]
    told = invoke(write_plan(tmp_path), "--port", "0", *words)
    assert "cannot offer metrics on port 65536: the last port is 65535 (the 2 web" in told
    assert not (tmp_path / "out").exists()


def test_a_second_server_of_a_campaign_is_refused_until_the_first_has_ended(tmp_path, monkeypatch):
    plan, told = write_plan(tmp_path), []

    def meanwhile(*_):
        monkeypatch.setattr("goldspan.web.serve", lambda *_: None)
        told.append(invoke(plan, "--port", "0", "--reset-password", "--no-loop"))

    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0)
    monkeypatch.setattr("goldspan.web.logs.open_log", lambda *_: None)
    monkeypatch.setattr("goldspan.web.serve", meanwhile)
    words = ["serve", str(plan), "--out", str(tmp_path / "out"), "--port", "0", "--no-loop"]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0
    (address,) = re.findall(r"serves \S+ at (\S+)", first.stdout)
    (second,) = told
    assert f"is served already, by process {os.getpid()} at {address}: use that server" in second
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "0.0.0.0"], "name the one that people use with --public-url"),
        (["--host", "0.0.0.0", "--public-url", "http://labels.example.org"], "--insecure"),
        (["--public-url", "http://labels.example.org"], "--insecure"),
        (["--host", "192.0.2.1"], "--insecure"),
        (["--host", "192.0.2.1", "--insecure"], "cannot listen on 192.0.2.1"),
        (["--port", "0", "--public-url", "https://labels.example.org/x"], "not the address"),
    ],
)
def test_an_address_that_is_not_safe_is_refused_and_explained(tmp_path, words, told):
    plan = write_plan(tmp_path)
    assert told in invoke(plan, *words)
    assert not (tmp_path / "out" / "campaign.sqlite").exists()


def test_a_plan_of_another_crowd_is_refused_and_nothing_is_made(tmp_path):
    plan = write_plan(tmp_path)
    words = plan.read_text(encoding="utf-8").replace('source = "web"', 'source = "files"')
    plan.write_text(words, encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert "campaigns of other crowds are run by `goldspan run`" in invoke(plan, "--port", "0")
    assert sorted(tmp_path.iterdir()) == before


def test_who_was_forgotten_gets_no_link_because_the_plan_still_names_them(tmp_path):
    plan = write_plan(tmp_path)
    words = plan.read_text().replace(
        "[crowd]\n", '[crowd]\nannotators = ["zoe", "yan", "xan", "wim"]\n'
    )
    assert "zoe" in words
    plan.write_text(words)
    out = tmp_path / "out"

    def serve_once():
        process, said = started(plan, out, "--no-loop")
        process.send_signal(signal.SIGINT)
        return said, process.communicate(timeout=60)[1]

    assert "zoe" in serve_once()[0]
    place = ["--out", str(out)]
    told = CliRunner().invoke(app, ["forget", str(plan), "zoe", "--yes", *place])
    assert told.exit_code == 0, told.output
    assert f"yours to remove: {plan} (crowd.annotators)" in told.output
    stored = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"zoe" not in stored
    assert b"yan" in stored
    said, log = serve_once()
    assert "zoe" not in said
    assert "1 names in crowd.annotators are of people who were forgotten" in log
