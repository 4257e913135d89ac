"""Rules in text: `mnlp`, `coverage(w=2, weights=none)`, or a schedule of several."""

from __future__ import annotations

import ast
import warnings
from importlib import import_module
from typing import Any

from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import plugins
from goldspan.select.base import Selector
from goldspan.select.registry import SELECTORS

_HINT = "it must look like mnlp or coverage(w=2, weights=none)"


def get_selector(name: str, **params: Any) -> Selector:
    """Make a rule by its name.

    Raises:
        UnknownNameError: There is no such rule, or it has no such parameter.

    >>> get_selector("coverage", w=2).get_params()["w"]
    2
    """
    place = SELECTORS[name][0] if name in SELECTORS else plugins("goldspan.selectors").get(name)
    if place is None:
        raise UnknownNameError("rule", name, [*SELECTORS, *plugins("goldspan.selectors")])
    module, attribute = place.split(":")
    kind: type[Selector] = getattr(import_module(module), attribute)
    for param in params:
        if not kind.parameter_names():
            raise InputError(f"{name} has no parameters, and {param!r} is given")
        if param not in kind.parameter_names():
            raise UnknownNameError(f"parameter of {name}", param, kind.parameter_names())
    return kind(**params)


def read_selector(text: Any) -> Selector:
    """Read a rule or a schedule.

    Raises:
        InputError: It is not written like one.
        UnknownNameError: There is no such rule, or it has no such parameter.

    >>> read_selector("coverage, then mnlp, 10% random").name
    'schedule'
    """
    if isinstance(text, Selector):
        return text
    if len(clauses(str(text))) == 1:
        return read_rule(str(text))
    from goldspan.select.schedule import Schedule

    made = Schedule(text=str(text))
    made.plan()
    return made


def read_rule(text: str) -> Selector:
    """Read a single rule.

    Raises:
        InputError: It is not written like one.
        UnknownNameError: There is no such rule, or it has no such parameter.

    >>> read_rule("margin(top=3)").name
    'margin'
    """
    name, bracket, rest = text.strip().partition("(")
    name = name.strip()
    if not name or (bracket and not rest.endswith(")")):
        raise InputError(f"rule {text.strip()!r}: {_HINT}")
    rule = get_selector(name)
    if not bracket:
        return rule
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals: their values are checked anyhow
            call = ast.parse(f"rule({rest}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
        raise InputError(f"rule {text.strip()!r}: {_HINT}; parameters have names")
    params = {str(one.arg): _value(one.value, f"rule({rest}") for one in call.keywords}
    made = get_selector(name, **params)
    made.check()
    return made


def clauses(text: str) -> list[str]:
    """Cut a text at its commas, but not within brackets.

    >>> clauses("coverage(w=2, order=capped), then mnlp")
    ['coverage(w=2, order=capped)', 'then mnlp']
    """
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


def _value(node: ast.expr, source: str) -> Any:
    """Read a literal, or a word without quotes."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.get_source_segment(source, node) or ""
