"""Letters to a provider: written, kept, sent once, settled."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldspan.errors import Fault, FaultsError, GoldspanError, InputError
from goldspan.money import from_micro
from goldspan.web.pages import plain_words
from goldspan.web.security.secret import new_id

if TYPE_CHECKING:
    from goldspan.web.providers.protocol import Store


# --------------------------------------------------------------------------------------------------
# A message to send per worker, with their personal link: files that mail programs open.


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
    """What a message says.

    Attributes:
        worker: Whom it is for.
        address: Theirs; "" if it is not known and is filled in by hand.
        url: The personal link.
        expires: Until when it holds, in milliseconds since 1970.
        title: Of the campaign.
        instructions: In Markdown; the letter says them in plain words.
    """

    worker: str
    address: str
    url: str
    expires: int
    title: str
    instructions: str = ""


def read_addresses(path: str | Path) -> dict[str, str]:
    """Read lines of `worker,address`; a first line that says so is passed over.

    Raises:
        InputError: The file cannot be read.
        FaultsError: A line is no such pair, or a worker stands twice.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(enumerate(csv.reader(file), start=1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    found: dict[str, str] = {}
    faults = []
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells == ["worker", "address"]:
            continue
        if len(cells) != 2 or not cells[0] or not _ADDRESS.fullmatch(cells[1]):
            faults.append(Fault("must be a worker, a comma and an e-mail address", str(path), line))
        elif found.setdefault(cells[0], cells[1]) != cells[1]:
            faults.append(Fault("has another address above", str(path), line, worker=cells[0]))
    if faults:
        raise FaultsError(faults)
    return found


def check_new(folder: Path, workers: Sequence[str]) -> None:
    """Reject a folder that holds messages to these workers already.

    Raises:
        InputError: It does.
    """
    there = [name for name in workers if (folder / f"{_file_name(name)}.eml").exists()]
    if there:
        raise InputError(
            f"{folder} holds messages already, to {', '.join(there[:5])}: choose another folder, "
            "or replace them with --overwrite"
        )


def write_mails(folder: Path, invitations: Sequence[Invitation]) -> list[Path]:
    """Write a file per invitation, which only its owner can read; give their paths.

    Raises:
        InputError: A file cannot be written.
    """
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


# --------------------------------------------------------------------------------------------------
# Letters to a provider – approve, reject, pay a bonus – and every step in sending them.


LETTER, STEP = "outbox", "outbox-step"
"""Kinds of records."""
WAITING, READY, SENDING, SENT, REFUSED = "waiting", "ready", "sending", "sent", "refused"
"""What has become of a letter: not begun; to be sent anew; perhaps arrived; arrived; not taken."""
FINAL = frozenset({SENT, REFUSED})
APPROVE, REJECT, BONUS = "approve", "reject", "bonus"


class Later(GoldspanError):  # noqa: N818 - what to do about it
    """The provider cannot be reached, or asks to wait: nothing is lost, send again later."""


@dataclass(frozen=True)
class Letter:
    """What is to be done at the provider's.

    Attributes:
        id: Its name, which says what it is about.
        act: "approve", "reject" or "bonus".
        worker: Whom it is about.
        about: The provider's id of their work.
        amount: Of a bonus, in millionths of the currency unit.
        why: Said to the worker, or the reason for a bonus.
        category: Of a rejection.
        state: What has become of it.
        time: When it did, in milliseconds since 1970.
        facts: What was noted then.
        n_steps: How many steps were taken.
    """

    id: str
    act: str
    worker: str
    about: str
    amount: int = 0
    why: str = ""
    category: str = ""
    state: str = WAITING
    time: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    n_steps: int = 0


class Outbox:
    """The letters of a campaign.

    Args:
        store: The campaign's ledger.
        clock: The campaign's clock, in milliseconds.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self.clock = store, clock
        self._sender = new_id()

    def letters(self) -> list[Letter]:
        """Return all letters in the order in which they were written, as they are now."""
        steps: dict[str, list[dict[str, Any]]] = {}
        for step in self._store.records(STEP).values():
            steps.setdefault(step["letter"], []).append(step)
        return [
            _letter(name, body, steps.get(name, []))
            for name, body in self._store.records(LETTER).items()
        ]

    def open(self) -> Iterator[Letter]:
        """Yield what can be sent: of the letters about the same work the first that is not done."""
        busy = set()
        for letter in self.letters():
            if letter.state not in FINAL and letter.about not in busy:
                busy.add(letter.about)
                yield letter

    def approve(self, worker: str, about: str) -> str:
        """Write that a worker's work is taken; give the letter's id.

        Raises:
            InputError: It is written that it is not.
        """
        return self._decide(APPROVE, worker, about)

    def reject(self, worker: str, about: str, why: str, category: str) -> str:
        """Write that a worker's work is not taken, and why.

        Raises:
            InputError: It is written that it is, or other reasons are.
        """
        return self._decide(REJECT, worker, about, why=why, category=category)

    def bonus(self, worker: str, about: str, amount: int, why: str) -> str:
        """Write that a worker gets a bonus, once for every reason; its money is taken at once.

        The reason is the worker's, whatever work of theirs the letter is about: with more work
        come in since, it is the same bonus, and is paid on the work that it was written for.

        Raises:
            InputError: The money is short, or another amount was written for this reason.
        """
        if not amount:
            raise InputError(f"a bonus of nothing for {worker}")
        there = self._bonus(worker, amount, why)
        if there is not None:
            return there
        name = f"{BONUS}:{worker}:{why}"
        if not self._store.charge(name, amount, self.clock()):
            raise InputError(
                f"the budget does not hold a bonus of {from_micro(amount)} for {worker}: raise "
                "budget.money in the plan"
            )
        try:
            return self._write(name, BONUS, worker, about, amount=amount, why=why)
        except InputError:  # somebody else was first, perhaps about other work
            there = self._bonus(worker, amount, why)
            if there is None:
                raise
            return there

    def earned(self, worker: str, about: str, total: int, unit: int = 10_000) -> str | None:
        """Write that a worker gets as a bonus what their answers earned and was not sent yet.

        The answers have been paid from the budget, so nothing more is taken from it. What was
        refused is sent by `reopen`, and not written again.

        Args:
            worker: Whom.
            about: The provider's id of their work.
            total: What is to be paid in bonuses altogether, in millionths.
            unit: Of which only whole ones are sent: cents.
        """
        before = [one for one in self.letters() if one.id.startswith(f"earned:{worker}:")]
        amount = (total - sum(one.amount for one in before)) // unit * unit
        if amount <= 0:
            return None
        # The number is taken once: two who write at the same time do not both pay.
        name = f"earned:{worker}:{len(before)}"
        return self._write(name, BONUS, worker, about, amount=amount, why="answers")

    def reopen(self, name: str) -> None:
        """Let a letter that was refused be sent again.

        Raises:
            InputError: There is no such letter, or it was not refused.
        """
        letter = next((one for one in self.letters() if one.id == name), None)
        if letter is None or letter.state != REFUSED:
            raise InputError(f"there is no letter {name!r} that was refused")
        self.note(letter, READY)

    def note(self, letter: Letter, state: str, **facts: Any) -> Letter | None:
        """Keep the next step of a letter; None if somebody else was first."""
        now = self.clock()
        body = {"letter": letter.id, "state": state, "time": now, "facts": facts}
        name = f"{letter.id}#{letter.n_steps:04d}"
        try:
            self._store.record(STEP, name, {**body, "sender": self._sender}, now)
        except InputError:
            return None
        return _with_step(letter, body, letter.n_steps + 1)

    def _write(self, name: str, act: str, worker: str, about: str, **more: Any) -> str:
        body = {"act": act, "worker": worker, "about": about, **more}
        self._store.record(LETTER, name, body, self.clock())
        return name

    def _bonus(self, worker: str, amount: int, why: str) -> str | None:
        """Return the bonus that was written for a worker and a reason, None if there is none."""
        prefix = f"{BONUS}:"  # what answers earned has no reason of anybody's
        for one in self.letters():
            if (one.worker, one.why) == (worker, why) and one.id.startswith(prefix):
                if one.amount != amount:
                    raise InputError(
                        f"{worker}: a bonus of {from_micro(one.amount)} was written for {why!r}, "
                        f"not of {from_micro(amount)}: give another reason"
                    )
                return one.id
        return None

    def _decide(self, act: str, worker: str, about: str, **more: str) -> str:
        """Write a decision, unless there is one; one that was refused can be written anew."""
        mine = [one for one in self.letters() if one.about == about and one.act != BONUS]
        there = next((one for one in mine if one.state != REFUSED), None)
        if there is None:
            return self._write(f"{act}:{about}:{len(mine)}", act, worker, about, **more)
        if there.act != act or {key: getattr(there, key) for key in more} != more:
            raise InputError(f"{worker}: there is a letter to {there.act} already")
        return there.id


def send_all(outbox: Outbox, deliver: Callable[[Letter, Outbox], None]) -> int:
    """Send what can be sent; count the letters that are done now.

    Args:
        outbox: The letters.
        deliver: Who carries them.

    Raises:
        Later: The provider cannot be reached now.
    """
    done = 0
    tried: set[str] = set()
    while True:
        fresh = [one for one in outbox.open() if one.id not in tried]
        if not fresh:
            return done
        for letter in fresh:
            tried.add(letter.id)
            deliver(letter, outbox)
        states = {one.id: one.state for one in outbox.letters()}
        done += sum(states[one.id] in FINAL for one in fresh)


def _letter(name: str, body: Mapping[str, Any], steps: list[dict[str, Any]]) -> Letter:
    letter = Letter(id=name, **body)
    return _with_step(letter, steps[-1], len(steps)) if steps else letter


def _with_step(letter: Letter, step: Mapping[str, Any], n_steps: int) -> Letter:
    now = {"state": step["state"], "time": step["time"], "facts": step["facts"]}
    return replace(letter, **now, n_steps=n_steps)
