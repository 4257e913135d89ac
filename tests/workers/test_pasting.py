"""Who pastes a model's answers is found by its mistakes; who is right as it is is left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.crowd import read_crowd
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import find_quality_flags, review_workers
from goldspan.workers.copying import PASTING

PEOPLE = {f"w{n}": "flip(0.15)" for n in range(8)}


def parted(crowd, *models):
    """The people of a crowd, and its models."""
    inside = np.isin(np.array(crowd.worker_ids.to_pylist()), models)
    people, silent = (crowd.select_workers(np.flatnonzero(one)) for one in (~inside, inside))
    return people, silent.with_gold(None)


def thinned(crowd, per_item, seed=0):
    """A crowd with so many answers of every item."""
    answers, rng = crowd.answers, np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(answers)), answers.item))
    rank = np.arange(len(answers)) - np.searchsorted(answers.item[order], answers.item[order])
    return replace(crowd, answers=answers.take(np.sort(order[rank < per_item])))


def flags(people, silent, **more):
    result = goldspan.aggregate(people, "mv-token")
    return find_quality_flags(people, kinds=PASTING, probes=silent, result=result, **more)


@pytest.mark.parametrize("has_gold", [True, False])
@pytest.mark.parametrize(("n_labels", "share"), [(4, 1.0), (4, 0.6), (2, 1.0)])
def test_who_pastes_is_found_and_nobody_else(n_labels, share, has_gold):
    found, others = 0, set()
    for seed in range(4):
        truth = draw_truth(600, n_labels, seed=seed)
        team = {**PEOPLE, "gpt": "flip(0.15)", "eve": f"flip(0.15) + copier(gpt, {share})"}
        people, silent = parted(simulate_crowd(truth, team, seed=seed), "gpt")
        people = thinned(people if has_gold else people.with_gold(None), 3)
        marked = {flag.worker for flag in flags(people, silent)}
        found += "eve" in marked
        others |= marked - {"eve"}
    assert found == 4
    assert others == set()


@pytest.mark.parametrize("has_gold", [True, False])
@pytest.mark.parametrize(("person", "model"), [("flip(0.02)", "flip(0.02)"),
                                               ("flip(0.15)", "flip(0.1)"),
                                               ("flip(0.3)", "flip(0.3)")])  # fmt: skip
def test_people_who_agree_with_it_because_both_are_right_are_left_alone(person, model, has_gold):
    marked = 0
    for seed in range(4):
        team = {f"w{n}": person for n in range(9)} | {"gpt": model}
        crowd = simulate_crowd(draw_truth(500, 3, seed=seed), team, seed=seed)
        people, silent = parted(crowd, "gpt")
        people = thinned(people if has_gold else people.with_gold(None), 3)
        marked += len(flags(people, silent))
    assert marked == 0


def test_hard_items_on_which_all_err_alike_are_no_copies():
    rng = np.random.default_rng(3)
    rows = ["task,worker,label,gold"]
    hard = rng.random(300) < 0.3
    for n in range(300):
        for worker in (*PEOPLE, "gpt"):
            wrong = rng.random() < (0.7 if hard[n] else 0.08)
            label = "x" if not wrong else "y" if hard[n] else rng.choice(["y", "z"])
            rows.append(f"{n},{worker},{label},x")
    people, silent = parted(read_crowd("\n".join(rows).encode()), "gpt")
    assert flags(people, silent) == []
    assert flags(people.with_gold(None), silent) == []


def test_the_sentence_counts_what_is_there():
    team = {**PEOPLE, "gpt": "flip(0.2)", "eve": "flip(0.1) + copier(gpt, 0.8)"}
    crowd = simulate_crowd(draw_truth(200, 3, seed=5), team, seed=5)
    people, silent = parted(crowd, "gpt")
    (flag,) = flags(people, silent)
    table = np.full((crowd.n_items, crowd.n_workers), -1)
    table[crowd.answers.item, crowd.answers.worker] = crowd.answers.codes
    gpt, eve = (table[:, crowd.worker_index(name)] for name in ("gpt", "eve"))
    wrong = gpt != crowd.gold
    equal = int((wrong & (eve == gpt)).sum())
    assert (flag.worker, flag.kind) == ("eve", PASTING)
    assert flag.evidence.startswith(
        f"Did eve use gpt? They gave {equal} of the {wrong.sum()} answers of gpt that known labels "
        f"contradict; people who did not would give about {flag.numbers['expected']:.0f}. "
    )
    first = crowd.item_ids.take(np.flatnonzero(wrong & (eve == gpt))[:3]).to_pylist()
    assert flag.evidence.endswith(f" is pasted. Compare items {', '.join(first)}.")
    assert flag.numbers["other"] == "gpt"
    assert flag.numbers["pasted"] == pytest.approx(0.8, abs=0.15)
    assert 0 < flag.p_value < 0.05


def test_spans_are_compared_too(root):
    truth = read_crowd(root / "examples" / "crowd.tsv")
    habit = "misses(0.15) + late(0.05)"
    team = {f"w{n}": habit for n in range(5)}
    team |= {"gpt": "misses(0.1) + late(0.2) + wrong_type(0.2)", "eve": "copier(gpt, 1.0)"}
    crowd = simulate_crowd(truth, team, seed=1)
    people, silent = parted(crowd, "gpt")
    for one in (people, people.with_gold(None)):
        (flag,) = flags(one, silent)
        assert flag.worker == "eve"
        assert " spans of gpt that " in flag.evidence
    honest, silent = parted(simulate_crowd(truth, {**team, "eve": habit}, seed=1), "gpt")
    assert flags(honest, silent) == []


def test_items_are_found_by_their_ids_and_the_rest_does_not_matter():
    team = {**PEOPLE, "gpt": "flip(0.3)", "eve": "copier(gpt, 1.0)"}
    people, silent = parted(simulate_crowd(draw_truth(200, 3, seed=5), team, seed=5), "gpt")
    order = np.random.default_rng(0).permutation(200)
    assert flags(people, silent.select_items(order)) == flags(people, silent)
    some = flags(people.select_items(order[:150]), silent)
    assert [flag.worker for flag in some] == ["eve"]


def test_two_models_name_the_one_that_was_pasted():
    team = {**PEOPLE, "one": "flip(0.2)", "two": "flip(0.2)", "eve": "copier(two, 0.9)"}
    people, silent = parted(simulate_crowd(draw_truth(300, 4, seed=6), team, seed=6), "one", "two")
    (flag,) = flags(people, silent)
    assert flag.numbers["other"] == "two"


def test_who_always_says_the_same_pastes_nothing():
    truth = draw_truth(400, ["no", "yes"], shares=[6, 4], seed=3)
    team = {**PEOPLE, "gpt": "spammer(constant, label=no)", "con": "spammer(constant, label=no)"}
    people, silent = parted(simulate_crowd(truth, team, seed=3), "gpt")
    assert flags(people, silent) == []


def test_without_a_probe_there_is_no_flag_and_with_one_reviews_have_it():
    team = {**PEOPLE, "gpt": "flip(0.3)", "eve": "flip(0.05) + copier(gpt, 0.4)"}
    people, silent = parted(simulate_crowd(draw_truth(400, 3, seed=5), team, seed=5), "gpt")
    assert find_quality_flags(people, kinds=PASTING) == []
    found = {one.worker: one for one in review_workers(people, probes=silent).verdicts}
    assert PASTING in {flag.kind for flag in found["eve"].flags}
    assert not any(one.flags for name, one in found.items() if name != "eve")


def test_an_item_that_is_cut_otherwise_is_refused():
    one = read_crowd(b"item,worker,label\n1,a,x\n1,b,y\n")
    other = replace(one, tokens=type(one.tokens).from_arrays([0, 2], ["a", "b"]))
    answers = replace(
        other.answers, offset=np.array([0, 2, 4]), codes=np.array([0, 0, 1, 1], np.int16)
    )
    with pytest.raises(InputError, match="item 1 has 1 tokens, and 2 where models answered it"):
        find_quality_flags(one, kinds=PASTING, probes=replace(other, answers=answers))
