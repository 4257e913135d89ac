"""A stand-in for the Hugging Face Hub, to publish a data set without an account and a network.

It listens on this machine and keeps files in a folder, `FOLDER/you/NAME/…`: every token is that of
the owner `you`::

    python -m examples.hub_server --port 8009 hub
    HF_ENDPOINT=http://127.0.0.1:8009 HF_TOKEN=any goldspan convert examples/crowd.tsv \
        hf://datasets/you/names --send
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

OWNER = "you"
COMMIT = ".commit.json"
"""What a data set's folder has beside its files: whether it is private, and how many commits."""


class HubServer:
    """The endpoint.

    Args:
        folder: Where data sets are kept.
        port: Where it listens; by default where there is room.

    Attributes:
        calls: Method, path and token of every call that came.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.calls = folder, list[tuple[str, str, str]]()
        handler = type("Bound", (Handler,), {"owner": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @contextmanager
    def running(self) -> Iterator[HubServer]:
        """Serve in a thread while the block runs."""
        thread = Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers what `huggingface_hub` asks for a data set of small files."""

    owner: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        """Answer a reading call."""
        self._answer(b"")

    def do_HEAD(self) -> None:
        """Answer a reading call without its body."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Answer a writing call; it may come in chunks."""
        data = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(data)

    def _answer(self, data: bytes) -> None:
        path = unquote(urlsplit(self.path).path)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.owner.calls.append((self.command, path, token))
        match path.strip("/").split("/"):
            case ["api", "validate-yaml"]:
                self._json({"errors": [], "warnings": []})
            case ["api", "repos", "create"]:
                self._create(json.loads(data), token)
            case ["api", "datasets", owner, name, *rest]:
                repo = self._repo(owner, name, token)
                if repo is not None:
                    self._of(repo, f"{owner}/{name}", rest, data, token)
            case ["datasets", owner, name, "resolve", _, *rest]:
                repo = self._repo(owner, name, token)
                if repo is not None:
                    self._file(repo, "/".join(rest))
            case _:
                self._error(404, "EntryNotFound")

    def _create(self, asked: dict[str, Any], token: str) -> None:
        owner = asked.get("organization") or OWNER
        if not token:
            self._error(401, "")
        elif owner != OWNER:
            self._error(403, "")
        else:
            repo = self.owner.folder / owner / asked["name"]
            is_there = repo.exists()
            if not is_there:
                repo.mkdir(parents=True)
                private = asked.get("private") or asked.get("visibility") == "private"
                (repo / COMMIT).write_text(json.dumps({"private": bool(private), "n": 0}))
            page = f"{self.owner.url}/datasets/{owner}/{asked['name']}"
            self._json({"url": page}, 409 if is_there else 200)

    def _repo(self, owner: str, name: str, token: str) -> Path | None:
        """Return the folder of a data set, None (and an error) if there is none to be seen."""
        repo = self.owner.folder / owner / name
        there = ".." not in {owner, name} and (repo / COMMIT).exists()
        if not there or (self._about(repo)["private"] and not token):
            self._error(404 if token else 401, "RepoNotFound")
            return None
        return repo

    def _of(self, repo: Path, name: str, rest: list[str], data: bytes, token: str) -> None:
        about = self._about(repo)
        files = {p.relative_to(repo).as_posix(): p for p in sorted(repo.rglob("*")) if p.is_file()}
        del files[COMMIT]
        if rest[:1] in [[], ["revision"]]:
            siblings = [{"rfilename": file} for file in files]
            self._json({"id": name, "sha": about["sha"], "private": about["private"],
                        "siblings": siblings})  # fmt: skip
        elif rest[0] == "tree":
            self._json([{"type": "file", "path": file, "size": path.stat().st_size,
                         "oid": sha256(path.read_bytes()).hexdigest()}
                        for file, path in files.items()])  # fmt: skip
        elif not token:
            self._error(403, "")
        elif rest[0] == "preupload":
            self._json({"files": [{"path": one["path"], "uploadMode": "regular",
                                   "shouldIgnore": False, "oid": None}
                                  for one in json.loads(data)["files"]]})  # fmt: skip
        elif rest[0] == "commit":
            self._commit(repo, name, [json.loads(line) for line in data.splitlines()])
        else:
            self._error(404, "EntryNotFound")

    def _commit(self, repo: Path, name: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            target = (repo / value.get("path", "")).resolve()
            if not target.is_relative_to(repo.resolve()):
                self._error(400, "")
                return
            if line["key"] == "deletedFile":
                target.unlink()
            elif line["key"] == "file":
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(base64.b64decode(value["content"]))
        about = self._about(repo)
        (repo / COMMIT).write_text(json.dumps({"private": about["private"], "n": about["n"] + 1}))
        sha = self._about(repo)["sha"]
        page = f"{self.owner.url}/datasets/{name}/commit/{sha}"
        self._json({"commitUrl": page, "commitOid": sha})

    def _file(self, repo: Path, name: str) -> None:
        path = (repo / name).resolve()
        if not path.is_relative_to(repo.resolve()) or not path.is_file() or name == COMMIT:
            self._error(404, "EntryNotFound")
            return
        data = path.read_bytes()
        about = {"ETag": f'"{sha256(data).hexdigest()}"', "X-Repo-Commit": self._about(repo)["sha"]}
        self._send(200, data, about)

    def _about(self, repo: Path) -> dict[str, Any]:
        about = json.loads((repo / COMMIT).read_text())
        return {**about, "sha": sha256(f"{repo.name}{about['n']}".encode()).hexdigest()[:40]}

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str) -> None:
        self._send(status, b'{"error": "refused"}', {"X-Error-Code": code} if code else {})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="where data sets are kept")
    parser.add_argument("--port", type=int, default=8009)
    given = parser.parse_args()
    server = HubServer(given.folder, given.port)
    print(f"listening on {server.url}, owner {OWNER!r}; Ctrl-C ends it", flush=True)
    server.server.serve_forever()


if __name__ == "__main__":
    main()
