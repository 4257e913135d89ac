"""How a server is run: its secret, its address, its clock and its limits."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from itsdangerous import BadData, URLSafeSerializer

from goldspan.campaign.clock import wall_clock
from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# The server's secret: created at the first start and kept beside the store


FILE = "server.key"
VARIABLE = "GOLDSPAN_SECRET_FILE"
LEAST_BYTES = 32
LEAST_KINDS = 8
"""Of different bytes: a file of zeros is no secret."""


@dataclass(frozen=True)
class Keys:
    """The keys that are derived from a secret.

    Attributes:
        root: The key of keys, 32 bytes; never shown.
    """

    root: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Keys:
        """Return keys that nobody has, for tests and for a server that forgets."""
        return cls(secrets.token_bytes(32))

    def of(self, purpose: str) -> bytes:
        """Return the key of one purpose, 32 bytes.

        >>> keys = Keys(bytes(range(32)))
        >>> keys.of("links") == keys.of("links"), keys.of("links") == keys.of("csrf")
        (True, False)
        """
        return blake2b(purpose.encode(), key=self.root, digest_size=32).digest()


def load_keys(folder: str | Path) -> Keys:
    """Read the secret, and make it at the first start.

    It lies in `server.key`; the file that the variable GOLDSPAN_SECRET_FILE names goes before it,
    and is never made. One that others may read, or that is no secret, is an InputError.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else Path(folder) / FILE
    try:
        if not named:
            _make(path)
            _check_owner(path)
        words = path.read_bytes().strip()
    except OSError as error:
        raise InputError(f"the server's secret {path}: {error.strerror}") from None
    if len(words) < LEAST_BYTES or len(set(words)) < LEAST_KINDS:
        raise InputError(
            f"the server's secret {path} must hold {LEAST_BYTES} random bytes or more, for example "
            "what `openssl rand -hex 32` writes"
        )
    # Part of the scheme, seen by nobody: another value would end all links and sessions, and give
    # all workers other pseudonyms.
    return Keys(blake2b(words, digest_size=32, person=b"goldspan root").digest())


def _make(path: Path) -> None:
    """Write a new secret where there is none; of two servers that do so, one wins."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        made.unlink()


def _check_owner(path: Path) -> None:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(
            f"others may read the server's secret {path}: run `chmod 600 {path}`; if somebody may "
            "have read it, delete it instead, and all links and sessions end"
        )


# --------------------------------------------------------------------------------------------------
# Signed values: what the server hands out and takes back, unchanged or not at all.


LONGEST = 4_000
"""Characters of a token; longer ones are not looked at."""


class Signer:
    """Signs facts for one purpose (HMAC-SHA-256), and reads what it has signed.

    The facts can be read by whoever has the token: they are signed and not hidden.
    """

    def __init__(self, key: bytes) -> None:
        how = {"key_derivation": "hmac", "digest_method": sha256}
        # Part of the scheme, seen by nobody: another salt would end all links and sessions.
        self._serializer = URLSafeSerializer(key, salt=b"goldspan", signer_kwargs=how)

    def sign(self, facts: Mapping[str, Any]) -> str:
        """Return the token of facts that JSON can hold."""
        made = self._serializer.dumps(dict(facts))
        return made if isinstance(made, str) else made.decode("ascii")

    def read(self, token: str) -> dict[str, Any] | None:
        """Return the facts of a token; None if this seal has not made it.

        >>> seal = Signer(bytes(32))
        >>> token = seal.sign({"worker": "ann"})
        >>> seal.read(token), seal.read(token[:-1]), Signer(bytes([1])).read(token)
        ({'worker': 'ann'}, None, None)
        """
        if not token.isascii() or len(token) > LONGEST:
            return None
        try:
            facts = self._serializer.loads(token)
        except BadData:
            return None
        return facts if isinstance(facts, dict) else None


def new_id() -> str:
    """Return an id that nobody can guess: 128 random bits."""
    return secrets.token_hex(16)


# --------------------------------------------------------------------------------------------------
# Address, clock and limits


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
CAMPAIGNS = "/c/"
"""Where the campaigns of a server of several are."""
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Rate:
    """How often something may be done: a bucket of `burst`, refilled by `per_second`."""

    per_second: float
    burst: int

    def shared(self, n: int) -> Rate:
        """Return the share of each of n processes."""
        return Rate(self.per_second / n, max(1, self.burst // n))


@dataclass(frozen=True)
class Rates:
    """Limits of what one address or one session does."""

    address: Rate = Rate(300, 600)  # All requests of an address; many workers may share one
    worker: Rate = Rate(20, 40)  # Requests of a worker's session
    desk: Rate = Rate(20, 60)  # Requests of a requester's session
    login: Rate = Rate(5 / 60, 5)  # Passwords that an address tries
    join: Rate = Rate(20 / 60, 20)  # Invalid links that an address tries
    # Sessions that begin with one link, each of which may leave a record when it ends
    link: Rate = Rate(6 / 3600, 20)
    token: Rate = Rate(20 / 60, 20)  # Invalid tokens of programs that an address tries
    program: Rate = Rate(20, 60)  # Requests with one token
    reviewer: Rate = Rate(20, 60)  # Requests of a reviewer's session


STORED = ("login", "join", "link")
"""Rates that several web processes keep in the store. The others keep a flood away from a process,
which each does for itself with its share of them."""


@dataclass(frozen=True)
class ServerSettings:
    """How a server is run.

    Attributes:
        keys: Its secret.
        public_url: The address that people type: scheme, host and port.
        processes: How many web processes serve it together.
        prefix: Where the campaign is at that address: "" alone, "/c/NAME" among several.
        clock: The campaign's clock; by default that of the service.
        rates: How often things may be done.
        body: Most bytes of a request's body.
        desk_body: The same of a requester's.
        held: Most bytes of all bodies at once; half of it, for people without a session.
        body_seconds: How long a body may take to come.
        worker_days: How long a worker's session lasts, if the link does.
        desk_hours: How long a requester's session lasts.
        desk_idle_minutes: When it ends if nothing is done in it.
        setup_minutes: How long the link to choose a password is valid.
    """

    keys: Keys = field(repr=False)
    public_url: str = "http://127.0.0.1:8080"
    prefix: str = ""
    processes: int = 1
    clock: Callable[[], int] = wall_clock
    rates: Rates = Rates()
    body: int = 256 * 1024
    desk_body: int = 1024 * 1024
    held: int = 64 * 1024 * 1024
    body_seconds: float = 20.0
    worker_days: float = 30
    desk_hours: float = 12
    desk_idle_minutes: float = 60
    setup_minutes: float = 60

    def __post_init__(self) -> None:
        _check(self.public_url)

    @cached_property
    def url(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.public_url)

    @property
    def is_secure(self) -> bool:
        """Whether people come by HTTPS: cookies are then sent on nothing else."""
        return self.url.scheme == "https"

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Allowed values of the header Host; the names of this machine count as one."""
        host, port = str(self.url.hostname), self.url.port or PORTS[self.url.scheme]
        names = LOOPBACK if host in LOOPBACK else {host}
        written = {f"[{name}]" if ":" in name else name for name in names}
        bare = written if port == PORTS[self.url.scheme] else set()
        return frozenset({f"{name}:{port}" for name in written} | bare)

    @cached_property
    def origins(self) -> frozenset[str]:
        """Allowed values of the header Origin."""
        return frozenset(f"{self.url.scheme}://{host}" for host in self.hosts)

    def address(self, path: str = "") -> str:
        """Return the whole address of a path of the campaign's."""
        return self.public_url.rstrip("/") + self.prefix + path

    def timed(self, clock: Callable[[], int]) -> ServerSettings:
        """Return the same by a campaign's clock, unless they have one of their own."""
        return replace(self, clock=clock) if self.clock is wall_clock else self

    def at(self, address: str) -> ServerSettings:
        """Return the same at what `address` gave: the address of one of several campaigns too."""
        where, found, name = address.partition(CAMPAIGNS)
        return replace(self, public_url=where, prefix=found + name)


def _check(public_url: str) -> None:
    try:
        url = urlsplit(public_url)
        good = url.scheme in PORTS and url.hostname and url.port != 0
    except ValueError:
        good = False
    if not good or url.path not in {"", "/"} or url.query or url.fragment or "@" in url.netloc:
        raise InputError(
            f"{public_url!r} is not the address of a server: give scheme, host and port only, "
            "https://labels.example.org"
        )
