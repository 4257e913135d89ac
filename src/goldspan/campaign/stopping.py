"""The rules of `[stop]`: their keys in the plan, when they end a campaign, and how they are told.

A new rule is a key of `StopSection`, a class here, and its name in `RULES`. Everything else –
checks of the plan, the decision after a round, `goldspan plan check`, the record and the report –
asks the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from goldspan.campaign.curve import NEXT, Round, curve_of
from goldspan.campaign.section import Count, Section, Share
from goldspan.money import MICRO

UNKNOWN = "\u2013"
"""What is shown while it is not known how near a rule is."""


class StopSection(Section):
    """When to stop before money, time or the pool run out.

    Attributes:
        rounds: As many rounds in a row a soft rule must hold.
        target: Score whose lower bound is high enough.
        least_gain: Rise of the score per unit of money that is worth it, by the forecast.
        stable: Kappa of the predictions of two rounds at which nothing changes any more.
        most_rounds: A hard limit.
    """

    rounds: Count = 2
    target: Share | None = None
    least_gain: Annotated[float, Field(gt=0)] | None = None
    stable: Share | None = None
    most_rounds: Count | None = None

    @property
    def rules(self) -> list[StopRule]:
        """The rules that the plan sets, the hard ones first."""
        limits = ((rule, getattr(self, rule.key)) for rule in RULES)
        return [rule(limit) for rule, limit in limits if limit is not None]

    def shown(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the rules as rows of a table: `rule`, its `limit`, and how near it is `now`."""
        often = f", {self.rounds:,} round{'' if self.rounds == 1 else 's'} in a row"
        return [
            {
                "rule": rule.name,
                "limit": rule.shown + ("" if rule.is_hard else often),
                "now": rule.now(rounds, forecast),
            }
            for rule in self.rules
        ]


@dataclass(frozen=True)
class StopRule:
    """A rule that ends a campaign; the base class of those below."""

    key: ClassVar[str]  # In the section `[stop]`
    name: ClassVar[str]  # In decisions and reports
    is_hard: ClassVar[bool] = False  # Whether it ends the campaign at once
    needs_model: ClassVar[bool] = True  # Whether it looks at how good a model is
    per_money: ClassVar[str] = ""  # What it measures per unit of money, in words

    limit: float  # What the plan says

    def holds(self, rounds: Sequence[Round], seed: int) -> str:
        """Return why it holds after the last of some rounds, "" if it does not."""
        raise NotImplementedError

    @property
    def planned(self) -> str:
        """When it ends a campaign, in words that follow "ends when"."""
        raise NotImplementedError

    @property
    def shown(self) -> str:
        """The limit as a table shows it."""
        raise NotImplementedError

    def now(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> str:
        """Return how near it is, as a table shows it."""
        raise NotImplementedError


class MostRounds(StopRule):
    """So many rounds are done."""

    key, name = "most_rounds", "rounds"
    is_hard, needs_model = True, False

    def holds(self, rounds: Sequence[Round], seed: int) -> str:
        """Return why it holds, "" if it does not."""
        del seed
        return f"round {len(rounds)} is done" if len(rounds) >= self.limit else ""

    @property
    def planned(self) -> str:
        """When it ends a campaign."""
        return f"{self.limit} rounds are done"

    @property
    def shown(self) -> str:
        """The limit."""
        return f"{self.limit:,} round{'' if self.limit == 1 else 's'} at most"

    def now(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> str:
        """Return the rounds so far."""
        del forecast
        return f"{len(rounds):,}"


class Target(StopRule):
    """The lower bound of the score has reached the target."""

    key, name = "target", "target"

    def holds(self, rounds: Sequence[Round], seed: int) -> str:
        """Return why it holds, "" if it does not."""
        del seed
        best = rounds[-1]["control"] or rounds[-1]["score"]
        if best is None or best["low"] < self.limit:
            return ""
        return f"the score is at least {best['low']:.3f}, and the target is {self.limit:g}"

    @property
    def planned(self) -> str:
        """When it ends a campaign."""
        return f"the lower bound of the score is {self.limit:g}"

    @property
    def shown(self) -> str:
        """The limit."""
        return f"lower bound of the score {100 * self.limit:.1f}\u00a0%"

    def now(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> str:
        """Return the lower bound after the last round."""
        del forecast
        best = (rounds[-1]["control"] or rounds[-1]["score"]) if rounds else None
        return UNKNOWN if best is None else f"{100 * best['low']:.1f}\u00a0%"


class Gain(StopRule):
    """Another unit of money is forecast to raise the score by too little."""

    key, name = "least_gain", "gain"
    per_money = "is a gain per unit of money"

    def holds(self, rounds: Sequence[Round], seed: int) -> str:
        """Return why it holds, "" if it does not."""
        curve = curve_of(rounds, seed)
        if curve is None:
            return ""
        cost = rounds[-1]["spent"] / max(1, rounds[-1]["items"]) * NEXT / MICRO
        per_money = curve.gain(NEXT) / cost if cost else 0.0
        if per_money >= self.limit:
            return ""
        return f"another unit of money brings {per_money:.2g}, less than {self.limit:g}"

    @property
    def planned(self) -> str:
        """When it ends a campaign."""
        return f"a unit of money is forecast to bring less than {self.limit:g}"

    @property
    def shown(self) -> str:
        """The limit."""
        return f"less than {100 * self.limit:g} points per unit of money"

    def now(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> str:
        """Return what a unit of money is forecast to bring."""
        del rounds
        ahead = forecast.get("next")
        if ahead is None or not ahead["cost"]:
            return UNKNOWN
        return f"{100 * ahead['gain'] * MICRO / ahead['cost']:.2g} points"


class Stable(StopRule):
    """The predictions of two rounds are nearly the same."""

    key, name = "stable", "stable"

    def holds(self, rounds: Sequence[Round], seed: int) -> str:
        """Return why it holds, "" if it does not."""
        del seed
        found = rounds[-1]["stable"]
        if found is None or found < self.limit:
            return ""
        return f"predictions agree with those of the round before (kappa {found:.3f})"

    @property
    def planned(self) -> str:
        """When it ends a campaign."""
        return f"predictions of two rounds agree with a kappa of {self.limit:g}"

    @property
    def shown(self) -> str:
        """The limit."""
        return f"κ of two rounds' predictions {self.limit:g}"

    def now(self, rounds: Sequence[Round], forecast: Mapping[str, Any]) -> str:
        """Return the kappa of the last two rounds."""
        del forecast
        found = rounds[-1]["stable"] if rounds else None
        return UNKNOWN if found is None else f"{found:.3f}"


RULES: tuple[type[StopRule], ...] = (MostRounds, Target, Gain, Stable)
"""All rules, in the order in which they decide."""
