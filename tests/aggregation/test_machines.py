"""Models among the workers: their answers count, and teach nobody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from goldspan.aggregation import aggregate
from goldspan.aggregation.judge import Choice
from goldspan.aggregation.machines import (
    SMOOTH,
    STRENGTH,
    beside_labels,
    evidence,
    models_of,
    split,
)
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
    assert any("models are fitted like people" in note for note in result.notes)


def test_a_choice_without_models_does_not_silence_them(joined, fitted):
    after = aggregate(joined[1].with_gold(None), "auto", start=fitted[0])
    assert after.memory.models == ("bot",)
    assert any("are not used to fit" in note for note in after.notes)


@pytest.mark.parametrize("given", [7, [3]])
def test_models_that_are_no_ids_are_refused(crowd, given):
    with pytest.raises(InputError, match="models must be ids"):
        aggregate(crowd, "auto", models=given)


def single(n=240, seed=1):
    """Two people of three answer each item; a model errs where they find it hard."""
    rng = np.random.default_rng(seed)
    truth, is_hard = rng.integers(0, 3, n), rng.random(n) < 0.4
    rows = []
    for item in range(n):
        for who in rng.permutation(["ann", "ben", "cy"])[:2]:
            right = rng.random() < (0.6 if is_hard[item] else 0.95)
            rows.append((item, who, truth[item] if right else rng.integers(0, 3)))
        rows.append((item, "bot", (truth[item] + 1) % 3 if is_hard[item] else truth[item]))
    lines = [f"{item},{who},{['no', 'yes', 'both'][label]}" for item, who, label in rows]
    return read_crowd("\n".join(["task,worker,label", *lines]).encode()), truth


def right_of(result, truth):
    place = [int(name) for name in result.crowd.item_ids.to_pylist()]
    names = np.array(["no", "yes", "both"])[truth[place]]
    return float((np.array(result.crowd.tagset.tags)[result.codes] == names).mean())


def test_a_model_that_errs_where_people_err_costs_nothing_in_single_labels():
    above_people, above_together = 0.0, 0.0
    for seed in (2, 3):
        crowd, truth = single(400, seed)
        apart, together = (aggregate(crowd, "auto", models=given) for given in (["bot"], []))
        people = aggregate(split(crowd, ["bot"])[0], "auto")
        assert any("are not used to fit" in note for note in apart.notes)
        assert apart.memory.models == ("bot",)
        right = right_of(apart, truth)
        above_people += right - right_of(people, truth)
        above_together += right - right_of(together, truth)
    assert above_people > 0.02
    assert above_together > 0


def test_what_models_alone_answered_has_their_labels():
    crowd, _ = single()
    is_bot = crowd.latest.worker == crowd.worker_index("bot")
    kept = crowd.latest.take(np.flatnonzero(is_bot | (crowd.latest.item >= 40)))
    result = aggregate(replace(crowd, answers=kept), "auto", models=["bot"])
    assert (result.codes >= 0).all()
    assert 0 < result.token_probs[:40].max(axis=1).mean() < 1


def test_evidence_of_single_labels_is_added_by_bayes():
    rng = np.random.default_rng(4)
    probs, said = rng.dirichlet(np.ones(3), 5), np.log(rng.uniform(0.1, 0.9, (5, 3)))
    probs[3], said[1] = 0, 0
    found = beside_labels(probs, said, 0.5)
    shares = probs.sum(axis=0) + 1
    for item in (0, 2, 4):
        plain = [probs[item, t] * np.exp(said[item, t]) ** 0.5 for t in range(3)]
        assert found[item] == pytest.approx(np.array(plain) / sum(plain))
    assert found[1] == pytest.approx(probs[1])
    alone = shares * np.exp(said[3])
    assert found[3] == pytest.approx(alone / alone.sum())


def test_a_choice_of_single_labels_is_fitted_again_with_models():
    crowd, _ = single()
    first = aggregate(crowd, "auto", models=["bot"])
    again = aggregate(crowd, "auto", models=["bot"], start=first)
    assert again.memory is first.memory
    assert again.token_probs == pytest.approx(first.token_probs)
    other = aggregate(crowd, "auto", models=[], start=first)
    assert other.memory.models == ()


def test_a_model_that_is_nobody_is_refused(crowd):
    with pytest.raises(InputError, match="eve"):
        models_of(crowd, ["eve"])


def test_an_item_without_tokens_is_passed_over(crowd):
    _, models = split(crowd, ["bot"])
    last = models.latest
    answers = type(last)(
        np.append(last.item, np.int32(3)), np.append(last.worker, last.worker[:1]),
        np.append(last.offset, last.offset[-1]), last.codes, np.append(last.attempt, np.int16(0)),
    )  # fmt: skip
    more = replace(
        models,
        item_ids=pa.concat_arrays([models.item_ids, pa.array(["empty"])]),
        tokens=pa.concat_arrays([models.tokens, pa.array([[]], models.tokens.type)]),
        answers=answers,
    )
    probs = np.full((crowd.n_tokens, len(crowd.tagset.tags)), 0.1)
    assert np.array_equal(evidence(more, probs), evidence(models, probs))


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


@pytest.fixture(scope="module")
def fitted(joined):
    """What the people say alone, and with the tagger."""
    return [aggregate(one.with_gold(None), "auto") for one in joined]


def test_a_weak_model_beside_people_costs_nothing(joined, fitted):
    people, (alone, together) = joined[0], fitted
    assert any("are not used to fit" in note for note in together.notes)
    assert 0 <= together.memory.models_power <= 1
    assert together.crowd.n_workers == people.n_workers + 1
    gold = people.gold
    scores = [score_of(replace(r, crowd=r.crowd.with_gold(gold))) for r in (alone, together)]
    assert scores[1] >= scores[0] - 0.005


def test_what_was_chosen_is_fitted_again_with_models(joined, fitted):
    first = fitted[1]
    again = aggregate(joined[1].with_gold(None), "auto", start=first)
    assert again.memory.models_power == first.memory.models_power
    assert np.abs(again.token_probs - first.token_probs).mean() < 0.01
