"""Models among the workers: what they say counts, but they teach nobody.

A model's answers are a function of the text. A CRF that learns from labels in which a model has a
say learns the model's mistakes, and then confirms them as if it were another witness; and a model
that answers everything is so regular that the labels of the truth drift towards it. On the NER
crowd one weak model (F1 61) beside all people cost 10 points of F1.

So where people and models answer, workers, text and labels are fitted to the people's answers
alone. Which models gave a span is one of the features from which hidden answers of people learn
how probably it is right (`auto_spans`). For other tags and for items without people's answers every
model's confusion matrices, given its previous label, are counted against these labels, and its
answers are added as evidence, raised to the power with which the hidden answers of people are
predicted best (1 where no people answered). Several models share their mistakes, too: n of them
count as n / (1 + (n - 1) d), d the correlation of their mistakes. Single labels are treated alike,
without text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.aggregation.bsc.text import seen_dependence
from goldspan.aggregation.judge import LEAST_PROB, Judge, weigh
from goldspan.aggregation.mixture import Mixture
from goldspan.crowd import Crowd
from goldspan.errors import InputError

Floats = NDArray[np.float64]
P = TypeVar("P", Posterior, Mixture)

KINDS = frozenset({"llm", "tagger", "python", "prediction"})
"""Kinds of workers (`Crowd.worker_facts`) that are models."""
STRENGTH = 10.0
"""So many answers whatever the previous label are added to every row of one previous label."""
SMOOTH = 0.5
"""Pseudo-count of every label; the right one has one more."""
ENOUGH = 0.25
"""Share of the answered items that people must have answered: from fewer nothing is learned well
enough to do without the models, and everybody teaches."""
NEARLY_ALL = 0.9
"""Share of the items that a model answers: it does not tire."""
POWERS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Of the models' evidence, tried by the hidden answers of people."""


def check_models(value: Any) -> Any:
    """Refuse what are no ids of workers."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Collection) or not all(isinstance(name, str) for name in value):
        raise InputError(
            'models must be ids of workers, such as ["gpt-a"], or one string of ids separated by '
            f"commas, not {value!r:.80}"
        )
    return value


def models_of(crowd: Crowd, given: Collection[str] | str | None) -> list[str]:
    """Return which workers are models: those that are given, else by the facts of the crowd."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
    if given is not None:
        for name in given:
            crowd.worker_index(name)
        return sorted(given)
    facts = crowd.worker_facts.items()
    return sorted(name for name, known in facts if known.get("kind") in KINDS)


def split(crowd: Crowd, models: Collection[str]) -> tuple[Crowd, Crowd | None]:
    """Return the crowd with the answers of people alone, and with those of models alone."""
    latest = crowd.latest
    is_model = np.array([name in models for name in crowd.worker_ids.to_pylist()], np.bool_)
    own = is_model[latest.worker]
    n_by_people, n_items = (len(np.unique(one)) for one in (latest.item[~own], latest.item))
    if not own.any() or n_by_people < max(2, ENOUGH * n_items):
        return crowd, None
    people, others = (replace(crowd, answers=latest.take(np.flatnonzero(k))) for k in (~own, own))
    return people, others


def answer_everything(crowd: Crowd) -> list[str]:
    """Name who may be a model that nobody declared: they answer nearly all, the others do not.

    The others must be more, and answer a part of the items twice, to tell whether it is one.
    """
    n_items = len(np.unique(crowd.latest.item))
    busy = np.bincount(crowd.latest.worker, minlength=crowd.n_workers) >= NEARLY_ALL * n_items
    by_others = np.bincount(crowd.latest.item[~busy[crowd.latest.worker]], minlength=crowd.n_items)
    is_twice = (by_others > 1).sum() >= ENOUGH * n_items
    if not busy.any() or 2 * busy.sum() >= crowd.n_workers or not is_twice:
        return []
    return list(crowd.worker_ids.take(pa.array(np.flatnonzero(busy))).to_pylist())


def ids_of(models: Crowd | None) -> tuple[str, ...]:
    """Return the ids of the models that answered."""
    if models is None:
        return ()
    who = pa.array(np.unique(models.latest.worker))
    return tuple(sorted(models.worker_ids.take(who).to_pylist()))


def describe(models: Crowd) -> str:
    """Say how models count."""
    n = len(np.unique(models.latest.worker))
    who = "the answers of 1 model" if n == 1 else f"the answers of {n} models"
    return (
        f"{who} are not used to fit the models of people and text, and count as far as hidden "
        "answers of people show that they help"
    )


def evidence(models: Crowd, probs: NDArray[np.floating]) -> Floats:
    """Return what the answers of models say of every token, float64 [n_tokens, J], log."""
    # probs float [n_tokens, J]
    codes, token, worker = models.latest.codes, models.token_of, models.worker_of
    n_labels = probs.shape[1]
    outside = max(0, models.tagset.outside)  # single labels have no label before
    before = np.concatenate([[outside], np.where(codes[:-1] >= 0, codes[:-1], outside)])
    first = models.latest.offset[:-1]
    before[first[first < len(codes)]] = outside
    found = np.zeros(probs.shape)
    q = probs.astype(np.float64)
    for one in np.unique(worker):
        at = np.flatnonzero((worker == one) & (codes >= 0))
        cell = before[at].astype(np.int64) * n_labels + codes[at]
        every = [np.bincount(cell, q[token[at], t], n_labels**2) for t in range(n_labels)]
        counts = np.stack(every).reshape(n_labels, n_labels, n_labels)  # truth, before, said
        mean = counts.sum(axis=1) + SMOOTH + np.eye(n_labels)
        mean /= mean.sum(axis=1, keepdims=True)
        rows = counts + STRENGTH * mean[:, None]
        rows /= rows.sum(axis=2, keepdims=True)
        np.add.at(found, token[at], np.log(rows[:, before[at], codes[at]]).T)
    n = np.bincount(token[codes >= 0], minlength=len(probs))
    shared = min(1.0, max(0.0, seen_dependence(models, probs)))
    return np.asarray(found / (1 + np.maximum(n - 1, 0) * shared)[:, None])


def beside(posterior: P, models: Crowd, said: Floats) -> P:
    """Add evidence to a posterior."""
    # said float64 [n_tokens, J], log
    if isinstance(posterior, Mixture):
        return replace(posterior, parts=[beside(part, models, said) for part in posterior.parts])
    told = np.diff(models.by_item.bounds) > 0
    shards, item, token = [], 0, 0
    for shard in posterior.shards:
        own = said[token : token + shard.n_tokens]
        active = shard.active | told[item : item + len(shard.active)]
        unary = own + shard.unary if len(shard.unary) else own
        shards.append(replace(shard, unary=unary, active=active))
        item, token = item + len(shard.active), token + shard.n_tokens
    return replace(posterior, shards=shards)


def beside_labels(probs: Floats, said: Floats, power: float) -> Floats:
    """Add evidence to probabilities of single labels, float64 [n_items, J]."""
    # Where no people answered there is no mistake that models could share with them
    # probs float64 [n_items, J]; said float64 [n_items, J]
    told, known = (said != 0).any(axis=1), probs.sum(axis=1) > 0
    shares = probs[known].sum(axis=0) + 1
    before = np.where(known[:, None], probs, shares / shares.sum())
    logs = np.log(np.maximum(before, LEAST_PROB)) + np.where(known, power, 1.0)[:, None] * said
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return np.where((told & (probs.max(axis=1) < 1))[:, None], found, probs)


def judged_power(posterior: Posterior, models: Crowd, judge: Judge) -> float:
    """Return the power of the models' evidence with which people's hidden answers are likeliest."""
    said = evidence(models, posterior.marginals(np.inf).probs)
    tried = [beside(posterior, models, power * said).marginals(np.inf).probs for power in POWERS]
    return mean_power([judge.judge(probs).likelihood for probs in tried], judge.item)


def likelihoods_beside(probs: Floats, models: Crowd, judge: Judge) -> Floats:
    """Return how probable hidden answers are with every power, float64 [n_powers, n_hidden]."""
    # probs float64 [n_items, J]
    said = evidence(models, probs)
    tried = [beside_labels(probs, said, power) for power in POWERS]
    return np.stack([judge.judge(one).likelihood for one in tried])


def mean_power(likelihoods: Sequence[Floats], items: NDArray[np.integer]) -> float:
    """Return the mean of the powers, weighted like candidates; of all where nothing is hidden."""
    # likelihoods float64 [n_hidden] of every power
    # items int [n_hidden], the item of every hidden label
    if not len(items):
        return float(np.mean(POWERS))
    return float(np.average(POWERS, weights=weigh(likelihoods, items, np.ones(len(POWERS)))))
