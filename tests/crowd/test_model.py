"""The data model against plain lists: the answers that count, views, selections, equality."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd_strategies import crowds
from crowd_tables import assert_same, crowd_of, small
from goldspan.crowd import Answers, Crowd, CrowdBuilder, ReadOptions, read_crowd
from goldspan.crowd.model import ANSWER_COLUMNS, Tagset, View
from goldspan.errors import InputError

CROWD = crowd_of(
    [{"v": ["B-X", "I-X"], "w": ["O", None]}, {"w": ["B-X"]}],
    gold=[["B-X", None], ["O"]],
    groups=["d", "e"],
)


def rows(crowd, answers=None):
    """Return every answer as (item, worker, attempt, codes), in order."""
    a = crowd.answers if answers is None else answers
    return [
        (item, worker, attempt, a.codes[start:end].tolist())
        for item, worker, attempt, start, end in zip(
            *(x.tolist() for x in (a.item, a.worker, a.attempt, a.offset[:-1], a.offset[1:])),
            strict=True,
        )
    ]


def shuffled(crowd, order):
    return replace(crowd, answers=crowd.answers.take(np.array(order, np.int64)))


def test_the_types_are_those_of_the_architecture():
    answers = CROWD.answers
    kinds = {
        name: getattr(answers, name).dtype.name
        for name in ("item", "worker", "offset", "codes", "attempt")
    }
    assert kinds == {
        "item": "int32",
        "worker": "int32",
        "offset": "int64",
        "codes": "int16",
        "attempt": "int16",
    }
    assert CROWD.gold.dtype == np.int16
    assert CROWD.offsets.dtype == np.int64
    assert CROWD.latest.offset.dtype == np.int64


def test_numbers_of_everything():
    assert (CROWD.n_items, CROWD.n_workers, CROWD.n_tokens) == (2, 2, 3)
    assert CROWD.offsets.tolist() == [0, 2, 3]
    assert CROWD.tokens_list == [["t0", "t1"], ["t0"]]
    assert repr(CROWD) == "Crowd(2 items, 3 tokens, 2 workers, 3 answers, BIO ['X'], gold)"


@given(crowds())
def test_memory_is_two_bytes_per_label_and_at_most_24_per_answer(crowd):
    bare = replace(crowd.answers, **dict.fromkeys(ANSWER_COLUMNS))
    rest = bare.nbytes - 2 * len(bare.codes)
    assert rest <= 24 * len(bare) + 8
    assert crowd.answers.nbytes - bare.nbytes == sum(
        8 * len(bare) for name in ANSWER_COLUMNS if getattr(crowd.answers, name) is not None
    )


@given(crowds())
def test_of_repeated_answers_the_highest_attempt_counts(crowd):
    best = {}
    for row in rows(crowd):
        key = row[:2]
        best[key] = max(best.get(key, row), row, key=lambda r: r[2])
    found = rows(crowd, crowd.latest)
    assert sorted(found) == sorted(best.values())
    assert found == [row for row in rows(crowd) if row in found]


@given(crowds())
def test_views_list_the_answers_of_every_item_and_worker_in_order(crowd):
    latest = rows(crowd, crowd.latest)
    for item in range(crowd.n_items):
        assert crowd.by_item[item].tolist() == [n for n, row in enumerate(latest) if row[0] == item]
    for worker in range(crowd.n_workers):
        assert crowd.by_worker[worker].tolist() == [
            n for n, row in enumerate(latest) if row[1] == worker
        ]


@given(crowds())
def test_every_label_knows_its_token_and_worker(crowd):
    tokens, workers = [], []
    for item, worker, _, codes in rows(crowd, crowd.latest):
        tokens += [int(crowd.offsets[item]) + n for n in range(len(codes))]
        workers += [worker] * len(codes)
    assert crowd.token_of.tolist() == tokens
    assert crowd.worker_of.tolist() == workers


@given(crowds(), st.data())
def test_answers_are_taken_by_index_and_by_mask(crowd, data):
    all_rows = rows(crowd)
    order = data.draw(
        st.lists(st.integers(0, len(all_rows) - 1), max_size=6) if all_rows else st.just([])
    )
    taken = crowd.answers.take(np.array(order, np.int64))
    assert rows(crowd, taken) == [all_rows[n] for n in order]
    for name in ANSWER_COLUMNS:
        column = getattr(crowd.answers, name)
        assert column is None or getattr(taken, name).tolist() == [column[n] for n in order]
    mask = np.array([n in order for n in range(len(all_rows))], np.bool_)
    assert rows(crowd, crowd.answers.take(mask)) == [
        r for n, r in enumerate(all_rows) if n in order
    ]


@given(crowds(), st.data())
def test_selecting_items_keeps_all_that_is_theirs(crowd, data):
    order = data.draw(st.lists(st.integers(0, crowd.n_items - 1), min_size=1, unique=True))
    found = crowd.select_items(np.array(order)).content()
    whole = crowd.content()
    for name in ("items", "tokens", "groups", "texts"):
        assert found[name] == (None if whole[name] is None else [whole[name][n] for n in order])
    for name in ("gold", "token_start"):
        bounds = [(crowd.offsets[n], crowd.offsets[n + 1]) for n in order]
        flat = whole[name] and [x for a, b in bounds for x in whole[name][a:b]]
        assert found[name] == flat
    assert found["workers"] == whole["workers"]
    assert found["answers"] == {
        (order.index(item), worker, attempt): row
        for (item, worker, attempt), row in whole["answers"].items()
        if item in order
    }
    if whole["attributes"] is not None:
        assert found["attributes"] == {
            k: [v[n] for n in order] for k, v in whole["attributes"].items()
        }


def test_items_are_selected_by_a_mask_too():
    assert_same(CROWD.select_items(np.array([False, True])), CROWD.select_items(np.array([1])))


def test_a_slice_of_tokens_is_read_from_its_own_start():
    part = replace(CROWD, tokens=CROWD.tokens.slice(1), item_ids=CROWD.item_ids.slice(1))
    assert part.offsets.tolist() == [0, 1]
    assert part.n_tokens == 1


# Looking up


def test_answers_are_found_by_id_and_by_index():
    assert CROWD.answers_of("s0") == CROWD.answers_of(0) == {"v": ["B-X", "I-X"], "w": ["O", None]}
    assert CROWD.tagged_by_id() == {"s0": ["B-X", None], "s1": ["O"]}
    assert (CROWD.item_index("s1"), CROWD.worker_index("w")) == (1, 1)


def test_what_is_not_there_is_refused_by_its_name():
    with pytest.raises(InputError, match="there is no item 's9' among the 2 items"):
        CROWD.answers_of("s9")
    with pytest.raises(InputError, match="there is no worker 'x' among the 2 workers"):
        CROWD.worker_index("x")


def test_a_crowd_without_gold_says_how_to_get_some():
    with pytest.raises(InputError, match="this crowd has no gold: read it with the known labels"):
        small().tagged_by_id()


def test_gold_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="gold must have 3 codes"):
        CROWD.with_gold(np.zeros(2, np.int16))
    assert CROWD.with_gold(None).gold is None
    assert CROWD.with_gold(np.array([0, 0, 1], np.int16)).tagged_by_id()["s1"] == ["B-X"]


@pytest.mark.parametrize(
    ("tags", "encoding", "wanted"),
    [(["a"], "PLAIN", True), (["a", "b"], "PLAIN", False), (["B-X"], "BIO", False)],
)
def test_single_labels_are_plain_tags_on_one_token_each(tags, encoding, wanted):
    assert crowd_of([{"w": tags}], encoding=encoding).is_classification is wanted


def test_a_crowd_is_frozen():
    with pytest.raises(FrozenInstanceError):
        CROWD.gold = None
    with pytest.raises(ValueError, match="read-only"):
        CROWD.gold[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        CROWD.answers.codes[0] = 0


def test_a_crowd_has_no_hash():
    with pytest.raises(TypeError):
        hash(CROWD)


# Equality


@given(crowds(), st.randoms())
def test_the_order_of_answers_workers_and_tags_does_not_matter(crowd, random):
    order = list(range(len(crowd.answers)))
    random.shuffle(order)
    assert_same(shuffled(crowd, order), crowd)
    names = list(range(crowd.n_workers))
    random.shuffle(names)
    place = np.argsort(np.array(names, np.int64)).astype(np.int32)
    worker = place[crowd.answers.worker] if names else crowd.answers.worker
    other = replace(
        crowd,
        worker_ids=crowd.worker_ids.take(pa.array(names, pa.int64())),
        answers=replace(crowd.answers, worker=worker),
    )
    assert_same(other, crowd)
    tags = list(range(len(crowd.tagset.tags)))
    random.shuffle(tags)
    codec = Tagset(tuple(crowd.tagset.tags[n] for n in tags), crowd.tagset.encoding)
    table = np.append(np.argsort(np.array(tags, np.int64)), -1).astype(np.int16)
    gold = None if crowd.gold is None else table[crowd.gold]
    recoded = replace(crowd.answers, codes=table[crowd.answers.codes])
    assert_same(replace(crowd, tagset=codec, gold=gold, answers=recoded), crowd)


CHANGES = {
    "ids": {"item_ids": pa.array(["x", "s1"])},
    "tokens": {"tokens": pa.array([["t0", "x"], ["t0"]])},
    "workers": {"worker_ids": pa.array(["v", "x"])},
    "tags": {"tagset": Tagset.from_types(["Y"])},
    "encoding": {"tagset": Tagset(CROWD.tagset.tags, "IOB")},
    "groups": {"groups": pa.array(["d", "d"])},
    "no groups": {"groups": None},
    "gold": {"gold": np.array([1, 0, 0], np.int16)},
    "no gold": {"gold": None},
    "texts": {"texts": pa.array(["t0 t1", "t0"])},
    "places": {"token_start": np.array([0, 3, 0], np.int32)},
    "attributes": {"attributes": pa.table({"a": [1, 2]})},
    "codes": {"answers": replace(CROWD.answers, codes=np.zeros(5, np.int16))},
    "attempt": {"answers": replace(CROWD.answers, attempt=np.ones(3, np.int16))},
    "cost": {"answers": replace(CROWD.answers, cost=np.zeros(3, np.int64))},
    "fewer answers": {"answers": CROWD.answers.take(np.array([0, 1]))},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_part_of_the_content_counts(change):
    assert replace(CROWD, **CHANGES[change]) != CROWD


def test_the_order_of_items_counts_and_the_report_does_not():
    assert CROWD.select_items(np.array([1, 0])) != CROWD
    again = replace(CROWD, import_report=replace(CROWD.import_report, source="elsewhere"))
    assert again == CROWD
    assert CROWD != "a crowd"


def test_an_empty_view_has_empty_groups():
    view = View.of(np.array([], np.int32), 2)
    assert [view[0].tolist(), view[1].tolist()] == [[], []]


def test_a_crowd_of_nobody():
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    builder.add_item("a", ["x"])
    crowd = builder.build()
    assert isinstance(crowd, Crowd)
    assert isinstance(crowd.latest, Answers)
    assert crowd.answers_of("a") == {}
    assert crowd.token_of.tolist() == []


def test_selected_workers_come_in_the_order_given_with_their_answers() -> None:
    crowd = read_crowd(b"task,worker,label\nq1,a,x\nq1,b,y\nq1,c,x\nq2,c,y\n")
    found = crowd.select_workers(np.array([2, 0]))
    assert found.worker_ids.to_pylist() == ["c", "a"]
    assert found.answers_of("q1") == {"a": ["x"], "c": ["x"]}
    assert found.answers_of("q2") == {"c": ["y"]}
