"""The study of a real language model counts what came of its replies; `make test-llm` asks one."""

from __future__ import annotations

import pytest

from goldspan.annotators import AnnotationTask, ItemAnswer, SoftSpan
from goldspan.annotators.base import Usage
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from studies.real_model import answers_of, row_of

ITEMS = [PoolItem(str(n), ("Ann", "sang")) for n in range(4)]
ANSWERS = [
    ItemAnswer("0", (SoftSpan("PER", 0, 1),), unplaced=("x",), unsure=(1,), usage=Usage(1, 50, 6)),
    ItemAnswer("1", missing="cut: the reply is longer than max_output (after 1 calls)"),
    ItemAnswer("2", missing="invalid: it is not JSON (after 1 calls)"),
    ItemAnswer("3", missing="invalid: none of its spans can be placed", unplaced=("x", "y")),
]


def test_every_reply_is_counted_once_and_missing_ones_have_found_nothing():
    task = AnnotationTask(Codec.from_types(["PER"]))
    gold = {item.id: ("B-PER", "O") for item in ITEMS}
    row = row_of(ANSWERS, ITEMS, task, gold)
    assert row == [1, 1, 1, 1, 1, 1, 3, pytest.approx(0.4), 50, 6]  # one of four is found


def test_it_goes_on_behind_replies_in_a_row_that_are_none():
    class Stopping:
        turns = iter([InputError("no reply about 25 items in a row could be used"), None])

        def label(self, _):
            if error := next(self.turns):
                raise error
            return iter(ANSWERS)

    assert answers_of(Stopping(), ITEMS) == ANSWERS
