"""Writing files so that nothing half-written is ever left behind."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from goldspan.errors import InputError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk says that has no more room, or a limit of the user's."""


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """Return a temporary path beside `path` that takes its place when the block ends well."""
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
    """Make a folder beside `path`, fill it, and move it to `path`."""
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
    except OSError as error:
        name = Path(error.filename or target).name
        raise InputError(f"cannot write {name}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class NewPlaces:
    """Folders and files that are made before it is known whether the work can begin.

    Used as a context manager: if the block fails before `keep` was called, everything that was
    made here is removed. What was there before is never touched.

    >>> with tempfile.TemporaryDirectory() as base:
    ...     with suppress(ValueError), NewPlaces() as new:
    ...         new.folder(Path(base) / "a" / "b")
    ...         raise ValueError
    ...     (Path(base) / "a").exists()
    False
    """

    def __init__(self, unless: type[BaseException] | tuple[type[BaseException], ...] = ()) -> None:
        self._unless, self._is_kept = unless, False
        self._folders: list[Path] = []
        self._files: list[Path] = []

    def folder(self, path: str | Path, mode: int = 0o777) -> None:
        """Make a folder and those above it, where they are not there."""
        target = Path(path)
        missing = [one for one in (target, *target.parents) if not one.exists()]
        try:
            for one in reversed(missing):
                with suppress(FileExistsError):  # another process was quicker
                    one.mkdir(mode)
                    self._folders.append(one)
            if not target.is_dir():
                raise InputError(f"cannot make {target}: it is a file")
        except OSError as error:
            raise InputError(f"cannot make {target}: {error.strerror}") from None

    def file(self, path: str | Path, mode: int = 0o666) -> bool:
        """Make an empty file where there is none; return whether it was made."""
        target = Path(path)
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        except FileExistsError:
            return False
        except OSError as error:
            raise InputError(f"cannot make {target}: {error.strerror}") from None
        self._files.append(target)
        return True

    def expect(self, *paths: str | Path) -> None:
        """Remember files that others are about to make; those that are there already stay."""
        self._files += [Path(path) for path in paths if not Path(path).exists()]

    def keep(self) -> None:
        """Let everything stay, whatever happens from now on."""
        self._is_kept = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove what was made, if the block failed."""
        if kind is None or self._is_kept or issubclass(kind, self._unless):
            return
        for file in self._files:
            with suppress(OSError):
                file.unlink()
        for folder in reversed(self._folders):
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
