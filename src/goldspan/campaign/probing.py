"""Probes: models that label silently, by whose mistakes people who paste them are found.

What a probe answers is kept in records of the ledger. It takes no place, counts for no label and no
number of answers; what it costs is paid out of the budget like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from goldspan.annotators.registry import KINDS, open_annotator
from goldspan.crowd import Answers, Crowd

if TYPE_CHECKING:
    from contextlib import ExitStack

    from goldspan.annotators.base import AnnotationTask, Annotator
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.protocols import PoolItem
    from goldspan.store import SqlLedger

PROBED = "probed"
"""Kind of the records of what probes answered."""
AT_ONCE = 200
"""Items of a record."""


class Probes:
    """The probes of a plan, asked about the items of a round before anybody else."""

    def __init__(
        self, inputs: CampaignInputs, ledger: SqlLedger, task: AnnotationTask, stack: ExitStack
    ) -> None:
        self.inputs, self.ledger = inputs, ledger
        self.models: dict[str, Annotator] = {
            entry.id: stack.enter_context(open_annotator(entry, task))
            for entry in inputs.plan.workforce
            if entry.probe and entry.kind in KINDS
        }
        self._seen: dict[str, list[str]] | None = None

    def ask(
        self, items: Sequence[str], pool: Callable[[], Mapping[str, PoolItem]], now: int
    ) -> None:
        """Ask about items that were not asked about, gold questions before them, and pay.

        Asked again after a break, nothing is paid twice.
        """
        if not self.models:
            return
        if self._seen is None:
            self._seen = self._settled(now)
        for name, model in self.models.items():
            seen = self._seen.setdefault(name, [])
            known = set(seen)
            control = () if getattr(model.options, "examples", False) else self.inputs.control
            wanted = [item for item in dict.fromkeys((*control, *items)) if item not in known]
            limit = model.entry.limit
            while part := wanted[: AT_ONCE if limit is None else min(AT_ONCE, limit - len(seen))]:
                part = self._payable(model, [pool()[item] for item in part])
                if not part:
                    return
                self._keep(name, model, part, now)
                seen += [item.id for item in part]
                wanted = wanted[len(part) :]

    def _payable(self, model: Annotator, items: Sequence[PoolItem]) -> list[PoolItem]:
        """Return as many items as there is money for the most that they can cost."""
        left, found = self.ledger.totals().left, []
        for item in items:
            left -= model.most(item)
            if left < 0:
                break
            found.append(item)
        return found

    def _keep(self, name: str, model: Annotator, items: Sequence[PoolItem], now: int) -> None:
        labels: dict[str, list[str | None] | None] = {}
        cost = 0
        for answer, item in zip(model.label(items), items, strict=True):
            labels[item.id] = answer.labels(self.inputs.codec, len(item.tokens))
            cost += answer.cost
        facts = {k: v for k, v in model.facts().items() if k in {"model", "prompt"}}
        body: dict[str, Any] = {
            "probe": name,
            "kind": model.entry.kind,
            "family": model.family,
            **facts,
        }
        body |= {"labels": labels, "cost": min(cost, self.ledger.totals().left)}
        n = sum(one["probe"] == name for one in self.ledger.records(PROBED).values())
        key = f"{name}:{n + 1}"
        self.ledger.record(PROBED, key, body, now)
        self._pay(key, body["cost"], now)

    def _pay(self, key: str, cost: int, now: int) -> None:
        """Pay what a record cost, once."""
        if cost:
            self.ledger.charge(f"probe:{key}", cost, now)

    def _settled(self, now: int) -> dict[str, list[str]]:
        """Read what was asked, and pay what a break kept from being paid."""
        seen: dict[str, list[str]] = {}
        last: dict[str, tuple[str, int]] = {}
        for key, one in self.ledger.records(PROBED).items():
            seen.setdefault(one["probe"], []).extend(one["labels"])
            last[one["probe"]] = key, one["cost"]
        for key, cost in last.values():
            self._pay(key, cost, now)
        return seen


def probes_of(ledger: SqlLedger, crowd: Crowd) -> Crowd | None:
    """Return the answers of probes to the items of a crowd, as a crowd; None without any."""
    rows = list(ledger.records(PROBED).values())
    if not rows:
        return None
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    names = list(dict.fromkeys(row["probe"] for row in rows))
    found: list[tuple[int, int, list[Any]]] = [
        (place[item], names.index(row["probe"]), labels)
        for row in rows
        for item, labels in row["labels"].items()
        if item in place and labels is not None
    ]
    found.sort(key=lambda one: one[:2])
    codes = [crowd.tagset.index[tag] for *_, labels in found for tag in labels]
    bounds = np.concatenate([[0], np.cumsum([len(one[2]) for one in found])])
    answers = Answers(
        np.array([one[0] for one in found], np.int32),
        np.array([one[1] for one in found], np.int32),
        bounds.astype(np.int64),
        np.array(codes, np.int16),
        np.zeros(len(found), np.int16),
    )
    return Crowd(
        item_ids=crowd.item_ids,
        tokens=crowd.tokens,
        worker_ids=pa.array(names, pa.string()),
        tagset=crowd.tagset,
        answers=answers,
    )
