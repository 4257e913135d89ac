"""Work that nobody is paid for: a plan without prices and budget, and nothing about money."""

from __future__ import annotations

import io
import json
import re

import pytest
from typer.testing import CliRunner

from campaign.tiny import (
    SPANS,
    campaign_of,
    inputs_of,
    plan_of,
    telling,
    toml,
    write_files,
    write_spans,
)
from goldspan.campaign import read_plan
from goldspan.campaign.changes import plan_in_force
from goldspan.campaign.outlook import outlook
from goldspan.campaign.results import CampaignRecord, ReportData, write_exports
from goldspan.campaign.summary import cost_range, describe_plan
from goldspan.cli import app
from goldspan.cli.campaign import Status, draw
from goldspan.errors import FaultsError, InputError
from goldspan.money import UNLIMITED
from goldspan.report.campaign import render

MONEY = re.compile(
    r"money|spent|\bcost|\bpaid\b|pays|budget|\bearn|price|\bcap\b|bill", re.IGNORECASE
)


def unpaid(**sections):
    """Return the tiny plan without prices and budget."""
    return plan_of(prices=None, budget=None, **sections)


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


def unpaid_campaign(folder, **sections):
    campaign = campaign_of(folder, prices=None, budget=None, **sections)
    assert not campaign.inputs.plan.is_paid
    return campaign


def test_without_prices_and_budget_nobody_is_paid():
    plan = read_plan(unpaid())
    assert (plan.is_paid, plan.cap, plan.cost(7)) == (False, UNLIMITED, 0)
    assert read_plan(plan_of()).is_paid


def test_a_budget_may_be_of_hours_alone():
    plan = read_plan({**unpaid(), "budget": {"hours": 2.0}})
    assert (plan.is_paid, plan.budget.hours) == (False, 2.0)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"prices": {"per_answer": "0.05"}}, "budget.money: is missing: answers cost something"),
        ({"prices": {"per_check": "0.05"}}, "budget.money: is missing: checks cost something"),
        ({"budget": {"money": 3}}, "prices: an answer must cost something where there is a budget"),
        ({"stop": {"least_gain": 0.1}}, "stop.least_gain: is a gain per unit of money"),
    ],
)
def test_half_of_a_payment_is_refused(sections, message):
    with pytest.raises(FaultsError, match=message):
        read_plan({**unpaid(), **sections})


def test_overlap_is_the_number_of_answers_of_every_item():
    plan = read_plan(unpaid(redundancy=None) | {"redundancy": {"overlap": 2}})
    assert (plan.redundancy.min, plan.redundancy.max) == (2, 2)
    kept = plan.model_dump(mode="json")
    assert kept == read_plan(unpaid() | {"redundancy": {"min": 2, "max": 2}}).model_dump(
        mode="json"
    )
    assert read_plan(kept) == plan.model_copy(update={"redundancy": read_plan(kept).redundancy})


@pytest.mark.parametrize("both", [{"min": 2}, {"max": 4}, {"min": 1, "max": 4}])
def test_overlap_beside_min_or_max_is_refused(both):
    with pytest.raises(FaultsError, match=r"redundancy: overlap = 2 .* cannot be set beside it"):
        read_plan({**unpaid(), "redundancy": {"overlap": 2, **both}})


@pytest.mark.parametrize("overlap", [0, -1, True, "2", 1.5])
def test_an_overlap_that_is_no_number_of_answers_is_one_fault(overlap):
    with pytest.raises(FaultsError) as caught:
        read_plan({**unpaid(), "redundancy": {"overlap": overlap}})
    (fault,) = caught.value.faults
    assert fault.message.startswith("redundancy.overlap: must be")


def test_the_overlap_of_the_command_line_goes_before_the_plan():
    plan = read_plan(plan_of(redundancy={"min": 2, "max": 4, "stop": "fixed(3)"}), overlap=3)
    assert (plan.redundancy.min, plan.redundancy.max, plan.redundancy.stop) == (3, 3, "fixed(3)")
    with pytest.raises(FaultsError, match=r"redundancy.min: is 6, and there are 5 workers"):
        read_plan(plan_of(), overlap=6)


WEB = {"crowd": {"source": "web", "annotators": ["ann", "ben"]}, "redundancy": {"overlap": 2}}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"crowd": {"source": "files", "annotators": ["ann"]}}, "crowd.annotators: belongs to"),
        ({"crowd": {"source": "web", "annotators": ["a", "b", "a"]}}, "appears twice in a, b, a"),
        ({"crowd": {"source": "web", "annotators": ["a", " "]}}, "1 to 200 printable characters"),
        ({"redundancy": {"overlap": 3}}, "an item may take 3 answers, .* names 2: set overlap = 2"),
        ({"provider": {"name": "prolific"}}, "crowd.annotators: the annotators come from prolific"),
    ],
)
def test_annotators_who_cannot_do_the_work_are_refused(sections, message):
    read_plan({**unpaid(), **WEB})
    with pytest.raises(FaultsError, match=message):
        read_plan({**unpaid(), **WEB, **sections})


def test_another_annotator_may_join_while_it_runs_and_nothing_else_of_the_crowd(folder):
    redundancy = {"min": 2, "max": 2}
    crowd = {"source": "web", "annotators": ["ann", "ben"], "truth": None, "workers": []}
    first = unpaid_campaign(folder, crowd=crowd, redundancy=redundancy)
    first.run()
    more = {**crowd, "annotators": ["ann", "ben", "cleo"]}
    second = unpaid_campaign(folder, crowd=more, redundancy=redundancy)
    told = []
    second.on_event = telling(told)
    second.run()
    assert "changed: crowd.annotators was ['ann', 'ben'] and is ['ann', 'ben', 'cleo']" in told
    assert plan_in_force(second.ledger)["crowd"]["annotators"] == ["ann", "ben", "cleo"]
    other = unpaid_campaign(folder, crowd={**more, "seconds": 4.0}, redundancy=redundancy)
    with pytest.raises(ValueError, match=r"crowd.seconds was 30.0 and is 4.0"):
        other.run()
    first.ledger.close()
    second.ledger.close()
    other.ledger.close()


def test_an_unpaid_campaign_labels_its_whole_pool(folder):
    told = []
    control = {"n": 4, "gold": "truth.csv", "share": 0.2}
    campaign = unpaid_campaign(folder, redundancy={"min": 3, "max": 3}, control=control)
    campaign.on_event = telling(told)
    decision = campaign.run()
    assert decision.rule == "pool"
    record = CampaignRecord.of(campaign.ledger)
    assert record.redundancy == (0, 0, 0, 16)
    assert (record.money, record.spending) == (None, ())
    assert [one["cap"] for one in record.rounds] == [None] * len(record.rounds)
    files = {path.name for path in write_exports(campaign, folder / "out")}
    assert "gold.csv" in files
    assert "bill.csv" not in files
    findings = ReportData.of(campaign.ledger, campaign.progress.result)
    page = render(findings.record, result=findings.result, tested=findings.tested, against="x")
    words = re.sub(r"<style.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not MONEY.findall(words)
    assert "How many answers the items took" in words
    assert any("answers" in line for line in told)
    assert not MONEY.search("\n".join(told))
    campaign.ledger.close()


@pytest.mark.parametrize(
    "by", ["coverage, then mnlp, 10% random", "coverage", "random, then span-change"]
)
def test_rules_that_weigh_by_cost_pick_from_a_pool_of_spans(tmp_path, by):
    write_spans(tmp_path, 12)
    two = {"min": 2, "max": 2}
    campaign = unpaid_campaign(tmp_path, **SPANS, select={"by": by, "batch": 6}, redundancy=two)
    campaign.run()
    assert CampaignRecord.of(campaign.ledger).counts["items"] == 12
    campaign.ledger.close()


def test_what_a_plan_will_do_is_told_in_answers(folder):
    inputs = inputs_of(folder, prices=None, budget=None)
    lines = "\n".join(describe_plan(inputs))
    assert "work: 40 to 80 answers in all, unpaid" in lines
    assert "ends when the pool is labelled" in lines
    assert not MONEY.search(lines.replace("unpaid", ""))
    assert cost_range(inputs) == {"items": 20, "control": 0, "fewest": 40, "most": 80}
    same = inputs_of(folder, prices=None, budget=None, redundancy={"min": 2, "max": 2})
    lines = "\n".join(describe_plan(same))
    assert "answers: 2 per item\n" in lines
    assert "work: 40 answers in all" in lines


def test_what_more_labels_take_is_told_in_answers():
    score = [
        {"value": v, "low": v - 0.02, "high": v + 0.02, "n": 50} for v in (0.6, 0.7, 0.75, 0.78)
    ]
    rounds = [
        {"items": 50 * n, "answers": 150 * n, "spent": 0, "hours": n, "ask_again": None,
         "stable": None, "score": one, "control": one, "pool": 400, "cap": None}
        for n, one in enumerate(score, 1)
    ]  # fmt: skip
    found = outlook(read_plan(unpaid(stop={"target": 0.8})), rounds)
    assert found["next"]["answers"] == 300
    end = found["end"]
    assert 0 < end["low"] <= end["high"] <= 3 * 200  # three answers an item, 200 are left
    assert f"between {end['low']:,.0f} and {end['high']:,.0f} answers more" in end["text"]
    assert found["per_money"] is None


def test_run_speaks_of_no_money(folder):
    path = folder / "campaign.toml"
    path.write_text(toml(unpaid(redundancy=None) | {"redundancy": {"overlap": 1}}))
    words = ["run", str(path), "--out", str(folder / "out"), "--overlap", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "labelled: 20 of 20 items by 40 answers" in result.stdout
    assert not MONEY.search(result.output.replace(str(folder), ""))
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert facts["money"] is None
    # The plan says overlap = 1, and the campaign was begun with 2.
    again = CliRunner().invoke(app, words[:-2])
    assert isinstance(again.exception, InputError)
    assert "redundancy.max was 2 and is 1" in str(again.exception)


def test_the_live_view_has_no_row_of_money(folder):
    from rich.console import Console

    campaign = unpaid_campaign(folder)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(draw(Status.of(campaign.inputs, campaign.ledger)))
    shown = console.export_text()
    assert "answers" in shown
    assert "money" not in shown
    campaign.ledger.close()
