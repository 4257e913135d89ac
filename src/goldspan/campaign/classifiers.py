"""Classifiers of scikit-learn, or made like them, by name, with what turns items into numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from goldspan.errors import GoldspanError, InputError, MissingExtraError, UnknownNameError
from goldspan.plugins import plugins
from goldspan.select import Pool

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
    """Make a classifier by its short name, or by its whole one.

    Args:
        name: In `CLASSIFIERS`, an entry point of the group `goldspan.models`, or the whole name of
            a classifier of scikit-learn ("sklearn.svm.SVC").
        params: Its parameters.
        seed: Of one that draws.

    Raises:
        UnknownNameError: There is no such class, or no such parameter.
        InputError: It is no classifier.
        MissingExtraError: scikit-learn is not installed.
    """
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
    """Put before a classifier what turns the pool's items into numbers.

    Texts become counts of words, in a dense matrix where the classifier takes no sparse one; the
    cells of a table become columns.
    """
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
    """Turn whatever a classifier raises into a fault that says what it was doing.

    Raises:
        InputError: Something was raised.
    """
    try:
        yield
    except GoldspanError:
        raise
    except Exception as error:  # a classifier of any make raises what it likes
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{doing}: {first}") from error


def _class(name: str) -> type[Any]:
    """Return the class of a name.

    A plan is data: only registered names, entry points of installed packages and estimators of
    scikit-learn are looked up, and nothing is imported before the name was checked.

    Raises:
        UnknownNameError: It is none of these.
        MissingExtraError: scikit-learn is not installed.
    """
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
        f"{name} is no classifier: choose one of {', '.join(CLASSIFIERS)}, or give the whole name "
        "of a classifier of scikit-learn, for example sklearn.svm.SVC"
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
    """Give the rows of a table as dictionaries without missing cells and ids."""
    import narwhals as nw

    from goldspan.select.pool import IDS

    table = nw.from_native(rows, eager_only=True).rows(named=True)
    return [{k: v for k, v in row.items() if v is not None and k not in IDS} for row in table]
