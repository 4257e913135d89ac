"""`goldspan plan check`: what a campaign's plan will do, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, say
from goldspan.cli.served import read_setting

plan = typer.Typer(
    help="Campaigns' plans.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@plan.callback()
def root() -> None:
    """Look at the plan of a campaign."""


@plan.command(short_help="What a plan will do, and what it costs at least and at most.")
def check(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="A plan, campaign.toml.")],
    json: r.AsJson = False,
) -> None:
    """Say what a plan will do, and what its cheapest and dearest courses cost.

    All that is wrong with it is listed.

    Examples:

      goldspan plan check campaign.toml
    """
    check_part("plan")
    from goldspan.campaign import describe_plan
    from goldspan.campaign.summary import cost_range

    inputs = read_setting(source)
    if json:
        emit_json({"id": inputs.key, **cost_range(inputs)})
        return
    for line in describe_plan(inputs):
        say(line)
    for note in inputs.notes:
        say(f"pool: {note}")
