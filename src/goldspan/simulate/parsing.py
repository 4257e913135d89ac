"""Workers in text: `crf_noise(0.05)`, `drift(flip(0.05), flip(0.4))`, `flip(0.05) + misses(0.3)`.

The text is read with Python's grammar: a name with arguments, by place or by name; habits follow
the worker that they change after a plus. A word that is no number and no worker is a string, with
quotes or without: `spammer(constant, label=B-PER)`.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import MISSING, Field, fields, replace
from importlib import import_module
from typing import Any

from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import plugins
from goldspan.simulate.base import Habit, Perfect, SimulatedWorker
from goldspan.simulate.registry import WORKERS


def parse_worker(text: str) -> SimulatedWorker:
    """Read a worker.

    Raises:
        InputError: It is not written like one, or an argument is wrong.
        UnknownNameError: There is no such kind of worker.

    >>> parse_worker("flip(0.05) + misses(0.3, type=PER)")
    Misses(base=Flip(base=Perfect(), p=0.05, labels='all'), p=0.3, type='PER')
    """
    source = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals: their values are checked anyhow
            tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"worker {text!r}: {_HINT}") from None
    return _worker(tree, source)


def get_worker(name: str) -> type[SimulatedWorker]:
    """Import a kind of worker.

    Raises:
        UnknownNameError: There is no such kind; the message names them all.
    """
    place = WORKERS[name][0] if name in WORKERS else plugins("goldspan.workers").get(name)
    if place is None:
        raise UnknownNameError("kind of worker", name, [*WORKERS, *plugins("goldspan.workers")])
    module, attribute = place.split(":")
    found: type[SimulatedWorker] = getattr(import_module(module), attribute)
    return found


def signature(kind: type[SimulatedWorker]) -> str:
    """Write the arguments of a kind of worker with their defaults.

    >>> signature(get_worker("misses"))
    'misses(p, type=None)'
    """
    words = [
        one.name if one.default is MISSING else f"{one.name}={one.default}"
        for one in _arguments(kind)
    ]
    return f"{kind.name}({', '.join(words)})" if words else kind.name


_HINT = (
    "it must look like flip(0.1), drift(flip(0.05), flip(0.4)) or flip(0.05) + misses(0.3); ids "
    "and labels that are no words stand in quotes, copier('001')"
)


def _arguments(kind: type[SimulatedWorker]) -> list[Field[Any]]:
    """Give the fields that text can set; those that it sets by place."""
    return [one for one in fields(kind) if not one.kw_only]


def _worker(node: ast.expr, source: str) -> SimulatedWorker:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _chained(_worker(node.left, source), _worker(node.right, source))
    if isinstance(node, ast.Name):
        return _made(node.id, [], [], source)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = [(keyword.arg or "**", keyword.value) for keyword in node.keywords]
        return _made(node.func.id, node.args, named, source)
    raise InputError(f"worker {ast.get_source_segment(source, node)!r}: {_HINT}")


def _chained(base: SimulatedWorker, habit: SimulatedWorker) -> SimulatedWorker:
    if not isinstance(habit, Habit) or habit.base != Perfect():
        raise InputError(f"{habit} cannot follow a plus: only a habit can, such as misses(0.3)")
    return replace(habit, base=base)


def _made(
    name: str, placed: list[ast.expr], named: list[tuple[str, ast.expr]], source: str
) -> SimulatedWorker:
    kind = get_worker(name)
    known = {one.name: one for one in _arguments(kind)}
    usage = f"it is written {signature(kind)}"
    if len(placed) > len(known):
        raise InputError(f"{name} takes {len(known)} arguments, not {len(placed)}: {usage}")
    given = dict(zip(known, placed, strict=False))
    for key, node in named:
        if key not in known:
            raise InputError(f"{name} has no argument {key!r}: {usage}")
        if key in given:
            raise InputError(f"{name}: argument {key!r} stands twice: {usage}")
        given[key] = node
    missing = [key for key, one in known.items() if one.default is MISSING and key not in given]
    if missing:
        raise InputError(f"{name} needs {' and '.join(missing)}: {usage}")
    return kind(**{key: _value(node, known[key], source) for key, node in given.items()})


def _value(node: ast.expr, field: Field[Any], source: str) -> Any:
    """Read an argument as what its field holds: a worker, a number or a string."""
    if field.type == "SimulatedWorker":
        return _worker(node, source)
    text = ast.get_source_segment(source, node) or ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if "None" in str(field.type) and text.lower() == "none":
        return None
    if "str" not in str(field.type):
        try:
            return ast.literal_eval(node)
        except ValueError:
            return text
    return text
