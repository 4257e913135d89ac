"""Parameters: typed dataclass fields whose bounds are part of the type.

A parameter is one annotated field of an estimator, a rule or a simulated worker::

    class Glad(WeightedVote):
        tol: Annotated[float, Number(0, below=1)] = 1e-5
        max_iter: Annotated[int, Whole(1)] = 100

The constructor, `get_params`, `set_params`, the checks and their messages, and the lists of
parameters in help texts and docs come from these fields.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)
from typing import get_type_hints as hints_of

import numpy as np

from goldspan.errors import InputError, UnknownNameError

# --------------------------------------------------------------------------------------------------
# What a parameter may be.


FINITE = sys.float_info.max


@dataclass(frozen=True)
class Number:
    """A finite number within bounds; True and False are none."""

    least: float = -FINITE  # The smallest number allowed
    most: float = FINITE  # The largest number allowed
    above: float | None = None  # Numbers must be larger than this
    below: float | None = None  # Numbers must be smaller than this

    kinds: ClassVar[tuple[type, ...]] = (int, float, np.integer, np.floating)
    noun: ClassVar[str] = "a number"

    def allows(self, value: Any) -> bool:
        """Return whether a value is such a number."""
        if not isinstance(value, self.kinds) or isinstance(value, bool):
            return False
        number: Any = value
        above, below = self.above, self.below
        inside = (above is None or number > above) and (below is None or number < below)
        return bool(inside and self.least <= number <= self.most)

    def __str__(self) -> str:
        """Write what is allowed: "a number of at least 0 and below 1"."""
        bounds = [] if self.above is None else [f"above {self.above:g}"]
        bounds += [f"of at least {self.least:g}"] if self.least > -FINITE else []
        bounds += [f"at most {self.most:g}"] if self.most < FINITE else []
        bounds += [] if self.below is None else [f"below {self.below:g}"]
        return " ".join([self.noun, " and ".join(bounds)]).strip()


@dataclass(frozen=True)
class Whole(Number):
    """A whole number within bounds; True and False are none."""

    kinds = (int, np.integer)
    noun = "a whole number"


@dataclass(frozen=True)
class OneOf:
    """One of some names."""

    names: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        """Return whether a value is one of the names."""
        return isinstance(value, str) and value in self.names

    def __str__(self) -> str:
        """Write the names."""
        return ", ".join(map(repr, self.names))


@dataclass(frozen=True)
class IsA:
    """An object of some classes."""

    classes: tuple[type, ...]

    def allows(self, value: Any) -> bool:
        """Return whether a value is such an object."""
        return isinstance(value, self.classes)

    def __str__(self) -> str:
        """Write the names of the classes."""
        nouns = [_NOUNS.get(kind, f"a {kind.__name__}") for kind in self.classes]
        return " or ".join(dict.fromkeys(nouns))


_NOUNS: dict[type, str] = {bool: "True or False", np.bool_: "True or False", str: "a string"}

Rule = Number | OneOf | IsA
Check = Callable[[Any], Any]
"""Raises `InputError` for a value that makes no sense."""
Seed = Annotated[int | None, Whole(0)]
"""The seed of everything random."""
Tolerance = Annotated[float, Number(0, below=1)]
"""A relative change at which to stop."""
Rounds = Annotated[int, Whole(1)]
"""The largest number of rounds."""


MOST = 1e12
"""The largest penalty, pseudo-count or weight: what is larger would leave the range of float64."""


def require(name: str, value: Any, rule: Number) -> None:
    """Raise `InputError` for a value that a rule does not allow.

    >>> require("max_iter", 2.5, Whole(1))
    Traceback (most recent call last):
    goldspan.errors.InputError: max_iter must be a whole number of at least 1, not 2.5
    """
    if not rule.allows(value):
        raise InputError(f"must be {rule}, not {value!r}", parameter=name)


# --------------------------------------------------------------------------------------------------
# From the fields of a class to its rules, and from these to the checks.


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method."""

    name: str  # Its name
    default: Any  # Its default, or `inspect.Parameter.empty`
    rules: tuple[Rule, ...] = ()  # What it may be: one of these, if there are any
    may_be_none: bool = False  # Whether None is allowed
    # Functions that raise `InputError` for a value that makes no sense
    checks: tuple[Check, ...] = ()
    doc: str = ""  # What it means

    @property
    def allowed(self) -> str:
        """What it may be, in words; "" if the fields do not say."""
        words = [str(rule) for rule in self.rules]
        if self.may_be_none and words:
            words.append("None")
        return ", or ".join(words)

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    def check(self, value: Any, owner: str = "") -> None:
        """Reject a value that makes no sense.

        Args:
            value: The value.
            owner: Whose parameter it is, if the message is to say so.

        Raises:
            InputError: It makes none; `UnknownNameError` if it must be one of some names.
        """
        if self.may_be_none and value is None:
            return
        if self.rules and not any(rule.allows(value) for rule in self.rules):
            if len(self.rules) == 1 and isinstance(self.rules[0], OneOf):
                what = f"value of {self.name}" + (f" in {owner}" if owner else "")
                raise UnknownNameError(what, value, self.rules[0].names)
            name = f"{owner}: {self.name}" if owner else self.name
            raise InputError(f"{name} must be {self.allowed}, not {value!r}")
        for check in self.checks:
            check(value)


_known: dict[type, tuple[Parameter, ...]] = {}


def parameters(kind: type) -> tuple[Parameter, ...]:
    """List the parameters of a class with their defaults, bounds and meanings.

    They are the keyword-only arguments of the constructor of an `Estimator`, and all arguments of
    other dataclasses.

    Args:
        kind: An `Estimator` or a dataclass.
    """
    if kind in _known:
        return _known[kind]
    arguments = inspect.signature(kind).parameters.values()
    hints = hints_of(kind, include_extras=True)
    docs = _documented(kind)
    skipped = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    _known[kind] = tuple(
        Parameter(one.name, one.default, *_rules_of(hints.get(one.name)), docs.get(one.name, ""))
        for one in arguments
        if one.kind not in skipped
    )
    return _known[kind]


def check_parameters(owner: Any, name: str = "") -> None:
    """Check all parameters of an object; all that are wrong are told at once.

    Args:
        owner: An `Estimator` or a dataclass.
        name: Its name, if messages are to say whose parameters they are about.

    Raises:
        InputError: Some make no sense; `UnknownNameError` if it is one name alone.
    """
    found: list[InputError] = []
    for one in parameters(type(owner)):
        try:
            one.check(getattr(owner, one.name), name)
        except InputError as error:
            found.append(error)
    if len(found) == 1:
        raise found[0]
    if found:
        raise InputError("; ".join(map(str, found)))


def _rules_of(hint: Any) -> tuple[tuple[Rule, ...], bool, tuple[Check, ...]]:
    """Take the rules, whether None is allowed, and other checks out of a type."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        rules = tuple(note for note in notes if isinstance(note, Rule))
        checks = tuple(note for note in notes if callable(note))
        return rules, types.NoneType in get_args(kind), checks
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if not any(get_origin(kind) is Annotated for kind in kinds):
        known = [kind for kind in kinds if kind is not types.NoneType]
        return _rules_of_classes(known), types.NoneType in kinds, ()
    parts = [_rules_of(kind) for kind in kinds if kind is not types.NoneType]
    rules = tuple(rule for part in parts for rule in part[0])
    return rules, types.NoneType in kinds, tuple(check for part in parts for check in part[2])


def _rules_of_classes(kinds: list[Any]) -> tuple[Rule, ...]:
    """Return the rules of types without bounds; types with arguments have none."""
    plain: dict[Any, Rule] = {
        float: Number(), int: Whole(), bool: IsA((bool, np.bool_)), str: IsA((str,)),
    }  # fmt: skip
    if not all(isinstance(kind, type) and get_origin(kind) is None for kind in kinds):
        return ()
    return tuple(plain.get(kind, IsA((kind,))) for kind in kinds if kind is not object)


_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:[ ]{4,}.*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): +(.*(?:\n {5,}.*)*)", re.MULTILINE)


def _documented(kind: type) -> dict[str, str]:
    """Read what docstrings say of parameters; a class's own words go before those of its bases."""
    found: dict[str, str] = {}
    for one in kind.__mro__:
        for section in _SECTION.findall(inspect.cleandoc(vars(one).get("__doc__") or "")):
            for name, text in _ENTRY.findall(section):
                found.setdefault(name, " ".join(text.split()))
    return found


def _with_arguments(kind: type, names: list[str]) -> str:
    """Complete the section Args of a docstring by what the bases say of their parameters."""
    docs, text = _documented(kind), inspect.cleandoc(kind.__doc__ or "")
    entries = [
        textwrap.fill(
            f"{name}: {docs[name]}", 96, initial_indent=" " * 4, subsequent_indent=" " * 8
        )
        for name in names
        if name in docs
    ]
    own = _SECTION.search(text)
    if not entries or (own and own[0].startswith("Attributes")):
        return text
    section = "\n".join(["Args:", *entries, "", ""])
    if own:
        return text[: own.start()] + section + text[own.end() :]
    at = text.find(">>> ")
    return f"{text}\n\n{section}".rstrip() if at < 0 else text[:at] + section + text[at:]


# --------------------------------------------------------------------------------------------------
# The habits of scikit-learn that follow from the fields.


def result(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that is not a parameter; it does not exist before `fit`."""
    return field(init=init)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field, result))
class Estimator:
    """Base of what has parameters: every subclass is a dataclass whose fields are its parameters.

    They are keyword-only arguments of the constructor, which checks them; `set_params` changes
    them without a check, so that whoever uses them calls `_check` first. A subclass may have a
    constructor of its own, with keyword-only arguments of which it keeps every one under its name.
    """

    name: str

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        if vars(cls).get("__doc__"):
            names = [one.name for one in fields(cast("Any", cls)) if one.init]
            cls.__doc__ = _with_arguments(cls, names)

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        """Reject parameters that make no sense; a subclass adds what concerns several of them.

        Raises:
            InputError: Some make none.
        """
        check_parameters(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @classmethod
    def parameter_names(cls) -> list[str]:
        """List the names of the parameters; `goldspan.params.parameters` tells more."""
        return [one.name for one in parameters(cls)]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Raises:
            InputError: There is no such parameter.
        """
        check_names(self.name, params, self.parameter_names())
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the parameters that differ from their defaults."""
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def _shown(self) -> Iterator[str]:
        for one in parameters(type(self)):
            value = getattr(self, one.name)
            if value is not one.default and not _equal(value, one.default):
                yield f"{one.name}={value!r}"


def check_names(owner: str, given: Any, known: list[str]) -> None:
    """Reject names that are not parameters.

    Raises:
        InputError: There is one; the message lists the parameters.
    """
    for name in given:
        if not known:
            raise InputError(f"{owner} has no parameters, and {name!r} is given")
        if name not in known:
            raise UnknownNameError(f"parameter of {owner}", name, known)


def _equal(a: Any, b: Any) -> bool:
    """Compare two values of a parameter; arrays are never equal."""
    same = a == b
    return same if isinstance(same, bool) else False


# --------------------------------------------------------------------------------------------------
# Rules in text: `mnlp`, `coverage(w=2, weights=none)`, `clear_majority(3, least=4)`.


def read_call(text: str, hint: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return a rule's name and its arguments by place and by name: literals, or bare words.

    >>> read_call("coverage(2, weights=none)", "")
    ('coverage', [2], {'weights': 'none'})
    """
    name, bracket, rest = (part.strip() for part in text.partition("("))
    source = f"rule({rest}" if bracket else "rule()"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals: their values are checked anyhow
            call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if name and isinstance(call, ast.Call) and source.endswith(")"):
        with suppress(ValueError):
            named = {str(one.arg): _argument(one.value, source) for one in call.keywords if one.arg}
            if len(named) == len(call.keywords):  # else an argument is given twice
                return name, [_argument(one, source) for one in call.args], named
    raise InputError(f"rule {text.strip()!r}: {hint}")


def _argument(node: ast.expr, source: str) -> Any:
    word = ast.get_source_segment(source, node) or ""
    is_bare = re.fullmatch(r"[A-Za-z_][\w.-]*", word) and word not in {"None", "True", "False"}
    return word if is_bare else ast.literal_eval(node)
