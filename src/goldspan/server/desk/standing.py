"""Where a worker stands, in a requester's words; the rules' verdict in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goldspan.hiring.verdicts import DROP as UNFIT
from goldspan.hiring.verdicts import KEEP as FIT
from goldspan.server.people import DROP, KEEP, TEST

SURE = 0.999
"""A probability above it is told as this one: more digits would promise too much."""


def standing(*, barred: bool, decided: str, verdict: str) -> str:
    """Say in a word where a worker stands: the requester's decision, else the rules'.

    >>> standing(barred=True, decided="drop", verdict="keep")
    'dropped'
    >>> standing(barred=False, decided="", verdict="test more")
    'not clear yet'
    """
    if barred:
        return "dropped" if decided == DROP else "asked no more"
    said = {KEEP: "kept", TEST: "tested more"}.get(decided)
    return said or {FIT: "reliable", UNFIT: "doubtful"}.get(verdict, "not clear yet")


def brief(found: Mapping[str, Any], *, single: bool) -> str:
    """Say how sure the rules are that a worker is good enough, and what would settle it.

    Args:
        found: As `goldspan.campaign.judging.judge` gives it.
        single: Whether every item has one label.

    >>> found = {"verdict": "test more", "judged": 9.0, "p_above": 0.88, "more": 16}
    >>> brief(found, single=False)
    'probably good enough (88 %); about 16 more spans to be sure'
    >>> brief({**found, "verdict": "drop", "p_above": 0.00001}, single=False)
    'not good enough (over 99.9 %)'
    """
    p = found["p_above"]
    opinion = f"{'good' if p >= 0.5 else 'not good'} enough ({_percent(max(p, 1 - p))})"
    if found["verdict"] in {FIT, UNFIT}:
        return opinion
    amount = "more than 1,000" if found["more"] is None else f"about {found['more']} more"
    unit = "text" if single else "span"
    missing = f"{amount} {unit}{'' if found['more'] == 1 else 's'} to be sure"
    return f"probably {opinion}; {missing}" if found["judged"] else f"not judged yet; {missing}"


def _percent(p: float) -> str:
    if p > SURE:
        return f"over {100 * SURE:g} %"
    return f"{100 * p:.1f} %" if p > 0.99 else f"{100 * p:.0f} %"
