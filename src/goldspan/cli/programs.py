"""Programs beside a served campaign: their tokens, and the messages that they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.commands import Commands
from goldspan.cli.contact import open_auth
from goldspan.cli.options import AsJson, Place, argument, at_campaign, option
from goldspan.cli.output import check_part, listed, print_result, table

if TYPE_CHECKING:
    from goldspan.store.programs import Message
    from goldspan.web.security.access import Token

# --------------------------------------------------------------------------------------------------
# goldspan tokens


tokens = Commands()
TokenId = Annotated[str, typer.Argument(metavar="ID", help="A token's id, as listed.")]


@tokens.callback()
def root() -> None:
    """Make, list and revoke tokens for programs that use the desk's API.

    A program sends its token in the header Authorization, after the word Bearer. Whoever has the
    token may do what its scopes allow, until it expires or is revoked.
    """


@tokens.command(short_help="Make a token; it is shown once.")
@at_campaign
def add(
    place: Place,
    name: str = argument("What the token is for, such as nightly-export.", "NAME"),
    scopes: list[str] = option(
        "What it allows: progress, results, review, people, links, money, steer.",
        default=...,
        metavar="SCOPES",
    ),
    days: float = option("How many days the token is valid.", default=90),
    json: AsJson = False,
) -> None:
    """Make a token. It is shown now and never again: put it where the program keeps secrets.

    Scopes: progress (how far the campaign is), results (labels, items and downloads, annotators by
    pseudonym), review (uncertain items, and decisions about labels), people (who the annotators
    are, how good, and decisions about them), links (annotators' personal links), money (amounts),
    steer (pause, resume, stop). Give a program no more than it needs.

    Examples:

      goldspan tokens add campaign.toml dashboard --scopes progress

      goldspan tokens add campaign.toml nightly-export --scopes progress,results --days 365 --json
    """
    check_part("server")
    with open_auth(place) as (_, auth, _):
        token, text = auth.tokens.make(name, listed(scopes, "--scopes") or [], days)
    lines = [f"{token.id}: {', '.join(token.scopes)}, until {_day(token.expires)}",
             "the token, shown only now:", f"  {text}"]  # fmt: skip
    print_result({**_facts(token), "token": text}, lines, as_json=json)


@tokens.command("list", short_help="List the tokens that were made.")
@at_campaign
def list_(place: Place, json: AsJson = False) -> None:
    """List the tokens that were made, with their scopes and when they were last used.

    Examples:

      goldspan tokens list campaign.toml
    """
    check_part("server")
    with open_auth(place) as (_, auth, _):
        every, holds = auth.tokens.all(), auth.tokens.is_in_time
        rows = [{**_facts(one), "holds": not one.revoked and holds(one)} for one in every]
    head = ["name", "id", "scopes", "made", "expires", "last used", ""]
    shown = [
        [row["name"], row["id"], ",".join(row["scopes"]), row["issued"], row["expires"],
         row["used"] or "", "" if row["holds"] else "revoked" if row["revoked"] else "expired"]
        for row in rows
    ]  # fmt: skip
    lines = [table([head, *shown])] if rows else ["no tokens"]
    print_result({"tokens": rows}, lines, as_json=json)


@tokens.command(short_help="Take a token back.")
@at_campaign
def revoke(place: Place, name: TokenId, json: AsJson = False) -> None:
    """Take a token back: a running server refuses it within a second.

    Examples:

      goldspan tokens revoke campaign.toml 7d0c5a2e41f34f0b9f3a6f2c8e1b4d55
    """
    check_part("server")
    with open_auth(place) as (_, auth, _):
        auth.tokens.revoke(name)
    print_result({"revoked": name}, [f"{name} is revoked"], as_json=json)


def _facts(token: Token) -> dict[str, Any]:
    used = None if token.used is None else _day(token.used)
    return {
        "id": token.id, "name": token.name, "scopes": list(token.scopes),
        "issued": _day(token.issued), "expires": _day(token.expires), "revoked": token.revoked,
        "used": used,
    }  # fmt: skip


def _day(time: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds")


# --------------------------------------------------------------------------------------------------
# goldspan webhooks


@at_campaign
def webhooks(
    place: Place,
    retry: list[int] | None = option(
        "Send messages again that were not taken, by number. Repeatable.", metavar="NUMBER"
    ),
    json: AsJson = False,
) -> None:
    """List the last messages to a plan's webhooks, with what became of them.

    The server sends them while it runs, and tries for three days, with growing pauses.

    Examples:

      goldspan webhooks campaign.toml

      goldspan webhooks campaign.toml --retry 17 --json
    """
    check_part("server")
    from functools import partial

    from goldspan.campaign.clock import open_clock, wall_clock
    from goldspan.errors import InputError
    from goldspan.store import programs
    from goldspan.web.opening import open_store
    from goldspan.web.webhooks import SHOWN

    inputs = place.inputs()
    place.check_served()
    with open_store(inputs, place.out, place.store, wall_clock()) as ledger:
        now, hooks = open_clock(ledger)(), [hook.called for hook in inputs.plan.webhooks]
        for number in retry or []:
            if not ledger.transact(now, partial(programs.send_again, number=number, hooks=hooks)):
                raise InputError(
                    f"no webhook of the plan has a message {number} that was not taken"
                )
        found = ledger.database.query(programs.last_messages, SHOWN)
    rows = [_message(one) for one in found]
    head = ["number", "event", "to", "state", "tries", "status", ""]
    shown = [[str(row[name]) for name in (*head[:2], "hook", *head[3:6], "why")] for row in rows]
    lines = [f"sent again: {number}" for number in retry or []]
    lines += [table([head, *shown], (0, 4, 5)) if rows else "no messages"]
    print_result({"hooks": hooks, "again": retry or [], "messages": rows}, lines, as_json=json)


def _message(one: Message) -> dict[str, Any]:
    return {
        "number": one.number, "id": one.name, "event": one.event, "hook": one.hook,
        "state": one.state, "tries": one.tries, "status": one.status, "why": one.why,
    }  # fmt: skip
