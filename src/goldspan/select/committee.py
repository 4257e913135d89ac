"""Query by committee: items about which several models disagree.

Seung, Opper and Sompolinsky (1992). The models are taggers, classifiers, or their probabilities,
all of one sort; they may know different labels. Of tag sequences the disagreement is the mean over
tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from goldspan.errors import InputError
from goldspan.select.base import Task
from goldspan.select.predictions import by_blocks, class_probs, is_tagger
from goldspan.select.ranking import Floats, Ranked
from goldspan.select.uncertainty import token_means
from goldspan.tagger import Text
from goldspan.tagger.base import Tagger


@dataclass(kw_only=True)
class Committee(Ranked):
    """Base of the rules that ask several models."""

    needs_model: ClassVar[bool] = True

    @abstractmethod
    def disagreement(self, probs: Floats) -> Floats:
        """Give it from probabilities.

        Args:
            probs: float64 [n_models, n, n_labels].

        Returns:
            float64 [n], not negative.
        """

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        models = _models(task.model, self.name)
        if is_tagger(models[0]):
            return by_blocks(
                _widest(models), task.pool, index, lambda text: self._of_text(models, text)
            )
        every = [class_probs(model, task.pool, index) for model in models]
        names = [_labels(model, probs) for model, probs in zip(models, every, strict=True)]
        return self.disagreement(_aligned(every, names))

    def _of_text(self, taggers: list[Tagger], text: Text) -> Floats:
        alone = replace(text, group=None)
        found = [one.tag(text if one.documents_ else alone, least=np.inf) for one in taggers]
        probs = _aligned([one.probs for one in found], [list(t.codec_.tags) for t in taggers])
        return token_means(self.disagreement(probs), found[0].offsets)


@dataclass(kw_only=True)
class Vote(Committee):
    """Entropy of the models' votes, in nats.

    >>> sure, other = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> Vote().select(["a", "b"], model=[sure, other], n=1).item.tolist()
    [1]
    """

    name: ClassVar[str] = "vote"

    def disagreement(self, probs: Floats) -> Floats:
        """Entropy of the shares of votes; a model votes for its likeliest label."""
        n_labels = probs.shape[2]
        votes = np.eye(n_labels)[probs.argmax(axis=2)]
        return np.asarray(entr(votes.mean(axis=0)).sum(axis=1))


@dataclass(kw_only=True)
class CommitteeKl(Committee):
    """Mean KL divergence of the models from their average, in nats (McCallum and Nigam 1998)."""

    name: ClassVar[str] = "committee-kl"

    def disagreement(self, probs: Floats) -> Floats:
        """Mean of KL(P_m || mean P)."""
        found = rel_entr(probs, probs.mean(axis=0)).sum(axis=2).mean(axis=0)
        return np.asarray(np.maximum(0.0, found))


def _models(given: Any, name: str) -> list[Any]:
    models = list(given) if isinstance(given, list | tuple) else []
    if isinstance(given, np.ndarray) and given.ndim == 3:
        models = list(given)
    if len(models) < 2:
        raise InputError(f"{name} needs a committee: a list of at least two models")
    if len({is_tagger(model) for model in models}) > 1:
        raise InputError(f"{name}: a committee is of taggers or of classifiers, not of both")
    return models


def _widest(taggers: list[Tagger]) -> Tagger:
    """Give one that looks at whole documents, if any does: the text is then not cut."""
    return next((one for one in taggers if one.documents_), taggers[0])


def _labels(model: Any, probs: Floats) -> list[Any]:
    names = getattr(model, "classes_", None)
    return list(range(probs.shape[1])) if names is None else list(names)


def _aligned(every: list[Floats], names: list[list[Any]]) -> Floats:
    """Give the probabilities of all models for the labels that any of them knows."""
    labels = list(dict.fromkeys(label for own in names for label in own))
    found = np.zeros((len(every), len(every[0]), len(labels)))
    for m, (probs, own) in enumerate(zip(every, names, strict=True)):
        found[m][:, [labels.index(label) for label in own]] = probs
    return found
