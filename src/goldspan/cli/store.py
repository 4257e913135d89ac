"""A campaign's store: verify it, copy it, restore it, erase a person from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.options import (
    STORE,
    AsJson,
    Overwrite,
    Place,
    Store,
    argument,
    at_campaign,
    flag,
    option,
    told_of_damage,
)
from goldspan.cli.output import check_outputs, check_part, emit_json, print_result, steps, warn
from goldspan.crowd.atomic import NewPlaces, write_text
from goldspan.errors import InputError
from goldspan.money import from_micro

if TYPE_CHECKING:
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.store import SqlLedger
    from goldspan.store.erasing import Forgotten
    from goldspan.store.verify import Tell, Verification

# --------------------------------------------------------------------------------------------------
# goldspan verify


NOT_WHOLE = 3
"""Exit code of a store that was read and is not what its log says."""
_PARTS = ("pages", "log", "tables")


def verify(
    source: str = argument(
        "The plan, campaign.toml; or the campaign's folder, a SQLite file (a backup too), "
        "or postgresql://….",
        "PLAN|STORE",
    ),
    out: str = option("With a plan: the campaign's folder.", default="out"),
    store: Store = None,
    head: str | None = option(
        "A head noted earlier: the log must still have an entry with it.", metavar="HASH"
    ),
    limit: int = option("How many differing rows of a table to name.", default=20, min=1),
    json: AsJson = False,
) -> None:
    """Compare a campaign's tables with its log, and run the database's own check.

    The log's chain of hashes is followed from its first entry to its last, its entries are replayed
    in a temporary database, and every row of every table is compared. `goldspan serve` may run
    meanwhile. Keep the head that is printed, outside of the store: given as --head later, it shows
    whether the log was rewritten.

    Exit codes: 0 the store is whole, 3 it is not, 1 it cannot be opened, 2 wrong usage.

    Examples:

      goldspan verify campaign.toml

      goldspan verify monday.sqlite

      goldspan verify out/ --head 3f5a… --json
    """
    check_part("store")
    from goldspan.store.copies import opened_unchanged
    from goldspan.store.verify import verify as check

    place = place_of(source, out, store)
    with opened_unchanged(place) as database, progress(quiet=json) as tell:
        found = check(database, head=head, most=limit, tell=tell)
    if not json:
        for note in found.notes:
            warn(f"goldspan: {note}")
    print_result(found.to_dict(), _verified(found), as_json=json)
    if not found.is_whole:
        raise typer.Exit(NOT_WHOLE)


def place_of(source: str, out: str, store: str | None) -> str | Path:
    """Return the store of a campaign that is named by its plan, its folder or its store."""
    if store is not None:
        return store
    if "://" in source:
        return source
    path = Path(source)
    if path.is_dir():
        return path / STORE
    return Path(out) / STORE if path.suffix == ".toml" else path


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Tell]:
    """Show how far a comparison with the log is, if it takes longer than a second."""
    with steps(len(_PARTS), quiet=quiet) as step:
        begun: list[str] = []

        def tell(part: str, done: int, total: int) -> None:
            if part not in begun:
                begun.append(part)
                step(f"checking the {part}")
            step.part(done, total)

        yield tell


def _verified(found: Verification) -> Iterator[str]:
    if found.is_whole:
        log = f"the {found.n_events} entries of its log"
        yield f"{found.where} is whole: its tables are what {log} say"
        yield f"rows compared: {_counted(found.n_rows)}"
        yield f"head: {found.head}"
        return
    yield f"{found.where} is not what its log says:"
    yield from (f"  {line}" for line in found.lines())
    if found.head:
        yield f"head: {found.head} (of the {found.n_events} entries that could be followed)"
    yield "keep this file as it is, and restore the newest backup that is whole: goldspan restore"


def _counted(rows: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in rows.items() if count)


# --------------------------------------------------------------------------------------------------
# goldspan backup, goldspan restore


def backup(
    out: str = argument("The campaign's folder.", "OUT"),
    file: str = argument("The file to write.", "FILE"),
    store: Store = None,
    damaged: bool = flag("Copy a damaged store too, and say what is wrong with it.", "--damaged"),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Copy a campaign into one file, even while it is served: the copy shows it at one moment.

    The copy's tables are compared with its log, as by `goldspan verify`; if they differ, nothing is
    written, so that a damaged store does not replace a good backup.

    The server's secret is not in the copy: keep the folder's server.key too, or all links and
    sessions end with a restore. For PostgreSQL use its own pg_dump.

    Examples:

      goldspan backup out/ monday.sqlite

      goldspan backup out/ latest.sqlite --overwrite
    """
    check_part("store")
    check_outputs(file, inputs=[str(Path(out) / STORE)], overwrite=overwrite)
    from goldspan.store import backup_ledger, open_ledger

    place = store or Path(out) / STORE
    with told_of_damage(place), open_ledger(place) as ledger, progress(quiet=json) as tell:
        found = backup_ledger(ledger, file, damaged=damaged, tell=tell)
    for line in found.lines():
        warn(f"goldspan: {line}")
    if not found.is_whole:
        warn(f"goldspan: {file} is a copy of a damaged store: keep the backups made before it")
    lines = [f"copied to {file}; head of its log: {found.head}"]
    print_result({"written": file, **found.to_dict()}, lines, as_json=json)


def restore(
    file: str = argument("A backup, written by `goldspan backup`.", "FILE"),
    out: str = argument("A folder without a campaign.", "OUT"),
    forgotten: list[str] | None = option(
        "A list of forgotten people, campaign.sqlite.forgotten, that is kept elsewhere.",
        metavar="FILE",
    ),
    json: AsJson = False,
) -> None:
    """Restore a campaign's folder from a backup, after comparing all its tables with its log.

    A damaged backup is rejected, and nothing is written.

    People who were forgotten since the backup are forgotten again: files `*.forgotten` beside the
    backup and in the folder are read for that.

    Afterwards `goldspan serve` or `goldspan run`, with this folder as --out, continues from there.

    Examples:

      goldspan restore monday.sqlite again/
    """
    check_part("store")
    from goldspan.store import restore_ledger

    place = Path(out) / STORE
    with NewPlaces() as new:
        new.folder(out)
        new.expect(place)
        with (
            progress(quiet=json) as tell,
            restore_ledger(file, place, lists=forgotten or (), tell=tell) as ledger,
        ):
            name, n, gone = ledger.name, ledger.n_events, ledger.forgotten()
    n_forgotten = len({one["hash"] for one in gone})  # a copy may hold two pseudonyms of a person
    facts = {"restored": str(place), "campaign": name, "entries": n, "forgotten": n_forgotten}
    lines = [f"{place} holds the campaign {name!r}, {n} entries of its log"]
    lines += [f"forgotten in it: {n_forgotten}"] if n_forgotten else []
    print_result(facts, lines, as_json=json)


# --------------------------------------------------------------------------------------------------
# goldspan forget


UNIT = 10_000
"""Millionths of the currency unit that are not worth a bonus: a cent."""
LARGEST = 1 << 28
"""Bytes of a file that is looked into for a person's id."""


@at_campaign
def forget(
    place: Place,
    worker: str | None = argument(
        "The worker's id, pseudonym, or id of their work at the provider.", "WORKER", default=None
    ),
    show: bool = flag("Print everything that is stored about the person, as JSON.", "--show"),
    expired: bool = flag(
        "Forget everybody, if privacy.keep_days have passed since the end.", "--expired"
    ),
    dry_run: bool = flag("Show what would be removed, and change nothing.", "--dry-run"),
    yes: bool = flag("Do not ask for confirmation.", "--yes"),
    unsettled: bool = flag(
        "Forget also if a payment is still open, because it is settled elsewhere.", "--unsettled"
    ),
    json: AsJson = False,
) -> None:
    """Erase a person: id, links, provider records, free texts. Labels and amounts keep a pseudonym.

    A server may be running: the person's session ends. Backups that were made before still contain
    the person; restoring one forgets them again as long as the list beside the store is kept.

    Examples:

      goldspan forget campaign.toml ann --dry-run

      goldspan forget campaign.toml ann --yes

      goldspan forget campaign.toml ann --show
    """
    if (worker is None) != expired:
        raise typer.BadParameter("give a WORKER or --expired, not both")
    if show and worker is None:
        raise typer.BadParameter("--show takes a WORKER")
    with place.opened(has_secret=False) as (inputs, ledger):
        from goldspan.store.erasing import UnsettledError

        if show:
            emit_json(ledger.about(str(worker)))
            return
        names = _expired(inputs, ledger) if worker is None else [worker]
        told = []
        for name in names:
            try:
                told.append(_forget(
                    inputs, ledger, name, place,
                    dry=dry_run, yes=yes, unsettled=unsettled,
                ))  # fmt: skip
            except UnsettledError as error:
                if not expired:
                    raise
                warn(f"goldspan: {error}")  # the others are forgotten all the same
    lines = (_words(one, dry=dry_run) for one in told)
    nobody = ["nobody is to be forgotten yet"]
    print_result({"dry_run": dry_run, "people": told}, lines if told else nobody, as_json=json)


def _forget(
    inputs: CampaignInputs,
    ledger: SqlLedger,
    who: str,
    place: Place,
    *,
    dry: bool,
    yes: bool,
    unsettled: bool,
) -> dict[str, Any]:
    from goldspan.campaign.clock import CampaignClock
    from goldspan.store.erasing import scrub, write_list
    from goldspan.web.opening import list_of

    clock = CampaignClock(ledger)
    person = _id_of(ledger, who)
    if not unsettled and person is not None:
        _check_paid(inputs, ledger, person)
    result = ledger.forget(who, clock(), dry=True, unsettled=unsettled)
    if not dry:
        if not (result.again or yes):
            question = f"{_words(_told(who, result, []), dry=True)}\nForget {who}?"
            typer.confirm(question, abort=True, err=True)
        result = ledger.forget(who, clock(), unsettled=unsettled)
        write_list(ledger.database, list_of(place.out, place.store))
        erased = scrub(ledger.database)
    else:
        erased = False
    there = _files(Path(place.out), person or who, result.pseudonym, dry=dry)
    kept = ledger.labels_folder  # goes with the person: nobody has to remove its files
    left = [path for path in there if kept is None or Path(path).parent.resolve() != kept.resolve()]
    if (person or who) in inputs.plan.crowd.annotators:
        left.append(f"{place.plan} (crowd.annotators)")
    return _told(who, result, left, erased=erased)


def _told(who: str, result: Forgotten, left: list[str], *, erased: bool = False) -> dict[str, Any]:
    return {
        "worker": who, "pseudonym": result.pseudonym, "again": result.again,
        "removed": dict(result.removed), "kept": dict(result.kept),
        "files": left, "erased": erased,
    }  # fmt: skip


def _id_of(ledger: SqlLedger, who: str) -> str | None:
    """Return the id of somebody; None if they were forgotten, or are not known."""
    try:
        found = ledger.about(who)["id"]
    except InputError:  # `SqlLedger.forget` says what to do
        return None
    return None if found is None else str(found)


def _check_paid(inputs: CampaignInputs, ledger: SqlLedger, worker: str) -> None:
    """Reject forgetting somebody whose answers earned more than was sent to the provider."""
    from goldspan.campaign.clock import CampaignClock
    from goldspan.store.erasing import UnsettledError
    from goldspan.web.people import People
    from goldspan.web.providers.payments import PaymentQueue
    from goldspan.web.providers.registry import open_provider

    clock = CampaignClock(ledger)
    provider = open_provider(inputs.plan, ledger, clock)
    if worker not in provider.workers():
        return
    owed = provider.owed(worker, People(inputs, ledger)[worker].earned)
    letters = PaymentQueue(ledger, clock).requests()
    due = owed - sum(one.amount for one in letters if one.id.startswith(f"earned:{worker}:"))
    if due >= UNIT:
        raise UnsettledError(
            f"{worker} has earned {from_micro(due)} {inputs.plan.prices.currency} that was not "
            "sent: `goldspan payments PLAN --earned --send` pays it, or give --unsettled if it is "
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
    from goldspan.web.engine import is_expired

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
    lines += [f"still names them, and is yours to remove: {path}" for path in told["files"]]
    if not dry:
        if not told["erased"]:
            warn("others are reading the store: run the command again to erase the last bytes")
        lines.append(
            "earlier backups and downloads still contain them: let those age out, and keep the "
            "file NAME.forgotten beside the store, which `goldspan restore` reads"
        )
    return "\n".join(lines)


def _amount(what: str, n: int) -> str:
    return f"{what} {from_micro(n)}" if what in {"paid", "bonuses"} else f"{n} {what}"
