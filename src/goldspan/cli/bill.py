"""`goldspan bill`: what every worker gets, and what all of it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, emit_json, say, steps, table, warn
from goldspan.cli.wording import in_options

if TYPE_CHECKING:
    from goldspan.workers import Bill, PayPlan

_SHOWN = 20
_PAY = "Pay"
_JUDGE = (
    "read the crowd with gold, or pass "
    "reliability=goldspan.workers.measure_reliability(crowd, result=…)"
)
_OPTIONS = {
    "per_answer": "--per-answer",
    "per_token": "--per-token",
    "per_minute_floor": "--per-minute-floor",
    "idle_minutes": "--idle-minutes",
    "round_to": "--round-to",
    'recorded="use"': "--recorded use",
    _JUDGE: "give the known labels, --gold truth.csv",
}
"""What messages call arguments, and the options."""


def bill(
    source: r.Input,
    per_answer: Annotated[
        str | None, typer.Option(help="For every answer, such as 0.05.", rich_help_panel=_PAY)
    ] = None,
    per_token: Annotated[
        str | None, typer.Option(help="For every labelled token.", rich_help_panel=_PAY)
    ] = None,
    per_minute_floor: Annotated[
        str | None, typer.Option(help="Least pay per minute of work.", rich_help_panel=_PAY)
    ] = None,
    bonus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="0.90:10% or 0.90:2.50, :20 behind it for at least 20 judged answers. Repeatable.",
            rich_help_panel=_PAY,
        ),
    ] = None,
    fee: Annotated[
        str | None, typer.Option(help="Of the platform, such as 20%.", rich_help_panel=_PAY)
    ] = None,
    idle_minutes: Annotated[
        str | None, typer.Option(help="The most that one answer counts as.", rich_help_panel=_PAY)
    ] = None,
    round_to: Annotated[
        str | None,
        typer.Option(help="Round every worker's pay up to this, 0.01.", rich_help_panel=_PAY),
    ] = None,
    currency: Annotated[
        str | None, typer.Option(help="Its name, for print.", rich_help_panel=_PAY)
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A TOML file with all that.", rich_help_panel=_PAY),
    ] = None,
    attempts: Annotated[
        str, typer.Option(help="Which repeated answers are paid: every or latest.")
    ] = "every",
    recorded: Annotated[
        str, typer.Option(help="Costs that answers come with: compare, use or ignore.")
    ] = "compare",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write a row per worker, bill.csv.")
    ] = None,
    overwrite: Overwrite = False,
    format: r.Format = None,  # noqa: A002 - the word users know
    gold: r.Gold = None,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    workers: r.Workers = None,
    label: r.Labels = None,
    missing: r.Missing = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    max_decompressed: r.MaxDecompressed = None,
    json: r.AsJson = False,
) -> None:
    """Make the bill of a crowd's answers, exact to the millionth.

    Options here go before those of --plan. Of several bonuses that are due the largest is paid; who
    deserves one is measured against the gold. A fee in percent is on all pay.

    Examples:

      goldspan bill answers.csv --per-answer 0.05 --fee 20% -o bill.csv

      goldspan bill answers.csv --per-answer 0.05 --per-minute-floor 0.15

      goldspan bill answers.csv --per-answer 0.05 --bonus "0.90:10%" --gold truth.csv

      goldspan bill answers.csv --plan pay.toml --json
    """
    check_outputs(output, inputs=[source, gold, plan], overwrite=overwrite)
    r.check_files(output=output)
    given = {
        "per_answer": per_answer, "per_token": per_token, "per_minute_floor": per_minute_floor,
        "bonuses": bonus, "fee": fee, "idle_minutes": idle_minutes, "round_to": round_to,
        "currency": currency,
    }  # fmt: skip
    chosen = _plan(plan, {name: value for name, value in given.items() if value is not None})
    said = {"per_answer", "per_token", "per_minute_floor"} & {n for n, v in given.items() if v}
    if not chosen.pays and not said and recorded != "use":
        raise typer.BadParameter("say what is paid: --per-answer 0.05, or --plan pay.toml")
    options = r.Reading(
        format=format, gold=gold, encoding=encoding, columns=columns, workers=workers,
        labels=label, missing=missing, delimiter=delimiter, text_encoding=text_encoding,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.workers import make_bill

    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        step("adding up")
        with in_options(_OPTIONS):
            found = make_bill(crowd, chosen, attempts=attempts, recorded=recorded)
        if output:
            found.write(output)
    if json:
        emit_json({"output": output, **found.to_dict()})
        return
    _tell(found, output, by_plan=recorded != "use")


def _plan(path: str | None, given: dict[str, Any]) -> PayPlan:
    """Put the options before the plan of the file."""
    from dataclasses import replace

    from goldspan.workers import PayPlan, read_plan

    from_file = read_plan(path) if path else PayPlan()
    with in_options(_OPTIONS):
        return replace(from_file, **given)


def _tell(found: Bill, output: str | None, *, by_plan: bool) -> None:
    say(str(found.plan) if found.plan.pays or by_plan else "costs as recorded")
    names = ["worker", "answers", "tokens", "minutes", "base", "top_up", "bonus", "total"]
    shown = sorted(found.rows(), key=lambda row: -float(row["total"]))[:_SHOWN]
    rows = [[str(row[name]) for name in names] for row in shown]
    say(
        table(
            [[name.replace("top_up", "floor") for name in names], *rows], right=tuple(range(1, 8))
        )
    )
    if len(found.lines) > _SHOWN:
        say(f"… and {len(found.lines) - _SHOWN} more: -o bill.csv has them all")
    first, *notes = str(found).splitlines()
    say(first)
    for note in notes:
        warn(note)
    if output:
        say(f"written: {output}")
