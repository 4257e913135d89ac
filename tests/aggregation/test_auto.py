"""The automatic method: never far from the best of its candidates, and it says what it did."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.auto_spans import BY_VOTES, PLAIN, VOTES, WORDS, Confirmation
from goldspan.aggregation.families import find_families

EXAMPLE = "examples/crowd.tsv"


@pytest.fixture(scope="module")
def crowd():
    return goldspan.read_crowd(EXAMPLE)


@pytest.fixture(scope="module")
def result(crowd):
    return goldspan.aggregate(crowd.with_gold(None), "auto")


@pytest.mark.compiles
def test_it_is_no_worse_than_votes_and_warns_of_nothing(crowd, result):
    found = goldspan.score(crowd, result).f1
    votes = [goldspan.aggregate(crowd, "mv-token", ties=t) for t in ("outside", "inside")]
    assert found >= max(goldspan.score(crowd, one).f1 for one in votes) - 0.005
    assert result.warnings == []


def test_it_says_what_it_tried_and_chose(result):
    names = [one.name for one in result.candidates]
    assert {*PLAIN, *WORDS, *VOTES} <= set(names)
    assert any(name.endswith(BY_VOTES) for name in names)
    assert any(name.endswith("+crf") for name in names)
    weights = [one.weight for one in result.candidates]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert result.candidates[0].name in result.notes[0]
    assert all(one.score < 0 and one.temperature > 0 for one in result.candidates)


def test_gold_is_never_looked_at(crowd, result):
    again = goldspan.aggregate(crowd, "auto")
    assert np.array_equal(again.codes, result.codes)
    assert np.array_equal(again.span_confidence, result.span_confidence)


def test_known_labels_stand_in_the_result(crowd):
    known = np.full(crowd.n_tokens, -1, np.int16)
    inside = np.flatnonzero(crowd.gold_tagged.codes >= 0)[: crowd.n_tokens // 5]
    known[inside] = crowd.gold_tagged.codes[inside]
    found = goldspan.aggregate(
        crowd.with_gold(None), "auto", text="none", gold=crowd.with_gold(known)
    )
    assert (found.codes[inside] == known[inside]).mean() > 0.99


def test_without_text_words_do_not_matter(crowd):
    found = goldspan.aggregate(crowd.with_gold(None), "auto", text="none")
    assert not any("+crf" in one.name or "+words" in one.name for one in found.candidates)


def test_a_single_answer_per_item_cannot_be_judged_and_a_prior_decides(crowd):
    from dataclasses import replace

    answers = crowd.latest
    first = np.concatenate([[True], answers.item[1:] != answers.item[:-1]])
    alone = replace(crowd.with_gold(None), answers=answers.take(first))
    found = goldspan.aggregate(alone, "auto", rounds=1)
    assert "nothing could be judged" in found.notes[0]
    votes = goldspan.aggregate(alone, "mv-token")
    assert goldspan.score(crowd, found).f1 >= goldspan.score(crowd, votes).f1 - 0.005


@pytest.mark.parametrize("n_items", [1, 2, 5])
def test_a_few_items_suffice(crowd, n_items):
    few = crowd.with_gold(None).select_items(np.arange(n_items))
    found = goldspan.aggregate(few, "auto", rounds=1)
    assert (found.codes >= 0).all()


def test_progress_is_told_and_never_passes_the_total(crowd):
    seen = []
    few = crowd.with_gold(None).select_items(np.arange(20))
    goldspan.aggregate(few, "auto", rounds=2, progress=lambda *told: seen.append(told))
    assert seen
    assert all(0 < done <= total and left >= 0 for done, total, _, left in seen)


def test_its_confidences_can_be_calibrated_and_the_labels_stay(crowd, result):
    from goldspan.aggregation import calibrate
    from goldspan.aggregation.reliability import token_cross_entropy

    gold = crowd.gold_tagged.codes
    known = np.arange(crowd.n_items) % 2 == 0
    half = np.where(np.repeat(known, np.diff(crowd.offsets)), gold, -1).astype(np.int16)
    better = calibrate(result, half)
    assert np.array_equal(better.codes, result.codes)
    assert token_cross_entropy(better, half) <= token_cross_entropy(result, half) + 1e-6


def test_single_labels_are_combined_and_no_worse_than_votes():
    from goldspan.simulation import draw_truth, simulate_crowd

    truth = draw_truth(300, ["a", "b", "c"], seed=2)
    team = ["flip(0.2) x4", "flip(0.6) x6", "spammer x2"]
    crowd = simulate_crowd(truth, team, per_item=5, seed=3)
    found = goldspan.aggregate(crowd.with_gold(None), "auto")
    votes = goldspan.aggregate(crowd.with_gold(None), "mv-token")
    assert goldspan.score(crowd, found).accuracy >= goldspan.score(crowd, votes).accuracy - 0.005
    assert found.candidates
    assert found.notes
    assert np.allclose(found.token_probs.sum(axis=1), 1, atol=1e-5)


def _wide(rows, n_workers):
    """Make a crowd of rows (token, labels), an empty row between items."""
    lines = ["token\t" + "\t".join(f"w{n}" for n in range(n_workers))]
    lines += ["\t".join(row) if row else "" for row in rows]
    return goldspan.read_crowd("\n".join(lines).encode(), format="wide")


def test_nothing_but_outside_gives_no_span():
    rows = [
        row for n in range(20) for row in ([f"t{n}", "O", "O", "O"], ["and", "O", "O", "O"], [])
    ]
    found = goldspan.aggregate(_wide(rows, 3), "auto", rounds=1)
    assert (found.codes == found.crowd.tagset.outside).all()
    assert len(found.span_confidence) == 0


def test_a_single_label_that_all_give_stays():
    rows = [row for n in range(20) for row in ([f"t{n}", "B-X", "B-X", "B-X"], [])]
    assert goldspan.aggregate(_wide(rows, 3), "auto", rounds=1).tags == [["B-X"]] * 20


def test_forty_types_and_words_that_say_nothing():
    rng = np.random.default_rng(0)
    rows, truth, is_clear = [], [], []
    for n in range(40):
        true = f"B-T{n}"
        truth.append([true, "O"])
        said = [true if rng.random() < 0.8 else "O" for _ in range(4)]
        is_clear.append(sum(tag == true for tag in said) > 2)
        rows += [["_", *said], ["_", "O", "O", "O", "O"], []]
    found = goldspan.aggregate(_wide(rows, 4), "auto", rounds=1)
    right = np.array([a == b for a, b in zip(found.tags, truth, strict=True)])
    assert right[is_clear].all()  # what half of them gave of a type that occurs once is doubtful
    assert sum(is_clear) > 20


def test_one_long_document_is_judged_by_its_labels():
    rng = np.random.default_rng(1)
    rows = []
    for n in range(300):
        true = "B-X" if n % 7 == 0 else "O"
        said = [("O" if true != "O" else "B-X") if rng.random() < 0.1 else true for _ in range(4)]
        rows.append([f"x{n % 14}" if true != "O" else f"w{rng.integers(20)}", *said])
    found = goldspan.aggregate(_wide(rows, 4), "auto")
    right = np.arange(300) % 7 == 0
    assert ((found.codes != found.crowd.tagset.outside) == right).mean() >= 0.99
    assert all(one.is_judged for one in found.candidates)


def test_where_little_can_be_hidden_the_mean_of_all_methods_decides(crowd):
    few = crowd.with_gold(None).select_items(np.arange(12))
    found = goldspan.aggregate(few, "auto", rounds=1)
    confirmation = Confirmation.from_numbers(found.memory.confirmation, len(found.candidates))
    many = goldspan.aggregate(crowd.with_gold(None), "auto", rounds=1)
    more = Confirmation.from_numbers(many.memory.confirmation, len(many.candidates))
    assert 0 < np.abs(confirmation.weights).sum() < np.abs(more.weights).sum()


def test_a_span_that_one_of_two_workers_gave_is_kept_in_a_small_crowd():
    rng = np.random.default_rng(3)
    rows = []
    for n in range(60):
        truth = ["B-X" if rng.random() < 0.2 else "O" for _ in range(8)]
        for who in rng.choice(5, size=2, replace=False):
            rows += [
                f"{n},{place},w{n}x{place},{who},{'O' if rng.random() < 0.4 else tag}"
                for place, tag in enumerate(truth)
            ]
    crowd = goldspan.read_crowd(("item,position,token,worker,label\n" + "\n".join(rows)).encode())
    given = goldspan.aggregate(crowd, "mv-token", ties="inside").codes
    assert np.array_equal(goldspan.aggregate(crowd, "auto").codes, given)


def test_copies_of_a_worker_change_next_to_nothing_of_single_labels():
    from goldspan.simulation import draw_truth, simulate_crowd

    truth = draw_truth(300, ["a", "b", "c"], seed=2)
    crowd = simulate_crowd(truth, ["flip(0.25) x6", "w0=flip(0.5)"], seed=3)
    table = crowd.to_pandas()[["item", "worker", "label"]]
    own = table[table.worker == "w0"]
    rows = table.to_dict("records")
    alone = goldspan.aggregate(crowd.with_gold(None), "auto")
    for n in (1, 2, 4):
        copies = [row for k in range(n) for row in own.assign(worker=f"copy{k}").to_dict("records")]
        more = goldspan.read_crowd([*rows, *copies])
        found = goldspan.aggregate(more, "auto")
        assert found.families is not None
        assert set(found.families.names()) == {"w0", *(f"copy{k}" for k in range(n))}
        assert np.mean(np.array(found.labels) != np.array(alone.labels)) < 0.02
        given = dict.fromkeys(found.families.names(), "one")
        known = goldspan.aggregate(more, "auto", families=given)
        assert np.mean(np.array(known.labels) != np.array(alone.labels)) < 0.02


def test_a_minority_is_believed_to_err_together_if_hidden_answers_say_so_clearly():
    from studies.purity.simulated import family_labels

    crowd = family_labels(0.6, size=3)
    found = goldspan.aggregate(crowd.with_gold(None), "auto")
    assert found.families is not None
    assert set(found.families.names()) == {"family1", "family2", "family3"}
    none = goldspan.aggregate(crowd.with_gold(None), "auto", families="none")
    assert goldspan.score(crowd, found).accuracy > goldspan.score(crowd, none).accuracy + 0.02
    assert len(found.candidates) == len(none.candidates)


def test_experts_are_no_family_although_they_agree_beyond_the_others():
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=240)
    is_hard = rng.random(240) < 0.4
    rows = []
    for w in range(40):
        said = truth if w < 10 else np.where(is_hard, 1 - truth, truth)  # a common misconception
        given = np.where(rng.random(240) < (0.88 if w < 10 else 0.75), said, 1 - said)
        rows += [{"task": i, "worker": f"w{w:02d}", "label": "xy"[x]} for i, x in enumerate(given)]
    crowd = goldspan.read_crowd(rows)
    assert find_families(crowd)
    found = goldspan.aggregate(crowd, "auto")
    none = goldspan.aggregate(crowd, "auto", families="none")
    gold = np.array(list("xy"))[truth]
    right = [np.mean(np.array(one.labels) == gold) for one in (found, none)]
    assert right[0] >= right[1] - 0.005
