"""Fine-tuning of an encoder: what it learns of every token, AdamW, early stopping, temperature."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, rows_of
from goldspan.errors import InputError
from goldspan.protocols import Checkpoint, Progress
from goldspan.spans import Codec, Tagged
from goldspan.tagger.base import as_text, score_tags
from goldspan.tagger.decoding import Potentials, best_path, decode
from goldspan.tagger.features import Text, is_dicts
from goldspan.tagger.kernels import Floats
from goldspan.tagger.network import Network
from goldspan.tagger.targets import Masks
from goldspan.tagger.text import Window, shuffled

LEAST_DOCUMENTS = 5
"""Documents below which items are held out instead."""


class SoftTags(NamedTuple):
    """What is believed of the tags of a text, to learn from.

    Attributes:
        codec: The tags.
        probs: float [n_tokens, J], the probability of every tag of a token, as in the order of
            `codec.tags`; a row of zeros teaches nothing.
        weight: float [n_tokens], how much a token counts; None: all the same.

    >>> soft = SoftTags(Codec.from_types(["PER"]), np.array([[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]]))
    >>> soft.codec.tags
    ('O', 'B-PER', 'I-PER')
    """

    codec: Codec
    probs: NDArray[Any]
    weight: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class TokenTargets:
    """Items and what is believed of their tags."""

    text: Text
    codec: Codec
    target: NDArray[np.float32]  # [n_tokens, J], the probability of every tag
    is_open: NDArray[np.bool_]  # [n_tokens], of which tokens one of several tags is right
    weight: NDArray[np.float32]  # [n_tokens], how much a token counts
    n_repaired: int = 0  # Tags that were made well-formed

    def select(self, items: NDArray[np.int64]) -> TokenTargets:
        """Return some items."""
        tokens = rows_of(self.text.offsets - self.text.offsets[0], items)[1]
        known = self.target[tokens], self.is_open[tokens], self.weight[tokens]
        return TokenTargets(self.text.select(items), self.codec, *known, self.n_repaired)

    def whole(self) -> TokenTargets | None:
        """Return the items of which all tokens count and are known; None if there are none."""
        offsets = self.text.offsets - self.text.offsets[0]
        n_bad = count_in_rows(self.is_open | (self.weight <= 0), offsets)
        items = np.flatnonzero((n_bad == 0) & (np.diff(offsets) > 0))
        return self.select(items) if len(items) else None

    def tags(self, masks: Masks) -> Tagged:
        """Return the best well-formed sequence of every item."""
        with np.errstate(divide="ignore"):
            unary = np.log(np.maximum(self.target.astype(np.float64), 1e-30))
            parts = (np.log(masks.start), np.log(masks.step), np.log(masks.end))
        return best_path(Potentials(unary, *parts, self.text.offsets), self.codec)


def words_of(X: Any) -> Text:
    """Take a `Text` or lists of words; features are refused."""
    if not isinstance(X, Text) and is_dicts(X):
        raise InputError("an encoder reads words, not dictionaries of features")
    text = as_text(X)
    if not len(text.offsets) or text.offsets[0] == 0:
        return text
    return text.select(np.arange(len(text.offsets) - 1))


def of_soft_tags(text: Text, y: SoftTags, weight: Any, power: float) -> TokenTargets:
    """Check soft labels, and raise them to a power; items that teach nothing are left out."""
    probs = np.asarray(y.probs, np.float64)
    shape = text.n_tokens, len(y.codec.tags)
    if probs.shape != shape:
        raise InputError(f"probs must be of shape {shape} (words, tags), not {probs.shape}")
    if not (np.isfinite(probs) & (probs >= 0)).all():
        raise InputError("probs must be finite and not negative")
    each = np.ones(shape[0]) if y.weight is None else np.asarray(y.weight, np.float64)
    if each.shape != shape[:1] or not (np.isfinite(each) & (each >= 0)).all():
        raise InputError(f"the weights of tokens must be {shape[0]} numbers of at least 0")
    lengths = np.diff(text.offsets)
    if weight is not None:
        items = np.asarray(weight, np.float64)
        if items.shape != lengths.shape or not (np.isfinite(items) & (items >= 0)).all():
            raise InputError(f"weight must be {len(lengths)} numbers of at least 0")
        each = each * np.repeat(items, lengths)
    raised = probs**power
    total = raised.sum(axis=1, keepdims=True)
    each = np.where(total[:, 0] > 0, each, 0.0)
    target = np.divide(raised, total, out=np.zeros_like(raised), where=total > 0)
    is_open = np.zeros(shape[0], np.bool_)
    task = TokenTargets(text, y.codec, target.astype(np.float32), is_open, each.astype(np.float32))
    taught = np.flatnonzero(count_in_rows(each > 0, text.offsets))
    if not len(taught):
        raise InputError("the training set is empty: there is no tag to learn from")
    return task.select(taught)


def in_order_of(
    codec: Codec, other: Codec, known: NDArray[np.bool_]
) -> NDArray[np.bool_]:  # fmt: skip
    """Return masks of tags of one tag set as those of another; a tag that it lacks is lost."""
    found = np.zeros((len(known), len(codec.tags)), np.bool_)
    for n, tag in enumerate(other.tags):
        if tag in codec.index:
            found[:, codec.index[tag]] = known[:, n]
    lost = ~found.any(axis=1)
    found[lost] = True  # as if it were not known
    return found


def documents_of(text: Text) -> NDArray[np.int64]:
    """Number the documents of items, int64 [n_items]; items where there are too few."""
    n_items = len(text.offsets) - 1
    if text.group is not None:
        found = np.unique(text.group, return_inverse=True)[1].ravel()
        if found.max() + 1 >= LEAST_DOCUMENTS:
            return np.asarray(found, np.int64)
    return np.arange(n_items)


WIDTH, RATE = 768, 5e-5
"""Size of an encoder, and its rate of learning; a narrower one learns faster."""
ACCURACY = 1e-3
"""Of the logarithm of the temperature."""


class Trainer:
    """Fine-tunes a network, epoch by epoch.

    Dropout and batches of an epoch follow from the seed and its number, so that training which goes
    on from a checkpoint ends with the same weights.
    """

    def __init__(
        self, m: Any, network: Network, task: TokenTargets, held_out: TokenTargets | None
    ) -> None:
        import torch

        self.network, self._m, self._task, self._held_out = network, m, task, held_out
        self.trace: list[float] = []
        self.scores: list[float] = []
        self.stop_reason = "interrupted"
        self._best: dict[str, Any] | None = None
        self._masks = Masks.of(task.codec, hard=m.hard)
        self._truth = None if held_out is None else held_out.tags(self._masks)
        self._windows = network.pieces.windows(task.text)
        rng = np.random.default_rng(m.random_state)
        self._n_steps = len(shuffled(self._windows, m.batch_pieces, rng))
        width = getattr(network.model.config, "hidden_size", WIDTH)
        self._rate = m.learning_rate or RATE * (WIDTH / width) ** 2
        plain = [p for name, p in network.model.named_parameters() if p.ndim < 2 or "Norm" in name]
        ids = {id(p) for p in plain}
        rest = [p for p in network.model.parameters() if id(p) not in ids]
        groups = [
            {"params": rest, "weight_decay": m.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(groups, lr=self._rate, fused=True)
        self._began = time.monotonic()
        self._done_before = 0

    def run(self, progress: Progress | None, checkpoint: Checkpoint | None) -> None:
        """Do all epochs, or stop early."""
        import torch

        name = self._fingerprint()
        if checkpoint is not None:
            self._go_on(checkpoint.load(name))
        self._done_before = len(self.trace)
        devices: list[int] | None = [] if self.network.device != "cuda" else None
        with torch.random.fork_rng(devices=devices):
            while len(self.trace) < self._m.epochs and not self._is_enough():
                self._epoch(len(self.trace), progress)
                if self._held_out is not None:
                    self._judge()
                if checkpoint is not None:
                    checkpoint.save(name, self._state())
        self.stop_reason = "validation" if self._is_enough() else "max_iter"

    def restore_best(self) -> None:
        """Put the weights of the best epoch back."""
        if self._best is not None:
            self.network.model.load_state_dict(self._best)

    def _is_enough(self) -> bool:
        """Return whether the last epochs brought nothing."""
        if not self.scores:
            return False
        best = int(np.argmax(self.scores))
        return bool(len(self.scores) - 1 - best >= self._m.patience)

    def _epoch(self, number: int, progress: Progress | None) -> None:
        import torch

        seed = [self._m.random_state or 0, number]
        torch.manual_seed(int(np.random.default_rng(seed).integers(1 << 31)))
        dealt = shuffled(self._windows, self._m.batch_pieces, np.random.default_rng(seed))
        total = self._n_steps * self._m.epochs
        sums, weights = 0.0, 0.0
        self.network.model.train()
        for n, batch in enumerate(dealt):
            step = min(number * self._n_steps + n, total - 1)
            for group in self._optimizer.param_groups:
                group["lr"] = self._rate * _schedule(step, total)
            loss, weight = self._step([self._windows[k] for k in batch])
            sums, weights = sums + loss * weight, weights + weight
            if progress is not None:
                done = step + 1 - self._done_before * self._n_steps
                seconds = (time.monotonic() - self._began) / max(done, 1)
                progress(step + 1, total, sums / max(weights, 1e-9), seconds * (total - step - 1))
        self.trace.append(sums / max(weights, 1e-9))

    def _step(self, windows: Sequence[Window]) -> tuple[float, float]:
        """Take a step; return the loss and the weight of its tokens."""
        import torch

        out, token = self.network.forward(windows)
        weight = torch.from_numpy(self._task.weight[token]).to(out.device)
        total = float(weight.sum())
        if total <= 0:
            return 0.0, 0.0
        target = torch.from_numpy(self._task.target[token]).to(out.device)
        log_p = torch.log_softmax(out.float(), dim=1)
        is_open = self._task.is_open[token]
        if is_open.any():
            rows = torch.from_numpy(np.flatnonzero(is_open)).to(out.device)
            among = log_p.detach()[rows].exp() * (target[rows] > 0)
            target[rows] = among / among.sum(dim=1, keepdim=True).clamp_min(1e-30)
        loss = -(weight[:, None] * target * log_p).sum() / total
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.model.parameters(), 1.0)
        self._optimizer.step()
        return float(loss.detach()), total

    def _judge(self) -> None:
        """Score the held-out items, and remember the weights if they are the best."""
        assert self._held_out is not None
        task = self._held_out
        potentials = unary_potentials(self.network.logits(task.text), 1.0, task.text, self._masks)
        self.scores.append(score_tags(self._truth, best_path(potentials, task.codec), task.codec))
        if int(np.argmax(self.scores)) == len(self.scores) - 1:
            state = self.network.model.state_dict()
            self._best = {name: value.detach().clone() for name, value in state.items()}

    # What a checkpoint holds: arrays only.

    def _fingerprint(self) -> str:
        """Name a run by its parameters, words and targets."""
        m, task = self._m, self._task
        params = sorted((k, repr(v)) for k, v in m.get_params().items() if k != "device")
        digest = hashlib.blake2b(repr((params, task.codec)).encode(), digest_size=16)
        for window in self._windows:
            digest.update(np.array(window.ids, np.int32).tobytes())
        out = [] if self._held_out is None else [self._held_out.target]
        for part in (task.target, task.is_open, task.weight, *out):
            digest.update(part.tobytes())
        return f"encoder {digest.hexdigest()}"

    def _state(self) -> Mapping[str, Any]:
        state: dict[str, Any] = {"trace": np.array(self.trace), "scores": np.array(self.scores)}
        for name, value in self.network.model.state_dict().items():
            state[f"now {name}"] = value.detach().cpu().numpy()
        for name, value in (self._best or {}).items():
            state[f"best {name}"] = value.cpu().numpy()
        for n, moments in self._optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                state[f"adam {n} {name}"] = value.detach().cpu().numpy()
        return state

    def _go_on(self, state: Mapping[str, Any] | None) -> None:
        import torch

        if state is None:
            return
        self.trace, self.scores = state["trace"].tolist(), state["scores"].tolist()
        parts: dict[str, dict[str, Any]] = {"now": {}, "best": {}}
        moments: dict[int, dict[str, Any]] = {}
        for key, value in state.items():
            kind, _, name = key.partition(" ")
            if kind in parts:
                parts[kind][name] = torch.from_numpy(np.array(value))
            elif kind == "adam":
                n, _, name = name.partition(" ")
                moments.setdefault(int(n), {})[name] = torch.from_numpy(np.array(value))
        self.network.model.load_state_dict(parts["now"])
        if parts["best"]:
            self._best = {n: v.to(self.network.device) for n, v in parts["best"].items()}
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _schedule(step: int, total: int) -> float:
    """Return the share of the rate at a step: up over the first tenth, down to 0."""
    rise = max(1, total // 10)
    return (step + 1) / rise if step < rise else max(0.0, (total - step) / max(1, total - rise))


# --------------------------------------------------------------------------------------------------
# Scores as potentials of a chain, and their temperature.


def unary_potentials(logits: Floats, temperature: float, text: Text, masks: Masks) -> Potentials:
    """Return ln p of every token, with the masks of the pair table as the chain."""
    scaled = logits / temperature
    scaled -= scaled.max(axis=1, keepdims=True, initial=-np.inf) if len(scaled) else 0.0
    unary = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        chain = (np.log(masks.start), np.log(masks.step), np.log(masks.end))
    return Potentials(unary, *chain, text.offsets - text.offsets[0])


def best_temperature(logits: Floats, task: TokenTargets, masks: Masks) -> float:
    """Return the temperature with the smallest cross-entropy of the marginals on held-out items."""
    from scipy.optimize import minimize_scalar

    def entropy(log_t: float) -> float:
        potentials = unary_potentials(logits, float(np.exp(log_t)), task.text, masks)
        probs = decode(potentials, task.codec, least=np.inf).probs
        own = task.target * np.log(np.maximum(probs, 1e-12))
        return -float((task.weight[:, None] * own).sum())

    bounds = (np.log(0.25), np.log(8.0))
    found = minimize_scalar(entropy, bounds=bounds, method="bounded", options={"xatol": ACCURACY})
    return float(np.exp(found.x))
