"""State of iterative work in a file: replaced as a whole, so that a kill leaves the last one."""

from __future__ import annotations

import os
import signal
import struct
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from goldspan.archives import StoredArchive
from goldspan.errors import InputError

VERSION = 1
MEMBERS = "members of the state"
"""The member that lists the others: a file that lacks one of them is damaged."""
DAMAGED = (
    OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, MemoryError, OverflowError,
    NotImplementedError, zipfile.BadZipFile, struct.error,
)  # fmt: skip
"""What zipfile and `goldspan.archives` raise when they read something else, or a damaged file."""


class FileCheckpoint:
    """A `Checkpoint` in a file (NumPy's .npz, without pickle).

    Args:
        path: The file; its folder must exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise InputError(f"cannot keep a checkpoint in {self.path}: there is no such folder")

    def load(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Return the last state, None if there is no file.

        Raises:
            InputError: The file belongs to another run, or is no checkpoint.
        """
        if not self.path.exists():
            return None
        try:
            with StoredArchive(self.path) as file:
                state: dict[str, Any] = {
                    name.removesuffix(".npy"): file.array(name.removesuffix(".npy"))
                    for name in file
                }
            version, name = int(state.pop("version")), str(state.pop("fingerprint"))
            if state.keys() - {MEMBERS} != set(state.pop(MEMBERS).tolist()):
                raise ValueError("a member is missing, or one is too much")
        except DAMAGED:
            raise InputError(
                f"{self.path} is not a checkpoint of goldspan, or it is damaged: choose another "
                "name, or remove it to start again"
            ) from None
        if version != VERSION:
            raise InputError(f"{self.path} is a checkpoint of version {version}, not {VERSION}")
        if name != fingerprint:
            raise InputError(
                f"{self.path} is the checkpoint of another run (other answers, method or "
                "parameters): remove it or choose another name"
            )
        return state

    def save(self, fingerprint: str, state: Mapping[str, Any]) -> None:
        """Write a state beside the file and put it in its place.

        Raises:
            KeyboardInterrupt: Ctrl-C; the state is kept all the same.
        """
        with _interrupts_wait():
            self._write(fingerprint, state)

    def _write(self, fingerprint: str, state: Mapping[str, Any]) -> None:
        """Write a state; a failure leaves the last one and no rest."""
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                members: dict[str, Any] = {MEMBERS: np.array(list(state), np.str_)}
                np.savez(file, version=VERSION, fingerprint=fingerprint, **members, **state)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        finally:
            Path(name).unlink(missing_ok=True)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done: `zipfile` cannot close a half-written archive."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *given: held.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])
