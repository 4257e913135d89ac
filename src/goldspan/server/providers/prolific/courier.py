"""Carries letters to Prolific: approvals and rejections any number of times, a bonus once.

Prolific pays a prepared bonus every time that it is asked to, and has no keys against it. So the
intention is kept before asking, together with the number of bonuses of this amount that Prolific
lists by then. If no clear answer comes – a broken connection, 5xx, a process that was killed – it
is looked up whether there is one more. If not, nothing is sent again until `settle_minutes` have
passed, as Prolific pays some minutes later, and the list is looked at once more before.
"""

from __future__ import annotations

from collections.abc import Callable

from goldspan.campaign.clock import wall_of
from goldspan.server.providers.outbox import (
    APPROVE,
    BONUS,
    READY,
    REFUSED,
    SENDING,
    SENT,
    Later,
    Letter,
    Outbox,
)
from goldspan.server.providers.prolific.api import Api, Declined, Unclear

CENT = 10_000
"""Millionths."""
MOST_DELAY = 120_000
"""Milliseconds from keeping that a bonus is sent to sending it; less than any settling time."""


class ProlificCourier:
    """Carries letters to Prolific.

    Args:
        api: Prolific's.
        study: Id of the study.
        settle_minutes: How long a payment may take to be listed.
        clock: The campaign's clock, in milliseconds.
    """

    def __init__(
        self, api: Api, study: str, settle_minutes: float, clock: Callable[[], int]
    ) -> None:
        self._api, self._study, self._clock = api, study, clock
        self._wall = wall_of(clock)
        self._settle = round(settle_minutes * 60_000)

    def deliver(self, letter: Letter, outbox: Outbox) -> None:
        """Send a letter, and note every step."""
        try:
            if letter.act == BONUS:
                self._bonus(letter, outbox)
            else:
                self._transition(letter, outbox)
        except Declined as error:
            outbox.note(letter, REFUSED, why=str(error))

    def _transition(self, letter: Letter, outbox: Outbox) -> None:
        """Approve or reject; Prolific ignores the second time."""
        body = {"action": letter.act.upper()}
        if letter.act != APPROVE:
            body |= {"message": letter.why, "rejection_category": letter.category}
        wanted = "APPROVED" if letter.act == APPROVE else "REJECTED"
        try:
            self._api.transition(letter.about, body)
        except Declined:
            # Somebody may have done it on the site, or the answer to the first try was lost.
            if self._api.submission(letter.about).get("status") != wanted:
                raise
        outbox.note(letter, SENT)

    def _bonus(self, letter: Letter, outbox: Outbox) -> None:
        if letter.amount % CENT:
            outbox.note(letter, REFUSED, why="Prolific pays whole cents")
            return
        cents = letter.amount // CENT
        listed = self._listed(letter, cents)
        if letter.state == SENDING and listed > letter.facts["before"]:
            outbox.note(letter, SENT, before=letter.facts["before"], how="listed")
            return
        if self._must_wait(letter, outbox, listed):
            return
        prepared = self._api.set_up_bonus(self._study, letter.about, cents)
        begin = self._wall()
        # Whoever gets to note this pays, and nobody else.
        sending = outbox.note(letter, SENDING, prepared=prepared, before=listed)
        if sending is not None:
            self._pay(sending, outbox, begin)

    def _pay(self, letter: Letter, outbox: Outbox, begin: int) -> None:
        # A monotone clock may stand still while the machine sleeps; the wall clock does not.
        delay = max(self._clock() - letter.time, self._wall() - begin)
        if delay > MOST_DELAY:  # asleep since, and somebody else may pay
            outbox.note(letter, READY)
            return
        try:
            self._api.pay(letter.facts["prepared"])
        except Later:  # it has not arrived, or was refused for now
            outbox.note(letter, READY)
            raise
        except Unclear:
            return
        except Declined as error:
            outbox.note(letter, REFUSED, why=str(error))
        else:
            outbox.note(letter, SENT, before=letter.facts["before"], how="answered")

    def _must_wait(self, letter: Letter, outbox: Outbox, listed: int) -> bool:
        """Whether a bonus of this amount may still appear on the list, this one or an earlier."""
        alike = [
            one
            for one in outbox.letters()
            if (one.act, one.about, one.amount) == (BONUS, letter.about, letter.amount)
            and (one.state == SENDING or (one.state == SENT and listed <= one.facts["before"]))
        ]
        return any(self._clock() - one.time < self._settle for one in alike)

    def _listed(self, letter: Letter, cents: int) -> int:
        """Count the bonuses of this amount that Prolific lists."""
        try:
            found = self._api.bonuses(letter.about)
        except Declined as error:
            if letter.state != SENDING:
                raise
            # It may have been paid, so it is not refused.
            raise Later(f"what became of {letter.id!r} cannot be asked: {error}") from None
        return sum(abs(one - cents) < 0.5 for one in found)
