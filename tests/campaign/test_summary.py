"""What `goldspan plan check` says of a campaign: its crowd, and what its workers cost at first."""

from __future__ import annotations

import pytest

from campaign.tiny import inputs_of, plan_of, write_files
from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.summary import cost_range, describe_plan

CONTROL = {"n": 6, "gold": "truth.csv", "share": 0.2, "first": 3, "least": 0.5}


def served(folder, **sections):
    """Open a plan for people in a browser: 14 items to label, 0.05 an answer, 8 in all."""
    write_files(folder)
    made = plan_of(**{"control": CONTROL, "page": {"training": 2}, **sections})
    made["crowd"] = {"source": "web"}
    return read_inputs(read_plan(made), folder)


def test_people_in_a_browser_are_told_as_such(tmp_path):
    inputs = served(tmp_path, page={"training": 2, "title": "The weather"})
    lines = describe_plan(inputs)
    assert "crowd: people in a browser: `goldspan serve`" in lines
    assert "title: The weather" in lines
    assert "provider: personal links: `goldspan invite`" in lines
    assert "practice: 2 gold questions, with the right answer shown" in lines
    assert any(
        line.endswith("the first 3 as a test, in which 50 % must be right") for line in lines
    )
    assert not any("tasks/" in line for line in lines)


def test_the_provider_is_named_and_the_title_is_the_campaigns_name(tmp_path):
    lines = describe_plan(served(tmp_path, provider={"name": "prolific"}))
    assert {"provider: prolific", "title: weather"} <= set(lines)


def test_what_a_workers_practice_and_test_cost_is_told_with_how_many_the_budget_bears(tmp_path):
    inputs = served(tmp_path)
    found = cost_range(inputs)
    # Two answers to 14 items are four fifths of the answers: 8 - 1.40 / 0.8 is left for tests.
    assert (found["opening"], found["bears"], found["bears_most"]) == (250_000, 25, 32)
    (line,) = [line for line in describe_plan(inputs) if line.startswith("workers: ")]
    assert line == (
        "workers: every worker's practice and test costs 0.25: the budget bears 25 beside the "
        "minimum, and 32 workers would leave nothing for labels"
    )


def test_a_budget_that_bears_nobody_says_so(tmp_path):
    lines = describe_plan(served(tmp_path, budget={"money": "1.50"}))
    assert any("the budget bears none beside the minimum, and 6" in line for line in lines)


@pytest.mark.parametrize(
    ("control", "page", "what"),
    [({"first": 0, "least": 0.0}, {"training": 1}, "practice costs 0.05"),
     ({}, {"training": 0}, "test costs 0.15")],
)  # fmt: skip
def test_only_what_there_is_costs(tmp_path, control, page, what):
    lines = describe_plan(served(tmp_path, control={**CONTROL, **control}, page=page))
    assert any(line.startswith(f"workers: every worker's {what}") for line in lines)


def test_a_campaign_without_a_test_says_nothing_of_it(tmp_path):
    write_files(tmp_path)
    inputs = inputs_of(tmp_path)
    assert (cost_range(inputs)["opening"], cost_range(inputs)["bears"]) == (0, None)
    assert not any(line.startswith("workers: ") for line in describe_plan(inputs))


def test_the_range_of_costs_is_by_the_prices_of_those_who_can_be_asked(tmp_path):
    write_files(tmp_path)
    entries = [
        {"id": "rules", "kind": "python", "call": "campaign.rules:weather",
         "prices": {"per_answer": "0.001"}},
        {"id": "expert", "kind": "people", "names": ["eva"], "prices": {"per_answer": "0.40"}},
        {"id": "crowd", "kind": "people"},
    ]  # fmt: skip
    made = plan_of(redundancy={"min": 2, "max": 3}, prices={"per_answer": "0.05"})
    made["crowd"] = {"source": "mixed", "workers": entries}
    found = cost_range(read_inputs(read_plan(made), tmp_path))
    n = found["items"]
    assert found["cheapest"] == n * (1_000 + 50_000)
    assert found["dearest"] == n * (400_000 + 50_000 + 50_000)
    entries[2]["names"] = ["ann"]
    again = cost_range(read_inputs(read_plan(made), tmp_path))
    assert again["dearest"] == n * (400_000 + 50_000 + 1_000)
