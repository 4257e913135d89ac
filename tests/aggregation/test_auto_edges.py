"""`auto` at the edges: plain tags, items without answers, known truth, families, one document."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.auto_labels import MOST_FOLDS, SHARE, combine_labels
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.documents import find_missed
from goldspan.aggregation.families import Families, find_families, given_families
from goldspan.aggregation.judge import LOOK_AT, TEMPERATURES, Judge, hold_out
from goldspan.aggregation.mixture import HALF, Mixture, posterior_of_labels
from goldspan.crowd import CrowdBuilder

WORDS = ["x1", "Ann", "x2", "x3", "Rome", "x4"]
TRUTH = ["O", "B-PER", "O", "O", "B-LOC", "O"]


def names(n_items=16, n_workers=3, *, miss=0.25, answered=None, seed=0, words=WORDS):
    """Make sentences with a person and a place, which every worker misses now and then."""
    rng = np.random.default_rng(seed)
    builder = CrowdBuilder()
    for n in range(n_items):
        item = builder.add_item(str(n), [*words[:-1], f"y{n}"], gold=TRUTH, group=f"d{n % 4}")
        for w in range(n_workers if answered is None or n in answered else 0):
            tags = [t if t == "O" or rng.random() > miss else "O" for t in TRUTH]
            builder.add_answer(item, f"w{w}", tags)
    return builder.build().with_gold(None)


def votes_of(n_items, n_workers=5, *, n_labels=3, right=0.7, seed=0):
    """Make single labels of workers who are right so often."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_labels, size=n_items)
    given = np.where(
        rng.random((n_workers, n_items)) < right, truth, rng.integers(n_labels, size=n_items)
    )
    rows = [
        {"task": f"q{i:03d}", "worker": f"w{w:02d}", "label": f"l{given[w, i]}"}
        for i in range(n_items)
        for w in range(n_workers)
    ]
    return rows, truth


# --------------------------------------------------------------------------------------------------
# Plain tag sets: no spans, though the tokens have words.


@pytest.mark.parametrize("method", ["auto", "bsc-seq+crf"])
def test_parts_of_speech_have_no_places_that_all_missed(method):
    rng = np.random.default_rng(0)
    tags = ["NN", "VB", "DT"]
    lines = ["token\ta\tb\tc"]
    for _ in range(8):
        for i in range(6):
            said = [tags[i % 3] if rng.random() < 0.8 else "NN" for _ in "abc"]
            lines.append("\t".join([f"tok{i}", *said]))
        lines.append("")
    crowd = goldspan.read_crowd("\n".join(lines).encode())
    assert crowd.tagset.rules.is_plain
    found = goldspan.aggregate(crowd, method, rounds=1)
    assert np.mean([item == [*tags, *tags] for item in found.tags]) > 0.7


# --------------------------------------------------------------------------------------------------
# Items that nobody answered.


@pytest.mark.parametrize("text", ["auto", "none"])
def test_items_without_answers_are_labelled_as_a_whole_or_left_open(text):
    crowd = names(answered=range(1, 14))
    found = goldspan.aggregate(crowd, "auto", rounds=1, text=text)
    sums = np.add.reduceat(found.token_probs.sum(axis=1), crowd.offsets[:-1])
    for n in (0, 14, 15):
        own = found.codes[crowd.offsets[n] : crowd.offsets[n + 1]]
        is_open = (own < 0).all()
        assert is_open or (own >= 0).all()
        assert sums[n] == pytest.approx(0 if is_open else len(own), abs=1e-4)
        assert is_open or text == "auto"
    said = "labelled by their words alone" if (found.codes >= 0).all() else "left open"
    assert f"3 items without answers are {said}" in found.notes
    whole = goldspan.aggregate(names(), "auto", rounds=1, text="none")
    assert not any("without answers" in note for note in whole.notes)


def test_a_span_of_all_parts_that_read_the_words_is_kept_if_they_have_half_of_the_weight():
    crowd = names(answered=range(1, 16))
    by_words = goldspan.aggregate(crowd, "bsc-seq+crf", rounds=1, documents="none").posterior
    blind = posterior_of_labels(
        crowd, goldspan.aggregate(crowd, "mv-token").codes, FitContext().runner
    )
    for weight, is_known in ((HALF + 0.05, True), (HALF - 0.05, False)):
        mixture = Mixture([blind, by_words], np.array([1 - weight, weight]), crowd.tagset)
        found = mixture.marginals()
        own = slice(0, int(crowd.offsets[1]))
        alone = by_words.marginals()
        if not is_known:
            assert (found.codes[own] == -1).all()
            assert not found.probs[own].any()
            assert not mixture.alternatives(0)
            continue
        assert found.codes[own].tolist() == alone.codes[own].tolist()
        assert np.allclose(found.probs[own], alone.probs[own], atol=1e-6)
        for one, other in zip(
            mixture.alternatives(0, 0.05), by_words.alternatives(0, 0.05), strict=True
        ):
            assert one[:3] == other[:3]
            assert one.confidence == pytest.approx(other.confidence)
        there = crowd.offsets[1]
        assert np.allclose(found.probs[there:].sum(axis=1), 1, atol=1e-5)


# --------------------------------------------------------------------------------------------------
# Known truth.


@pytest.mark.parametrize("text", ["auto", "none"])
def test_known_truth_is_kept_whatever_the_workers_said(text):
    crowd = names(n_items=12)
    known = np.full(crowd.n_tokens, -1, np.int16)
    index = crowd.tagset.index
    lie = [index[tag] for tag in ("B-LOC", "O", "B-PER", "I-PER", "O", "O")]
    wholly = [0, 4, 8]
    for n in wholly:
        known[crowd.offsets[n] : crowd.offsets[n + 1]] = lie
    known[crowd.offsets[2] + 1] = index["O"]  # a person to all who answered
    known[crowd.offsets[3] + 3] = index["B-PER"]
    found = goldspan.aggregate(
        crowd, "auto", rounds=1, text=text, gold=crowd.with_gold(known.copy())
    )
    there = np.flatnonzero(known >= 0)
    assert found.codes[there].tolist() == known[there].tolist()
    assert found.token_probs[there, known[there]] == pytest.approx(1)
    assert found.confidence[wholly] == pytest.approx(1)
    inside = np.isin(found.span_array.item, wholly)
    assert found.span_confidence[inside] == pytest.approx(1)


def test_places_that_all_missed_are_not_looked_for_where_votes_know_the_truth():
    crowd = names()
    codes = goldspan.aggregate(crowd, "mv-token", ties="inside").codes
    known = np.where(np.repeat(np.arange(crowd.n_items) == 2, len(WORDS)), crowd.tagset.outside, -1)
    known = known.astype(np.int16)
    codes = np.where(known >= 0, known, codes)
    posterior = posterior_of_labels(crowd, codes, FitContext().runner, known)
    assert posterior.marginals().codes.tolist() == codes.tolist()
    missed = find_missed(crowd, posterior, None)
    assert missed is None or (missed.codes[known >= 0] == -1).all()
    probs = posterior.marginals().probs
    assert probs[known >= 0, crowd.tagset.outside] == pytest.approx(1)


# --------------------------------------------------------------------------------------------------
# Families.


def test_a_choice_made_without_doubtful_families_is_gone_on_from_without_them():
    rows, _ = votes_of(40)
    crowd = goldspan.read_crowd(rows)
    found = combine_labels(crowd, FitContext(), 0)
    assert not found.is_bold  # there was one opinion: that nobody errs with anybody
    method = get_aggregator("auto").fit(crowd)
    doubtful = given_families(crowd, {"w00": "a", "w01": "a"})
    again = combine_labels(crowd, FitContext(), 0, [doubtful, None], method.result_.memory)
    assert np.array_equal(again.probs, found.probs)


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_large_family_is_found_wherever_it_stands(place):
    rng = np.random.default_rng(0)
    n_workers, n_copies, n_items = 80, 14, 40
    truth = rng.integers(0, 3, n_items)
    guess = rng.integers(0, 3, (n_workers, n_items))
    given = np.where(rng.random((n_workers, n_items)) < 0.7, truth, guess)
    given[:n_copies] = given[0]
    if place == "last":
        given = given[::-1]
    rows = [
        {"task": f"q{i:02d}", "worker": f"w{w:03d}", "label": f"l{given[w, i]}"}
        for i in range(n_items)
        for w in range(n_workers)
    ]
    copies = range(n_copies) if place == "first" else range(n_workers - n_copies, n_workers)
    found = find_families(goldspan.read_crowd(rows)).names()
    assert set(found) == {f"w{w:03d}" for w in copies}


# --------------------------------------------------------------------------------------------------
# What is hidden, and how sure it makes.


@pytest.mark.parametrize("n_items", [1, 2])
def test_something_is_hidden_for_every_seed(n_items):
    crowd = names(n_items=n_items, n_workers=3)
    for seed in range(20):
        shown, hidden = hold_out(crowd, seed=seed)
        assert len(hidden) >= 1
        assert len(shown.latest) + len(hidden) == len(crowd.latest)
        assert set(shown.latest.item.tolist()) == set(range(n_items))


def test_without_text_no_span_is_added_for_its_words(monkeypatch):
    def no(*_):
        raise AssertionError("words were looked at")

    monkeypatch.setattr("goldspan.aggregation.auto_spans.find_missed", no)
    found = goldspan.aggregate(names(), "auto", rounds=1, text="none")
    assert "words of a span" not in " ".join(found.notes)
    with pytest.raises(AssertionError, match="words were looked at"):
        goldspan.aggregate(names(), "auto", rounds=1)


def test_the_shown_loss_is_that_of_the_hidden_labels_alone():
    rows, _ = votes_of(60, 6, right=0.55)
    crowd = goldspan.read_crowd(rows)
    found = {one.name: one.score for one in goldspan.aggregate(crowd).candidates}
    for method in ("ds", "one-coin"):  # what drift costs is in the weights
        logs = []
        for fold in range(MOST_FOLDS):
            shown, hidden = hold_out(crowd, share=SHARE, seed=fold)
            probs = goldspan.aggregate(shown, method).token_probs.astype(float)
            logs.append(np.log(Judge(shown, hidden).judge(probs).likelihood))
        assert found[method] == pytest.approx(np.concatenate(logs).mean(), abs=1e-6)


def test_the_note_on_single_labels_says_what_was_tried_and_where_to_look():
    rows, _ = votes_of(120, 6, right=0.4)
    found = goldspan.aggregate(rows)
    tried, best, agreement, names = found.notes[0].split("; ")
    assert tried == "tried 9 methods"
    heaviest = found.candidates[0]
    assert best.startswith(f"best: {heaviest.name} ({heaviest.weight:.0%}), ")
    share = int(agreement.removeprefix("the labels of all of them agree on ").partition("%")[0])
    named = names.removeprefix(f"look at these {LOOK_AT} items: ").split(", ")
    assert len(named) == LOOK_AT
    methods = [("wmv-log", {}), ("ds", {}), ("mace", {"n_starts": 1}), ("one-coin", {})]
    each = np.array([goldspan.aggregate(rows, name, **more).codes for name, more in methods])
    is_contested = (each != each[0]).any(axis=0)  # by some of the methods
    assert share <= 100 * (1 - is_contested.mean())
    ids = found.crowd.item_ids.to_pylist()
    sure = dict(zip(ids, found.confidence.tolist(), strict=True))
    contested = [sure[ids[n]] for n in np.flatnonzero(is_contested)]
    assert max(sure[name] for name in named) <= np.sort(contested)[LOOK_AT - 1]
    assert [sure[name] for name in named] == sorted(sure[name] for name in named)


def test_known_items_are_not_named_to_be_looked_at():
    rows, _ = votes_of(40, 6, right=0.4)
    named = goldspan.aggregate(rows).notes[0].partition("items: ")[2].split(", ")
    known = [{"task": name, "label": "l0"} for name in named[:5]]
    note = goldspan.aggregate(rows, gold=known).notes[1]
    assert note.startswith("tried 9 methods")
    assert not set(note.partition("items: ")[2].split(", ")) & set(named[:5])


def test_where_nothing_was_judged_the_score_says_so():
    alone = [row for row in votes_of(12)[0] if row["worker"] == "w00"]
    assert [one.is_judged for one in goldspan.aggregate(alone).candidates] == [False]
    assert all(one.is_judged for one in goldspan.aggregate(votes_of(12)[0]).candidates)


@pytest.fixture
def _first_cut_is_empty(monkeypatch):
    """Let the first choice of answers hide none, and let there be two."""

    def hide(crowd, *, seed=0, **more):
        if seed == 0:
            none = np.zeros(len(crowd.latest), np.bool_)
            return crowd, crowd.latest.take(none)
        return hold_out(crowd, seed=seed, **more)

    for place in ("auto_spans", "auto_labels"):
        monkeypatch.setattr(f"goldspan.aggregation.{place}.hold_out", hide)
    monkeypatch.setattr("goldspan.aggregation.auto_spans.MOST_CUTS", 2)
    monkeypatch.setattr("goldspan.aggregation.auto_labels.MOST_FOLDS", 2)


@pytest.mark.usefixtures("_first_cut_is_empty")
@pytest.mark.parametrize("is_spans", [True, False])
def test_a_cut_that_hid_nothing_has_no_say(is_spans):
    crowd = names() if is_spans else votes_of(30)[0]
    found = goldspan.aggregate(crowd, "auto", rounds=1)
    assert {one.temperature for one in found.candidates} <= set(TEMPERATURES)
    assert is_spans or {one.temperature for one in found.candidates} != {1.0}
    assert all(one.is_judged for one in found.candidates)


# --------------------------------------------------------------------------------------------------
# What is said.


def test_where_everybody_is_of_one_family_nothing_can_be_hidden_and_that_is_said():
    rows, _ = votes_of(20, 3)
    kin = {"w00": "a", "w01": "a", "w02": "a"}
    found = goldspan.aggregate(rows, families=kin)
    assert found.notes[0] == (
        "no item has answers of two workers who err independently: votes decide"
    )
    assert [one.name for one in found.candidates] == ["votes"]
    spans = {f"w{n}": "a" for n in range(3)}
    found = goldspan.aggregate(names(8), "auto", rounds=1, text="none", families=spans)
    assert found.notes[0].startswith("no item has spans and answers of two workers")
    alone = goldspan.aggregate(names(8, n_workers=1), "auto", rounds=1, text="none")
    assert alone.notes[0].startswith("no item has spans and answers of two workers")


def test_of_found_families_a_warning_tells_and_of_given_ones_a_note():
    rows, _ = votes_of(60, 8, right=0.5)
    rows += [{**row, "worker": "copy"} for row in rows if row["worker"] == "w00"]
    found = goldspan.aggregate(rows)
    assert any("copy" in one for one in found.warnings)
    assert not any("err together" in note for note in found.notes)
    given = goldspan.aggregate(rows, families={"w00": "a", "copy": "a"})
    assert not given.warnings
    assert any("err together" in note and "copy" in note for note in given.notes)
    assert goldspan.aggregate(rows, families="none").families is None
    facts = given.summary()["families"]
    assert set(facts) == {"w00", "copy"}
    assert facts["copy"]["family"] == "a"
    assert 0.9 < facts["copy"]["rho"] <= 1
    assert facts["copy"]["effective"] == pytest.approx(2 / (1 + facts["copy"]["rho"]))
    assert "families" not in goldspan.aggregate(rows, families="none").summary()


def test_a_note_on_families_tells_what_was_assumed_and_who_errs_independently():
    ids = pa.array(["a", "b", "c", "d", "e", "f"])
    number, rho = np.array([0, 0, 1, 1, 2, 2]), np.array([0.4, 0.001, 1.0])
    kin = Families(number, rho, ids, {0: "x", 1: "y", 2: "z"}, frozenset({2}))
    assert kin.note == (
        "workers who err together count as fewer: a, b (rho 0.40); e, f (rho 1.00, assumed); "
        "families who err independently count in full: c, d (rho 0.00)"
    )
    assert kin.on(pa.array(["new", "e", "f"])).assumed == {1}
    few, many = votes_of(4, 4)[0], votes_of(200, 6)[0]
    for rows, assumed in ((few, {0}), (many, set())):
        assert given_families(goldspan.read_crowd(rows), {"w00": "x", "w01": "x"}).assumed == (
            assumed
        )


def test_a_choice_that_does_not_suit_is_made_anew_and_that_is_said():
    rows, _ = votes_of(20, 3)
    alone = get_aggregator("auto").fit([row for row in rows if row["worker"] == "w00"])
    choice = alone.result_.memory
    found = get_aggregator("auto").fit_chosen(goldspan.read_crowd(rows), choice).result_
    said = "judged and fitted from the beginning: the earlier choice does not suit"
    assert said in found.notes
    assert len(found.candidates) > 1
    assert said not in alone.update(rows[:20:3]).result_.notes


def test_confusion_matrices_of_very_many_labels_are_left_out_and_that_is_said(monkeypatch):
    rows, _ = votes_of(30, 4)
    assert any(one.name == "ds" for one in goldspan.aggregate(rows).candidates)
    monkeypatch.setattr("goldspan.aggregation.auto_labels.MOST_CELLS", 4 * 3**2 - 1)
    found = goldspan.aggregate(rows)
    assert not any(one.name.startswith("ds") for one in found.candidates)
    assert any(note.startswith("ds was left out: 4 workers with 3 labels") for note in found.notes)
    assert sum(one.weight for one in found.candidates) == pytest.approx(1)


def test_the_judge_of_single_labels_needs_no_table_of_labels_before():
    rows, _ = votes_of(30, 4)
    shown, hidden = hold_out(goldspan.read_crowd(rows))
    assert Judge(shown, hidden)._n_before == 1


def test_a_file_that_names_no_family_is_told_of(tmp_path):
    file = tmp_path / "kin.csv"
    file.write_text("worker,family\n")
    rows, _ = votes_of(6, 3)
    note = f"{file}: the table of families names no family"
    for method in ("auto", "ds", "mv-token"):
        assert note in goldspan.aggregate(rows, method, families=file).notes
        assert not any("names no family" in one for one in goldspan.aggregate(rows, method).notes)
