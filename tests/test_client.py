"""The client: what it reads, sends, repeats and refuses, against a campaign that is served."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from goldspan.client import Client, FoundSpan, RefusedError, UnreachableError, read_webhook
from goldspan.client import sign_webhook as sign
from goldspan.errors import InputError
from goldspan.web.models import SpanBody
from goldspan.web.security.access import SCOPES
from web.desk.conftest import worked
from web.desks import running

EXAMPLE = Path(__file__).parents[1] / "examples" / "client.py"


BOTH = pytest.mark.parametrize("served", [False, True], ids=["single", "spans"], indirect=True)


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    service = worked(tmp_path_factory.mktemp("client"), spans=getattr(request, "param", False))
    with running(service) as made:
        yield made
    service.close()


@pytest.fixture
def token(served):
    return served.auth.tokens.make("a test", list(SCOPES), 1)[1]


@pytest.fixture
def client(served, token):
    with Client(served.url, token) as made:
        yield made


@BOTH
def test_what_the_desk_shows_is_read_as_it_is(served, client):
    desk, single = served.service.desk, served.service.inputs.plan.is_single
    now, seen = desk.overview(), client.overview()
    assert seen.model_copy(update={"hours": now.hours}) == now
    ids = [row.item for row in desk.items(limit=200).items]
    for page in (1, 3, 200):
        assert [row.item for row in client.items(page=page)] == ids
    assert list(client.items(find="no such words")) == []
    uncertain = client.uncertain(5)
    assert list(uncertain) == desk.uncertain(5)
    item = client.item(uncertain[0].item)
    assert item.n_answers == len(item.answers) == uncertain[0].answers
    assert {one.worker for one in item.answers} <= {"ann.k", "bob.k", "cat.k"}
    if single:
        assert item.found.label in served.service.inputs.plan.task.labels
        assert item.found.alternatives[0].confidence == item.found.confidence
    else:
        assert item.tokens
        assert all(isinstance(one, FoundSpan) for one in item.found.spans)
    assert list(client.workers()) == desk.workers()
    assert list(client.files()) == desk.exports()


@BOTH
def test_what_is_decided_is_decided(served, client):
    single = served.service.inputs.plan.is_single
    item = client.uncertain()[0].item
    client.decide(item, **({"label": "rain"} if single else {"spans": [(0, 1, "LOC")]}))
    gold = client.item(item).gold
    assert gold == ("rain" if single else [SpanBody(start=0, end=1, type="LOC")])
    assert item in [row.item for row in client.items(state="gold")]
    if not single:
        client.decide(item, spans=gold)
        client.decide(item, spans=[])
        assert client.item(item).gold == []
        client.undo(item)  # of three, each of its own
        client.undo(item)
        assert client.item(item).gold == gold
    client.undo(item)
    assert client.item(item).gold is None
    with pytest.raises(RefusedError, match="no decision"):
        client.undo(item)
    client.judge("cat.k", "drop", "guesses")
    assert {one.worker: one.barred for one in client.workers()}["cat.k"]
    client.judge("cat.k", "keep")
    client.pause()
    assert client.overview().state == "paused"
    client.resume()
    (link,) = client.make_links(["dora"], days=2)
    assert link.url.startswith(f"{served.url}/w/")
    client.revoke_link(link.id)
    assert {one.id: one.holds for one in client.links()}[link.id] is False
    with pytest.raises(InputError, match="either"):
        client.decide(item)


def test_a_file_is_written_whole(served, client, tmp_path):
    name = "gold.csv" if served.service.inputs.plan.is_single else "gold.conll"
    assert client.download(name, tmp_path) == tmp_path / name
    assert (tmp_path / name).read_bytes() == served.service.desk.export(name).content
    other = "answers.csv" if name == "gold.csv" else "answers.tsv"
    assert "ann.k" in client.download(other, tmp_path, names=True).read_text()
    with pytest.raises(RefusedError) as refused:
        client.download("nothing", tmp_path)
    assert (refused.value.status, refused.value.code) == (404, "unknown")
    assert {one.name for one in tmp_path.iterdir()} == {name, other}


@pytest.mark.parametrize(
    "name",
    ["../gold.csv", "/etc/x", "a/b", "..", ".bashrc", "a\\b", "c:x", "C:\\x", "NUL", "com1.txt",
     "x.", "gold.csv ", "gold.csv\n", "a\0b", "", "\u202egold"],
)  # fmt: skip
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    server = Server()
    with pytest.raises(InputError, match="is not the name of a file"):
        server.client().download(name, tmp_path)
    assert server.asked == list(tmp_path.iterdir()) == []


def test_a_refusal_says_why_in_the_servers_words(served, client):
    with pytest.raises(RefusedError, match="There is no item 'a/b c'") as refused:
        client.item("a/b c")
    assert pickle.loads(pickle.dumps(refused.value)).code == "unknown"
    with Client(served.url, served.auth.tokens.make("t", ["progress"], 1)[1]) as other:
        with pytest.raises(RefusedError, match="needs the scope 'people'"):
            other.workers()
        assert other.overview().money is None
    with Client(served.url, "gst_0_0") as nobody, pytest.raises(RefusedError, match="not valid"):
        nobody.overview()


def test_the_example_of_the_docs_runs(served, token, tmp_path):
    run = subprocess.run(
        [sys.executable, EXAMPLE, served.url], capture_output=True, text=True, cwd=tmp_path,
        env={"GOLDSPAN_TOKEN": token, "PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "uncertain" in run.stdout
    page = (EXAMPLE.parents[1] / "docs" / "programs.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in page


# ---- a network that fails ----


class Server:
    """Answers as it is told, one after the other, and writes down what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked, self.waits = list(answers), [], []

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options):
        return Client(
            "http://127.0.0.1:1", "gst_1_a", transport=httpx2.MockTransport(self),
            sleep=self.waits.append, **options,
        )  # fmt: skip


def refused(status, code="busy", **headers):
    body = {"error": {"code": code, "message": "No."}}
    return httpx2.Response(
        status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


OK = httpx2.Response(200, json=[])
DROPPED = httpx2.ReadTimeout("no answer")


def test_what_reads_is_asked_again_with_growing_pauses():
    server = Server(httpx2.ConnectError("no way"), DROPPED, refused(503), refused(502), OK)
    assert server.client().links() == ()
    assert len(server.asked) == 5
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(server.waits))


def test_a_decision_is_sent_again_under_the_same_key():
    done = httpx2.Response(200, json={"item": "d1", "gold": "rain"})
    server = Server(DROPPED, refused(500), done, done)
    client = server.client()
    client.decide("d1", label="rain")
    client.decide("d1", label="rain")
    keys = [one.headers["Idempotency-Key"] for one in server.asked]
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert json.loads(server.asked[0].content) == {"label": "rain"}


@pytest.mark.parametrize("fault", [DROPPED, httpx2.ConnectError("no"), refused(503), refused(500)])
def test_what_may_have_been_done_and_cannot_be_repeated_is_not_sent_again(fault):
    server = Server(fault)
    with pytest.raises((UnreachableError, RefusedError)):
        server.client().make_links(["ann"])
    assert len(server.asked) == 1
    server = Server(fault)
    with pytest.raises((UnreachableError, RefusedError)):
        server.client().undo("d1")
    assert len(server.asked) == 1
    server = Server(refused(429, Retry_After="2"), OK)
    assert server.client().make_links(["ann"]) == ()
    assert server.waits == [2.0]


def test_it_gives_up_after_so_many_tries():
    server = Server(*[refused(503)] * 3)
    with pytest.raises(RefusedError, match="No"):
        server.client(tries=3).overview()
    server = Server(*[DROPPED] * 2)
    with pytest.raises(UnreachableError, match="ReadTimeout"):
        server.client(tries=2).overview()


def test_who_is_told_to_wait_long_gets_the_refusal():
    server = Server(refused(429, "daily", Retry_After="3600"))
    with pytest.raises(RefusedError) as told:
        server.client().overview()
    assert (told.value.code, server.waits) == ("daily", [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422])
def test_a_refusal_that_stays_is_not_asked_again(status):
    server = Server(refused(status, "why"))
    with pytest.raises(RefusedError) as told:
        server.client().overview()
    assert (told.value.status, told.value.code, len(server.asked)) == (status, "why", 1)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b'{"items": []}',
        b"null",
        b'{"campaign": 1}',
        b"\xff",
        pytest.param(b"[" * 200_000, id="deep"),
    ],
)
def test_who_is_not_goldspan_is_told_so(body):
    for ask in (Client.overview, lambda one: list(one.items())):
        with pytest.raises(RefusedError) as told:
            ask(Server(httpx2.Response(200, content=body)).client())
        assert told.value.code == "form"
    with pytest.raises(RefusedError, match="is the address right"):
        Server(httpx2.Response(404, content=body)).client().overview()


CHANGES = {
    "decide": lambda one: one.decide("d1", label="rain"),
    "judge": lambda one: one.judge("ann", "keep"),
    "undo": lambda one: one.undo("d1"),
    "pause": Client.pause,
    "resume": Client.resume,
    "stop": Client.stop,
    "revoke": lambda one: one.revoke_link("x"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please log in</html>",
        b"{}",
        b'{"paused": "yes"}',
        b"[]",
        pytest.param(b"[" * 200_000, id="deep"),
    ],
)
def test_a_change_that_the_server_does_not_confirm_is_an_error(change, body):
    with pytest.raises(RefusedError, match="does not say that it did it") as told:
        CHANGES[change](Server(httpx2.Response(200, content=body)).client())
    assert told.value.code == "form"


def test_a_page_in_place_of_a_file_replaces_no_file(tmp_path):
    file = tmp_path / "gold.conll"
    file.write_text("good")
    server = Server(httpx2.Response(200, content=b"<html>Please log in</html>"))
    with pytest.raises(RefusedError, match="sent no file"):
        server.client().download("gold.conll", tmp_path)
    assert file.read_text() == "good"


def test_what_a_file_holds_is_that_of_the_try_that_succeeded(tmp_path):
    class Cut(httpx2.SyncByteStream):
        def __iter__(self):
            yield b"half of it"
            raise httpx2.ReadError("gone")

    sent = {"Content-Disposition": "attachment", "Content-Encoding": "gzip"}
    page = httpx2.Response(200, headers={"Content-Disposition": "attachment"}, stream=Cut())
    whole = httpx2.Response(200, headers=sent, stream=httpx2.ByteStream(gzip.compress(b"all")))
    assert Server(page, whole).client().download("a.csv", tmp_path).read_bytes() == b"all"


def test_whoever_answers_does_not_bring_the_token_into_a_message():
    secret = "gst_1_Abcdefghijkl"
    body = {"error": {"code": "x", "message": f"no {secret.upper()}"}}
    server = Server(httpx2.Response(403, json=body))
    with pytest.raises(RefusedError, match="quote the key") as told:
        Client("http://127.0.0.1:1", secret, transport=httpx2.MockTransport(server)).overview()
    assert secret.lower() not in str(told.value).lower()


@pytest.mark.parametrize("fault", ["status", "encoding"])
def test_a_faulty_answer_does_not_bring_the_token_into_a_message(fault):
    secret = "gst_1_Abcdefghijkl"
    packed = httpx2.Response(
        200, headers={"Content-Encoding": secret}, stream=httpx2.ByteStream(b"")
    )
    line = httpx2.RemoteProtocolError(f"illegal status line: bytearray(b'a {secret}')")
    server = Server({"status": line, "encoding": packed}[fault])
    with pytest.raises(UnreachableError) as told:
        Client(
            "http://127.0.0.1:1", secret, tries=1, transport=httpx2.MockTransport(server)
        ).links()
    assert secret not in str(told.value)


def test_an_answer_that_cannot_be_unpacked_is_told():
    broken = {"Content-Encoding": "gzip"}

    answer = httpx2.Response(200, headers=broken, stream=httpx2.ByteStream(b"no gzip"))
    with Server(answer).client() as client, pytest.raises(UnreachableError, match="cannot be read"):
        client.overview()


@pytest.mark.parametrize("span", [(0, 1), 7, (0, 1, "PER", 2)])
def test_a_span_of_another_form_is_refused(span):
    with pytest.raises(InputError, match="a span is"):
        Server().client().decide("d1", spans=[span])


def test_fields_that_are_new_are_left_out():
    link = {"id": "a", "worker": "w", "issued": 1, "expires": 2, "revoked": False, "holds": True}
    server = Server(httpx2.Response(200, json=[{**link, "new": 1}]))
    assert server.client().links()[0].worker == "w"


def test_a_redirect_does_not_take_the_token_elsewhere():
    server = Server(httpx2.Response(307, headers={"Location": "https://evil.example/"}))
    with pytest.raises(RefusedError):
        server.client().overview()
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "url",
    ["labels.example.org", "ftp://a", "https://", "https://u:p@a", "https://a?b", "https://a:x"],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="is not the address"):
        Client(url, "gst_1_a")


def test_the_token_is_neither_shown_nor_sent_in_the_clear(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="for all to read"):
        Client("http://labels.example.org", "gst_1_secret")
    Client("http://labels.example.org", "gst_1_secret", insecure=True).close()
    monkeypatch.delenv("GOLDSPAN_TOKEN", raising=False)
    with pytest.raises(InputError, match="no token"):
        Client("https://labels.example.org")
    file = tmp_path / "token"
    file.write_text("gst_1_secret\n")
    monkeypatch.setenv("GOLDSPAN_TOKEN_FILE", str(file))
    with Client("https://labels.example.org") as client:
        assert "secret" not in repr(client)
        assert client._http.headers["Authorization"] == "Bearer gst_1_secret"
    for bad in ("a b", "é", "a\nb"):
        with pytest.raises(InputError, match="one word"):
            Client("https://labels.example.org", bad)


def test_the_client_loads_nothing_heavy():
    code = (
        "import sys, goldspan.client as c; c.Client('https://a', 'b').close();"
        "print([m for m in ('numpy', 'pyarrow', 'fastapi', 'sqlalchemy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# ---- messages of the server ----


def message(secret="s" * 32, sent="1000", **changes):
    facts = {"type": "answer", "campaign": "c", "time": 7, "data": {"n": 1}, **changes}
    body = json.dumps(facts).encode()
    headers = {"webhook-id": "m1", "webhook-timestamp": sent}
    return body, {**headers, "webhook-signature": sign(secret, "m1", sent, body)}


def test_a_message_is_read_if_its_signature_holds():
    body, headers = message()
    found = read_webhook(body, headers, "s" * 32, now=lambda: 1100)
    assert (found.id, found.event, found.campaign, found.time, found.data) == (
        "m1", "answer", "c", 7, {"n": 1},
    )  # fmt: skip
    upper = {name.title(): value for name, value in headers.items()}
    upper["Webhook-Signature"] = f"v1,AAAA {upper['Webhook-Signature']}"
    assert read_webhook(body, upper, "s" * 32, now=lambda: 1100) == found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"webhook-id": "m2"}, "signature"),
        ({"webhook-timestamp": "1001"}, "signature"),
        ({"webhook-signature": "v1,AAAA"}, "signature"),
        ({"webhook-signature": ""}, "signature"),
        ({"webhook-id": ""}, "no webhook-id"),
        ({"webhook-timestamp": "soon"}, "no webhook-id"),
    ],
)
def test_a_message_that_was_changed_is_refused(changed, words):
    body, headers = message()
    with pytest.raises(InputError, match=words):
        read_webhook(body, {**headers, **changed}, "s" * 32, now=lambda: 1000)
    with pytest.raises(InputError, match="signature"):
        read_webhook(body + b" ", headers, "s" * 32, now=lambda: 1000)
    with pytest.raises(InputError, match="signature"):
        read_webhook(body, headers, "t" * 32, now=lambda: 1000)


@pytest.mark.parametrize("now", [699, 1301])
def test_a_message_that_was_replayed_is_refused(now):
    body, headers = message()
    with pytest.raises(InputError, match="300 seconds"):
        read_webhook(body, headers, "s" * 32, now=lambda: now)


def test_a_message_of_another_form_is_refused():
    body, headers = message(type=None, data=1)
    with pytest.raises(InputError, match="not one of"):
        read_webhook(body, headers, "s" * 32, now=lambda: 1000)
    with pytest.raises(InputError, match="must be the bytes"):
        read_webhook(body.decode(), headers, "s" * 32)
    with pytest.raises(InputError, match="Base64"):
        sign("whsec_é", "a", "1", b"")
