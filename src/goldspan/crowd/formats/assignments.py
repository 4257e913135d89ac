"""One front end for answers: each is what one worker said about one item, with its place.

Exports of annotation tools and crowdsourcing platforms hold spans or single labels, asked for by
one question or by several. A reader only says where in a record or row these are: it makes an
`Assignment` of each. Here the question is chosen, and its answers become those of a crowd. What was
rejected is not an answer, and counted; known answers of control questions are gold.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from goldspan.crowd.formats.char_spans import CharSpan, cut_fields, is_span, read_span, whole_text
from goldspan.crowd.formats.columns import as_strings, frame_columns
from goldspan.crowd.formats.json_records import EPOCH, Record, collect, only_one, shown
from goldspan.crowd.formats.span_crowd import GOLD, NOTHING_MORE, Facts, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import PREDICTED, is_prediction
from goldspan.crowd.grid import csv_rows, read_delimiter
from goldspan.crowd.guessing import Column
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, InputError
from goldspan.money import to_micro


class Assignment(NamedTuple):
    """What one worker answered about one item, or what is known of it."""

    # Where it stands, with item and worker, perhaps with tokens; without a worker nobody answers
    record: Record
    text: str | None = None  # The text of the item; None where it is shown by its id alone
    answers: Mapping[str, Any] = {}  # By question, see `choices_of` and `spans_of`
    gold: Mapping[str, Any] = {}  # The same of what is known; of several choices each is right
    facts: Facts = NOTHING_MORE
    attributes: Mapping[str, Any] = {}  # Other facts about the item
    rejected: str = ""  # Why it is no answer, such as "rejected"
    group: str | None = None  # The document of the item
    once: bool = False  # Whether no row before may have the item


def read_assignments(
    crowd: SpanCrowd,
    rows: Sequence[Assignment],
    prefix: str = "",
    *,
    single: bool | None = None,
    in_cells: bool = False,
) -> Crowd:
    """Build the crowd of the answers to one question."""
    # `prefix` is what the platform puts before its name; `single`, whether labels are answered and
    # not spans, is guessed where it is not known; `in_cells` says that a cell may list several
    each = [one for row in rows for one in (row.answers, row.gold)]
    question = ""
    with collect(crowd.faults):
        question = _question(crowd, rows, each, prefix)
        if single is None:
            single = is_single(one.get(question) for one in each)
    n_rejected: Counter[str] = Counter()
    judged: set[str] = set()
    for row in counted(rows, crowd.options.progress) if single is not None else ():
        n_rejected[row.rejected] += 1
        with collect(crowd.faults):
            item = _item(crowd, row, single=single)
            if question in row.gold and not (item.id in judged and item.gold is None):
                judged.add(item.id)
                _read_gold(crowd, item, row, row.gold[question], single=single)
            if row.record.worker:
                _read_answer(crowd, item, row, question, single=single)
    crowd.builder.in_cells = in_cells
    del n_rejected[""]
    for why, n in n_rejected.items():
        said = "assignments are not answers" if n > 1 else "assignment is not an answer"
        crowd.builder.notes.append(f"{n} {why} {said}")
    return crowd.build()


def _question(
    crowd: SpanCrowd, rows: Sequence[Assignment], each: Sequence[Mapping[str, Any]], prefix: str
) -> str:
    """Find the question whose answer is the label: of spans, with gold, or else of categories."""
    there = list(dict.fromkeys(name for one in each for name in one))
    if not any(there):
        return ""  # one question, which has no name, or no answer
    named, names = crowd.options.columns.get("label"), there
    if named is None:
        spans = [name for name in there if any(is_spans(one.get(name)) for one in each)]
        names = spans or [name for name in there if any(name in row.gold for row in rows)] or there
        if len(names) > 1 and not spans:
            names = [name for name in names if _is_label(name, each)] or names
    where = rows[0].record.place() if rows else Record({}, crowd.source.name)
    what = "several questions were answered" if named is None else f"no answer {named!r}"
    wanted = None if named is None else named.removeprefix(prefix)
    question = only_one(where, names, what, wanted, prefix) or ""
    if others := [name for name in there if name != question]:
        message = f"only the answers to {question!r} are read, not those to {', '.join(others)}"
        message += f": name another with --columns label={others[0]}, or all with --layer all"
        crowd.builder.notes.append(message)
    return question


def questions(rows: Sequence[Assignment]) -> list[str]:
    """Return the names of the questions that are answered by spans or categories."""
    each = [one for row in rows for one in (row.answers, row.gold)]
    there = dict.fromkeys(name for one in each for name in one if name)
    spans = {name for name in there if any(is_spans(one.get(name)) for one in each)}
    return [name for name in there if name in spans or _is_label(name, each)]


def _is_label(name: str, each: Iterable[Mapping[str, Any]]) -> bool:
    """Whether answers are categories, not comments, times or fractions."""
    column = Column(name, [str(one[name]) for one in each if name in one])
    return column.is_categorical and not column.is_never_label


def _item(crowd: SpanCrowd, row: Assignment, *, single: bool) -> Item:
    record, text = row.record, row.text
    known = crowd.items.get(record.item)
    if text is None:
        if not single and (row.answers or row.gold):
            message = "its spans have no text here: name the field of the texts with columns="
            message += "{'text': …} (--columns text=…), or add the file that has them to the folder"
            raise record.error(message, "text")
        cut = whole_text(record.item)
    elif known is not None and known.cut.text == text:
        cut = known.cut
    else:
        cut = cut_fields(record, text, single=single, rule=crowd.options.tokens)
    return crowd.item(record, cut, group=row.group, attributes=row.attributes, once=row.once)


def _read_gold(crowd: SpanCrowd, item: Item, row: Assignment, known: Any, *, single: bool) -> None:
    record = row.record.at(worker=GOLD)
    right = choices_of(known) if single else []
    if len(right) > 1:
        message = f"{len(right)} answers are right ({', '.join(right)}): no gold is read"
        crowd.leave_out(record, message, "several right answers")
    elif right or not single:
        _add(crowd, item, record, known, NOTHING_MORE, single=single)


def _read_answer(
    crowd: SpanCrowd, item: Item, row: Assignment, question: str, *, single: bool
) -> None:
    record, answer = row.record, row.answers.get(question)
    if is_prediction(record.worker, record.value):
        known = crowd.predicted(item, record, record.find(PREDICTED))
        if known is not None:
            _add(crowd, item, known, answer, NOTHING_MORE, single=single)
    elif row.rejected or answer is None:
        crowd.workers.setdefault(record.worker)
        message = f"the assignment was {row.rejected}: it is not an answer"
        message = message if row.rejected else f"no answer under {question!r}"
        crowd.leave_out(record, message, row.rejected or "no answer")
    else:
        _add(crowd, item, record, answer, row.facts, single=single)


def _add(
    crowd: SpanCrowd, item: Item, record: Record, answer: Any, facts: Facts, *, single: bool
) -> None:
    if single:
        crowd.choose(item, record, choices_of(answer), facts)
    else:
        spans = crowd.place(item, record, spans_of(record, answer))
        crowd.answer_or_gold(item, record, Labels(spans), facts)


# --------------------------------------------------------------------------------------------------
# What an assignment answers to one question.


def is_single(answers: Iterable[Any]) -> bool:
    """Return whether answers are labels and not spans; empty lists may be both."""
    listed = [one for one in answers if one is not None and one not in ([], {})]
    return bool(listed) and not any(map(is_spans, listed))


def is_spans(answer: Any) -> bool:
    """Return whether an answer is a list of spans, or such a list under `entities`.

    >>> is_spans({"entities": []}), is_spans([{"label": "PER", "offset": 0, "length": 3}])
    (True, True)
    >>> is_spans({"label": "glad"}), is_spans([])
    (False, False)
    """
    if isinstance(answer, dict):
        return isinstance(answer.get("entities"), list)
    return isinstance(answer, list) and any(map(is_span, answer))


def spans_of(record: Record, answer: Any) -> list[CharSpan]:
    """Return the spans of an answer, in characters."""
    listed = answer.get("entities") if isinstance(answer, dict) else answer
    if not isinstance(listed, list) or (listed and isinstance(listed[0], str)):
        message = f"expected a list of spans, found {shown(answer)}: if the file mixes spans and "
        raise record.error(f"{message}single labels, split it", "mixed")
    return [one if isinstance(one, CharSpan) else read_span(record, one) for one in listed]


def choices_of(answer: Any) -> list[str]:
    """Return the labels that an answer chooses: one, several, or none.

    >>> choices_of({"glad": True, "sad": False}), choices_of({"labels": ["a", "b"]})
    (['glad'], ['a', 'b'])
    """
    if isinstance(answer, dict):
        if isinstance(answer.get("label"), str):
            return [answer["label"]]
        if isinstance(answer.get("labels"), list):
            return [str(one) for one in answer["labels"]]
        # A radio button may stand in an object of its own: {"on": true}.
        return [name for name, chosen in answer.items() if chosen is True]
    if isinstance(answer, list):
        return [str(one) for one in answer]
    if isinstance(answer, bool):
        return ["true" if answer else "false"]
    return [str(answer)]


def value_of(cell: str) -> Any:
    """Read a cell: JSON where it is an object or a list, a flag, or else text."""
    word = cell.strip()
    if word[:1] in {"[", "{"}:
        try:
            return json.loads(word)
        except (ValueError, RecursionError):
            return word
    return {"true": True, "false": False}.get(word.lower(), word)


# --------------------------------------------------------------------------------------------------
# Tables with a row per assignment.


def table_rows(
    source: Source, options: ReadOptions, needed: Collection[str], may_lack: Collection[str] = ()
) -> list[Record]:
    """Return the rows of a table as records of cells; rows may end before columns `may_lack`."""
    faults: list[Fault] = []
    found: list[Record] = []
    header: list[str] = []
    for line, cells in _lines(source, options):
        if not header:
            header = [cell.strip() for cell in cells]
            absent = [name for name in needed if name not in header]
            if absent:
                message = f"no column {', '.join(absent)} (there are: {', '.join(header)}): is "
                message += "this the results file of the platform?"
                raise FormatError([Fault(message, source.name, 1, kind="column")])
        elif any(cells):
            if len(cells) > len(header) or not {*header[len(cells) :]} <= {*may_lack}:
                message = f"{len(cells)} cells where the header has {len(header)}"
                faults.append(Fault(message, source.name, line, kind="width"))
            found.append(Record(dict(zip(header, cells, strict=False)), source.name, line))
    if faults:
        raise FormatError(faults)
    return found


def _lines(source: Source, options: ReadOptions) -> Iterable[tuple[int, Sequence[str]]]:
    """The cells of every row, that of the names first."""
    if source.table is None:
        mark = read_delimiter(source, options.delimiter)
        return ((line, cells) for line, _, cells in csv_rows(source.text.value, source.name, mark))
    whole = source.table
    table = whole if isinstance(whole, pa.Table) else frame_columns(whole, tuple)
    names = table.column_names
    columns = (as_strings(table.column(name), name, source.name).to_pylist() for name in names)
    return enumerate([names, *zip(*columns, strict=True)])


def cell(row: Record, name: str) -> str:
    """Return a cell that must not be empty."""
    return str(row.required(row.value.get(name, "").strip() or None, name))


def reward(record: Record, name: str, share: int = 1) -> int | None:
    """Return what an assignment earned in millionths, divided among the rows that it has."""
    word = str(record.value.get(name, "")).strip().lstrip("$")
    try:
        return to_micro(word, name) // share if word else None
    except InputError as error:
        raise record.error(str(error), "cost") from None


_WRITTEN = "%a %b %d %H:%M:%S %Y"
_ZONES = {"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
          "PST": -8, "PDT": -7}  # fmt: skip
_SLASHES = re.compile(r"(\d+)/(\d+)/(\d+) (\d+):(\d+)(?::(\d+))?")


def moment(record: Record, name: str) -> int | None:
    """Return a time in milliseconds since 1970.

    It is written as Mon Jan 07 15:54:06 PST 2019, as 1/7/2019 15:54:06 or by ISO 8601, without a
    zone in UTC.
    """
    word = str(record.value.get(name, "")).strip()
    found = _milliseconds(word) if word else None
    if word and found is None:
        message = f"{name} must be a time such as Mon Jan 07 15:54:06 PST 2019 or "
        raise record.error(f"{message}2019-01-07T15:54:06, not {word[:60]!r}", "time")
    return found


@lru_cache(10_000)
def _milliseconds(word: str) -> int | None:
    """Read a time; None if it is not one, or before 1970."""
    parts, slashed = word.split(), _SLASHES.fullmatch(word)
    try:
        if slashed:
            month, day, year, hour, minute, second = (int(one or 0) for one in slashed.groups())
            year += 2000 if year < 100 else 0
            read = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        elif len(parts) == 6:
            zone = timezone(timedelta(hours=_ZONES[parts.pop(4)]))
            read = datetime.strptime(" ".join(parts), _WRITTEN).replace(tzinfo=zone)
        else:
            read = datetime.fromisoformat(word)
            read = read if read.tzinfo else read.replace(tzinfo=UTC)
    except (KeyError, ValueError, OverflowError):
        return None
    return (read - EPOCH) // timedelta(milliseconds=1) if read >= EPOCH else None


def times(crowd: SpanCrowd, record: Record, started: str, submitted: str) -> Facts:
    """Return when an answer was begun and given; a time that is not understood is left unread."""
    found: list[int | None] = []
    for name in (started, submitted):
        try:
            found.append(moment(record, name))
        except FormatError:
            crowd.leave_unread(f"times in {name}", record)
            found.append(None)
    return Facts(started=found[0], submitted=found[1])
