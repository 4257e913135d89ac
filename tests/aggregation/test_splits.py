"""Train, dev and test by document, and the card of a data set."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.aggregation.splits import assign_splits, write_splits
from goldspan.crowd import read_crowd
from goldspan.errors import InputError

DAY = datetime(2026, 1, 31, tzinfo=UTC)


def crowd_of(sizes):
    rows = [
        {"item": f"{d}-{n}", "doc": f"d{d}", "text": "Ann sang", "answers": [
            {"worker": w, "spans": [[0, 3, "PER"]] if (d + n + w_) % 3 else []}
            for w_, w in enumerate(("ann", "bob"))]}
        for d, size in enumerate(sizes)
        for n in range(size)
    ]  # fmt: skip
    return read_crowd(rows, format="spans")


@given(
    st.lists(st.integers(1, 6), min_size=3, max_size=30),
    st.integers(0, 99),
    st.sampled_from(
        [(0.8, 0.1, 0.1), (60, 20, 20), (1, 0, 0), (0, 0.5, 0.5), (98, 1, 1), (0.5, 0.01, 0.49)]
    ),
)
def test_documents_stay_whole_and_shares_are_met(sizes, seed, shares):
    crowd = crowd_of(sizes)
    which = assign_splits(crowd, shares, seed)
    documents = np.array(crowd.groups.to_pylist())
    assert all(len(set(which[documents == one])) == 1 for one in set(documents))
    wanted = np.array(shares) / sum(shares)
    counts = np.bincount(which, minlength=3)
    assert (counts[wanted == 0] == 0).all()
    assert (counts[wanted > 0] > 0).all()
    # A document goes where most is missing: nothing is over its share by more than a document.
    assert (counts - wanted * len(which) <= max(sizes)).all()
    assert (assign_splits(crowd, shares, seed) == which).all()


def test_a_small_share_of_few_documents_gets_the_smallest_of_them():
    crowd = crowd_of([5, 1, 4, 2])
    parts = np.array(crowd.groups.to_pylist()), assign_splits(crowd, (98, 1, 1))
    assert dict(zip(*parts, strict=True)) == {"d0": 0, "d1": 1, "d2": 0, "d3": 2}


def test_items_without_a_document_are_their_own():
    crowd = goldspan.read_crowd([{"item": n, "worker": "w", "label": "x"} for n in range(100)])
    one, two = (assign_splits(crowd, seed=seed) for seed in (1, 2))
    assert np.bincount(one).tolist() == [80, 10, 10]
    assert (one != two).any()


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((0.5, 0.5), "give three shares"),
        ((0.5, 0.6, -0.1), "give three shares"),
        ((float("nan"), 0.5, 0.5), "give three shares"),
        ((0.5, 0.2, 0.2), "the shares add up to 0.9"),
        ((80, 10, 10), "there are only 2 documents"),
    ],
)
def test_shares_that_cannot_be_are_rejected(shares, message):
    with pytest.raises(InputError, match=message):
        assign_splits(crowd_of([2, 3]), shares)


def test_a_data_set_has_splits_and_a_card(tmp_path):
    crowd = crowd_of([3] * 10)
    result = goldspan.aggregate(crowd, method="ds")
    assert write_splits(result, tmp_path / "x", date=DAY) == []
    assert json.loads((tmp_path / "x/dataset_dict.json").read_text("utf-8")) == {
        "splits": ["train", "validation", "test"]
    }
    back = read_crowd(tmp_path / "x")
    assert back.n_items == 30
    assert {*back.attributes["split"].to_pylist()} == {"train", "validation", "test"}
    assert back.tagged_by_id() == result.as_gold().tagged_by_id()
    arrow = tmp_path / "x/validation/data-00000-of-00001.arrow"
    with pa.ipc.open_stream(arrow.read_bytes()) as rows:
        part = rows.read_all()
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    for name, probs, sure in zip(
        *(part[one].to_pylist() for one in ("item", "probs", "confidence")), strict=True
    ):
        first = crowd.offsets[place[name]]
        assert np.allclose(probs, result.token_probs[first : first + 2])
        assert sure == pytest.approx(result.confidence[place[name]])
    card = (tmp_path / "x/README.md").read_text("utf-8")
    for words in (
        "Written 2026-01-31 by goldspan", "| train | 8 | 24 | 48 |", "(seed 1)",
        "2 annotators gave 60 answers, 2.00 per item.", "Krippendorff's α", "Method: `ds`",
        "Mean confidence of", "the method's probabilities",
    ):  # fmt: skip
        assert words in card


@pytest.mark.parametrize(
    ("models", "creators", "who"),
    [
        (["ann"], "- crowdsourced\n- machine-generated\n", "1 person and 1 model (ann) gave"),
        (
            ["ann", "bob"],
            "annotations_creators:\n- machine-generated\n",
            "2 models (ann, bob) gave",
        ),
    ],
)
def test_the_card_says_which_annotators_are_models(tmp_path, models, creators, who):
    crowd = replace(crowd_of([3] * 10), worker_facts={name: {"kind": "llm"} for name in models})
    write_splits(goldspan.aggregate(crowd, method="ds"), tmp_path / "x", date=DAY)
    card = (tmp_path / "x/README.md").read_text("utf-8")
    assert creators in card
    assert who in card


def test_other_formats_are_a_file_per_split(tmp_path):
    result = goldspan.aggregate(crowd_of([1] * 10), method="mv-token")
    assert write_splits(result, tmp_path / "x", format="gliner", shares=(0.9, 0, 0.1)) == []
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "README.md", "test.json", "train.json",
    ]  # fmt: skip
    assert len(json.loads((tmp_path / "x/train.json").read_text("utf-8"))) == 9
    assert "shares of votes, not probabilities" in (tmp_path / "x/README.md").read_text("utf-8")
    with pytest.raises(InputError, match="exists already"):
        write_splits(result, tmp_path / "x", format="gliner")


def test_what_nobody_labelled_is_left_out_and_counted(tmp_path):
    rows = [{"item": str(n), "text": "Ann sang", "answers": []} for n in range(3)]
    rows += [{"item": f"a{n}", "text": "Ann sang", "worker": "w", "spans": []} for n in range(5)]
    result = goldspan.aggregate(read_crowd(rows, format="spans"), method="mv-token")
    lost = write_splits(result, tmp_path / "x", format="conll", shares=(1, 0, 0))
    assert lost == []
    assert "Left out: 3 items without a label for every token." in (
        tmp_path / "x/README.md"
    ).read_text("utf-8")
