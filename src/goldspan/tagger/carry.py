"""Warm starts: the weights of one model in the places of another."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.tagger.dicts import DictFeatures
from goldspan.tagger.features import FIRST, FeatureMap
from goldspan.tagger.templates import Template
from goldspan.tagger.weights import Weights

Known = FeatureMap | DictFeatures


def carry(
    weights: Weights, features: Known, codec: Codec, new_features: Known, new_codec: Codec
) -> Weights:
    """Take over the weights of all features and tags that both models have; the rest is 0.

    Args:
        weights: Of the old model.
        features: Its features.
        codec: Its tags.
        new_features: Features of the new model.
        new_codec: Tags of the new model.

    Raises:
        InputError: One model has dictionaries of features or hashed features and the other not.
    """
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


def _places(old: Known, new: Known) -> NDArray[np.int64]:
    """Give the old number of every new feature, int64 [n_features]; -1 for none."""
    if old is new:
        return np.arange(new.n_features)
    if type(old) is not type(new):
        raise InputError("a warm start needs a model with the same kind of features")
    if old.hash_bits != new.hash_bits:
        raise InputError("a warm start needs a model with the same hash_bits")
    if new.hash_bits:
        return np.arange(new.n_features)
    if isinstance(old, DictFeatures) and isinstance(new, DictFeatures):
        every = np.full(new.n_features, -1)
        for name, number in new.number.items():
            every[number] = old.number.get(name, -1)
        return every
    assert isinstance(old, FeatureMap)
    assert isinstance(new, FeatureMap)
    return np.concatenate([_in_template(old, new, template) for template in new.templates])


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
