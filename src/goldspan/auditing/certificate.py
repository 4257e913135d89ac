"""The certificate: how right labels are, from the items that a person checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.aggregation.consensus import without_answers
from goldspan.auditing.intervals import Counts, Drawn, Estimate, Floats, Weighed, weigh
from goldspan.auditing.plan import (
    LEAST,
    AuditPlan,
    Labelled,
    count_labels,
    draw_audit,
    placed_labels,
)
from goldspan.crowd import Crowd
from goldspan.crowd.formats.span_crowd import GOLD
from goldspan.crowd.gold import attach_gold, with_same_tokens
from goldspan.crowd.io import convert_crowd, to_crowd
from goldspan.crowd.model import item_texts, known_texts
from goldspan.crowd.options import ReadOptions
from goldspan.errors import InputError
from goldspan.params import Number, require
from goldspan.spans.notebook import block, counted, data_frame, table

if TYPE_CHECKING:
    import pandas as pd

SHARES = {
    "f1": "F1", "precision": "precision", "recall": "recall", "accuracy": "accuracy",
    "items_right": "items without a mistake",
}  # fmt: skip
"""What is estimated, and its name."""
ENOUGH = 10
"""Labels of a type that were written or found in checked items, from which it is estimated."""
_SHARE = Number(above=0, below=1)
N_PARTS = 5
"""Parts of the checked items that are left out in turn."""
N_STEPS = 40
"""Sizes of the sample for the picture of the interval."""


class Disagreement(NamedTuple):
    """An item that several people checked with different results."""

    item: str
    labels: Mapping[str, list[str]]  # By checker, what they found, in words


@dataclass(frozen=True, eq=False)
class Audit:
    """How right labels are.

    Items of the plan that nobody checked, although later ones were, and those about which the
    checkers differ, count as wrong for the lower ends of all intervals and as right for the upper
    ones.

    Attributes:
        estimates: By name (of spans `f1`, `precision` and `recall`, of single labels `accuracy`,
            of both `items_right`), shares in [0, 1].
        by_type: F1 by type of span or label, where there is enough.
        calibration: Mean confidence of the items minus the share without a mistake, with its
            interval; None where there are no confidences.
        n_items: Items with labels.
        n_labels: Spans, or single labels, that are written.
        checked: Ids of the checked items, in the order of the draw.
        missing: Items of the plan that were not checked, although later ones were.
        disagreements: Items about which checkers differ.
        level: Of the intervals.
        anytime: Whether they hold at every look.
        plan: The draw.
        notes: What else a reader should know, in sentences.
    """

    estimates: Mapping[str, Estimate]
    by_type: Mapping[str, Estimate]
    calibration: Estimate | None
    n_items: int
    n_labels: int
    checked: tuple[str, ...]
    missing: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]
    level: float
    anytime: bool
    plan: AuditPlan = field(repr=False)
    notes: tuple[str, ...] = ()
    _sample: Any = field(default=None, repr=False)

    @property
    def main(self) -> str:
        """What the labels are judged by: "f1" or "accuracy"."""
        return next(iter(self.estimates))

    @property
    def estimate(self) -> Estimate:
        """F1 of spans, accuracy of single labels."""
        return self.estimates[self.main]

    def needed(self, width: float = 0.04) -> int:
        """Return about how many items must be checked in all for an interval of this width.

        Raises:
            InputError: The width is not between 0 and 1.
        """
        require("width", width, _SHARE)
        n, own = len(self.checked), self.estimate.high - self.estimate.low
        if own <= 0:
            return n
        # the variance of n of N items is as 1 / n - 1 / N
        per_item = own**2 / max(1 / n - 1 / self.n_items, 1e-9)
        return min(self.n_items, math.ceil(1 / (width**2 / per_item + 1 / self.n_items)))

    def checks_to(self, target: float) -> Floats:
        """Draw how many more checks it takes until the lower end, at every look, is at a target.

        Returns:
            float64 [n_draws]; inf where the checks of all items do not do.
        """
        low: Weighed = self._sample.weighed(self.main)[0]
        return low.checks_to(target, len(self._sample.drawn.order), self.n_items, self.level)

    @cached_property
    def history(self) -> list[tuple[int, Estimate]]:
        """The main estimate after so many checks, as it narrowed."""
        n = len(self.checked) + len(self.missing)
        sizes = np.unique(np.linspace(LEAST, n, N_STEPS).astype(int))
        return [(int(k), self._sample.estimate(self.main, int(k))) for k in sizes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        shares = {name: one._asdict() for name, one in self.estimates.items()}
        return {
            **shares,
            "by_type": {name: one._asdict() for name, one in self.by_type.items()},
            "calibration": self.calibration and self.calibration._asdict(),
            "items": self.n_items, "labels": self.n_labels, "checked": len(self.checked),
            "missing": list(self.missing),
            "disagreements": [one._asdict() for one in self.disagreements],
            "level": self.level, "anytime": self.anytime, "seed": self.plan.seed,
            "notes": list(self.notes),
        }  # fmt: skip

    def to_arrow(self) -> pa.Table:
        """Return a row per measure: measure, type, value, low, high."""
        rows: list[tuple[Any, ...]] = [(name, None, *one) for name, one in self.estimates.items()]
        rows += [("f1", name, *one) for name, one in self.by_type.items()]
        if self.calibration:
            rows.append(("calibration", None, *self.calibration))
        names = ("measure", "type", "value", "low", "high")
        return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a DataFrame."""
        return data_frame(self.to_arrow())

    def __str__(self) -> str:
        """Print the certificate."""
        n = counted(len(self.checked), "checked item")
        looks = ", valid at every look" if self.anytime else ""
        lines = [f"{n} of {self.n_items:,}; {self.level:.0%} intervals{looks}"]
        width = max(len(SHARES[name]) for name in self.estimates)
        width = max([width, *map(len, self.by_type)])
        lines += [f"{SHARES[name]:{width}}  {one}" for name, one in self.estimates.items()]
        if self.by_type:
            lines += ["F1 by type", *(f"{kind:{width}}  {f1}" for kind, f1 in self.by_type.items())]
        if self.calibration:
            lines.append(self.calibration_words())
        for item, labels in self.disagreements:
            each = (f"{who}: {', '.join(found) or 'nothing'}" for who, found in labels.items())
            lines.append(f"checkers differ on {item}: {'; '.join(each)}")
        return "\n".join([*lines, *self.notes])

    def calibration_words(self) -> str:
        """Say whether confidences can be believed."""
        assert self.calibration is not None
        value, low, high = (100 * one for one in self.calibration)
        side = "high" if value >= 0 else "low"
        clearly = "" if low > 0 or high < 0 else ", which may be chance"
        return (
            f"confidences of items are {abs(value):.1f} points too {side} on average "
            f"({low:+.1f} to {high:+.1f}){clearly}"
        )

    def _repr_html_(self) -> str:
        rows = [[SHARES[name], *_percent(one)] for name, one in self.estimates.items()]
        rows += [[f"F1 of {kind}", *_percent(one)] for kind, one in self.by_type.items()]
        shown = table(["", "value", "from", "to"], rows, len(rows), "measures", len(rows))
        return block("Audit", [f"{counted(len(self.checked), 'item')} of {self.n_items:,}"], shown)


def _percent(one: Estimate) -> list[str]:
    return [f"{100 * part:.1f} %" for part in (one.shown, *one[1:])]


@dataclass(frozen=True, eq=False)
class _Sample:
    """What was checked, as arrays."""

    labels: Labelled
    drawn: Drawn
    types: list[str]
    written: Floats  # [n_items, n_types]
    right: tuple[Floats, Floats]  # [n_checked, n_types], with what is open as wrong, and as right
    true: tuple[Floats, Floats]
    is_open: NDArray[np.bool_]  # [n_checked]
    level: float
    anytime: bool

    def estimate(self, name: str, n: int | None = None, kind: int | None = None) -> Estimate:
        """Estimate a share from the first n items, of a type or of all."""
        ends = self.weighed(name, n, kind)
        low, high = (one.interval(self.level, anytime=self.anytime) for one in ends)
        return Estimate((low.value + high.value) / 2, low.low, high.high)

    def weighed(self, name: str, n: int | None = None, kind: int | None = None) -> list[Weighed]:
        """Weigh what the first n items say, with what is open as wrong, and as right."""
        pick = slice(None) if kind is None else slice(kind, kind + 1)
        drawn = replace(self.drawn, order=self.drawn.order[:n])
        share_right = self.labels.share_right
        written = self.written[:, pick].sum(axis=1)
        size = self.written.sum()
        part = written.sum() / size if size else 1.0
        doubt, ratio = self.labels.doubt * part, "f1"
        ends: list[Weighed] = []
        for right, true in zip(self.right, self.true, strict=True):
            own, there = right[:n, pick].sum(axis=1), true[:n, pick].sum(axis=1)
            if not ends:  # an open item without labels may lack one
                there += self.is_open[:n] & (there == 0)
            counts = Counts(
                written, written * share_right, written * share_right + doubt / 2, own, there
            )
            if name == "items_right":
                order, sure = self.drawn.order[:n], self.labels.confidence
                sure = np.ones(len(written)) if sure is None else sure
                is_right = (own == there) & (own == written[order])
                one = np.ones(len(written))
                counts = Counts(one, sure, one, is_right.astype(np.float64), one[order])
                doubt, ratio = sure * (1 - sure), "precision"
            elif self.labels.crowd.is_classification and kind is None:
                one = np.ones(len(written))
                counts = replace(counts, expected_true=one, true=one[self.drawn.order[:n]])
            if name in ("precision", "recall"):
                ratio = name
            ends.append(weigh(drawn, counts, doubt, ratio))
        return ends


def audit(
    labels: Any,
    checked: Any,
    /,
    plan: AuditPlan | str | Path | None = None,
    *,
    level: float = 0.95,
    anytime: bool = False,
    refit: Callable[[Crowd], Any] | None = None,
    **reading: Any,
) -> Audit:
    """Find out how right labels are from the items that a person checked.

    Args:
        labels: As for `draw_audit`; labels that were made without the checked ones.
        checked: The truth of the drawn items: a path, a list of paths, or anything else that
            `read_crowd` reads, its gold or the answers of one or several checkers; or a mapping
            from item ids to labels or lists of tags. Other tokens are aligned by characters where
            the texts are known.
        plan: The draw, or its file; by default that of `draw_audit(labels, n)` with as many items
            as are checked.
        level: Of the intervals.
        anytime: Make intervals that hold at every look: for who checks until the result is good
            enough. They are about 60 % wider.
        refit: For labels that the checked items helped to make: makes them again from a crowd with
            some of these as gold. Every checked item is judged by labels that were made without it
            (cross-fitting, a fifth of them left out at a time).
        reading: Options of `read_crowd`.

    Raises:
        InputError: Fewer than ten drawn items are checked, items of the plan have no labels, or
            something cannot be read.

    References:
        docs/math.md, section 14.

    >>> import goldspan
    >>> labels = [{"item": str(i), "label": "yes" if i % 3 else "no"} for i in range(50)]
    >>> plan = goldspan.draw_audit(labels, n=20)
    >>> truth = {i: "yes" if int(i) % 3 or i in plan.items[:2] else "no" for i in plan.items}
    >>> print(goldspan.audit(labels, truth, plan).estimate)
    94.2 % (70.8 to 99.9)
    """
    require("level", level, _SHARE)
    if isinstance(plan, str | Path):
        plan = AuditPlan.load(plan)
    found, notes = _drawn_from(Labelled.of(labels, **reading), plan)
    mine, agreed, disputed, more = _truth(found.crowd, labels, checked, reading)
    notes += more
    open_items = {name for name, _ in disputed}
    plan = plan or draw_audit(labels, max(LEAST, len(agreed.keys() | open_items)), **reading)
    place = {name: n for n, name in enumerate(mine.item_ids.to_pylist())}
    asked, missing, more = _asked(plan, place, {*agreed}, open_items, notes)
    order = np.array([place[name] for name in asked])
    bare = replace(without_answers(mine.select_items(order)), gold=None)
    theirs = attach_gold(bare, agreed, ReadOptions())
    notes += more
    if new := [kind for kind in placed_labels(theirs)[2] if kind not in placed_labels(mine)[2]]:
        notes.append(f"only the checked items have {', '.join(new)}: are all names spelled alike?")
    made = {}
    if refit is None:
        notes += _suspicions(labels, found, plan, asked)
    else:
        made = _made_without(refit, mine, theirs, [one for one in asked if one in agreed])
    found = replace(found, crowd=mine)
    sample = _sample(found, theirs, plan, order, {*agreed}, made, level, anytime)
    names = ("accuracy",) if mine.is_classification else ("f1", "precision", "recall")
    estimates = {name: sample.estimate(name) for name in (*names, "items_right")}
    if mine.is_classification:
        del estimates["items_right"]
    by_type, more = _by_type(sample)
    return Audit(
        estimates, by_type, _calibration(found, sample), mine.n_items, int(sample.written.sum()),
        tuple(name for name in asked if name in agreed), missing, disputed, level, anytime, plan,
        (*notes, *more), sample,
    )  # fmt: skip


def _drawn_from(found: Labelled, plan: AuditPlan | None) -> tuple[Labelled, list[str]]:
    """Return the labels of items that were there at the draw, and a note about others."""
    there = [plan is None or name in plan.weights for name in found.crowd.item_ids.to_pylist()]
    new = there.count(False)
    if not new:
        return found, []
    note = f"{counted(new, 'item')} labelled since the draw and not covered: draw again"
    sure = None if found.confidence is None else found.confidence[there]
    return Labelled(found.crowd.select_items(np.array(there)), sure), [note]


def _by_type(sample: _Sample) -> tuple[dict[str, Estimate], list[str]]:
    """Return F1 by type where there is enough, and a note about the other types."""
    if len(sample.types) < 2:
        return {}, []
    seen = (sample.written[sample.drawn.order] + sample.true[0] - sample.right[0]).sum(axis=0)
    each = [(kind, n, int(seen[n])) for n, kind in enumerate(sample.types)]
    found = {kind: sample.estimate("f1", kind=n) for kind, n, many in each if many >= ENOUGH}
    few = ", ".join(f"{kind} has {many}" for kind, _, many in each if many < ENOUGH)
    rule = f"F1 of a type takes {ENOUGH} or more labels in the checked items"
    return found, [f"{rule}: {few}"] if few else []


def _asked(
    plan: AuditPlan, place: Mapping[str, int], known: set[str], open_items: set[str],
    said: list[str],
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:  # fmt: skip
    """Return the drawn items up to the last that was checked, those that were left out, notes."""
    notes = []
    lost = [name for name in plan.items if name not in place]
    if lost:
        raise InputError(
            f"labels: {counted(len(lost), 'drawn item')} without labels, {_some(lost)}: "
            "is this the file that was drawn from?"
        )
    strange = sorted((known | open_items) - {*plan.items})
    if strange:
        notes.append(
            f"{counted(len(strange), 'checked item')} not drawn by this plan, and not counted: "
            f"{_some(strange)}"
        )
    at = [n for n, name in enumerate(plan.items) if name in known or name in open_items]
    n_known = sum(name in known for name in plan.items)
    if n_known < LEAST:
        raise InputError(
            f"checked: {n_known} of the drawn items {'is' if n_known == 1 else 'are'} checked; "
            f"an interval needs {LEAST} or more"
            + (f"; checkers differ on {_some(sorted(open_items))}" if open_items else "")
            + (f" ({_some(strange)} not drawn: is it the right plan?)" if strange else "")
            + "".join(f"; {one}" for one in said)
        )
    asked = plan.items[: at[-1] + 1]
    missing = tuple(name for name in asked if name not in known and name not in open_items)
    if missing:
        notes.append(
            f"{counted(len(missing), 'drawn item')} not checked although later ones were, "
            f"{_some(missing)}: counted as wrong for the lower ends, as right for the upper ones"
        )
    return asked, missing, notes


def _suspicions(labels: Any, found: Labelled, plan: AuditPlan, asked: tuple[str, ...]) -> list[str]:
    """Say what may make the result too good."""
    notes = list[str]()
    if len(asked) == found.crowd.n_items:  # whatever they taught, nothing else is there to judge
        return notes
    if plan.labels != found.digest:
        notes.append(
            "the labels have changed since the draw: this is how right they are now; if the "
            "checked items helped to make them, the result is too good without --answers (refit)"
        )
    known = getattr(labels, "known", None)
    if known is not None:
        is_known = count_in_rows(known >= 0, labels.crowd.offsets) > 0
        given = {*labels.crowd.item_ids.filter(pa.array(is_known)).to_pylist()} & {*asked}
        if given:
            notes.append(
                f"{counted(len(given), 'checked item')} known to the method that made the labels: "
                "the result is too good without refit"
            )
    return notes


def _calibration(labels: Labelled, sample: _Sample) -> Estimate | None:
    """Return by how much the mean confidence of items is too high."""
    if labels.confidence is None:
        return None
    right = sample.estimate("items_right")
    mean = float(labels.confidence.mean())
    return Estimate(mean - right.value, mean - right.high, mean - right.low)


def _sample(
    labels: Labelled, truth: Crowd, plan: AuditPlan, order: NDArray[np.int64], known: set[str],
    made: Placed, level: float, anytime: bool,
) -> _Sample:  # fmt: skip
    """Compare the labels of the items that were asked with the truth."""
    ids = labels.crowd.item_ids.to_pylist()
    weights = np.array([plan.weights[name] for name in ids])
    asked = [ids[n] for n in order.tolist()]
    place = {name: n for n, name in enumerate(ids)}
    own, theirs = _placed(labels.crowd) | made, _placed(truth)
    of_made = (label[2] for found in made.values() for label in found)
    kinds = (placed_labels(crowd)[2] for crowd in (labels.crowd, truth))
    names = [*dict.fromkeys(chain(*kinds, of_made))]
    column = {name: n for n, name in enumerate(names)}
    written = np.zeros((len(ids), len(names)))
    counts = count_labels(labels.crowd)
    written[:, : counts.shape[1]] = counts
    for name, found in made.items():
        written[place[name]] = 0
        for label in found:
            written[place[name], column[label[2]]] += 1
    right, true = (np.zeros((len(asked), len(names))) for _ in range(2))
    is_open = np.array([name not in known for name in asked])
    for row, name in enumerate(asked):
        for label in theirs.get(name, ()):
            true[row, column[label[2]]] += 1
        for label in own.get(name, set()) & theirs.get(name, set()):
            right[row, column[label[2]]] += 1
    there = written[order]
    at = is_open[:, None]
    rights = np.where(at, 0, right), np.where(at, there, right)
    trues = np.where(at, there, true), np.where(at, there, true)
    drawn = Drawn(order, weights)
    return _Sample(labels, drawn, names, written, rights, trues, is_open, level, anytime)


def _made_without(
    refit: Callable[[Crowd], Any], labels: Crowd, truth: Crowd, known: Sequence[str]
) -> Placed:
    """Return the labels of checked items by fits that did not know them."""
    found: Placed = {}
    for part in (known[n::N_PARTS] for n in range(min(N_PARTS, len(known)))):
        kept = {*known} - {*part}
        own = truth.select_items(np.array([one in kept for one in truth.item_ids.to_pylist()]))
        made = Labelled.of(refit(without_answers(own))).crowd
        place = {name: n for n, name in enumerate(made.item_ids.to_pylist())}
        lost = [name for name in part if name not in place]
        if lost:
            raise InputError(f"refit: no labels of {_some(lost)} where they are not known")
        part_crowd = made.select_items(np.array([place[name] for name in part]))
        _check_texts(labels, part_crowd)
        placed = _placed(part_crowd)
        found |= {name: placed.get(name, set()) for name in part}
    return found


Placed = dict[str, set[tuple[int, int, str]]]


def _placed(crowd: Crowd) -> Placed:
    """Return first token, one past the last, and type of all labels, by item id."""
    item, kind, names, start, end = placed_labels(crowd)
    ids = crowd.item_ids.to_pylist()
    found: Placed = {}
    for n, a, b, k in zip(item.tolist(), start.tolist(), end.tolist(), kind.tolist(), strict=True):
        found.setdefault(ids[n], set()).add((a, b, names[k]))
    return found


def _some(names: Sequence[str]) -> str:
    """Name the first few."""
    return ", ".join(map(repr, names[:3])) + (" …" if len(names) > 3 else "")


def _truth(
    mine: Crowd, labels: Any, checked: Any, reading: Mapping[str, Any]
) -> tuple[Crowd, dict[str, list[str]], tuple[Disagreement, ...], list[str]]:
    """Return labels in tokens that suit the truth, this by item, what checkers differ on, notes."""
    every = _sources(labels, checked)
    given, notes, people = dict[str, dict[str, list[str]]](), list[str](), set[str]()
    if isinstance(checked, Mapping):
        each = {str(item): [one] if isinstance(one, str) else one for item, one in checked.items()}
        given = {item: {GOLD: [*one]} for item, one in each.items() if one and None not in one}
    mine, crowds = _aligned(mine, every, reading)
    for name, found in zip(every, crowds, strict=True):
        answers, more = _answers(found)
        notes += more
        for item, by in answers.items():
            people |= by.keys() - {GOLD}
            for who, tags in by.items():
                own = f"{name}: {who}".removesuffix(f": {GOLD}") if every[1:] else who
                given.setdefault(item, {})[own] = tags
    tokens = dict(zip(mine.item_ids.to_pylist(), mine.tokens_list, strict=True))
    agreed, disputed = {}, []
    for item, by in given.items():
        first, *others = by.values()
        if all(tags == first for tags in others):
            agreed[item] = first
        elif item in tokens:
            words = {who: _words(mine, tokens[item], tags) for who, tags in by.items()}
            disputed.append(Disagreement(item, words))
    if not given:
        raise InputError("checked: nothing is labelled in it: are the items still to be checked?")
    return mine, agreed, tuple(disputed), notes + _who_checked(people, mine)


def _aligned(
    mine: Crowd, every: list[Any], reading: Mapping[str, Any]
) -> tuple[Crowd, list[Crowd]]:
    """Return the labels and what was checked in the same tokens and encoding."""
    crowds = list[Crowd]()
    for one in every:
        is_read = not isinstance(one, Crowd) and not hasattr(type(one), "as_gold")
        found = _named_by_text(to_crowd(one, "checked", **(reading if is_read else {})), mine)
        if found.is_classification != mine.is_classification:
            raise InputError("checked: single labels and spans cannot be compared")
        if not mine.is_classification:
            if found.tagset.encoding != mine.tagset.encoding:
                found = convert_crowd(found, mine.tagset.encoding)
            mine = with_same_tokens(_with_texts(mine), _with_texts(found))[0]
        crowds.append(found)
    if not mine.is_classification:
        crowds = [with_same_tokens(mine, _with_texts(found))[1] for found in crowds]
    for found in crowds:
        _check_texts(mine, found)
    return mine, crowds


def _sources(labels: Any, checked: Any) -> list[Any]:
    """Return what is to be read: several paths or one source, none of a mapping."""
    several = isinstance(checked, list | tuple) and all(isinstance(c, str | Path) for c in checked)
    every = [] if isinstance(checked, Mapping) else [*checked] if several else [checked]
    if any(one is labels or (isinstance(labels, str | Path) and one == labels) for one in every):
        raise InputError("checked: these are the labels themselves, and not what a person found")
    return every


def _answers(found: Crowd) -> tuple[dict[str, dict[str, list[Any]]], list[str]]:
    """Return what is known, or who found what, of items that are labelled throughout; notes."""
    report = found.import_report
    said = len(report.notes) + (len(report.reasons) if report.faults else 0)  # faults say more
    notes = [f"checked: {remark}" for remark in report.remarks[said:]]
    models = {who for who, one in found.worker_facts.items() if one.get("kind") == "prediction"}
    if models & {*found.worker_ids.to_pylist()}:
        notes.append("checked: predictions of models are not checks, and not counted")
    known = {} if found.gold is None else found.tagged_by_id()
    given = {}
    for n, item in enumerate(found.item_ids.to_pylist()):
        each = {GOLD: known[item]} if any(known.get(item, [])) else found.answers_of(n)
        named = {who: tags for who, tags in each.items() if who not in models}
        given[item] = {who: tags for who, tags in named.items() if None not in tags}
    if report.format == "doccano" and not found.is_classification:
        empty = {item for item, each in given.items() if {*chain(*each.values())} == {"O"}}
        n_last = 0
        for item in reversed(given):
            if item not in empty:
                break
            n_last, given[item] = n_last + 1, {}
        if empty:
            notes.append(
                "checked: doccano does not say who looked at the "
                f"{counted(len(empty), 'document')} without a span: the {n_last} at the end are "
                f"not counted, the {len(empty) - n_last} others are"
            )
    return {item: each for item, each in given.items() if each}, notes


def _who_checked(names: set[str], crowd: Crowd) -> list[str]:
    """Say whose answers count as checks, and what if they are the crowd's own."""
    own = sorted(names & {*crowd.worker_ids.to_pylist()})
    many = f" ({len(names)} people)" if len(names) > 1 else ""
    what = "their answers made the labels, and" if own else "if their answers made the labels,"
    note = f"checked by {_some(own or sorted(names))}{many}: {what} the result is too good"
    return [note] if names else []


def _named_by_text(found: Crowd, crowd: Crowd) -> Crowd:
    """Name items by their texts if a tool has given them other ids, and no text comes twice."""
    ids, known = found.item_ids.to_pylist(), crowd.item_ids.to_pylist()
    mine, theirs = ([own.value for own in item_texts(one)] for one in (crowd, found))
    text_of = dict(zip(known, mine, strict=True))
    each = zip(ids, theirs, strict=True)
    if {*ids} & {*known} and all(text_of.get(name, text) == text for name, text in each):
        return found
    once = Counter(mine)
    name_of = {text: name for text, name in zip(mine, known, strict=True) if once[text] == 1}
    if len({*theirs}) < len(theirs) or not {*theirs} <= {*name_of}:
        return found
    return replace(found, item_ids=pa.array([name_of[text] for text in theirs]))


def _words(crowd: Crowd, tokens: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return an answer's labels in words."""
    if crowd.is_classification:
        return [*tags]
    return [f"{token}/{tag}" for token, tag in zip(tokens, tags, strict=True) if tag != "O"]


def _with_texts(crowd: Crowd) -> Crowd:
    """Return a crowd with texts, of tokens with blanks between where there are none."""
    if crowd.texts is not None and crowd.token_start is not None:
        return crowd
    texts = [*item_texts(crowd)]
    starts = np.array([a for own in texts for a, _ in own.bounds], np.int32)
    return replace(crowd, texts=pa.array([own.value for own in texts]), token_start=starts)


def _check_texts(mine: Crowd, theirs: Crowd) -> None:
    """Raise an error for checked items whose texts are not those of the labels."""
    texts, others = (
        known_texts(one) if one.is_classification else one.tokens_list for one in (mine, theirs)
    )
    text_of = dict(zip(mine.item_ids.to_pylist(), texts, strict=True))
    each = zip(theirs.item_ids.to_pylist(), others, strict=True)
    other = [name for name, text in each if text and (text_of.get(name) or text) != text]
    if other:
        raise InputError(
            f"checked: {counted(len(other), 'item')} with another text than the labels, "
            f"{_some(other)}: has a tool given them other ids?"
        )
