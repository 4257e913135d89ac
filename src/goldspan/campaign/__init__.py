"""Campaigns: from a pool of texts, a crowd and a budget to gold labels, a model and the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.campaign.inputs import CampaignInputs, inputs_as_begun, read_inputs
    from goldspan.campaign.loop import Campaign, Steps
    from goldspan.campaign.parsing import read_plan
    from goldspan.campaign.plan import Plan
    from goldspan.campaign.protocols import Decision, Waiting
    from goldspan.campaign.results import CampaignRecord, write_exports
    from goldspan.campaign.stopping import fit_curve
    from goldspan.campaign.summary import describe_plan

__all__ = [
    "Campaign",
    "CampaignInputs",
    "CampaignRecord",
    "Decision",
    "Plan",
    "Steps",
    "Waiting",
    "describe_plan",
    "fit_curve",
    "inputs_as_begun",
    "read_inputs",
    "read_plan",
    "write_exports",
]

_HOME = {
    "Campaign": "goldspan.campaign.loop",
    "CampaignRecord": "goldspan.campaign.results",
    "Decision": "goldspan.campaign.protocols",
    "Plan": "goldspan.campaign.plan",
    "CampaignInputs": "goldspan.campaign.inputs",
    "Steps": "goldspan.campaign.loop",
    "Waiting": "goldspan.campaign.protocols",
    "inputs_as_begun": "goldspan.campaign.inputs",
    "describe_plan": "goldspan.campaign.summary",
    "fit_curve": "goldspan.campaign.stopping",
    "read_inputs": "goldspan.campaign.inputs",
    "read_plan": "goldspan.campaign.parsing",
    "write_exports": "goldspan.campaign.results",
}

__getattr__ = lazy(__name__, _HOME)
