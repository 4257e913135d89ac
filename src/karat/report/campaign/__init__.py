"""The report of a whole campaign."""

from karat.report.campaign.page import write_campaign_report

__all__ = ["write_campaign_report"]
