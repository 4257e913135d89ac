"""A stand-in for an endpoint of the OpenAI protocol, to try language models without one.

It listens on this machine, marks words that begin with a capital letter as the first label (or does
what it is given), and bills what it answers. It can misbehave as real endpoints do::

    python examples/model_server.py --port 8008
    goldspan label examples/newsroom.txt --labels PER,LOC --worker llm --send-text \
        --set base_url=http://127.0.0.1:8008/v1 --set model=stand-in -o answers.jsonl
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from threading import Event, Lock, Thread
from typing import Any

Answer = Callable[[dict[str, Any], list[str]], Any]
"""Gives the reply to a question (what the last message holds) with the labels that there are."""


def capitals(question: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Mark runs of words that begin with a capital; of single labels choose by the length."""
    code, text = question["item"], str(question.get("text") or "")
    if question["form"] == "label":
        return {"item": code, "label": labels[len(text) % len(labels)]}
    if "tokens" not in question:
        words = [word.strip(".,;:!?") for word in text.split()]
        found = [word for word in words if word[:1].isupper()]
        return {"item": code, "spans": [{"text": word, "label": labels[0]} for word in found]}
    words = [token.partition(":")[2] for token in question["tokens"]]
    spans = []
    for is_name, run in groupby(range(len(words)), lambda n: words[n][:1].isupper()):
        places = list(run)
        if is_name:
            first, last = places[0], places[-1]
            quote = " ".join(words[first : last + 1])
            spans.append({"first": first, "last": last, "text": quote, "label": labels[0]})
    return {"item": code, "spans": spans}


class ModelServer:
    """The endpoint.

    Args:
        answer: What it replies.
        faults: What goes wrong with the next calls, one after the other, "" for nothing; see
            `Handler.do_POST`.
        model: What it says that it is.
        key: The key that it wants, None for none.
        remembers: Whether a call with an `Idempotency-Key` that it has answered is not billed
            again.
        port: Where it listens; by default where there is room.

    Attributes:
        calls: Every call that came, as JSON.
        headers: Their headers.
        bills: The input and output tokens of every call that was billed.
        gate: Calls are answered while it is set.
    """

    def __init__(
        self,
        answer: Answer = capitals,
        faults: Iterable[str] = (),
        *,
        model: str = "stand-in-1",
        key: str | None = None,
        remembers: bool = True,
        port: int = 0,
    ) -> None:
        self.answer, self.faults, self.model, self.key = answer, list(faults), model, key
        self.remembers, self.gate, self.lock = remembers, Event(), Lock()
        self.ended = Event()
        self.gate.set()
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.bills: list[tuple[str, int, int]] = []
        self.known: dict[str, dict[str, Any]] = {}
        self.most_at_once = self.at_once = 0
        own = type("Own", (Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), own)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        """Serve while the block runs."""
        thread = Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.gate.set()
            self.ended.set()
            self._http.shutdown()
            self._http.server_close()

    def serve(self) -> None:
        """Serve until Ctrl-C."""
        self._http.serve_forever()

    def reply(self, call: dict[str, Any], name: str, fault: str) -> dict[str, Any]:
        """Reply to a call, and bill it."""
        with self.lock:
            if self.remembers and name in self.known:
                return self.known[name]
        question = json.loads(call["messages"][-1]["content"])
        labels, is_single = _labels_of(call)
        asked = question | {"form": "label" if is_single else "spans"}
        said = self.answer(asked, labels)
        content = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        found = _body(self.model, call, _spoilt(content, fault), fault)
        with self.lock:
            used = found.get("usage") or {"prompt_tokens": 0, "completion_tokens": 0}
            self.bills.append((name, used["prompt_tokens"], used["completion_tokens"]))
            self.known[name] = found
        return found


def _labels_of(call: dict[str, Any]) -> tuple[list[str], bool]:
    """Return the labels that a call names, and whether an item gets one of them."""
    system = call["messages"][0]["content"]
    lines = (line for line in system.splitlines() if line.startswith("Labels: "))
    line = next(lines, "Labels: ")  # of a task of several layers there are none
    labels = json.loads(f"[{line.removeprefix('Labels: ')}]")
    return labels, "exactly one of the labels" in system


def _spoilt(content: str, fault: str) -> str:
    """Return the text of a reply with what is wrong with it."""
    found = json.loads(content) if content.startswith("{") else {}
    if fault == "truncated":
        return content[: len(content) // 2]
    if fault == "schema":
        return json.dumps({"item": found.get("item"), "entities": ["Ann"]})
    if fault == "other item":
        return json.dumps(found | {"item": "0f0f0f"})
    if fault == "hallucinated":
        ghost = {"first": 900, "last": 901, "text": "Zaphod Beeblebrox", "label": "PER"}
        return json.dumps(found | {"spans": [*found.get("spans", ()), ghost]})
    if fault == "reordered":
        return json.dumps(found | {"spans": found.get("spans", [])[::-1]})
    if fault == "fence":
        return f"```json\n{content}\n```"
    if fault == "thoughts":
        return f"<think>Is {{this}} a name?</think>\n\n{content}"
    return {"prose": "Sure! Here are the labels.", "empty": ""}.get(fault, content)


def _body(model: str, call: dict[str, Any], content: str, fault: str) -> dict[str, Any]:
    """Return what comes back over HTTP."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    ended = {"length": "length", "filter": "content_filter"}.get(fault, "stop")
    if fault == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    if fault == "tool":
        function = {"name": "delete", "arguments": "{}"}
        message |= {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": ended}
    if call.get("logprobs"):
        choice["logprobs"] = {"content": _tokens(content)}
    n_in = sum(len(one["content"]) for one in call["messages"]) // 4
    usage = {"prompt_tokens": n_in, "completion_tokens": len(content) // 4 + 1}
    found = {
        "id": "1", "object": "chat.completion", "system_fingerprint": "fp1", "usage": usage,
        "model": "stand-in-2" if fault == "model" else model, "choices": [choice],
    }  # fmt: skip
    if fault == "no usage":
        del found["usage"]
    return found


def _tokens(content: str) -> list[dict[str, Any]]:
    """Cut a reply into tokens of four characters, each with a probability of 0.9."""
    parts = [content[n : n + 4] for n in range(0, len(content), 4)]
    log = -0.1053605
    return [{"token": part, "logprob": log, "top_logprobs": []} for part in parts]


class Handler(BaseHTTPRequestHandler):
    """A connection."""

    owner: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Reply, or misbehave.

        Faults: a status ("429", "429 after 0.05", "429 date", "quota", "500", "503", "400",
        "401", "404", "307"); "drop" (billed, and the connection breaks), "hang" (billed, and no
        reply comes), "slow" (billed, byte by byte), "half" (billed, half of the JSON);
        "truncated", "schema", "other item", "hallucinated", "reordered", "fence", "thoughts",
        "prose", "empty", "length", "filter", "refusal", "tool", "model", "no usage".
        """
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.headers.get("Idempotency-Key", "")
        with self.owner.lock:
            self.owner.calls.append(call)
            self.owner.headers.append(dict(self.headers))
            fault = self.owner.faults.pop(0) if self.owner.faults else ""
            self.owner.at_once += 1
            self.owner.most_at_once = max(self.owner.most_at_once, self.owner.at_once)
        try:
            self._act(call, name, fault)
        except (BrokenPipeError, ConnectionResetError):
            pass  # whoever asked has gone
        finally:
            with self.owner.lock:
                self.owner.at_once -= 1

    def _act(self, call: dict[str, Any], name: str, fault: str) -> None:
        if self.owner.key is not None and self.headers.get("Authorization") != (
            f"Bearer {self.owner.key}"
        ):
            given = self.headers.get("Authorization", "").removeprefix("Bearer ")
            self._error(401, f"Incorrect API key provided: {given}")
            return
        if fault == "quota":
            self._error(429, "You exceeded your quota", code="insufficient_quota")
            return
        if fault[:3].isdigit():
            self._status(int(fault[:3]), fault[3:].strip())
            return
        found = self.owner.reply(call, name, fault)
        self.owner.gate.wait()
        self._send(json.dumps(found).encode(), fault)

    def _status(self, status: int, more: str) -> None:
        headers = {}
        if more.startswith("after"):
            headers["Retry-After"] = more.removeprefix("after").strip()
        elif more == "date":
            headers["Retry-After"] = formatdate(time.time(), usegmt=True)
        if status == 307:
            headers["Location"] = self.owner.url.replace("127.0.0.1", "localhost")
        self._error(status, "not now", headers)

    def _error(
        self, status: int, message: str, headers: dict[str, str] | None = None, code: str = ""
    ) -> None:
        data = json.dumps({"error": {"message": message, "code": code}}).encode()
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send(self, data: bytes, fault: str) -> None:
        if fault == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault == "half":
            data = data[: len(data) // 2]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault == "hang":
            self.owner.ended.wait()
            return
        if fault == "slow":
            for n in range(len(data)):
                self.wfile.write(data[n : n + 1])
                self.wfile.flush()
                time.sleep(0.02)
            return
        self.wfile.write(data)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--port", type=int, default=8008)
    server = ModelServer(port=parser.parse_args().port)
    print(f"listening on {server.url}; Ctrl-C ends it")
    server.serve()


if __name__ == "__main__":
    main()
