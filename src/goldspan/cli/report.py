"""`goldspan report`: the report of a campaign, made again from what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, say

if TYPE_CHECKING:
    from goldspan.campaign.results import ReportData
    from goldspan.store import SqlLedger

STORE = "campaign.sqlite"
"""Where a campaign is kept in its folder."""
PAGE = "report.html"


def report(
    out: Annotated[str, typer.Argument(metavar="OUT", help="The folder of `goldspan run --out`.")],
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the campaign is kept, if not in campaign.sqlite in the folder.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="With the workers' ids in place of pseudonyms.")
    ] = False,
    json: r.AsJson = False,
) -> None:
    """Make the report of a campaign again: OUT/report.html, also while it runs or waits.

    Workers who came by a browser have pseudonyms, unless --names is given.

    With --json the campaign's numbers are printed, and nothing is written.

    Examples:

      goldspan report out/

      goldspan report out/ --store postgresql://localhost/campaign --json
    """
    check_part("campaign")
    if not json:
        check_part("report")
    from goldspan.campaign.results import CampaignRecord, ReportData
    from goldspan.cli.served import told_of_damage

    with told_of_damage(store or Path(out) / STORE), open_campaign(out, store) as ledger:
        ledger.check_facts()
        if json:
            record = CampaignRecord.of(ledger)
            emit_json((record if names else without_names(ledger, record)).to_dict())
            return
        findings = ReportData.of(ledger)
        page = write_page(findings if names else without_names(ledger, findings), out)
        say(f"written: {page}")


def without_names(ledger: SqlLedger, what: Any) -> Any:
    """Return a record, or findings, with pseudonyms in place of people's ids, if there are any."""
    if not ledger.is_private:
        return what
    from goldspan.campaign.results import CampaignRecord
    from goldspan.web.desk.downloads import Pseudonyms

    names = Pseudonyms(None, "", ledger.pseudonyms)
    return names.record(what) if isinstance(what, CampaignRecord) else names.findings(what)


def open_campaign(out: str, store: str | None) -> SqlLedger:
    """Open the ledger of a folder.

    Raises:
        InputError: It holds none, or one over which no campaign was run.
    """
    from goldspan.errors import InputError
    from goldspan.store import open_ledger

    place = store or str(Path(out) / STORE)
    if store is None and not Path(place).is_file():
        raise InputError(
            f"{out} holds no campaign: there is no {STORE} in it; give the folder that "
            "`goldspan run --out` wrote to, or --store for a campaign that is kept elsewhere"
        )
    ledger = open_ledger(place)
    try:
        is_begun = "plan" in ledger.records("plan")
    except BaseException:
        ledger.close()
        raise
    if not is_begun:
        ledger.close()
        raise InputError(f"{place} holds a campaign that never ran: `goldspan run` begins it")
    return ledger


def missing_for_pages() -> str:
    """Return what the report of a campaign takes and is not installed; "" if all of it is."""
    from goldspan.errors import MissingExtraError

    try:
        check_part("report")
    except MissingExtraError as error:
        return str(error)
    return ""


def write_findings(findings: ReportData, path: Path) -> None:
    """Write the report of a campaign to a file: what a server's downloads are given."""
    from goldspan.report.campaign import write_campaign_report

    write_campaign_report(
        findings.record,
        path,
        result=findings.result,
        tested=findings.tested,
        against=findings.against,
    )


def write_page(findings: ReportData, out: str) -> str:
    """Write the report of a campaign into its folder, and give its path.

    Raises:
        InputError: The folder cannot be made, or the file not written.
        MissingExtraError: What pictures and pages take is not installed.
    """
    from goldspan.errors import InputError

    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}") from None
    page = Path(out) / PAGE
    write_findings(findings, page)
    return str(page)
