"""Confidences and sets in files: read as they were written, or told to be damaged."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import goldspan
from goldspan.aggregation import calibrate
from goldspan.aggregation.conformal import Member
from goldspan.aggregation.written import read_confidences
from goldspan.cli import app
from goldspan.errors import FaultsError, InputError


@pytest.fixture(scope="module")
def sure(crowd):
    return calibrate(goldspan.aggregate(crowd, "ds"), crowd, coverage=0.9)


@pytest.fixture(scope="module")
def words():
    """Sentences of plain tags, as of parts of speech."""
    rng = np.random.default_rng(0)
    rows = ["item\tposition\ttoken\tworker\tlabel\tgold"]
    for item in range(60):
        for position in range(3):
            true = int(rng.integers(3))
            for worker in "abc":
                seen = true if rng.random() < 0.7 else int(rng.integers(3))
                rows.append(f"s{item}\t{position}\tt{true}\t{worker}\tl{seen}\tl{true}")
    return goldspan.read_crowd("\n".join(rows).encode())


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(2)
    rows = ["task,worker,label,gold"]
    for task in range(150):
        true = int(rng.integers(3))
        for worker in "abc":
            seen = true if rng.random() < 0.6 else int(rng.integers(3))
            rows.append(f"q{task},{worker},l{seen},l{true}")
    return goldspan.read_crowd("\n".join(rows).encode())


def expected(result):
    return [result.sets.of(n) for n in range(len(result.sets))]


def sets_of(path):
    """The sets of a file as its rows hold them."""
    if path.suffix == ".parquet":
        every = pq.read_table(path)["sets"].to_pylist()
        return [[Member(**one) for one in members] for item in every for members in item]
    if path.suffix == ".csv":
        rows = csv.DictReader(path.read_text().splitlines())
        return [list(map(label, json.loads(row["set"]))) for row in rows if row["set"]]
    found = []
    for row in map(json.loads, path.read_text().splitlines()):
        if "gold" in row and isinstance(row["gold"], list) and "set" not in row:
            found += [list(map(member, span["set"])) for span in row["gold"]]
        every = row.get("set", [])
        nested = every if not every or isinstance(every[0], list) else [every]
        found += [list(map(label, names)) for names in nested]
    return found


def label(name):
    return Member("label", None, None, name, float("nan"))


def member(one):
    start, end = one.get("start_token", one.get("start")), one.get("end_token", one.get("end"))
    return Member(one["kind"], start, end, one.get("type"), one["confidence"])


def same(found, wanted, *, with_confidence):
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        assert [member[:-1] for member in one] == [member[:-1] for member in two]
        if with_confidence:
            confidences = [member.confidence for member in one]
            assert confidences == pytest.approx([m.confidence for m in two], abs=6e-5)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_sets_of_spans_come_back(sure, tmp_path, ending):
    path = tmp_path / f"gold.{ending}"
    assert sure.write(path) == []
    read = goldspan.read_crowd(path)
    np.testing.assert_array_equal(read.gold, sure.codes)
    same(sets_of(path), expected(sure), with_confidence=True)
    assert read_confidences(str(path), read) is not None


def test_sets_of_items_with_texts_are_in_tokens_again(crowd, tmp_path):
    texts = pa.array([" ".join(tokens) for tokens in crowd.tokens_list])
    from dataclasses import replace

    own = replace(crowd, texts=texts)
    result = calibrate(goldspan.aggregate(own, "ds"), own, coverage=0.9)
    path = tmp_path / "gold.jsonl"
    result.write(path)
    same(sets_of(path), expected(result), with_confidence=True)


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_sets_of_single_labels_come_back(labels, tmp_path, ending):
    result = calibrate(goldspan.aggregate(labels, "ds"), labels, coverage=0.9)
    path = tmp_path / f"gold.{ending}"
    assert result.write(path) == []
    read = goldspan.read_crowd(path)
    found = sets_of(path)
    same(found, expected(result), with_confidence=ending == "parquet")
    assert read_confidences(str(path), read) is not None


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_sets_of_plain_tags_come_back(words, tmp_path, ending):
    result = calibrate(goldspan.aggregate(words, "ds"), words, coverage=0.9)
    assert result.sets.unit == "token"
    path = tmp_path / f"gold.{ending}"
    assert result.write(path) == []
    found = sets_of(path)
    same(found, expected(result), with_confidence=ending == "parquet")


def test_open_items_have_no_set(labels, tmp_path):
    from dataclasses import replace

    answers = labels.answers.take(labels.answers.item > 1)
    result = calibrate(
        goldspan.aggregate(replace(labels, answers=answers), "ds"), labels, coverage=0.9
    )
    for ending in ("jsonl", "parquet", "csv"):
        path = tmp_path / f"gold.{ending}"
        result.write(path)
        found = sets_of(path)
        assert len(found) == labels.n_items - 2


def test_conll_has_no_place_for_sets_and_says_so(sure, tmp_path):
    with pytest.raises(InputError, match=r"no place for the sets of alternatives: write \.jsonl"):
        sure.write(tmp_path / "gold.conll")
    assert not (tmp_path / "gold.conll").exists()
    words = ["aggregate", "examples/crowd.tsv", "-m", "ds", "--calibrate", "examples/crowd.tsv"]
    for output in (str(tmp_path / "gold.conll"), "-"):
        done = CliRunner().invoke(app, [*words, "--coverage", "0.9", "-o", output])
        assert "has no place for the sets" in str(done.exception)


# --------------------------------------------------------------------------------------------------
# Damaged confidences.


def faults_of(path):
    with pytest.raises(FaultsError, match="the confidences are damaged") as caught:
        read_confidences(str(path), goldspan.read_crowd(path))
    return [str(fault) for fault in caught.value.faults]


def test_every_damaged_confidence_of_spans_is_told(crowd, tmp_path):
    path = tmp_path / "gold.jsonl"
    goldspan.aggregate(crowd, "ds").write(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    damaged = [row for row in rows if row["gold"]][:6]
    for row, value in zip(damaged, ["high", 1.2, -0.1, None, True], strict=False):
        row["gold"][0]["confidence"] = value
    del damaged[5]["gold"][0]["confidence"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = faults_of(path)
    assert len(found) == 6
    for row, fault, shown in zip(
        damaged, found, ["'high'", "1.2", "-0.1", "missing", "True", "missing"], strict=True
    ):
        assert f"item {row['item']}" in fault
        assert shown in fault
        assert "span 0" in fault
    done = CliRunner().invoke(app, ["score", str(path), "examples/crowd.tsv", "--json"])
    assert done.exit_code == 0
    assert "confidences are not measured" in done.stderr
    assert all(f"item {row['item']}" in done.stderr for row in damaged)
    assert "confidence" not in json.loads(done.stdout)


def test_confidences_that_are_gone_from_all_spans_are_told(crowd, tmp_path):
    path = tmp_path / "gold.jsonl"
    goldspan.aggregate(crowd, "ds").write(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for span in row["gold"]:
            del span["confidence"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(faults_of(path)) == sum(len(row["gold"]) for row in rows)
    for row in rows:
        del row["confidence"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_confidences(str(path), goldspan.read_crowd(path)) is None


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_every_damaged_confidence_of_single_labels_is_told(labels, tmp_path, ending):
    path = tmp_path / f"gold.{ending}"
    goldspan.aggregate(labels, "ds").write(path)
    if ending == "csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row, value in zip(rows, ["high", "", 1.5, "nan"], strict=False):
        row["confidence"] = value
    if ending == "csv":
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = faults_of(path)
    assert [fault.split("item ")[1].split(":")[0] for fault in found] == ["q0", "q1", "q2", "q3"]


def test_every_damaged_confidence_of_a_table_is_told(crowd, tmp_path):
    path = tmp_path / "gold.parquet"
    goldspan.aggregate(crowd, "ds").write(path)
    table = pq.read_table(path)
    spans, probs = table["spans"].to_pylist(), table["probs"].to_pylist()
    sure = table["token_confidence"].to_pylist()
    at = next(n for n, own in enumerate(spans) if own)
    spans[at][0]["confidence"] = None
    spans[at + 1 :] = [[] if n == 0 else own for n, own in enumerate(spans[at + 1 :])]
    sure[0][0], sure[1][0] = float("nan"), 2.0
    sure[2] = sure[2][:-1]
    probs[3][0] = [1.0] * len(probs[3][0])
    for name, values in (("spans", spans), ("token_confidence", sure), ("probs", probs)):
        place = table.column_names.index(name)
        column = pa.array(values, table.schema.field(name).type)
        table = table.set_column(place, table.schema.field(name), column)
    pq.write_table(table, path)
    found = "\n".join(faults_of(path))
    ids = crowd.item_ids.to_pylist()
    assert f"item {ids[0]}: the confidence of token 0 is nan" in found
    assert f"item {ids[1]}: the confidence of token 0 is 2.0" in found
    assert f"item {ids[2]}: {len(sure[2])} confidences, and there should be" in found
    assert "the probabilities add up to" in found
    assert f"item {ids[at]}: the confidence of span 0 is missing" in found
    pq.write_table(table.drop_columns(["probs"]), path)
    assert "the column probs is missing" in "\n".join(faults_of(path))
