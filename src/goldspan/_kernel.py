"""How kernels are compiled: by Numba, without the GIL, and cached on disk where that is possible.

`nogil` lets the threads of `goldspan.runners` run them side by side; `parallel=True` is never used,
because two Python threads inside it abort the process under one of Numba's threading layers.

The machine code is kept in the user's cache folder, under a name made of what it was compiled from:
all environments of a user with the same kernels share it, and no edit, of a callee in another file
either, leaves old code in force. `NUMBA_CACHE_DIR` names another folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core import caching, event
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.misc.appdirs import AppDirs

from goldspan.protocols import tell

DAY = 24 * 3600.0
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
PLAIN = frozenset(
    {"abs", "bool", "bool_", "exp", "inf", "int16", "int32", "int64", "isfinite", "log", "log2"}
    | {"max", "min", "nan", "shape", "size", "sqrt", "uint64"}
)
"""What kernels use of NumPy that makes no array."""
UNUSED = 90 * DAY
"""Seconds after which machine code that no process asked for is removed."""


class _Compiled(event.Listener):
    """Passes on what Numba says of its compiler, which it does not ask where the cache helps."""

    def on_start(self, event: Any) -> None:
        del event
        tell(begins=True)

    def on_end(self, event: Any) -> None:
        del event
        tell(begins=False)


event.register("numba:compile", _Compiled())  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays at its first call.

    An installation without any writable folder compiles anew in every process.
    """
    return _cached(numba.njit(function, **_options(function)), function)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call.

    What turns Python's arguments into arrays takes as long to compile as a small kernel itself.
    """
    return _cached(_Inner(function, targetoptions={**_options(function), **_INNER}), function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that kernels call for every token: its code stands in theirs.

    A call passes seven words for every array, which costs more than a loop over a few labels.
    """
    options = {**_options(function), **_INNER, "forceinline": True}
    return _cached(_Inner(function, targetoptions=options), function)


_INNER = {"no_cpython_wrapper": True, "nopython": True, "boundscheck": None}


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options: a function that makes no array need not count who refers to one.

    Numba counts every row that a loop looks at, with instructions that all processors wait for.
    """
    names = function.__code__.co_names
    return {**OPTIONS, "_nrt": any(hasattr(np, name) and name not in PLAIN for name in names)}


class _Inner(CPUDispatcher):
    """A kernel without an entry for Python: a call from there is an error, and no crash."""

    def add_overload(self, cres: Any) -> None:
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **words: Any) -> Any:
        del args, words
        name = self.py_func.__name__
        raise TypeError(f"{name} is compiled for kernels alone: call numba.njit({name}.py_func)")


def _cached(compiled: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    with suppress(RuntimeError):  # Numba found no folder to cache in
        # What njit(cache=True) does.
        compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001
    found: Callable[..., Any] = compiled
    return found


# --------------------------------------------------------------------------------------------------
# Where machine code is kept.


class _Locator(caching.UserWideCacheLocator):
    """A folder per file of kernels and state of its sources, whatever the environment."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._stamp = _stamp(file, function.__globals__)
        name = f"{Path(file).parent.name}.{Path(file).stem}-{self._stamp[:16]}"
        self._cache_path = str(user_folder() / "kernels" / name)

    def ensure_cache_path(self) -> None:
        super().ensure_cache_path()  # type: ignore[no-untyped-call]
        with suppress(OSError):  # used today: not removed
            if time.time() - Path(self._cache_path).stat().st_mtime > DAY:
                os.utime(self._cache_path)

    def get_source_stamp(self) -> str:
        return self._stamp


class _Named(caching.UserProvidedCacheLocator):
    """The folder that NUMBA_CACHE_DIR names, with the same stamp."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._stamp = _stamp(file, function.__globals__)

    def get_source_stamp(self) -> str:
        return self._stamp


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [  # type: ignore[misc]
        _Named, _Locator, caching.InTreeCacheLocator,
    ]  # fmt: skip


class _Cache(caching.FunctionCache):
    _impl_class = _Impl

    def save_overload(self, sig: Any, data: Any) -> None:
        _tidy()
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]


_stamps: dict[str, str] = {}


def _stamp(file: str, names: Mapping[str, Any]) -> str:
    """Return a hash of all that the kernels of a file are compiled from.

    These are the file and this one, the files of the kernels that it imports, and its constants.
    """
    if file not in _stamps:
        found = hashlib.sha256(Path(file).read_bytes() + Path(__file__).read_bytes())
        for name, value in sorted(names.items(), key=lambda pair: pair[0]):
            if isinstance(value, Dispatcher):
                called = value.py_func
                if called.__code__.co_filename != file:
                    found.update(_stamp(called.__code__.co_filename, called.__globals__).encode())
            elif isinstance(value, bool | int | float) and not name.startswith("__"):
                found.update(f"{name}={value!r};".encode())
        _stamps[file] = found.hexdigest()
    return _stamps[file]


@cache
def user_folder() -> Path:
    """Return the folder of this user's cache."""
    found = AppDirs("goldspan", appauthor=False)  # type: ignore[no-untyped-call]
    return Path(found.user_cache_dir)


@cache
def _tidy() -> None:
    """Remove what no process has asked for in a long time, once per process that compiles."""
    with suppress(OSError):
        for old in (user_folder() / "kernels").iterdir():
            if time.time() - old.stat().st_mtime > UNUSED:
                shutil.rmtree(old, ignore_errors=True)
