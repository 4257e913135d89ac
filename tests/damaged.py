"""Files that were damaged at random: bytes changed, cut or put in; also behind a right checksum."""

from __future__ import annotations

import io
import os
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

N_DAMAGED = 2000 if os.environ.get("GOLDSPAN_TORTURE") else 60
ODD = (
    *(
        b"{",
        b"(",
        b"[" * 3000,
        b"'''",
        b"\\",
        b"\n",
        b"\0",
        b"\xff",
        b"lambda:0",
        b"__import__('os')",
    ),
    *(b"9" * 18, b"99999999999", b"-1", b"|O", b"<f8", b"<U9", b"<m8", b"1e999", b"NaN", b"True"),
)


def damaged(data: bytes, seed: int) -> bytes:
    """Return a file with up to three places damaged."""
    rng = random.Random(seed)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.choice([rng.randrange(len(data) + 1), rng.randrange(min(len(data), 200) + 1)])
        what = rng.randrange(5)
        if what == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif what == 1:
            data = data[: max(at, 1)]
        elif what == 2:
            data = data[:at] + rng.choice(ODD) + data[at:]
        elif what == 3:
            odd = rng.choice(ODD)
            data = data[:at] + odd + data[at + len(odd) :]
        else:
            data = data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + rng.randrange(9) :]
    return data


def damaged_archives(data: bytes) -> Iterator[bytes]:
    """Return `N_DAMAGED` archives: damaged as files, or one member under a right checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    rng = random.Random(len(data))
    for seed in range(N_DAMAGED):
        if seed % 3 == 0:
            yield damaged(data, seed)
            continue
        name = rng.choice(list(members))
        stream = io.BytesIO()
        packing = zipfile.ZIP_STORED if seed % 9 else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(stream, "w", packing) as made:
            for one, content in members.items():
                made.writestr(one, damaged(content, seed) if one == name else content)
        yield stream.getvalue()


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """Fail where more memory was in use at one time than this."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= n_bytes, f"{peak} bytes"
