"""The whole campaign: pool + crowd + budget → gold, a model and the bill (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.campaign.course import describe_plan
    from goldspan.campaign.exports import write_exports
    from goldspan.campaign.forecast import fit_curve
    from goldspan.campaign.loop import Campaign
    from goldspan.campaign.parsing import read_plan
    from goldspan.campaign.plan import Plan
    from goldspan.campaign.protocols import Decision, Waiting
    from goldspan.campaign.record import CampaignRecord
    from goldspan.campaign.setting import Setting, as_begun, open_setting
    from goldspan.campaign.steps import Steps

__all__ = [
    "Campaign",
    "CampaignRecord",
    "Decision",
    "Plan",
    "Setting",
    "Steps",
    "Waiting",
    "as_begun",
    "describe_plan",
    "fit_curve",
    "open_setting",
    "read_plan",
    "write_exports",
]

_HOME = {
    "Campaign": "goldspan.campaign.loop",
    "CampaignRecord": "goldspan.campaign.record",
    "Decision": "goldspan.campaign.protocols",
    "Plan": "goldspan.campaign.plan",
    "Setting": "goldspan.campaign.setting",
    "Steps": "goldspan.campaign.steps",
    "Waiting": "goldspan.campaign.protocols",
    "as_begun": "goldspan.campaign.setting",
    "describe_plan": "goldspan.campaign.course",
    "fit_curve": "goldspan.campaign.forecast",
    "open_setting": "goldspan.campaign.setting",
    "read_plan": "goldspan.campaign.parsing",
    "write_exports": "goldspan.campaign.exports",
}

__getattr__ = lazy(__name__, _HOME)
