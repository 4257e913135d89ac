"""CoNLL-2003 as a pool to choose from, and the sentences that taggers are scored on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.base import text_of
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.selection import Features, Pool
from goldspan.tagger import CRF, Text
from goldspan.tagger.features import FeatureMap, read_templates
from goldspan.tagger.features import Features as Marks
from goldspan.tagger.targets import Labels
from studies.rodrigues.data import some_documents
from studies.selection_ner.pool_tagger import PoolCRF, numbered

TESTS = ("testa", "testb")
STEPS = 60
"""Most steps of training, from the tagger before; more change F1 by some tenths of a per cent."""


@dataclass(frozen=True, eq=False)
class Bench:
    """What all runs share.

    Attributes:
        train: The pool, whose gold is bought.
        pool: Its words, with the numbers of their items.
        features: Its attribute values.
        tests: Sentences to be scored on, by name.
        map: The features that taggers look at, numbered once for the whole pool. To number those of
            every batch anew takes longer than to train on it; what a tagger was not trained on has
            no weight, so that the taggers are the same.
        marks: These features in the pool.
    """

    train: Crowd
    pool: Pool
    features: Features
    tests: Mapping[str, Crowd]
    map: FeatureMap
    marks: Marks

    @classmethod
    def read(
        cls, data: Path, test_items: int | None = None, pool_items: int | None = None
    ) -> Bench:
        """Read the pool and the test sets.

        Args:
            data: The folder that holds `conll2003`.
            test_items: About how many sentences of the test sets are used; None: all.
            pool_items: About how many are in the pool; None: all.

        Raises:
            InputError: A file is not there.
        """
        train = some_documents(_read(data, "train"), pool_items)
        tests = {part: some_documents(_read(data, part), test_items) for part in TESTS}
        made = FeatureMap.fit(_alone(train), read_templates("default"))
        pool = Pool.of(train)
        assert pool.text is not None
        known = replace(pool, text=numbered(pool.text))
        return cls(train, known, Features.fit(pool), tests, *made)

    @cached_property
    def tags(self) -> list[list[str]]:
        """The gold tags of every item of the pool."""
        return self.train.tagset.decode_complete(self.train.gold_tagged)

    @cached_property
    def tested(self) -> dict[str, tuple[Marks, list[list[str]]]]:
        """The features and the gold tags of the test sets."""
        return {
            name: (
                self.map.transform(_alone(crowd)),
                crowd.tagset.decode_complete(crowd.gold_tagged),
            )
            for name, crowd in self.tests.items()
        }

    def learn(self, items: NDArray[np.int64], start: CRF | None = None) -> PoolCRF:
        """Train a CRF on the gold of some items, each a document of its own.

        Args:
            items: int64 [n], of the pool.
            start: A CRF to begin with.
        """
        labels = Labels.of([self.tags[n] for n in items.tolist()], "BIO", None)
        model = PoolCRF(max_iter=STEPS)
        model.codec_, model.features_, model.marks = labels.codec, self.map, self.marks
        own = self.marks.select(items)
        targets, _ = labels.targets(own, self.map.n_features, repair=model.hard)
        return model.fit_targets(own, targets, start=start)

    @cached_property
    def word_ids(self) -> NDArray[np.int64]:
        """A number per token of the pool, the same for the same word: int64 [n_tokens]."""
        flat = np.asarray(self.train.tokens.flatten().to_pylist(), object).astype(str)
        return np.unique(flat, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """Which tokens of the pool begin a name, bool [n_tokens]."""
        is_begin = np.array([tag.startswith("B-") for tag in self.train.tagset.tags])
        return np.asarray(is_begin[self.train.gold_tagged.codes])

    @cached_property
    def digest(self) -> str:
        """Name the data: what a kept run belongs to."""
        digest = hashlib.blake2b(digest_size=16)
        for crowd in (self.train, *self.tests.values()):
            for words in (crowd.item_ids, crowd.tokens.flatten(), crowd.tagset.tags):
                digest.update("\n".join(map(str, words)).encode())
            for part in (crowd.offsets, crowd.gold_tagged.codes):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def _alone(crowd: Crowd) -> Text:
    """Return the words of a crowd, every item a document of its own."""
    return replace(text_of(crowd), group=None)


def _read(data: Path, part: str) -> Crowd:
    path = data / "conll2003" / f"{part}.tsv.gz"
    if not path.is_file():
        raise InputError(f"{path} is not there: study selection-ner needs it (--data DIR)")
    return read_crowd(path, format="conll", columns={"tag": "ner_bio"})
