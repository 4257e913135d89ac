"""The model that a campaign trains: taggers, and classifiers of scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.campaign.protocols import Model, Trained
from goldspan.errors import GoldspanError, InputError, MissingExtraError, UnknownNameError
from goldspan.plugins import plugins
from goldspan.protocols import Runner
from goldspan.selection import Pool
from goldspan.selection.uncertainty import class_probs, row_blocks
from goldspan.tagger import CRF, HMM, Encoder, Text
from goldspan.tagger.base import Tagger

# --------------------------------------------------------------------------------------------------
# Classifiers of scikit-learn, or made like them, by name, with what turns items into numbers.


CLASSIFIERS: dict[str, str] = {
    "logistic": "sklearn.linear_model.LogisticRegression",
    "naive-bayes": "sklearn.naive_bayes.MultinomialNB",
    "gaussian-nb": "sklearn.naive_bayes.GaussianNB",
    "svm": "sklearn.svm.LinearSVC",
    "forest": "sklearn.ensemble.RandomForestClassifier",
    "tree": "sklearn.tree.DecisionTreeClassifier",
    "neighbours": "sklearn.neighbors.KNeighborsClassifier",
}
GROUP = "goldspan.models"
"""Entry points of other packages: `name = module:Class`."""
_SKLEARN = re.compile(r"sklearn(\.(?!tests?\b|conftest\b)[a-z][a-z0-9_]*)+\.[A-Z][A-Za-z0-9]*")
"""Public classes of scikit-learn."""


def make_classifier(name: str, params: Mapping[str, Any], seed: int) -> Any:
    """Make a classifier by its short name, or by its whole one."""
    kind = _class(name)
    if not all(hasattr(kind, one) for one in ("fit", "predict", "get_params", "set_params")):
        raise InputError(_no_classifier(name))
    try:
        made = kind()
    except TypeError:
        raise InputError(f"{name} cannot be made without arguments, which a plan has not") from None
    from sklearn.base import is_classifier  # type: ignore[import-untyped]

    if not is_classifier(made):
        raise InputError(_no_classifier(name))
    known = made.get_params()
    for param in params:
        if param not in known:
            raise UnknownNameError(f"parameter of {name}", param, known)
    seeded = {"random_state": seed} if "random_state" in known else {}
    return made.set_params(**{**seeded, **params})


def make_pipeline(pool: Pool, classifier: Any) -> Any:
    """Put before a classifier what turns the pool's items into numbers."""
    # Texts become counts of words, in a dense matrix where the classifier takes no sparse one
    from sklearn import pipeline  # type: ignore[import-untyped]
    from sklearn.feature_extraction import DictVectorizer  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]
    from sklearn.preprocessing import FunctionTransformer  # type: ignore[import-untyped]

    if pool.text is None:
        steps = [FunctionTransformer(_cells), DictVectorizer(sparse=False)]
    elif _takes_sparse(classifier):
        steps = [CountVectorizer()]
    else:
        steps = [CountVectorizer(), FunctionTransformer(_dense, accept_sparse=True)]
    return pipeline.make_pipeline(*steps, classifier)


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Turn whatever a classifier raises into a fault that says what it was doing."""
    try:
        yield
    except GoldspanError:
        raise
    except Exception as error:  # a classifier of any make raises what it likes
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{doing}: {first}") from error


def _class(name: str) -> type[Any]:
    """Return the class of a name."""
    # A plan is data: it names classes, and runs nothing by itself
    place = CLASSIFIERS.get(name, name)
    if _SKLEARN.fullmatch(place):
        module, _, kind = place.rpartition(".")
    else:
        module, _, kind = plugins(GROUP).get(name, "").partition(":")
        if not kind:
            raise _unknown(name)
    try:
        import_module("sklearn")
    except ImportError:
        raise MissingExtraError("scikit-learn", "campaign", "a classifier") from None
    try:
        found = getattr(import_module(module), kind)
    except (ImportError, AttributeError):
        raise _unknown(name) from None
    if not isinstance(found, type):
        raise _unknown(name)
    if _SKLEARN.fullmatch(place) and not found.__module__.startswith("sklearn."):
        raise _unknown(name)  # what scikit-learn itself imported from elsewhere
    return found


def _unknown(name: str) -> UnknownNameError:
    return UnknownNameError(
        "model",
        name,
        ["auto", *CLASSIFIERS, "none", *plugins(GROUP)],
        "or the whole name of a classifier of scikit-learn, for example sklearn.svm.SVC; other "
        f"packages register classes under the entry-point group {GROUP}",
    )


def _no_classifier(name: str) -> str:
    return (
        f"{name} is not a classifier: choose one of {', '.join(CLASSIFIERS)}, or give the whole "
        "name of a classifier of scikit-learn, for example sklearn.svm.SVC"
    )


def _takes_sparse(classifier: Any) -> bool:
    try:
        from sklearn.utils import get_tags  # type: ignore[import-untyped]
    except ImportError:  # before scikit-learn 1.6: a dense matrix always does
        return False
    return bool(get_tags(classifier).input_tags.sparse)


def _dense(counts: Any) -> Any:
    return counts.toarray()


def _cells(rows: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries without missing cells and ids."""
    import narwhals as nw

    from goldspan.selection.pool import IDS

    table = nw.from_native(rows, eager_only=True).rows(named=True)
    return [{k: v for k, v in row.items() if v is not None and k not in IDS} for row in table]


# --------------------------------------------------------------------------------------------------
# The model step: a tagger for spans, any classifier of scikit-learn for single labels.


TAGGERS: dict[str, Callable[..., Tagger]] = {"crf": CRF, "hmm": HMM, "encoder": Encoder}
AUTO = {
    "spans": ("crf", "hmm"),
    "text": ("logistic", "naive-bayes"),
    "table": ("logistic", "forest"),
}
LEAST = 4
"""Items below which nothing is learned."""
FOLDS = 4


@dataclass(frozen=True)
class SpanTagger:
    """Trains a CRF or an HMM, or fine-tunes an encoder."""

    pool: Pool
    name: str
    params: Mapping[str, Any]
    runner: Runner | None = None

    def train(self, items: NDArray[np.int64], labels: Sequence[Sequence[str]]) -> Trained | None:
        """Train it; None where there is too little to learn from."""
        if len(items) < LEAST or self.pool.text is None:
            return None
        tagger = TAGGERS[self.name](**self.params)
        known = [list(tags) for tags in labels]
        tagger.fit(self.pool.text.select(items), known, runner=self.runner)
        return TrainedTagger(self.name, tagger)


@dataclass(frozen=True)
class TrainedTagger:
    """A tagger that learned."""

    name: str
    model: Any

    def predict(self, pool: Pool, items: NDArray[np.int64]) -> list[list[str]]:
        """Tag items of a pool."""
        text = pool.text
        assert isinstance(text, Text)
        found: list[list[str]] = self.model.predict(text.select(items)) if len(items) else []
        return found


@dataclass(frozen=True)
class Classifier:
    """Trains a classifier on texts or on a table of attributes."""

    pool: Pool
    name: str
    params: Mapping[str, Any]
    seed: int

    def train(self, items: NDArray[np.int64], labels: Sequence[Sequence[str]]) -> Trained | None:
        """Train it; None where there is too little to learn from."""
        words = [label[0] for label in labels]
        if len(items) < LEAST or len(set(words)) < 2:
            return None
        made = make_pipeline(self.pool, make_classifier(self.name, self.params, self.seed))
        with told(f"{self.name} cannot learn from the items"):
            trained = TrainedClassifier(self.name, made.fit(self.pool.rows(items), words))
            few = items[:LEAST]  # some fit what they cannot use
            made.predict(self.pool.rows(few))
            if hasattr(made, "predict_proba"):
                class_probs(made, self.pool, few)
        return trained


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier that learned."""

    name: str
    model: Any

    def predict(self, pool: Pool, items: NDArray[np.int64]) -> list[list[str]]:
        """Label items of a pool."""
        if not len(items):
            return []
        with told(f"{self.name} cannot label the items"):
            found = [self.model.predict(pool.rows(block)) for block in row_blocks(items)]
        return [[str(label)] for labels in found for label in labels]


@dataclass(frozen=True)
class Best:
    """Trains several models and keeps the best in cross-validation."""

    pool: Pool
    models: tuple[Model, ...]
    measure: Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], float]

    def choose(self, items: NDArray[np.int64], labels: Sequence[Sequence[str]]) -> Model:
        """Return the best; where nothing can be learned, the first."""
        scores = [self._score(model, items, labels) for model in self.models]
        return self.models[int(np.argmax(scores))]

    def train(self, items: NDArray[np.int64], labels: Sequence[Sequence[str]]) -> Trained | None:
        """Train the best."""
        return self.choose(items, labels).train(items, labels)

    def _score(
        self, model: Model, items: NDArray[np.int64], labels: Sequence[Sequence[str]]
    ) -> float:
        found = cross_predict(model, self.pool, items, labels, FOLDS)
        known = [n for n, one in enumerate(found) if one is not None]
        if not known:
            return 0.0
        return self.measure([labels[n] for n in known], [found[n] or [] for n in known])


@dataclass(frozen=True)
class NoModel:
    """Trains nothing."""

    def train(self, items: NDArray[np.int64], labels: Sequence[Sequence[str]]) -> Trained | None:
        """Return nothing."""
        del items, labels
        return None


def cross_predict(
    model: Model,
    pool: Pool,
    items: NDArray[np.int64],
    labels: Sequence[Sequence[str]],
    folds: int,
) -> list[list[str] | None]:
    """Let a model label items that it did not learn from; None where it could not."""
    # Items, or the documents that they are part of, are dealt in turn
    found: list[list[str] | None] = [None] * len(items)
    cluster = _clusters(pool, items)
    for fold in range(min(folds, len(items))):
        out = cluster % folds == fold
        if not out.any():
            continue
        guesses = _guesses(model, pool, items, labels, out)
        for n, one in zip(np.flatnonzero(out), guesses, strict=True):
            found[n] = one
    return found


def _guesses(
    model: Model, pool: Pool, items: NDArray[np.int64], labels: Sequence[Sequence[str]],
    out: NDArray[np.bool_],
) -> Sequence[list[str] | None]:  # fmt: skip
    """Learn from the items that are not left out, and label the others; None for what cannot be."""
    try:
        trained = model.train(items[~out], [labels[n] for n in np.flatnonzero(~out).tolist()])
        if trained is not None:
            return trained.predict(pool, items[out])
    except InputError:  # told where all items are learned from; a fold has fewer
        pass
    return [None] * int(out.sum())


def _clusters(pool: Pool, items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the documents of items in the order in which they come, int64 [n_items]."""
    # Where there are fewer than two, the items themselves
    group = None if pool.text is None else pool.text.group
    if group is None or len(np.unique(group[items])) < 2:
        return np.arange(len(items))
    _, first, inverse = np.unique(group[items], return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])


def check_model(name: str, params: Mapping[str, Any], *, single: bool) -> None:
    """Reject a model that there is not, or parameters that it has not."""
    if name in {"auto", "none"}:
        if params:
            raise InputError(f"{name} takes no params")
        return
    if single:
        make_classifier(name, params, 0)
    elif name in TAGGERS:
        TAGGERS[name]().set_params(**params)
        if name == "encoder" and not params.get("model"):
            raise InputError('encoder needs params = { model = "NAME_OR_FOLDER" }')
    else:
        raise UnknownNameError("model", name, ["auto", *TAGGERS, "none"])


def make_model(
    name: str,
    params: Mapping[str, Any],
    pool: Pool,
    seed: int,
    measure: Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], float],
    *,
    single: bool,
    runner: Runner | None = None,
) -> Model:
    """Make the model step of a plan."""
    if name == "none":
        return NoModel()
    kind = "spans" if not single else "text" if pool.text is not None else "table"
    names = AUTO[kind] if name == "auto" else (name,)
    models: list[Model] = [
        Classifier(pool, one, params, seed) if single else SpanTagger(pool, one, params, runner)
        for one in names
    ]
    return models[0] if len(models) == 1 else Best(pool, tuple(models), measure)
