"""Majority votes: by token, by sequence, by segment, with tie rules."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.aggregation.base import (
    TIES,
    Aggregator,
    FitContext,
    TieRule,
    is_legal,
    item_rng,
    leave_open,
    read_known,
    repair,
    sure_of,
    winners,
    with_known,
)
from goldspan.aggregation.consensus import Consensus, unanswered
from goldspan.aggregation.families import Families, check_families, families_for
from goldspan.crowd import Crowd
from goldspan.crowd.measures import label_counts, share, worker_f1
from goldspan.errors import InputError
from goldspan.params import OneOf, Seed
from goldspan.spans import Codec, Tagged, find_errors, find_spans
from goldspan.spans.corpus import SpanArray, write_codes
from goldspan.spans.encoding import write_tag

# --------------------------------------------------------------------------------------------------
# Shares of votes: of answers that agree with a result, on items, on spans, and per worker.


def item_shares(
    crowd: Crowd,
    codes: NDArray[np.int16],
    weight: NDArray[np.float64] | None = None,  # [n_workers], not negative, what an answer counts
    families: Families | None = None,  # Workers who err together; None: everybody errs alone
) -> NDArray[np.float32]:
    """Share of the item's answers that agree with all of its tags, float32 [n_items]."""
    given = crowd.latest.codes
    differs = (given >= 0) & (given != codes[crowd.token_of])
    wrong = count_in_rows(differs, crowd.latest.offset) > 0
    counts = _answer_weights(crowd, weight, families)
    right = np.bincount(crowd.latest.item, ~wrong * counts, crowd.n_items)
    return _shares(right, np.bincount(crowd.latest.item, counts, crowd.n_items))


def span_shares(
    crowd: Crowd,
    codes: NDArray[np.int16],
    weight: NDArray[np.float64] | None = None,
    families: Families | None = None,
) -> NDArray[np.float32]:
    """Share of the item's answers with exactly this span, for the spans of `codes`."""
    spans = find_spans(Tagged(codes, crowd.offsets), crowd.tagset)
    answers = crowd.latest
    given = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    shift = crowd.offsets[answers.item] - answers.offset[:-1]
    start, end = given.start + shift[given.item], given.end + shift[given.item]
    number = np.full(crowd.n_tokens, -1, np.int64)
    number[spans.start] = np.arange(len(spans))
    at = number[start]
    same = at >= 0
    same[same] = (spans.end[at[same]] == end[same]) & (spans.type[at[same]] == given.type[same])
    counts = _answer_weights(crowd, weight, families)
    votes = np.bincount(at[same], counts[given.item[same]], len(spans))
    return _shares(votes, np.bincount(answers.item, counts, crowd.n_items)[spans.item])


def agreement_table(result: Consensus) -> pa.Table:
    """Per worker: answers, labels, agreement with the result on tokens and on exact spans."""
    crowd, codes = result.crowd, result.codes
    given = crowd.latest.codes
    known = given >= 0
    workers = crowd.worker_of[known]
    n_labels = np.bincount(workers, minlength=crowd.n_workers)
    same = np.bincount(workers, (given == codes[crowd.token_of])[known], crowd.n_workers)
    n_answers = np.bincount(crowd.whole_items.latest.worker, minlength=crowd.n_workers)
    columns = {
        "worker": crowd.worker_ids,
        "answers": pa.array(n_answers),
        "labels": pa.array(n_labels),
        "token_agreement": pa.array(share(same, n_labels)),
    }
    if not crowd.tagset.rules.is_plain:
        columns["span_agreement"] = pa.array(worker_f1(crowd, codes))
    return pa.table(columns)


def _answer_weights(
    crowd: Crowd, weight: NDArray[np.float64] | None, families: Families | None
) -> NDArray[np.float64]:
    """What every answer counts, float64 [n_answers]."""
    answers = crowd.latest
    own = np.ones(len(answers)) if weight is None else np.asarray(weight[answers.worker])
    return own if families is None else own * families.answer_weights(crowd)


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float32]:
    """Divide; 0 where there is nothing."""
    found = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return np.asarray(np.clip(found, 0, 1), np.float32)


# --------------------------------------------------------------------------------------------------
# Majority votes: per token, per sequence, per segment (docs/math.md, section 2).


class Vote(Aggregator):
    """Base of all votes, with weights or without: their parameters, and what ends them.

    Args:
        legal: Make the result well-formed.
        random_state: Seed for ties="random".
        history: Accepted as by every method; votes have no use for it, and a note says so.
        families: Workers who err together: n members of a family who labelled a token count as
            n / (1 + (n - 1) rho) workers. "auto" finds them by the answers; "none": everybody errs
            alone; or a mapping from worker ids to names of families, of which only rho is
            estimated.
    """

    ties: TieRule = "outside"
    legal: bool = True
    random_state: Seed = 0
    history: Consensus | None = None
    families: Annotated[Any, check_families] = "none"

    def _winners(
        self, crowd: Crowd, votes: NDArray[Any], voted: NDArray[np.bool_], codec: Codec
    ) -> NDArray[np.int16]:
        """Take the labels with most votes [n_tokens, n_labels], by the parameters."""
        rule = (self.ties, self.random_state)
        return winners(votes, voted, crowd, codec, rule, legal=self.legal)

    def _completed(
        self, crowd: Crowd, codes: NDArray[np.int16], votes: NDArray[Any],
        asked: NDArray[np.bool_], known: NDArray[np.int16] | None, notes: list[str],
    ) -> tuple[NDArray[np.int16], list[str]]:  # fmt: skip
        """Put known truth in place and open what nobody answered; say what was decided how."""
        if known is not None:
            codes = with_known(codes, known, votes, crowd, legal=self.legal)
        illegal = len(find_errors(Tagged(codes, crowd.offsets), crowd.tagset))
        codes, n_open = leave_open(codes, asked, known, crowd)
        notes = [f"ties: {self.ties}", f"{illegal} illegal tags in the result", *notes]
        return codes, notes + unanswered(n_open, "left open")


class _Majority(Vote):
    """What the three votes without weights share."""

    def _decide(
        self, crowd: Crowd, counts: NDArray[Any], families: Families | None
    ) -> NDArray[np.int16]:
        """Choose codes, int16 [n_tokens], from vote counts [n_tokens, n_labels]."""
        raise NotImplementedError  # pragma: no cover

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        families = families_for(self.families, crowd, context.known)
        counts: NDArray[Any] = vote_counts(crowd)
        if families is not None:  # members of families count as fewer
            shares = label_counts(crowd, families.label_weights(crowd))
            counts = np.rint(shares * GRAINS).astype(np.int64)
        known, notes = read_known(context.known, crowd, legal=self.legal)
        codes, asked = self._decide(crowd, counts, families), np.diff(crowd.by_item.bounds) > 0
        codes, notes = self._completed(crowd, codes, counts, asked, known, notes)
        total = counts.sum(axis=1, keepdims=True)
        shares = (counts / np.maximum(total, 1)).astype(np.float32)
        notes += [families.note] if families else []
        unused = {
            "an earlier result": context.start or self.history, "a checkpoint": context.checkpoint,
        }  # fmt: skip
        notes += [f"votes make no use of {name}" for name, it in unused.items() if it is not None]
        result = Consensus(
            crowd=crowd,
            codes=codes,
            token_probs=shares,
            span_confidence=span_shares(crowd, codes, families=families),
            confidence=item_shares(crowd, codes, families=families),
            make_workers=agreement_table,
            method=self.name,
            stop_reason="votes need no iteration",
            notes=tuple(notes),
            families=families,
        )
        return result if known is None else sure_of(result, known)

    def predict(self, crowd: Any, *, runner: Any = None) -> Consensus:  # noqa: ARG002 - others' face
        """Vote on other items; nothing that was learned counts, for votes learn nothing."""
        return type(self)(**self.result_.params).fit(crowd).result_


class TokenVote(_Majority):
    r"""MVtoken: at every token the label with most votes; on single labels the plurality.

    Args:
        ties: "outside" (`O` wins if it is among the tied, else the lowest code), "inside" (the
            lowest code that is not `O`), "first" (the lowest code), "random". On real data the
            rule moves span F1 by 6 points.
        legal: Make the result well-formed: the legal sequence with most votes. False gives the
            raw votes of the papers.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\ta\tb\tc\nRome\tB-LOC\tB-LOC\tO\n", format="wide")
    >>> TokenVote().fit_predict(crowd)
    [['B-LOC']]
    """

    name = "mv-token"

    def _decide(
        self,
        crowd: Crowd,
        counts: NDArray[Any],
        families: Families | None,  # noqa: ARG002 - the counts heed them
    ) -> NDArray[np.int16]:
        return self._winners(crowd, counts, counts.sum(axis=1) > 0, crowd.tagset)


class SequenceVote(_Majority):
    """MVseq: the whole sequence of tags that most workers gave.

    A token that the winning answer skipped takes its token vote. With `legal=True` a malformed
    winner becomes the legal sequence that shares most tags with it, then most votes.

    Args:
        ties: Among sequences with the same number of votes: "outside" the one with most `O`,
            "inside" the one with fewest, "first" neither; then the lowest codes from the left;
            "random".
    """

    name = "mv-seq"

    def _decide(
        self, crowd: Crowd, counts: NDArray[Any], families: Families | None
    ) -> NDArray[np.int16]:
        answers, codec = crowd.latest, crowd.tagset
        own = np.ones(len(answers), np.int64)
        if families is not None:
            own = np.rint(families.answer_weights(crowd) * GRAINS).astype(np.int64)
        codes = self._winners(crowd, counts, counts.sum(axis=1) > 0, codec)
        bounds = crowd.offsets.tolist()
        for n in range(crowd.n_items):
            votes: dict[bytes, int] = {}
            for a in crowd.by_item[n].tolist():
                key = answers.codes[answers.offset[a] : answers.offset[a + 1]].tobytes()
                votes[key] = votes.get(key, 0) + int(own[a])
            if votes:
                winner = np.frombuffer(self._pick(votes, codec, crowd, n), np.int16)
                target = codes[bounds[n] : bounds[n + 1]]
                target[winner >= 0] = winner[winner >= 0]
        if not self.legal or codec.rules.is_plain:
            return codes
        bad = np.flatnonzero(~is_legal(codes, crowd.offsets, codec))
        kept = np.zeros(counts.shape, np.int32)
        kept[np.arange(len(codes)), codes] = 1
        return repair(codes, kept, counts.astype(np.int64), bad, crowd.offsets, codec)

    def _pick(self, votes: dict[bytes, int], codec: Codec, crowd: Crowd, n: int) -> bytes:
        most = max(votes.values())
        tied = [np.frombuffer(key, np.int16) for key, count in votes.items() if count == most]
        if len(tied) > 1 and self.ties == "random":
            tied.sort(key=lambda codes: codes.tolist())
            rng = item_rng(self.random_state, "mv-seq", crowd.item_ids[n].as_py())
            return tied[int(rng.integers(len(tied)))].tobytes()
        sign = {"outside": -1, "inside": 1}.get(self.ties, 0)

        def rank(codes: NDArray[np.int16]) -> tuple[int, list[int]]:
            return sign * int((codes == codec.outside).sum()), codes.tolist()

        return min(tied, key=rank).tobytes()


SEGMENTS = ("bounds", "inside")
IN_OR_OUT = Codec(("O", "I-X"), "IOB")


class SegmentVote(_Majority):
    """MVseg: first a vote on segments, then a vote on each segment's type.

    The type of a segment is the one that most labels inside it have; among equals the first, or a
    random one.

    Args:
        segments: What the first vote, a token vote, is about. "bounds": tags without their types,
            so that where segments begin and end is voted on too. "inside": only whether a token is
            in a segment, as Rodrigues et al. (2013, section 4) describe it: tokens inside that
            touch are one segment.
        ties: The rule of the first vote, as for `TokenVote`.
        legal: Make the result well-formed; with "inside" it always is.
    """

    name = "mv-seg"

    segments: Annotated[str, OneOf(SEGMENTS)] = "bounds"

    def _decide(
        self,
        crowd: Crowd,
        counts: NDArray[Any],
        families: Families | None,  # noqa: ARG002 - the counts heed them
    ) -> NDArray[np.int16]:
        codec = crowd.tagset
        if codec.rules.is_plain:
            raise InputError("mv-seg needs spans: labels without prefixes have no segments")
        bare = IN_OR_OUT
        role_of = np.minimum(codec.roles, 1)  # of "O" 0
        if self.segments == "bounds":
            tags = (write_tag(role, "X", codec.rules) for role in codec.rules.prefixes.values())
            bare = Codec(("O", *tags), codec.encoding)
            role_of = bare.code_of[codec.roles, 0]
        role_counts = np.zeros((len(counts), len(bare.tags)), counts.dtype)
        for code, role in enumerate(role_of.tolist()):
            role_counts[:, role] += counts[:, code]
        roles = self._winners(crowd, role_counts, counts.sum(axis=1) > 0, bare)
        found = find_spans(Tagged(roles, crowd.offsets), bare)
        kinds = self._types(crowd, counts, found)
        if self.legal or self.segments == "inside":
            typed = SpanArray(found.start, found.end, kinds, found.item, found.worker)
            return write_codes(typed, crowd.offsets, codec)
        codes = np.full(len(roles), codec.outside, np.int16)
        lengths = found.end - found.start
        inside = np.repeat(found.start - np.cumsum(lengths) + lengths, lengths)
        inside += np.arange(len(inside))
        codes[inside] = codec.code_of[bare.roles[roles[inside]], np.repeat(kinds, lengths)]
        return codes

    def _types(self, crowd: Crowd, counts: NDArray[Any], segments: SpanArray) -> NDArray[np.int16]:
        codec = crowd.tagset
        if not len(segments):
            return np.zeros(0, np.int16)
        votes = np.zeros((len(counts) + 1, len(codec.types)), np.int64)
        for code, kind in enumerate(codec.type_of.tolist()):
            if kind >= 0:
                votes[1:, kind] += counts[:, code]
        totals = np.cumsum(votes, axis=0)
        found = totals[segments.end] - totals[segments.start]
        if self.ties == "random":
            found = found * len(codec.types)
            for i, n in enumerate(segments.item.tolist()):
                name = f"{crowd.item_ids[n].as_py()}:{segments.start[i] - crowd.offsets[n]}"
                rng = item_rng(self.random_state, "mv-seg", name)
                found[i] += rng.permutation(len(codec.types))
        return np.asarray(found.argmax(axis=1), np.int16)


def vote_counts(crowd: Crowd) -> NDArray[np.int32]:
    """Count the labels of every token, int32 [n_tokens, n_labels]."""
    return label_counts(crowd).astype(np.int32)


GRAINS = 1 << 24
"""Of a whole vote, in which parts of votes are counted: what differs by less is a tie."""


__all__ = ["TIES", "SegmentVote", "SequenceVote", "TokenVote", "vote_counts"]
