"""The items that were asked about, a page at a time, and all that is known of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldspan.campaign.clock import WallTimes
from goldspan.money import from_micro
from goldspan.server.errors import Refused
from goldspan.server.people import GOLD
from goldspan.server.work import FLAG

if TYPE_CHECKING:
    from goldspan.aggregate import Consensus
    from goldspan.server.service import Service
    from goldspan.store.paging import Slot

STATES = ("all", "open", "done", "flagged", "gold")
MOST = 200
ROWS = 50
"""Answers, skips and reports each that a page about an item shows."""
BRIEF = 160
"""Characters of an item in a list."""
LIKELY = 8
"""Labels, or spans, that an item's alternatives name at most."""


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
    flagged, decided = flags(service), set(gold(service))
    names = {"flagged": set(flagged), "gold": decided}.get(state)
    limit = min(limit, MOST)
    places = state if state in {"open", "done"} else "all"
    rows = service.desk.finder.rows(after, find, names, places, limit + 1)
    made = _Rows(service, flagged, decided)
    found = made.brief(rows[:limit])
    return {"items": found, "more": len(rows) > limit, "total": service.ledger.n_slots}


def one(service: Service, item: str, page: int = 1) -> dict[str, Any]:
    """Give all that is known of an item, of what people did a page at a time.

    Args:
        service: The campaign.
        item: The item.
        page: Which page of its answers, skips and reports; the first is 1.

    Raises:
        Refused: There is no such item.
    """
    number_of(service, item)
    setting, live = service.setting, service.engine.live
    single = setting.plan.is_single
    answers, skipped = service.ledger.given(item), service.ledger.skipped(item)
    wall, reports = WallTimes(service.ledger), flags(service).get(item, [])
    longest = max(len(answers), len(skipped), len(reports), 1)
    shown = slice((page - 1) * ROWS, page * ROWS)
    return {
        "item": item,
        "kind": "single" if single else "spans",
        **service.work.tasks.shown(item),
        "control": item in setting.control,
        "gold": shown_labels(service, gold(service).get(item)),
        "known": shown_labels(service, setting.control.get(item)),
        "answers": [
            {
                "worker": row.worker,
                "status": "replaced" if row.is_replaced else row.status, "counts": row.counts,
                "paid": from_micro(row.cost) if service.setting.plan.is_paid else None,
                "submitted": wall(row.submitted),
                "seconds": None if row.started < 0 else (row.submitted - row.started) / 1000,
                "labels": shown_labels(service, row.labels),
            }
            for row in answers[shown]
        ],
        "found": found_labels(live.result, item),
        "skipped": [
            {"worker": row.worker, "reason": row.reason} for row in skipped[shown]
        ],
        "flags": reports[shown],
        "n_answers": len(answers), "n_skipped": len(skipped), "n_flags": len(reports),
        "page": page, "pages": -(-longest // ROWS),
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
    (n,) = places(result, [item])
    if result is None or n is None:
        return None
    if result.crowd.is_classification and result.codes[n] < 0:  # nobody answered
        return None
    return found_at(result, n)


def found_at(result: Consensus, n: int) -> dict[str, Any]:
    """Give what the answers to an item of a result say together."""
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
        found = result.alternatives(result.crowd.item_ids[n].as_py())
        made["alternatives"] = [
            {name: _plain(getattr(s, name)) for name in names} for s in found[:LIKELY]
        ]
    return made


def places(result: Consensus | None, items: Sequence[str]) -> list[int | None]:
    """Give the numbers of items in a result, None for those without an answer."""
    if result is None:
        return [None] * len(items)
    found = pc.index_in(pa.array(items, pa.string()), value_set=result.crowd.item_ids)
    return list(found.to_pylist())


def _plain(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True)
class _Rows:
    """Makes the rows of a page."""

    service: Service
    flagged: dict[str, list[dict[str, str]]]
    decided: set[str]

    def brief(self, slots: Sequence[Slot]) -> list[dict[str, Any]]:
        """Give items in short."""
        result = self.service.engine.live.result
        numbers = places(result, [slot.item for slot in slots])
        sure = [None if result is None or n is None else result.confidence[n] for n in numbers]
        return [self._brief(slot, one) for slot, one in zip(slots, sure, strict=True)]

    def _brief(self, slot: Slot, sure: float | None) -> dict[str, Any]:
        item = slot.item
        text = self.service.work.tasks.text(item)
        return {
            "item": item,
            "text": text if len(text) <= BRIEF else f"{text[:BRIEF]}…",
            "batch": slot.batch,
            "wanted": slot.wanted,
            "answers": slot.filled,
            "leased": slot.leased,
            "state": "done" if slot.filled >= slot.wanted else "open",
            "confidence": None if sure is None else round(float(sure), 4),
            "control": item in self.service.setting.control,
            "flags": len(self.flagged.get(item, ())),
            "gold": item in self.decided,
        }
