"""The stopping rules by name. A new one is one class and one line here."""

from __future__ import annotations

import ast
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from goldspan.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from goldspan.hiring.redundancy.rules import Rule

_HERE = "goldspan.hiring.redundancy.rules"

RULES: dict[str, tuple[str, str]] = {
    "confident": (f"{_HERE}:Confident", "the posterior has reached a threshold"),
    "clear_majority": (f"{_HERE}:ClearMajority", "the first label is so many votes ahead"),
    "stable_average": (f"{_HERE}:StableAverage", "the mean of numbers hardly moves any more"),
    "fixed": (f"{_HERE}:Fixed", "a fixed number of answers"),
}
_HINT = "it must look like confident(0.95) or clear_majority(ahead=2, least=3)"


def get_rule(rule: str | Rule) -> Rule:
    """Read a stopping rule; one that is a rule already is given back.

    Raises:
        InputError: It is not written like one, or an argument is wrong.
        UnknownNameError: There is no such rule; the message names them all.

    >>> get_rule("clear_majority(3, least=4)")
    ClearMajority(ahead=3, least=4)
    """
    if not isinstance(rule, str):
        return rule
    name, args, named = _parts(rule)
    if name not in RULES:
        raise UnknownNameError("stopping rule", name, RULES)
    module, attribute = RULES[name][0].split(":")
    kind: type[Rule] = getattr(import_module(module), attribute)
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    given = dict(zip(known, args, strict=False))
    if len(args) > len(known) or set(named) - set(known) or set(named) & set(given):
        raise InputError(f"rule {rule!r}: {name} takes {', '.join(known)}")
    try:
        return kind(**given, **named)
    except TypeError:  # one that has no default is missing
        raise InputError(f"rule {rule!r}: {name} takes {', '.join(known)}") from None


def _parts(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Take apart name, arguments by place and by name."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, [], {}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            args = [_literal(one) for one in node.args]
            named = {str(k.arg): _literal(k.value) for k in node.keywords}
            if len(named) == len(node.keywords):  # else an argument is given twice
                return node.func.id, args, named
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise InputError(f"rule {text!r}: {_HINT}")


def _literal(node: ast.expr) -> Any:
    """Give a number, a string, or a bare word as a string."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
