"""`auto` is the default; it goes on from what it chose before, and warns by what needs no gold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.auto import Auto
from goldspan.aggregation.judge import Choice
from goldspan.simulation import draw_truth, simulate_crowd

EXAMPLE = "examples/crowd.tsv"


@pytest.fixture(scope="module")
def crowd():
    return goldspan.read_crowd(EXAMPLE).with_gold(None).select_items(np.arange(60))


@pytest.fixture(scope="module")
def labels():
    truth = draw_truth(80, ["a", "b", "c"], seed=1)
    return simulate_crowd(truth, ["flip(0.2) x5"], seed=1).with_gold(None)


def first(crowd, n):
    """Return the crowd with the answers to its first items only."""
    return replace(crowd, answers=crowd.latest.take(crowd.latest.item < n))


@pytest.fixture
def unjudged(monkeypatch):
    """Let judging fail."""
    for place in ("auto_spans", "auto_labels"):
        monkeypatch.setattr(f"goldspan.aggregation.{place}.hold_out", None)


def test_it_is_the_default(crowd, labels):
    for one, params in ((crowd, {"text": "none"}), (labels, {})):
        found = goldspan.aggregate(one, **params)
        assert found.method == "auto"
        assert found.candidates
        assert np.array_equal(found.codes, goldspan.aggregate(one, "auto", **params).codes)


def test_few_new_answers_are_taken_in_without_judging_again(crowd, labels, monkeypatch):
    for one, params, n in ((crowd, {"rounds": 2}, 54), (labels, {}, 70)):
        method = get_aggregator("auto", **params).fit(first(one, n))
        chosen, before = method.result_.memory, method.result_
        with monkeypatch.context() as patch:
            for place in ("auto_spans", "auto_labels"):
                patch.setattr(f"goldspan.aggregation.{place}.hold_out", None)
            found = method.update(one).result_
        assert found.memory is chosen
        assert found.candidates == before.candidates
        assert any(f"judged when there were {chosen.n_answers} answers" in n for n in found.notes)
        whole = goldspan.aggregate(one, "auto", **params)
        assert (found.codes == whole.codes).mean() > 0.98


def test_many_new_answers_are_judged_anew(labels):
    method = get_aggregator("auto").fit(first(labels, 40))
    found = method.update(labels).result_
    assert found.memory.n_answers == len(labels.latest)
    assert any("from the beginning" in note for note in found.notes)
    assert np.array_equal(found.token_probs, goldspan.aggregate(labels, "auto").token_probs)


def test_a_start_of_another_method_is_of_no_use_and_that_is_said(labels):
    start = goldspan.aggregate(labels, "ds")
    found = goldspan.aggregate(labels, "auto", start=start)
    assert "fitted from the beginning: the earlier result is of ds" in found.notes


def test_with_a_start_its_method_is_the_default(labels):
    start = goldspan.aggregate(labels)
    assert goldspan.aggregate(labels, start=start).memory is start.memory


@pytest.fixture(scope="module")
def choice(crowd):
    return Auto(rounds=1).fit(crowd).result_.memory


def test_a_choice_can_be_kept_as_json_and_holds_whatever_the_answers_become(
    crowd, choice, unjudged
):
    del unjudged
    kept = Choice.of(json.loads(json.dumps(choice.to_dict())))
    assert kept == choice
    found = Auto(rounds=1).fit_chosen(first(crowd, 30), kept).result_
    assert found.candidates == choice.candidates
    again = Auto(rounds=1).fit_chosen(first(crowd, 30), choice).result_
    assert np.array_equal(found.token_probs, again.token_probs)
    assert np.array_equal(found.span_confidence, again.span_confidence)


def test_a_choice_that_does_not_suit_is_made_anew(crowd, choice):
    method = Auto(text="none").fit_chosen(first(crowd, 30), choice)
    assert not any("+crf" in one.name for one in method.result_.candidates)
    assert method.fit(first(crowd, 30)).result_.memory is not choice
    older = replace(choice, confirmation=())  # kept by an earlier version
    assert Auto(rounds=1).fit_chosen(first(crowd, 30), older).result_.memory.confirmation


def test_it_warns_of_copies_and_of_hardly_any_overlap(labels):
    team = ["flip(0.3) x6"]
    crowd = simulate_crowd(draw_truth(200, ["a", "b", "c"], seed=2), team, seed=2).with_gold(None)
    rows = [
        {"task": item, "worker": worker, "label": label}
        for item, worker, label in crowd_rows(crowd)
    ]
    copies = [{**row, "worker": f"copy{n}"} for row in rows if row["worker"] == "w1" for n in "12"]
    warned = goldspan.aggregate([*rows, *copies]).warnings
    assert any("err together" in one and "w1, copy1, copy2" in one for one in warned)
    assert goldspan.aggregate(rows).warnings == []
    alone = np.concatenate([[True], np.diff(labels.latest.item) != 0])
    alone[labels.latest.item < 3] = True
    thin = replace(labels, answers=labels.latest.take(alone))
    assert "3 of 80 items have answers of two workers" in goldspan.aggregate(thin).warnings[0]


def crowd_rows(crowd):
    """Yield item, worker and label of every answer."""
    answers, items = crowd.latest, crowd.item_ids.to_pylist()
    workers, tags = crowd.worker_ids.to_pylist(), crowd.tagset.tags
    for item, worker, code in zip(answers.item, answers.worker, answers.codes, strict=True):
        yield items[item], workers[worker], tags[code]


def test_words_of_a_choice_that_is_used_again_are_of_the_new_answers():
    labels = [f"{i},w{k},{'xy'[(i * 7 + k * 3) % 5 > 2]}" for i in range(40) for k in range(4)]
    few, more = (
        goldspan.read_crowd("\n".join(["task,worker,label", *labels[: 4 * n]]).encode())
        for n in (36, 40)
    )
    first = goldspan.aggregate(few)
    again = goldspan.aggregate(more, start=first)
    assert again.memory is first.memory
    assert ", 39, " in again.notes[-1]
    assert ", 39, " not in first.notes[-1]
