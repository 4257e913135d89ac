"""Invitations by mail: a message per worker with their personal link, as a file."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

from goldspan.errors import Fault, FaultsError, InputError
from goldspan.web.pages import plain_words

_ADDRESS = re.compile(r"[^@\s<>,;:\"()\\\[\]]+@[^@\s<>,;:\"()\\\[\]]+")
_TEXT = """Hello,

you are invited to label texts: {title}

Your personal link is

{url}

It holds until {until} (UTC). You can open it as often as you like, on any device, and go on where \
you were. Whoever has the link works in your name, so please do not pass it on.
{instructions}"""


@dataclass(frozen=True)
class Invitation:
    """What a message says."""

    worker: str  # Whom it is for
    address: str  # Theirs; "" if it is not known and is filled in by hand
    url: str
    expires: int  # Until when it holds, in milliseconds since 1970
    title: str
    instructions: str = ""  # In Markdown; the request says them in plain words


def read_addresses(path: str | Path) -> dict[str, str]:
    """Read lines of `worker,address`; a first line that says so is passed over."""
    return _read_pairs(path, ["worker", "address"], "an e-mail address", _ADDRESS)


def read_names(path: str | Path) -> dict[str, str]:
    """Read lines of `id,name`; a first line that says so is passed over."""
    found = _read_pairs(path, ["id", "name"], "a name", re.compile(".+"))
    if len({*found.values()}) < len(found):
        raise InputError(f"{path}: two annotators have the same name")
    return found


def _read_pairs(
    path: str | Path, heading: list[str], what: str, allowed: re.Pattern[str]
) -> dict[str, str]:
    """Read a table of two columns, the first of which is a worker's id."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(enumerate(csv.reader(file), start=1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    found: dict[str, str] = {}
    faults = []
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells == heading:
            continue
        if len(cells) != 2 or not cells[0] or not allowed.fullmatch(cells[1]):
            faults.append(Fault(f"must be a worker, a comma and {what}", str(path), line))
        elif found.setdefault(cells[0], cells[1]) != cells[1]:
            faults.append(
                Fault(f"has another {heading[1]} above", str(path), line, worker=cells[0])
            )
    if faults:
        raise FaultsError(faults)
    return found


def check_new(folder: Path, workers: Sequence[str]) -> None:
    """Reject a folder that holds messages to these workers already."""
    there = [name for name in workers if (folder / f"{_file_name(name)}.eml").exists()]
    if there:
        raise InputError(
            f"{folder} holds messages already, to {', '.join(there[:5])}: choose another folder, "
            "or replace them with --overwrite"
        )


def write_mails(folder: Path, invitations: Sequence[Invitation]) -> list[Path]:
    """Write a file per invitation, which only its owner can read; give their paths."""
    made = []
    for invitation in invitations:
        path = folder / f"{_file_name(invitation.worker)}.eml"
        number = 2
        while path in made:
            path = folder / f"{_file_name(invitation.worker)}-{number}.eml"
            number += 1
        _write(path, message(invitation).as_bytes(policy=SMTP))
        made.append(path)
    return made


def message(invitation: Invitation) -> EmailMessage:
    """Return the message of an invitation."""
    mail = EmailMessage()
    address = invitation.address or (
        invitation.worker if _ADDRESS.fullmatch(invitation.worker) else ""
    )
    if address:
        name, _, domain = address.rpartition("@")
        mail["To"] = Address(username=name, domain=domain)
    mail["Subject"] = f"Labelling: {' '.join(invitation.title.split())}"
    mail["X-Unsent"] = "1"  # mail programs open it as a draft
    until = datetime.fromtimestamp(invitation.expires / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    words = plain_words(invitation.instructions)
    told = f"\n{words}\n" if words else ""
    mail.set_content(
        _TEXT.format(title=invitation.title, url=invitation.url, until=until, instructions=told)
    )
    return mail


def _file_name(worker: str) -> str:
    """Return what of a name every file system can hold."""
    return re.sub(r"[^A-Za-z0-9@._-]+", "_", worker)[:80].strip(".") or "worker"


def _write(path: Path, content: bytes) -> None:
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
