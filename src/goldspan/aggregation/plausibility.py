"""Signs, without any gold, that a consensus has run away from the answers that it was made of.

A method that fails does not say so: it returns labels with high confidence. But annotators who all
say the same are rarely all wrong, a span that is longer than any that was ever annotated is hardly
one, and single labels whose shares are far from those of the answers were hardly meant. Counting
needs no gold and takes one pass over the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_between, rows_of
from goldspan.crowd import Crowd
from goldspan.crowd.labels import joined, translate
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import ConfidenceScore, score_confidence
from goldspan.spans.corpus import SpanArray
from goldspan.spans.scoring import align_by_id, item_keys, right_spans

ENOUGH = 3
"""Annotators who agree on a token for it to count as unanimous."""
OVERRULED = 0.02
"""Share of unanimous tokens that may be overruled without a warning."""
UNSUPPORTED = 0.2
"""Share of spans that no annotator gave, without a warning."""
DRIFT = 0.2
"""Nats by which the shares of single labels may diverge from those of the answers without a
warning. Of 1,610 results on real and simulated crowds 45 of the 83 that were 8 points or more worse
than votes are beyond it, and 3 of the 1,527 that were level or better."""


@dataclass(frozen=True)
class Plausibility:
    """How far a consensus is from the answers."""

    n_unanimous: int  # Tokens to which at least three annotators all gave the same tag
    n_overruled: int  # Those of them that have another tag in the consensus
    n_spans: int
    n_unsupported: int  # Those of them that no annotator gave with these ends and this type
    longest_span: int  # Tokens of the longest span of the consensus, 0 without any
    longest_answer: int  # Tokens of the longest span that an annotator gave, 0 without any
    answers_per_item: float  # Mean number of annotators per item that has an answer
    drift: float = 0.0
    drifted: str = ""  # The single label whose share grew most, "" for spans
    drifted_share: float = 0.0
    given_share: float = 0.0  # Its share of the answers, every item counted once

    @property
    def warnings(self) -> list[str]:
        """What a person should know before trusting the labels; empty if nothing is conspicuous."""
        found = []
        if self.longest_span > self.longest_answer:
            found.append(
                f"the longest span has {self.longest_span} tokens, the longest that any annotator "
                f"gave has {self.longest_answer}: compare with another method"
            )
        if self.n_overruled > OVERRULED * self.n_unanimous:
            share = self.n_overruled / self.n_unanimous
            found.append(
                f"{share:.1%} of the tokens on which at least {ENOUGH} annotators all agree have "
                "another label here: compare with another method"
            )
        if self.n_unsupported > UNSUPPORTED * self.n_spans:
            share = self.n_unsupported / self.n_spans
            found.append(
                f"{share:.1%} of the spans were given by no annotator with these ends and this "
                "type: look at some of them"
            )
        if self.drift > DRIFT:
            found.append(
                f"{self.drifted_share:.0%} of the items are labelled {self.drifted!r}, which "
                f"{self.given_share:.0%} of the answers say: compare with another method"
            )
        return found


def check_plausibility(crowd: Crowd, codes: NDArray[np.int16]) -> Plausibility:
    """Compare a consensus with the answers that it was made of."""
    # codes int16 [n_tokens]
    answers = crowd.latest
    given = answers.codes >= 0
    token, code = crowd.token_of[given], answers.codes[given].astype(np.int64)
    count = np.bincount(token, minlength=crowd.n_tokens)
    # All equal if and only if the variance is zero; sums of small integers are exact in float64.
    total = np.bincount(token, weights=code, minlength=crowd.n_tokens)
    square = np.bincount(token, weights=code * code, minlength=crowd.n_tokens)
    unanimous = (count >= ENOUGH) & (count * square == total * total) & (codes >= 0)
    overruled = unanimous & (codes * count != total)
    ours = theirs = np.empty((0, 3), np.int64)
    drift: dict[str, Any] = {}
    if crowd.is_classification:
        drift = _drift(crowd, token, code, codes)
    else:
        shift = crowd.offsets[answers.item] - answers.offset[:-1]
        ours = _rows(find_spans(Tagged(codes, crowd.offsets), crowd.tagset))
        given_spans = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
        theirs = _rows(given_spans)
        theirs[:, 0] += shift[given_spans.item]
    _, number = np.unique(np.concatenate([ours, theirs]), axis=0, return_inverse=True)
    own, others = np.split(number.ravel(), [len(ours)])
    return Plausibility(
        n_unanimous=int(np.count_nonzero(unanimous)),
        n_overruled=int(np.count_nonzero(overruled)),
        n_spans=len(ours),
        n_unsupported=int(np.count_nonzero(~np.isin(own, others))),
        longest_span=int(ours[:, 1].max(initial=0)),
        longest_answer=int(theirs[:, 1].max(initial=0)),
        answers_per_item=len(answers) / max(1, len(np.unique(answers.item))),
        **drift,
    )


def _drift(
    crowd: Crowd, item: NDArray[np.integer], code: NDArray[np.int64], codes: NDArray[np.int16]
) -> dict[str, Any]:
    """Return the divergence of shares of labels, which grew most, and its two shares."""
    n_labels = len(crowd.tagset.tags)
    count = np.bincount(item, minlength=crowd.n_items)
    there = (count > 0) & (codes >= 0)
    if not there.any():
        return {}
    counted = there[item]
    given = np.bincount(code[counted], 1 / count[item[counted]], n_labels)
    own = np.bincount(codes[there], minlength=n_labels).astype(np.float64)
    most = int((own - given).argmax())
    n, (p, q) = there.sum(), ((one + 1) / (one + 1).sum() for one in (own, given))
    return {
        "drift": float((p * np.log(p / q)).sum()), "drifted": crowd.tagset.tags[most],
        "drifted_share": float(own[most] / n), "given_share": float(given[most] / n),
    }  # fmt: skip


def _rows(spans: SpanArray) -> NDArray[np.int64]:
    """Return first token, length and type of every span, int64 [n_spans, 3]."""
    return np.column_stack([spans.start, spans.end - spans.start, spans.type]).astype(np.int64)


# --------------------------------------------------------------------------------------------------
# How far the confidences of a result can be believed, against a truth matched by item.


def measure_confidence(
    crowd: Crowd,  # With the labels of the result as its gold
    token_probs: NDArray[np.float32] | None,  # [n_tokens, J]
    token_confidence: NDArray[np.float32],  # [n_tokens], used for plain labels only
    span_confidence: NDArray[np.float32],  # [n_spans]
    truth: Any,  # What `goldspan.spans.score` takes as the truth
    encoding: str | None,
) -> ConfidenceScore:
    """Measure confidences; see `ConfidenceScore`."""
    # Only items on both sides count, and spans whose truth is known throughout
    codes = crowd.gold_tagged.codes
    gold, _, codec = align_by_id(truth, crowd, encoding)
    place = {key: n for n, key in enumerate(crowd.item_ids.to_pylist())}
    which = np.array([place[key] for key in item_keys(truth, crowd) if key in place], np.int64)
    every = joined(crowd.tagset, codec)
    true = np.full(crowd.n_tokens, -1, np.int16)
    true[rows_of(crowd.offsets, which)[1]] = translate(gold.codes, codec, every)
    written = translate(codes, crowd.tagset, every)
    known = np.flatnonzero((true >= 0) & (written >= 0))
    right = (true == written)[known]
    probs, tokens_right = np.zeros(0), right[:0]
    if token_probs is not None:
        mine = np.array([crowd.tagset.index.get(tag, -1) for tag in every.tags], np.int64)
        own = mine[true[known]]
        probs = np.where(own >= 0, token_probs[known, np.maximum(own, 0)], 0.0)
        tokens_right = right
    if every.rules.is_plain:
        sure = token_confidence[known]
        return score_confidence("label", sure, right, probs, tokens_right, len(every.tags))
    spans = find_spans(Tagged(written, crowd.offsets), every)
    there = find_spans(Tagged(true, crowd.offsets), every)
    kept = count_between(true < 0, spans.start, spans.end) == 0
    is_right = right_spans(there, spans, len(true))[kept]
    sure = span_confidence[kept]
    return score_confidence("span", sure, is_right, probs, tokens_right, len(every.tags))
