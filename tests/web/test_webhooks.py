"""Webhooks: nothing that happened is lost, all is signed, and nobody waits for a receiver."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, toml, write_files
from goldspan.campaign import read_plan
from goldspan.cli import app
from goldspan.client import read_webhook
from goldspan.errors import FaultsError, InputError
from goldspan.store import programs
from goldspan.store.verify import verify
from goldspan.web import webhooks as hooks
from goldspan.web.engine import end
from goldspan.web.service import open_service
from goldspan.web.webhooks import Webhooks, is_public
from web.desks import Served
from web.loops import wait_until
from web.serving import KEYS, Clock, answer, open_round, plan_file

SECRET = "a-secret-of-more-than-24-characters"
PATIENCE = 300
"""Seconds: a machine may be slow."""
until = partial(wait_until, seconds=PATIENCE)
URL = "https://example.org/hook?key=hidden"


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("GOLDSPAN_WEBHOOK_SECRET", SECRET)
    monkeypatch.setattr(hooks, "POLL", 0.02)


class Receiver:
    """A program that takes messages, as it is told: a status, or a function of the handler."""

    def __init__(self):
        self.got, self.answers, self.changed = [], [], threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.changed:
                    how = receiver.answers.pop(0) if receiver.answers else 200
                    receiver.got.append((how, dict(self.headers.items()), body))
                    receiver.changed.notify_all()
                if callable(how):
                    how(self)
                    return
                self.send_response(how)
                if how == 302:
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def wait(self, n):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) >= n, PATIENCE), self.got
        return self.got

    def messages(self):
        """Return the messages that were taken, after checking their signatures."""
        return [
            read_webhook(body, headers, SECRET, tolerance=10**12)
            for how, headers, body in self.got
            if how == 200
        ]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def table(url, **more):
    return {"url": url, "local": True, "events": ["round.closed", "campaign.ended", "answer"],
            "answers_every": 1.0, **more}  # fmt: skip


def open_campaign(folder, *tables):
    """Open a campaign with webhooks, whose loop does not run."""
    path = plan_file(folder)
    words = "\n".join(
        "[[webhooks]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in one.items())
        for one in tables
    )
    path.write_text(f"{path.read_text()}\n{words}\n")
    return open_service(path, folder / "out", KEYS, clock=Clock())


@pytest.fixture
def opened(tmp_path):
    """Opens the campaign with webhooks: they are told what comes from here on."""
    with ExitStack() as stack:

        def go(*tables):
            service = stack.enter_context(closing(open_campaign(tmp_path, *tables)))
            service.begin()
            service.webhooks.gathering.begin()
            open_round(service)
            return service

        yield go


@pytest.fixture
def service(opened, receiver):
    return opened(table(receiver.url))


@contextmanager
def sending(service, **more):
    """Gather and send."""
    sender = Webhooks(service.inputs, service.ledger, service.clock, service.desk.names, **more)
    sender.start()
    try:
        yield sender
    finally:
        sender.stop()


def tried(service, n=1):
    """Wait until the last message was tried so often, and return it."""
    wait_until(lambda: any(one.tries == n for one in service.webhooks.deliveries()), PATIENCE)
    return service.webhooks.deliveries()[0]


def all_sent(service):
    rows = service.webhooks.deliveries()
    return rows and all(one.state == "sent" for one in rows)


def all_told(service, receiver, n):
    """Whether so many answers were told; time passes, so that the next message is due."""
    service.clock.pass_seconds(1)
    return sum(len(one.data["answers"]) for one in receiver.messages()) == n


def play(service, turns=3, workers=("ann.k", "bob.k")):
    """Let annotators answer; return how many answers count."""
    n = 0
    for _ in range(turns):
        for worker in workers:
            service.clock.pass_seconds(2)
            done = answer(service, worker)
            n += done is not None
    return n


def test_rounds_answers_and_the_end_are_told_once_each(service, receiver):
    n = play(service, turns=12, workers=("ann.k", "bob.k", "cat.k"))
    open_round(service)  # closes the first one
    end(service.ledger, service.clock())
    open_round(service)
    with sending(service):
        until(lambda: len(receiver.got) >= 3 and all_sent(service))
    found = receiver.messages()
    assert len({one.id for one in found}) == len(found)
    by = {
        event: [one for one in found if one.event == event]
        for event in ("round.closed", "campaign.ended", "answer")
    }
    assert [one.data["round"] for one in by["round.closed"]] == list(
        range(1, len(service.ledger.records("round")) + 1)
    )
    assert by["round.closed"]
    (ended,) = by["campaign.ended"]
    assert ended.data == {"why": list(service.ledger.records("stop").values())[-1]["why"]}
    told = [row for one in by["answer"] for row in one.data["answers"]]
    assert len(told) == n == service.ledger.n_answers
    assert {row["worker"] for row in told} == {
        service.desk.names(name) for name in ("ann.k", "bob.k", "cat.k")
    }
    assert {one.campaign for one in found} == {service.inputs.key}
    text = b"".join(body for _, _, body in receiver.got).decode()
    assert not any(name in text for name in ("ann.k", "bob.k", "cat.k", "rain", "spent"))


def test_the_signature_is_that_of_standard_webhooks(service, receiver):
    play(service, 1)
    with sending(service):
        receiver.wait(1)
    _, headers, body = receiver.got[0]
    given = {name.lower(): value for name, value in headers.items()}
    words = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    right = base64.b64encode(hmac.new(SECRET.encode(), words, sha256).digest()).decode()
    assert given["webhook-signature"] == f"v1,{right}"
    assert int(given["webhook-timestamp"]) == service.clock() // 1000
    assert given["content-type"] == "application/json"
    assert SECRET not in str(receiver.got)


def test_what_is_not_taken_is_sent_again_with_growing_pauses(service, receiver):
    receiver.answers = [500, 503, 302, 404, 429]
    play(service, 1)
    with sending(service):
        for n in range(1, 6):
            receiver.wait(n)
            one = tried(service, n)
            assert (one.state, one.status) == ("waiting", receiver.got[-1][0])
            pause = (one.due - one.changed) / 1000
            assert 0.75 * 5 * 2 ** (n - 1) <= pause <= 1.25 * 5 * 2 ** (n - 1)
            time.sleep(0.1)
            assert len(receiver.got) == n
            service.clock.pass_seconds(pause)
        until(lambda: all_sent(service))
    assert len({body for _, _, body in receiver.got}) == 1
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1
    (one,) = service.webhooks.deliveries()
    assert (one.state, one.tries, one.status, one.why) == ("sent", 6, 200, "")


def test_answers_that_come_while_a_receiver_is_down_come_in_one_message_after_it(service, receiver):
    receiver.answers = [500] * 1_000
    first = play(service, 1)
    service.webhooks.gathering.look()
    with sending(service):
        receiver.wait(1)
        more = play(service, 3)
        receiver.answers = []
        service.clock.pass_seconds(7_200)
        until(lambda: len(service.webhooks.deliveries()) == 2 and all_sent(service))
    sizes = [len(one.data["answers"]) for one in receiver.messages()]
    assert sizes == [first, more]


@pytest.mark.parametrize("answers", [[410], [500, 500]])
def test_a_message_that_is_unwanted_or_three_days_old_is_given_up_and_can_be_sent_again(
    service, receiver, answers
):
    receiver.answers = [*answers]
    play(service, 1)
    with sending(service):
        one = tried(service)
        for n in range(2, len(answers) + 1):
            service.clock.pass_seconds(3 * 86_400)
            one = tried(service, n)
        assert (one.state, one.why) == ("failed", f"status {answers[-1]}")
        service.clock.pass_seconds(86_400)
        time.sleep(0.1)
        assert len(receiver.got) == len(answers)
        desk = Served(service=service).requester()
        path = f"/api/desk/webhooks/{one.number}/retry"
        assert desk.post(path).json() == {"number": one.number, "again": True}
        until(lambda: all_sent(service))
        assert desk.post(path).status_code == 404
        shown = desk.get("/api/desk/webhooks").json()
    assert [row["state"] for row in shown["messages"]] == ["sent"]
    assert shown["hooks"][0]["host"] == "127.0.0.1"
    assert (shown["hooks"][0]["sent"], shown["hooks"][0]["waiting"]) == (1, 0)


def test_a_receiver_that_is_slow_or_down_delays_no_other_and_no_answer(
    opened, receiver, monkeypatch
):
    monkeypatch.setattr(hooks, "SECONDS", 0.5)
    slow, released = Receiver(), threading.Event()

    def drip(handler):
        """Answer a byte now and then, for longer than anybody waits."""
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not released.wait(0.05):
            try:
                handler.wfile.write(b"a")
            except OSError:
                return

    slow.answers = [drip] * 50
    service = opened(
        table(slow.url, name="slow"), table(receiver.url, name="quick"),
        table("http://127.0.0.1:9/", name="down"),
    )  # fmt: skip
    try:
        with sending(service):
            n = 0
            for turn in range(3):
                n += play(service, 1)
                receiver.wait(turn + 1)
            until(lambda: all_told(service, receiver, n))
            until(lambda: {one.hook for one in service.webhooks.deliveries() if one.tries} == {
                "slow", "quick", "down"})  # fmt: skip
            whys = {one.hook: one.why for one in service.webhooks.deliveries() if one.why}
        assert whys["slow"].startswith("no answer in")
        assert whys["down"] == "ConnectError"
    finally:
        released.set()
        slow.close()


CHILD = """
import sys
from goldspan.web import webhooks
from goldspan.web.service import open_service
from web.serving import KEYS, Clock
webhooks.POLL = 0.02
service = open_service(sys.argv[1], sys.argv[2], KEYS, clock=Clock())
service.webhooks.start()
service.webhooks._thread.join()
"""


def test_a_kill_between_sending_and_noting_sends_the_same_message_again(
    tmp_path, service, opened, receiver
):
    released = threading.Event()
    receiver.answers = [lambda _: released.wait(PATIENCE)]
    n = play(service, 1)
    service.close()
    words = [sys.executable, "-c", CHILD, tmp_path / "campaign.toml", tmp_path / "out"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=environment) as child:
        try:
            receiver.wait(1)
        finally:
            child.kill()
            released.set()
    again = opened(table(receiver.url))
    with sending(again):
        receiver.wait(2)
        until(lambda: all_sent(again))
    (found,) = receiver.messages()
    assert len(found.data["answers"]) == n
    first = {name.lower(): value for name, value in receiver.got[0][1].items()}
    assert (first["webhook-id"], receiver.got[0][2]) == (found.id, receiver.got[1][2])


def test_a_kill_before_anything_was_gathered_loses_nothing(service, opened, receiver):
    n = play(service, 3)
    service.ledger.close()  # without a word
    again = opened(table(receiver.url))
    with sending(again):
        until(lambda: all_told(again, receiver, n))


def test_what_was_before_a_webhook_is_not_told(opened, receiver):
    service = opened()
    play(service, 2)
    service.close()
    service = opened(table(receiver.url))
    with sending(service):
        n = play(service, 1)
        until(lambda: all_told(service, receiver, n))


def test_gathering_grows_no_log_and_verify_finds_nothing(service):
    play(service, 2)
    before = service.ledger.n_events
    assert service.webhooks.gathering.look() == 1
    assert service.ledger.n_events == before
    assert verify(service.ledger.database).is_whole


@pytest.mark.usefixtures("receiver")
def test_what_was_sent_long_ago_is_deleted(service):
    play(service, 1)
    with sending(service):
        until(lambda: all_sent(service))
    service.clock.pass_seconds(31 * 86_400)
    play(service, 1)
    service.webhooks.gathering._pruned = -(10**15)
    service.webhooks.gathering.look()
    assert [one.state for one in service.webhooks.deliveries()] == ["waiting"]


# ---- where messages may go ----


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.215.14", "192.168.1.1"], []])
def test_nothing_is_sent_to_this_machine_or_a_private_network(opened, receiver, addresses):
    service = opened({**table(receiver.url), "url": URL, "local": False})
    play(service, 1)
    with sending(service, resolve=lambda *_: addresses):
        assert "address" in tried(service).why
    assert receiver.got == []


SPECIAL = """
    0.0.0.0 0.255.255.255 10.1.2.3 100.64.0.1 100.127.255.255 127.8.9.1 168.63.129.16
    169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.31.196.1
    192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1
    203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::5db8:d70e
    ::ffff:127.0.0.1 ::ffff:192.88.99.1 ::ffff:0:7f00:1 64:ff9b::a00:1 64:ff9b:1::5db8:d70e 100::1
    100:0:0:1::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
    2002:5db8:d70e:: 2620:4f:8000::1 3fff::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254
    fe80::1 fe80::1%eth0 fec0::1 feff::1 ff02::1 ff0e::1 example.org 127.1 0x7f000001 2130706433
"""
PUBLIC = """
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 168.63.129.17 172.32.0.0 192.0.1.0
    192.88.98.1 198.20.0.0 223.255.255.255 ::ffff:93.184.215.14 64:ff9b::5db8:d70e 2001:200::1
    2606:2800:21f:cb07:6820:80da:af6b:8b2c 2a00:1450::1 2003::1
"""


@pytest.mark.parametrize(("addresses", "public"), [(SPECIAL, False), (PUBLIC, True)])
def test_an_address_of_a_private_network_or_none_is_not_public(addresses, public):
    assert [one for one in addresses.split() if is_public(one) != public] == []


def test_whatever_fails_the_try_counts_and_the_next_one_waits(service):
    def resolve(*_):
        raise UnicodeError("label too long")

    play(service, 1)
    with sending(service, resolve=resolve):
        one = tried(service)
    assert (one.state, one.why, one.tries) == ("waiting", "UnicodeError", 1)
    assert one.due > service.clock()


def test_what_waits_for_a_webhook_that_left_the_plan_is_given_up(opened, receiver):
    service = opened(table(receiver.url, name="old"))
    play(service, 1)
    service.webhooks.gathering.look()
    (one,) = service.webhooks.deliveries()
    for tables in ([table(receiver.url, name="new")], [], [table(receiver.url, name="old")]):
        service.close()
        service = opened(*tables)
        with sending(service):
            pass
        (same,) = service.webhooks.deliveries()
        assert (same.number, same.state) == (one.number, "failed")
        assert same.why == "the plan no longer has this webhook"
        back = bool(tables) and tables[0]["name"] == "old"
        assert service.webhooks.send_again(one.number) == back
    assert receiver.got == []  # what came while it was away is not told later


def test_the_address_that_was_checked_is_the_one_that_is_used(opened):
    asked = []

    def take(request):
        asked.append(request)
        return httpx2.Response(200)

    service = opened({**table(URL), "url": URL, "local": False})
    play(service, 1)
    transport = httpx2.MockTransport(take)
    with sending(service, resolve=lambda *_: ["93.184.215.14"], transport=transport):
        until(lambda: asked)
    (request,) = asked
    assert request.url.host == "93.184.215.14"
    assert request.headers["Host"] == "example.org"
    assert request.extensions["sni_hostname"] == "example.org"
    assert request.url.raw_path == b"/hook?key=hidden"


def test_logs_and_the_desk_do_not_show_the_address_or_the_secret(opened, caplog):
    service = opened({**table(URL), "url": "http://127.0.0.1:9/hook?key=hidden"})
    play(service, 1)
    with caplog.at_level(logging.DEBUG), sending(service):
        tried(service)
    shown = Served(service=service).requester().get("/api/desk/webhooks").text
    assert "was not taken" in caplog.text
    for text in (caplog.text, shown):
        assert "hidden" not in text
        assert SECRET not in text


# ---- the plan ----


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"url": "ftp://a"}, "must be an address such as https"),
        ({"url": "https://u:p@a.example"}, "must be an address such as https"),
        ({"url": "https://a.example/#x"}, "must be an address such as https"),
        ({"url": "https://example..org/hook"}, "must be an address such as https"),
        ({"url": "https://ex ample.org/x"}, "must be an address such as https"),
        ({"url": f"https://{'a' * 64}.example"}, "must be an address such as https"),
        ({"url": "https://bücher.example"}, "written in ASCII"),
        ({"url": "http://a.example"}, "must begin with https"),
        ({"url": "https://a.example", "events": ["all"]}, "webhooks.0.events.0: must be"),
        ({"url": "https://a.example", "events": []}, "webhooks.0.events"),
        ({"url": "https://a.example", "secret": "hunter2 is my secret"}, "the name of a variable"),
        ({"url": "https://a.example", "secrets": "A"}, "unknown key: choose from url"),
        ({"url": "https://a.example", "answers_every": 0}, "at least 1"),
        ({}, "webhooks.0.url: is missing"),
        ([{"url": "https://a.example/1"}, {"url": "https://a.example/2"}], "two are called 'a"),
    ],
)
def test_a_faulty_webhook_is_refused_with_the_plan(tmp_path, hook, words):
    with pytest.raises(FaultsError, match=words):
        open_campaign(tmp_path, *(hook if isinstance(hook, list) else [hook]))


def test_webhooks_are_no_part_of_what_a_campaign_is_known_by(tmp_path):
    path = plan_file(tmp_path)
    plain = read_plan(path)
    path.write_text(f'{path.read_text()}\n[[webhooks]]\nurl = "https://a.example"\n')
    hooked = read_plan(path)
    assert hooked.webhooks
    assert hooked.model_dump(mode="json") == plain.model_dump(mode="json")


def test_a_campaign_without_a_server_has_none(tmp_path):
    write_files(tmp_path)
    path = tmp_path / "campaign.toml"
    path.write_text(toml(plan_of({})) + '\n[[webhooks]]\nurl = "https://a.example"\n')
    with pytest.raises(FaultsError, match="webhooks: belong to source"):
        read_plan(path)


@pytest.mark.parametrize(
    ("secret", "words"),
    [(None, 'GOLDSPAN_WEBHOOK_SECRET.*echo "whsec_'), ("short", "24 characters"),
     ("whsec_é", "holds no token"), ("whsec_no*base64", "Base64")],
)  # fmt: skip
def test_a_server_without_the_secret_does_not_begin(tmp_path, monkeypatch, secret, words):
    if secret is None:
        monkeypatch.delenv("GOLDSPAN_WEBHOOK_SECRET")
    else:
        monkeypatch.setenv("GOLDSPAN_WEBHOOK_SECRET", secret)
    with (
        closing(open_campaign(tmp_path, table("https://a.example"))) as service,
        pytest.raises(InputError, match=words),
    ):
        service.begin()


def test_the_server_itself_sends(tmp_path, receiver):
    with closing(open_campaign(tmp_path, table(receiver.url))) as service:
        service.begin()
        service.start()
        until(lambda: service.engine.live.state == "waiting")
        n = play(service, 1)
        until(lambda: all_told(service, receiver, n))


def test_messages_are_listed_and_sent_again_by_a_command(service, receiver, tmp_path, monkeypatch):
    play(service, 1)
    service.webhooks.gathering.look()
    (one,) = service.webhooks.deliveries()
    service.ledger.transact(
        service.clock(), lambda entry: programs.note_try(entry, one.number, "failed", 0, 500, "no")
    )
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    monkeypatch.setenv("GOLDSPAN_SECRET_FILE", str(tmp_path / "key"))
    words = ["webhooks", str(tmp_path / "campaign.toml"), "--out", str(tmp_path / "out")]
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [(row["state"], row["why"]) for row in said["messages"]] == [("failed", "no")]
    done = CliRunner().invoke(app, [*words, "--retry", str(one.number)])
    assert done.stdout.startswith(f"sent again: {one.number}\n")
    assert service.webhooks.deliveries()[0].state == "waiting"
    assert "message 99" in str(CliRunner().invoke(app, [*words, "--retry", "99"]).exception)
    assert receiver.got == []


def test_messages_are_kept_in_both_databases(new_ledger):
    ledger = new_ledger()

    def gather(entry):
        def read(connection, after):
            upto, found = programs.records_since(connection, after, "round")
            return upto, [(f"m{one.number}", "{}") for one, _, _ in found]

        return programs.gather(entry, "h", "e", read)

    assert ledger.transact(1, gather) == 0
    ledger.record("round", "r1", {"round": 1}, 2)
    ledger.record("other", "o1", {}, 3)
    assert [ledger.transact(4, gather) for _ in range(2)] == [1, 0]
    query = ledger.database.query
    (one,) = query(programs.due, "h", 4, 9)
    assert query(programs.due, "h", 3, 9) == []
    assert query(programs.last_made, "h", "e") == (4, True)
    ledger.transact(5, lambda entry: programs.note_try(entry, one.number, "sent", 0, 200, ""))
    assert query(programs.counts) == {("h", "sent"): 1}
    again = partial(programs.send_again, number=one.number, hooks=["h"])
    assert not ledger.transact(6, again)
    ledger.record("round", "r2", {"round": 2}, 6)
    assert ledger.transact(6, gather) == 1
    two = query(programs.last_messages, 1)[0]
    ledger.transact(6, lambda entry: programs.forget_others(entry, ["h"]))
    assert query(programs.counts) == {("h", "sent"): 1, ("h", "waiting"): 1}
    ledger.transact(6, lambda entry: programs.forget_others(entry, []))
    assert query(programs.counts) == {("h", "sent"): 1, ("h", "failed"): 1}
    assert ledger.transact(6, gather) == 0  # it is new again
    again = partial(programs.send_again, number=two.number)
    assert [ledger.transact(6, partial(again, hooks=one)) for one in (["i"], ["h"])] == [
        False, True,
    ]  # fmt: skip
    ledger.transact(7, lambda entry: programs.note_try(entry, two.number, "sent", 0, 200, ""))
    ledger.transact(9, lambda entry: programs.drop_sent(entry, 8))
    assert query(programs.last_messages, 9) == []
    assert query(programs.answers_since, 0)[1] == []
