"""One run: a method learns from a crowd, and is scored on the crowd's items and on unseen ones.

What gives labels and no tagger – the votes, Dawid-Skene, BSC – is followed by a CRF that is trained
on these labels, which is then scored on unseen items. All CRFs have the features `rodrigues`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, get_aggregator
from goldspan.aggregation.base import text_of
from goldspan.aggregation.crf import CrfGold
from goldspan.crowd import Crowd
from goldspan.crowd.labels import recode, translate
from goldspan.crowd.measures import worker_rates
from goldspan.errors import UnknownNameError
from goldspan.spans import Codec, Tagged
from goldspan.spans.scoring import Rates, score_codes
from goldspan.tagger import CRF
from goldspan.tagger.decoding import best_path

Codes = NDArray[np.int16]
TEMPLATES = "rodrigues"
UPPER = "crf-gold"
"""The CRF trained on the truth; it needs one run, for the crowd does not matter."""
HMM = {"model": "hmm", "templates": "hmm"}
BERNOULLI = {"latent": "bernoulli"}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "crf-ma (eq. 12)": ("crf-ma", {"normalise": "ratio"}),
    "crf-ma (eq. 15)": ("crf-ma", {"normalise": "none"}),
    "crf-ma (c2 = 0.5)": ("crf-ma", {"c2": 0.5}),
    "crf-ma (Bernoulli)": ("crf-ma", {"normalise": "ratio", **BERNOULLI}),
    "crf-ma (Bernoulli; per label)": ("crf-ma", BERNOULLI),
    "hmm-ma": ("crf-ma", HMM),
    "hmm-ma (eq. 15)": ("crf-ma", {"normalise": "none", **HMM}),
    "crf-conc (c2 = 2.5)": ("crf-conc", {"c2": 2.5}),
    "mv-seg (in or out)": ("mv-seg", {"segments": "inside"}),
    "mv-seg (in or out; ties to spans)": ("mv-seg", {"segments": "inside", "ties": "inside"}),
    "mv-token (ties to spans)": ("mv-token", {"ties": "inside"}),
    "multicrf (distinct)": ("multicrf", {"begin": "uniform"}),
    "multicrf-max (distinct)": ("multicrf-max", {"begin": "uniform"}),
}
"""Other forms of methods: what they are called, the method, its parameters."""
OWN = "own items"
"""The name of the items that the crowd labelled, beside the names of the test sets."""


class Claim(NamedTuple):
    """What the paper says: one method, its own, is above others."""

    method: str
    below: tuple[str, ...]


@dataclass(frozen=True)
class Effort:
    """How long the methods may take.

    Attributes:
        crf: Parameters of the CRF methods.
        text: Parameters of BSC with a CRF.
        tagger: Parameters of CRFs trained on labels.
    """

    crf: Mapping[str, Any] = field(default_factory=dict)
    text: Mapping[str, Any] = field(default_factory=dict)
    tagger: Mapping[str, Any] = field(default_factory=dict)

    def params(self, label: str) -> tuple[str, dict[str, Any]]:
        """Return the method that a row's label stands for, and its parameters."""
        name, own = VARIANTS.get(label, (label, {}))
        if name.endswith("+crf"):
            return name, {"templates": TEMPLATES, **self.text, **own}
        if name in CRF_METHODS:
            return name, {"templates": TEMPLATES, **self.crf, **own}
        return name, dict(own)


CRF_METHODS = (UPPER, "crf-conc", "crf-ma", "multicrf", "multicrf-max")
FULL = Effort()
QUICK = Effort(
    crf={"max_iter": 4, "steps": 10},
    text={"folds": 2, "rounds": 2},
    tagger={"max_iter": 40},
)


class Reliability(NamedTuple):
    """How good a worker is: span F1 against the gold, and against the method's labels."""

    worker: str
    true: float
    estimated: float


@dataclass(frozen=True)
class Run:
    """What came of a run.

    Attributes:
        scores: Precision, recall and F1 by the name of the items.
        workers: Reliability of everybody who labelled something.
        seconds: Of learning.
    """

    scores: Mapping[str, tuple[float, float, float]]
    workers: tuple[Reliability, ...]
    seconds: float


def check_methods(labels: tuple[str, ...]) -> None:
    """Reject rows that stand for no method.

    Raises:
        UnknownNameError: There is no such method.
    """
    from goldspan.aggregation import methods

    known = [UPPER, *VARIANTS, *methods()]
    for label in labels:
        if label not in known:
            raise UnknownNameError("method", label, known)


def learn(
    crowd: Crowd,
    label: str,
    tests: Mapping[str, Crowd],
    effort: Effort,
    listen: Callable[..., None] | None = None,
) -> Run:
    """Let a method learn, and score it.

    Args:
        crowd: The answers; its gold is only scored, unless the method is "crf-gold".
        label: The method's name, or one of `VARIANTS`.
        tests: Unseen items with gold, in the crowd's encoding.
        effort: How long it may take.
        listen: Told of every step; what it raises ends the run.

    Raises:
        KeyboardInterrupt: Ctrl-C: what was learned by then is no result.
    """
    begin = time.perf_counter()
    name, params = effort.params(label)
    method = CrfGold(**params) if name == UPPER else get_aggregator(name, **params)
    result = method.fit(crowd, crowd if name == UPPER else None, progress=listen).result_
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    tagger = result.tagger or _tagger(result, effort, listen)
    seconds = time.perf_counter() - begin
    scores = {OWN: _own_rates(result, crowd)}
    scores |= {test: _rates(tagger, items) for test, items in tests.items()}
    shares = {items: (one.precision, one.recall, one.f1) for items, one in scores.items()}
    return Run(shares, _reliabilities(result, crowd), seconds)


def _tagger(result: Consensus, effort: Effort, listen: Callable[..., None] | None) -> CRF:
    """Train a CRF on labels."""
    labelled = np.diff(result.crowd.by_item.bounds) > 0
    items = result.as_gold().select_items(labelled)
    codec = items.tagset
    tagger = CRF(templates=TEMPLATES, encoding=codec.encoding, **effort.tagger)
    return tagger.fit(text_of(items), codec.decode(items.gold_tagged), progress=listen)


def _own_rates(result: Consensus, crowd: Crowd) -> Rates:
    """Score the inferred labels on the items that somebody answered."""
    answered = np.repeat(np.diff(crowd.by_item.bounds) > 0, np.diff(crowd.offsets))
    gold = crowd.with_gold(np.where(answered, crowd.gold_tagged.codes, np.int16(-1)))
    return _score(gold, np.where(answered, result.codes, np.int16(-1)), result.tagset)


def _rates(tagger: CRF, items: Crowd) -> Rates:
    """Score a tagger on unseen items."""
    found = best_path(tagger.log_potentials(text_of(items)), tagger.codec_)
    return _score(items, found.codes, tagger.codec_)


def _score(items: Crowd, codes: Codes, codec: Codec) -> Rates:
    items, codes = _joined(items, codes, codec)
    return score_codes(items.gold_tagged, Tagged(codes, items.offsets), items.tagset).micro


def _joined(items: Crowd, codes: Codes, codec: Codec) -> tuple[Crowd, Codes]:
    """Return items and labels one tag set: either may have tags that the other lacks."""
    if items.tagset == codec:
        return items, codes
    joined = Codec.from_tags({*items.tagset.tags, *codec.tags}, codec.encoding)
    return recode(items, joined), translate(codes, codec, joined)


def _reliabilities(result: Consensus, crowd: Crowd) -> tuple[Reliability, ...]:
    crowd, codes = _joined(crowd, result.codes, result.tagset)
    rates = zip(
        crowd.worker_ids.to_pylist(),
        worker_rates(crowd, crowd.gold_tagged.codes),
        worker_rates(crowd, codes),
        strict=True,
    )
    rows = [Reliability(name, true.f1, found.f1) for name, true, found in rates]
    n_answers = np.diff(crowd.by_worker.bounds)
    return tuple(row for row, n in zip(rows, n_answers.tolist(), strict=True) if n)
