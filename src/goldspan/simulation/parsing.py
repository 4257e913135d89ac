"""Simulated teams in words: names, parameters, and files of teams."""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from goldspan.errors import InputError, UnknownNameError
from goldspan.params import IsA, Number, Parameter, parameters
from goldspan.plugins import load, plugins
from goldspan.simulation.base import Habit, Perfect, SimulatedWorker
from goldspan.simulation.registry import WORKERS

# --------------------------------------------------------------------------------------------------
# Workers in text: `crf_noise(0.05)`, `drift(flip(0.05), flip(0.4))`, `flip(0.05) + misses(0.3)`.


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
    """Import a kind of worker."""
    place = WORKERS[name][0] if name in WORKERS else plugins("goldspan.workers").get(name)
    if place is None:
        raise UnknownNameError("kind of worker", name, [*WORKERS, *plugins("goldspan.workers")])
    found: type[SimulatedWorker] = load(place)
    return found


def signature(kind: type[SimulatedWorker]) -> str:
    """Write the arguments of a kind of worker with their defaults.

    >>> signature(get_worker("misses"))
    'misses(p, type=None)'
    """
    words = [
        one.name if one.is_required else f"{one.name}={one.default}" for one in arguments(kind)
    ]
    return f"{kind.name}({', '.join(words)})" if words else kind.name


_HINT = (
    "it must look like flip(0.1), drift(flip(0.05), flip(0.4)) or flip(0.05) + misses(0.3); ids "
    "and labels that are not words must be in quotes, copier('001')"
)


def arguments(kind: type[SimulatedWorker]) -> list[Parameter]:
    """Return the parameters that text can set, also by place."""
    not_in_text = {one.name for one in fields(kind) if one.kw_only}
    return [one for one in parameters(kind) if one.name not in not_in_text]


def _worker(node: ast.expr, source: str) -> SimulatedWorker:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _chained(_worker(node.left, source), _worker(node.right, source))
    if isinstance(node, ast.Name):
        return _build(node.id, [], [], source)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = [(keyword.arg or "**", keyword.value) for keyword in node.keywords]
        return _build(node.func.id, node.args, named, source)
    raise InputError(f"worker {ast.get_source_segment(source, node)!r}: {_HINT}")


def _chained(base: SimulatedWorker, habit: SimulatedWorker) -> SimulatedWorker:
    if not isinstance(habit, Habit) or habit.base != Perfect():
        raise InputError(f"{habit} cannot follow a plus: only a habit can, such as misses(0.3)")
    return replace(habit, base=base)


def _build(
    name: str, placed: list[ast.expr], named: list[tuple[str, ast.expr]], source: str
) -> SimulatedWorker:
    kind = get_worker(name)
    known = {one.name: one for one in arguments(kind)}
    usage = f"it is written {signature(kind)}"
    if len(placed) > len(known):
        raise InputError(f"{name} takes {len(known)} arguments, not {len(placed)}: {usage}")
    given = dict(zip(known, placed, strict=False))
    for key, node in named:
        if key not in known:
            raise InputError(f"{name} has no argument {key!r}: {usage}")
        if key in given:
            raise InputError(f"{name}: argument {key!r} appears twice: {usage}")
        given[key] = node
    missing = [key for key, one in known.items() if one.is_required and key not in given]
    if missing:
        raise InputError(f"{name} needs {' and '.join(missing)}: {usage}")
    return kind(**{key: _value(node, known[key], source) for key, node in given.items()})


def _value(node: ast.expr, parameter: Parameter, source: str) -> Any:
    """Read an argument as what its field holds: a worker, a number or a string."""
    kinds = [kind for rule in parameter.rules if isinstance(rule, IsA) for kind in rule.classes]
    if SimulatedWorker in kinds:
        return _worker(node, source)
    text = ast.get_source_segment(source, node) or ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if parameter.may_be_none and text.lower() == "none":
        return None
    if any(isinstance(rule, Number) for rule in parameter.rules):
        try:
            return ast.literal_eval(node)
        except ValueError:
            return text
    return text


# --------------------------------------------------------------------------------------------------
# From a list of workers, in text or as objects, to workers by id.


Entry = str | SimulatedWorker

MOST_WORKERS = 1_000_000
"""Larger teams are refused: each worker has a row of answers and random numbers."""

_ENTRY = re.compile(
    r"\s*(?:(?P<id>[\w.-]+)\s*=)?\s*(?P<worker>.*?)\s*(?:\s[x×]\s*(?P<count>\d+))?\s*", re.DOTALL
)


def read_team(workers: Sequence[Entry] | Mapping[str, Any]) -> dict[str, SimulatedWorker]:
    """Read the workers of a crowd.

    Args:
        workers: A list of workers in text or as objects; in text a worker may have an id, `ana =
            flip(0.1)`, and a number of workers alike, `flip(0.1) x3`. Or a mapping: from a worker
            in text to a number of workers, or from an id to a worker. Workers without an id are
            w1, w2, … by their place; several of one id are ana1, ana2, ….

    Raises:
        InputError: There is no worker, an id appears twice, a number is not one, or there are more
            than a million workers.
        UnknownNameError: There is no such kind of worker.

    >>> {name: str(worker) for name, worker in read_team(["flip(.1) x2", "ana = acc"]).items()}
    {'w1': 'flip(0.1)', 'w2': 'flip(0.1)', 'ana': 'acc'}
    """
    if isinstance(workers, str | SimulatedWorker):
        workers = [workers]
    entries = _of_mapping(workers) if isinstance(workers, Mapping) else map(_read, workers)
    team: dict[str, SimulatedWorker] = {}
    place = 0
    for name, worker, count in entries:
        if place + count > MOST_WORKERS:
            raise InputError(f"there are more than {MOST_WORKERS:,} workers: simulate fewer")
        for n in range(1, count + 1):
            place += 1
            own = f"w{place}" if not name else f"{name}{n}" if count > 1 else name
            if own in team:
                raise InputError(f"two workers have the id {own!r}: give them different ones")
            team[own] = worker
    if not team:
        raise InputError('there is no worker: give at least one, such as "flip(0.1)"')
    return team


def _of_mapping(workers: Mapping[str, Any]) -> list[tuple[str, SimulatedWorker, int]]:
    found = []
    for key, value in workers.items():
        if isinstance(value, int) and not isinstance(value, bool):
            found.append(_counted(*_read(key)[:2], value))
        else:
            found.append((str(key), _team_member(value), 1))
    return found


def _read(entry: Entry) -> tuple[str, SimulatedWorker, int]:
    if not isinstance(entry, str):
        return "", _team_member(entry), 1
    parts = _ENTRY.fullmatch(entry)
    assert parts is not None  # every part may be empty
    count = _number(parts["count"] or "1")
    return _counted(parts["id"] or "", parse_worker(parts["worker"]), count)


def _number(digits: str) -> int:
    """Read a number; of a very long one it is enough that it is too large."""
    return int(digits) if len(digits) < 20 else MOST_WORKERS + 1


def _counted(name: str, worker: SimulatedWorker, count: int) -> tuple[str, SimulatedWorker, int]:
    if count < 1:
        raise InputError(f"the number of workers {worker} must be at least 1, not {count}")
    return name, worker, count


def _team_member(value: Any) -> SimulatedWorker:
    if isinstance(value, str):
        return parse_worker(value)
    if not isinstance(value, SimulatedWorker):
        raise InputError(f"a worker must be text such as 'flip(0.1)' or an object, not {value!r}")
    return value


# --------------------------------------------------------------------------------------------------
# A team of workers in a TOML file: a list, or a table of workers by id.


HELP = 'workers = ["flip(0.1) x3", …], or a table [workers] with ana = "flip(0.1)"'


def read_team_file(path: str | Path) -> dict[str, SimulatedWorker]:
    """Read the workers of a crowd from a TOML file.

    Args:
        path: A file with `workers = ["flip(0.1) x3", "ana = acc"]`, or with a table `[workers]` in
            which `ana = "flip(0.1)"` is a worker and `"flip(0.1)" = 3` are three of them.

    Raises:
        InputError: The file cannot be read or holds something else.
        UnknownNameError: There is no such kind of worker.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    workers: Any = content.get("workers")
    is_list = isinstance(workers, list) and all(isinstance(one, str) for one in workers)
    is_table = isinstance(workers, dict) and all(isinstance(v, str | int) for v in workers.values())
    if set(content) != {"workers"} or not (is_list or is_table):
        raise InputError(f"{path}: it must hold {HELP}, and nothing else")
    return read_team(workers)
