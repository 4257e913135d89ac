"""Where a worker stands, in a word: the requester's decision, else what the answers show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goldspan.hiring.verdicts import UNCLEAR
from goldspan.server.people import DROP, KEEP, TEST


def standing(*, barred: bool, decided: str, opinion: str) -> str:
    """Return in a word where a worker stands.

    Args:
        barred: Whether the worker is asked nothing more.
        decided: The requester's last decision, "" for none.
        opinion: What is thought of the worker, see `goldspan.hiring.verdicts`; "" for nothing.

    >>> standing(barred=True, decided="drop", opinion="reliable")
    'dropped'
    >>> standing(barred=False, decided="", opinion="agrees with the others")
    'agrees with the others'
    """
    if barred:
        return "dropped" if decided == DROP else "asked no more"
    said = {KEEP: "kept", TEST: "tested more"}.get(decided)
    return said or opinion or UNCLEAR


def brief(found: Mapping[str, Any]) -> str:
    """Return what may be said of a worker, and how many gold questions would settle it.

    Args:
        found: As `goldspan.campaign.judging.judge` gives it.

    >>> brief({"said": "right in 93 % (85–98 %) by known labels", "more": 0})
    'right in 93 % (85–98 %) by known labels'
    >>> brief({"said": "nothing to compare with yet", "more": None})
    'nothing to compare with yet; more than 1,000 gold questions would settle it'
    """
    if found["more"] == 0:
        return str(found["said"])
    amount = "more than 1,000" if found["more"] is None else f"about {found['more']}"
    questions = "question" if found["more"] == 1 else "questions"
    return f"{found['said']}; {amount} gold {questions} would settle it"
