"""The whole campaign: pool + crowd + budget → gold, a model and the bill (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.campaign.course import describe_plan
    from goldspan.campaign.loop import Campaign, Steps
    from goldspan.campaign.parsing import read_plan
    from goldspan.campaign.plan import Plan
    from goldspan.campaign.protocols import Decision, Waiting
    from goldspan.campaign.results import CampaignRecord, write_exports
    from goldspan.campaign.setting import Setting, as_begun, open_setting
    from goldspan.campaign.stopping import fit_curve

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
    "CampaignRecord": "goldspan.campaign.results",
    "Decision": "goldspan.campaign.protocols",
    "Plan": "goldspan.campaign.plan",
    "Setting": "goldspan.campaign.setting",
    "Steps": "goldspan.campaign.loop",
    "Waiting": "goldspan.campaign.protocols",
    "as_begun": "goldspan.campaign.setting",
    "describe_plan": "goldspan.campaign.course",
    "fit_curve": "goldspan.campaign.stopping",
    "open_setting": "goldspan.campaign.setting",
    "read_plan": "goldspan.campaign.parsing",
    "write_exports": "goldspan.campaign.results",
}

__getattr__ = lazy(__name__, _HOME)
