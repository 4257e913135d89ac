"""Writing files so that nothing half-written is ever left behind."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from goldspan.errors import InputError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk says that has no more room, or a limit of the user's."""


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place when the block ends well.

    Raises:
        InputError: The folder does not exist, it cannot be written to, or the disk is full.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"cannot write {target}: {why} (does the folder exist?)") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        if target.is_dir():
            raise InputError(f"cannot write {target}: it is a folder")
        temporary.replace(target)
    except OSError as error:
        if error.errno not in FULL:
            raise
        why = f"{error.strerror}: make room on the disk; nothing was changed"
        raise InputError(f"cannot write {target}: {why}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, chunks: Iterator[str] | list[str]) -> None:
    """Write text in UTF-8, compressed if the name ends in `.gz` (always with the same bytes)."""
    with new_file(path) as temporary, temporary.open("wb") as raw:
        if str(path).endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                packed.writelines(chunk.encode("utf-8", "surrogatepass") for chunk in chunks)
        else:
            raw.writelines(chunk.encode("utf-8", "surrogatepass") for chunk in chunks)


def write_folder(path: str | Path, fill: Callable[[Path], None]) -> None:
    """Make a folder beside `path`, fill it, and move it to `path`.

    Raises:
        InputError: `path` exists already, or cannot be made.
    """
    target = Path(path)
    if target.exists():
        raise InputError(f"{target} exists already: remove it or choose another name")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    try:
        fill(temporary)
        temporary.chmod(0o777 & ~_umask())
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
