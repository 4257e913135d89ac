"""Which items serve as gold questions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import goldspan
from crowd_tables import crowd_of
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import choose_gold_questions
from goldspan.workers.gold_questions import hard_quotas


@pytest.fixture(scope="module")
def labels():
    """Three labels, one of them rare, answered by workers of whom a third err."""
    truth = draw_truth(300, ["a", "b", "c"], shares=[8, 3, 1], seed=1)
    return simulate_crowd(truth, ["flip(0.3) x5"], seed=1)


@pytest.fixture(scope="module")
def spans(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


def test_every_label_gets_the_same_number(labels):
    chosen = choose_gold_questions(labels, 12)
    assert Counter(chosen.stratum) == {"a": 4, "b": 4, "c": 4}
    gold = labels.tagged_by_id()
    assert [gold[name] for name in chosen.item_ids] == [[name] for name in chosen.stratum]
    assert len(set(chosen.item_ids)) == 12


def test_a_label_with_too_few_items_leaves_its_places_to_others():
    rows = "".join(f"{i},w,a,{'b' if i == 3 else 'a'}\n" for i in range(10))
    crowd = goldspan.read_crowd(("task,worker,label,gold\n" + rows).encode())
    assert Counter(choose_gold_questions(crowd, 6).stratum) == {"a": 5, "b": 1}


def test_every_type_of_span_gets_the_same_number_and_so_do_items_without_spans(spans):
    chosen = choose_gold_questions(spans, 20)
    assert set(Counter(chosen.stratum).values()) == {4}
    assert set(chosen.stratum) == {*spans.tagset.types, "no spans"}
    tags = spans.tagged_by_id()
    for name, stratum in zip(chosen.item_ids, chosen.stratum, strict=True):
        kinds = {tag[2:] for tag in tags[name] if tag != "O"}
        assert stratum in kinds if kinds else stratum == "no spans"


def test_an_item_with_several_types_stands_for_the_rarest():
    gold = [["B-X", "B-Y"], ["B-X", "O"], ["B-X", "O"], ["O", "O"]]
    crowd = crowd_of([{"w": tags} for tags in gold], gold=gold)
    chosen = choose_gold_questions(crowd, 4)
    assert dict(zip(chosen.item_ids, chosen.stratum, strict=True))["s0"] == "Y"
    assert Counter(chosen.stratum) == {"X": 2, "Y": 1, "no spans": 1}


def test_tokens_with_plain_labels_are_spread_over_their_labels():
    gold = [["X", "X"], ["X", "Y"], ["X", "X"], ["X", "X"]]
    crowd = crowd_of([{"w": tags} for tags in gold], gold=gold, encoding="PLAIN")
    assert Counter(choose_gold_questions(crowd, 3).stratum) == {"X": 2, "Y": 1}


@pytest.mark.realdata
def test_questions_of_the_crowd_of_paper_000_are_of_all_kinds_and_documents(data):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    chosen = choose_gold_questions(crowd, 50)
    assert set(Counter(chosen.stratum).values()) == {10}
    assert chosen.is_hard.sum() == 15
    assert len(set(chosen.to_arrow().column("group").to_pylist())) == 50


def test_a_share_of_them_is_hard(labels):
    for hard, n in ((0, 0), (0.3, 4), (0.5, 6)):
        chosen = choose_gold_questions(labels, 12, hard=hard)
        assert chosen.is_hard.sum() == n
    chosen = choose_gold_questions(labels, 12, hard=0.5)
    assert chosen.hardness[chosen.is_hard].min() >= chosen.hardness[~chosen.is_hard].max()
    assert Counter(np.array(chosen.stratum)[chosen.is_hard]) == {"a": 2, "b": 2, "c": 2}


def test_at_most_a_third_is_hard_though_many_are_equally_hard():
    votes = {0: "aaa", 1: "aab"}
    rows = [f"{i},{w},{v},a" for i in range(30) for w, v in zip("uvw", votes[i % 2], strict=True)]
    crowd = goldspan.read_crowd("\n".join(["task,worker,label,gold", *rows]).encode())
    chosen = choose_gold_questions(crowd, 30, hard=1)
    assert chosen.is_hard.sum() == 10
    assert (chosen.hardness[chosen.is_hard] > 0.3).all()
    assert "hard questions missing: 20" in str(chosen)
    others = [
        choose_gold_questions(crowd, 10, hard=1, random_state=seed).item_ids for seed in (1, 1, 2)
    ]
    assert set(others[0]) == set(others[1]) != set(others[2])
    back = crowd.select_items(np.arange(30)[::-1])
    assert set(choose_gold_questions(back, 10, hard=1, random_state=1).item_ids) == set(others[0])


def test_a_result_says_what_is_hard(labels):
    result = goldspan.aggregate(labels, "ds")
    unsure = np.argsort(result.confidence)[-100:]
    confidence = np.ones(labels.n_items, np.float32)
    confidence[unsure] = 0.5
    turned = replace(result, confidence=confidence)
    chosen = choose_gold_questions(labels, 9, hard=1, result=turned)
    assert set(chosen.item) <= set(unsure)


def test_hard_questions_that_cannot_be_had_are_said():
    rows = "".join(f"{i},{w},a,a\n" for i in range(6) for w in "uvw")
    crowd = goldspan.read_crowd(("task,worker,label,gold\n" + rows).encode())
    chosen = choose_gold_questions(crowd, 4, hard=0.5)
    assert chosen.is_hard.sum() == 0
    assert "hard questions missing: 2" in str(chosen)


def test_gold_that_most_answers_contradict_is_pointed_out():
    rows = "".join(f"{i},{w},a,{'b' if i == 2 else 'a'}\n" for i in range(6) for w in "uvw")
    crowd = goldspan.read_crowd(("task,worker,label,gold\n" + rows).encode())
    chosen = choose_gold_questions(crowd, 6)
    (doubtful,) = [r for r in chosen.to_arrow().to_pylist() if "contradict" in r["reason"]]
    assert doubtful["item"] == "2"
    assert "1 whose gold most answers contradict" in str(chosen)


def test_questions_come_from_as_many_documents_as_there_are(spans):
    chosen = choose_gold_questions(spans, 20)
    groups = chosen.to_arrow().column("group").to_pylist()
    assert max(Counter(groups).values()) <= 2
    assert len(set(groups)) >= 16


@pytest.mark.parametrize("seed", range(5))
def test_they_are_never_all_from_one_document(seed):
    gold = [["B-X"], ["B-X"], ["B-Y"], ["B-Y"], ["O"]]
    crowd = crowd_of([{"w": tags} for tags in gold], gold=gold, groups=["d", "d", "d", "d", "e"])
    groups = (
        choose_gold_questions(crowd, 2, random_state=seed).to_arrow().column("group").to_pylist()
    )
    assert set(groups) == {"d", "e"}


def test_gold_from_one_document_of_several_is_refused():
    crowd = crowd_of([{"w": ["B-X"]}] * 3, gold=[["B-X"], ["B-X"], [None]], groups=["d", "d", "e"])
    with pytest.raises(InputError, match="all 2 items with gold are from document 'd'"):
        choose_gold_questions(crowd, 2)
    assert len(choose_gold_questions(crowd, 1)) == 1


def test_the_same_seed_gives_the_same_questions_in_any_order_of_items(labels):
    chosen = choose_gold_questions(labels, 12, random_state=3)
    turned = choose_gold_questions(labels.select_items(np.arange(300)[::-1]), 12, random_state=3)
    assert set(chosen.item_ids) == set(turned.item_ids)
    assert set(chosen.item_ids) != set(choose_gold_questions(labels, 12, random_state=4).item_ids)


def test_items_that_nobody_answered_can_be_chosen():
    chosen = choose_gold_questions(draw_truth(20, 2, seed=1), 6)
    assert np.isnan(chosen.hardness).all()
    assert "nobody answered it yet" in chosen.reasons()[0]
    assert chosen.to_dict()["questions"][0]["hardness"] is None


def test_only_items_with_gold_at_every_token_are_chosen():
    gold = [["B-X", None], ["O", "O"], ["B-X", "O"]]
    crowd = crowd_of([{"w": ["O", "O"]}] * 3, gold=gold)
    assert set(choose_gold_questions(crowd, 2).item_ids) == {"s1", "s2"}
    with pytest.raises(InputError, match="only 2 of 3 items have gold"):
        choose_gold_questions(crowd, 3)


def test_written_questions_are_read_as_gold(labels, spans, tmp_path):
    for crowd, name in ((labels, "control.csv"), (spans, "control.tsv")):
        chosen = choose_gold_questions(crowd, 10)
        assert chosen.write(tmp_path / name) == []
        known = goldspan.read_crowd(goldspan_file(crowd, tmp_path), gold=tmp_path / name)
        tagged = known.tagged_by_id()
        truth = crowd.tagged_by_id()
        assert {i for i, tags in tagged.items() if None not in tags} == set(chosen.item_ids)
        assert all(tagged[name] == truth[name] for name in chosen.item_ids)


def goldspan_file(crowd, folder):
    """Write the answers alone."""
    path = folder / ("answers.csv" if crowd.is_classification else "answers.tsv")
    goldspan.write_crowd(crowd.with_gold(None), path)
    return path


@pytest.mark.parametrize("fixture", ["labels", "spans"])
def test_a_file_that_does_not_suit_is_refused(fixture, request, tmp_path):
    crowd = request.getfixturevalue(fixture)
    name = "x.tsv" if crowd.is_classification else "x.csv"
    with pytest.raises(InputError, match="write gold questions that are"):
        choose_gold_questions(crowd, 3).write(tmp_path / name)


def test_wishes_that_make_no_sense_are_refused(labels, spans):
    for n in (0, 1.5, True):
        with pytest.raises(InputError, match="n must be a whole number"):
            choose_gold_questions(labels, n)
    with pytest.raises(InputError, match="hard must be a share"):
        choose_gold_questions(labels, 3, hard=1.2)
    for seed in (-1, None):
        with pytest.raises(InputError, match="random_state must be a whole number"):
            choose_gold_questions(labels, 3, random_state=seed)
    with pytest.raises(UnknownNameError, match="choose from auto, information"):
        choose_gold_questions(labels, 3, by="worker")
    with pytest.raises(InputError, match="this crowd has no gold"):
        choose_gold_questions(labels.with_gold(None), 3)
    with pytest.raises(InputError, match="the result is of another crowd"):
        choose_gold_questions(labels, 3, result=goldspan.aggregate(spans, "mv-token"))


def test_hard_items_are_shared_out_as_far_as_there_are_any():
    for quota, n_hard, n_easy, total, expected in (
        ([4, 4], [9, 9], [9, 9], 4, [2, 2]),
        ([4, 4], [1, 9], [9, 9], 4, [1, 3]),
        ([4, 4], [1, 1], [9, 9], 4, [1, 1]),
        ([4, 4], [9, 9], [1, 9], 2, [3, 0]),
        ([4, 0], [9, 9], [9, 9], 1, [1, 0]),
    ):
        found = hard_quotas(*map(np.array, (quota, n_hard, n_easy)), total)
        assert found.tolist() == expected


def test_by_information_takes_documents_with_most_doubt_per_token_and_needs_no_gold(tmp_path):
    rows = ["doc\tsent\ttoken\tgold\tw1\tw2"]
    for doc, differ in (("sure", 0), ("doubtful", 2), ("known", 2)):
        for sent in range(3):
            for token in range(20):
                other = "B-X" if token < differ else "O"
                rows.append("\t".join([doc, str(sent), "a", "O" if doc == "known" else "?", "O",
                                       other]))  # fmt: skip
    crowd = goldspan.read_crowd("\n".join(rows).encode())
    votes = goldspan.aggregate(crowd, "mv-token")
    found = choose_gold_questions(crowd, 4, by="information", result=votes)
    groups = found.to_arrow()["group"].to_pylist()
    assert groups == ["doubtful", "doubtful", "doubtful", "sure"]
    assert choose_gold_questions(crowd.with_gold(None), 6, by="information").item.max() < 9
    found.write(tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [(row["item"], row["gold"]) for row in rows] == [(item, None) for item in found.item_ids]
    with pytest.raises(InputError, match="7 items are asked for, but 6"):
        choose_gold_questions(crowd, 7, by="information")
