"""Labels that were kept are those that would be computed; whatever else lies there is not used."""

from __future__ import annotations

import os
import pickle
from dataclasses import fields

import numpy as np
import pytest

from campaign.tiny import SPANS, campaign_of, write_files, write_spans
from goldspan.aggregation.base import Aggregator
from goldspan.aggregation.bsc.posterior import Posterior
from goldspan.campaign import keeping
from goldspan.campaign.judging import Aggregating
from goldspan.campaign.keeping import MOST, SIZE, KeptLabels

METHODS = {
    True: ["auto", "bsc-seq+crf", "bsc-mace", "mace", "wmv-log", "crf-ma"],
    False: ["auto", "ds", "wawa", "glad"],
}


@pytest.fixture(autouse=True)
def all_are_kept(monkeypatch):
    monkeypatch.setattr(keeping, "LEAST", 0)


def played(folder, *, spans, method):
    (write_spans if spans else write_files)(folder)
    plan = {**(SPANS if spans else {}), "aggregate": {"method": method}, "stop": {"most_rounds": 1}}
    plan["redundancy"] = {"min": 3, "max": 3, "stop": "clear_majority"}
    campaign = campaign_of(folder, **plan)
    campaign.run()
    campaign.ledger.labels_folder = folder / "labels"
    return campaign


def labels_of(campaign, **changes):
    crowd = campaign.ledger.crowd()
    plan = campaign.inputs.plan.model_copy(update=changes)
    return Aggregating(plan, campaign.ledger).labels(crowd)


def no_fit(*_args, **_kwargs):
    raise AssertionError("labels that are kept were computed")


@pytest.mark.parametrize(
    ("spans", "method"), [(spans, method) for spans in METHODS for method in METHODS[spans]]
)
def test_kept_labels_are_the_computed_ones(tmp_path, monkeypatch, spans, method):
    campaign = played(tmp_path, spans=spans, method=method)
    made = labels_of(campaign)
    monkeypatch.setattr(Aggregator, "fit", no_fit)
    found = labels_of(campaign)
    assert found is not made
    for one in fields(made):
        ours, theirs = getattr(found, one.name), getattr(made, one.name)
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes(), one.name
    assert (found.crowd, found.notes, found.params) == (made.crowd, made.notes, made.params)
    assert found.workers.equals(made.workers)
    if made.posterior is not None:
        assert [found.alternatives(n) for n in range(5)] == [made.alternatives(n) for n in range(5)]


def test_the_alternatives_that_review_shows_first_are_kept_with_the_labels(tmp_path, monkeypatch):
    campaign = played(tmp_path, spans=True, method="auto")
    made = labels_of(campaign)
    first = np.argsort(made.confidence, kind="stable")[: keeping.FIRST].tolist()
    listed = [made.alternatives(n) for n in first]
    assert any(listed)
    monkeypatch.delattr(Posterior, "alternatives")
    assert [labels_of(campaign).alternatives(n) for n in first] == listed


class Evil:
    def __init__(self, call, *args):
        self.call = call, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("what", ["cut", "changed", "empty", "code", "lazy code", "other"])
def test_what_is_broken_or_strange_is_neither_used_nor_run(tmp_path, what):
    campaign, mark = played(tmp_path, spans=True, method="mace"), tmp_path / "ran"
    made = labels_of(campaign)
    (path,) = campaign.ledger.labels_folder.iterdir()
    good = path.read_bytes()
    evil = {
        "code": Evil(os.mkdir, str(mark)),
        "lazy code": Evil(keeping.new_file, str(mark)),
        "other": {"labels": ["O"]},
    }
    bad = {"cut": good[:-9], "changed": good[:-9] + b"x" + good[-8:], "empty": b""}.get(what)
    if bad is None:
        content = pickle.dumps(evil[what])
        bad = keeping._sum(path.name.encode() + content, keeping._secret()) + content
    path.write_bytes(bad)
    assert labels_of(campaign).codes.tolist() == made.codes.tolist()
    assert not mark.exists()
    assert len(path.read_bytes()) == len(good)


def test_labels_of_another_name_or_without_the_secret_of_the_user_are_not_read(tmp_path):
    campaign = played(tmp_path, spans=True, method="mace")
    labels_of(campaign)
    (path,) = campaign.ledger.labels_folder.iterdir()
    kept = KeptLabels(path.parent, campaign.ledger.crowd().with_gold(None))
    assert kept.get(path.name) is not None
    content = path.read_bytes()[SIZE:]
    for name, key in (("0" * 32, keeping._secret()), (path.name, b"")):
        (path.parent / name).write_bytes(keeping._sum(path.name.encode() + content, key) + content)
        assert kept.get(name) is None


def test_a_secret_that_was_cut_short_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "user_folder", lambda: tmp_path)
    fresh = keeping._secret.__wrapped__
    (tmp_path / "labels.key").write_bytes(b"cut")
    assert len(fresh()) == keeping.SECRET
    assert fresh() == fresh() == (tmp_path / "labels.key").read_bytes()


def test_other_answers_gold_or_method_are_other_labels_and_few_files_stay(tmp_path):
    campaign = played(tmp_path, spans=False, method="ds")
    ledger, before = campaign.ledger, campaign.inputs.plan.aggregate
    labels_of(campaign)
    assert len([*ledger.labels_folder.iterdir()]) == 1
    ledger.set_gold({campaign.ledger.crowd().item_ids[0].as_py(): ["rain"]}, 9_000_000_000_000)
    labels_of(campaign)
    labels_of(campaign, aggregate=before.model_copy(update={"method": "mace"}))
    assert len([*ledger.labels_folder.iterdir()]) == 3
    for prior in range(2, 2 + MOST):
        section = before.model_copy(update={"method": "ibcc", "params": {"max_iter": prior}})
        labels_of(campaign, aggregate=section)
    assert len([*ledger.labels_folder.iterdir()]) == MOST


@pytest.mark.parametrize("in_folder", [False, True])
def test_another_content_of_a_file_that_the_method_names_makes_other_labels(tmp_path, in_folder):
    campaign = played(tmp_path, spans=True, method="bsc-seq+crf")
    folder = campaign.ledger.labels_folder
    file = tmp_path / "named" / "words.toml"
    file.parent.mkdir()
    file.write_text('templates = ["lower"]')
    params = {"templates": str(file)}
    if in_folder:  # as a model's folder, with another file beside those that are read
        params = {"templates": ["lower"], "encoder": str(file.parent)}
    section = campaign.inputs.plan.aggregate.model_copy(update={"params": params})
    labels_of(campaign, aggregate=section)
    labels_of(campaign, aggregate=section)
    assert len([*folder.iterdir()]) == 1
    file.write_text('templates = ["shape"]')
    labels_of(campaign, aggregate=section)
    assert len([*folder.iterdir()]) == 2


def test_where_nothing_can_be_written_labels_are_computed(tmp_path):
    campaign = played(tmp_path, spans=False, method="ds")
    campaign.ledger.labels_folder = tmp_path / "truth.csv"
    assert labels_of(campaign).labels == labels_of(campaign).labels
