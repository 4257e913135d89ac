"""`goldspan desk`: what the requester sees and decides, on the store, with or without a server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import desk_view as view
from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, check_part, emit_json, not_held, say, warn

if TYPE_CHECKING:
    from goldspan.web.desk import Desk

desk = typer.Typer(
    help="The requester's desk, without a browser.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")]
Out = Annotated[str, typer.Option(help="Folder of the campaign, with server.key.")]
Store = Annotated[
    str | None, typer.Option(metavar="URL", help="As for `goldspan serve`.", show_default=False)
]
Item = Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")]
WorkerId = Annotated[str, typer.Argument(metavar="WORKER", help="A worker's id.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="At most so many.")]


@desk.callback()
def root() -> None:
    """Look at a campaign of workers in browsers, and decide, as at its desk.

    The commands act on the store: the server need not run; if it does, it sees what was decided.
    """


@desk.command(short_help="How far it is: state, money, time, rounds.")
def overview(source: Plan, out: Out = "out", store: Store = None, json: r.AsJson = False) -> None:
    """Say how far a campaign is.

    Examples:

      goldspan desk overview campaign.toml
    """
    with _open(source, out, store) as at:
        _show(at.overview(), view.overview, as_json=json)


@desk.command(short_help="Everybody who works, with verdicts.")
def workers(source: Plan, out: Out = "out", store: Store = None, json: r.AsJson = False) -> None:
    """List the workers: answers, money, control questions, verdicts.

    Examples:

      goldspan desk workers campaign.toml --json
    """
    with _open(source, out, store, look=True) as at:
        _show(at.workers(), view.workers, as_json=json)


@desk.command(short_help="How well the workers agree.")
def agreement(source: Plan, out: Out = "out", store: Store = None, json: r.AsJson = False) -> None:
    """Say how well the workers agree.

    Examples:

      goldspan desk agreement campaign.toml
    """
    with _open(source, out, store, look=True) as at:
        _show(at.agreement(), view.agreement, as_json=json)


@desk.command(short_help="The items whose labels are least certain.")
def doubts(
    source: Plan, out: Out = "out", store: Store = None, limit: Limit = 20, json: r.AsJson = False
) -> None:
    """List the items whose labels are least certain, those decided aside.

    Examples:

      goldspan desk doubts campaign.toml --limit 5
    """
    with _open(source, out, store, look=True) as at:
        _show(at.uncertain(limit), view.doubts, as_json=json)


@desk.command(short_help="The items that were asked about.")
def items(
    source: Plan, out: Out = "out", store: Store = None,
    after: Annotated[str, typer.Option(help="Only those behind this item.")] = "",
    find: Annotated[str, typer.Option(help="Only those whose id or text holds this.")] = "",
    state: Annotated[str, typer.Option(help="all, open, done, flagged or gold.")] = "all",
    limit: Limit = 50, json: r.AsJson = False,
) -> None:  # fmt: skip
    """List the items that were asked about, a page at a time.

    Examples:

      goldspan desk items campaign.toml --state flagged
    """
    with _open(source, out, store, look=True) as at:
        _show(at.items(after, find, state, limit), view.items, as_json=json)


@desk.command(short_help="All that is known of an item.")
def item(
    source: Plan,
    name: Item,
    page: Annotated[int, typer.Option(min=1, help="Page of its answers, 50 on each.")] = 1,
    out: Out = "out",
    store: Store = None,
    json: r.AsJson = False,
) -> None:
    """Show an item: its answers, what they say together, what else it may be.

    Examples:

      goldspan desk item campaign.toml D017
    """
    with _open(source, out, store, look=True) as at:
        _show(at.item(name, page), view.item, as_json=json)


@desk.command(short_help="Hand out no new tasks.")
def pause(source: Plan, out: Out = "out", store: Store = None, json: r.AsJson = False) -> None:
    """Hand out no new tasks; answers that are under way are still taken.

    Examples:

      goldspan desk pause campaign.toml
    """
    with _open(source, out, store) as at:
        _show(at.pause(), lambda _: "paused", as_json=json)


@desk.command(short_help="Hand out tasks again.")
def resume(source: Plan, out: Out = "out", store: Store = None, json: r.AsJson = False) -> None:
    """Hand out tasks again after a pause.

    Examples:

      goldspan desk resume campaign.toml
    """
    with _open(source, out, store) as at:
        _show(at.pause(paused=False), lambda _: "going on", as_json=json)


@desk.command(short_help="End the campaign with what there is.")
def stop(
    source: Plan, out: Out = "out", store: Store = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: r.AsJson = False,
) -> None:  # fmt: skip
    """End the campaign for good: no new tasks, no new round.

    Examples:

      goldspan desk stop campaign.toml --yes
    """
    if not yes:
        typer.confirm("End the campaign? This cannot be taken back.", abort=True, err=True)
    with _open(source, out, store) as at:
        _show(at.stop(), lambda _: "ending: the server writes the files", as_json=json)


@desk.command(short_help="Keep, drop or test a worker.")
def judge(
    source: Plan, worker: WorkerId,
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help="keep, drop or test.")],
    why: Annotated[str, typer.Option(help="For your own record.")] = "",
    out: Out = "out", store: Store = None, json: r.AsJson = False,
) -> None:  # fmt: skip
    """Decide about a worker; it goes before the verdict of the rules.

    Examples:

      goldspan desk judge campaign.toml ann drop --why "always the first label"
    """
    with _open(source, out, store) as at:
        _show(at.judge(worker, verdict, why), view.decision, as_json=json)


@desk.command(short_help="Decide what an item's labels are.")
def gold(
    source: Plan, name: Item,
    label: Annotated[
        str | None, typer.Option(help="The label, where an item has one.", show_default=False)
    ] = None,
    span: Annotated[
        list[str] | None,
        typer.Option(metavar="START:END:TYPE",
                     help="A span: tokens from 0, the end exclusive; repeat it.",
                     show_default=False),
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="There is no span.")] = False,
    out: Out = "out", store: Store = None, json: r.AsJson = False,
) -> None:  # fmt: skip
    """Decide what an item's labels are: from now on they are gold.

    Examples:

      goldspan desk gold campaign.toml D017 --span 0:2:PER --span 5:6:LOC

      goldspan desk gold campaign.toml t4 --label rain
    """
    given = [label is not None, bool(span), nothing]
    if sum(given) != 1:
        raise typer.BadParameter("say one of --label, --span and --nothing")
    answer = label if label is not None else [_span(text) for text in span or []]
    with _open(source, out, store) as at:
        _show(at.adjudicate(name, answer), view.gold, as_json=json)


@desk.command(short_help="Write a file that can be downloaded.")
def export(
    source: Plan,
    name: Annotated[str, typer.Argument(metavar="FILE", help="gold.conll, answers.tsv, …")] = "",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to.", show_default=False)
    ] = None,
    names: Annotated[
        bool,
        typer.Option("--names", help="Name the workers; the campaign's log keeps that you did."),
    ] = False,
    overwrite: Overwrite = False,
    out: Out = "out", store: Store = None, json: r.AsJson = False,
) -> None:  # fmt: skip
    """Write a file as the desk's downloads do, with pseudonyms but in bill.csv; or list them.

    With --names it has the workers' own ids. Give such a file only to people who may know who
    labelled what.

    Examples:

      goldspan desk export campaign.toml

      goldspan desk export campaign.toml answers.tsv -o answers.tsv

      goldspan desk export campaign.toml answers.tsv --names -o named.tsv
    """
    from pathlib import Path

    from goldspan.crowd.atomic import new_file

    if name:
        check_outputs(output or name, overwrite=overwrite)
    if output == "-" and json:
        raise typer.BadParameter("-o - is the file itself: leave out --json")
    if name == "report.html":
        check_part("report")
    with _open(source, out, store, look=True) as at:
        if not name:
            _show(at.exports(), view.exports, as_json=json)
            return
        path = Path(output or name)
        made = at.export(name, names=names, by=f"{_user()}, with goldspan desk export")
        if output == "-":
            sys.stdout.buffer.write(made.content)
            for lost in made.lost:
                warn(not_held(lost))
            return
        with new_file(path) as temporary:
            temporary.write_bytes(made.content)
        found = {"written": str(path), "lost": list(made.lost)}
        words = "\n".join([f"written: {path}", *map(not_held, made.lost)])
        _show(found, lambda _: words, as_json=json)


@contextmanager
def _open(source: str, out: str, store: str | None, *, look: bool = False) -> Iterator[Desk]:
    """Open the desk over the store of a campaign; with `look`, work the labels out."""
    check_part("server")
    from goldspan.cli.report import write_findings
    from goldspan.cli.served import check_served, place_in, told_of_damage
    from goldspan.web import load_keys, open_service

    check_served(source, out, store)
    with told_of_damage(store or place_in(out)):
        service = open_service(source, out, load_keys(out), store, report=write_findings)
        try:
            service.ledger.check_facts()
            if look:
                service.engine.look()
            yield service.desk
        finally:
            service.close()


def _user() -> str:
    """Return who runs the command, as the operating system calls them."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # a container without such a user
        return "a user without a name"


def _show(found: Any, words: Any, *, as_json: bool) -> None:
    """Print a view of the desk, or a list of them, as JSON or in words."""
    if not isinstance(found, dict):
        found = [one.to_dict() for one in found] if isinstance(found, list) else found.to_dict()
    if as_json:
        emit_json(found)
    else:
        say(words(found))


def _span(text: str) -> Any:
    from goldspan.spans import Span

    start, _, rest = text.partition(":")
    end, _, kind = rest.partition(":")
    if not (start.isdecimal() and end.isdecimal() and kind):
        raise typer.BadParameter(f"{text!r} must look like 0:2:PER")
    return Span(kind, int(start), int(end))
