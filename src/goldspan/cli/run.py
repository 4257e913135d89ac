"""`goldspan run`: a whole campaign, from a plan to labels, a model and the bill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, say, warn
from goldspan.cli.report import PAGE, missing_for_pages, write_page
from goldspan.cli.run_view import shown
from goldspan.cli.run_watch import Course, watched
from goldspan.cli.served import command_line, place_in, read_setting, told_of_damage

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs, CampaignRecord, Waiting


def run(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")],
    out: Annotated[str, typer.Option(help="Folder of what comes out.")] = "out",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the campaign is kept: sqlite:///FILE or postgresql://…; by default "
            "campaign.sqlite in the folder.",
            show_default=False,
        ),
    ] = None,
    overlap: r.Overlap = None,
    raw_csv: r.RawCsv = False,
    json: r.AsJson = False,
) -> None:
    """Run a campaign until it stops, or until answers from outside are awaited.

    It can be interrupted or killed at any moment: the same command goes on where it was, and ends
    with the same files.

    Examples:

      goldspan plan check campaign.toml

      goldspan run campaign.toml --out out

      goldspan run campaign.toml --store postgresql://localhost/campaign --json
    """
    check_part("campaign")
    from goldspan.campaign import Campaign, Waiting, inputs_as_begun
    from goldspan.campaign.results import ReportData, write_exports
    from goldspan.crowd.atomic import NewPlaces
    from goldspan.store.engine import HeldError
    from goldspan.web.opening import open_store

    inputs = read_setting(source, overlap=overlap)
    again = ["run", source, *([] if overlap is None else ["--overlap", str(overlap)])]
    again += ["--raw-csv"] * raw_csv
    lacks = missing_for_pages()
    if lacks:
        warn(f"goldspan: there will be no {PAGE}: {lacks}")
    try:
        with (
            told_of_damage(store or place_in(out)),
            NewPlaces(HeldError) as new,
            open_store(inputs, out, store, _begin(inputs), private=False, new=new) as ledger,
        ):
            inputs = inputs_as_begun(inputs, ledger)
            course = Course.of(inputs, ledger)
            with shown(course, quiet=json) as tell, watched(ledger, course.hear) as kept:
                campaign = Campaign(inputs, kept, tell=tell)
                campaign.begin()
                new.keep()
                found = campaign.run()
                tell("writing")
                files = [str(path) for path in write_exports(campaign, out, raw_csv=raw_csv)]
                findings = ReportData.of(ledger, campaign.progress.result)
                files += [] if lacks else [write_page(findings, out)]
            if isinstance(found, Waiting):
                _wait(found, command_line(again, out, store), files, as_json=json)
            else:
                _tell(findings.record, files, as_json=json)
    except KeyboardInterrupt:
        warn("goldspan: interrupted; everything is kept, the same command goes on where it was")
        raise typer.Exit(130) from None


def _begin(inputs: CampaignInputs) -> int:
    """Return the time at which a campaign begins, in milliseconds since 1970."""
    from goldspan.campaign.clock import wall_clock
    from goldspan.simulation.crowd import BEGIN

    by_itself = inputs.plan.crowd.source in {"simulated", "replay"}  # on a clock of its own
    return BEGIN if by_itself else wall_clock()


def _wait(found: Waiting, command: str, files: list[str], *, as_json: bool) -> None:
    if as_json:
        awaited = {"answers": found.answers, "items": found.items}
        emit_json({"waiting": awaited, "files": files})
        return
    say(f"waiting for {found.answers} answers to {found.items} items: {found.where}")
    say(f"written so far: {', '.join(files)}")
    say(f"then run again: {command}")


def _tell(record: CampaignRecord, files: list[str], *, as_json: bool) -> None:
    if as_json:
        emit_json({**record.to_dict(), "files": files})
        return
    for line in _summary(record):
        say(line)
    say(f"written: {', '.join(files)}")


def _summary(record: CampaignRecord) -> Iterator[str]:
    from goldspan.money import from_micro

    money, counts = record.money, record.counts
    control = f", {counts['control_answers']} of them to control questions"
    shown = control if counts["control_answers"] else ""
    items = f"{counts['items']} of {counts['pool']} items"
    yield f"labelled: {items} by {counts['answers']} answers{shown}"
    if money is not None:
        unit = f" {money['currency']}" if money["currency"] else ""
        yield f"money: {from_micro(money['spent'])} of {from_micro(money['cap'])}{unit} spent"
    last: Any = record.rounds[-1] if record.rounds else None
    if last is not None:
        yield from _quality(last, "F1" if record.plan["task"]["types"] else "accuracy")
    if money is not None:
        each = f"{record.plan['redundancy']['max']} answers each"
        if money["fixed"]:
            fixed = f"{from_micro(money['fixed'])}{unit}, the same items with {each}"
            yield f"saving: {100 * money['saving']:.0f} % of {fixed}"
        yield f"everything: {from_micro(money['everything'])}{unit}, all items with {each}"
    if record.stop is not None:
        yield f"stopped: {record.stop['why']}"


def _quality(last: Any, name: str) -> Iterator[str]:
    """Return how good the labels and the model are, as far as it is known."""
    truth, score = last["truth"], last["score"]
    if truth is not None:
        yield f"{name} of the labels against the hidden gold: {100 * truth['labels']:.1f}"
        if truth["model"] is not None:
            yield f"{name} of the model on the rest of the pool: {100 * truth['model']:.1f}"
    if score is not None:
        bounds = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
        yield f"{name} of the model as measured: {100 * score['value']:.1f} ({bounds})"
