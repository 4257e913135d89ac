"""What results show of themselves in a notebook: pandas DataFrames, tables, texts with their spans.

The HTML has no style sheet and no script: it takes the colour of the text from the page and paints
with transparent colours, so that it suits light and dark themes. Whatever comes from data is
escaped.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from goldspan.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_ITEMS = 20
"""Items that are shown."""
MOST_CHARACTERS = 1200
"""Characters of an item's text that are shown."""

_CELL = "padding: .25em .7em; vertical-align: baseline; text-align: {align}"
_SHORT = 30
"""Characters of a cell that is not broken into lines."""
_TEXT = (
    "white-space: pre-wrap; overflow-wrap: anywhere; max-width: 50em; line-height: 1.9; "
    "text-align: start"
)
_MARK = (
    "color: inherit; background: hsl({hue} 80% 50% / .22); border-bottom: 2px solid "
    "hsl({hue} 60% 50%); border-radius: 3px; padding: .1em .15em"
)
_LABEL = (
    "font-size: .75em; font-weight: 600; padding: 0 .3em; white-space: nowrap; user-select: none"
)


class MarkedSpan(NamedTuple):
    """A span of a text that is shown."""

    start: int
    end: int  # One past the last character
    label: str
    hue: int  # Of its colour, 0 to 359
    confidence: float | None = None  # From 0 to 1, None where there is none


class Html(str):
    """HTML that is shown as it is; any other cell of a table is escaped."""

    __slots__ = ()


class Page(str):
    """A whole page of HTML, which a notebook shows in a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return how long it is: not even a shell should print all of it."""
        return f"Page of {len(self):,} characters"

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 40em; border: 0"
        return f"<iframe srcdoc='{html.escape(self)}' title='Report' style='{style}'></iframe>"


def printable(text: str) -> str:
    r"""Show what HTML forbids or what turns words round as a mark; end other changes of direction.

    >>> printable("a\0b") == "a\ufffdb", printable("\u202etxt\u2067") == "\ufffdtxt\u2067\u2069"
    (True, True)
    """
    if text.isprintable():
        return text
    marks = (
        "\ufffd" if unicodedata.category(one) in _BAD and one not in "\t\n" else one for one in text
    )
    shown = "".join(marks).translate(_TURNS)
    return shown + "\u2069" * len(_ISOLATES.findall(shown)) + "\u202c" * len(_EMBEDS.findall(shown))


_BAD = {"Cc", "Cs"}
_TURNS = dict.fromkeys((0x202D, 0x202E), "\ufffd")
_ISOLATES, _EMBEDS = re.compile("[\u2066-\u2068]"), re.compile("[\u202a\u202b]")


def _escape(text: str) -> str:
    return html.escape(printable(text))


def data_frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a pandas DataFrame.

    Whole numbers and truth values stay what they are where some are missing, as Int64 and boolean.
    """
    import pyarrow as pa

    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingExtraError("pandas", "", "to_pandas()") from None
    frame: pd.DataFrame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not column.null_count:
            continue
        if pa.types.is_integer(column.type):
            frame[name] = pd.array(column.to_pylist(), dtype="Int64")
        elif pa.types.is_boolean(column.type):
            frame[name] = pd.array(column.to_pylist(), dtype="boolean")
    return frame


def hue_of(number: int) -> int:
    """Return the colour of the label with this number; neighbours differ by the golden angle.

    >>> [hue_of(n) for n in range(4)]
    [210, 348, 125, 263]
    """
    return round(210 + 137.508 * number) % 360


def block(title: str, facts: Sequence[str], *parts: str) -> str:
    """Return a title, a line of facts, and what is shown below them."""
    line = " · ".join([f"<b>{_escape(title)}</b>", *map(_escape, facts)])
    return f"<div><p>{line}</p>{''.join(parts)}</div>"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],  # Cells: text, numbers, None, or `Html`
    n_rows: int,  # How many rows there are in all
    what: str,  # What the rows are, for the note
    most: int = MOST_ITEMS,  # How many are shown
) -> str:
    """Return an HTML table of the first rows, with a note how many more there are."""
    shown = [row for _, row in zip(range(most), rows, strict=False)]
    right = [
        any(isinstance(row[n], int | float) for row in shown) and head[n] != "item"
        for n in range(len(head))
    ]
    aligned = [_CELL.format(align="right" if is_right else "left") for is_right in right]
    lines = ["<table class='dataframe' style='border-collapse: collapse'><thead><tr>"]
    lines += [
        f"<th style='{style}'>{_escape(name)}</th>"
        for name, style in zip(head, aligned, strict=True)
    ]
    lines.append("</tr></thead><tbody>")
    for row in shown:
        cells = (
            f"<td style='{style}'>{_cell(cell)}</td>"
            for cell, style in zip(row, aligned, strict=True)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table>")
    if n_rows > len(shown):
        lines.append(f"<p>… and {n_rows - len(shown):,} more {_escape(what)}</p>")
    return "".join(lines)


def marked(text: str, spans: Iterable[MarkedSpan]) -> Html:
    """Return a text with its spans marked in colour, each with its label and confidence.

    A long text ends after `MOST_CHARACTERS`, or after the span that holds that place.
    """
    parts, place = [], 0
    for span in spans:
        if span.start >= MOST_CHARACTERS:
            break
        sure = "" if span.confidence is None else f" {span.confidence:.2f}"
        label = f"<span dir='ltr' style='{_LABEL}'>{_escape(span.label)}{sure}</span>"
        parts.append(_escape(text[place : span.start]))
        parts.append(
            f"<mark style='{_MARK.format(hue=span.hue)}'>"
            f"{_escape(text[span.start : span.end])}{label}</mark>"
        )
        place = span.end
    end = max(place, min(len(text), MOST_CHARACTERS))
    parts.append(_escape(text[place:end]))
    if end < len(text):
        parts.append(f"<i> … and {len(text) - end:,} more characters</i>")
    return Html(f"<div dir='auto' style='{_TEXT}'>{''.join(parts)}</div>")


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, Html):
        return str(value)
    if isinstance(value, float):
        return f"{value:.3f}"
    is_count = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if is_count else str(value)
    shown = _escape(text)
    return f"<span style='white-space: nowrap'>{shown}</span>" if len(text) <= _SHORT else shown


def counted(n: int, word: str) -> str:
    """Return a number of things."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"
