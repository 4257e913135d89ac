"""The log: one documented format in two styles, and nothing of people in it."""

from __future__ import annotations

import io
import json
import logging
import re
import shlex
from contextlib import closing

import pytest

from goldspan.campaign.protocols import WorkerDropped
from goldspan.web.logs import LogFormatter, request_id
from web.desk.conftest import worked
from web.played import Played, code_of

PAIR = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s="\\]+)(?: |$)')


@pytest.fixture
def log(request):
    """Everything that is logged meanwhile, in one of the styles."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter(request.param))
    logger = logging.getLogger("goldspan")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def lines(log):
    """Read the lines of a log of either style."""
    found = []
    for line in log.getvalue().splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
            continue
        pairs = PAIR.findall(line)
        assert " ".join(f"{name}={value}" for name, value in pairs) == line
        found.append(
            {name: json.loads(value) if value.startswith('"') else value for name, value in pairs}
        )
    return found


both = pytest.mark.parametrize("log", ["text", "json"], indirect=True)


@both
def test_a_request_has_a_line_with_the_documented_fields(log):
    played = Played()
    browser = played.worker("ann")
    reply = browser.get("/api/work/me")
    line = next(one for one in lines(log) if one.get("route") == "/api/work/me")
    assert list(line) == [
        "time", "level", "logger", "message", "request_id", "method", "route", "status", "ms",
    ]  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert (line["level"], line["logger"]) == ("debug", "goldspan.web.requests")
    assert (line["message"], str(line["status"])) == ("request", "200")
    assert line["request_id"] == reply.headers["x-request-id"]
    assert float(line["ms"]) >= 0


@both
def test_a_refusal_is_logged_with_the_id_of_its_request(log):
    reply = Played().browser().get("/w/not-a-link")
    mine = [one for one in lines(log) if one.get("request_id") == reply.headers["x-request-id"]]
    assert [one["logger"] for one in mine] == ["goldspan.web.security", "goldspan.web.requests"]
    assert mine[1]["route"] == "/w/{token}"
    assert mine[1]["level"] == "info"


@both
def test_a_fault_is_logged_by_place_and_not_by_its_words(log):
    played = Played()
    played.work.fails = RuntimeError("ann wrote: it rains")
    answer = played.worker("ann").get("/api/work/me")
    assert (answer.status_code, code_of(answer)) == (500, "fault")
    assert not re.search("RuntimeError|rains", answer.text)
    assert "content-security-policy" in answer.headers
    (line,) = [one for one in lines(log) if one["level"] == "error"]
    assert (line["error"], line["route"]) == ("RuntimeError", "/api/work/me")
    assert line["where"].startswith("played.py:")
    assert "ann" not in log.getvalue()
    assert "rains" not in log.getvalue()


@both
def test_values_cannot_break_out_of_their_line(log):
    words = 'a "quote"\nlevel=error message=forged \\ ü'
    logging.getLogger("goldspan.web").warning("%s", words)
    (line,) = lines(log)
    assert (line["message"], line["level"]) == (words, "warning")
    assert log.getvalue().count("\n") == 1


def test_without_a_request_there_is_no_id():
    record = logging.makeLogRecord({"name": "goldspan.web", "msg": "begins", "levelname": "INFO"})
    assert request_id.get() == ""
    words = shlex.split(LogFormatter("text").format(record))
    assert words[1:] == ["level=info", "logger=goldspan.web", "message=begins"]


def test_who_is_asked_no_more_has_a_pseudonym_in_the_log(caplog, tmp_path):
    with closing(worked(tmp_path)) as service, caplog.at_level("INFO", logger="goldspan"):
        service.campaign.on_event(WorkerDropped("cat.k", "right in 2 of 6"))
        pseudonym = service.desk.names("cat.k")
    assert "cat.k" not in caplog.text
    assert f"{pseudonym} is asked no more: right in 2 of 6" in caplog.text
