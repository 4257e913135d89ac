"""What a report says besides the record: the labels, and how far they can be trusted.

All of it is worked out from the ledger, so that a report can be made again at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.campaign.aggregating import Aggregating
from goldspan.campaign.plan import Plan
from goldspan.campaign.record import CampaignRecord
from goldspan.campaign.setting import Setting
from goldspan.crowd import Crowd
from goldspan.protocols import Ledger

HIDDEN, CONTROL = "the hidden gold", "the control questions"
REVIEWED = "the reviewed items, which were the least certain ones"
"""What labels are compared with."""


@dataclass(frozen=True, eq=False)
class Findings:
    """A campaign as its report tells it; made by `Findings.of`.

    Attributes:
        record: The numbers.
        result: The labels, None without answers.
        tested: Labels in whose crowd stands gold that their method has not seen: that of a
            simulation, the control questions aside; else the control questions themselves, else
            the items that the requester decided on, and labels made without knowing them. None
            where there is none of it.
        against: What that gold is, in words; "" for none.
    """

    record: CampaignRecord
    result: Consensus | None
    tested: Consensus | None
    against: str

    @classmethod
    def of(cls, ledger: Ledger, result: Consensus | None = None) -> Findings:
        """Read them from a ledger.

        Args:
            ledger: Of a campaign that has run, runs or waits.
            result: The labels, where they are known already.

        Raises:
            KeyError: No campaign was ever run over it.
        """
        record = CampaignRecord.of(ledger)
        aggregate = Aggregating(Plan.model_validate(record.plan))
        crowd = ledger.crowd()
        if not crowd.n_items:
            return cls(record, None, None, "")
        made = result or aggregate.labels(crowd)
        hidden = _hidden_gold(ledger, crowd)
        if hidden is not None:
            return cls(record, made, replace(made, crowd=crowd.with_gold(hidden)), HIDDEN)
        if crowd.gold is None or not (crowd.gold >= 0).any():
            return cls(record, made, None, "")
        blind = aggregate.labels(crowd.with_gold(None))
        control = _on_control(ledger, crowd)
        known, against = (crowd.gold, REVIEWED) if control is None else (control, CONTROL)
        return cls(record, made, replace(blind, crowd=crowd.with_gold(known)), against)


def keep_hidden_gold(setting: Setting, ledger: Ledger, now: int) -> None:
    """Keep the truth of a simulation for the report; nothing else ever reads it."""
    if setting.truth is None or ledger.records("hidden"):
        return
    known = setting.truth.tagset.decode_complete(setting.truth.gold_tagged)
    labels = dict(zip(setting.truth.item_ids.to_pylist(), known, strict=True))
    ledger.record("hidden", "gold", {"labels": labels}, now)


def _hidden_gold(ledger: Ledger, crowd: Crowd) -> NDArray[np.int16] | None:
    """Give the truth of the simulation, int16 [n_tokens], -1 at control questions."""
    kept = ledger.records("hidden")
    if not kept:
        return None
    labels, index = kept["gold"]["labels"], crowd.tagset.index
    control = _control_items(ledger)
    codes = np.full(crowd.n_tokens, -1, np.int16)
    for n, name in enumerate(crowd.item_ids.to_pylist()):
        if name not in control and name in labels:
            start, stop = crowd.offsets[n : n + 2].tolist()
            codes[start:stop] = [index.get(label, -1) for label in labels[name]]
    return codes


def _on_control(ledger: Ledger, crowd: Crowd) -> NDArray[np.int16] | None:
    """Return the gold of the control questions alone, int16 [n_tokens]; None without any."""
    control = _control_items(ledger)
    is_control = [name in control for name in crowd.item_ids.to_pylist()]
    if crowd.gold is None or not any(is_control):
        return None
    of_token = np.repeat(is_control, np.diff(crowd.offsets))
    return np.where(of_token, crowd.gold, np.int16(-1)).astype(np.int16)


def _control_items(ledger: Ledger) -> set[str]:
    rows = ledger.slots().to_pylist()
    return {row["item"] for row in rows if row["batch"] == "control"}
