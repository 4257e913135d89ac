"""The toolkit's classifiers, each with what it needs before it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.campaign.model import CLASSIFIERS, check_model
from studies.ntoulas.split import Labels

Floats = NDArray[np.float64]
SCALED = frozenset({"logistic", "svm", "neighbours"})
"""Those that columns of different sizes mislead; counts of words are left as they are."""
DENSE = frozenset({"gaussian-nb"})
"""Those that take no sparse matrix."""


def learn_and_label(name: str, rows: Any, labels: Labels, others: Any, seed: int) -> Labels:
    """Train a classifier of the campaign's toolkit and label other items.

    Args:
        name: In `goldspan.campaign.model.CLASSIFIERS`, with scikit-learn's defaults.
        rows: Matrix [n_items, n_features], dense or SciPy CSR.
        labels: bool [n_items]; where all are alike, so is what is given back.
        others: Matrix [n_others, n_features] of the same make.
        seed: Of classifiers that draw.

    Returns:
        bool [n_others].

    Raises:
        UnknownNameError: There is no such classifier.
        MissingExtraError: scikit-learn is not installed.
    """
    if labels.all() or not labels.any():
        return np.full(others.shape[0], bool(labels[0]))
    made = learned(name, rows, labels, seed)
    return np.asarray(made.predict(_as_read(name, others)), np.bool_)


def learn_and_weigh(name: str, rows: Any, labels: Labels, others: Any, seed: int) -> Floats:
    """Train a classifier and ask for probabilities: the arguments are those of `learn_and_label`.

    Returns:
        float64 [n_others, 2]: of False and of True.
    """
    if labels.all() or not labels.any():
        return np.tile(np.array([not labels[0], labels[0]], np.float64), (others.shape[0], 1))
    made = learned(name, rows, labels, seed)
    return np.asarray(made.predict_proba(_as_read(name, others)), np.float64)


def learned(name: str, rows: Any, labels: Labels, seed: int) -> Any:
    """Train a classifier on labels of both sorts; the arguments are those of `learn_and_label`."""
    is_scaled = isinstance(rows, np.ndarray) and name in SCALED
    return _made(name, seed, is_scaled=is_scaled).fit(_as_read(name, rows), labels)


def _as_read(name: str, rows: Any) -> Any:
    return rows if isinstance(rows, np.ndarray) or name not in DENSE else rows.toarray()


def _made(name: str, seed: int, *, is_scaled: bool) -> Any:
    check_model(name, {}, single=True)
    module, _, kind = CLASSIFIERS[name].rpartition(".")
    made = getattr(import_module(module), kind)()
    if "random_state" in made.get_params():
        made.set_params(random_state=seed)
    if not is_scaled:
        return made
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    return make_pipeline(StandardScaler(), made)
