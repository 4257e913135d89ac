"""What a plan says of a study at Prolific; the token and the webhook's secret stand elsewhere."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from goldspan.campaign.plan import Money, Section

ID = re.compile(r"[0-9a-f]{24}")
"""How Prolific writes the ids of studies, participants and submissions."""
Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
TOKEN, WEBHOOK = "GOLDSPAN_PROLIFIC_TOKEN", "GOLDSPAN_PROLIFIC_WEBHOOK_SECRET"
"""Variables of the environment that hold a secret, or with _FILE name a file that does."""


class ProlificOptions(Section):
    """A study at Prolific.

    Attributes:
        study: Its id.
        code: The completion code of who has finished.
        code_dropped: That of who is asked nothing more; `code` by default.
        check: Whether Prolific is asked who comes in; if not, whoever knows the study's id can
            come in under any name.
        approve: Whether a submission that awaits review is approved, unless its worker was dropped.
        reward: What Prolific pays for a submission; what a worker's answers earned beyond that of
            all their submissions is sent by `goldspan outbox --earned`.
        send: Whether the server sends letters by itself.
        settle_minutes: How long a bonus of which no answer came may take to be listed, before it is
            sent again.
    """

    study: str
    code: Code
    code_dropped: Code | None = None
    check: bool = True
    approve: bool = False
    reward: Money = 0
    send: bool = False
    settle_minutes: Annotated[float, Field(ge=10, le=7 * 24 * 60)] = 60.0

    @field_validator("study")
    @classmethod
    def _id(cls, value: str) -> str:
        if not ID.fullmatch(value):
            raise ValueError("must be the study's id, 24 digits and letters from a to f")
        return value
