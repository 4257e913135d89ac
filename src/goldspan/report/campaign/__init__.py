"""The report of a whole campaign."""

from goldspan.report.campaign.page import write_campaign_report

__all__ = ["write_campaign_report"]
