"""Labels that took long are kept in files beside the store: nobody waits for the same ones twice.

A file is named by the answers and by what decides the method, and holds all but the crowd, which
is in the store. One that is broken, of something else, or written by another user or on another
machine is as if it were not there: its checksum takes a secret of the user's cache folder. It is
read by a pickle reader that makes arrays and objects of the methods, and calls nothing else.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from secrets import token_bytes
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan._kernel import user_folder
from goldspan.aggregation import Consensus
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import new_file
from goldspan.errors import InputError
from goldspan.protocols import Runner, Serial

LEAST = 1.0
"""Seconds of computing from which labels are kept."""
FIRST = 20
"""Least certain items whose alternatives are kept with the labels."""
MOST = 4
"""Files that are kept: labels with and without known answers, and those of a moment ago."""
SIZE, SECRET = 16, 32
"""Bytes of the checksum before the content, and of the secret that it takes."""
MODULES = ("goldspan.aggregation.", "goldspan.spans.", "goldspan.protocols")
TABLES = {"agreement_table", "workers_of", "_workers"}
"""Functions that make a result's table of workers."""
ARRAYS = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}
"""What NumPy makes its own values with."""


def digest(*values: Any) -> str:
    """Return a name for values, the same in every process.

    >>> digest({"a": 1, "b": {2}}) == digest({"b": {2}, "a": 1}), digest([1]) == digest(["1"])
    (True, False)
    """
    return _sum(json.dumps(values, default=_plain, sort_keys=True).encode()).hex()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, _sum(value.tobytes()).hex()]
    if isinstance(value, pa.Array | pa.Table):
        return value.to_pylist()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else repr(value)


def files_of(values: Iterable[Any]) -> list[tuple[str, str]]:
    """Return what the files hold that values name, and those in folders that values name."""
    paths = [Path(one) for one in values if isinstance(one, str | Path) and one]
    there = (one for path in paths for one in (path, *path.glob("*")) if one.is_file())
    return [(one.name, _sum(one.read_bytes()).hex()) for one in sorted(there)]


def _sum(content: bytes, key: bytes = b"") -> bytes:
    return blake2b(content, digest_size=SIZE, key=key).digest()


@cache
def _secret() -> bytes:
    """Return what this user's processes know; where nothing can be kept, this process alone."""
    path, found = user_folder() / "labels.key", b""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        private = partial(os.open, mode=0o600)
        with suppress(FileExistsError), open(path, "xb", opener=private) as file:
            file.write(token_bytes(SECRET))
        found = path.read_bytes()
        if len(found) != SECRET:  # it was cut short: the next process makes another
            path.unlink()
    return found if len(found) == SECRET else token_bytes(SECRET)


@dataclass(frozen=True)
class KeptLabels:
    """The labels of a crowd that were computed before, here or in another process."""

    folder: Path | None  # Where they are; None: nowhere
    crowd: Crowd
    runner: Runner = field(default_factory=Serial)

    def get(self, key: str) -> Consensus | None:
        """Return labels, None if there are none."""
        with suppress(Exception):  # whatever is wrong with it, they are computed
            data = b"" if self.folder is None else (self.folder / key).read_bytes()
            if compare_digest(data[:SIZE], _sum(key.encode() + data[SIZE:], _secret())):
                found = _Reader(io.BytesIO(data[SIZE:]), self.crowd, self.runner).load()
                return found if isinstance(found, Consensus) else None
        return None

    def put(self, key: str, result: Consensus) -> None:
        """Keep labels that took long, where that is possible."""
        if self.folder is None or result.seconds < LEAST:
            return
        file = io.BytesIO()
        with suppress(OSError, InputError, pickle.PicklingError, TypeError, AttributeError):
            if isinstance(result.posterior, Mixture):
                for n in np.argsort(result.confidence, kind="stable")[:FIRST].tolist():
                    result.alternatives(n)  # which Review shows first
            _Writer(file, self.crowd, self.runner).dump(replace(result, tagger=None))
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with new_file(self.folder / key) as new:
                content = file.getvalue()
                new.write_bytes(_sum(key.encode() + content, _secret()) + content)
            for old in self._files()[:-MOST]:
                old.unlink()

    def seconds(self) -> float:
        """Return how long the labels took that were kept last; 0 if none are."""
        last = self.get(self._files()[-1].name) if self._files() else None
        return last.seconds if last else 0.0

    def _files(self) -> list[Path]:
        with suppress(OSError):  # another process may remove one
            there = self.folder.iterdir() if self.folder and self.folder.is_dir() else ()
            return sorted(there, key=lambda one: one.lstat().st_mtime_ns)
        return []


class _Writer(pickle.Pickler):
    """Writes all but the crowd, which the store has, and the runner."""

    def __init__(self, file: io.BytesIO, crowd: Crowd, runner: Runner) -> None:
        super().__init__(file, protocol=5)
        self._crowd, self._runner = crowd, runner

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, pa.Array):
            return tuple(obj.to_pylist())
        if isinstance(obj, Crowd):
            if obj.tagset != self._crowd.tagset:  # known labels have brought tags of their own
                raise pickle.PicklingError
            return "crowd"
        return "runner" if obj is self._runner else None


class _Reader(pickle.Unpickler):
    """Reads what `_Writer` wrote."""

    def __init__(self, file: io.BytesIO, crowd: Crowd, runner: Runner) -> None:
        super().__init__(file)
        self._there = {"crowd": crowd, "runner": runner}

    def persistent_load(self, pid: Any) -> Any:
        return pa.array(pid, pa.string()) if isinstance(pid, tuple) else self._there[pid]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("functools", "partial"):
            return partial
        is_array = module.startswith("numpy") and name in ARRAYS
        if is_array or module.startswith(MODULES):
            found = super().find_class(module, name)
            is_own = getattr(found, "__module__", "") == module
            if is_array or (is_own and (isinstance(found, type) or name in TABLES)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of labels")
