"""People and programs of a served campaign: links, payments, tokens, webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.commands import Commands
from goldspan.cli.options import (
    AsJson,
    Overwrite,
    Place,
    PublicUrl,
    argument,
    at_campaign,
    flag,
    option,
)
from goldspan.cli.output import check_part, key_values, listed, print_result, table
from goldspan.crowd.atomic import NewPlaces
from goldspan.errors import InputError
from goldspan.money import from_micro, to_micro

if TYPE_CHECKING:
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.store.programs import Message
    from goldspan.web import Auth, ServerSettings
    from goldspan.web.people import People
    from goldspan.web.providers.payments import PaymentQueue, PaymentRequest
    from goldspan.web.providers.registry import Provider
    from goldspan.web.security.access import Token
    from goldspan.web.security.sessions import Link

# --------------------------------------------------------------------------------------------------
# goldspan invite


@at_campaign
def invite(
    place: Place,
    workers: list[str] | None = option(
        "Make a link for each of these workers: ann,bob.", metavar="NAMES"
    ),
    reviewers: list[str] | None = option(
        "Make a link for each of these reviewers, who decide uncertain items.", metavar="NAMES"
    ),
    addresses: str | None = option(
        "A table of workers and e-mail addresses, one worker,address per line.", metavar="FILE"
    ),
    mail: str | None = option(
        "Write a message for each worker, with their link, into this folder.", metavar="FOLDER"
    ),
    overwrite: Overwrite = False,
    days: float = option("How many days the links are valid.", default=30),
    revoke: list[str] | None = option("Revoke links, by id.", metavar="ID"),
    show: bool = flag("List all links that were made.", "--list"),
    public_url: PublicUrl = None,
    json: AsJson = False,
) -> None:
    """Make, list and revoke annotators' personal links to a served campaign.

    Whoever opens a link works as that worker: send each to one person only. A link is shown only
    once, and is not stored. For somebody who has lost theirs, make a new one and revoke the old.

    A reviewer sees uncertain items and decides them, and nothing else: no money, no names.

    Examples:

      goldspan invite campaign.toml --workers ann,bob --days 14

      goldspan invite campaign.toml --addresses team.csv --mail mails
    """
    check_part("server")
    from goldspan.web.providers.invitations import read_addresses

    known = {} if addresses is None else read_addresses(addresses)
    names, gone = listed(workers, "--workers") or list(known), listed(revoke, "--revoke") or []
    judges = listed(reviewers, "--reviewers") or []
    if not (names or gone or show or judges):
        raise typer.BadParameter("give --workers, --revoke or --list, or --reviewers")
    with (
        open_auth(place, public_url) as (inputs, auth, settings),
        _folder(mail, names, overwrite=overwrite) as written,
    ):
        for name in gone:
            _revoke(auth, name)
        chosen = [_make_reviewer(auth, settings, name, days) for name in judges]
        made = auth.links.make(names, days) if names else []
        urls = [(link, settings.address(f"/w/{token}")) for link, token in made]
        if written is not None:
            _write_mails(written, inputs, known, urls)
        links = [_facts_link(one.worker, one) for one in auth.links.all()] if show else []
        every = auth.reviewers.all() if show else []
        known_reviewers = [_facts_link(one.name, one, "reviewer") for one in every]
    facts: dict[str, Any] = {
        "made": [{**_facts_link(link.worker, link), "url": url} for link, url in urls],
        "revoked": gone,
        "links": links,
    }
    if judges or known_reviewers:
        facts |= {"reviewers": chosen or known_reviewers}
    lines = [
        f"{link.worker}\t{url}" if mail is None else f"{link.worker}\ta message in {mail}"
        for link, url in urls
    ]
    lines += [f"{one['reviewer']}\t{one['url']}" for one in chosen]
    lines += [f"{name} is revoked" for name in gone]
    lines += [_table_links(links)] if show else []
    lines += [_table_links(known_reviewers, "reviewer")] if known_reviewers else []
    print_result(facts, lines, as_json=json)


@contextmanager
def open_auth(
    place: Place, public_url: str | None = None
) -> Iterator[tuple[CampaignInputs, Auth, ServerSettings]]:
    """Open the store and the secret of a campaign that was begun."""
    with place.opened() as (planned, ledger):
        from goldspan.campaign.clock import CampaignClock
        from goldspan.web import Auth, ServerSettings, load_keys
        from goldspan.web.opening import with_id

        settings = ServerSettings(load_keys(place.out), clock=CampaignClock(ledger))
        inputs = with_id(planned, ledger, settings.clock())
        auth = Auth.of(ledger, inputs.key, settings)
        url = public_url or auth.links.place() or settings.public_url
        yield inputs, auth, settings.at(url)


@contextmanager
def _folder(mail: str | None, names: list[str], *, overwrite: bool) -> Iterator[Path | None]:
    """Create the folder of the messages before any link is made: a link is shown once."""
    from goldspan.web.providers.invitations import check_new

    if mail is None:
        yield None
        return
    if not overwrite:
        check_new(Path(mail), names)
    with NewPlaces() as new:
        new.folder(mail, 0o700)
        yield Path(mail)


def _write_mails(
    folder: Path, inputs: CampaignInputs, known: dict[str, str], urls: list[tuple[Link, str]]
) -> None:
    from goldspan.web.providers.invitations import Invitation, write_mails

    page = inputs.plan.page
    text = inputs.guideline
    title = page.title or inputs.plan.name
    write_mails(folder, [
        Invitation(link.worker, known.get(link.worker, ""), url, link.expires, title, text)
        for link, url in urls
    ])  # fmt: skip


def _revoke(auth: Auth, name: str) -> None:
    """Revoke the link of an annotator or of a reviewer."""
    is_reviewers = name in {one.id for one in auth.reviewers.all()}
    (auth.reviewers if is_reviewers else auth.links).revoke(name)


def _make_reviewer(auth: Auth, settings: ServerSettings, name: str, days: float) -> dict[str, Any]:
    from goldspan.web.security.access import REVIEW

    made, text = auth.reviewers.make(name, [REVIEW], days)
    return {**_facts_link(name, made, "reviewer"), "url": settings.address(f"/r/{text}")}


def _facts_link(name: str, one: Link | Token, whose: str = "worker") -> dict[str, Any]:
    return {
        "id": one.id, whose: name, "issued": _day(one.issued), "expires": _day(one.expires),
        "revoked": one.revoked,
    }  # fmt: skip


def _table_links(links: list[dict[str, Any]], whose: str = "worker") -> str:
    rows = [[whose, "id", "made", "expires", ""]]
    for one in links:
        gone = "revoked" if one["revoked"] else ""
        rows.append([one[whose], one["id"], one["issued"], one["expires"], gone])
    return table(rows)


def _day(time: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds")


# --------------------------------------------------------------------------------------------------
# goldspan payments


EVERYBODY = "all"


@at_campaign
def payments(
    place: Place,
    approve: list[str] | None = option(
        "Approve the work of these workers; `all` for everybody.", metavar="NAMES"
    ),
    reject: list[str] | None = option(
        "Reject the work of these workers; with --reason and --category.", metavar="NAMES"
    ),
    bonus: list[str] | None = option(
        "Pay a bonus, once for every --reason: ann=1.50.", metavar="NAME=AMOUNT"
    ),
    earned: bool = flag("Pay what answers have earned beyond the provider's reward.", "--earned"),
    reason: str = option("The reason of a rejection or a bonus.", default=""),
    category: str = option("Category of a rejection: LOW_EFFORT, …", default="OTHER"),
    retry: list[str] | None = option(
        "Queue requests again that the provider refused, by id.", metavar="ID"
    ),
    send: bool = flag("Send the queued requests.", "--send"),
    show: bool = flag("List all requests.", "--list"),
    json: AsJson = False,
) -> None:
    """Send approvals, rejections and bonuses to the workers' provider, each only once.

    A request is queued first, and --send carries it out, once, however often the command is run: a
    bonus has a reason, and nobody is paid twice for the same reason. Without options the queue is
    listed.

    Examples:

      goldspan payments campaign.toml --approve all --send

      goldspan payments plan.toml --bonus 5f2b9c0e8d3a=1.50 --reason May --send
    """
    names = {"approve": listed(approve, "--approve"), "reject": listed(reject, "--reject")}
    amounts = key_values(bonus, "--bonus ann=1.50")
    reason = reason.strip()
    if (names["reject"] or amounts) and not reason:
        raise typer.BadParameter("a rejection and a bonus need a reason: --reason")
    with _open(place) as (people, provider, queue):
        written = listed(retry, "--retry") or []
        for name in written:
            queue.reopen(name)
        chosen = provider.workers() if names["approve"] == [EVERYBODY] else names["approve"] or []
        written += [queue.approve(name, provider.about(name)) for name in chosen]
        for name in names["reject"] or []:
            provider.check_rejection(reason, category)
            written.append(queue.reject(name, provider.about(name), reason, category))
        for name, amount in amounts.items():
            micro = to_micro(amount, "a bonus")
            written.append(queue.bonus(name, provider.about(name), micro, reason))
        written += _earned(people, provider, queue) if earned else []
        done = _send(provider, queue) if send else 0
        requests = queue.requests()
    lines = [f"queued: {name}" for name in written]
    lines += [f"done: {done}"] if send else []
    if show or not (written or send):
        lines.append(_table_payments(requests) if requests else "no payment requests")
    told = list(map(_facts_payments, requests))
    facts = {"written": written, "done": done if send else None, "letters": told}
    print_result(facts, lines, as_json=json)


@contextmanager
def _open(place: Place) -> Iterator[tuple[People, Provider, PaymentQueue]]:
    """Open a campaign, its provider, and the queue of its payment requests."""
    with place.opened() as (inputs, ledger):
        from goldspan.campaign.clock import open_clock
        from goldspan.web.people import People
        from goldspan.web.providers.payments import PaymentQueue
        from goldspan.web.providers.registry import open_provider

        ledger.check_facts()
        clock = open_clock(ledger, _settling(inputs))
        provider = open_provider(inputs.plan, ledger, clock)
        yield People(inputs, ledger), provider, PaymentQueue(ledger, clock)


def _settling(inputs: CampaignInputs) -> int:
    """Return how many milliseconds without a server count: a payment may settle meanwhile."""
    options = {} if inputs.plan.provider is None else inputs.plan.provider.options
    minutes = options.get("settle_minutes", 60)
    # What is not a number is rejected when the provider is opened.
    return round(60_000 * minutes) if isinstance(minutes, int | float) else 0


def _earned(people: People, provider: Provider, queue: PaymentQueue) -> list[str]:
    written = []
    for worker in provider.workers():
        owed = provider.owed(worker, people[worker].earned)
        written.append(queue.earned(worker, provider.about(worker), owed))
    return [name for name in written if name is not None]


def _send(provider: Provider, queue: PaymentQueue) -> int:
    from goldspan.web.providers.payments import send_all

    sender = provider.sender()
    if sender is None:
        raise InputError(f"provider.name is {provider.name!r}, to which nothing can be sent")
    return send_all(queue, sender)


def _facts_payments(request: PaymentRequest) -> dict[str, Any]:
    return {
        "id": request.id, "act": request.act, "worker": request.worker,
        "amount": from_micro(request.amount) if request.amount else None,
        "why": request.why, "state": request.state, "refused": request.facts.get("why", ""),
    }  # fmt: skip


def _table_payments(requests: list[PaymentRequest]) -> str:
    rows = [["state", "act", "worker", "amount", "id", ""]]
    for facts in map(_facts_payments, requests):
        cells = [facts[key] for key in ("state", "act", "worker", "amount", "id", "refused")]
        rows.append([str(cell or "") for cell in cells])
    return table(rows, (3,))


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
    are, how good, and decisions about them), links (personal links of new annotators), money
    (amounts), steer (pause, resume, stop). Give a program no more than it needs.

    Examples:

      goldspan tokens add campaign.toml dashboard --scopes progress

      goldspan tokens add campaign.toml nightly-export --scopes progress,results --days 365 --json
    """
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
    with open_auth(place) as (_, auth, _):
        rows = [{**_facts(one), "holds": one.holds} for one in auth.tokens.all()]
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
    with open_auth(place) as (_, auth, _):
        auth.tokens.revoke(name)
    print_result({"revoked": name}, [f"{name} is revoked"], as_json=json)


def _facts(token: Token) -> dict[str, Any]:
    used = None if token.used is None else _day(token.used)
    return {**_facts_link(token.name, token, "name"), "scopes": list(token.scopes), "used": used}


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
    with place.opened() as (inputs, ledger):
        from goldspan.campaign.clock import open_clock
        from goldspan.store import programs
        from goldspan.web.webhooks import SHOWN

        now, hooks = open_clock(ledger)(), [hook.called for hook in inputs.plan.webhooks]
        for number in retry or []:
            again = partial(programs.send_again, number=number, hooks=hooks)
            if not ledger.transact(now, again):
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
