"""A campaign: its plan, a run of it, its server and its report."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.commands import Commands
from goldspan.cli.options import (
    STORE,
    AllowCode,
    AsJson,
    Overlap,
    Place,
    PlanRunner,
    RawCsv,
    Store,
    argument,
    at_campaign,
    flag,
    option,
    told_of_damage,
)
from goldspan.cli.output import check_part, emit_json, print_result, say, warn
from goldspan.crowd.atomic import NewPlaces
from goldspan.errors import InputError, MissingExtraError
from goldspan.money import MICRO, from_micro
from goldspan.runners import working
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from rich.text import Text

    from goldspan.campaign import CampaignRecord
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.campaign.protocols import CampaignEvent
    from goldspan.campaign.results import ReportData
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# goldspan plan check


plan = Commands()


@plan.callback()
def root() -> None:
    """Check the plan of a campaign."""


@plan.command(short_help="Show what a plan will do, and what it costs at least and at most.")
def check(source: str = argument("A plan, campaign.toml.", "PLAN"), json: AsJson = False) -> None:
    """Show what a plan will do, and what it costs at least and at most.

    If the plan has faults, all of them are listed.

    Examples:

      goldspan plan check campaign.toml
    """
    check_part("plan")
    from goldspan.campaign.summary import cost_range, describe_plan, plan_warnings

    inputs = Place(source, "out", None).inputs()
    lines = [*describe_plan(inputs), *(f"pool: {note}" for note in inputs.notes)]
    facts: dict[str, Any] = {"id": inputs.key, **cost_range(inputs)}
    if warnings := plan_warnings(inputs):
        lines += [f"warning: {warning}" for warning in warnings]
        facts["warnings"] = warnings
    if inputs.plan.workforce:
        from goldspan.campaign.workforce import expected

        facts["workers"] = [
            {"id": o.id, "kind": o.kind, "family": o.family, "probe": o.probe, **asdict(o.estimate)}
            for o in expected(inputs)
        ]
    print_result(facts, lines, as_json=json)


# --------------------------------------------------------------------------------------------------
# goldspan run


@at_campaign
def run(
    place: Place,
    overlap: Overlap = None,
    raw_csv: RawCsv = False,
    runner: PlanRunner = None,
    allow_code: AllowCode = None,
    json: AsJson = False,
) -> None:
    """Run a campaign until it stops, or until it has to wait for answers from outside.

    A run can be interrupted or killed at any moment: the same command continues where it stopped,
    and ends with the same files.

    Examples:

      goldspan run campaign.toml --out out

      goldspan run campaign.toml --store postgresql://localhost/campaign
    """
    check_part("campaign")
    from goldspan.campaign import Campaign, Steps
    from goldspan.campaign.protocols import Waiting
    from goldspan.campaign.results import ReportData, write_exports
    from goldspan.store.engine import HeldError
    from goldspan.web.opening import open_store

    inputs = place.inputs(overlap=overlap, allow_code=allow_code or [])
    again = ["run", place.plan, *([] if overlap is None else ["--overlap", str(overlap)])]
    again += ["--raw-csv"] * raw_csv
    again += [] if runner is None else ["--runner", runner]
    again += [word for one in allow_code or () for word in ("--allow-code", one)]
    lacks = missing_for_pages()
    if lacks:
        warn(f"goldspan: there will be no {PAGE}: {lacks}")
    try:
        with (
            told_of_damage(place.address),
            NewPlaces(HeldError) as new,
            open_store(
                inputs, place.out, place.store, _begin(inputs), private=False, new=new
            ) as ledger,
            working(runner or inputs.plan.runner or "threads(1)") as where,
        ):
            status = Status.of(inputs, ledger)
            with shown(status, quiet=json) as display, interruptible() as interrupted:
                campaign = Campaign(
                    inputs, ledger, Steps.of(inputs, ledger, where), on_event=display.hear,
                    stop_requested=interrupted,
                )  # fmt: skip
                campaign.begin()
                new.keep()
                found = campaign.run()
                display.show("writing")
                result = campaign.progress.result
                campaign.check_stop()  # a second Ctrl-C leaves an unfinished result
                files = [str(path) for path in write_exports(campaign, place.out, raw_csv=raw_csv)]
                findings = ReportData.of(ledger, result)
                files += [] if lacks else [write_page(findings, place.out)]
            if isinstance(found, Waiting):
                awaited = {"answers": found.answers, "items": found.items}
                record, what = findings.record, counted(found.items, "item")
                given = counted(found.answers, "answer")
                what = f"{given} to {what}" if found.answers else counted(found.items, "check")
                facts = {"waiting": awaited, "warnings": record.warnings, "files": files}
                lines = [
                    *[f"warning: {warning}" for warning in record.warnings],
                    f"waiting for {what}: {found.where}",
                    f"written so far: {', '.join(files)}",
                    f"then run again: {place.command(again)}",
                ]
            else:
                facts = {**findings.record.to_dict(), "files": files}
                lines = [*_summary(findings.record), f"written: {', '.join(files)}"]
            print_result(facts, lines, as_json=json)
    except KeyboardInterrupt:
        warn(
            "goldspan: interrupted; everything is saved, and the same command goes on where it was"
        )
        raise typer.Exit(130) from None


def _begin(inputs: CampaignInputs) -> int:
    """Return the time at which a campaign begins, in milliseconds since 1970."""
    from goldspan.campaign.clock import wall_clock
    from goldspan.simulation.crowd import BEGIN

    crowd = inputs.plan.crowd
    by_itself = crowd.source in {"simulated", "replay", "mixed"}  # on a clock of its own
    by_itself &= not crowd.is_served
    return BEGIN if by_itself else wall_clock()


def _summary(record: CampaignRecord) -> Iterator[str]:
    money, counts = record.money, record.counts
    control = f", {counts['control_answers']} of them to gold questions"
    shown = control if counts["control_answers"] else ""
    items = f"{counts['items']} of {counted(counts['pool'], 'item')}"
    yield f"labelled: {items} by {counted(counts['answers'], 'answer')}{shown}"
    if money is not None:
        unit = f" {money['currency']}" if money["currency"] else ""
        yield f"money: {from_micro(money['spent'])} of {from_micro(money['cap'])}{unit} spent"
    last: Any = record.rounds[-1] if record.rounds else None
    if last is not None:
        # How good the labels and the model are, as far as it is known
        name = record.measure
        truth, score = last["truth"], last["score"]
        if truth is not None:
            yield f"{name} of the labels against the hidden gold: {100 * truth['labels']:.1f}"
            if truth["model"] is not None:
                yield f"{name} of the model on the rest of the pool: {100 * truth['model']:.1f}"
        if score is not None:
            bounds = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
            yield f"{name} of the model: {100 * score['value']:.1f} ({bounds})"
    if money is not None:
        each = f"{counted(record.plan['redundancy']['max'], 'answer')} each"
        if money["fixed"]:
            fixed = f"the {from_micro(money['fixed'])}{unit} that these items cost with {each}"
            yield f"saved: {100 * money['saving']:.0f} % of {fixed}"
        yield f"all items with {each} would cost {from_micro(money['everything'])}{unit}"
        if "mistakes" in money:
            waiting, wrong = money["waiting"], money["mistakes"]
            yield (
                f"together: {from_micro(money['spent'] + waiting + wrong)}{unit}, of which "
                f"{from_micro(waiting)} for the wait and {from_micro(wrong)} for mistakes"
            )
    if record.stop is not None:
        cost = (record.certificate or {}).get("cost") or ""
        yield f"stopped: {record.stop['why']}{cost}"
    yield from [f"warning: {warning}" for warning in record.warnings]


# --------------------------------------------------------------------------------------------------
# goldspan report


PAGE = "report.html"


def report(
    out: str = argument("The folder of `goldspan run --out`.", "OUT"),
    store: Store = None,
    names: bool = flag("Show the workers' ids instead of pseudonyms.", "--names"),
    annotators: str | None = option(
        "Show the names of this table instead, one id,name per line.", metavar="FILE"
    ),
    methods: bool = flag("Print two paragraphs for the methods section of a paper.", "--methods"),
    json: AsJson = False,
) -> None:
    """Write the report of a campaign, OUT/report.html, even while it runs or waits.

    Workers who labelled in a browser appear by pseudonyms, unless --names or --annotators is given:
    such a report names people, so keep it to yourself.

    With --json the campaign's numbers are printed, with --methods what a paper can quote of them;
    nothing is written.

    Examples:

      goldspan report out/

      goldspan report out/ --store postgresql://localhost/campaign --json
    """
    check_part("campaign")
    if not json and not methods:
        check_part("report")
    from goldspan.campaign.results import ReportData

    with told_of_damage(store or Path(out) / STORE), open_campaign(out, store) as ledger:
        ledger.check_facts()
        findings = _renamed(ledger, ReportData.of(ledger), names, annotators)
        if methods:
            from goldspan.report import methods_text

            if findings.result is None:
                raise InputError(f"{out}: nobody has answered anything yet")
            text = methods_text(findings.result, record=findings.record)
            print_result({"methods": text}, ["\n\n".join(text)], as_json=json)
            return
        if json:
            emit_json(findings.record.to_dict())
            return
        say(f"written: {write_page(findings, out)}")


def _renamed(ledger: SqlLedger, findings: ReportData, names: bool, table: str | None) -> ReportData:
    """Call workers by the names of a table, by their ids, or by pseudonyms if they have any."""
    if table is None and (names or not ledger.is_private):
        return findings
    from goldspan.web.desk.downloads import Pseudonyms, people_of
    from goldspan.web.providers.invitations import read_names

    known = people_of(ledger) if table is None else read_names(table)
    return Pseudonyms(None, "", lambda: known).findings(findings)


def open_campaign(out: str, store: str | None) -> SqlLedger:
    """Open the ledger of a folder."""
    from goldspan.store import open_ledger
    from goldspan.web.opening import LABELS, list_of

    place = store or str(Path(out) / STORE)
    if store is None and not Path(place).is_file():
        raise InputError(
            f"{out} holds no campaign: there is no {STORE} in it; give the folder that "
            "`goldspan run --out` wrote to, or --store for a campaign that is stored elsewhere"
        )
    ledger = open_ledger(place)
    ledger.labels_folder = list_of(out, store).with_suffix(LABELS)
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
    try:
        check_part("report")
    except MissingExtraError as error:
        return str(error)
    return ""


def write_findings(findings: ReportData, path: Path) -> None:
    """Write the report of a campaign to a file: what a server's downloads are given."""
    from goldspan.report.campaign import write_campaign_report

    write_campaign_report(
        findings.record, path, result=findings.result, tested=findings.tested,
        against=findings.against,
    )  # fmt: skip


def write_page(findings: ReportData, out: str) -> str:
    """Write the report of a campaign into its folder, and give its path."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}") from None
    page = Path(out) / PAGE
    write_findings(findings, page)
    return str(page)


# --------------------------------------------------------------------------------------------------
# What `goldspan run` shows while it works, and how Ctrl-C ends it.
#
# On a terminal a few lines say how far the campaign is; elsewhere each event is a line.


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait for the end of a step; give whether it was typed. A second one does not wait.

    The campaign asks between two steps, see `goldspan.campaign.Campaign`.
    """
    typed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield typed.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        typed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield typed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class Status:
    """How far a campaign is, kept up to date by its events."""

    name: str
    measure: str  # What its scores are
    currency: str
    pool: int  # Items in all, without the gold questions
    cap: int | None  # What may be spent, in millionths; None where nobody is paid
    round: int = 0  # The number of the round, 0 before the first
    items: int = 0  # Items picked so far
    answers: int = 0  # Answers that count
    spent: int = 0
    uncertain: int | None = None  # Items of the round that are asked about again
    facts: Mapping[str, Any] = field(default_factory=dict)  # Of the last round that is done
    decision: str = ""  # The last decision, in words
    now: str = ""  # What goes on

    @classmethod
    def of(cls, inputs: CampaignInputs, ledger: SqlLedger) -> Status:
        """Read it from a ledger."""
        totals, plan = ledger.totals(), inputs.plan
        picks = [one["items"] for one in ledger.records("picks").values() if one["items"]]
        rounds = list(ledger.records("round").values())
        return cls(
            name=plan.name,
            measure="accuracy" if plan.is_single else "F1",
            currency=totals.currency,
            pool=len(inputs.ids) - len(inputs.control),
            cap=totals.cap if plan.is_paid else None,
            round=len(picks),
            items=sum(map(len, picks)),
            answers=ledger.n_answers,
            spent=totals.spent,
            facts=rounds[-1] if rounds else {},
        )

    def hear(self, event: CampaignEvent) -> None:
        """Take in an event."""
        from goldspan.campaign import protocols

        match event:
            case protocols.AnswerTaken(cost):
                self.answers += 1
                self.spent += cost
            case protocols.RoundOpened(number, n_items) if number > self.round:
                self.round, self.items, self.uncertain = number, self.items + n_items, None
            case protocols.AskedAgain(n_items):
                self.uncertain = n_items
            case protocols.RoundEnded(_, facts):
                self.facts = facts
            case protocols.WorkerDropped(worker, why):
                self.decision = f"{worker} is asked no more: {why}"
            case protocols.Decided(stop, why):
                self.decision = f"stop: {why}" if stop else "go on"


class Display:
    """Keeps the status up to date, and shows lines: on a terminal, on standard error, or not."""

    def __init__(self, status: Status, console: Any = None, *, quiet: bool = False) -> None:
        self.status, self.console, self.quiet = status, console, quiet

    def hear(self, event: CampaignEvent) -> None:
        """Take in an event, and show its lines."""
        self.status.hear(event)
        for line in event.lines():
            self.show(line, lasting=line.startswith("  ") or " answers" in line)

    def show(self, line: str, *, lasting: bool = False) -> None:
        """Show a line; a terminal prints one that lasts, and puts another one into the drawing."""
        if self.console is None:
            if not self.quiet:
                warn(line)
        elif lasting:
            self.console.print(line, markup=False, highlight=False)
        else:
            self.status.now = line


@contextmanager
def shown(status: Status, *, quiet: bool) -> Iterator[Display]:
    """Show a campaign live on a terminal, in plain lines elsewhere, and not at all if quiet."""
    if quiet or not sys.stderr.isatty():
        yield Display(status, quiet=quiet)
        return
    from rich import live
    from rich.console import Console

    console = Console(stderr=True)
    look: dict[str, Any] = {"console": console, "refresh_per_second": 4, "transient": True}
    with live.Live(get_renderable=lambda: draw(status), **look):
        yield Display(status, console)


def draw(status: Status) -> Text:
    """Draw a status, a fact per line."""
    from rich.text import Text

    unit = f" {status.currency}" if status.currency else ""
    again = status.uncertain
    uncertain = "" if again is None else f", {counted(again, 'uncertain item')}"
    rows = [
        ("items", f"{status.items:,} of {status.pool:,}"),
        ("answers", f"{status.answers:,}{uncertain}"),
    ]
    if status.cap is not None:
        share = f" ({100 * status.spent / status.cap:.0f} %)" if status.cap else ""
        amounts = f"{status.spent / MICRO:,.2f} of {status.cap / MICRO:,.2f}{unit}{share}"
        rows.append(("money", amounts))
    rows += [*_scores(status), ("decision", status.decision), ("now", status.now or "beginning")]
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"{name:{width}}{value}" for name, value in rows if value]
    title = f"{status.name} \u00b7 round {status.round}"
    return Text("\n".join([title, *lines]), no_wrap=True, overflow="ellipsis")


def _scores(status: Status) -> Iterator[tuple[str, str]]:
    """Yield how good model and labels were after the last round, as far as it is known."""
    facts = status.facts
    if facts.get("score"):
        score = facts["score"]
        bounds = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
        yield str(facts["model"]), f"{status.measure} {100 * score['value']:.1f} ({bounds})"
    if facts.get("truth"):
        value = 100 * facts["truth"]["labels"]
        yield "labels", f"{status.measure} {value:.1f} against the hidden gold"
