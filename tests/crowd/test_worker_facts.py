"""Facts about workers, such as their family, go with the crowd and its files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.crowd import write_crowd
from goldspan.crowd.losses import losses
from goldspan.errors import FormatError
from goldspan.simulation import draw_truth, simulate_crowd

FACTS = {"gpt-a": {"family": "gpt", "kind": "llm"}, "bo": {"kind": "people"}}


@pytest.fixture
def crowd():
    made = goldspan.read_crowd(b"item,worker,label\n1,gpt-a,x\n1,bo,y\n1,cy,y\n2,cy,x\n")
    return replace(made, worker_facts=FACTS | {"gone": {"kind": "llm"}})


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_facts_come_back_of_the_workers_who_are_there(crowd, ending, tmp_path):
    lost = write_crowd(crowd, tmp_path / f"crowd.{ending}")
    back = goldspan.read_crowd(tmp_path / f"crowd.{ending}")
    assert lost == []
    assert back == crowd
    assert back.worker_facts == FACTS


def test_a_format_that_cannot_hold_them_says_so(crowd):
    (message,) = [one for one in losses(crowd, "long") if "facts" in one]
    assert message == "facts about 2 workers: family, kind of 'gpt-a'"


def test_files_of_crowds_without_facts_are_as_before(crowd, tmp_path):
    write_crowd(replace(crowd, worker_facts={}), tmp_path / "crowd.jsonl")
    assert "worker_facts" not in (tmp_path / "crowd.jsonl").read_text()


def test_crowds_with_other_facts_differ(crowd):
    assert crowd != replace(crowd, worker_facts={})
    assert crowd == replace(crowd, worker_facts=FACTS)


def test_facts_go_with_workers_who_are_chosen_or_renamed(crowd, tmp_path):
    assert crowd.select_workers(np.array([1, 2])).known_facts == {"bo": {"kind": "people"}}
    write_crowd(crowd, tmp_path / "crowd.jsonl")
    renamed = goldspan.read_crowd(tmp_path / "crowd.jsonl", rename_workers={"gpt-a": "model"})
    assert renamed.known_facts == {"model": FACTS["gpt-a"], "bo": FACTS["bo"]}


@pytest.fixture
def kin(tmp_path):
    """A file whose facts say that two of its workers are of one family."""
    team = {**dict.fromkeys("abcefgh", "flip(0.25)"), "d": "copier(c, 1.0)"}
    made = simulate_crowd(draw_truth(200, 3, seed=1), team, seed=1).with_gold(None)
    facts = {"a": {"family": "gpt"}, "b": {"family": "gpt"}, "c": {"family": "alone"}}
    write_crowd(replace(made, worker_facts=facts), tmp_path / "kin.jsonl")
    return tmp_path / "kin.jsonl"


@pytest.mark.parametrize("method", ["ds", "mv-token", "auto"])
def test_families_of_a_file_are_heeded_without_being_told_again(kin, method):
    found = goldspan.aggregate(kin, method).families.names()
    assert found["a"] == found["b"] == "gpt"
    assert ("d" in found) == (method == "auto")  # which looks for others
    assert found.get("c") == found.get("d")


def test_who_says_otherwise_is_heeded(kin):
    assert goldspan.aggregate(kin, "ds", families="none").families is None
    told = goldspan.aggregate(kin, "ds", families={"a": "x", "c": "x"})
    assert told.families.names() == {"a": "x", "c": "x"}


@pytest.mark.parametrize("facts", ["3", '{"a": 3}', '{"a": {"family": 3}}', "[]"])
def test_facts_that_are_none_are_rejected(facts):
    lines = f'{{"goldspan": 1, "encoding": "BIO", "types": [], "worker_facts": {facts}}}\n'
    lines += '{"item": "1", "tokens": ["a"], "answers": [{"worker": "a", "spans": []}]}\n'
    with pytest.raises(FormatError, match="worker_facts must be an object"):
        goldspan.read_crowd(lines.encode(), format="spans")
