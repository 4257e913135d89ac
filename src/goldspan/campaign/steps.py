"""The six steps of a campaign together: those of the plan, and any of them replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from goldspan.campaign.aggregating import Aggregating
from goldspan.campaign.evaluation import Evaluating, measured
from goldspan.campaign.exchange import Files
from goldspan.campaign.models import make_model
from goldspan.campaign.picking import Picking
from goldspan.campaign.protocols import Aggregate, Evaluate, Label, Labels, Model, Select, Stop
from goldspan.campaign.replayed import Replayed
from goldspan.campaign.setting import Setting
from goldspan.campaign.simulated import Simulated
from goldspan.campaign.stopping import Stopping
from goldspan.campaign.web import Web
from goldspan.protocols import Ledger

SOURCES: dict[str, Any] = {"simulated": Simulated, "files": Files, "web": Web, "replay": Replayed}
"""Where answers come from, by the name in the plan."""


@dataclass(frozen=True)
class Steps:
    """The steps; see `goldspan.campaign.protocols`."""

    select: Select
    label: Label
    aggregate: Aggregate
    model: Model
    evaluate: Evaluate
    stop: Stop

    @classmethod
    def of(cls, setting: Setting, ledger: Ledger, **replaced: Any) -> Steps:
        """Make the steps of a plan.

        Args:
            setting: The plan and its files.
            ledger: Where the campaign is kept.
            replaced: Other steps in their places, by name: `stop=MyRule()`.
        """
        plan, codec = setting.plan, setting.codec

        def value(truth: Labels, found: Labels) -> float:
            return measured(truth, found, codec.encoding, plan.seed).value

        made = cls(
            Picking(setting),
            SOURCES[plan.crowd.source](setting, ledger),
            Aggregating(plan),
            make_model(
                plan.model.name, plan.model.params, setting.pool, plan.seed, value,
                single=plan.is_single,
            ),
            Evaluating(setting),
            Stopping(plan),
        )  # fmt: skip
        return replace(made, **replaced)
