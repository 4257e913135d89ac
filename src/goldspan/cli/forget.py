"""`goldspan forget`: erase a person from a campaign, or show all that is stored of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from enum import StrEnum
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import check_part, emit_json, say, warn

if TYPE_CHECKING:
    from goldspan.campaign import CampaignInputs
    from goldspan.store import SqlLedger
    from goldspan.store.people import Forgotten

UNIT = 10_000
"""Millionths of the currency unit that are not worth a bonus: a cent."""
LARGEST = 1 << 28
"""Bytes of a file that is looked into for a person's id."""


class OldLog(StrEnum):
    """What becomes of a log of before, which names people by their ids."""

    remove = "remove"
    keep = "keep"


def forget(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, campaign.toml.")],
    worker: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKER",
            help="The worker's id, pseudonym, or id of their work at the provider.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print all that is stored of the person, as JSON.")
    ] = False,
    expired: Annotated[
        bool,
        typer.Option(
            "--expired", help="Forget everybody, if privacy.keep_days since the end are over."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    unsettled: Annotated[
        bool,
        typer.Option(
            "--unsettled", help="Also if a payment is under way: it is settled elsewhere."
        ),
    ] = False,
    old_log: Annotated[
        OldLog | None,
        typer.Option(
            help="For a campaign begun before people were kept apart: begin a new log, and remove "
            "the old one or keep it in a folder of its own.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="Folder of the campaign.")] = "out",
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="As for `goldspan serve`.", show_default=False)
    ] = None,
    json: r.AsJson = False,
) -> None:
    """Erase a person: id, links, provider records, words. Labels and amounts stay, by pseudonym.

    A server may be running: the person's session ends. Backups that were made before still hold the
    person; restoring one forgets them again as long as the list beside the store is kept.

    Examples:

      goldspan forget campaign.toml ann --dry-run

      goldspan forget campaign.toml ann --yes

      goldspan forget campaign.toml ann --show
    """
    if (worker is None) != expired:
        raise typer.BadParameter("name a WORKER, or say --expired, not both")
    if show and worker is None:
        raise typer.BadParameter("--show takes a WORKER")
    check_part("server")
    from goldspan.campaign.clock import wall_clock
    from goldspan.cli.served import read_setting
    from goldspan.store.people import UnsettledError
    from goldspan.web.opening import open_store

    inputs = read_setting(source)
    _check_there(source, out, store)
    with open_store(inputs, out, store, wall_clock()) as ledger:
        if show:
            emit_json(ledger.about(str(worker)))
            return
        names = _expired(inputs, ledger) if worker is None else [worker]
        told = []
        for name in names:
            try:
                told.append(_forget(
                    inputs, ledger, name, source, out, store,
                    dry=dry_run, yes=yes, unsettled=unsettled, old_log=old_log,
                ))  # fmt: skip
            except UnsettledError as error:
                if not expired:
                    raise
                warn(f"goldspan: {error}")  # the others are forgotten all the same
    if json:
        emit_json({"dry_run": dry_run, "people": told})
        return
    if not told:
        say("nobody is to be forgotten yet")
    for one in told:
        say(_words(one, dry=dry_run))


def _check_there(source: str, out: str, store: str | None) -> None:
    """Reject a place without a campaign, and make nothing there."""
    from goldspan.errors import InputError
    from goldspan.store import open_ledger
    from goldspan.web.opening import FILE

    if store is None and not (Path(out) / FILE).is_file():
        raise InputError(
            f"{out} holds no campaign: there is no {FILE} in it; give the --out and --store that "
            f"`goldspan serve {source}` was started with"
        )
    open_ledger(store or Path(out) / FILE).close()


def _forget(
    inputs: CampaignInputs, ledger: SqlLedger, who: str, source: str, out: str,
    store: str | None, *, dry: bool, yes: bool, unsettled: bool, old_log: OldLog | None,
) -> dict[str, Any]:  # fmt: skip
    from goldspan.campaign.clock import CampaignClock
    from goldspan.store import export_ledger, scrub, write_list
    from goldspan.store.erasing import rebase
    from goldspan.store.people import Forgotten
    from goldspan.web.opening import list_of

    is_old, kept_log = not ledger.is_private, ""
    clock = CampaignClock(ledger)
    if is_old and (dry or old_log is None):
        found = ledger.about(who)
        if not dry:
            ledger.forget(who, clock())  # refuses, and says what to choose
        counts = {"records": len(found["records"])}
        result = Forgotten("", counts, {"answers": len(found["answers"])})
        return _told(who, result, [], old_log="would be replaced", erased=False)
    if is_old:
        ledger.about(who)  # refuses who is not known, before anything is done
        _confirm(f"Begin a new log, and {old_log} the old one, which names all workers?", yes=yes)
        if old_log == OldLog.keep:
            kept_log = str(list_of(out, store).with_suffix(".old-log"))
            if not _is_kept(kept_log, ledger):  # it was interrupted after that
                export_ledger(ledger, kept_log)
            Path(kept_log).chmod(0o700)
        rebase(ledger.database, clock())
        scrub(ledger.database)
    person = _id_of(ledger, who)
    if not unsettled and person is not None:
        _check_paid(inputs, ledger, person)
    result = ledger.forget(who, clock(), dry=True, unsettled=unsettled)
    if not dry:
        if not result.again:
            _confirm(f"{_words(_told(who, result, []), dry=True)}\nForget {who}?", yes=yes)
        result = ledger.forget(who, clock(), unsettled=unsettled)
        write_list(ledger.database, list_of(out, store))
        erased = scrub(ledger.database)
    else:
        erased = False
    left = list(_files(Path(out), person or who, result.pseudonym, dry=dry))
    if (person or who) in inputs.plan.crowd.annotators:
        left.append(f"{source} (crowd.annotators)")
    return _told(who, result, left, old_log=kept_log, erased=erased)


def _is_kept(folder: str, ledger: SqlLedger) -> bool:
    """Whether a folder is an export of the log as it is now."""
    from goldspan.store.copies import ABOUT

    try:
        about = loads((Path(folder) / ABOUT).read_text(encoding="utf-8"))
        return bool(about["head"] == ledger.head)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _told(
    who: str, result: Forgotten, left: list[str], *, old_log: str = "", erased: bool = False
) -> dict[str, Any]:
    return {
        "worker": who, "pseudonym": result.pseudonym, "again": result.again,
        "removed": dict(result.removed), "kept": dict(result.kept),
        "files": left, "old_log": old_log, "erased": erased,
    }  # fmt: skip


def _confirm(question: str, *, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _id_of(ledger: SqlLedger, who: str) -> str | None:
    """Return the id of somebody; None if they were forgotten, or are not known."""
    from goldspan.errors import InputError

    try:
        found = ledger.about(who)["id"]
    except InputError:  # `SqlLedger.forget` says what to do
        return None
    return None if found is None else str(found)


def _check_paid(inputs: CampaignInputs, ledger: SqlLedger, worker: str) -> None:
    """Reject to forget somebody whose answers earned more than was sent to the provider.

    Raises:
        UnsettledError: They did.
    """
    from goldspan.campaign.clock import CampaignClock
    from goldspan.money import from_micro
    from goldspan.store.people import UnsettledError
    from goldspan.web.people import People
    from goldspan.web.providers.outbox import Outbox
    from goldspan.web.providers.registry import open_provider

    clock = CampaignClock(ledger)
    provider = open_provider(inputs.plan, ledger, clock)
    if worker not in provider.workers():
        return
    owed = provider.owed(worker, People(inputs, ledger)[worker].earned)
    letters = Outbox(ledger, clock).letters()
    due = owed - sum(one.amount for one in letters if one.id.startswith(f"earned:{worker}:"))
    if due >= UNIT:
        raise UnsettledError(
            f"{worker} has earned {from_micro(due)} {inputs.plan.prices.currency} that was not "
            "sent: `goldspan outbox PLAN --earned --send` pays it, or give --unsettled if it is "
            "settled elsewhere; nothing was changed"
        )


def _files(out: Path, who: str, pseudonym: str, *, dry: bool) -> Iterator[str]:
    """Put the pseudonym into the bill; return the files that still name the person."""
    if who == pseudonym:
        return
    for path in sorted(out.rglob("*")):
        is_store = path.name.startswith("campaign.sqlite")
        if is_store or not path.is_file() or path.stat().st_size > LARGEST:
            continue
        if who.encode() not in path.read_bytes() and who not in path.name:
            continue
        if path.name == "bill.csv" and not dry and _rename(path, who, pseudonym):
            continue
        yield str(path)


def _rename(path: Path, who: str, pseudonym: str) -> bool:
    """Put a pseudonym in place of an id in the first column of a table; whether all are gone."""
    from goldspan.crowd.atomic import write_text

    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    buffer = io.StringIO()
    names = {who: pseudonym, f"'{who}": pseudonym}
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerows([names.get(row[0], row[0]), *row[1:]] if row else row for row in rows)
    write_text(path, [buffer.getvalue()])
    return who.encode() not in path.read_bytes()


def _expired(inputs: CampaignInputs, ledger: SqlLedger) -> list[str]:
    """Return everybody, if the time is over for which the plan keeps people."""
    from goldspan.campaign.clock import wall_clock
    from goldspan.web.ending import is_expired

    return list(ledger.pseudonyms()) if is_expired(inputs, ledger, wall_clock()) else []


def _words(told: Mapping[str, Any], *, dry: bool) -> str:
    who, name = told["worker"], told["pseudonym"]
    removed = ", ".join(f"{n} {what}" for what, n in told["removed"].items() if n) or "nothing"
    stay = ", ".join(f"{_amount(what, n)}" for what, n in told["kept"].items())
    if told["again"]:
        lines = [f"{who} was forgotten before, and is {name}: the file was erased once more"]
    elif dry:
        lines = [f"{who} would be forgotten; removed: {removed}; kept: {stay}"]
    else:
        lines = [f"{who} is forgotten; removed: {removed}", f"kept under {name}: {stay}"]
    if told["old_log"]:
        lines.append(f"the old log, which names all workers: {told['old_log']}")
    lines += [f"still names them, and is yours to remove: {path}" for path in told["files"]]
    if not dry:
        if not told["erased"]:
            warn("others are reading the store: give the command again to erase the last bytes")
        lines.append(
            "backups and downloads of before still hold them: let them age out, and keep the file "
            "NAME.forgotten beside the store, which `goldspan restore` reads"
        )
    return "\n".join(lines)


def _amount(what: str, n: int) -> str:
    from goldspan.money import from_micro

    return f"{what} {from_micro(n)}" if what in {"paid", "bonuses"} else f"{n} {what}"
