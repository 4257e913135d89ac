"""The model that a campaign trains, and a plan's parts tried before any money is spent."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import get_aggregator
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Labels, Model, Trained
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions
from goldspan.errors import GoldspanError, InputError, MissingExtraError, UnknownNameError
from goldspan.plugins import plugins
from goldspan.protocols import Runner
from goldspan.selection import Pool, Selector
from goldspan.selection.base import order_of
from goldspan.selection.registry import SELECTORS
from goldspan.selection.schedule import Schedule, read_selector
from goldspan.selection.uncertainty import class_probs, row_blocks
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.spans import Span, write
from goldspan.tagger import CRF, HMM, Encoder, Text
from goldspan.tagger.base import Tagger
from goldspan.workers.stopping import get_rule

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
def as_input_error(doing: str) -> Iterator[None]:
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

    from goldspan.crowd.formats.texts import IDS

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

    def train(self, items: NDArray[np.int64], labels: Labels) -> Trained | None:
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

    def train(self, items: NDArray[np.int64], labels: Labels) -> Trained | None:
        """Train it; None where there is too little to learn from."""
        words = [label[0] for label in labels]
        if len(items) < LEAST or len(set(words)) < 2:
            return None
        made = make_pipeline(self.pool, make_classifier(self.name, self.params, self.seed))
        with as_input_error(f"{self.name} cannot learn from the items"):
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
        with as_input_error(f"{self.name} cannot label the items"):
            found = [self.model.predict(pool.rows(block)) for block in row_blocks(items)]
        return [[str(label)] for labels in found for label in labels]


@dataclass(frozen=True)
class Best:
    """Trains several models and keeps the best in cross-validation."""

    pool: Pool
    models: tuple[Model, ...]
    measure: Callable[[Labels, Labels], float]

    def choose(self, items: NDArray[np.int64], labels: Labels) -> Model:
        """Return the best; where nothing can be learned, the first."""
        scores = [self._score(model, items, labels) for model in self.models]
        return self.models[int(np.argmax(scores))]

    def train(self, items: NDArray[np.int64], labels: Labels) -> Trained | None:
        """Train the best."""
        return self.choose(items, labels).train(items, labels)

    def _score(self, model: Model, items: NDArray[np.int64], labels: Labels) -> float:
        found = cross_predict(model, self.pool, items, labels, FOLDS)
        known = [n for n, one in enumerate(found) if one is not None]
        if not known:
            return 0.0
        return self.measure([labels[n] for n in known], [found[n] or [] for n in known])


@dataclass(frozen=True)
class NoModel:
    """Trains nothing."""

    def train(self, items: NDArray[np.int64], labels: Labels) -> Trained | None:
        """Return nothing."""
        del items, labels
        return None


def cross_predict(
    model: Model,
    pool: Pool,
    items: NDArray[np.int64],
    labels: Labels,
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
    model: Model, pool: Pool, items: NDArray[np.int64], labels: Labels,
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
    measure: Callable[[Labels, Labels], float],
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


# --------------------------------------------------------------------------------------------------
# A plan's parts tried on what is made up, before any money is spent.
#
# What does not suit – shares of votes and a rule on probabilities, a mean of labels that are no
# numbers, a model that cannot read the pool – would else be found out when the first answers are
# paid. The method and the stopping rule are tried on a made-up crowd, the model and the rules that
# ask it on items of the pool with made-up labels.
#
# What is known to suit is not tried: its kernels would be compiled for nothing, which takes a
# minute on a new machine. A test tries all of it.

ANY_TASK = {
    "auto", "ds", "one-coin", "ibcc", "mace", "bsc-acc", "bsc-mace", "bsc-cv", "bsc-cm", "bsc-seq",
}  # fmt: skip
"""Methods that, with the parameters that they have by default, give probabilities for any task."""
ANY_METHOD = {"confident", "fixed", "clear_majority"}
"""Stopping rules that understand these."""
N_ITEMS = 12
COMMITTEES = {"vote", "committee-kl"}
"""Rules that ask several models."""
N_ROWS = 200
"""Items of the pool that a classifier is tried on."""


def try_method(
    labels: Sequence[str], types: Sequence[str], encoding: str, method: str,
    params: Mapping[str, Any], rule: str,
) -> None:  # fmt: skip
    """Aggregate a made-up crowd and ask the rule about it."""
    if method in ANY_TASK and not params and rule.partition("(")[0].strip() in ANY_METHOD:
        get_rule(rule)
        return
    truth = draw_truth(N_ITEMS, list(labels)) if labels else _sentences(types, encoding)
    crowd = simulate_crowd(truth, ["flip(0.1) x3"]).with_gold(None)
    result = get_aggregator(method, **params).fit(crowd).result_
    get_rule(rule).finished(result.crowd, result)


def model_faults(plan: Plan, pool: Pool, test: tuple[Pool, Labels] | None) -> Iterator[str]:
    """Train a plan's model on items of its pool with made-up labels, and ask it as it will be."""
    if plan.learner == "none" or _is_known_to_suit(plan):
        return
    # Items of the pool, int64; among those of a table the one with its smallest number
    ranks = order_of(pool.keys, plan.seed, "trial")
    found = ranks[: N_ROWS if plan.is_single else N_ITEMS].tolist()
    numbers = [c for c in (pool.columns or {}).values() if isinstance(c, np.ndarray)]
    known = [column for column in numbers if np.isfinite(column).any()]
    if known:
        found.append(int(np.nanargmin(min(known, key=np.nanmin))))
    items = np.unique(np.array(found, np.int64))
    labels = _made_up(plan, pool, items)
    with warnings.catch_warnings():  # they would be about made-up labels
        warnings.simplefilter("ignore")
        for model in _models(plan, pool):
            yield from _faults(plan, pool, test, model, items, labels)


def _is_known_to_suit(plan: Plan) -> bool:
    """Whether the model is a tagger as it is by default, which any rule of goldspan can ask."""
    # Rules of a committee need several models, and rules of other packages are not known
    chosen, names = plan.model, {rule.name for rule in rules_of(plan.select.by)}
    if plan.is_single or chosen.params or not names <= {*SELECTORS} - COMMITTEES:
        return False
    return chosen.name in {"auto", "none", *TAGGERS}


def rules_of(by: str) -> list[Selector]:
    """Return the rules that a text names, those of the stages and shares of a schedule.

    >>> [rule.name for rule in rules_of("coverage, then mnlp, 10% random")]
    ['coverage', 'mnlp', 'random']
    """
    rule = read_selector(by)
    if not isinstance(rule, Schedule):
        return [rule]
    stages, shares = rule.plan()
    return [one for one, _ in stages] + [one for _, one in shares]


def _models(plan: Plan, pool: Pool) -> tuple[Model, ...]:
    chosen, single = plan.model, plan.is_single
    made = make_model(plan.learner, chosen.params, pool, plan.seed, lambda *_: 0.0, single=single)
    return made.models if isinstance(made, Best) else (made,)


def _faults(
    plan: Plan, pool: Pool, test: tuple[Pool, Labels] | None, model: Model,
    items: NDArray[np.int64], labels: Labels,
) -> Iterator[str]:  # fmt: skip
    try:
        trained = model.train(items, labels)
        if trained is None:
            return
        trained.predict(pool, items)
    except InputError as error:
        yield f"model: {error}"
        return
    yield from _unanswered(plan, trained, pool.part(items))
    if test is not None:
        try:
            trained.predict(test[0], np.arange(test[0].n_items))
        except InputError as error:
            yield f"evaluate.file: {error}"


def _unanswered(plan: Plan, trained: Trained, pool: Pool) -> Iterator[str]:
    """Ask the model what the rules of selection ask it."""
    for rule in rules_of(plan.select.by):
        if rule.needs_model:
            try:
                rule.select(pool, model=trained.model, errors={}, n=1)
            except InputError as error:
                yield f"select.by: {rule.name} cannot ask the model {trained.name}: {error}"


def _made_up(plan: Plan, pool: Pool, items: NDArray[np.int64]) -> Labels:
    task = plan.task.learned or plan.task
    if task.labels:
        return [[task.labels[n % len(task.labels)]] for n in range(len(items))]
    lengths = pool.n_tokens[items].tolist()
    spans = [[Span(task.types[n % len(task.types)], 0, 1)] for n in range(len(items))]
    pairs = zip(spans, lengths, strict=True)
    return [write(some, length, encoding=plan.task.encoding) for some, length in pairs]


def _sentences(types: Sequence[str], encoding: str) -> Crowd:
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    for n in range(N_ITEMS):
        spans = [Span(types[n % len(types)], 1, 3)]
        tags = write(spans, 4, encoding=encoding)
        builder.add_item(f"s{n}", ["In", "the", "north", "."], gold=tags)
    return builder.build()
