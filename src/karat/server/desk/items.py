"""The items that were asked about, a page at a time, and all that is known of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from karat.money import from_micro
from karat.server.errors import Refused
from karat.server.work import FLAG

if TYPE_CHECKING:
    from karat.aggregate import Consensus
    from karat.server.service import Service

STATES = ("all", "open", "done", "flagged", "gold")
MOST = 200
BRIEF = 160
"""Characters of an item in a list."""
LIKELY = 8
"""Labels, or spans, that an item's alternatives name at most."""
GOLD = "adjudicated"
"""Kind of the records of items whose labels the requester decided."""


def page(service: Service, after: str, find: str, state: str, limit: int) -> dict[str, Any]:
    """Give a page of the items.

    Args:
        service: The campaign.
        after: The id of the last item of the page before; "" for the first page.
        find: Only items whose words or id hold this, whatever the case.
        state: Only those that are "open", "done", "flagged" or "gold".
        limit: Most items of the page.

    Raises:
        Refused: There is no such state.
    """
    if state not in STATES:
        raise Refused("invalid", f"{state!r} is none of {', '.join(STATES)}.", 422)
    slots = service.ledger.slots()
    flagged, decided = flags(service), set(gold(service))
    known = set(flagged) if state == "flagged" else decided if state == "gold" else None
    made = _Rows(service, flagged, decided)
    found: list[dict[str, Any]] = []
    more = False
    for row in _in_state(_behind(slots, after), state):
        if known is not None and row["item"] not in known:
            continue
        if not made.holds(row["item"], find.casefold()):
            continue
        if len(found) == min(limit, MOST):
            more = True
            break
        found.append(made.brief(row))
    return {"items": found, "more": more, "total": slots.num_rows}


def one(service: Service, item: str) -> dict[str, Any]:
    """Give all that is known of an item.

    Raises:
        Refused: There is no such item.
    """
    number_of(service, item)
    setting, live = service.setting, service.engine.live
    single = setting.plan.is_single
    answers = service.ledger.given(item)
    return {
        "item": item,
        "kind": "single" if single else "spans",
        **service.work.tasks.shown(item),
        "control": item in setting.control,
        "gold": shown_labels(service, gold(service).get(item)),
        "known": shown_labels(service, setting.control.get(item)),
        "answers": [
            {
                "worker": row.worker, "status": row.status, "counts": row.counts,
                "paid": from_micro(row.cost), "submitted": row.submitted,
                "seconds": None if row.started < 0 else (row.submitted - row.started) / 1000,
                "labels": shown_labels(service, row.labels),
            }
            for row in answers
        ],
        "found": found_labels(live.result, item),
        "skipped": [
            {"worker": row.worker, "reason": row.reason} for row in service.ledger.skipped(item)
        ],
        "flags": flags(service).get(item, []),
    }  # fmt: skip


def number_of(service: Service, item: str) -> int:
    """Give the number of an item in the pool.

    Raises:
        Refused: There is no such item.
    """
    number = service.setting.pool.place.get(item)
    if number is None:
        raise Refused("unknown", f"There is no item {item!r} in the pool.", 404)
    return number


def flags(service: Service) -> dict[str, list[dict[str, str]]]:
    """Give what workers said is wrong, by item."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in service.ledger.records(FLAG).values():
        said = {name: row[name] for name in ("worker", "reason", "note")}
        found.setdefault(row["item"], []).append(said)
    return found


def gold(service: Service) -> dict[str, list[str]]:
    """Give the labels that the requester decided, by item, the last decision of each."""
    return {row["item"]: row["labels"] for row in service.ledger.records(GOLD).values()}


def shown_labels(service: Service, labels: Any) -> Any:
    """Give labels as a page shows them: spans, or one label; None where there are none."""
    if labels is None:
        return None
    if service.setting.plan.is_single:
        return labels[0]
    return service.work.tasks.spans([label or "O" for label in labels])


def found_labels(result: Consensus | None, item: str) -> dict[str, Any] | None:
    """Give what the answers say together: labels with their confidence, and alternatives."""
    if result is None or item not in places(result):
        return None
    n = places(result)[item]
    made: dict[str, Any] = {"confidence": round(float(result.confidence[n]), 4)}
    begin, end = result.crowd.offsets[n : n + 2].tolist()
    made["tokens"] = [round(one, 3) for one in result.token_confidence[begin:end].tolist()]
    if result.crowd.is_classification:
        probs = result.token_probs[n]
        order = np.argsort(-probs, kind="stable")[:LIKELY].tolist()
        made["label"] = result.labels[n]
        made["alternatives"] = [
            {"label": result.tagset.tags[code], "confidence": round(float(probs[code]), 4)}
            for code in order
        ]
        return made
    mine = np.flatnonzero(result.span_array.item == n).tolist()
    rows = result.spans.take(pa.array(mine, pa.int64())).to_pylist()
    names = ("start", "end", "type", "confidence")
    made["spans"] = [{name: _plain(row[name]) for name in names} for row in rows]
    made["alternatives"] = []
    if result.posterior is not None:
        found = result.alternatives(item)
        made["alternatives"] = [
            {name: _plain(getattr(s, name)) for name in names} for s in found[:LIKELY]
        ]
    return made


def places(result: Consensus) -> dict[str, int]:
    """Give the number of every item of a result, worked out once."""
    kept: dict[str, int] | None = result.__dict__.get("_places")
    if kept is None:
        kept = {name: n for n, name in enumerate(result.crowd.item_ids.to_pylist())}
        result.__dict__["_places"] = kept
    return kept


def _plain(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of a page."""

    service: Service
    flagged: dict[str, list[dict[str, str]]]
    decided: set[str]

    def holds(self, item: str, word: str) -> bool:
        """Whether an item's id or its whole text holds a word."""
        if not word or word in item.casefold():
            return True
        return word in self.service.work.tasks.text(item).casefold()

    def brief(self, row: dict[str, Any]) -> dict[str, Any]:
        """Give an item in short."""
        item, result, confidence = row["item"], self.service.engine.live.result, None
        if result is not None and item in places(result):
            confidence = round(float(result.confidence[places(result)[item]]), 4)
        text = self.service.work.tasks.text(item)
        return {
            "item": item,
            "text": text if len(text) <= BRIEF else f"{text[:BRIEF]}…",
            "batch": row["batch"],
            "wanted": row["wanted"],
            "answers": row["filled"],
            "leased": row["leased"],
            "state": "done" if row["filled"] >= row["wanted"] else "open",
            "confidence": confidence,
            "control": item in self.service.setting.control,
            "flags": len(self.flagged.get(item, ())),
            "gold": item in self.decided,
        }


def _behind(slots: pa.Table, after: str) -> pa.Table:
    """Leave what stands behind an item; all, where there is none of this name."""
    place = pc.index(slots["item"], after).as_py() if after else -1
    return slots.slice(place + 1)


def _in_state(slots: pa.Table, state: str) -> Iterator[dict[str, Any]]:
    """Give the rows that are open, or done, some at a time."""
    if state in {"open", "done"}:
        filled = pc.greater_equal(slots["filled"], slots["wanted"])
        slots = slots.filter(filled if state == "done" else pc.invert(filled))
    for batch in slots.to_batches(max_chunksize=MOST):
        yield from batch.to_pylist()
