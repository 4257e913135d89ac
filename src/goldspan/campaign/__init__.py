"""Campaigns: from a pool of texts, a crowd and a budget to gold labels, a model and the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.campaign.inputs import read_inputs as read_inputs
    from goldspan.campaign.loop import Campaign as Campaign
    from goldspan.campaign.loop import Steps as Steps
    from goldspan.campaign.parsing import read_plan as read_plan
    from goldspan.campaign.protocols import Decision as Decision
    from goldspan.campaign.results import CampaignRecord as CampaignRecord
    from goldspan.campaign.results import write_exports as write_exports

__getattr__, __dir__, __all__ = lazy(
    __name__, extra="campaign", needs={"pydantic"}, purpose="a campaign's plan"
)
