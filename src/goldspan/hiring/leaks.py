"""Whether control questions have leaked: how often each was shown, and who suddenly knows them.

A question that many have seen is passed on. Its answers then get better with time, for no other
reason: of the workers who saw it late, more are right than of those who saw it early. The sign is
Fisher's exact test of the two, one-sided, every worker counted once by his first answer. Early and
late are parted where the time changes, as near to the middle as that is: answers of one time stay
together, and if all are of one time (say, a date) nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd
from goldspan.errors import InputError
from goldspan.hiring.control import ControlSet

MOST_SHOWN = 100
"""Answers after which a control question is retired."""
LEVEL = 0.05
"""Chance of a false sign of a leak, over all questions together (Bonferroni)."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeakReport:
    """How worn every control question is; n questions.

    Attributes:
        item_ids: Their ids.
        shown: int64 [n], answers to it, every attempt.
        seen_by: int64 [n], different workers.
        repeats: int64 [n], answers by workers who had answered it before.
        n_workers: Workers who answered anything.
        early: float64 [n], share right among the workers who saw it first; NaN without two
            different times.
        late: float64 [n], share right among those who saw it last; NaN likewise.
        p_value: float64 [n], chance that late is better than early by so much; NaN likewise.
        most_shown: Answers after which a question is retired.
        level: Chance of a false sign over all questions.
    """

    item_ids: tuple[str, ...]
    shown: Counts
    seen_by: Counts
    repeats: Counts
    n_workers: int
    early: Floats
    late: Floats
    p_value: Floats
    most_shown: int = MOST_SHOWN
    level: float = LEVEL

    @property
    def seen_share(self) -> Floats:
        """Share of the workers who saw it, float64 [n]."""
        return np.asarray(self.seen_by / max(self.n_workers, 1))

    @property
    def is_worn(self) -> NDArray[np.bool_]:
        """Whether it was shown too often, bool [n]."""
        return np.asarray(self.shown >= self.most_shown)

    @property
    def is_suspect(self) -> NDArray[np.bool_]:
        """Whether late workers are so much better that it looks like a leak, bool [n]."""
        tested = max(int(np.isfinite(self.p_value).sum()), 1)
        return np.asarray(np.nan_to_num(self.p_value, nan=1.0) <= self.level / tested)

    @property
    def retire(self) -> list[str]:
        """The questions to replace, by id."""
        out = self.is_worn | self.is_suspect
        return [name for name, gone in zip(self.item_ids, out, strict=True) if gone]

    def reasons(self) -> list[str]:
        """Say of every question what is wrong with it; "" if nothing is."""
        found = []
        for i, (worn, suspect) in enumerate(zip(self.is_worn, self.is_suspect, strict=True)):
            words = [f"shown {self.shown[i]} times, the cap is {self.most_shown}"] * bool(worn)
            if suspect:
                words.append(
                    f"late workers are right {100 * self.late[i]:.0f} % of the time, early ones "
                    f"{100 * self.early[i]:.0f} % (p = {self.p_value[i]:.1g})"
                )
            found.append("; ".join(words))
        return found

    def to_arrow(self) -> pa.Table:
        """Give a row per question: item, shown, seen_by, seen_share, repeats, …, reason."""
        columns: dict[str, Any] = {
            "item": pa.array(self.item_ids, pa.string()),
            "shown": pa.array(self.shown),
            "seen_by": pa.array(self.seen_by),
            "seen_share": pa.array(self.seen_share),
            "repeats": pa.array(self.repeats),
        }
        for name in ("early", "late", "p_value"):
            values = getattr(self, name)
            columns[name] = pa.array(values, mask=np.isnan(values))
        columns["retire"] = pa.array(self.is_worn | self.is_suspect)
        columns["reason"] = pa.array(self.reasons(), pa.string())
        return pa.table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return {
            "workers": self.n_workers,
            "most_shown": self.most_shown,
            "retire": self.retire,
            "questions": self.to_arrow().to_pylist(),
        }

    def __str__(self) -> str:
        """Say which questions to replace, and why."""
        most = int(self.shown.max(initial=0))
        head = (
            f"{len(self.item_ids)} control questions, shown up to {most} times to "
            f"{self.n_workers} workers; {int(self.repeats.sum())} answers by workers who had "
            "answered the question before"
        )
        lines = [head]
        unknown = int(np.isnan(self.p_value).sum())
        if unknown:
            which = "" if unknown == len(self.p_value) else f" for {unknown} of the questions"
            lines.append(
                f"no times, or all the same: whether late workers are better is unknown{which}"
            )
        lines += [
            f"retire {name}: {why}"
            for name, why in zip(self.item_ids, self.reasons(), strict=True)
            if why
        ]
        return "\n".join(lines if self.retire else [*lines, "none needs to be retired"])


def check_leaks(
    crowd: Crowd,
    control: ControlSet | Iterable[str] | None = None,
    *,
    most_shown: int = MOST_SHOWN,
    level: float = LEVEL,
) -> LeakReport:
    r"""See how worn control questions are.

    An answer is right if all its labels are the gold's; skipped tokens are wrong. Answers without a
    time of submission are left out of the comparison of early and late; without two different times
    there is none, and `early`, `late` and `p_value` are NaN.

    Args:
        crowd: The answers so far, with the gold of the control questions.
        control: The questions, chosen or by id; by default all items with gold at every token.
        most_shown: Answers after which a question is retired, at least 1.
        level: Chance of a false sign of a leak, over all questions.

    Raises:
        InputError: A question is no item of the crowd or has no gold, there is none, or the
            numbers make no sense.

    >>> import goldspan
    >>> rows = "".join(f"q,w{i},{'no' if i < 6 else 'yes'},yes,{i}\n" for i in range(12))
    >>> crowd = goldspan.read_crowd(("task,worker,label,gold,submitted\n" + rows).encode())
    >>> print(check_leaks(crowd).reasons()[0])
    late workers are right 100 % of the time, early ones 0 % (p = 0.001)
    """
    if isinstance(most_shown, bool) or most_shown < 1:
        raise InputError(f"most_shown must be at least 1, not {most_shown}")
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level}")
    items = _control_items(crowd, control)
    place = np.full(crowd.n_items, -1)
    place[items] = np.arange(len(items))
    answers = crowd.answers.take(place[crowd.answers.item] >= 0)
    which, size = place[answers.item], len(items)
    shown = np.bincount(which, minlength=size)
    is_first = _first_answers(answers)
    seen_by = np.bincount(which[is_first], minlength=size)
    trend = _trends(crowd, answers.take(is_first), which[is_first], size)
    names = tuple(crowd.item_ids.take(pa.array(items)).to_pylist())
    n_workers = len(np.unique(crowd.answers.worker))
    return LeakReport(
        names, shown, seen_by, shown - seen_by, n_workers, *trend, int(most_shown), level
    )


def _control_items(crowd: Crowd, control: ControlSet | Iterable[str] | None) -> Counts:
    """Give the control questions as indexes of items."""
    unknown = np.concatenate([[0], np.cumsum(crowd.gold_tagged.codes < 0)])
    known = np.diff(unknown[crowd.offsets]) == 0
    if control is None:
        found = np.flatnonzero(known)
    else:
        names = control.item_ids if isinstance(control, ControlSet) else list(control)
        found = np.array([crowd.item_index(name) for name in dict.fromkeys(names)], np.int64)
        without = [crowd.item_ids[int(i)].as_py() for i in found if not known[i]]
        if without:
            raise InputError(
                f"{len(without)} control questions have tokens without gold (first: "
                f"{without[0]}): read the crowd with their gold"
            )
    if not len(found):
        raise InputError("there is no control question: no item has gold at every token")
    return found


def _first_answers(answers: Answers) -> NDArray[np.bool_]:
    """Say which answers are the first of their worker to their item, bool [n_answers].

    Time decides where it is known, for attempts may be numbered so that the first one counts.
    """
    when = np.zeros(len(answers)) if answers.submitted is None else answers.submitted
    order = np.lexsort((answers.attempt, when, answers.worker, answers.item))
    item, worker = answers.item[order], answers.worker[order]
    same = (item[1:] == item[:-1]) & (worker[1:] == worker[:-1])
    is_first = np.ones(len(answers), np.bool_)
    is_first[order[1:][same]] = False
    return is_first


def _trends(
    crowd: Crowd, answers: Answers, which: Counts, size: int
) -> tuple[Floats, Floats, Floats]:
    """Give the share right early and late, and the p-value, float64 [size] each."""
    early, late, p_value = np.full((3, size), np.nan)
    if answers.submitted is None:
        return early, late, p_value
    gold = crowd.gold_tagged.codes
    shift = np.repeat(crowd.offsets[answers.item] - answers.offset[:-1], answers.lengths)
    is_wrong = answers.codes != gold[shift + np.arange(len(answers.codes))]
    wrong = np.concatenate([[0], np.cumsum(is_wrong)])[answers.offset]
    right = np.diff(wrong) == 0
    order = np.lexsort((answers.submitted, which))
    order = order[answers.submitted[order] >= 0]
    bounds = np.searchsorted(which[order], np.arange(size + 1))
    for i in range(size):
        course = order[bounds[i] : bounds[i + 1]]
        at = middle(answers.submitted[course])
        if at:
            first, last = right[course[:at]], right[course[at:]]
            early[i], late[i] = first.mean(), last.mean()
            counts = int(first.sum()), len(first), int(last.sum()), len(last)
            p_value[i] = later_is_better(*counts)
    return early, late, p_value


def middle(times: Counts) -> int:
    """Say how many of the first times are early: what is equal is not parted; 0 if all are.

    Args:
        times: int64 [n], sorted.

    >>> middle(np.array([1, 2, 3, 4])), middle(np.array([1, 2, 2, 2, 3])), middle(np.array([5, 5]))
    (2, 1, 0)
    """
    edges = np.flatnonzero(np.diff(times)) + 1
    return int(edges[np.abs(2 * edges - len(times)).argmin()]) if len(edges) else 0


def later_is_better(early: int, n_early: int, late: int, n_late: int) -> float:
    """Give Fisher's one-sided p-value: P(so many or more right among the late | right in all).

    Args:
        early: Right answers among the early ones.
        n_early: Early answers.
        late: Right answers among the late ones.
        n_late: Late answers.

    >>> round(later_is_better(0, 6, 6, 6), 6)
    0.001082
    """
    from scipy.special import gammaln

    def log_ways(n: int, k: NDArray[np.int64]) -> Floats:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    total = early + late
    k = np.arange(late, min(n_late, total) + 1)
    among = log_ways(n_early + n_late, np.array([total]))
    ways = log_ways(n_late, k) + log_ways(n_early, total - k)
    return min(1.0, float(np.exp(ways - among).sum()))
