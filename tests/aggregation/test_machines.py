"""Models among the workers: their answers count, and teach nobody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from goldspan.aggregation import aggregate
from goldspan.aggregation.judge import Choice
from goldspan.aggregation.machines import SMOOTH, STRENGTH, evidence, models_of, split
from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from goldspan.tagger import CRF
from goldspan.workers.redundancy import score_of

LINES = b"""token\tann\tbob\tbot
Ann\tB-PER\tB-PER\tB-PER
met\tO\tO\tO
Bo\tB-PER\tO\tB-LOC

Oslo\tB-LOC\tB-LOC\tO
is\tO\tO\tO

Rome\tO\tB-LOC\tB-LOC
"""


@pytest.fixture(scope="module")
def crowd():
    return read_crowd(LINES)


def test_people_and_models_are_told_apart(crowd):
    people, models = split(crowd, ["bot"])
    assert len(people.latest) == 6
    assert len(models.latest) == 3
    assert people.worker_ids.equals(crowd.worker_ids)
    assert models.token_of.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("models", [[], ["eve"], ["ann", "bob", "bot"]])
def test_without_people_or_models_everybody_teaches(crowd, models):
    people, others = split(crowd, models)
    assert people is crowd
    assert others is None


def test_models_are_known_by_the_facts_of_a_crowd(crowd):
    known = replace(crowd, worker_facts={"bot": {"kind": "llm"}, "ann": {"kind": "people"}})
    assert models_of(known, None) == ["bot"]
    assert models_of(known, []) == []
    assert models_of(known, ["ann"]) == ["ann"]
    assert models_of(known, "bot, ann") == ["ann", "bot"]
    assert models_of(crowd, None) == []


def test_the_evidence_is_that_of_confusions_given_the_label_before(crowd):
    _, models = split(crowd, ["bot"])
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(len(crowd.tagset.tags)), crowd.n_tokens)
    found = evidence(models, probs)
    tags, n = crowd.tagset.tags, len(crowd.tagset.tags)
    said = [tags.index(tag) for tag in ("B-PER", "O", "B-LOC", "O", "O", "B-LOC")]
    before = [tags.index("O"), said[0], said[1], tags.index("O"), said[3], tags.index("O")]
    for token in range(6):
        for truth in range(n):
            plain = [
                sum(probs[i, truth] for i in range(6) if said[i] == s) + SMOOTH + (s == truth)
                for s in range(n)
            ]
            mean = np.array(plain) / sum(plain)
            own = [
                sum(
                    probs[i, truth] for i in range(6) if said[i] == s and before[i] == before[token]
                )
                for s in range(n)
            ]
            row = np.array(own) + STRENGTH * mean
            assert found[token, truth] == pytest.approx(np.log(row[said[token]] / row.sum()))


def test_where_people_answered_few_items_everybody_teaches(joined):
    people, crowd = joined
    few = people.latest.item < 20
    own = crowd.latest.worker == people.n_workers
    kept = np.flatnonzero(own | (crowd.latest.item < 20))
    assert few.any()
    cut = replace(crowd, answers=crowd.latest.take(kept))
    assert split(cut, ["bot"])[1] is None
    result = aggregate(cut.with_gold(None), "auto")
    assert any("models teach like people" in note for note in result.notes)


def test_a_choice_without_models_does_not_silence_them(joined):
    people, crowd = joined
    before = aggregate(people.with_gold(None), "auto")
    after = aggregate(crowd.with_gold(None), "auto", start=before)
    assert after.memory.models == ("bot",)
    assert any("teach nobody" in note for note in after.notes)


@pytest.mark.parametrize("given", [7, [3]])
def test_models_that_are_no_ids_are_refused(crowd, given):
    with pytest.raises(InputError, match="models must be ids"):
        aggregate(crowd, "auto", models=given)


def test_for_single_labels_it_is_said_that_models_count_like_people():
    labels = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,bot,y\n2,a,y\n2,b,y\n2,bot,y\n")
    told = aggregate(labels, "auto", models=["bot"]).notes
    assert any("models count like people" in note for note in told)
    assert not any("models" in note for note in aggregate(labels, "auto").notes)


def test_a_model_that_is_nobody_is_refused(crowd):
    with pytest.raises(InputError, match="eve"):
        models_of(crowd, ["eve"])


def test_an_item_without_tokens_is_passed_over(crowd):
    _, models = split(crowd, ["bot"])
    last = models.latest
    empty = type(last)(
        np.append(last.item, np.int32(2)), np.append(last.worker, last.worker[:1]),
        np.append(last.offset, last.offset[-1]), last.codes, np.append(last.attempt, np.int16(1)),
    )  # fmt: skip
    probs = np.full((crowd.n_tokens, len(crowd.tagset.tags)), 0.1)
    assert evidence(replace(models, answers=empty), probs).shape == probs.shape


def test_a_choice_keeps_the_power():
    choice = Choice((), 5, models_power=0.25, models=("bot",))
    assert Choice.of(choice.to_dict()) == choice
    new = {"models_power", "models"}
    old = {key: value for key, value in choice.to_dict().items() if key not in new}
    assert Choice.of(old).models_power == 0
    assert Choice.of(old).models == ()


@pytest.fixture(scope="module")
def joined():
    """The example crowd, and a tagger that learned from forty sentences of its gold."""
    people = read_crowd("examples/crowd.tsv")
    words = people.tokens_list
    gold = people.tagset.decode_complete(people.gold_tagged)
    tagger = CRF().fit(words[:40], gold[:40])
    codes = [people.tagset.index[tag] for row in tagger.predict(words) for tag in row]
    answers = people.latest
    n = people.n_items
    item = np.concatenate([answers.item, np.arange(n, dtype=np.int32)])
    worker = np.concatenate([answers.worker, np.full(n, people.n_workers, np.int32)])
    lengths = np.concatenate([answers.lengths, np.diff(people.offsets)])
    both = type(answers)(
        item, worker, np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([answers.codes, np.array(codes, np.int16)]), np.zeros(len(item), np.int16),
    )  # fmt: skip
    every = pa.array([*people.worker_ids.to_pylist(), "bot"], pa.string())
    order = np.argsort(item, kind="stable")
    crowd = replace(people, answers=both.take(order), worker_ids=every)
    return people, replace(crowd, worker_facts={"bot": {"kind": "tagger"}})


def test_a_weak_model_beside_people_costs_nothing(joined):
    people, crowd = joined
    alone = aggregate(people.with_gold(None), "auto")
    together = aggregate(crowd.with_gold(None), "auto")
    assert any("teach nobody" in note for note in together.notes)
    assert 0 <= together.memory.models_power <= 1
    assert together.crowd.n_workers == people.n_workers + 1
    gold = people.gold
    scores = [score_of(replace(r, crowd=r.crowd.with_gold(gold))) for r in (alone, together)]
    assert scores[1] >= scores[0] - 0.005


def test_what_was_chosen_is_fitted_again_with_models(joined):
    _, crowd = joined
    first = aggregate(crowd.with_gold(None), "auto")
    again = aggregate(crowd.with_gold(None), "auto", start=first)
    assert again.memory.models_power == first.memory.models_power
    assert np.abs(again.token_probs - first.token_probs).mean() < 0.01
