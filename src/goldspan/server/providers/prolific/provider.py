"""Workers come from a study at Prolific, and go back with its completion code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from goldspan.campaign.clock import wall_of
from goldspan.errors import GoldspanError, InputError, UnavailableError, UnknownNameError
from goldspan.money import to_micro
from goldspan.server.errors import Refused
from goldspan.server.providers.outbox import Outbox
from goldspan.server.providers.prolific.api import Api, Declined
from goldspan.server.providers.prolific.courier import ProlificCourier
from goldspan.server.providers.prolific.options import ID, TOKEN, WEBHOOK, ProlificOptions
from goldspan.server.providers.prolific.submissions import OVER, Submissions
from goldspan.server.providers.prolific.webhooks import read_message
from goldspan.server.providers.protocol import Courier, Event, Store
from goldspan.server.providers.secrets import secret_of

PARTICIPANT, STUDY, SESSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"
COMPLETE = "https://app.prolific.com/submissions/complete?cc={}"
LEAST_WHY = 100
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK"),
    *("LOW_EFFORT", "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
_STRANGE = "Open the study from its page at Prolific: this address is not complete."


class Prolific:
    """The provider of participants of a study.

    Args:
        options: The study.
        store: The campaign's ledger.
        clock: The campaign's clock, in milliseconds.
        api: Prolific's; made of the token by default.
    """

    Options = ProlificOptions
    name = "prolific"

    def __init__(
        self,
        options: ProlificOptions,
        store: Store,
        clock: Callable[[], int],
        api: Api | None = None,
    ) -> None:
        self.options, self._store, self._clock, self._given = options, store, clock, api
        self.checks_people, self.sends_letters = options.check, options.send
        self.submissions = Submissions(store, clock)

    @cached_property
    def api(self) -> Api:
        """Prolific's API.

        Raises:
            UnavailableError: The token is missing.
        """
        if self._given is not None:
            return self._given
        token = secret_of(TOKEN)
        if token is None:
            raise UnavailableError(
                f"Prolific needs a token: set {TOKEN}, or {TOKEN}_FILE to a file"
            )
        return Api(token)

    def is_new(self, parameters: Mapping[str, str]) -> bool:
        """Whether the submission is of this study and was never here."""
        _, submission = self._read(parameters)
        return self.submissions.worker(submission) is None

    def identify(self, parameters: Mapping[str, str]) -> str:
        """Give the participant, the same for all submissions of theirs."""
        participant, submission = self._read(parameters)
        known = self.submissions.worker(submission)
        if known is None and self.options.check:
            self._check(participant, submission)
        self.submissions.begin(submission, participant)
        return participant

    def _read(self, parameters: Mapping[str, str]) -> tuple[str, str]:
        """Return the participant and the submission of an address.

        Raises:
            Refused: They are none, or of another study.
        """
        words = [parameters.get(key, "") for key in (PARTICIPANT, STUDY, SESSION)]
        if not all(ID.fullmatch(word) for word in words):
            raise Refused("study", _STRANGE, 403)
        participant, study, submission = words
        if study != self.options.study:
            raise Refused("study", "This is not the study that is run here.", 403)
        return participant, submission

    def completion(self, worker: str) -> dict[str, Any] | None:
        """Give the address that ends the submission; none to who did not come from Prolific."""
        if self.submissions.of(worker) is None:
            return None
        code = self.options.code
        if self._store.standing().get(worker):
            code = self.options.code_dropped or code
        return {"url": COMPLETE.format(code), "code": code}

    def on_event(self, headers: Mapping[str, str], body: bytes) -> Event:
        """Take a message of Prolific's; see `webhooks`."""
        secret = secret_of(WEBHOOK)
        if secret is None:
            raise Refused("unknown", "There is nothing here.", 404)
        message = read_message(headers, body, secret, wall_of(self._clock)())
        worker = self.submissions.worker(message.submission)
        if worker is None or worker != message.participant:  # of another study of the workspace
            return Event("unknown")
        facts = {"submission": message.submission, "status": message.status, "time": message.time}
        said = self.submissions.hear(message.id, message.signature, facts)
        status = self.submissions.status(message.submission)
        if status == "AWAITING REVIEW":
            self._approve(worker, message.submission)
        is_last = self.submissions.of(worker) == message.submission
        return Event(said, worker if status in OVER and is_last else "")

    def workers(self) -> list[str]:
        """Give everybody who came in."""
        return self.submissions.workers()

    def owed(self, worker: str, earned: int) -> int:
        """Give what of a worker's earnings the rewards of their submissions do not pay."""
        rewards = self.submissions.count_paid(worker) * to_micro(self.options.reward)
        return max(0, earned - rewards)

    def about(self, worker: str) -> str:
        """Give a worker's last submission."""
        found = self.submissions.of(worker)
        if found is None:
            raise InputError(f"{worker} did not come from Prolific: letters are about participants")
        return found

    def check_rejection(self, why: str, category: str) -> None:
        """Check what Prolific asks of a rejection."""
        if len(why) < LEAST_WHY:
            raise InputError(
                f"Prolific wants the reason of a rejection in {LEAST_WHY} characters or more, and "
                f"these are {len(why)}: say what was wrong with the work"
            )
        if category not in CATEGORIES:
            raise UnknownNameError("category of rejections", category, CATEGORIES)

    def courier(self) -> Courier:
        """Give who carries letters to Prolific."""
        options = self.options
        return ProlificCourier(self.api, options.study, options.settle_minutes, self._clock)

    def _check(self, participant: str, submission: str) -> None:
        """Refuse whom Prolific does not know as a participant at work."""
        try:
            found = self.api.submission(submission)
        except Declined:
            raise Refused("study", "Prolific does not know this submission.", 403) from None
        except GoldspanError:
            words = "Prolific cannot be asked now. Load the page again in a minute."
            raise Refused("unavailable", words, 503, retry=60) from None
        is_theirs = found.get("participant") == participant
        if not is_theirs or found.get("study_id") != self.options.study:
            raise Refused("study", "Prolific knows this submission as somebody else's.", 403)
        if str(found.get("status")).upper() in OVER:
            raise Refused("study", "Prolific says that this submission is over.", 403)

    def _approve(self, worker: str, submission: str) -> None:
        """Write an approval, if the plan says so and nothing was decided by hand."""
        if self.options.approve and not self._store.standing().get(worker):
            try:
                Outbox(self._store, self._clock).approve(worker, submission)
            except InputError:  # it is to be rejected
                return
