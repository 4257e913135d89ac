"""Campaigns for the tests of their report: one of single labels that has ended."""

from __future__ import annotations

import pytest

from campaign.tiny import campaign_of, write_files
from goldspan.campaign.results import ReportData, write_exports
from goldspan.report.campaign import render


def page_of(findings):
    return render(
        findings.record, result=findings.result, tested=findings.tested, against=findings.against
    )


@pytest.fixture(scope="session")
def ended(tmp_path_factory):
    """The findings of a campaign of single labels, four rounds long."""
    folder = tmp_path_factory.mktemp("ended")
    write_files(folder, n=44)
    campaign = campaign_of(
        folder,
        control={"n": 4, "gold": "truth.csv", "share": 0.2},
        budget={"money": "14"},
        aggregate={"method": "ds"},
        crowd={"workers": ["flip(0.1) x5", "bad = flip(0.9)"]},
        judging={"answers": 4, "sure": 0.8},
        stop={"target": 0.999, "stable": 0.9999, "least_gain": 1e-9, "rounds": 50},
    )
    campaign.run()
    write_exports(campaign, folder / "out")
    yield ReportData.of(campaign.ledger, campaign.progress.result)
    campaign.ledger.close()


@pytest.fixture(scope="session")
def written(ended):
    """Its report."""
    return page_of(ended)
