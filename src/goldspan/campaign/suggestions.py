"""Suggestions: labels that annotators are shown before they answer, and what that does to answers.

Of every annotator's items a share is shown with a suggestion, and the rest stays blind; a hash of
seed, item and annotator decides. So it is known how often annotators agree with what they do not
see, and what beyond that is the suggestion's. Answers with a
suggestion are aggregated as those of a worker of their own, of the suggester's family, and nobody
is judged by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import hash64
from goldspan.aggregation import Aggregator, Consensus
from goldspan.aggregation.families import CAUTION, Families, families_for
from goldspan.campaign.plan import CONSENSUS, Plan
from goldspan.crowd import Crowd
from goldspan.crowd.layers import whole_index
from goldspan.crowd.model import Answers
from goldspan.crowd.questions import Answer, Questions, Unit, units
from goldspan.errors import InputError
from goldspan.protocols import Suggestion
from goldspan.spans import Codec, Span
from goldspan.spans.encoding import PartSpan
from goldspan.spans.parsing import parse_with_errors
from goldspan.spans.parts import cuts_at, fit, places_in, read_parts, write_parts

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

SUGGESTED = "suggested"
"""Kind of the records of what was decided for an annotator and an item (`Suggestion`)."""
Labels = Sequence[str | None]

# --------------------------------------------------------------------------------------------------
# Who is shown what.


def is_drawn(plan: Plan, item: str, worker: str) -> bool:
    """Return whether a worker is shown a suggestion for an item, if there is one."""
    drawn = hash64(f"{plan.seed}\0suggest\0{item}\0{worker}")
    return drawn < plan.page.shown_share * 2.0**64


def suggestion_for(
    plan: Plan, item: str, worker: str, given: Mapping[str, Any]
) -> Suggestion | None:
    """Decide what a worker sees of an item; None where the plan has no suggestions."""
    by = plan.page.suggest
    if by is None:
        return None
    labels = majority(list(given.values()), plan.tagset) if by == CONSENSUS else given.get(by)
    return Suggestion(item, worker, by, labels, labels is not None and is_drawn(plan, item, worker))


def majority(given: Sequence[Any], codec: Codec | Questions) -> Any:
    """Return the labels that more than half of the answers have; None where there are none.

    Of spans it is those that more than half have exactly so: two that overlap are never among them,
    unless they may.
    """
    if isinstance(codec, Questions):
        layers = codec.majority(given)
        return layers if given and (codec.has_spans or any(units(layers))) else None
    read = spans_of if codec.rules.is_plain else _parts_of
    votes = Counter(span for labels in given for span in read(labels, codec))
    found = [span for span, n in votes.items() if 2 * n > len(given)]
    if not given or (codec.rules.is_plain and not found):
        return None
    if codec.rules.is_plain:
        return [found[0].type]
    return write_parts(found, len(given[0]), codec.encoding)


def _parts_of(labels: Labels, codec: Codec) -> list[PartSpan]:
    return read_parts(labels, codec.encoding)


def spans_of(labels: Labels, codec: Codec) -> list[Span]:
    """Return the spans of an answer; a single label is a span over the one token that there is."""
    if codec.rules.is_plain:
        return [Span(label, 0, 1) for label in labels if label is not None]
    return parse_with_errors([label or "O" for label in labels], codec.encoding)[0]


# --------------------------------------------------------------------------------------------------
# What became of a suggestion: the difference between it and the answer.


class Difference(NamedTuple):
    """What an answer makes of a suggestion, in spans, or in spans and labels of layers."""

    kept: int  # They are in both
    changed: int  # Suggested, and the answer has others in their place
    removed: int  # Suggested, and the answer has nothing there
    added: int  # The answer's, where nothing was suggested


Said: TypeAlias = Sequence[Span] | Answer
"""The spans of an answer; or what it says by layer."""


def difference(suggested: Said, given: Said) -> Difference:
    """Compare an answer with what was suggested."""
    before, after = _units(suggested), _units(given)
    kept = before & after
    old, new = before - kept, after - kept
    changed = sum(any(_overlap(one, other) for other in new) for one in old)
    added = sum(not any(_overlap(one, other) for other in old) for one in new)
    return Difference(len(kept), changed, len(old) - changed, added)


def disagreement(suggested: Said, given: Said) -> float:
    """Return the share of what both have that is not in both, 0 where there is none."""
    before, after = _units(suggested), _units(given)
    every, both = before | after, before & after
    return 1 - len(both) / len(every) if every else 0.0


def _units(said: Said) -> set[Unit]:
    if isinstance(said, Mapping):
        return {*units(said)}
    return {Unit("", PartSpan(*one)) for one in said}


def _overlap(one: Unit, other: Unit) -> bool:
    (layer, a), (its, b) = one, other
    return layer == its and a.start < b.end and b.start < a.end


# --------------------------------------------------------------------------------------------------
# The answers of a campaign beside what was suggested.


class SuggestedAnswer(NamedTuple):
    """An answer for which there was a suggestion, shown or not."""

    item: int  # Its place among the whole items of the crowd
    worker: int
    by: str  # Whose suggestion it was
    shown: bool  # Whether it was shown
    suggested: Said
    given: Said


def suggested_answers(ledger: SqlLedger, crowd: Crowd) -> list[SuggestedAnswer]:
    """Return the answers of a crowd for which there was a suggestion, in the order of the log.

    To a task of several layers they are the ledger's, whichever layer the crowd is of. Compared are
    the layers for which something was suggested.
    """
    kept = ledger.records(SUGGESTED)
    if not kept or not len(crowd.latest):
        return []
    answers, codec, words = crowd.latest, crowd.tagset, [*crowd.tagset.tags, None]
    key = answers.item.astype(np.int64) * crowd.n_workers + answers.worker
    place = dict(zip(key.tolist(), range(len(key)), strict=True))
    items, workers = (
        {name: n for n, name in enumerate(ids)}
        for ids in (whole_index(crowd)[0], crowd.worker_ids.to_pylist())
    )
    is_layered = any(isinstance(body["labels"], Mapping) for body in kept.values())
    answered = ledger.counted() if is_layered else {}
    found = []
    for body in kept.values():
        item, worker = items.get(body["item"]), workers.get(body["worker"])
        if body["labels"] is None or item is None or worker is None:
            continue
        if isinstance(suggested := body["labels"], Mapping):
            given = answered.get((body["item"], body["worker"]))
            if given is not None:
                given = {name: given[name] for name, one in suggested.items() if one is not None}
                row = SuggestedAnswer(item, worker, body["by"], body["shown"], suggested, given)
                found.append(row)
            continue
        at = place.get(item * crowd.n_workers + worker)
        if at is not None:
            codes = answers.codes[answers.offset[at] : answers.offset[at + 1]].tolist()
            shown = body["labels"]
            if len(codes) != len(shown) or any(isinstance(one, list) for one in shown):
                shown = _fitted(ledger, crowd, item, shown)
            both = (spans_of(one, codec) for one in (shown, [words[c] for c in codes]))
            found.append(SuggestedAnswer(item, worker, body["by"], body["shown"], *both))
    return found


def _fitted(ledger: SqlLedger, crowd: Crowd, item: int, labels: Labels) -> Labels:
    """Return labels on the tokens of an item as answers cut them."""
    name, part = crowd.item_ids[item].as_py(), slice(*crowd.offsets[item : item + 2])
    if crowd.token_start is None:
        return labels
    from goldspan.store.crowd import token_starts

    with ledger.database.read() as connection:
        starts = token_starts(connection, [name])[name]
    cuts = cuts_at(places_in(starts, crowd.token_start[part].tolist()))
    return fit(labels, cuts, crowd.tagset.encoding)


def anchoring(rows: Sequence[SuggestedAnswer]) -> dict[str, Anchoring]:
    """Estimate by suggester how far annotators follow the suggestions."""
    found = {}
    for by in sorted({one.by for one in rows}):
        own = [one for one in rows if one.by == by]
        found[by] = measure_anchoring(
            np.array([one.worker for one in own], np.int64),
            np.array([one.shown for one in own], np.bool_),
            np.array([disagreement(one.suggested, one.given) for one in own]),
        )
    return found


def suggestion_rows(ledger: SqlLedger, crowd: Crowd) -> list[dict[str, Any]]:
    """Return what a report says of suggestions, one row per suggester."""
    rows = suggested_answers(ledger, crowd)
    found = []
    for by, one in anchoring(rows).items():
        made = [difference(row.suggested, row.given) for row in rows if row.by == by and row.shown]
        sums = Difference(*(sum(column) for column in zip(*made, strict=True))) if made else None
        changes = (sums or Difference(0, 0, 0, 0))._asdict()
        unchanged = sum(not (each.changed or each.removed or each.added) for each in made)
        found.append({"by": by, **asdict(one), **changes, "unchanged": unchanged})
    return found


def listed(ledger: SqlLedger, crowd: Crowd) -> Iterator[dict[str, Any]]:
    """Yield the answers for which there was a suggestion as plain values, for a file."""
    items, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    single = crowd.tagset.rules.is_plain
    for one in suggested_answers(ledger, crowd):
        both = (one.suggested, one.given)
        shown = [
            said if isinstance(said, Mapping) else [s.type if single else s._asdict() for s in said]
            for said in both
        ]
        facts = {"item": items[one.item], "worker": workers[one.worker], "by": one.by}
        facts |= {"shown": one.shown, "suggested": shown[0], "given": shown[1]}
        yield {**facts, **difference(*both)._asdict()}


# --------------------------------------------------------------------------------------------------
# Answers with a suggestion apart from those without.


def blind_answers(ledger: SqlLedger, crowd: Crowd) -> Crowd:
    """Return the crowd without answers that were given with a suggestion; people are judged so."""
    rows = suggested_answers(ledger, crowd)
    if not any(one.shown for one in rows):
        return crowd
    return replace(crowd, answers=crowd.answers.take(~_with(crowd, crowd.answers, rows)))


def _with(crowd: Crowd, answers: Answers, rows: Sequence[SuggestedAnswer]) -> NDArray[np.bool_]:
    """Return which answers were given with a suggestion, bool [n_answers]."""
    shown = [one.item * crowd.n_workers + one.worker for one in rows if one.shown]
    return np.isin(_keys(crowd, answers), shown)


def _keys(crowd: Crowd, answers: Answers) -> NDArray[np.int64]:
    """Return numbers of the whole items and the workers of answers, int64 [n_answers]."""
    return whole_index(crowd)[1][answers.item] * crowd.n_workers + answers.worker


@dataclass(frozen=True, eq=False)
class Apart:
    """A crowd whose answers with a suggestion are those of workers of their own.

    One worker has one rate of reliability and one family. So "ann after m1" is somebody else than
    ann: what she follows is no evidence of what she knows. That is an approximation of an answer
    that is partly hers and partly the suggester's.
    """

    crowd: Crowd  # This crowd: first the workers there are, then those who were shown something
    base: NDArray[np.int32]  # [n_workers]
    blind: Crowd  # The crowd without answers that were given with a suggestion
    rho: Mapping[str, float]  # By suggester, how far the answers after it are its own
    after: tuple[str, ...]  # str per worker beyond those there are: whose suggestion it was

    @classmethod
    def of(cls, ledger: SqlLedger, crowd: Crowd) -> Apart | None:
        """Set the answers apart; None where nobody was shown anything."""
        rows = suggested_answers(ledger, crowd)
        pairs = sorted({(one.by, one.worker) for one in rows if one.shown})
        if not pairs:
            return None
        n, answers = crowd.n_workers, crowd.answers
        number = {pair: n + k for k, pair in enumerate(pairs)}
        new = {one.item * n + one.worker: number[one.by, one.worker] for one in rows if one.shown}
        key = _keys(crowd, answers).tolist()
        worker = [new.get(one, old) for one, old in zip(key, answers.worker.tolist(), strict=True)]
        names = crowd.worker_ids.to_pylist()
        more = [f"{names[who]} after {by}" for by, who in pairs]
        split = replace(
            crowd,
            worker_ids=pa.array([*names, *more], pa.string()),
            answers=replace(answers, worker=np.array(worker, np.int32)),
        )
        base = np.array([*range(n), *(who for _, who in pairs)], np.int32)
        blind = replace(crowd, answers=answers.take(~_with(crowd, answers, rows)))
        rho = {by: one.rho for by, one in anchoring(rows).items()}
        return cls(split, base, blind, rho, tuple(by for by, _ in pairs))

    def families(self, given: Any) -> Families:
        """Return the families of these workers."""
        # Families that are found are found by blind answers
        known, own = self.blind.gold, self.blind.with_gold(None)
        kin = families_for(given, own, known) if len(own.latest) else None
        if kin is not None and given == "auto" and own.is_classification:
            kin = kin.opinions(own)[-1]
        n = own.n_workers
        found = kin or Families(np.arange(n), np.zeros(n), own.worker_ids)
        names, end = self.crowd.worker_ids, n
        for by in dict.fromkeys(self.after):
            end += self.after.count(by)
            place = names.slice(0, n).to_pylist()
            found = found.with_shown(
                names.slice(0, end), place.index(by) if by in place else None, self.rho[by]
            )
        return found

    def together(self, result: Consensus, aggregator: Aggregator) -> Consensus:
        """Return a result of this crowd as one of the crowd that there is."""
        # What it says of workers is what it says of their blind answers
        n, made = self.blind.n_workers, result.crowd
        answers = replace(made.answers, worker=self.base[made.answers.worker])
        crowd = replace(made, worker_ids=self.blind.worker_ids, answers=answers)
        kin = None if result.families is None else result.families.on(crowd.worker_ids)
        said = [f"{by} (rho {rho:.2f})" for by, rho in self.rho.items() if by in self.after]
        # In place of who is in that family: files may not name annotators.
        note = f"answers after a suggestion are of the suggester's family: {', '.join(said)}"
        names = None if result.families is None else result.families.note
        return replace(
            result,
            crowd=crowd,
            families=kin or None,
            notes=(*(one for one in result.notes if one != names), note),
            make_workers=partial(_table, of=result, n=n),
            params=aggregator.get_params(),
        )


def _table(shown: Consensus, of: Consensus, n: int) -> pa.Table:
    """Return the first rows of the table of workers of a result, with the names of another."""
    table = of.make_workers(of).slice(0, n)
    return table.set_column(table.column_names.index("worker"), "worker", shown.crowd.worker_ids)


# --------------------------------------------------------------------------------------------------
# How far annotators follow what they are shown: assisted answers against blind ones.
#
# What an annotator would have answered without the suggestion is not known of any one answer. But
# who sees a suggestion is drawn at random, so that the blind answers of the same annotators say how
# often they disagree with it anyhow. The anchoring rate
#
#     a = 1 - (disagreement of assisted answers) / (disagreement of blind answers)
#
# is the share of those disagreements that the suggestion took away: 0 if it changes nothing, 1 if
# everybody takes it over. It is what the correlation of two workers' mistakes is for families,
# measured by an experiment. The ratio is that of Mantel and Haenszel (1959), stratified by
# annotator, with the variance of Greenland and Robins (1985).


SURE = 1.959964
"""Standard errors of a 95 % interval."""
HALF = 0.5
"""Disagreements, and agreements, that either side is taken to have had more: few answers say little
even if all agree."""
LEAST_VARIANCE = 1e-4


@dataclass(frozen=True)
class Anchoring:
    """How far annotators follow suggestions."""

    rate: float  # The anchoring rate; below 0 if they disagree more often with what they see
    low: float  # Lower end of its 95 % interval
    high: float
    assisted: int  # Answers that were given with a suggestion
    blind: int  # Answers to which there was one that was not shown
    workers: int  # Annotators with answers of both kinds, on whom the rate rests
    agree_assisted: float | None  # Mean agreement of assisted answers with the suggestion
    agree_blind: float | None  # The same of blind ones
    rho: float  # What an assisted answer counts as: the correlation with the suggestion


def measure_anchoring(
    worker: NDArray[Any], shown: NDArray[np.bool_], disagreement: NDArray[np.float64]
) -> Anchoring:
    """Estimate how far annotators follow suggestions."""
    # worker int64 [n_answers], who answered; shown bool [n_answers]
    # disagreement float64 [n_answers]
    worker, shown = np.asarray(worker), np.asarray(shown, np.bool_)
    given = np.asarray(disagreement, np.float64)
    if not len(worker) == len(shown) == len(given):
        raise InputError("worker, shown and disagreement must have one value per answer each")
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError("a disagreement must be a number from 0 to 1")
    _, place = np.unique(worker, return_inverse=True)
    n_workers = int(place.max(initial=-1)) + 1

    def per_worker(which: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
        n = np.bincount(place[which], minlength=n_workers).astype(np.float64)
        return n, np.bincount(place[which], given[which], n_workers)

    (n_shown, d_shown), (n_blind, d_blind) = per_worker(shown), per_worker(~shown)
    both = (n_shown > 0) & (n_blind > 0)
    one = np.append(n_shown[both], 1), np.append(d_shown[both], HALF)
    other = np.append(n_blind[both], 1), np.append(d_blind[both], HALF)
    (n_1, d_1), (n_0, d_0), total = one, other, one[0] + other[0]
    above, below = float((d_1 * n_0 / total).sum()), float((d_0 * n_1 / total).sum())
    spread = (n_1 * n_0 * (d_1 + d_0) - d_1 * d_0 * total) / total**2
    error = sqrt(float(spread.sum()) / (above * below))
    ratio = above / below
    rate, doubt = 1 - ratio, (ratio * error) ** 2 + LEAST_VARIANCE
    rho = (CAUTION + rate / doubt) / (CAUTION + 1 / doubt)
    return Anchoring(
        rate,
        1 - exp(log(ratio) + SURE * error),
        1 - exp(log(ratio) - SURE * error),
        int(shown.sum()),
        int((~shown).sum()),
        int(both.sum()),
        float(1 - given[shown].mean()) if shown.any() else None,
        float(1 - given[~shown].mean()) if (~shown).any() else None,
        min(1.0, max(0.0, rho)),
    )
