"""Majority votes: per token, per sequence, per segment (paper 000, section 4; MATH section 2).

Confidence is a share of votes: of a token, the share of its labels that agree; of a span, the share
of the item's answers that have exactly this span; of an item, the share of its answers that agree
with all of its tags. Shares are no calibrated probabilities.
"""

from __future__ import annotations

import hashlib
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from karat.aggregate.base import Aggregator, Given
from karat.aggregate.chain import best_legal, is_legal
from karat.aggregate.consensus import Consensus
from karat.crowd import Crowd
from karat.crowd.measures import share, worker_rates
from karat.errors import InputError, UnknownNameError
from karat.spans import Codec, SpanArray, Tagged, find_errors, find_spans, write_codes
from karat.spans.encoding import write_tag

Ties = Literal["first", "random", "outside", "inside"]
TIES: tuple[str, ...] = get_args(Ties)


class _Votes(Aggregator):
    """What the three votes share: their parameters and the making of a `Consensus`."""

    def __init__(
        self, *, ties: str = "outside", legal: bool = True, random_state: int | None = 0
    ) -> None:
        if ties not in TIES:
            raise UnknownNameError("tie rule", ties, TIES)
        if not isinstance(legal, bool | np.bool_):
            raise InputError(f"legal must be True or False, not {legal!r}")
        if random_state is not None and not isinstance(random_state, int | np.integer):
            raise InputError(f"random_state must be a whole number or None, not {random_state!r}")
        self.ties = ties
        self.legal = legal
        self.random_state = random_state

    def _decide(self, crowd: Crowd, counts: NDArray[np.int32]) -> NDArray[np.int16]:
        """Choose codes, int16 [n_tokens], from vote counts [n_tokens, n_labels]."""
        raise NotImplementedError  # pragma: no cover

    def _aggregate(self, crowd: Crowd, given: Given) -> Consensus:
        counts = vote_counts(crowd)
        codes = self._decide(crowd, counts)
        illegal = len(find_errors(Tagged(codes, crowd.offsets), crowd.tagset))
        asked = np.diff(crowd.by_item.bounds) > 0
        codes = np.where(np.repeat(asked, np.diff(crowd.offsets)), codes, np.int16(-1))
        total = counts.sum(axis=1, keepdims=True)
        shares = (counts / np.maximum(total, 1)).astype(np.float32)
        notes = [f"ties: {self.ties}", f"{illegal} illegal tags in the result"]
        unused = {
            "known truth": given.known, "an earlier result": given.start,
            "a checkpoint": given.checkpoint,
        }  # fmt: skip
        notes += [f"votes make no use of {name}" for name, it in unused.items() if it is not None]
        if not asked.all():
            notes.append(f"{int((~asked).sum())} items without answers are left open")
        return Consensus(
            crowd=crowd,
            codes=codes,
            token_probs=shares,
            span_confidence=_span_shares(crowd, codes),
            confidence=_item_shares(crowd, codes),
            make_workers=_agreement,
            method=self.name,
            stop_reason="votes need no iteration",
            notes=tuple(notes),
        )

    def _winners(self, crowd: Crowd, counts: NDArray[np.int32], codec: Codec) -> NDArray[np.int16]:
        """Take the label with most votes at every token, then make items legal if asked to.

        Legal means: the legal sequence with most votes in all; ties by the rule, as for a token.
        """
        order = preference(counts, crowd, codec, self.ties, self.random_state)
        scores = counts * np.int64(order.max(initial=0) + 1) + order
        codes: NDArray[np.int16] = scores.argmax(axis=1).astype(np.int16)
        if codec.outside >= 0:
            codes[counts.sum(axis=1) == 0] = codec.outside
        if not self.legal or codec.rules.is_plain:
            return codes
        bad = np.flatnonzero(~is_legal(codes, crowd.offsets, codec))
        return repair(codes, counts, order, bad, crowd.offsets, codec)


class TokenVote(_Votes):
    r"""MVtoken: at every token the label with most votes; on single labels the plurality.

    Args:
        ties: "outside" (`O` wins if it is among the tied, else the lowest code), "inside" (the
            lowest code that is not `O`), "first" (the lowest code), "random". On real data the
            rule moves span F1 by 6 points.
        legal: Make the result well-formed: the legal sequence with most votes. False gives the
            raw votes of the papers.
        random_state: Seed for "random".

    >>> import karat
    >>> crowd = karat.read_crowd(b"token\ta\tb\tc\nRome\tB-LOC\tB-LOC\tO\n", format="wide")
    >>> TokenVote().fit_predict(crowd)
    [['B-LOC']]
    """

    name = "mv-token"

    def _decide(self, crowd: Crowd, counts: NDArray[np.int32]) -> NDArray[np.int16]:
        return self._winners(crowd, counts, crowd.tagset)


class SequenceVote(_Votes):
    """MVseq: the whole sequence of tags that most workers gave.

    A token that the winning answer skipped takes its token vote. With `legal=True` a malformed
    winner becomes the legal sequence that shares most tags with it, then most votes.

    Args:
        ties: Among sequences with the same number of votes: "outside" the one with most `O`,
            "inside" the one with fewest, "first" neither; then the lowest codes from the left;
            "random".
        legal: Make the result well-formed.
        random_state: Seed for "random".
    """

    name = "mv-seq"

    def _decide(self, crowd: Crowd, counts: NDArray[np.int32]) -> NDArray[np.int16]:
        answers, codec = crowd.latest, crowd.tagset
        codes = self._winners(crowd, counts, codec)
        bounds = crowd.offsets.tolist()
        for n in range(crowd.n_items):
            votes: dict[bytes, int] = {}
            for a in crowd.by_item[n].tolist():
                key = answers.codes[answers.offset[a] : answers.offset[a + 1]].tobytes()
                votes[key] = votes.get(key, 0) + 1
            if votes:
                winner = np.frombuffer(self._pick(votes, codec, crowd, n), np.int16)
                target = codes[bounds[n] : bounds[n + 1]]
                target[winner >= 0] = winner[winner >= 0]
        if not self.legal or codec.rules.is_plain:
            return codes
        bad = np.flatnonzero(~is_legal(codes, crowd.offsets, codec))
        kept = np.zeros_like(counts)
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


class SegmentVote(_Votes):
    """MVseg: first a vote on segments and their bounds, then a vote on each segment's type.

    The first vote is a token vote on the tags without their types. The type of a segment is the
    one that most labels inside it have; among equals the first, or a random one.

    Args:
        ties: The rule of the first vote, as for `TokenVote`.
        legal: Make the result well-formed.
        random_state: Seed for "random".
    """

    name = "mv-seg"

    def _decide(self, crowd: Crowd, counts: NDArray[np.int32]) -> NDArray[np.int16]:
        codec = crowd.tagset
        if codec.rules.is_plain:
            raise InputError("mv-seg needs spans: labels without prefixes have no segments")
        bare = Codec(
            ("O", *(write_tag(role, "X", codec.rules) for role in codec.rules.prefixes.values())),
            codec.encoding,
        )
        role_of = bare.code_of[codec.roles, 0]
        role_counts = np.zeros((len(counts), len(bare.tags)), np.int32)
        for code, role in enumerate(role_of.tolist()):
            role_counts[:, role] += counts[:, code]
        roles = self._winners(crowd, role_counts, bare)
        segments = find_spans(Tagged(roles, crowd.offsets), bare)
        kinds = self._types(crowd, counts, segments)
        if self.legal:
            typed = SpanArray(segments.start, segments.end, kinds, segments.item, segments.worker)
            return write_codes(typed, crowd.offsets, codec)
        codes = np.full(len(roles), codec.outside, np.int16)
        lengths = segments.end - segments.start
        inside = np.repeat(segments.start - np.cumsum(lengths) + lengths, lengths)
        inside += np.arange(len(inside))
        codes[inside] = codec.code_of[bare.roles[roles[inside]], np.repeat(kinds, lengths)]
        return codes

    def _types(
        self, crowd: Crowd, counts: NDArray[np.int32], segments: SpanArray
    ) -> NDArray[np.int16]:
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
    n_labels = len(crowd.tagset.tags)
    codes = crowd.latest.codes
    given = codes >= 0
    cell = crowd.token_of[given] * n_labels + codes[given]
    counts = np.bincount(cell, minlength=crowd.n_tokens * n_labels)
    return counts.reshape(crowd.n_tokens, n_labels).astype(np.int32)


def preference(
    counts: NDArray[np.int32], crowd: Crowd, codec: Codec, ties: str, random_state: int | None
) -> NDArray[np.int64]:
    """Rank the labels of every token by the tie rule, the largest first.

    Returns:
        int64 [n_tokens, n_labels] in 0 … n_labels - 1.
    """
    n_labels = len(codec.tags)
    order = np.arange(n_labels - 1, -1, -1, dtype=np.int64)
    if ties == "inside" and codec.outside >= 0:
        order = np.where(np.arange(n_labels) == codec.outside, 0, order + 1)
    ranks = np.tile(order, (len(counts), 1))
    if ties == "random":
        most = counts.max(axis=1, keepdims=True)
        tied = np.flatnonzero((counts == most).sum(axis=1) > 1)
        items = np.unique(np.searchsorted(crowd.offsets, tied, side="right") - 1)
        for n in items.tolist():
            start, end = crowd.offsets[n], crowd.offsets[n + 1]
            rng = item_rng(random_state, "votes", crowd.item_ids[n].as_py())
            ranks[start:end] = rng.permuted(ranks[start:end], axis=1)
    return ranks


def repair(
    codes: NDArray[np.int16],
    first: NDArray[np.int32],
    second: NDArray[np.int64],
    items: NDArray[np.int64],
    offsets: NDArray[np.int64],
    codec: Codec,
) -> NDArray[np.int16]:
    """Give some items the legal sequence with the largest sum of `first`, then of `second`.

    Args:
        codes: int16 [n_tokens], what stands now.
        first: [n_tokens, n_labels], what counts first.
        second: [n_tokens, n_labels], what decides among equals; not negative.
        items: The items to mend.
        offsets: int64 [n_items + 1].
        codec: The tag set.
    """
    if not len(items):
        return codes
    lengths = np.diff(offsets)[items]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.repeat(offsets[items] - bounds[:-1], lengths) + np.arange(bounds[-1])
    weight = np.int64(lengths.max()) * np.int64(second.max(initial=0)) + 1
    scores = first[flat].astype(np.int64) * weight + second[flat]
    mended = codes.copy()
    mended[flat] = best_legal(scores, bounds, codec)
    return mended


def item_rng(seed: int | None, purpose: str, item_id: str) -> np.random.Generator:
    """Give a generator of an item's own, the same on every machine and for every order of items."""
    if seed is None:
        return np.random.default_rng()
    digest = hashlib.blake2b(f"{seed}\0{purpose}\0{item_id}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def _answer_sums(crowd: Crowd, values: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Sum over the labels of every answer, int64 [n_answers]."""
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(totals[crowd.latest.offset[1:]] - totals[crowd.latest.offset[:-1]])


def _item_shares(crowd: Crowd, codes: NDArray[np.int16]) -> NDArray[np.float32]:
    given = crowd.latest.codes
    wrong = _answer_sums(crowd, (given >= 0) & (given != codes[crowd.token_of])) > 0
    right = np.bincount(crowd.latest.item, ~wrong, crowd.n_items)
    asked = np.bincount(crowd.latest.item, minlength=crowd.n_items)
    return np.asarray(right / np.maximum(asked, 1), np.float32)


def _span_shares(crowd: Crowd, codes: NDArray[np.int16]) -> NDArray[np.float32]:
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
    votes = np.bincount(at[same], minlength=len(spans))
    asked = np.bincount(answers.item, minlength=crowd.n_items)[spans.item]
    return np.asarray(votes / np.maximum(asked, 1), np.float32)


def _agreement(result: Consensus) -> pa.Table:
    """Per worker: answers, labels, agreement with the result on tokens and on exact spans."""
    crowd, codes = result.crowd, result.codes
    given = crowd.latest.codes
    known = given >= 0
    workers = crowd.worker_of[known]
    n_labels = np.bincount(workers, minlength=crowd.n_workers)
    same = np.bincount(workers, (given == codes[crowd.token_of])[known], crowd.n_workers)
    n_answers = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
    columns = {
        "worker": crowd.worker_ids,
        "answers": pa.array(n_answers),
        "labels": pa.array(n_labels),
        "token_agreement": pa.array(share(same, n_labels)),
    }
    if not crowd.tagset.rules.is_plain:
        rates = worker_rates(crowd, codes)
        columns["span_agreement"] = pa.array(
            [r.f1 if r.n_true + r.n_predicted else float("nan") for r in rates]
        )
    return pa.table(columns)


__all__ = ["TIES", "SegmentVote", "SequenceVote", "TokenVote", "vote_counts"]
