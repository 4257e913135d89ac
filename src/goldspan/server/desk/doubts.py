"""The items whose labels are least certain: what a requester's minute is worth most on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.server.desk.items import MOST, found_at, gold

if TYPE_CHECKING:
    from goldspan.server.service import Service


def doubts(service: Service, limit: int) -> list[dict[str, Any]]:
    """Give the least certain items, those decided and control questions aside."""
    result = service.engine.live.result
    if result is None:
        return []
    settled = {*gold(service), *service.setting.control}
    bounds = result.crowd.by_item.bounds
    counts = bounds[1:] - bounds[:-1]
    found: list[dict[str, Any]] = []
    for n in np.argsort(result.confidence, kind="stable").tolist():
        if len(found) == min(limit, MOST):
            break
        item = result.crowd.item_ids[n].as_py()
        if item in settled:
            continue
        found.append({
            "item": item,
            **service.work.tasks.shown(item),
            "found": found_at(result, n),
            "answers": int(counts[n]),
        })  # fmt: skip
    return found
