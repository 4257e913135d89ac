"""The bill: what every worker gets, and what all of it costs, to the millionth.

For every worker: base = answers × per_answer + tokens × per_token; what a minute floor adds to the
base of the answers whose time is known; the largest bonus that is due; and rounding up. The fee is
on the sum of all pay. Sums are of whole numbers: nothing gets lost, however many answers there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldspan.errors import InputError
from goldspan.hiring.pay import PayPlan, share_of
from goldspan.money import from_micro

AMOUNTS = ("base", "top_up", "bonus", "rounding", "total")
MINUTE = 60_000
"""Milliseconds."""


@dataclass(frozen=True)
class BillLine:
    """What one worker gets; amounts in millionths.

    Attributes:
        worker: Id.
        answers: Paid answers.
        tokens: Tokens in them that were given a label.
        timed: Paid answers whose time is known.
        milliseconds: Their time, each at most `idle_minutes`.
        right: Right answers, as far as judged.
        judged: Judged answers; 0 where nothing is judged or no bonus is promised.
        base: For answers and tokens.
        top_up: What the minute floor adds.
        bonus: For good work.
        rounding: What rounding up adds.
    """

    worker: str
    answers: int
    tokens: int
    timed: int
    milliseconds: int
    right: float
    judged: float
    base: int
    top_up: int
    bonus: int
    rounding: int

    @property
    def total(self) -> int:
        """What the worker gets."""
        return self.base + self.top_up + self.bonus + self.rounding


@dataclass(frozen=True)
class Bill:
    """What a crowd's work costs.

    Attributes:
        plan: What pays how much.
        lines: One for every worker with a paid answer, by their order in the crowd.
        notes: What was decided and what is not known, in sentences.
    """

    plan: PayPlan
    lines: tuple[BillLine, ...]
    notes: tuple[str, ...] = ()

    @property
    def pay(self) -> int:
        """What all workers get together, in millionths."""
        return sum(line.total for line in self.lines)

    @property
    def fee(self) -> int:
        """The platform's fee on it, in millionths."""
        return share_of(self.pay, self.plan.fee)

    @property
    def total(self) -> int:
        """Pay and fee, in millionths."""
        return self.pay + self.fee

    def to_arrow(self) -> pa.Table:
        """Give a row per worker: counts, minutes, and the amounts as decimals with six digits."""
        columns: dict[str, Any] = {
            "worker": pa.array([line.worker for line in self.lines], pa.string())
        }
        for name in ("answers", "tokens", "timed"):
            columns[name] = pa.array([getattr(line, name) for line in self.lines], pa.int64())
        minutes = [line.milliseconds / MINUTE for line in self.lines]
        columns["minutes"] = pa.array(minutes, pa.float64())
        for name in ("right", "judged"):
            columns[name] = pa.array([getattr(line, name) for line in self.lines], pa.float64())
        for name in AMOUNTS:
            exact = [Decimal(getattr(line, name)).scaleb(-6) for line in self.lines]
            columns[name] = pa.array(exact, pa.decimal128(38, 6))
        return pa.table(columns)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Give a row per worker, amounts as text: "0.05"."""
        for line, row in zip(self.lines, self.to_arrow().to_pylist(), strict=True):
            row["minutes"] = round(row["minutes"], 3)
            yield {**row, **{name: from_micro(getattr(line, name)) for name in AMOUNTS}}

    def write(self, path: str | Path) -> None:
        """Write a row per worker as CSV; no name becomes a formula in a spreadsheet.

        Raises:
            InputError: The name does not end in .csv, or cannot be written.
        """
        from goldspan.crowd.atomic import write_text
        from goldspan.crowd.cells import sheet_text

        if Path(path).suffix != ".csv":
            raise InputError(f"{path}: the name of a bill must end in .csv")
        columns = self.to_arrow().column_names
        write_text(path, [sheet_text(columns, self.rows(), written=["worker"])])

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON; amounts as text."""
        return {
            "plan": str(self.plan),
            "currency": self.plan.currency,
            "workers": list(self.rows()),
            "pay": from_micro(self.pay),
            "fee": from_micro(self.fee),
            "total": from_micro(self.total),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Say what it comes to."""
        parts = {name: sum(getattr(line, name) for line in self.lines) for name in AMOUNTS[:-1]}
        words = {"base": "base", "top_up": "minute floor", "bonus": "bonuses"}
        words["rounding"] = "rounding up"
        shown = [f"{words[name]} {from_micro(value)}" for name, value in parts.items() if value]
        shown += [f"fee {from_micro(self.fee)}"] if self.fee else []
        unit = f" {self.plan.currency}" if self.plan.currency else ""
        some = f"{len(self.lines)} worker{'' if len(self.lines) == 1 else 's'}"
        text = f"{from_micro(self.total)}{unit} for {some}"
        return "\n".join([f"{text}: {' + '.join(shown) or 'nothing'}", *self.notes])
