"""Which columns of a wide table describe the item, and which are workers."""

from __future__ import annotations

from dataclasses import dataclass

from goldspan.crowd.grid import Grid
from goldspan.crowd.options import ReadOptions
from goldspan.errors import Fault, FormatError

TOKEN = ("token", "word", "tokens", "words")
_ITEM = ("item", "id", "item_id", "sentence_id", "sent_id", "task")
_DOC = ("doc", "document", "doc_id", "group")
_SENT = ("sent", "sentence", "sentence_number")
_GOLD = ("gold", "truth", "true")


@dataclass(frozen=True)
class Columns:
    """Places of the columns in the header; None for those that are not there."""

    token: int
    gold: int | None
    item: int | None
    doc: int | None
    sent: int | None
    attributes: tuple[int, ...]
    workers: tuple[int, ...]


def find_columns(grid: Grid, options: ReadOptions) -> Columns:
    """Find the columns by the user's names for them or by the usual ones.

    Raises:
        FormatError: There is no token column, or no column of a name that the user gave.
    """

    def find(role: str, names: tuple[str, ...]) -> int | None:
        wanted = options.columns.get(role)
        if wanted is not None:
            if wanted not in grid.header:
                message = f"there is no column {wanted!r}: the header has {', '.join(grid.header)}"
                raise FormatError([Fault(message, file=grid.name, line=1, kind="header")])
            return grid.header.index(wanted)
        lower = [name.lower() for name in grid.header]
        return next((lower.index(name) for name in names if name in lower), None)

    token = find("token", TOKEN)
    if token is None:
        message = (
            f"no token column in the header ({', '.join(grid.header[:8])} …): "
            "name it with columns={'token': …} (--columns token=NAME)"
        )
        raise FormatError([Fault(message, file=grid.name, line=1, kind="header")])
    gold = find("gold", _GOLD)
    first = max(token, gold if gold is not None else 0) + 1
    workers = tuple(range(first, len(grid.header)))
    if options.workers is not None:
        absent = [name for name in options.workers if name not in grid.header]
        if absent:
            message = f"there is no worker column {absent[0]!r}"
            raise FormatError([Fault(message, file=grid.name, line=1, kind="header")])
        workers = tuple(grid.header.index(name) for name in options.workers)
    found = (find("item", _ITEM), find("doc", _DOC), find("sent", _SENT))
    item, doc, sent = (None if c in workers else c for c in found)
    used = {token, gold, item, doc, sent, *workers}
    # Columns behind the token that --workers does not name are neither workers nor attributes.
    attributes = tuple(c for c in range(first) if c not in used)
    return Columns(token, gold, item, doc, sent, attributes, workers)
