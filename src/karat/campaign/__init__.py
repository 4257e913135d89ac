"""The whole campaign: pool + crowd + budget → gold, a model and the bill (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.campaign.course import describe_plan
    from karat.campaign.exports import write_exports
    from karat.campaign.forecast import fit_curve
    from karat.campaign.loop import Campaign
    from karat.campaign.parsing import read_plan
    from karat.campaign.plan import Plan
    from karat.campaign.protocols import Decision, Waiting
    from karat.campaign.record import CampaignRecord
    from karat.campaign.setting import Setting, open_setting
    from karat.campaign.steps import Steps

__all__ = [
    "Campaign",
    "CampaignRecord",
    "Decision",
    "Plan",
    "Setting",
    "Steps",
    "Waiting",
    "describe_plan",
    "fit_curve",
    "open_setting",
    "read_plan",
    "write_exports",
]

_HOME = {
    "Campaign": "karat.campaign.loop",
    "CampaignRecord": "karat.campaign.record",
    "Decision": "karat.campaign.protocols",
    "Plan": "karat.campaign.plan",
    "Setting": "karat.campaign.setting",
    "Steps": "karat.campaign.steps",
    "Waiting": "karat.campaign.protocols",
    "describe_plan": "karat.campaign.course",
    "fit_curve": "karat.campaign.forecast",
    "open_setting": "karat.campaign.setting",
    "read_plan": "karat.campaign.parsing",
    "write_exports": "karat.campaign.exports",
}

__getattr__ = lazy(__name__, _HOME)
