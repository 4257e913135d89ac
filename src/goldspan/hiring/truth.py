"""What answers are judged by: known labels, a result's posterior, or known labels before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.gold import attach_gold, recode, translate, with_gold_labels
from goldspan.crowd.labels import joined
from goldspan.errors import FormatError, InputError, UnknownNameError
from goldspan.hiring.gold_notes import notes_on_gold

SEVERAL = ("refuse", "any")
"""What an item with several different known labels is."""
_ITEM = ("item", "task", "item_id", "task_id", "id", "question")
_LABEL = ("gold", "label", "truth", "answer", "tag")


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the truth of a crowd.

    Attributes:
        crowd: The crowd, its tags joined with those of the truth.
        gold: int16 [n_truths, n_tokens], known tags, -1 unknown; the rows after the first hold
            other tags that are right too. No row where nothing is known.
        result: The consensus, or None.
        notes: What of the gold does not suit the answers, in sentences.
    """

    crowd: Crowd
    gold: NDArray[np.int16]
    result: Consensus | None
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether a token has gold, bool [n_tokens]."""
        if not len(self.gold):
            return np.zeros(self.crowd.n_tokens, np.bool_)
        return np.asarray(self.gold[0] >= 0)

    @property
    def source(self) -> str:
        """What judges: "gold", "crowd", or "both"."""
        if self.result is None:
            return "gold"
        known = self.known
        return "crowd" if not known.any() else "gold" if known.all() else "both"

    def codes(self) -> NDArray[np.int16]:
        """Give the gold and, in items without any, the labels of the result, int16 [n_tokens]."""
        first = self.gold[0] if len(self.gold) else np.full(self.crowd.n_tokens, -1, np.int16)
        if self.result is None:
            return first
        found = translate(self.result.codes, self.result.tagset, self.crowd.tagset)
        return np.where(self.with_gold(), first, found).astype(np.int16)

    def with_gold(self) -> NDArray[np.bool_]:
        """Whether a token belongs to an item with gold, bool [n_tokens]."""
        lengths = np.diff(self.crowd.offsets)
        before = np.concatenate([[0], np.cumsum(self.known)])[self.crowd.offsets]
        return np.repeat(np.diff(before) > 0, lengths)


def find_truth(crowd: Crowd, gold: Any, result: Consensus | None, several: str = "refuse") -> Truth:
    """Put together what is known.

    Args:
        crowd: The crowd.
        gold: Known labels, as `measure_reliability` takes them; None for the crowd's own.
        result: A result of this crowd, or None.
        several: "refuse" or "any".

    Raises:
        InputError: Nothing is known, the result is of other items, gold cannot be read, or nobody
            gave any of its labels.
    """
    if several not in SEVERAL:
        raise UnknownNameError("rule for several truths", several, SEVERAL)
    if result is not None:
        _check_same(crowd, result)
        crowd = recode(crowd, joined(crowd.tagset, result.tagset))
    if gold is None:
        none = np.zeros((0, crowd.n_tokens), np.int16)
        rows = none if crowd.gold is None else crowd.gold[None]
    else:
        crowd, rows = _attach(crowd.with_gold(None), gold, several)
    if result is None and not (rows >= 0).any():
        raise InputError(
            "there is nothing to judge the workers by: give known labels (gold=), or a result of "
            "the crowd (result=goldspan.aggregate(crowd, …))"
        )
    return Truth(crowd, rows, result, notes_on_gold(crowd, rows))


def _check_same(crowd: Crowd, result: Any) -> None:
    if not isinstance(result, Consensus):
        kind = type(result).__name__
        raise InputError(f"result must be a Consensus of goldspan.aggregate(…), not {kind}")
    other = result.crowd
    if other.n_tokens != crowd.n_tokens:
        raise InputError(f"the result is of another crowd: it is of {other!r}, this is {crowd!r}")
    if not other.item_ids.equals(crowd.item_ids):
        raise InputError("the result is of another crowd: its items are not those of this one")


def _attach(crowd: Crowd, gold: Any, several: str) -> tuple[Crowd, NDArray[np.int16]]:
    if isinstance(gold, Mapping):
        return _layers(crowd, _of_mapping(crowd, gold, several), "<mapping>")
    if several == "any" and crowd.is_classification and not isinstance(gold, Crowd):
        return _layers(crowd, _of_rows(gold), "the gold")
    try:
        found = attach_gold(crowd, gold, ReadOptions())
    except FormatError as error:
        if not any(fault.kind == "contradictory-gold" for fault in error.faults):
            raise
        hint = 'an item has several truths: leave one, or pass several="any" to count each as right'
        raise FormatError(error.faults, hint) from None
    return found, found.gold_tagged.codes[None]


def _of_mapping(crowd: Crowd, gold: Mapping[Any, Any], several: str) -> dict[str, list[Any]]:
    """Give the truths of every item: of single labels strings, else tags in order."""
    if not crowd.is_classification:
        return {str(item): [list(tags)] for item, tags in gold.items()}
    found = {
        str(item): [str(label)]
        if isinstance(label, str) or not isinstance(label, Iterable)
        else list(dict.fromkeys(map(str, label)))
        for item, label in gold.items()
    }
    many = [item for item, labels in found.items() if len(labels) > 1]
    if many and several == "refuse":
        some = "1 item has" if len(many) == 1 else f"{len(many)} items have"
        raise InputError(
            f"{some} several truths (first: {many[0]!r}): leave one, or pass "
            'several="any" to count each as right'
        )
    return found


def _of_rows(gold: Any) -> dict[str, list[Any]]:
    """Read a table with columns item and label; an item may have several rows."""
    from goldspan.crowd.formats.long.columns import as_strings, frame_columns
    from goldspan.crowd.grid import read_grid
    from goldspan.crowd.source import open_source

    if hasattr(gold, "columns") or hasattr(gold, "column_names"):
        table = frame_columns(gold, lambda names: names)
        names = table.column_names
        item, label = (
            as_strings(table.column(_column(names, role)), _column(names, role), "<DataFrame>")
            for role in (_ITEM, _LABEL)
        )
    else:
        grid = read_grid(open_source(gold), None)
        item, label = (grid.column(_column(grid.header, role)) for role in (_ITEM, _LABEL))
    found: dict[str, dict[str, None]] = {}
    for key, value in zip(item.to_pylist(), label.to_pylist(), strict=True):
        found.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in found.items()}


def _column(names: Sequence[str], usual: tuple[str, ...]) -> str:
    lower = {name.lower(): name for name in names}
    for name in usual:
        if name in lower:
            return lower[name]
    raise InputError(
        f"gold needs columns item (or task) and label; the table has {', '.join(names)}"
    )


def _layers(
    crowd: Crowd, truths: Mapping[str, list[Any]], name: str
) -> tuple[Crowd, NDArray[np.int16]]:
    """Attach the first truth of every item, then the second, and so on."""
    ids = crowd.item_ids.to_pylist()
    hit = sum(key in truths for key in ids)
    if not hit:
        first = next(iter(truths), "")
        raise InputError(f"{name}: none of its {len(truths)} items is in the crowd ({first!r})")
    rows: list[NDArray[np.int16]] = []
    for depth in range(max(map(len, truths.values()))):
        labels = _flat(crowd, ids, truths, depth)
        found = with_gold_labels(crowd, labels, ReadOptions(), name)
        rows = [translate(row, crowd.tagset, found.tagset) for row in rows]
        rows.append(found.gold_tagged.codes)
        crowd = found.with_gold(None)
    note = f"gold for {hit} of {len(ids)} items; {len(truths) - hit} others in {name}"
    report = crowd.import_report
    crowd = replace(crowd, import_report=replace(report, notes=(*report.notes, note)))
    return crowd.with_gold(rows[0]), np.stack(rows)


def _flat(
    crowd: Crowd, ids: list[str], truths: Mapping[str, list[Any]], depth: int
) -> list[str | None]:
    """Give the tags of all tokens in order, None where the item has no such truth."""
    flat: list[str | None] = []
    for key, length in zip(ids, np.diff(crowd.offsets).tolist(), strict=True):
        known = truths.get(key, [])
        tags = known[depth] if depth < len(known) else [None] * length
        tags = [tags] if isinstance(tags, str) else tags
        if len(tags) != length:
            raise InputError(f"gold of item {key!r} has {len(tags)} tags for {length} tokens")
        flat += tags
    return flat
