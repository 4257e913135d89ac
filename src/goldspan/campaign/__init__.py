"""Campaigns: from a pool of texts, a crowd and a budget to gold labels, a model and the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.campaign.inputs import inputs_as_begun, read_inputs
    from goldspan.campaign.loop import Campaign, Steps
    from goldspan.campaign.parsing import read_plan
    from goldspan.campaign.protocols import Decision
    from goldspan.campaign.results import CampaignRecord, write_exports

__all__ = [
    "Campaign",
    "CampaignRecord",
    "Decision",
    "Steps",
    "inputs_as_begun",
    "read_inputs",
    "read_plan",
    "write_exports",
]

_HOME = {
    "Campaign": "goldspan.campaign.loop",
    "CampaignRecord": "goldspan.campaign.results",
    "Decision": "goldspan.campaign.protocols",
    "Steps": "goldspan.campaign.loop",
    "inputs_as_begun": "goldspan.campaign.inputs",
    "read_inputs": "goldspan.campaign.inputs",
    "read_plan": "goldspan.campaign.parsing",
    "write_exports": "goldspan.campaign.results",
}

__getattr__ = lazy(
    __name__, _HOME, extra="campaign", needs={"pydantic"}, purpose="a campaign's plan"
)
