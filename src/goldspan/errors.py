"""The errors that goldspan raises: one small tree, every message complete in itself.

A message says what was wrong, where (file, line, item, token, worker), what was seen, what is
allowed, and how to fix it. Faults are collected and raised once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from goldspan._version import __version__


class GoldspanError(Exception):
    """Base of everything that goldspan raises on purpose."""


class InputError(GoldspanError, ValueError):
    """The input is rejected: the message lists what is wrong with it.

    Attributes:
        message: What is wrong, without the names of parameters that follow.
        where: The argument or the file that all of it is about, put before it; "" for none. Who
            calls a reader may set it.
        parameter: The parameter that the message is about, which begins with it; "" for none.
        hint: A parameter that helps, named at the end; "" for none.

    >>> error = InputError("must be above 0, not -1", parameter="per_answer")
    >>> print(error)
    per_answer must be above 0, not -1
    >>> error.worded({"per_answer": "--per-answer"})  # as on the command line
    '--per-answer must be above 0, not -1'
    """

    def __init__(self, message: str = "", *, parameter: str = "", hint: str = "") -> None:
        self.message, self.parameter, self.hint, self.where = message, parameter, hint, ""
        super().__init__(message)

    def __str__(self) -> str:
        """Return the message with the names of the library."""
        return self.worded({self.hint: self.hint})

    def worded(self, names: Mapping[str, str]) -> str:
        """Return the message with other names for parameters; a hint without a name is left out."""
        subject = f"{names.get(self.parameter, self.parameter)} " if self.parameter else ""
        hint = f" (see {names[self.hint]})" if self.hint and self.hint in names else ""
        return f"{f'{self.where}: ' if self.where else ''}{subject}{self.message}{hint}"


class UnavailableError(InputError, AttributeError):
    """An attribute that this object does not have; the message says why, and what to use.

    It is an AttributeError too, so that `hasattr` and `getattr` with a default do not raise.
    """


class NotFittedError(UnavailableError):
    """Something was asked of an aggregator or a model before `fit`."""


class UnknownNameError(InputError):
    """A method, encoding, policy, format or option has no such name; the message lists them."""

    def __init__(self, what: str, name: object, allowed: Iterable[str], hint: str = "") -> None:
        """Say that there is no `what` called `name`, and which there are.

        >>> print(UnknownNameError("policy", "perl", ["conlleval", "strict"]))
        unknown policy 'perl': choose from conlleval, strict
        """
        import difflib

        self.what, self.name, self.allowed, self.hint = what, name, tuple(allowed), hint
        near = difflib.get_close_matches(str(name), self.allowed, n=1)
        text = f"unknown {what} {name!r}: choose from {', '.join(self.allowed)}"
        if near:
            text += f" (did you mean {near[0]!r}?)"
        super().__init__(f"{text}{'; ' + hint if hint else ''}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by the arguments, so that the error survives a trip between processes."""
        return type(self), (self.what, self.name, self.allowed, self.hint), vars(self)


class SpanError(InputError):
    """Spans that cannot be written: they overlap, are empty or lie outside the sequence."""


class MissingExtraError(GoldspanError, ImportError):
    """An optional part of goldspan is not installed; the message says how to install it.

    Without an extra it is a package of its own that is to be installed, such as pandas.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        # goldspan is not on the package index: it is installed from where it lies.
        how = (
            f"It comes with goldspan's extra {extra!r}: run pip install '.[{extra}]' in a checkout "
            "of the repository, or, beside the built wheel, "
            f"pip install 'goldspan-{__version__}-py3-none-any.whl[{extra}]'"
            if extra
            else f"Install it: pip install {package}"
        )
        super().__init__(f"{purpose} needs {package}, which is not installed. {how}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.package, self.extra, self.purpose)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input, and where.

    Attributes:
        message: What was seen, what is allowed, how to fix it.
        file: Name of the file, "" when the input is not a file.
        line: Line in that file, counted from 1; 0 when unknown.
        item: Id of the item, "" when unknown.
        token: Position of the token in its item, counted from 0; -1 when unknown.
        worker: Id of the worker, "" when unknown.
        kind: A short name, the same for faults of the same sort; reports count by it.
    """

    message: str
    file: str = ""
    line: int = 0
    item: str = ""
    token: int = -1
    worker: str = ""
    kind: str = "fault"

    def __str__(self) -> str:
        """Return the place and then the message, leaving out what is unknown."""
        place = self.file + (f" line {self.line}" if self.line else "")
        within = f"item {self.item}" if self.item else ""
        if self.token >= 0:
            within += f"{' ' if within else ''}token {self.token}"
        parts = [place.strip(), within, f"worker {self.worker}" if self.worker else ""]
        where = ", ".join(part for part in parts if part)
        return f"{where}: {self.message}" if where else self.message


class FaultsError(InputError):
    """An input with faults: holds them all, prints the first `shown`."""

    shown = 20

    def __init__(self, faults: Sequence[Fault], headline: str = "", *, hint: str = "") -> None:
        self.faults, self.headline = tuple(faults), headline
        lines = [str(fault) for fault in self.faults[: self.shown]]
        if len(self.faults) > self.shown:
            lines.append(f"… and {len(self.faults) - self.shown} more")
        super().__init__("\n".join([headline, *lines] if headline else lines), hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), hint=self.hint), (self.faults, self.headline), vars(self)


class FormatError(FaultsError):
    """A file cannot be read as the format that it is said to have."""
