"""Compressed files, zip archives and NumPy arrays that somebody else made: bounded, nothing run.

A few kilobytes can decompress to terabytes. Whatever decompresses therefore takes what it writes
from an `Allowance`, before it keeps it, and stops where that is used up. Files of goldspan's own
(models, checkpoints) are archives of members that are not compressed, so that nothing in them can
become larger than the file; their arrays are read without NumPy's parser of headers, which
evaluates them.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError

MAX_DECOMPRESSED = 4 << 30
"""Most bytes that a compressed file may grow to by default."""
FREE = 256 << 20
"""Most bytes that it may grow to by default whatever its own size."""
RATIO = 100
"""How many times its own size it may grow to by default, beyond `FREE`."""
MAX_DEPTH = 3
"""How deep archives may be nested."""

_CHUNK = 1 << 20
_UNITS = {"": 0, "b": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}
_UNITS |= {"t": 40, "tib": 40}
_DECIMAL = {"kb": 3, "mb": 6, "gb": 9, "tb": 12}
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_size(size: int | str) -> int:
    """Return a number of bytes, given as such or as text."""
    found = _SIZE.fullmatch(str(size))
    unit = found[2].lower() if found else "?"
    if found is None or isinstance(size, bool) or unit not in _UNITS.keys() | _DECIMAL.keys():
        raise InputError(f"{size!r} is not a size: write bytes, or a size such as 500MB or 4GiB")
    number = found[1]
    one = 10 ** _DECIMAL[unit] if unit in _DECIMAL else 1 << _UNITS[unit]
    n_bytes = int(number) * one if number.isdigit() else int(float(number) * one)
    if n_bytes < 1:
        raise InputError(f"{size!r} bytes are too few: a size is above 0")
    return n_bytes


def show_size(n_bytes: int) -> str:
    """Return a size as people write it.

    >>> show_size(4 << 30), show_size(300_000), show_size((1 << 20) - 1)
    ('4 GiB', '293 KiB', '1024 KiB')
    """
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n_bytes >= 1 << shift:
            number = n_bytes / (1 << shift)
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{n_bytes} bytes"


class TooLargeError(InputError):
    """A compressed file grows beyond what is allowed."""


class Allowance:
    """How many bytes a compressed file, with all that is nested in it, may still grow by.

    >>> Allowance(1000, "2KiB").left, Allowance(1000).left == FREE
    (2048, True)
    """

    def __init__(self, packed: int, most: int | str | None = None) -> None:
        usual = min(MAX_DECOMPRESSED, max(FREE, RATIO * packed))
        self.most = usual if most is None else parse_size(most)
        self.packed, self.left = packed, self.most

    def take(self, n_bytes: int) -> None:
        """Take bytes."""
        self.left -= n_bytes
        if self.left < 0:
            raise self._rejected()

    def check(self, n_bytes: int) -> None:
        """Reject what says of itself that it is larger, and take nothing."""
        if n_bytes > self.left:
            raise self._rejected()

    def _rejected(self) -> TooLargeError:
        return TooLargeError(
            f"{show_size(self.packed)} decompress to more than {show_size(self.most)}, which is "
            "the limit, so that no small file can fill the memory: if it is right, decompress it "
            "first",
            hint="max_decompressed",
        )


def gunzip(data: bytes, allowance: Allowance) -> bytes:
    """Return the content of a gzip file.

    >>> gunzip(gzip.compress(b"Rome"), Allowance(24))
    b'Rome'
    """
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        return read_all(file, allowance)


def read_all(file: IO[bytes] | gzip.GzipFile, allowance: Allowance) -> bytes:
    """Read to the end, and take what is read from an allowance."""
    found = []
    while chunk := file.read(_CHUNK):
        allowance.take(len(chunk))
        found.append(chunk)
    return b"".join(found)


def members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of a zip archive by name, without folders."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename
        if re.match(r"[/\\]|[A-Za-z]:", name) or ".." in re.split(r"[/\\]", name):
            raise InputError(
                f"the name {name!r} in the archive leads out of it: pack the folder again"
            )
        if name in found:
            raise InputError(f"{name!r} is in the archive twice: pack the folder again")
        found[name] = info
    return {name: info for name, info in found.items() if not info.is_dir()}


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, allowance: Allowance) -> bytes:
    """Read a file of a zip archive."""
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise NotImplementedError(
            f"the compression method of {info.filename} is not the usual one, deflate"
        )
    allowance.check(info.file_size)
    with archive.open(info) as file:
        return read_all(file, allowance)


class StoredArchive:
    """An archive of arrays and JSON that goldspan wrote, whose members are not compressed.

    A context manager. All members together are not larger than the file, so that reading takes
    memory in proportion to the file's size. Members that nobody asks for are not read.
    """

    def __init__(self, file: str | Path | BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file)
        try:
            raw = self._zip.fp
            assert raw is not None
            size = raw.seek(0, io.SEEK_END)
            self._members = members(self._zip)
            self._allowance = Allowance(size, max(size, 1))
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: object) -> bool:
        """Whether there is a member of this name."""
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        """Return the names of all members."""
        return iter(self._members)

    def read(self, name: str) -> bytes:
        """Return the bytes of a member, whose checksum was compared."""
        info = self._members[name]
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"{name} is compressed, which goldspan's own files are not")
        if info.file_size > self._allowance.left:
            raise ValueError(f"{name} is larger than the file")
        with self._zip.open(info) as file:
            data = read_all(file, self._allowance)
        if len(data) != info.file_size:
            raise ValueError(f"{name} is cut off")
        return data

    def array(self, name: str) -> NDArray[np.generic]:
        """Return the array of the member `NAME.npy`; raises as `read` and `read_array`."""
        return read_array(self.read(f"{name}.npy"))


_NPY = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{'descr': '([<>|=])([biufcUS])(\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*\d{0,18})\),? ?\} *\n?"
)


def read_array(data: bytes) -> NDArray[np.generic]:
    """Return the array of a `.npy` file, of numbers, truth values or fixed-width strings.

    The header is compared with what NumPy writes and not evaluated; the array's size must be that
    of the bytes that follow, so that no header can ask for more memory than the file takes.
    """
    if data[:6] != _NPY or data[6:7] not in {b"\1", b"\2", b"\3"}:
        raise ValueError("an array is damaged: it does not begin as one")
    width, layout = (2, "<H") if data[6:7] == b"\1" else (4, "<I")
    begin = 8 + width
    if len(data) < begin:
        raise ValueError("an array is damaged: its header is cut off")
    end = begin + struct.unpack(layout, data[8:begin])[0]
    found = _HEADER.fullmatch(data[begin:end])
    if end > len(data) or found is None:
        raise ValueError("an array is damaged: its header is not as NumPy writes it")
    order, kind, size, fortran, axes = (part.decode() for part in found.groups())
    try:
        dtype = np.dtype(f"{order}{kind}{size}")
    except TypeError:
        raise ValueError(f"an array is damaged: there are no numbers {kind}{size}") from None
    shape = tuple(int(axis) for axis in axes.split(",") if axis.strip())
    if len(shape) > 32 or math.prod(shape) * dtype.itemsize != len(data) - end:
        raise ValueError("an array is damaged: its size is not that of its header")
    flat = np.frombuffer(data, dtype, math.prod(shape), end)
    return flat.reshape(shape, order="F" if fortran == "True" else "C").copy(order="K")
