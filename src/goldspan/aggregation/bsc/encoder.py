"""A pre-trained encoder as text model beside the workers: `bsc-seq+encoder`.

It stands where the CRF stands in `bsc-seq+crf` (docs/math.md, section 6): every fold's encoder is
fine-tuned on the soft labels of all other folds, and says of the fold's own tokens ln p(tag), the
logarithm of its softmax. What may follow what is said by the pair table alone. In later rounds an
encoder goes on from its weights with one more pass over the items.

All scores are divided by one temperature: that with the smallest cross-entropy between what the
encoders say of items that they never saw and what is believed of these (Guo et al. 2017).

A fold takes minutes. After each the state is kept, if there is a checkpoint: scores of all rounds
by then, and the last weights of every fold. A resumed run computes all else anew, which is quick,
and takes the scores from there, so that it ends as if nothing had happened.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.text import Floats, Settings, SoftLabels, TextModel, TextScores
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Checkpoint, Progress
from goldspan.tagger import Encoder, SoftTags
from goldspan.tagger.encoder import check_installed
from goldspan.tagger.finetuning import TokenTargets, best_temperature, unary_potentials
from goldspan.tagger.kernels import Weights
from goldspan.tagger.network import Network

EPOCHS = 3
"""Passes over the items in the first round, unless the parameters say otherwise; then one each."""
UNITS = 100
"""Steps of progress that the training of a fold counts for."""
FIXED = frozenset({"model", "encoding", "hard", "held_out", "power"})
"""Parameters of `Encoder` that are set here."""


@dataclass(frozen=True, eq=False)
class Learned:
    """The encoder of a fold after a round."""

    logits: Floats  # [n_own_tokens, J], what it says of the fold's own tokens
    state: Mapping[str, NDArray[Any]]  # Its weights by name, arrays


class EncoderFolds(TextModel):
    """Cross-fitted encoders."""

    name = "encoder"
    is_slow = True

    def __init__(
        self,
        crowd: Crowd,
        active: NDArray[np.bool_],
        settings: Settings,
        checkpoint: Checkpoint | None = None,
        fingerprint: str = "",
    ) -> None:
        super().__init__(crowd, active, settings)
        check_installed(purpose="an encoder as text model")
        params = encoder_params(settings.encoder, settings.encoder_params)
        self._params = {"random_state": settings.seed, **params}
        self._own = [np.flatnonzero(self.fold == k) for k in range(self.n_folds)]
        self._tokens = [rows_of(self.text.offsets, own)[1] for own in self._own]
        self._checkpoint, self._fingerprint = checkpoint, fingerprint
        self._state: dict[str, Any] = {}
        if checkpoint is not None:
            self._state = dict(checkpoint.load(fingerprint) or {})
        self._round, self._began, self._done = 0, time.monotonic(), 0

    def train(
        self, labels: SoftLabels, before: Sequence[Learned | None], context: FitContext
    ) -> list[Learned]:
        """Fine-tune the encoder of every fold, one after the other: torch has its own threads."""
        found = []
        for k, last in enumerate(before):
            kept = self._kept(k)
            if kept is None:
                kept = self._fit(k, labels, last, context.progress)
                self._keep(k, kept)
                self._done += 1
            found.append(kept)
        self._round += 1
        return found

    def scores(self, learned: Sequence[Learned], labels: SoftLabels) -> TextScores:
        """Score all tokens by the encoders that never saw them, at one temperature."""
        n_labels = len(self.crowd.tagset.tags)
        logits = np.zeros((self.crowd.n_tokens, n_labels))
        for tokens, own in zip(self._tokens, learned, strict=True):
            logits[tokens] = own.logits
        teachers = np.flatnonzero(self.active & (np.diff(self.text.offsets) > 0))
        tokens = rows_of(self.text.offsets, teachers)[1]
        target = labels.probs[tokens]
        task = TokenTargets(
            self.text.select(teachers), self.crowd.tagset, target,
            np.zeros(len(target), np.bool_), np.ones(len(target), np.float32),
        )  # fmt: skip
        temperature = best_temperature(logits[tokens], task, self.masks)
        unary = unary_potentials(logits, temperature, self.text, self.masks).unary
        return TextScores(unary, Weights.zeros(0, n_labels), self.masks)

    def tagger(
        self, labels: SoftLabels, learned: Sequence[Learned], context: FitContext
    ) -> Encoder:
        """Fine-tune the encoder that the user keeps on all items."""
        del learned
        encoder = Encoder(**self._params)
        items = np.flatnonzero(self.active)
        return encoder.fit(
            self.text.select(items),
            self._soft(items, labels),
            progress=self._told(context.progress, self.settings.rounds * self.n_folds),
        )

    def untrained(self, learned: Sequence[Learned]) -> Encoder:
        """Return the encoder of a fold: the first one whose weights are there."""
        encoder = self._encoder(next(one.state for one in learned if one.state))
        encoder.trace_, encoder.scores_ = (), ()
        encoder.converged_, encoder.stop_reason_ = False, "interrupted"
        return encoder

    def _fit(
        self, k: int, labels: SoftLabels, last: Learned | None, progress: Progress | None
    ) -> Learned:
        """Fine-tune the encoder of a fold on the items of the others."""
        params = {"epochs": EPOCHS, **self._params, "held_out": 0.0}
        start = None
        if last is not None:
            params["epochs"], start = 1, self._encoder(last.state)
        encoder = Encoder(**params)
        items = np.flatnonzero((self.fold != k) & self.active)
        text, soft = self.text.select(items), self._soft(items, labels)
        before = self._round * self.n_folds + k
        encoder.fit(text, soft, start=start, progress=self._told(progress, before))
        network = encoder.network_
        assert isinstance(network, Network)
        state = {name: v.detach().cpu().numpy() for name, v in network.model.state_dict().items()}
        return Learned(network.logits(self.text.select(self._own[k])), state)

    def _soft(self, items: NDArray[np.int64], labels: SoftLabels) -> SoftTags:
        return SoftTags(self.crowd.tagset, labels.probs[rows_of(self.text.offsets, items)[1]])

    def _encoder(self, state: Mapping[str, NDArray[Any]]) -> Encoder:
        """Return an encoder with some weights."""
        import torch

        encoder = Encoder(**self._params)
        codec = self.crowd.tagset
        network = Network.open(encoder, codec)
        network.model.load_state_dict({n: torch.from_numpy(np.array(v)) for n, v in state.items()})
        encoder.codec_, encoder.network_, encoder.temperature_ = codec, network, 1.0
        return encoder

    def _told(self, progress: Progress | None, n_before: int) -> Progress | None:
        """Return who is told of the steps of a fold, as a part of all; so many come before it."""
        if progress is None:
            return None
        every = (self.settings.rounds * self.n_folds + 1) * UNITS

        def tell(done: int, total: int, objective: float, seconds_left: float) -> None:
            del seconds_left
            now = UNITS * n_before + UNITS * done // total
            worked = UNITS * self._done + UNITS * done / total
            left = (time.monotonic() - self._began) / max(worked, 1e-9) * (every - now)
            progress(now, every, objective, left)

        return tell

    # What a checkpoint holds: logits by round and fold, and the last weights by fold.

    def _kept(self, k: int) -> Learned | None:
        logits = self._state.get(f"logits {self._round} {k}")
        if logits is None:
            return None
        begin = f"weights {k} "
        is_last = f"logits {self._round + 1} {k}" not in self._state
        weights = {n.removeprefix(begin): v for n, v in self._state.items() if n.startswith(begin)}
        return Learned(np.asarray(logits), weights if is_last else {})

    def _keep(self, k: int, learned: Learned) -> None:
        if self._checkpoint is None:
            return
        self._state[f"logits {self._round} {k}"] = learned.logits
        self._state |= {f"weights {k} {name}": value for name, value in learned.state.items()}
        self._checkpoint.save(self._fingerprint, self._state)


def encoder_params(model: str | None, more: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return the parameters of the encoders."""
    if not model:
        raise InputError(
            "name the encoder, a model of Hugging Face or a folder with one: encoder=… "
            "(--param encoder=NAME_OR_FOLDER)"
        )
    known = _read(more) if isinstance(more, str) else dict(more or {})
    taken = sorted(FIXED & set(known))
    if taken:
        raise InputError(f"encoder_params: {', '.join(taken)} cannot be set here")
    params = {"model": model, **known}
    Encoder().set_params(**params)
    return params


def _read(text: str) -> dict[str, Any]:
    """Read parameters from a string: "epochs=2, precision=bfloat16"."""
    found: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise InputError(f"encoder_params: {part!r} must look like epochs=2")
        words = {"true": True, "false": False, "none": None}
        found[name] = words[value.lower()] if value.lower() in words else _number(value)
    return found


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
