"""Plans: what is wrong with one is told at once, with the key and what is allowed."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from itertools import product
from typing import get_args

import pytest

from campaign.tiny import inputs_of, plan_of, toml, write_files, write_spans
from goldspan.aggregation.registry import METHODS
from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.model import try_method
from goldspan.campaign.plan import Plan
from goldspan.campaign.section import Section
from goldspan.campaign.summary import cost_range, describe_plan
from goldspan.errors import FaultsError, InputError

SINGLE = {"wmv-linear", "wmv-log", "wawa", "zbs", "glad", "ordinal"}
FAULTS = [
    ({"mdel": {"name": "crf"}}, r"mdel: unknown key: .*did you mean 'model'"),
    ({"select": {"bach": 3}}, r"select.bach: .*did you mean 'batch'"),
    ({"name": 3}, "name: must be text, not 3"),
    ({"name": ""}, "name: must be 1 to 100 letters"),
    ({"name": "a/../b"}, "name: must be 1 to 100 letters, .* not 'a/../b'"),
    ({"name": ".."}, "name: must be .* beginning with a letter or digit"),
    ({"seed": -1}, "seed: must be at least 0, not -1"),
    ({"seed": True}, "seed: must be a whole number, not True"),
    ({"prices": {"per_answer": -1}}, "prices.per_answer: it must lie in 0"),
    ({"prices": {"per_answer": [1]}}, "prices.per_answer: must be an amount such as 0.05"),
    ({"prices": {"per_answer": 0}}, "prices: an answer must cost something"),
    ({"budget": {"money": "0.09"}}, "budget.money: 0.09 do not pay for one item"),
    ({"redundancy": {"min": 5, "max": 2}}, "redundancy: min is 5, more than max, 2"),
    ({"redundancy": {"min": 6, "max": 9}}, "redundancy.min: is 6, and there are 5 workers"),
    ({"redundancy": {"max": 6}}, "redundancy.max: is 6, and there are 5 workers"),
    ({"redundancy": {"stop": "confidnt"}}, r"redundancy.stop: .*did you mean 'confident'"),
    ({"task": {"types": ["X"]}}, "task: give either types"),
    ({"task": {"labels": ["one"]}}, "task.labels: there must be at least two"),
    ({"task": {"labels": [], "types": ["X"], "encoding": "BIOX"}}, "task: .*BIOX"),
    ({"crowd": {"source": "wire"}}, "crowd.source: must be 'simulated', .*, not 'wire'"),
    ({"crowd": {"workers": []}}, "crowd.workers: is missing"),
    ({"crowd": {"workers": ["flop(1)"]}}, "crowd.workers: unknown kind of worker 'flop'"),
    ({"crowd": {"source": "files"}}, "crowd: workers and truth belong to the source simulated"),
    ({"control": {"n": 3}}, "control.gold: is missing"),
    ({"control": {"n": 3, "gold": "x", "first": 4}}, "control.first: is 4, more than"),
    ({"control": {"n": 3, "gold": "x", "share": 0.0}}, "control.share: is 0 and there is no test"),
    ({"select": {"by": "mnlpp"}}, "select.by: unknown rule 'mnlpp'"),
    ({"model": {"name": "none"}, "select": {"by": "random, then mnlp"}}, "mnlp needs a model"),
    ({"model": {"name": "none"}, "stop": {"target": 0.9}}, "stop.target: there is no model"),
    ({"stop": {"certified": {"f1": 0.9}}}, "stop.certified: single labels .* by accuracy, not f1"),
    ({"stop": {"certified": {}}}, "stop.certified: set f1 for spans or accuracy"),
    ({"stop": {"certified": {"f1": 0.9, "accuracy": 1}}}, "stop.certified: set f1 for spans or"),
    ({"stop": {"certified": {"accuracy": 90}}}, "stop.certified.accuracy: must be at most 1"),
    ({"stop": {"certified": {"confidence": 1}}}, "stop.certified.confidence: must be below 1.0"),
    ({"model": {"name": "crf"}}, "model: unknown model 'crf'"),
    ({"model": {"name": "collections.OrderedDict"}}, "unknown model 'collections.OrderedDict'"),
    (
        {"model": {"name": "sklearn.linear_model.LinearRegression"}},
        "Regression is not a classifier",
    ),
    ({"model": {"name": "sklearn.preprocessing.StandardScaler"}}, "Scaler is not a classifier"),
    ({"model": {"name": "sklearn.ensemble.VotingClassifier"}}, "cannot be made without arguments"),
    ({"model": {"params": {"alfa": 1}}}, "model: unknown parameter of naive-bayes 'alfa'"),
    ({"aggregate": {"method": "dss"}}, "aggregate: .*'dss'"),
    ({"aggregate": {"method": "mv-token"}}, "redundancy.stop: confident needs probabilities"),
    ({"redundancy": {"stop": "stable_average(1)"}}, "aggregate and redundancy.stop: "),
    ({"evaluate": {"by": "slice"}, "select": {"by": "margin"}}, "needs items drawn at random"),
    ({"evaluate": {"by": "test"}}, "evaluate.file: belongs to by = "),
    ({"evaluate": {"folds": 1}}, "evaluate.folds: must be at least 2, not 1"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_a_fault_is_named_with_its_key(changes, message):
    with pytest.raises(FaultsError, match=message):
        read_plan(plan_of(changes))


def test_the_tiny_plan_is_no_fault():
    assert read_plan(plan_of()).method == "one-coin"


def test_all_faults_are_told_at_once(tmp_path):
    path = tmp_path / "plan.toml"
    changes = {
        "mdel": {}, "seed": -1, "redundancy": {"min": 5, "max": 2}, "budget": {"money": "0.01"}
    }  # fmt: skip
    path.write_text(toml(plan_of(changes)))
    with pytest.raises(FaultsError) as caught:
        read_plan(path)
    keys = [fault.message.split(":")[0] for fault in caught.value.faults]
    assert keys == ["seed", "mdel", "redundancy", "budget.money"]
    assert all(fault.file == str(path) for fault in caught.value.faults)


def test_a_file_that_is_no_plan_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_plan(tmp_path / "nothing.toml")
    path = tmp_path / "plan.toml"
    path.write_text("name = ")
    with pytest.raises(InputError, match="it is not valid TOML"):
        read_plan(path)


def test_a_plan_read_from_toml_is_the_plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(toml(plan_of()))
    assert read_plan(path) == read_plan(plan_of())


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"pool": {"file": "none.jsonl"}}, "pool.file: .*none.jsonl"),
        ({"crowd": {"truth": "none.csv"}}, "crowd.truth: .*none.csv"),
        ({"control": {"n": 50, "gold": "truth.csv"}}, "control.gold: holds labels of 20 items"),
        ({"control": {"n": 20, "gold": "truth.csv"}}, "control.n: all items of the pool"),
        (
            {"task": {"labels": ["sun", "snow"]}},
            "crowd.truth: .*labels that the task has not: rain",
        ),
        ({"evaluate": {"by": "test", "file": "pool.jsonl"}}, "evaluate.file: a test of single"),
        (
            {"prices": {"per_answer": 0, "per_token": "1"}, "budget": {"money": "1.5"}},
            "budget.money: 1.50 do not pay for",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, sections, message):
    write_files(tmp_path)
    with pytest.raises(FaultsError, match=message):
        inputs_of(tmp_path, **sections)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"model": {"name": "svm"}, "select": {"by": "entropy"}}, "entropy cannot ask .* svm"),
        ({"select": {"by": "random, then vote"}}, "select.by: vote cannot ask"),
        ({"model": {"params": {"alpha": "x"}}}, "model: naive-bayes cannot learn from the items"),
    ],
)
def test_a_model_is_tried_on_the_pool_before_anything_is_bought(tmp_path, sections, message):
    write_files(tmp_path)
    with pytest.raises(FaultsError, match=message):
        inputs_of(tmp_path, **sections)


def test_a_negative_number_is_found_wherever_it_stands_in_a_table(tmp_path):
    write_files(tmp_path, 600)
    table = tmp_path / "table.csv"
    table.write_text("item,n\n" + "".join(f"d{i},{-1 if i == 411 else 1}\n" for i in range(600)))
    with pytest.raises(FaultsError, match=r'pool.file: .*pool.format = "attributes"'):
        inputs_of(tmp_path, pool={"file": "table.csv"})
    with pytest.raises(FaultsError, match=r"model: naive-bayes cannot learn .*[Nn]egative"):
        inputs_of(tmp_path, pool={"file": "table.csv", "format": "attributes"})


def test_a_test_that_takes_more_than_all_control_questions_is_told_once():
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(control={"n": 10, "gold": "x", "first": 20}))
    assert [fault.message.split(":")[0] for fault in caught.value.faults] == ["control.first"]


def test_items_that_stand_twice_are_refused(tmp_path):
    write_files(tmp_path)
    path = tmp_path / "pool.jsonl"
    path.write_text(2 * path.read_text())
    with pytest.raises(FaultsError, match="twice"):
        inputs_of(tmp_path)


def test_the_courses_of_a_plan_cost_what_their_answers_cost(tmp_path):
    write_spans(tmp_path, 12)
    plan = plan_of(
        task={"types": ["LOC"], "labels": []},
        pool={"file": "gold.conll"},
        crowd={"truth": "gold.conll"},
        control={"n": 2, "gold": "gold.conll"},
        prices={"per_answer": "0.01", "per_token": "0.001"},
        budget={"money": "0.30"},
        model={"name": "crf"},
    )
    inputs = read_inputs(read_plan(plan), tmp_path)
    found = cost_range(inputs)
    once = sum(
        10_000 + 1_000 * len(words)
        for name, words in zip(inputs.ids, inputs.words, strict=True)
        if name not in inputs.control
    )
    assert (found["items"], found["cheapest"], found["dearest"]) == (10, 2 * once, 4 * once)
    assert found["pays_least"] == int(300_000 / (4 * once / 10))
    lines = "\n".join(describe_plan(inputs))
    assert "control: 2 known items" in lines
    assert "the minimum" in lines


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_is_refused_for_the_made_up_crowd_that_it_is_tried_on(method):
    if method in SINGLE or not method.startswith(("bsc", "crf", "multi", "mv-seg")):
        params = {"levels": "no, yes"} if method == "ordinal" else {}
        try_method(["no", "yes"], [], "", method, params, "fixed(3)")
    if method not in SINGLE:
        try_method([], ["PER", "LOC"], "BILOU", method, {}, "fixed(3)")


def test_the_id_of_a_campaign_changes_with_its_plan(tmp_path):
    write_files(tmp_path)
    same, other = inputs_of(tmp_path), inputs_of(tmp_path, seed=4)
    assert same.key == inputs_of(tmp_path).key
    assert same.key != other.key
    assert same.key.startswith("weather-")


OPTIONAL = {
    "control": {"n": 3, "gold": "truth.csv", "first": 2, "least": 0.5},
    "page": {"title": "Moods"},
    "provider": {"name": "link"},
    "evaluate": {"by": "cv"},
    "stop": {"least_gain": 0.1},
    "redundancy": {"min": 3},
}
ODD = (
    *("", "webb", "files", "web", "replay", "NaN", "1e400", "confident(", "sklearn.svm.SVC"),
    *(-1, 0, 1, 10**30, -0.5, math.nan, math.inf, True, [], ["a", "a"], ["a", 1], {}, {"a": {}}),
)
"""Values of which each is odd in most places."""


@pytest.mark.parametrize("table", list(OPTIONAL))
def test_a_misspelt_source_is_one_fault_whatever_else_the_plan_has(table):
    changes = {"crowd": {"source": "webb"}, table: OPTIONAL[table]}
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(changes))
    assert [fault.message.split(":")[0] for fault in caught.value.faults] == ["crowd.source"]
    assert "not 'webb'" in str(caught.value)


def _sections():
    for name, field in Plan.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield name, [*kind.model_fields, "sorce"]


@pytest.mark.parametrize(("section", "keys"), list(_sections()))
def test_odd_values_of_any_key_are_refused_or_read(section, keys):
    rng = random.Random(section)
    for key, odd in product(keys, ODD):
        tables = rng.sample(list(OPTIONAL), rng.randrange(3))
        plan = plan_of({name: OPTIONAL[name] for name in tables})
        plan[section] = {**plan.get(section, {}), key: odd}
        with suppress(InputError):
            read_plan(plan)


@pytest.mark.parametrize("odd", ODD)
def test_what_stands_in_place_of_a_section_is_refused_or_read(odd):
    for name in Plan.model_fields:
        for overlap in (None, 2):
            with suppress(InputError):
                read_plan({**plan_of(OPTIONAL), name: odd}, overlap=overlap)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000, "nested too deeply|not valid TOML"),
        ("seed = " + "9" * 5000, "not valid TOML"),
        ('name = "\udc00"', "not valid TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(text, message, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=message):
        read_plan(path)


def test_keys_that_plans_made_before_lack_are_left_out_where_they_are_not_used(tmp_path):
    write_files(tmp_path)
    assert inputs_of(tmp_path).key == "weather-602fb8d6"  # their hash
    newer = {
        "crowd": {"send_text": True, "replies": "kept"},
        "redundancy": {"by": "gain", "per_family": 2},
        "select": {"errors": True},
        "aggregate": {"families": "auto"},
        "page": {"suggest": "consensus", "suggest_share": 0.4},
    }
    without = read_plan(plan_of()).model_dump(mode="json")
    for name, keys in newer.items():
        assert not keys.keys() & without[name].keys()
        made = Plan.model_validate(plan_of({name: keys})).model_dump(mode="json")
        assert made[name].items() >= keys.items()
