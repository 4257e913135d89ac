"""Pairs of answers to the same item of which one is wrong: what copies are looked for in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Answers
from goldspan.hiring.signs.base import Scene
from goldspan.hiring.signs.equal import Groups, sequence_keys

BLOCK = 1_000_000
"""Pairs of answers that are looked at at a time."""


class WrongRows(NamedTuple):
    """Pairs of answers of which the first is wrong, [n_rows] each.

    Attributes:
        one: int32, the worker of the wrong answer.
        other: int32, the other worker.
        equal: bool, whether the answers are equal.
        shared: int32, how many of the remaining answers to the item are equal to the wrong one.
        n_rest: int32, how many remain.
        later: int8, 1 where the wrong answer is the later one, -1 the other, 0 unknown.
    """

    one: NDArray[np.int32]
    other: NDArray[np.int32]
    equal: NDArray[np.bool_]
    shared: NDArray[np.int32]
    n_rest: NDArray[np.int32]
    later: NDArray[np.int8]


def wrong_rows(scene: Scene, groups: Groups) -> WrongRows:
    """Compare all pairs of answers to the same item.

    An answer is wrong that is not the gold; without gold, one that another answer outnumbers among
    those of third workers.
    """
    judge = _Judge(scene, groups)
    blocks = [judge.rows(*block) for block in _blocks(judge.answers, judge.suspect)]
    none = np.zeros(0, np.int32)
    empty = WrongRows(none, none, none.astype(np.bool_), none, none, none.astype(np.int8))
    return WrongRows(*map(np.concatenate, zip(empty, *blocks, strict=True)))


def _blocks(
    answers: Answers, suspect: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Go through the ordered pairs of answers to an item of which the first is suspect."""
    order = np.argsort(answers.item, kind="stable")
    item, alive, lag = answers.item[order], np.arange(len(answers)), 1
    while len(alive):
        alive = alive[alive + lag < len(item)]
        alive = alive[item[alive] == item[alive + lag]]
        for begin in range(0, len(alive), BLOCK):
            part = alive[begin : begin + BLOCK]
            first, second = order[part], order[part + lag]
            for one, other in ((first, second), (second, first)):
                kept = suspect[one]
                yield one[kept], other[kept]
        lag += 1


@dataclass(frozen=True, eq=False)
class _Judge:
    """What is needed to say of a pair of answers whether the first is wrong."""

    scene: Scene
    groups: Groups

    @property
    def answers(self) -> Answers:
        return self.scene.crowd.latest

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Answers to every item."""
        return np.bincount(self.answers.item, minlength=self.scene.crowd.n_items)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether an item has gold at every token."""
        unknown = np.concatenate([[0], np.cumsum(~self.scene.truth.known)])
        return np.asarray(np.diff(unknown[self.scene.crowd.offsets]) == 0)

    @cached_property
    def suspect(self) -> NDArray[np.bool_]:
        """Whether an answer may be wrong for some pair, bool [n_answers].

        Answers to texts that mark nothing are none: two who mark nothing are but lazy.
        """
        groups, item = self.groups, self.answers.item
        size = groups.size[groups.of]
        most = self._most_of_others(groups.of, item, np.full(len(item), -2))
        found = most > size - 2
        if self.known.any():
            gold = sequence_keys(self.scene.truth.gold[0], self.scene.crowd.offsets)
            found = np.where(self.known[item], groups.key[groups.of] != gold[item], found)
        return np.asarray(found & self._marks())

    def rows(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> WrongRows:
        """Keep the pairs whose first answer is wrong."""
        answers, groups = self.answers, self.groups
        item, mine, theirs = answers.item[one], groups.of[one], groups.of[other]
        rest = groups.size[mine] - 1 - (mine == theirs)
        wrong = self.known[item]
        wrong[~wrong] = (
            self._most_of_others(mine[~wrong], item[~wrong], theirs[~wrong]) > rest[~wrong]
        )
        one, other, item = one[wrong], other[wrong], item[wrong]
        return WrongRows(
            answers.worker[one],
            answers.worker[other],
            (mine == theirs)[wrong],
            rest[wrong].astype(np.int32),
            (self.n_answers[item] - 2).astype(np.int32),
            self._later(one, other),
        )

    def _most_of_others(
        self, mine: NDArray[np.int64], item: NDArray[np.int32], theirs: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Give the size of the largest other group, one answer of `theirs` left out."""
        most = np.full(len(mine), -1, np.int64)
        for rank in range(3):
            group = self.groups.best[item, rank]
            size = np.where(group >= 0, self.groups.size[group], 0) - (group == theirs)
            most = np.maximum(most, np.where(group == mine, -1, size))
        return most

    def _later(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int8]:
        if self.answers.submitted is None:
            return np.zeros(len(one), np.int8)
        mine, theirs = self.answers.submitted[one], self.answers.submitted[other]
        return np.where((mine >= 0) & (theirs >= 0), np.sign(mine - theirs), 0).astype(np.int8)

    def _marks(self) -> NDArray[np.bool_]:
        answers, codec = self.answers, self.scene.crowd.tagset
        if codec.rules.is_plain:
            return np.ones(len(answers), np.bool_)
        inside = (answers.codes >= 0) & (answers.codes != codec.outside)
        before = np.concatenate([[0], np.cumsum(inside)])
        return np.asarray(before[answers.offset[1:]] > before[answers.offset[:-1]])
