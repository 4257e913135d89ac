"""`goldspan outbox`: approvals, rejections and bonuses for a provider's workers, sent once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, key_values, listed, say, table

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs
    from goldspan.store import SqlLedger
    from goldspan.web.providers.outbox import Letter, Outbox
    from goldspan.web.providers.protocol import Provider

EVERYBODY = "all"


class _Desk(NamedTuple):
    """What the command works on."""

    inputs: CampaignInputs
    ledger: SqlLedger
    provider: Provider
    outbox: Outbox


def outbox(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")],
    approve: Annotated[
        list[str] | None,
        typer.Option(
            help="Take the work of these; `all` for everybody.", metavar="NAMES", show_default=False
        ),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(
            help="Do not take the work of these; with --why and --category.",
            metavar="NAMES",
            show_default=False,
        ),
    ] = None,
    bonus: Annotated[
        list[str] | None,
        typer.Option(
            help="Pay more, once for every --why: ann=1.50",
            metavar="NAME=AMOUNT",
            show_default=False,
        ),
    ] = None,
    earned: Annotated[
        bool, typer.Option("--earned", help="Pay what answers earned beyond the rewards.")
    ] = False,
    why: Annotated[str, typer.Option(help="The reason of a rejection or a bonus.")] = "",
    category: Annotated[str, typer.Option(help="Of a rejection: LOW_EFFORT, …")] = "OTHER",
    again: Annotated[
        list[str] | None,
        typer.Option(
            help="Send letters again that were refused, by id.", metavar="ID", show_default=False
        ),
    ] = None,
    send: Annotated[bool, typer.Option("--send", help="Send what waits.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show all letters.")] = False,
    out: Annotated[str, typer.Option(help="Folder of the campaign.")] = "out",
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="As for `goldspan serve`.", show_default=False)
    ] = None,
    json: r.AsJson = False,
) -> None:
    """Write letters to the provider of a campaign's workers, show them, and send them.

    A letter that was written stays, and is done once, however often this is run: a bonus has a
    reason, and for the same reason nobody is paid twice. With nothing else said, all are shown.

    Examples:

      goldspan outbox campaign.toml --approve all --send

      goldspan outbox campaign.toml --bonus 5f2b9c0e8d3a4b1c6e7f8a9d=1.50 --why "week 1" --send

      goldspan outbox campaign.toml --list
    """
    names = {"approve": listed(approve, "--approve"), "reject": listed(reject, "--reject")}
    amounts = key_values(bonus, "--bonus ann=1.50")
    if (names["reject"] or amounts) and not why.strip():
        raise typer.BadParameter("a rejection and a bonus need a reason: --why")
    check_part("server")
    with _open(source, out, store) as desk:
        written = [_reopen(desk, name) for name in listed(again, "--again") or []]
        written += [_approve(desk, name) for name in _everybody(desk, names["approve"])]
        written += [_reject(desk, name, why, category) for name in names["reject"] or []]
        written += [_bonus(desk, name, amount, why) for name, amount in amounts.items()]
        written += _earned(desk) if earned else []
        done = _send(desk) if send else 0
        letters = desk.outbox.letters()
    _tell(written, done if send else None, letters, show=show, json=json)


@contextmanager
def _open(source: str, out: str, store: str | None) -> Iterator[_Desk]:
    from goldspan.campaign.clock import open_clock, wall_clock
    from goldspan.cli.served import check_served, place_in, read_setting, told_of_damage
    from goldspan.web.opening import open_store
    from goldspan.web.providers.outbox import Outbox
    from goldspan.web.providers.registry import open_provider

    inputs = read_setting(source)
    check_served(source, out, store)
    with (
        told_of_damage(store or place_in(out)),
        open_store(inputs, out, store, wall_clock()) as ledger,
    ):
        ledger.check_facts()
        clock = open_clock(ledger, _settling(inputs))
        provider = open_provider(inputs.plan, ledger, clock)
        yield _Desk(inputs, ledger, provider, Outbox(ledger, clock))


def _settling(inputs: CampaignInputs) -> int:
    """Return how many milliseconds without a server count: a payment may settle meanwhile."""
    options = {} if inputs.plan.provider is None else inputs.plan.provider.options
    minutes = options.get("settle_minutes", 60)
    # What is no number is refused when the provider is opened.
    return round(60_000 * minutes) if isinstance(minutes, int | float) else 0


def _everybody(desk: _Desk, names: list[str] | None) -> list[str]:
    return desk.provider.workers() if names == [EVERYBODY] else names or []


def _reopen(desk: _Desk, name: str) -> str:
    desk.outbox.reopen(name)
    return name


def _approve(desk: _Desk, worker: str) -> str:
    return desk.outbox.approve(worker, desk.provider.about(worker))


def _reject(desk: _Desk, worker: str, why: str, category: str) -> str:
    desk.provider.check_rejection(why.strip(), category)
    return desk.outbox.reject(worker, desk.provider.about(worker), why.strip(), category)


def _bonus(desk: _Desk, worker: str, amount: str, why: str) -> str:
    from goldspan.money import to_micro

    about = desk.provider.about(worker)
    return desk.outbox.bonus(worker, about, to_micro(amount, "a bonus"), why.strip())


def _earned(desk: _Desk) -> list[str]:
    from goldspan.web.people import People

    people, written = People(desk.inputs, desk.ledger), []
    for worker in desk.provider.workers():
        owed = desk.provider.owed(worker, people[worker].earned)
        written.append(desk.outbox.earned(worker, desk.provider.about(worker), owed))
    return [name for name in written if name is not None]


def _send(desk: _Desk) -> int:
    from goldspan.errors import InputError
    from goldspan.web.providers.outbox import send_all

    courier = desk.provider.courier()
    if courier is None:
        raise InputError(f"provider.name is {desk.provider.name!r}, to which nothing can be sent")
    return send_all(desk.outbox, courier.deliver)


def _tell(
    written: list[str], done: int | None, letters: list[Letter], *, show: bool, json: bool
) -> None:
    if json:
        shown = [_facts(one) for one in letters]
        emit_json({"written": written, "done": done, "letters": shown})
        return
    for name in written:
        say(f"in the outbox: {name}")
    if done is not None:
        say(f"done: {done}")
    if show or not (written or done is not None):
        say(_table(letters) if letters else "the outbox is empty")


def _facts(letter: Letter) -> dict[str, Any]:
    from goldspan.money import from_micro

    amount = from_micro(letter.amount) if letter.amount else None
    told = {"id": letter.id, "act": letter.act, "worker": letter.worker, "amount": amount}
    reason = letter.facts.get("why", "")
    return {**told, "why": letter.why, "state": letter.state, "refused": reason}


def _table(letters: list[Letter]) -> str:
    rows = [["state", "act", "worker", "amount", "id", ""]]
    for facts in map(_facts, letters):
        cells = [facts[key] for key in ("state", "act", "worker", "amount", "id", "refused")]
        rows.append([str(cell or "") for cell in cells])
    return table(rows, (3,))
