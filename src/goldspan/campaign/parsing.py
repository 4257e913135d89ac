"""From a TOML file to a plan: every fault is found before the first one is told."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goldspan.campaign.consistency import Sections, contradictions
from goldspan.campaign.plan import Plan, Section
from goldspan.errors import Fault, FaultsError, InputError

# After the plan, which says what to install where it is missing.
from pydantic import BaseModel, TypeAdapter, ValidationError  # isort: skip

_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be a table",
    "dict_type": "must be a table",
}
_LIMITS = {
    "ge": "at least {}",
    "gt": "above {}",
    "le": "at most {}",
    "lt": "below {}",
}


def read_plan(source: str | Path | Mapping[str, Any], *, overlap: int | None = None) -> Plan:
    """Read the plan of a campaign.

    Args:
        source: Path of a TOML file, or what such a file holds.
        overlap: Answers of every item, in place of what the plan says.

    Raises:
        InputError: The file cannot be read or is no TOML.
        FaultsError: The plan is faulty; all that is wrong is listed.

    >>> plan = read_plan({
    ...     "name": "moods", "task": {"labels": ["sad", "glad"]}, "pool": {"file": "songs.jsonl"},
    ...     "crowd": {"source": "files"}, "model": {"name": "naive-bayes"},
    ...     "prices": {"per_answer": "0.05"}, "budget": {"money": 20}})
    >>> plan.redundancy.max
    5
    """
    where, content = _content(source)
    if overlap is not None:
        kept = content.get("redundancy", {})
        if isinstance(kept, Mapping):  # else the section says so
            rest = {k: v for k, v in kept.items() if k not in {"min", "max"}}
            content = {**content, "redundancy": {**rest, "overlap": overlap}}
    try:
        plan = Plan.model_validate(content)
        messages = list(contradictions(plan))
    except ValidationError as error:
        faulty = {str(one["loc"][0]) for one in error.errors() if one["loc"]}
        messages = [*_messages(error), *contradictions(_rest(content, faulty))]
    if messages:
        raise FaultsError([Fault(message, where) for message in messages], "the plan is refused")
    return plan


def _content(source: str | Path | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(source, Mapping):
        return "", source
    try:
        return str(source), tomllib.loads(Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, integers of too many digits
        raise InputError(f"{source}: it is no TOML: {error}") from None
    except RecursionError:
        message = "lists or tables are nested too deeply: a plan has tables of keys and values"
        raise InputError(f"{source}: {message}") from None


def _rest(content: Mapping[str, Any], faulty: set[str]) -> Sections:
    """Return the sections without faults."""
    whole = {}
    for name, field in Plan.model_fields.items():
        kind: Any = field.annotation
        if name in content and name not in faulty and _is_section(kind):
            whole[name] = TypeAdapter(kind).validate_python(content[name])
        elif name not in content and not field.is_required():
            whole[name] = field.get_default()
    return Sections(whole)


def _messages(error: ValidationError) -> Iterator[str]:
    """Say what is wrong with every key; a key that may be of several types is told once."""
    seen = set()
    for one in error.errors():
        keys = tuple(key for key in one["loc"] if not _is_type(key))
        path = ".".join(map(str, keys)) or "the plan"
        if path not in seen:
            seen.add(path)
            yield f"{path}: {_message(one, keys)}"


def _message(fault: Any, keys: tuple[int | str, ...]) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(keys)
    if kind == "missing":
        return _WORDS[kind]
    seen = f", not {fault['input']!r}"
    if kind in _WORDS:
        several = any(_is_type(key) for key in fault["loc"])
        return ("must be an amount such as 0.05" if several else _WORDS[kind]) + seen
    if kind == "literal_error":
        return f"must be {context['expected']}{seen}"
    limits = [text.format(context[name]) for name, text in _LIMITS.items() if name in context]
    if limits:
        return f"must be {' and '.join(limits)}{seen}"
    return str(context.get("error", fault["msg"]))


def _unknown(keys: tuple[int | str, ...]) -> str:
    """Name what is allowed in place of an unknown key, and what it looks like."""
    known = list(_section_of(keys[:-1]).model_fields)
    near = difflib.get_close_matches(str(keys[-1]), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no such key: choose from {', '.join(known)}{hint}"


def _section_of(keys: tuple[int | str, ...]) -> type[BaseModel]:
    found: type[BaseModel] = Plan
    for key in keys:
        kind = found.model_fields[str(key)].annotation
        found = next(one for one in (kind, *getattr(kind, "__args__", ())) if _is_model(one))
    return found


def _is_section(kind: Any) -> bool:
    return any(_is_model(one) for one in (kind, *getattr(kind, "__args__", ())))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _is_type(key: int | str) -> bool:
    """Whether part of a path is no key of the file but names one type of several."""
    return str(key) in {"str", "int", "float"} or "function-after" in str(key)
