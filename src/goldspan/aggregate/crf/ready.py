"""A crowd made ready for CRFs: features, answers as lessons, known truth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.base import Given
from goldspan.aggregate.bsc.known import legal_known
from goldspan.aggregate.crf.lessons import Floats, Lessons, Scores, Sums
from goldspan.aggregate.crf.rounds import State
from goldspan.aggregate.text import check_words, text_of
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.tagger.carry import carry
from goldspan.tagger.crf import CRF
from goldspan.tagger.features import FeatureMap, Features, Text
from goldspan.tagger.lbfgs import Minimum
from goldspan.tagger.templates import read_templates
from goldspan.tagger.training import Masks, Targets, train
from goldspan.tagger.weights import Weights


@dataclass(frozen=True, eq=False)
class Ready:
    """A crowd with its features.

    Attributes:
        crowd: The crowd.
        masks: What its encoding allows.
        text: Its words.
        numbers: How words become features.
        features: The features of all tokens.
        lessons: The answers, in the order of `crowd.latest`.
        known: int16 [n_tokens], truth that is given, -1 unknown.
        runner: Where to work.
        notes: What to tell.
    """

    crowd: Crowd
    masks: Masks
    text: Text
    numbers: FeatureMap
    features: Features
    lessons: Lessons
    known: NDArray[np.int16]
    runner: Runner
    notes: tuple[str, ...]

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return len(self.masks.start)

    @cached_property
    def truth(self) -> Lessons:
        """The known truth as answers."""
        return Lessons.of_truth(self.known, self.crowd.offsets)

    @cached_property
    def is_taught_by_truth(self) -> NDArray[np.bool_]:
        """Whether the truth of an item is known throughout, bool [n_items]."""
        lengths = np.diff(self.crowd.offsets)
        return np.asarray((self.truth.n_given == lengths) & (lengths > 0))

    @cached_property
    def is_answered(self) -> NDArray[np.bool_]:
        """Whether an item has an answer or known truth, bool [n_items]."""
        is_answered = np.diff(self.crowd.by_item.bounds) > 0
        return np.asarray(is_answered | (self.truth.n_given > 0))

    def scores(self, weights: Weights | None) -> Scores:
        """Score all tokens; without weights every well-formed sequence is as good."""
        if weights is None:
            return Scores.even(self.crowd.n_tokens, self.masks)
        return Scores.of(self.features, weights, self.masks)

    def targets(self, weight: Floats, truth_weight: Floats, scores: Scores) -> Targets:
        """Sum up answers and known truth.

        Answers to items whose truth is known throughout teach nothing; on items of which some tags
        are known they do, beside these.

        Args:
            weight: float64 [n_answers].
            truth_weight: float64 [n_items], of items with known truth.
            scores: What fills in skipped tokens.
        """
        sums = Sums.zeros(self.crowd.offsets, self.n_labels)
        taught = self.is_taught_by_truth[self.lessons.item]
        self.lessons.add_to(sums, np.where(taught, 0.0, weight), scores)
        self.truth.add_to(sums, truth_weight, scores)
        return sums.targets(self.features, self.numbers.n_features)

    def train(
        self, targets: Targets, start: Weights | None, c2: float, steps: int
    ) -> tuple[Weights, Minimum]:
        """Do some steps of L-BFGS from the weights that were."""
        return train(
            self.features, targets, self.masks, c2=c2, runner=self.runner, start=start,
            max_iter=steps,
        )  # fmt: skip

    def carried(self, tagger: CRF) -> Weights:
        """Take over the weights of an earlier tagger."""
        known = (tagger.weights_, tagger.features_, tagger.codec_)
        return carry(*known, self.numbers, self.crowd.tagset)

    def fingerprint(self, method: str, params: Mapping[str, Any], begin: State) -> str:
        """Name a run by its words, answers, known truth and parameters, and where it begins."""
        codec = self.crowd.tagset
        named = (method, sorted(params.items()), codec.encoding, codec.tags)
        digest = hashlib.blake2b(repr(named).encode(), digest_size=16)
        for ids in (self.crowd.worker_ids, self.text.words):
            digest.update("\n".join(map(str, ids.to_pylist())).encode())
        one, workers = self.lessons, self.crowd.latest.worker
        parts: list[NDArray[Any]] = [one.item, workers, one.offset, one.codes, one.tokens]
        parts += [self.known, *begin.arrays.values()]
        parts += [] if begin.weights is None else [begin.weights.vector]
        parts += [] if self.text.group is None else [self.text.group]
        for part in parts:
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def prepare(crowd: Crowd, given: Given, templates: Any, min_count: int) -> Ready:
    """Make a crowd ready.

    Raises:
        InputError: There are no words, a template is faulty, or known truth cannot be.
    """
    check_words(crowd)
    masks = Masks.of(crowd.tagset, hard=True)
    lessons, repaired = Lessons.of_crowd(crowd, masks)
    text = text_of(crowd)
    numbers, features = FeatureMap.fit(text, read_templates(templates), min_count=min_count)
    known, notes = np.full(crowd.n_tokens, -1, np.int16), []
    if given.known is not None:
        known, changed = legal_known(given.known, crowd)
        notes.append(f"{int((known >= 0).sum())} tokens of known truth")
        notes += [f"{changed} known tags made well-formed"] if changed else []
    notes += [f"{repaired} malformed tags of workers made well-formed"] if repaired else []
    return Ready(crowd, masks, text, numbers, features, lessons, known, given.runner, tuple(notes))
