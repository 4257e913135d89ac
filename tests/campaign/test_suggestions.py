"""Suggestions: who is shown one, what became of it, and what answers after one count."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.tiny import inputs_of, ledger_of, plan_of, write_files
from goldspan.aggregation.families import Families, given_families
from goldspan.campaign import CampaignRecord, read_plan
from goldspan.campaign.judging import Aggregating, judge
from goldspan.campaign.suggestions import (
    Apart,
    anchoring,
    blind_answers,
    difference,
    disagreement,
    is_drawn,
    listed,
    majority,
    spans_of,
    suggested_answers,
    suggestion_for,
    suggestion_rows,
)
from goldspan.campaign.summary import describe_plan
from goldspan.crowd import CrowdBuilder, ReadOptions, read_crowd
from goldspan.crowd.layers import whole_index
from goldspan.errors import FaultsError
from goldspan.spans import Codec, Span
from goldspan.store.facts import keep_suggestion, own_answers, read_suggestion
from goldspan.workers import measure_reliability

RULES = {"id": "rules", "kind": "python", "call": "campaign.rules:weather"}
PEOPLE = {"id": "people", "kind": "people"}
MIXED = {"source": "mixed", "workers": [RULES, PEOPLE], "truth": None}
CODEC = Codec.from_types(["LOC", "PER"])
NOW = 1_700_000_000_000


def faults(**sections):
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(**sections))
    return str(caught.value)


def voting(**sections):
    """A plan whose rule suits votes and probabilities."""
    rule = {"stop": "clear_majority(2)"}
    return read_plan(plan_of(crowd=MIXED, redundancy=rule, **sections))


def plan(**page):
    return read_plan(plan_of(crowd=MIXED, page=page))


# --- the plan


def test_a_plan_without_suggestions_is_what_it_was():
    dumped = read_plan(plan_of(crowd=MIXED)).model_dump(mode="json")
    assert {"suggest", "suggest_share"} & set(dumped["page"]) == set()
    assert plan(suggest="rules").model_dump(mode="json")["page"]["suggest"] == "rules"
    assert plan(suggest="rules").page.shown_share == 0.5
    assert plan(suggest="consensus", suggest_share=0.2).page.shown_share == 0.2


def test_what_will_be_shown_is_told_before(tmp_path):
    write_files(tmp_path)
    page = {"suggest": "rules", "suggest_share": 0.25}
    lines = describe_plan(inputs_of(tmp_path, crowd=MIXED, page=page))
    assert (
        "suggestions: the labels of rules, for 25 % of everybody's texts; the rest is blind"
        in lines
    )


def test_faulty_suggestions_are_told():
    web = {"source": "web", "truth": None, "workers": []}
    assert "page.suggest_share: belongs to page.suggest" in faults(
        crowd=web, page={"suggest_share": 0.3}
    )
    assert "page.suggest: belongs to people in a browser" in faults(page={"suggest": "consensus"})
    said = faults(crowd=MIXED, page={"suggest": "people"})
    assert "that answers at once ('rules'), not 'people'" in said
    assert "page.suggest_share: must be at most 0.9" in faults(
        crowd=MIXED, page={"suggest": "rules", "suggest_share": 1.0}
    )
    single = plan_of(crowd=MIXED, page={"suggest": "rules"}, aggregate={"method": "crf-ma"})
    single["task"] = {"types": ["LOC"]}
    with pytest.raises(FaultsError, match="crf-ma knows no families, so that answers after"):
        read_plan(single)


# --- who is shown what


def test_who_is_shown_one_is_a_function_of_seed_item_and_worker():
    made = plan(suggest="rules", suggest_share=0.3)
    every = [(f"d{n}", worker) for n in range(500) for worker in ("ann", "bob")]
    drawn = [is_drawn(made, *one) for one in every]
    assert 0.26 < np.mean(drawn) < 0.34
    assert drawn == [is_drawn(made, *one) for one in every]
    ann, bob = drawn[::2], drawn[1::2]
    assert 0.05 < np.mean([a and b for a, b in zip(ann, bob, strict=True)]) < 0.14
    # A larger share shows the same ones and more.
    more = [is_drawn(plan(suggest="rules", suggest_share=0.6), *one) for one in every]
    assert all(b for a, b in zip(drawn, more, strict=True) if a)
    other = read_plan(plan_of(crowd=MIXED, seed=4, page={"suggest": "rules"}))
    assert [is_drawn(other, *one) for one in every] != drawn


def test_nothing_is_shown_where_nobody_has_answered():
    made = plan(suggest="rules", suggest_share=0.9)
    one = suggestion_for(made, "d1", "ann", {"bob": ["sun"]})
    assert (one.labels, one.shown) == (None, False)
    assert suggestion_for(plan(), "d1", "ann", {}) is None
    both = [suggestion_for(made, f"d{n}", "ann", {"rules": ["sun"]}) for n in range(50)]
    assert {one.shown for one in both} == {True, False}
    assert all(one.labels == ["sun"] for one in both)


spans = st.lists(
    st.tuples(st.sampled_from(["LOC", "PER"]), st.integers(0, 7), st.integers(1, 3)), max_size=4
).map(
    lambda rows: [
        Span(kind, 2 * n, 2 * n + 1 + (length > 1)) for n, (kind, _, length) in enumerate(rows)
    ]
)


@given(st.lists(st.lists(st.sampled_from(["O", "B-LOC", "I-LOC", "B-PER", None]), min_size=5,
                         max_size=5), max_size=5))  # fmt: skip
def test_a_majority_is_legal_and_of_more_than_half(given_):
    found = majority(given_, CODEC)
    if not given_:
        assert found is None
        return
    had = [set(spans_of(one, CODEC)) for one in given_]
    for span in spans_of(found, CODEC):
        assert 2 * sum(span in one for one in had) > len(given_)
    assert len(found) == 5


def test_single_labels_need_a_majority():
    codec = Codec.from_types(["rain", "sun"], "PLAIN")
    assert majority([["sun"], ["sun"], ["rain"]], codec) == ["sun"]
    assert majority([["sun"], ["rain"]], codec) is None


# --- what became of it


@given(spans, spans)
def test_differences_count_every_suggested_span_once(old, new):
    found = difference(old, new)
    assert found.kept + found.changed + found.removed == len(set(old))
    assert found.kept <= len(set(new))
    assert 0 <= disagreement(old, new) <= 1
    assert disagreement(old, new) == disagreement(new, old)
    assert (disagreement(old, new) == 0) == (set(old) == set(new))
    assert difference(old, old) == (len(set(old)), 0, 0, 0)


# --- families with those who were shown something


def crowd_of(rows):
    return read_crowd([{"item": i, "worker": w, "label": one} for i, w, one in rows])


def test_who_was_shown_something_is_of_the_suggesters_family():
    crowd = crowd_of([(str(n), w, "xy"[n % 2]) for n in range(9) for w in "abmz"])
    none = Families(np.arange(4), np.zeros(4), crowd.worker_ids)
    ids = crowd_of([("0", w, "x") for w in ("a", "b", "m", "z", "a after m")]).worker_ids
    found = none.with_shown(ids, 2, 0.6)
    assert found.number.tolist() == [0, 1, 2, 3, 2]
    assert found.rho.tolist() == [0, 0, 0.6, 0]
    # Of a family that there is, rho is the mean over all pairs: one of 1, two of 0.4.
    kin = given_families(crowd, {"m": "f", "z": "f"})
    assert kin.with_shown(ids, 2, 0.4).rho[2] == pytest.approx((kin.rho[2] + 2 * 0.4) / 3)


def test_a_silent_member_counts_beside_those_whom_it_was_shown_to():
    ids = crowd_of([("0", w, "x") for w in ("a", "b", "c", "d")]).worker_ids
    none = Families(np.arange(2), np.zeros(2), ids.slice(0, 2))
    found = none.with_shown(ids, None, 0.5)
    assert bool(found)
    place, worker = np.array([0, 0, 0, 1, 1]), np.array([0, 2, 3, 1, 3])
    # Two of three members; one of two; who is alone counts in full.
    assert found.weights(place, worker) == pytest.approx([1, 0.5, 0.5, 1, 1 / 1.5])
    again = found.on(ids.take([3, 0]))
    assert again.silent == {0}


# --- a campaign's answers


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Thirty items, a function that errs, and six annotators who follow it seven times in ten."""
    return campaign(tmp_path_factory.mktemp("kept"), "rules")


def campaign(folder, by, follow=0.7, n=30, people=6, wrong=0.3, seed=2):
    write_files(folder, n)
    page = {"suggest": by, "suggest_share": 0.5}
    inputs = inputs_of(folder, crowd=MIXED, page=page, prices=None, budget=None)
    ledger, rng = ledger_of(inputs, folder / "c.sqlite"), np.random.default_rng(seed)
    ledger.add_items(inputs.items(), NOW)
    ledger.open_batch("r1", list(inputs.ids), people + 1, NOW)
    truth = {f"d{i}": "rain" if i % 3 else "sun" for i in range(n)}
    other = {"rain": "sun", "sun": "rain"}
    for item in inputs.ids:
        right = truth[item]
        put(ledger, "rules", item, other[right] if rng.random() < wrong else right)
        for k in range(people):
            worker = f"w{k}"

            def act(entry, worker=worker, item=item):
                had = {one.worker: one.labels for one in own_answers(entry.connection, item)}
                return keep_suggestion(entry, suggestion_for(inputs.plan, item, worker, had))

            one = ledger.transact(NOW, act)
            own = other[right] if rng.random() < 0.2 else right
            is_taken = one.shown and rng.random() < follow
            put(ledger, worker, item, one.labels[0] if is_taken else own)
    return inputs, ledger, truth


def put(ledger, worker, item, label):
    assert ledger.submit(f"{worker} {item}", worker, item, [label], NOW).counts


def test_what_was_decided_once_holds(kept):
    inputs, ledger, _ = kept
    with ledger.database.read() as connection:
        one = read_suggestion(connection, "w1", "d3")
        assert read_suggestion(connection, "w1", "d99") is None
        assert read_suggestion(connection, "eve", "d3") is None
        blind = {row.worker for row in own_answers(connection, "d3")}
    assert one.by == "rules"
    shown = {row["worker"] for row in ledger.records("suggested").values()
             if row["item"] == "d3" and row["shown"]}  # fmt: skip
    assert shown
    assert blind == {"rules", *(f"w{n}" for n in range(6))} - shown
    again = ledger.transact(NOW, lambda e: keep_suggestion(e, one._replace(shown=not one.shown)))
    assert again == one
    assert one.shown == is_drawn(inputs.plan, "d3", "w1")


def test_the_rate_is_estimated_and_told(kept):
    _, ledger, _ = kept
    crowd = ledger.crowd()
    (row,) = suggestion_rows(ledger, crowd)
    assert row["by"] == "rules"
    assert row["low"] < 0.7 < row["high"]
    assert row["assisted"] + row["blind"] == 180
    assert row["workers"] == 6
    assert row["kept"] + row["changed"] == row["assisted"]
    assert row["unchanged"] == row["kept"]
    lines = list(listed(ledger, crowd))
    assert len(lines) == 180
    assert json.loads(json.dumps(lines[0])) == lines[0]
    ledger.record("plan", "plan", {"id": "x", "plan": plan_of(), "versions": {}}, NOW)
    record = CampaignRecord.of(ledger)
    assert [dict(one) for one in record.suggestions] == [row]
    assert record.to_dict()["suggestions"] == (row,)


def test_people_are_judged_by_blind_answers(kept):
    inputs, ledger, truth = kept
    crowd = ledger.crowd()
    own = blind_answers(ledger, crowd)
    shown = sum(one.shown for one in suggested_answers(ledger, crowd))
    assert len(own.latest) == len(crowd.latest) - shown
    result = Aggregating(inputs.plan, ledger).labels(crowd)
    known = measure_reliability(own, gold={item: [one] for item, one in truth.items()})
    rows = judge(inputs.plan, own.with_gold(None), result, set(), 7)["workers"]
    assert set(rows) == {"rules", *(f"w{n}" for n in range(6))}
    assert [known.total[n] for n in range(1, 7)] == [
        sum(1 for one in suggested_answers(ledger, crowd) if one.worker == n and not one.shown)
        for n in range(1, 7)
    ]


KIN = {"rules": "f", "w0": "f"}


@pytest.mark.parametrize(
    ("method", "families"),
    [("one-coin", KIN), ("one-coin", "auto"), ("mv-token", "none"), ("ds", None), ("auto", None)],
)
def test_labels_are_of_the_crowd_that_there_is(kept, method, families):
    inputs, ledger, _ = kept
    section = {"method": method} | ({} if families is None else {"families": families})
    made = voting(page={"suggest": "rules"}, aggregate=section)
    crowd = ledger.crowd()
    steps = Aggregating(made, ledger)
    result = steps.labels(crowd)
    assert result.crowd.worker_ids.equals(crowd.worker_ids)
    assert result.crowd == crowd
    assert result.params.get("families") == steps._aggregator(crowd).get_params()["families"]
    assert len(result.workers) == crowd.n_workers
    said = [note for note in result.notes if "after" in note]
    assert len(said) == 1
    assert said[0].startswith(
        "answers after a suggestion are of the suggester's family: rules (rho"
    )
    assert not any(f"w{n}" in said[0] for n in range(6))
    assert result.workers["worker"].to_pylist() == crowd.worker_ids.to_pylist()
    assert steps.open_items(crowd, result, list(inputs.ids)) is not None
    if method == "auto":
        assert steps.choose(crowd)["candidates"]


def test_without_suggestions_nothing_changes(tmp_path):
    inputs, ledger, _ = campaign(tmp_path, "rules", people=2)
    crowd = ledger.crowd()
    bare = ledger_of(inputs, tmp_path / "bare.sqlite")
    assert Apart.of(bare, crowd) is None
    assert blind_answers(bare, crowd) is crowd


def test_a_consensus_is_made_of_blind_answers(tmp_path):
    inputs, ledger, _ = campaign(tmp_path, "consensus", people=4)
    crowd = ledger.crowd()
    assert set(anchoring(suggested_answers(ledger, crowd))) == {"consensus"}
    apart = Apart.of(ledger, crowd)
    kin = apart.families("none")
    assert len(kin.silent) == 1
    assert Aggregating(inputs.plan, ledger).labels(crowd).crowd == crowd


class Kept:
    """A ledger of nothing but what was suggested."""

    labels_folder, n_forgotten = None, 0

    def __init__(self, rows):
        self.rows = {str(n): row for n, row in enumerate(rows)}

    def records(self, kind):
        return self.rows if kind == "suggested" else {}


def followers(by, seed, follow=0.9, wrong=0.45, n=60, people=5):
    """Draw answers of people who follow a suggester who is often wrong, and the truth."""
    rng, rows, shown = np.random.default_rng(seed), [], []
    truth = rng.integers(0, 2, n)
    for item, right in enumerate(truth.tolist()):
        first = right ^ int(rng.random() < wrong)
        rows.append((f"d{item}", "m", "xy"[first]))
        for k in range(people):
            sees, own = rng.random() < 0.5, right ^ int(rng.random() < 0.2)
            given_ = first if sees and rng.random() < follow else own
            rows.append((f"d{item}", f"w{k}", "xy"[given_]))
            one = {"item": f"d{item}", "worker": f"w{k}", "by": by, "labels": ["xy"[first]]}
            shown.append({**one, "shown": bool(sees)})
    return crowd_of(rows), Kept(shown), {f"d{i}": ["xy"[one]] for i, one in enumerate(truth)}


def right_share(result, truth):
    labels = result.tagged_by_id()
    return np.mean([labels[item] == one for item, one in truth.items()])


@pytest.mark.parametrize(("by", "method", "gain"), [
    ("m", "mv-token", 0.08), ("m", "one-coin", 0.1), ("consensus", "mv-token", 0.06),
])  # fmt: skip
def test_answers_after_a_suggestion_do_not_outvote_those_without(by, method, gain):
    """Over 30 crowds; counted in full they carry the suggester's mistakes into the labels."""
    right = {"apart": [], "full": []}
    steps = voting(aggregate={"method": method})
    for seed in range(30):
        crowd, shown, truth = followers(by, seed)
        for name, ledger in (("apart", shown), ("full", Kept([]))):
            right[name].append(right_share(Aggregating(steps, ledger).labels(crowd), truth))
    assert np.mean(right["apart"]) > np.mean(right["full"]) + gain


@pytest.mark.parametrize("by", ["m", "consensus"])
@pytest.mark.parametrize("method", ["bsc-acc", "wmv-linear"])
def test_spans_after_a_suggestion_count_less(by, method):
    """One of three marks "New York", the other two follow a suggester who marks nothing."""
    rows, shown = [], []
    for item in range(12):
        both = ["O", "B-LOC", "I-LOC", "O"], ["O", "O", "O", "O"]
        for k, worker in enumerate(("m", "a", "b", "c")):
            rows.append({"item": f"d{item}", "worker": worker, "tags": both[k != 1]})
            one = {"item": f"d{item}", "worker": worker, "by": by, "labels": both[1]}
            shown += [{**one, "shown": k > 1}] if k else []
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    place = {f"d{n}": builder.add_item(f"d{n}", ["in", "New", "York", "."]) for n in range(12)}
    for row in rows:
        builder.add_answer(place[row["item"]], row["worker"], row["tags"])
    crowd = builder.build()
    sections = {"task": {"types": ["LOC"], "labels": []}, "aggregate": {"method": method}}
    steps = voting(**sections, model={"name": "hmm"})
    full = Aggregating(steps, Kept([])).labels(crowd)
    apart = Aggregating(steps, Kept(shown)).labels(crowd)
    assert apart.crowd == crowd
    assert apart.workers["worker"].to_pylist() == crowd.worker_ids.to_pylist()
    # Everybody followed: three answers that agree are hardly more than one.
    tag = crowd.tagset.index["B-LOC"]
    assert (apart.token_probs[1::4, tag] > 1.2 * full.token_probs[1::4, tag]).all()
    kin = Apart.of(Kept(shown), crowd).families("none")
    assert bool(kin.silent) == (by == "consensus")


# --- several layers


LAYERS = [
    {"name": "words", "kind": "spans", "types": ["A", "B"], "overlapping": True},
    {"name": "sky", "kind": "label", "labels": ["rain", "sun"]},
    {"name": "day", "kind": "labels", "labels": ["even", "odd"], "required": False},
]
OF_LAYERS = {
    "task": {"layers": LAYERS, "labels": []}, "model": {"name": "hmm"}, "crowd": MIXED,
    "aggregate": {"method": "one-coin"}, "prices": None, "budget": None,
}  # fmt: skip
A, B = {"start": 0, "end": 2, "type": "A"}, {"start": 0, "end": 1, "type": "B"}


def layers(*words, sky="rain", day=()):
    return {"words": [*words], "sky": sky, "day": [*day]}


def test_a_majority_is_of_every_span_and_label_by_itself():
    asked = read_plan(plan_of(**OF_LAYERS)).tagset
    said = [layers(A, B, day=["odd"]), layers(B, day=["even", "odd"]), layers(A, sky="sun")]
    assert majority(said, asked) == layers(A, B, day=["odd"])
    assert majority(said[1:], asked) == {**layers(), "sky": None}
    assert majority([], asked) is None
    assert majority([layers(sky="sun"), layers()], replace(asked, each=asked.each[1:])) is None


def test_what_an_answer_makes_of_layers_is_counted_by_span_and_label():
    old = layers(A, sky="rain", day=["even"])
    assert difference(old, old) == (3, 0, 0, 0)
    assert difference(old, layers(B, sky="sun")) == (0, 2, 1, 0)
    assert difference(layers(), layers(B, day=["odd"])) == (1, 0, 0, 2)
    assert disagreement(old, layers(A, sky="sun")) == pytest.approx(3 / 4)


@pytest.mark.parametrize("by", ["rules", "consensus"])
def test_answers_after_a_suggestion_are_apart_in_every_layer(tmp_path, by):
    write_files(tmp_path)
    inputs = inputs_of(tmp_path, **OF_LAYERS, page={"suggest": by})
    ledger, people = ledger_of(inputs, tmp_path / "c.sqlite"), ["w0", "w1", "w2"]
    ledger.add_items(inputs.items(), NOW)
    ledger.open_batch("r1", list(inputs.ids), 4, NOW)
    for n, item in enumerate(inputs.ids):
        for k, worker in enumerate(["rules", *people]):

            def act(entry, worker=worker, item=item):
                had = {one.worker: one.labels for one in own_answers(entry.connection, item)}
                return keep_suggestion(entry, suggestion_for(inputs.plan, item, worker, had))

            one = ledger.transact(NOW, act) if k else None
            own = layers(*[A, B][: (n + k) % 3], sky=["rain", "sun"][n % 2], day=["odd"][: k % 2])
            given_ = one.labels if one and one.shown else own
            given_ = {**given_, "sky": given_["sky"] or "sun"}
            assert ledger.submit(f"{worker} {item}", worker, item, given_, NOW).counts
    crowd, crowds = ledger.crowd(), ledger.layers()
    rows = suggested_answers(ledger, crowd)
    shown = {(one.item, one.worker) for one in rows if one.shown}
    assert 20 < len(shown) < len(rows) <= 60
    assert all(disagreement(one.suggested, one.given) == 0 for one in rows if one.shown)
    assert suggestion_rows(ledger, crowd)[0]["unchanged"] == len(shown)
    lines = list(listed(ledger, crowd))
    assert lines[0]["suggested"] == rows[0].suggested == json.loads(json.dumps(rows[0].suggested))
    for layer in inputs.plan.task.layers:
        own = crowds[layer.name]
        assert suggested_answers(ledger, own) == rows
        blind, (_, index) = blind_answers(ledger, own).latest, whole_index(own)
        left = {*zip(index[blind.item].tolist(), blind.worker.tolist(), strict=True)}
        assert left == {(n, k) for n in range(20) for k in range(4)} - shown
        steps = Aggregating(inputs.plan, ledger, None, layer)
        assert steps.labels(own).crowd == own
