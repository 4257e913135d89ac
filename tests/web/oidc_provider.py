"""A provider of identities on this machine, which answers rightly, or wrongly as a test says."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "goldspan-test", "the+client's secret/of the test".replace(" ", "_")
ALICE = {"sub": "u-1", "email": "Alice@Example.org", "email_verified": True, "groups": ["staff"]}

DEEP = b'{"keys": ' + 100_000 * b"[" + 100_000 * b"]" + b"}"
"""JSON that is nested more deeply than Python reads."""
FAULTY = {"html": b"<html>", "array": b"[]", "deep": DEEP}
"""Bodies that are no JSON objects, or none that can be read, by the fault."""


@dataclass
class Provider:
    """A provider: discovery, authorization, token and keys.

    Attributes:
        person: Claims of who is logged in there.
        claims: What is put into the next ID tokens beside or in place of the right claims.
        wrong: Faults of the provider, by name.
        codes: What was asked for, by code that was not used yet.
        seen: Parameters of all requests for authorization, and forms of those for tokens.
    """

    person: dict[str, Any] = field(default_factory=lambda: dict(ALICE))
    claims: dict[str, Any] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self):
        self.keys = [RSAKey.generate_key(2048, parameters={"kid": "k1"})]
        self.other = RSAKey.generate_key(2048, parameters={"kid": "k1"})
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.answer(self, "")

            def do_POST(self):
                provider.answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def rotate(self):
        """Sign with a new key, of another kind."""
        self.keys = [ECKey.generate_key("P-256", parameters={"kid": "k2"})]

    def answer(self, handler, form):
        url = urlsplit(handler.path)
        if url.path == "/authorize":
            handler.send_response(302)
            handler.send_header("Location", self.authorize(_fields(url.query)))
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        status, body = 200, {}
        if url.path == "/.well-known/openid-configuration":
            body = self.metadata()
        elif url.path == "/keys":
            body = KeySet(self.keys).as_dict(private=False)
        elif url.path == "/token":
            status, body = self.token(_fields(form), handler.headers.get("Authorization", ""))
        words = next((FAULTY[one] for one in self.wrong if one in FAULTY), None)
        words = words or json.dumps(body).encode()
        handler.send_response(500 if "down" in self.wrong else status)
        handler.send_header("Content-Length", str(len(words)))
        handler.end_headers()
        handler.wfile.write(words)

    def metadata(self):
        found = {
            "issuer": "https://evil.example" if "issuer" in self.wrong else self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        if "endpoint" in self.wrong:
            found["token_endpoint"] = "file:///etc/passwd"
        return found

    def authorize(self, asked):
        """Log the person in, and return where the browser is sent."""
        self.seen.append(asked)
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    def token(self, form, header):
        """Exchange a code, once, for the client that asked for it and has its verifier."""
        self.seen.append(form)
        asked = self.codes.pop(form.get("code", ""), None)
        given = base64.b64decode(header.removeprefix("Basic ")).decode().split(":")
        verifier = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        if (
            asked is None
            or [unquote_plus(one) for one in given] != [CLIENT, SECRET]
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        if "no token" in self.wrong:
            return 200, {"access_token": "a"}
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self.signed(asked)}

    def signed(self, asked):
        now = int(time.time()) if "now" not in self.claims else self.claims.pop("now")
        claims = {
            "iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.person, **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        if "deep header" in self.wrong:
            return f"{base64.urlsafe_b64encode(DEEP).decode().rstrip('=')}.{_b64(claims)}.AAAA"
        key = self.keys[0]
        algorithm = "ES256" if key.kid == "k2" else "RS256"
        if "none" in self.wrong:
            parts = [{"alg": "none"}, claims]
            return ".".join([*map(_b64, parts), ""])
        if "symmetric" in self.wrong:  # signed with what everybody knows: the public key
            from joserfc.jwk import OctKey

            public = OctKey.import_key(key.as_pem(private=False))
            return jwt.encode({"alg": "HS256", "kid": "k1"}, claims, public)
        token = jwt.encode({"alg": algorithm, "kid": key.kid}, claims,
                           self.other if "signature" in self.wrong else key)  # fmt: skip
        if "payload" in self.wrong:
            head, _, tail = token.split(".")
            return f"{head}.{_b64({**claims, 'sub': 'u-0'})}.{tail}"
        return token


def _fields(text):
    return {name: values[0] for name, values in parse_qs(text).items()}


def _b64(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
