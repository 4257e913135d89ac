"""The base of the taggers: fit, predict, marginals, n-best, forced tags, scores, warm starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.errors import InputError, NotFittedError
from goldspan.params import Estimator, Whole, result
from goldspan.protocols import Progress, Runner
from goldspan.spans import Codec, Tagged, tokenize
from goldspan.spans.scoring import score_codes
from goldspan.tagger.decoding import Potentials, Tagging, best_path, constrain, decode, n_best
from goldspan.tagger.features import (
    FIRST,
    DictFeatures,
    FeatureMap,
    Features,
    Template,
    Text,
    is_dicts,
    read_templates,
)
from goldspan.tagger.kernels import Weights
from goldspan.tagger.model_file import Model, write_model
from goldspan.tagger.targets import (
    Known,
    Labels,
    Masks,
    Targets,
    is_partial,
    legal_codes,
    named_tags,
    read_known,
)

# --------------------------------------------------------------------------------------------------
# The base class.


__all__ = ["Tagger", "as_text", "legal_codes", "potentials_of", "score_tags", "transform"]

_AGREE = 0.99
"""Share of whole words from which on a text counts as tokenized by a rule."""
_ATTACHED = 0.005
"""Share of words ending in a comma above which a text was tokenized at white space only."""
Forced = Sequence[Sequence[Known]]
"""Per item and token a tag, some tags of which one is right, or None."""


class Tagger(Estimator, ABC):
    """Base of the taggers, with the conventions of scikit-learn.

    A subclass scores the tags of every word and the steps between tags (`log_potentials`); all else
    follows from the chain. It may add parameters (see `goldspan.params`).

    Attributes:
        codec_: The tags, after `fit`.
        documents_: Whether the training items were grouped by document.
        tokens_: The rule for tokens that the training words agree with ("fine", "words" or
            "space", see `goldspan.spans.tokenize`); raw text is tokenized by it.
        n_repaired_: Malformed training tags that were made well-formed.
    """

    codec_: Codec = result()
    documents_: bool = field(default=False, init=False)
    tokens_: str = field(default="fine", init=False)
    n_repaired_: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Leave the checks to `fit`, as scikit-learn does."""

    @property
    @abstractmethod
    def is_fitted(self) -> bool:
        """Whether it has learned something."""

    @abstractmethod
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        weight: Sequence[float] | None = None,
        start: Any = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on items and their tags."""

    @abstractmethod
    def log_potentials(self, X: Any) -> Potentials:
        """Return the log scores of a text, -inf where something is forbidden, to build on.

        Raises:
            NotFittedError: `fit` was not called.
        """

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the trained tagger; it appears as a whole or not at all.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: It cannot be written.
        """

    def predict(self, X: Any, *, forced: Forced | None = None) -> list[list[str]]:
        """Tag items.

        Args:
            X: Lists of words (or of feature dictionaries, as at training), or a `Text`.
            forced: What is known: per item and token a tag, some tags of which one is right, or
                None.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: No possible sequence agrees with the forced tags.
        """
        potentials = constrain(self.log_potentials(X), self.codec_, forced)
        return self.codec_.decode_complete(best_path(potentials, self.codec_))

    def predict_marginals(
        self, X: Any, *, forced: Forced | None = None
    ) -> list[list[dict[str, float]]]:
        """Return the probability of every tag, one dictionary per token; arguments as `predict`."""
        found = self.tag(X, forced=forced, least=np.inf)
        rows = [dict(zip(self.codec_.tags, p, strict=True)) for p in found.probs.tolist()]
        return [rows[a:b] for a, b in pairwise(found.offsets.tolist())]

    def predict_n_best(
        self, X: Any, n: int = 5, *, forced: Forced | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """Return the n best tag sequences of every item with their probabilities."""
        potentials = self.log_potentials(X)
        return n_best(constrain(potentials, self.codec_, forced), self.codec_, n)

    def tag(self, X: Any, *, forced: Forced | None = None, least: float = 0.01) -> Tagging:
        """Return codes, marginals, entropies and span posteriors; see `Tagging`.

        Args:
            X: As for `predict`.
            forced: As for `predict`.
            least: Spans with less posterior are not listed; `inf` lists none.
        """
        potentials = self.log_potentials(X)
        return decode(constrain(potentials, self.codec_, forced), self.codec_, least=least)

    def score(self, X: Any, y: Any) -> float:
        """Return the span F1 (PLAIN: the accuracy) against true tags.

        Types that were not seen at training are never found.

        Raises:
            InputError: X and y do not fit.
        """
        return score_tags(y, best_path(self.log_potentials(X), self.codec_), self.codec_)

    def encode(self, y: Any) -> Tagged:
        """Turn lists of tags into codes; tags unseen at training raise."""
        return y if isinstance(y, Tagged) else self.codec_.encode(y)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise NotFittedError(f"{type(self).__name__}: call fit first")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what this is; only it asks."""
        from sklearn.utils import (  # type: ignore[import-untyped]
            InputTags,
            Tags,
            TargetTags,
        )

        target = TargetTags(required=True)
        return Tags(
            estimator_type=None, target_tags=target, input_tags=InputTags(two_d_array=False)
        )


class FeatureTagger(Tagger):
    """Base of the taggers whose scores are weights of features: a chain model.

    A subclass has a `name` and `fit_targets`.

    Args:
        templates: A named set ("default", "hmm", …), a TOML file, or a list of templates; unused
            for dictionaries of features.
        encoding: Of the tags: BIO, IOBES, … or PLAIN.
        hard: Whether what the encoding forbids is impossible, in training and in tagging.
        min_count: Features that occur less often are left out.

    Attributes:
        features_: How texts become features, after `fit`.
        weights_: The weights, after `fit`.
        n_repaired_: Malformed training tags that were made well-formed (with `hard`).
    """

    templates: str | Sequence[str] = "default"
    encoding: str = "BIO"
    hard: bool = True
    min_count: Annotated[int, Whole(1)] = 1
    features_: FeatureMap | DictFeatures = result()
    weights_: Weights = result()

    @property
    def is_fitted(self) -> bool:
        """Whether it has learned something."""
        return "weights_" in vars(self)

    def _vectors(self) -> str | None:
        """Return the frozen encoder whose vectors are features, too."""
        return None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        weight: Sequence[float] | None = None,
        start: FeatureTagger | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train.

        Args:
            X: Lists of words, a `Text`, or lists of dictionaries of features.
            y: Lists of tags; None where a tag is not known, or several tags of which one is right
                (a set, list or tuple): the item then counts with the summed probability of all
                sequences that agree. Items of which nothing is known are left out.
            weight: How much every item counts, [n_items], from 0 to 1e12 and not all 0.
            start: A trained CRF to begin with; weights of features that it knows are taken over.
                An HMM needs none.
            validation: Items and tags on which a CRF stops early.
            runner: Where to work.
            progress: Called with step, most steps, objective, seconds left; of an HMM only where
                tags are known in part.

        Raises:
            InputError: There is nothing to learn from, X and y do not fit, a template or a
                parameter is faulty, a feature is NaN, or negative for an HMM, or the objective is
                not finite.
            KeyboardInterrupt: Ctrl-C. After the first step the tagger has the weights found by
                then and can be used; `stop_reason_` is "interrupted".
        """
        features, targets = self._prepare(X, y, weight)
        return self.fit_targets(
            features, targets, start=start, validation=validation, runner=runner, progress=progress
        )

    @abstractmethod
    def fit_targets(
        self,
        features: Features,
        targets: Targets,
        *,
        start: Any = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on soft targets; `codec_` and `features_` must be set. For other methods."""

    def log_potentials(self, X: Any) -> Potentials:
        """Return the log scores of a text; see `Tagger.log_potentials`."""
        features = self._features(X)
        return potentials_of(features, self.weights_, Masks.of(self.codec_, hard=self.hard))

    def save(self, path: str | Path) -> None:
        """Write the trained tagger to one file; see `Tagger.save`."""
        if not self.is_fitted:
            raise NotFittedError(f"{type(self).__name__}: call fit before save")
        known = (self.codec_, self.features_, self.weights_, self.documents_, self.tokens_)
        write_model(path, Model(self.name, self.get_params(), *known))

    def _features(self, X: Any) -> Features:
        self._check_fitted()
        return transform(self.features_, X)

    def _prepare(self, X: Any, y: Any, weight: Any) -> tuple[Features, Targets]:
        """Set `codec_` and `features_`, and sum up the targets of tags."""
        self._check()
        vars(self).pop("weights_", None)  # they do not fit what is set here
        labels = Labels.of(y, self.encoding, weight)
        if labels.partial:
            X, labels = labels.leave_out_unknown(X)
        features = self._fit_features(X)
        labels.check_lengths(features)
        labels.check_weight()
        self.codec_ = labels.codec
        n_features = self.features_.n_features
        targets, self.n_repaired_ = labels.targets(features, n_features, repair=self.hard)
        return features, targets

    def _fit_features(self, X: Any) -> Features:
        if is_dicts(X):
            if self._vectors():
                raise InputError("vectors: an encoder reads words, not dictionaries of features")
            self.features_ = DictFeatures.fit(X, self.min_count)
            self.documents_, self.tokens_ = False, "fine"
            return self.features_.transform(X)
        text = as_text(X)
        self.documents_ = text.group is not None
        self.tokens_ = token_rule(text)
        self.features_, features = FeatureMap.fit(
            text,
            read_templates(self.templates),
            min_count=self.min_count,
            vectors=self._vectors(),
        )
        return features


def token_rule(text: Text) -> str:
    """Return the rule for tokens that a text's words agree with."""
    # Words that were cut by a rule are whole by it
    counted = [(one["values"], one["counts"]) for one in text.words.value_counts().to_pylist()]
    total = sum(count for _, count in counted)
    attached = sum(count for word, count in counted if word[-1:] == "," and word[-2:-1].isalnum())
    if attached > _ATTACHED * total:
        return "space"
    fine, words = (
        sum(count for word, count in counted if len(tokenize(word, rule)) == 1)
        for rule in ("fine", "words")
    )
    return "fine" if fine >= min(words, _AGREE * total) else "words"


def transform(features: FeatureMap | DictFeatures, X: Any) -> Features:
    """Find the features of words or dictionaries."""
    if isinstance(X, Features):
        return X
    if isinstance(features, FeatureMap):
        if is_dicts(X):
            raise InputError("this tagger was trained on words, not on dictionaries of features")
        return features.transform(as_text(X))
    if isinstance(X, Text) or (not is_dicts(X) and any(len(item) for item in X)):
        raise InputError("this tagger was trained on dictionaries of features")
    return features.transform(X)


def potentials_of(features: Features, weights: Weights, masks: Masks) -> Potentials:
    """Return W . phi per token and tag, and the weights of steps, -inf where forbidden."""
    unary = features.scores(weights.state)
    with np.errstate(divide="ignore"):
        return Potentials(
            unary,
            weights.start + np.log(masks.start),
            weights.step + np.log(masks.step),
            weights.end + np.log(masks.end),
            features.offsets - features.offsets[0],
        )


def score_tags(y: Any, found: Tagged, codec: Codec) -> float:
    """Return the span F1 (PLAIN: the accuracy) of codes against true tags."""
    truth = y
    if not isinstance(y, Tagged):
        items: list[Any] = read_known(y)
        for n, item in enumerate(items):
            if is_partial([item]):
                raise InputError(f"item {n}: to be scored, all of its true tags must be known")
        every = Codec.from_tags({*codec.tags, *named_tags(items)}, codec.encoding)
        truth = every.encode(items)
        table = np.array([*(every.index[tag] for tag in codec.tags), -1], np.int16)
        found, codec = Tagged(table[found.codes], found.offsets), every
    if not np.array_equal(truth.offsets, found.offsets):
        raise InputError("X and y have different numbers of items or of tokens in an item")
    if codec.rules.is_plain:
        return float((truth.codes == found.codes).mean()) if len(found.codes) else 0.0
    return score_codes(truth, found, codec).f1


def as_text(X: Any) -> Text:
    """Take a `Text` as it is and make one of lists of words."""
    if isinstance(X, Text):
        return X
    items = [X] if isinstance(X, str) else list(X)
    if any(isinstance(item, str) for item in items):
        raise InputError("expected a list of items, each a list of words; got a string for an item")
    return Text.of(items)


# --------------------------------------------------------------------------------------------------
# Warm starts: the weights of one model in the places of another.


AnyFeatures = FeatureMap | DictFeatures


def carry(
    weights: Weights,
    features: AnyFeatures,
    codec: Codec,
    new_features: AnyFeatures,
    new_codec: Codec,
) -> Weights:
    """Take over the weights of all features and tags that both models have; the rest is 0."""
    n_labels = len(new_codec.tags)
    new = Weights.zeros(new_features.n_features, n_labels)
    mine = np.array([codec.index.get(tag, -1) for tag in new_codec.tags])
    theirs = np.flatnonzero(mine >= 0)
    mine = mine[theirs]
    new.start[theirs] = weights.start[mine]
    new.end[theirs] = weights.end[mine]
    new.step[np.ix_(theirs, theirs)] = weights.step[np.ix_(mine, mine)]
    place = _places(features, new_features)
    known = np.flatnonzero(place >= 0)
    new.state[np.ix_(known, theirs)] = weights.state[np.ix_(place[known], mine)]
    return new


def _places(old: AnyFeatures, new: AnyFeatures) -> NDArray[np.int64]:
    """Return the old number of every new feature, int64 [n_features]; -1 for none."""
    if old is new:
        return np.arange(new.n_features)
    if type(old) is not type(new):
        raise InputError("a warm start needs a model with the same kind of features")
    if isinstance(old, DictFeatures) and isinstance(new, DictFeatures):
        every = np.full(new.n_features, -1)
        for name, number in new.number.items():
            every[number] = old.number.get(name, -1)
        return every
    assert isinstance(old, FeatureMap)
    assert isinstance(new, FeatureMap)
    sparse = [_in_template(old, new, template) for template in new.templates]
    dense = np.full(new.n_features - new.n_sparse, -1)
    if new.vectors and new.vectors.is_like(old.vectors):
        dense = old.n_sparse + np.arange(len(dense))
    return np.concatenate([*sparse, dense])


def _in_template(old: FeatureMap, new: FeatureMap, template: Template) -> NDArray[np.int64]:
    keys = new.keys[new.templates.index(template)]
    if template not in old.templates:
        return np.full(len(keys), -1)
    at = old.templates.index(template)
    code, factor = np.zeros(len(keys), np.int64), 1
    known = np.ones(len(keys), np.bool_)
    rest = keys.copy()
    for part in reversed(template.parts):
        rest, value = np.divmod(rest, len(new.values[part.name]) + FIRST)
        found = pc.index_in(new.values[part.name], value_set=old.values[part.name])
        number = pc.fill_null(found, -1 - FIRST).to_numpy() + FIRST
        table = np.concatenate([np.arange(FIRST), number])
        known &= table[value] >= 0
        code += factor * table[value]
        factor *= len(old.values[part.name]) + FIRST
    old_keys = old.keys[at]
    if not len(old_keys):
        return np.full(len(keys), -1)
    place = np.minimum(np.searchsorted(old_keys, code), len(old_keys) - 1)
    base = sum(map(len, old.keys[:at]))
    return np.where(known & (old_keys[place] == code), base + place, -1)
