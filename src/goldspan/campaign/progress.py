"""What a campaign knows at a moment, worked out from the ledger: labels, a model, how good it is.

Everything is a function of the ledger, and kept until what counts changes: an answer comes, or a
worker changes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregate import Consensus
from goldspan.campaign.evaluation import kappa, measured
from goldspan.campaign.protocols import Labelled, Model, Trained
from goldspan.campaign.setting import Setting
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Ledger
from goldspan.select.base import CONTROL as RANDOM

if TYPE_CHECKING:
    from goldspan.campaign.steps import Steps

PROBE = 100
"""Items of the pool whose predictions are compared from round to round."""


class Progress:
    """What is known, by the ledger as it is when asked.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
        steps: How labels and models are made.
    """

    def __init__(self, setting: Setting, ledger: Ledger, steps: Steps) -> None:
        self.setting, self.ledger, self.steps = setting, ledger, steps
        self._moment = Moment(self)
        self._last_answer = -1
        self._still = 0

    @contextmanager
    def still(self) -> Iterator[None]:
        """Stay at one moment, for `with`: people answer while it is looked at.

        What belongs together – answers, and the labels made of them – is of one moment then.
        """
        self._refresh()
        self._still += 1
        try:
            yield
        finally:
            self._still -= 1

    def forget(self) -> None:
        """Work everything out again: known labels changed, for example."""
        self._last_answer = -1

    @property
    def crowd(self) -> Crowd:
        """The answers that count."""
        return self._now.crowd

    @property
    def result(self) -> Consensus | None:
        """What they say; None without answers."""
        return self._now.result

    @property
    def labelled(self) -> Labelled:
        """The labels, control questions aside."""
        return self._now.labelled

    @property
    def model(self) -> Model:
        """The model step, with its choice made."""
        return self._now.model

    @property
    def trained(self) -> Trained | None:
        """The model that learned from them."""
        return self._now.learned[0]

    @property
    def note(self) -> str:
        """Why no model learned from them, though there are enough; else ""."""
        return self._now.learned[1]

    @property
    def picked(self) -> list[str]:
        """The items of all rounds so far."""
        return list(chain(*(one["items"] for one in self.ledger.records("picks").values())))

    @property
    def drawn(self) -> set[str]:
        """Those of them that were drawn at random."""
        pairs = (zip(p["items"], p["rules"], strict=True) for p in self._picks)
        return {item for item, rule in chain(*pairs) if rule == RANDOM}

    def against_truth(self) -> dict[str, float] | None:
        """Compare labels and model with the truth of a simulation; nothing else ever looks at it.

        Returns:
            `labels`: the score of the labels; `model`: of the model on the rest of the pool, None
            where there is no model or no rest. None without truth.
        """
        truth = self.setting.truth
        if truth is None or not len(self.labelled.items):
            return None
        encoding = self.setting.codec.encoding
        every = truth.tagset.decode_complete(truth.gold_tagged)
        items = self.labelled.items.tolist()
        labels = measured([every[n] for n in items], self.labelled.labels, encoding)
        found: dict[str, Any] = {"labels": labels.value, "model": None}
        seen = {*items, *(self.setting.pool.place[name] for name in self.setting.control)}
        rest = np.array([n for n in range(len(every)) if n not in seen], np.int64)
        if self.trained is not None and len(rest):
            predicted = self.trained.predict(self.setting.pool, rest)
            found["model"] = measured([every[n] for n in rest.tolist()], predicted, encoding).value
        return found

    def probe(self) -> list[str]:
        """Predict some items of the pool, always the same; nothing without a model."""
        if self.trained is None:
            return []
        items = self.setting.ranks("probe")[:PROBE]
        return list(chain(*self.trained.predict(self.setting.pool, items)))

    def stability(self, number: int, labels: list[str]) -> float | None:
        """Compare predictions with those of the round before."""
        before = self.ledger.records("probe").get(f"r{number - 1:03d}", {}).get("labels")
        return kappa(before, labels) if before and labels else None

    @property
    def _picks(self) -> list[dict[str, Any]]:
        return list(self.ledger.records("picks").values())

    @property
    def _now(self) -> Moment:
        if not self._still:
            self._refresh()
        return self._moment

    def _refresh(self) -> None:
        if self._still:
            return
        last = self.ledger.last_answer
        if last != self._last_answer:
            self._moment, self._last_answer = Moment(self), last


class Moment:
    """What is known as long as no answer comes or changes.

    Args:
        owner: Whose moment it is.
    """

    def __init__(self, owner: Progress) -> None:
        self.owner, self.setting = owner, owner.setting

    @cached_property
    def crowd(self) -> Crowd:
        """The answers that count."""
        return self.owner.ledger.crowd()

    @cached_property
    def result(self) -> Consensus | None:
        """What they say."""
        return self.owner.steps.aggregate.labels(self.crowd) if self.crowd.n_items else None

    @cached_property
    def labelled(self) -> Labelled:
        """Labels of all answered items but the control questions."""
        found = {} if self.result is None else self.result.tagged_by_id()
        known = {
            name: tags
            for name, tags in found.items()
            if name not in self.setting.control and None not in tags
        }
        order = [n for n in self.setting.ranks("deal").tolist() if self.setting.ids[n] in known]
        names, drawn = [self.setting.ids[n] for n in order], self.owner.drawn
        return Labelled(
            np.array(order, np.int64),
            [known[name] for name in names],
            np.array([name in drawn for name in names], np.bool_),
        )

    @cached_property
    def to_learn(self) -> Labelled:
        """Labels that the model may learn from: a slice that measures it is left out."""
        every = self.labelled
        if self.setting.plan.evaluate.by != "slice":
            return every
        rest = np.flatnonzero(~every.is_random)
        labels = [every.labels[n] for n in rest.tolist()]
        return Labelled(every.items[rest], labels, every.is_random[rest])

    @cached_property
    def model(self) -> Model:
        """The model step, with its choice made."""
        choose = getattr(self.owner.steps.model, "choose", None)
        learn = self.to_learn
        made: Model = choose(learn.items, learn.labels) if choose else self.owner.steps.model
        return made

    @cached_property
    def learned(self) -> tuple[Trained | None, str]:
        """The model that learned, or why it could not: the labels are paid and go on without it."""
        try:
            return self.model.train(self.to_learn.items, self.to_learn.labels), ""
        except InputError as error:
            return None, str(error)
