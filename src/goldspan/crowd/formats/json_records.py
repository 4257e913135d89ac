"""JSON objects with their places: the lines of a JSONL file, or the members of one JSON array.

Annotation tools export one object per line, one array of objects, or a folder of such files. Here
they become `Record`s, which know where they are and reject a field of the wrong type in words.
JSON is taken strictly: no NaN, no key twice in one object, no half of a surrogate pair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from goldspan.crowd.guessing import TEXTS
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Progress, Source, Tell
from goldspan.errors import Fault, FaultsError, FormatError, GoldspanError

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".manifest")
TEXT_KEYS = ("text", "content", "sentence", "document", "textContent", "data", *TEXTS[3:])
"""Fields that hold texts."""
MAX_INTEGER = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_ARRAY_START = re.compile(r"\s*\[")
_PAIR_START = re.compile(r'\s*\[\s*"')
_JSON_START = re.compile(r"\s*[\[{]")
_BLANK = re.compile(r"[ \t\n\r]*")


class Record(NamedTuple):
    """One JSON object, and where it stands."""

    value: dict[str, Any]
    file: str = ""
    line: int = 0  # Line on which it begins
    item: str = ""  # Id of the item that it is about, once known
    worker: str = ""  # Id of the worker that it is from, once known

    def at(self, *, item: str | None = None, worker: str | None = None) -> Record:
        """Return the same record with a better known place."""
        item = self.item if item is None else item
        worker = self.worker if worker is None else worker
        return Record(self.value, self.file, self.line, item, worker)

    def place(self) -> Record:
        """Return the place alone, without the object."""
        return Record({}, self.file, self.line, self.item, self.worker)

    def fault(self, message: str, kind: str = "field", token: int = -1) -> Fault:
        """Describe something wrong with this record."""
        return Fault(message, self.file, self.line, self.item, token, self.worker, kind)

    def error(self, message: str, kind: str = "field") -> FormatError:
        """Make the error that rejects this record."""
        return FormatError([self.fault(message, kind)])

    def find(self, *keys: str) -> Any:
        """Return the value of the first of some keys that has one; None if none has."""
        for key in keys:
            value = self.value.get(key)
            if value is not None:
                return value
        return None

    def name(self, *keys: str, may_be_empty: bool = False) -> str | None:
        """Return an id, which may be written as a string or as a whole number."""
        # Of several keys one whose value is an empty string is passed over if a later one has more
        found = self.find(*keys)
        if found is None:
            return None
        if found == "" and not may_be_empty:
            found = next((self.value[key] for key in keys if self.value.get(key)), found)
        if (isinstance(found, str) and (found or may_be_empty)) or type(found) is int:
            return str(found)
        raise self.error(f"field {_first(keys)} must be a name or a number, not {shown(found)}")

    def string(self, *keys: str) -> str | None:
        """Return a string."""
        found = self.find(*keys)
        if found is None or isinstance(found, str):
            return found
        raise self.error(f"field {_first(keys)} must be a string, not {shown(found)}")

    def text(self, *keys: str) -> str | None:
        """Return a text that has at least one visible character."""
        found = self.string(*keys)
        if found is not None and not found.strip():
            raise self.error(f"field {_first(keys)} is empty: leave the item out", "empty-text")
        return found

    def whole(self, key: str, low: int = 0, high: int = MAX_INTEGER) -> int | None:
        """Return a whole number within bounds."""
        found = self.find(key)
        if found is None or (type(found) is int and low <= found <= high):
            return found
        bounds = f"from {low} on" if high == MAX_INTEGER else f"from {low} to {high}"
        raise self.error(f"field {key!r} must be a whole number {bounds}, not {shown(found)}")

    def moment(self, key: str, scale: int = 1) -> int | None:
        """Return a time in milliseconds since 1970, from a number or ISO 8601 (else UTC)."""
        found, moment = self.find(key), -1
        if found is None:
            return None
        if type(found) is int or (type(found) is float and scale > 1 and abs(found) < MAX_INTEGER):
            moment = round(found * scale)
        elif isinstance(found, str):
            with suppress(ValueError):
                read = datetime.fromisoformat(found)
                aware = read if read.tzinfo else read.replace(tzinfo=UTC)
                moment = (aware - EPOCH) // timedelta(milliseconds=1)
        if not 0 <= moment <= MAX_INTEGER:
            raise self.error(f"field {key!r} must be a time from 1970 on, not {shown(found)}")
        return moment

    def items(self, *keys: str) -> list[Any] | None:
        """Return a list."""
        found = self.find(*keys)
        if found is None or isinstance(found, list):
            return found
        raise self.error(f"field {_first(keys)} must be a list, not {shown(found)}")

    def strings(self, *keys: str) -> list[str] | None:
        """Return a list of strings, none of them empty."""
        found = self.items(*keys)
        wrong = [x for x in found or [] if not isinstance(x, str) or not x]
        if wrong:
            message = f"field {_first(keys)} must hold strings, not {shown(wrong[0])}"
            raise self.error(message)
        return found

    def inner(self, value: object, what: str) -> Record:
        """Return an object within this one as a record of the same place."""
        if not isinstance(value, dict):
            raise self.error(f"{what} must be a JSON object, not {shown(value)}")
        return Record(value, self.file, self.line, self.item, self.worker)

    def inners(self, *keys: str) -> list[Record]:
        """Return the objects of a list; none where there is no list."""
        return [self.inner(value, f"each of {_first(keys)}") for value in self.items(*keys) or []]

    def others(self, taken: Collection[str]) -> dict[str, Any]:
        """Return the fields that a format does not know, and those of an object `attributes`."""
        found = {key: value for key, value in self.value.items() if key not in taken}
        more = self.find("attributes")
        return found if more is None else found | self.inner(more, "attributes").value

    def required(self, value: Any, *keys: str) -> Any:
        """Return a value that must be there."""
        if value is None:
            names = " or ".join(map(repr, keys))
            null = [repr(key) for key in keys if self.value.get(key, self) is None]
            if null:
                raise self.error(f"no field {names} with a value: {' and '.join(null)} is null")
            there = ", ".join(key[:40] for key in list(self.value)[:8])
            raise self.error(f"no field {names} (there are: {there})")
        return value


def read_records(source: Source, faults: list[Fault], tell: Tell | None = None) -> Iterator[Record]:
    """Yield the objects of a file, or of the JSON files of a folder in the order of their paths."""
    for value, file, line in read_values(source, faults, tell):
        if isinstance(value, dict):
            yield Record(value, file, line)
        else:
            message = f"expected a JSON object, found {shown(value)}"
            faults.append(Fault(message, file, line, kind="not-an-object"))


def read_values(
    source: Source, faults: list[Fault], tell: Tell | None = None
) -> Iterator[tuple[Any, str, int]]:
    """Yield the values of lines or of an array, of any kind, with their files and lines."""
    files = json_files(source)
    n_lines = [1 + file.data.count(b"\n") for file in files] if tell else [0] * len(files)
    progress, n_before = Progress(tell, sum(n_lines)), 0
    if not files:
        message = f"no {', '.join(JSON_SUFFIXES)} file in the folder: is the path right?"
        faults.append(Fault(message, source.name, kind="empty"))
    for file, n_here in zip(files, n_lines, strict=True):
        with collect(faults):
            text = file.text.value
            # Lines that are lists of a text and its labels are no array
            is_array = _ARRAY_START.match(text) and not _PAIR_START.match(text)
            split = _members if is_array else _lines
            members = split(text, file.name)
            for line, value in members:
                progress.at(n_before + line - 1)
                if isinstance(value, Fault):
                    faults.append(value)
                else:
                    yield value, file.name, line
        n_before += n_here
        progress.at(n_before)


def json_files(source: Source) -> list[Source]:
    """Return the file itself, or the JSON files of a folder."""
    if not source.is_folder:
        return [source]
    return [file for _, file in source.sorted_files() if file.suffix in JSON_SUFFIXES]


def first_objects(source: Source, *, limit: int = 20, unless: str = "") -> list[dict[str, Any]]:
    """Return some objects of a source, for a guess at its format."""
    try:
        if not all(_JSON_START.match(file.text.value) for file in json_files(source)[:1]):
            return []
        found = [record.value for record in islice(read_records(source, []), limit)]
    except GoldspanError:
        return []
    return [] if found and unless in found[0] else found


def text_key(data: Record, but: Collection[str] = ()) -> str:
    """Return the field that holds the text: `text`, or the only string that is not left out."""
    strings = [k for k, v in data.value.items() if isinstance(v, str) and k not in but]
    if "text" in strings or not strings:
        return "text"
    if len(strings) > 1:
        message = f"which field of data is the text: {', '.join(strings[:8])}? Pass columns="
        raise data.error(f"{message}{{'text': …}} (--columns text={strings[0]})", "text")
    return strings[0]


def unfolded(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects that the only object of a file holds, in one list or by their ids."""
    one = found[0] if len(found) == 1 else {}
    if {"fields", "tokens"} & one.keys() or any(isinstance(one.get(key), str) for key in TEXT_KEYS):
        return found
    if one and all(isinstance(value, dict) and value for value in one.values()):
        return [{"id": name, **value} for name, value in one.items()]
    lists = [v for v in one.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    return [row for row in lists[0] if isinstance(row, dict)] if len(lists) == 1 else found


def only_one(
    record: Record, found: Iterable[str], what: str, wanted: str | None, prefix: str = ""
) -> str | None:
    """Return what the labels are read from: the user's choice, or the only one; None for none."""
    names = list(found)
    if wanted in names or (wanted is None and len(names) < 2):
        return wanted or next(iter(names), None)
    message = f"{what} ({', '.join(names) or 'none'}): name one with columns={{'label': …}} "
    first = f"{prefix}{names[0]}" if names else "…"
    raise record.error(f"{message}(--columns label={first})", "controls")


def one_of(names: Iterable[str]) -> str:
    """Note that one of several questions is read, and how the others are."""
    note = f"the first of several questions is read ({', '.join(names)}): name another with "
    return f"{note}--columns label=…, or read all with --layer all"


@contextmanager
def collect(faults: list[Fault]) -> Iterator[None]:
    """Add the faults of an error to a list instead of stopping at it."""
    try:
        yield
    except FaultsError as error:
        faults += error.faults


def keys_of(options: ReadOptions, role: str, *usual: str) -> tuple[str, ...]:
    """Return the keys to look for a role under: the user's name, or the usual ones."""
    return (options.columns[role],) if role in options.columns else usual


def stem(name: str, otherwise: str = "annotator") -> str:
    """Name a worker after a file; bytes and streams have no name."""
    if Path(name).name.startswith("<"):
        return otherwise
    plain = Path(Path(name).name.removesuffix(".gz"))
    return plain.stem if plain.suffix in {*JSON_SUFFIXES, ".zip"} else plain.name


def shown(value: object) -> str:
    """Show a value in a message, with its kind, and never at length."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {"str": "the string", "dict": "the object", "list": "the list"}
    kind = kinds.get(type(value).__name__, "the number")
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{kind} {text if len(text) <= 60 else text[:57] + '…'}"


def _first(keys: tuple[str, ...]) -> str:
    return repr(keys[0])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} appears twice in one object")
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number: write null where a value is not known")


_NOT_CLOSED = "Unterminated string starting at"
_SAID = {
    _NOT_CLOSED: "a string begins there that is not closed",
    "Invalid control character at": "a control character, such as a line end, within a string",
}
"""What the messages of the standard library mean that end with a place."""
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_reject_constant)


def _lines(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """One value per line; a single object may be spread over all lines."""
    start = _blank_end(text, 0)
    if text.startswith("{", start):
        value, end = _decode(text, start, file)
        if not isinstance(value, Fault) and _blank_end(text, end) == len(text):
            yield 1 + text.count("\n", 0, start), value
            return
    for number, line in enumerate(_split(text), start=1):
        if line.strip():
            value, end = _decode(line, _blank_end(line, 0), file, number)
            if not isinstance(value, Fault) and line[end:].strip():
                message = f"broken JSON in column {end + 1}: something follows the value"
                value = Fault(message, file, number, kind="json")
            yield number, value


def _split(text: str) -> Iterator[str]:
    """The lines of a text, without copying all of it: a guess at the format reads only a few."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _members(text: str, file: str) -> Iterator[tuple[int, Any]]:
    place, line = text.index("[") + 1, 1
    counted = 0
    while True:
        place = _blank_end(text, place)
        line, counted = line + text.count("\n", counted, place), place
        if text[place : place + 1] == "]" and not text[place + 1 :].strip():
            return
        value, place = _decode(text, place, file)
        yield line, value
        if isinstance(value, Fault):
            return
        place = _blank_end(text, place)
        if text[place : place + 1] == ",":
            place += 1
        elif text[place : place + 1] != "]" or text[place + 1 :].strip():
            row = text.count("\n", 0, place) + 1
            column = place - text.rfind("\n", 0, place)
            message = f"broken JSON in column {column}: expected ',' or ']' and nothing after it"
            yield row, Fault(message, file, row, kind="json")
            return


def _decode(text: str, place: int, file: str, line: int = 0) -> tuple[Any, int]:
    """The value at a place and where it ends, or what is wrong with it."""
    try:
        value, end = _DECODER.raw_decode(text, place)
        if _HALF_PAIR.search(text, place, end):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        said = _SAID.get(error.msg, error.msg)
        cut = ": is it cut off there?" if error.msg == _NOT_CLOSED or error.pos >= len(text) else ""
        message = f"broken JSON in column {error.colno}: {said}{cut}"
        return Fault(message, file, line or error.lineno, kind="json"), place
    except UnicodeEncodeError:
        message = "a string holds half of a surrogate pair: it was cut within a character"
    except RecursionError:
        message = "the JSON is nested too deeply"
    except ValueError as error:
        message = str(error).split(";")[0]
    else:
        return value, end
    return Fault(message, file, line or text.count("\n", 0, place) + 1, kind="json"), place


def _blank_end(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place
