"""The six steps of a campaign together: those of the plan, and any of them replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from karat.campaign.aggregating import Aggregating
from karat.campaign.evaluation import Evaluating, measured
from karat.campaign.exchange import Files
from karat.campaign.models import make_model
from karat.campaign.picking import Picking
from karat.campaign.protocols import Aggregate, Evaluate, Label, Labels, Model, Select, Stop
from karat.campaign.replayed import Replayed
from karat.campaign.setting import Setting
from karat.campaign.simulated import Simulated
from karat.campaign.stopping import Stopping
from karat.campaign.web import Web
from karat.protocols import Ledger

SOURCES: dict[str, Any] = {"simulated": Simulated, "files": Files, "web": Web, "replay": Replayed}
"""Where answers come from, by the name in the plan."""


@dataclass(frozen=True)
class Steps:
    """The steps; see `karat.campaign.protocols`."""

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
