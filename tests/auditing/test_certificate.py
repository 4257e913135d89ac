"""The certificate: what is estimated, and files as people make them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from auditing.making import lines, single_labels, span_labels, spans
from goldspan.errors import InputError


@pytest.fixture(scope="module")
def case():
    """Labels, the truth of all items, a plan of 40, and what was found in these."""
    labels, truth = span_labels(120, 1)
    plan = goldspan.draw_audit(labels, 40)
    return labels, truth, plan, {item: truth[item] for item in plan.items}


def filled(labels, checked):
    """Return lines of a file for whoever checks, filled."""
    tokens = dict(zip(labels.item_ids.to_pylist(), labels.tokens_list, strict=True))
    kinds = {item: [tag[2:] for tag in tags] for item, tags in checked.items()}
    return [{"item": k, "tokens": tokens[k], "gold": spans(v)} for k, v in kinds.items()]


@pytest.mark.parametrize("anytime", [False, True])
def test_the_interval_holds_the_truth(anytime):
    labels, truth = span_labels(300, 2)
    real = goldspan.score(labels.with_gold(None).with_gold(_codes(labels, truth)), labels).f1
    held = []
    for seed in range(30):
        plan = goldspan.draw_audit(labels, 40, random_state=seed)
        checked = {item: truth[item] for item in plan.items}
        found = goldspan.audit(labels, checked, plan, anytime=anytime).estimate
        held.append(found.low <= real <= found.high)
        assert found.low < found.value < found.high
    assert sum(held) >= 25


def _codes(labels, truth):
    tags = [tag for item in labels.item_ids.to_pylist() for tag in truth[item]]
    return np.array([labels.tagset.index[tag] for tag in tags], np.int16)


def test_a_certificate_of_all_items_is_the_score():
    labels, truth = span_labels(40, 3)
    found = goldspan.audit(labels, truth)
    real = goldspan.score(labels.with_gold(_codes(labels, truth)), labels)
    assert found.estimates["f1"] == pytest.approx((real.f1,) * 3)
    assert found.estimates["precision"] == pytest.approx((real.micro.precision,) * 3)
    assert found.estimates["recall"] == pytest.approx((real.micro.recall,) * 3)
    assert {kind: one.value for kind, one in found.by_type.items()} == pytest.approx(
        {kind: rates.f1 for kind, rates in real.types.items()}
    )
    mean = np.mean(labels.attributes["confidence"].to_pylist())
    assert found.calibration.value == pytest.approx(mean - found.estimates["items_right"].value)


@pytest.mark.parametrize("anytime", [False, True])
def test_without_a_mistake_the_interval_still_has_a_width(anytime):
    labels, truth = span_labels(120, wrong=0)
    plan = goldspan.draw_audit(labels, 30)
    checked = {item: truth[item] for item in plan.items}
    found = goldspan.audit(labels, checked, plan, anytime=anytime)
    for one in [*found.estimates.values(), *found.by_type.values()]:
        assert one.value > 0.97
        assert 0.3 < one.low < 0.97


def test_an_interval_that_holds_at_every_look_is_wider_and_more_checks_narrow_it(case):
    labels, _, plan, checked = case
    at_once = goldspan.audit(labels, checked, plan)
    always = goldspan.audit(labels, checked, plan, anytime=True)
    narrow = goldspan.audit(labels, checked, plan, level=0.5).estimate
    assert always.estimate.low < at_once.estimate.low < narrow.low
    assert narrow.high < at_once.estimate.high < always.estimate.high
    (first, wide), *_, (last, end) = at_once.history
    assert (first, last, end) == (10, 40, at_once.estimate)
    assert end.high - end.low < wide.high - wide.low


def test_how_many_checks_a_width_takes(case):
    labels, _, plan, checked = case
    found = goldspan.audit(labels, checked, plan)
    width = found.estimate.high - found.estimate.low
    assert found.needed(width) == pytest.approx(40, abs=1)
    sizes = [found.needed(width * share) for share in (0.7, 0.5, 0.3, 0.001)]
    assert 40 < sizes[0] < sizes[1] < sizes[2] <= sizes[3] == 120
    for width in (0, 1, float("nan"), "x"):
        with pytest.raises(InputError, match="width must be a number above 0 and below 1"):
            found.needed(width)
        with pytest.raises(InputError, match="level must be a number above 0 and below 1"):
            goldspan.audit(labels, checked, plan, level=width)


def test_the_measures_of_single_labels():
    rows, truth = single_labels(80)
    plan = goldspan.draw_audit(rows, 60)
    found = goldspan.audit(rows, {item: truth[item] for item in plan.items}, plan)
    assert found.main == "accuracy"
    assert found.by_type.keys() == {"yes", "no"}
    right = np.mean([row["label"] == truth[row["item"]] for row in rows])
    assert found.estimate.low <= right <= found.estimate.high
    table = found.to_pandas()
    assert table["measure"].tolist() == ["accuracy", "f1", "f1"]
    assert table["low"].tolist()[0] == found.estimate.low
    assert json.loads(json.dumps(found.to_dict()))["accuracy"]["value"] == found.estimate.value
    assert f"{100 * found.estimate.value:.1f} %" in found._repr_html_()


def test_drawn_items_that_are_missing_or_in_dispute_widen_both_ends(case):
    labels, _, plan, checked = case
    whole = goldspan.audit(labels, checked, plan)
    own = labels.tagged_by_id()
    wrong = [item for item in plan.items[:-1] if checked[item] != own[item]]
    gone = tuple(item for item in plan.items if item in {wrong[0], *plan.items[3:5]})
    less = {item: tags for item, tags in checked.items() if item not in gone}
    found = goldspan.audit(labels, less, plan)
    assert found.missing == gone
    assert found.estimate.low < whole.estimate.low
    assert found.estimate.high > whole.estimate.high
    assert "3 drawn items not checked although later ones were" in str(found)
    assert goldspan.audit(labels, less, goldspan.draw_audit(labels, 100)).missing == found.missing


def test_a_missing_item_without_labels_may_lack_one(case):
    labels, _, plan, checked = case
    tags = labels.tagged_by_id()
    bare = next(n for n in plan.items if set(tags[n]) == {"O"} and tags[n] == checked[n])
    less = {item: tags for item, tags in checked.items() if item != bare}
    whole, found = (goldspan.audit(labels, one, plan).estimates for one in (checked, less))
    for name in ("f1", "recall", "items_right"):
        assert found[name].low < whole[name].low
        assert found[name].high == pytest.approx(whole[name].high)
    assert found["precision"] == pytest.approx(whole["precision"])


def test_checkers_who_differ_are_shown(case):
    labels, _, plan, checked = case
    rows = [
        {key: value for key, value in row.items() if key != "gold"}
        | {"answers": [{"worker": "ann", "spans": row["gold"]}]}
        for row in filled(labels, checked)
    ]
    rows[0]["answers"].append({"worker": "bob", "spans": spans(["LOC", None, "PER"])})
    rows[1]["answers"].append(rows[1]["answers"][0] | {"worker": "bob"})
    rows[2]["answers"][0]["skipped"] = [[0, 1]]
    rows[2]["answers"][0]["spans"] = []
    rows[3]["answers"].append({"worker": "bob", "spans": [], "skipped": [[0, 6]]})
    rows[4]["gold"] = rows[4]["answers"][0]["spans"]
    rows[4]["answers"][0] = {"worker": "ann", "spans": spans(["LOC"] * 6)}
    found = goldspan.audit(labels, lines(rows), plan)
    right = {item: tags for item, tags in checked.items() if item not in plan.items[:3]}
    assert (
        found.estimates
        == goldspan.audit(labels, right | {plan.items[1]: checked[plan.items[1]]}, plan).estimates
    )
    assert [one.item for one in found.disagreements] == [plan.items[0]]
    tokens = rows[0]["tokens"]
    assert found.disagreements[0].labels["bob"] == [f"{tokens[0]}/B-LOC", f"{tokens[2]}/B-PER"]
    assert found.missing == (plan.items[2],)
    assert f"checkers differ on {plan.items[0]}: ann: " in str(found)


@pytest.mark.parametrize("single", [False, True])
def test_several_files_are_parts_or_checkers(tmp_path, single):
    labels, truth = single_labels(60) if single else span_labels(60)
    plan = goldspan.draw_audit(labels, 30)
    rows = [{"item": item, "tokens": [item], "gold": truth[item]} for item in plan.items]
    if not single:
        rows = filled(labels, {item: truth[item] for item in plan.items})
    for name, own in (("a", rows[:20]), ("b", rows[15:])):
        (tmp_path / name).write_bytes(lines(own))
    files = [tmp_path / "a", tmp_path / "b"]
    assert goldspan.audit(labels, files, plan).estimates == (
        goldspan.audit(labels, lines(rows), plan).estimates
    )
    rows[16]["gold"] = "other" if single else spans(["LOC"] * 6)
    files[1].write_bytes(lines(rows[15:]))
    (found,) = goldspan.audit(labels, files, plan).disagreements
    assert found.item == plan.items[16]
    assert found.labels.keys() == {*map(str, files)}


def test_answers_that_count_as_checks_are_told_with_who_gave_them():
    rows, truth = single_labels(60)
    plan = goldspan.draw_audit(rows, 30)
    told = [{"task": i, "worker": who, "label": truth[i]} for i in plan.items for who in "ab"]
    found = goldspan.audit(rows, told, plan)
    assert "checked by 'a', 'b' (2 people): if their answers made the labels, the" in str(found)
    found = goldspan.audit(goldspan.aggregate(told, "mv-token"), told)
    assert "checked by 'a', 'b' (2 people): their answers made the labels, and the" in str(found)


def test_types_with_few_labels_are_named_with_how_many(case):
    labels, _, plan, checked = case
    few = {item: [tag.replace("PER", "ORG") for tag in checked[item]] for item in [*checked][:6]}
    found = goldspan.audit(labels, {**checked, **few}, plan)
    seen = sum("ORG" in tag for tags in few.values() for tag in tags)
    assert seen < 10
    assert f"takes 10 or more labels in the checked items: ORG has {seen}" in str(found)


@pytest.mark.parametrize("form", ["label-studio", "doccano", "prodigy", "brat"])
def test_labels_that_were_written_as_predictions_can_be_audited(tmp_path, form):
    labels, truth = span_labels(40)
    sure = dict(zip(truth, labels.attributes["confidence"].to_pylist(), strict=True))
    bare = replace(labels, attributes=None)
    goldspan.write_crowd(bare, tmp_path / "x", format=form, predicted=sure)
    with pytest.raises(InputError, match="nobody's labels"):
        goldspan.read_crowd(tmp_path / "x", format=form)
    read = goldspan.read_crowd(tmp_path / "x", format=form, predicted=True)
    plan = goldspan.draw_audit(tmp_path / "x", 20, format=form)
    assert read.n_items == len(plan.weights)
    if form != "brat":  # which has other ids and tokens, and no place for confidences
        assert read.tagged_by_id() == labels.tagged_by_id()
        rounded = pa.table({"confidence": [round(one, 4) for one in sure.values()]})
        assert plan.weights == goldspan.draw_audit(replace(bare, attributes=rounded)).weights


def test_items_that_were_not_drawn_do_not_count(case):
    labels, truth, plan, checked = case
    found = goldspan.audit(labels, checked, plan)
    more = goldspan.audit(labels, truth, plan)
    assert more.estimates == found.estimates
    assert "80 checked items not drawn by this plan, and not counted" in str(more)
    with pytest.raises(InputError, match="9 of the drawn items are checked"):
        goldspan.audit(labels, dict([*checked.items()][:9]), plan)
    other = {item: tags for item, tags in truth.items() if item not in checked}
    with pytest.raises(InputError, match="not drawn: is it the right plan"):
        goldspan.audit(labels, other, plan)


def test_other_tokens_and_other_ids_are_placed_by_the_text(case):
    labels, _, plan, checked = case
    expected = goldspan.audit(labels, checked, plan).estimates
    rows = []
    for n, row in enumerate(filled(labels, checked)):
        text, ends = " ".join(row["tokens"]), np.cumsum([len(t) + 1 for t in row["tokens"]])
        found = [
            [int(ends[s["start"]]) - len(row["tokens"][s["start"]]) - 1, int(ends[s["start"]]) - 1]
            for s in row["gold"]
        ]
        kinds = [s["type"] for s in row["gold"]]
        label = [[*place, kind] for place, kind in zip(found, kinds, strict=True)]
        rows.append({"id": n, "text": text, "label": label})
    while not rows[-1]["label"]:
        rows.pop()
    looked = goldspan.audit(labels, lines(rows), plan)
    assert len(looked.checked) == len(rows) > 30
    if len(rows) == 40:
        assert looked.estimates == expected
    unseen = [{**row, "label": []} for row in rows[25:]]
    found = goldspan.audit(labels, lines(rows[:25] + unseen), plan)
    assert len(found.checked) <= 25  # documents of doccano that nobody looked at
    assert "doccano does not say who looked at the " in str(found)
    rows[4]["text"] = "x" + rows[4]["text"]
    rows = [{**row, "id": plan.items[n]} for n, row in enumerate(rows)]
    with pytest.raises(InputError, match="1 item with another text than the labels"):
        goldspan.audit(labels, lines(rows), plan)


def test_an_item_that_nobody_labelled_is_not_one_without_spans(case):
    labels, _, plan, checked = case
    rows = filled(labels, checked)
    half = [row if n < 20 else {**row, "gold": None} for n, row in enumerate(rows)]
    assert goldspan.audit(labels, lines(half), plan).checked == plan.items[:20]
    bare = [{**row, "gold": None} for row in rows]
    with pytest.raises(InputError, match="nothing is labelled"):
        goldspan.audit(labels, lines(bare), plan)


def test_predictions_of_models_are_not_checks(case):
    labels, _, plan, checked = case
    tasks = []
    for n, row in enumerate(filled(labels, checked)):
        text = " ".join(row["tokens"])
        data = {"item": row["item"], "text": text, "tokens": row["tokens"]}
        region = {
            "type": "labels", "from_name": "label", "to_name": "text",
            "value": {"start": 0, "end": len(row["tokens"][0]), "labels": ["PER"]},
        }  # fmt: skip
        by = [{"completed_by": 1, "result": [region] * (n == 0)}] if n < 20 else []
        tasks.append(
            {"data": data, "annotations": by, "predictions": [{"model_version": "m", "result": []}]}
        )
    found = goldspan.audit(labels, json.dumps(tasks).encode(), plan)
    assert found.checked == plan.items[:20]
    assert not found.disagreements
    assert "predictions of models are not checks" in str(found)


def test_labels_that_changed_are_told_from_those_that_are_not_there(case):
    labels, truth, plan, checked = case
    better = labels.with_gold(_codes(labels, truth))
    assert "have changed since the draw" in str(goldspan.audit(better, checked, plan))
    assert goldspan.audit(labels, checked, plan).notes == ()
    with pytest.raises(InputError, match=r"drawn items? without labels"):
        goldspan.audit(labels.select_items(np.arange(60)), checked, plan)
    half = labels.select_items(np.arange(60))
    few = goldspan.draw_audit(half, 20)
    found = goldspan.audit(labels, checked := {item: truth[item] for item in few.items}, few)
    assert found.notes == ("60 items labelled since the draw and not covered: draw again",)
    assert found.estimates == goldspan.audit(half, checked, few).estimates


def test_a_name_that_only_the_checked_items_have_is_told(case):
    labels, _, plan, checked = case
    lower = {
        k: [tag if tag == "O" else "B-" + tag[2:].lower() for tag in v] for k, v in checked.items()
    }
    found = goldspan.audit(labels, lines(filled(labels, lower)), plan)
    assert "only the checked items have loc, per: are all names spelled alike?" in str(found)


def test_labels_that_checked_items_helped_to_make_are_judged_without_them():
    """A method that repeats what is known and else says nothing right has no right label."""
    labels, truth = span_labels(120, 1)
    plan = goldspan.draw_audit(labels, 40)
    checked = {item: truth[item] for item in plan.items}
    better = labels.with_gold(_codes(labels, {**labels.tagged_by_id(), **checked}))
    seen = []

    def refit(known):
        seen.append({*known.item_ids.to_pylist()})
        outside = {item: ["O"] * len(tags) for item, tags in labels.tagged_by_id().items()}
        return labels.with_gold(_codes(labels, {**outside, **known.tagged_by_id()}))

    too_good = goldspan.audit(better, checked, plan)
    found = goldspan.audit(better, checked, plan, refit=refit)
    assert "the result is too good" in "\n".join(too_good.notes)
    assert found.estimates["recall"].value < 0.05
    assert too_good.estimates["recall"].value > 0.5
    assert len(seen) == 5
    assert {*plan.items} == {item for kept in seen for item in kept}
    assert sorted(len({*plan.items} - kept) for kept in seen) == [8] * 5
