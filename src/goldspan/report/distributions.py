"""What the agreement picture shows: three distributions, and their quartiles in words.

Paper 000, figure 2: (a) answers per worker, (b) answers per document, (c) F1 of the workers. What
one answer is follows the crowd: a document where workers answered whole documents, as there, and
an item where they were asked for single ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Agreement, Crowd
from goldspan.crowd.measures import Quartiles

WHOLE = 0.8
"""Workers answer whole documents if they answered this share of the items of theirs."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """One box plot.

    Attributes:
        what: What is counted or measured, the first line of its title.
        per: Of what, the second line.
        values: float64 [n], finite.
        is_rate: Whether the values are shares between 0 and 1.
    """

    what: str
    per: str
    values: NDArray[np.float64]
    is_rate: bool = False

    @property
    def title(self) -> str:
        """Both lines as one."""
        return f"{self.what} {self.per}"

    @property
    def quartiles(self) -> Quartiles:
        """Minimum, quartiles, maximum and mean; NaN without values."""
        return Quartiles.of(self.values)

    def show(self, value: float) -> str:
        """Write a value as a reader wants it: shares in per cent, counts plain.

        >>> Distribution("F1", "of workers", np.zeros(0), is_rate=True).show(0.6341)
        '63.4'
        """
        if np.isnan(value):
            return "–"
        if self.is_rate:
            return f"{100 * value:.1f}"
        return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:,.1f}"

    def describe(self) -> str:
        """Give the distribution in a sentence, for readers who do not see the picture."""
        if not len(self.values):
            return f"{self.title}: nothing to show."
        low, first, median, third, high = map(self.show, self.quartiles[:5])
        unit = " per cent" if self.is_rate else ""
        return (
            f"{self.title}: from {low} to {high}{unit}, "
            f"the middle half between {first} and {third}, median {median}."
        )


def distributions(crowd: Crowd, agreement: Agreement) -> tuple[Distribution, ...]:
    """Collect the three distributions of a crowd.

    Args:
        crowd: The crowd.
        agreement: Its agreement.
    """
    whole = _documents(crowd)
    if whole is None:
        answers = crowd.latest
        by_worker = np.bincount(answers.worker, minlength=crowd.n_workers)
        by_item = np.bincount(answers.item, minlength=crowd.n_items)
        titles = ("answers", "per worker"), ("answers", "per item")
    else:
        worker, document, n_documents = whole
        by_worker = np.bincount(worker, minlength=crowd.n_workers)
        by_item = np.bincount(document, minlength=n_documents)
        titles = ("documents", "per worker"), ("workers", "per document")
    return (
        Distribution(*titles[0], by_worker.astype(float)),
        Distribution(*titles[1], by_item.astype(float)),
        _quality(crowd, agreement),
    )


def _documents(
    crowd: Crowd,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """Worker and document of every answered document; None if items were answered singly."""
    if crowd.groups is None or crowd.groups.null_count or not len(crowd.latest):
        return None
    groups = crowd.groups.dictionary_encode()
    index = groups.indices.to_numpy().astype(np.int64)
    size = np.bincount(index, minlength=len(groups.dictionary))
    key = crowd.latest.worker.astype(np.int64) * len(size) + index[crowd.latest.item]
    pairs, n_answered = np.unique(key, return_counts=True)
    worker, document = np.divmod(pairs, len(size))
    if len(size) == crowd.n_items or np.mean(n_answered / size[document]) < WHOLE:
        return None
    return worker, document, len(size)


def _quality(crowd: Crowd, agreement: Agreement) -> Distribution:
    plain = crowd.tagset.rules.is_plain
    others = ("agreement", "with the others") if plain else ("span F1", "against the others")
    names = {
        "span_f1": ("span F1", "against gold"),
        "token_accuracy": ("accuracy", "against gold"),
        "f1_others": others,
    }
    name = next(n for n in names if n in agreement.workers.column_names)
    values = agreement.workers.column(name).drop_null().to_numpy().astype(float)
    return Distribution(*names[name], values[np.isfinite(values)], is_rate=True)
