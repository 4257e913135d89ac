"""The report of a campaign as a page: what it says, that it stands alone, at any time."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

import goldspan
from campaign.tiny import campaign_of, write_files
from goldspan.campaign.results import ReportData
from goldspan.campaign.stopping import StopSection
from goldspan.report import methods_text
from goldspan.report.campaign import render
from goldspan.report.wording import CALLED


def squeezed(text):
    return text.replace("\u00a0", " ")


def test_the_numbers_on_top_are_those_of_the_record(written, page, ended):
    record = ended.record
    text = squeezed(page(written).text)
    top = text[: text.index("What the rounds brought")]
    share = 100 * goldspan.score(ended.tested.crowd, ended.tested).accuracy
    counts, money = record.counts, record.money
    spent, cap = money["spent"] / 1e6, money["cap"] / 1e6
    for words in (
        f"accuracy of the labels {share:.1f} % against the hidden gold: ",
        f"accuracy of the model {100 * record.rounds[-1]['score']['value']:.1f} % as measured: ",
        f"items labelled {counts['items']} of 44 in the pool",
        f"answers bought {counts['answers']} ",
        f"spent {spent:.2f} of {cap:.2f}, {100 * spent / cap:.1f} %",
        f"saved {100 * money['saving']:.0f} % of {money['fixed'] / 1e6:.2f} for these items",
        f"everything: {44 * 4 * 0.05:.2f}",
        "stopped after 4 rounds: no item of the pool is left to pick",
    ):
        assert words in top


def test_it_stands_alone_without_script_or_network(written):
    assert "<script" not in written
    found = re.findall(r'(?:src|href)="(?!#)[^"]*"|@import|url\((?!#)', written)
    assert found == []


def test_its_tags_are_closed_and_its_headings_in_order(written, page):
    found = page(written)
    assert found.faults == []
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_picture_is_told_in_words(written, page):
    pictures = [attrs for attrs in page(written).all("svg") if attrs.get("role") == "img"]
    assert len(pictures) >= 6
    assert all(len(attrs["aria-label"]) > 40 for attrs in pictures)
    silent = [attrs for attrs in page(written).all("svg") if attrs.get("role") != "img"]
    assert all(attrs["aria-hidden"] == "true" for attrs in silent)


def test_ids_are_unique_and_the_menu_leads_to_them(written, page):
    found = page(written)
    ids = [attrs["id"] for _, attrs in found.elements if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in found.all("a")]
    assert len(links) == 11
    assert {link[1:] for link in links} <= set(ids)


def test_the_rounds_stand_in_a_table(written, page, ended):
    found = page(written)
    for one in ended.record.rounds:
        rows = [r for r in found.cells if r[0] == str(one["round"]) and len(r) == 10]
        assert len(rows) == 1
        assert rows[0][1:3] == [str(one["items"]), str(one["answers"])]
        assert rows[0][5].startswith(f"{100 * one['score']['value']:.1f}")


def test_a_barred_worker_stands_first_with_the_reason(written, page, ended):
    barred = {name: one for name, one in ended.record.workers.items() if one["barred"]}
    assert "bad" in barred
    row = page(written).row("bad")
    assert "asked no more" in row[4]
    assert barred["bad"]["barred"] in row[4]


def test_the_rule_that_stopped_it_is_marked(written, page):
    row = page(written).row("pool stopped it")
    assert row[1:] == ["40 items to label", "40 picked"]


def test_what_changed_stands_with_the_plan_and_the_limits_are_those_in_force(ended, page):
    plan = {**ended.record.plan, "stop": {**ended.record.plan["stop"], "most_rounds": 9}}
    lines = ("stop.most_rounds was 4 and is 7", "stop.most_rounds was 7 and is 9")
    limits = tuple(StopSection(**plan["stop"]).shown(ended.record.rounds))
    text = page(render(replace(ended.record, plan=plan, changes=lines, limits=limits))).text
    assert "changed since stop most_rounds was 4 and is 7 most_rounds was 7 and is 9" in text
    assert "9 rounds at most" in text
    assert "changed since" not in page(render(ended.record)).text


def test_warnings_about_the_labels_stand_on_top(written, ended, page):
    assert not ended.record.warnings
    assert "Warning:" not in written
    warned = replace(ended.record, warnings=("12.0% of the tokens",))
    text = squeezed(page(render(warned)).text)
    assert "Warning: 12.0% of the tokens." in text[: text.index("What the rounds brought")]


def test_the_same_campaign_gives_the_same_bytes_however_long_it_took(written, ended):
    given = {"result": ended.result, "tested": ended.tested, "against": ended.against}
    slower = replace(ended.result, seconds=1e3)
    given["tested"] = replace(ended.tested, seconds=1e3, codes=slower.codes)
    assert render(ended.record, **{**given, "result": slower}) == written


def test_before_the_first_answer_there_is_a_page_too(ended, page):
    counts = dict.fromkeys(ended.record.counts, 0) | {"pool": 44, "awaited": 20}
    begun = replace(
        ended.record, rounds=(), picks={"r001": {"random": 10}}, workers={}, forecasts={},
        curve=None, spending=(), redundancy=(10,), coverage=None, stop=None, counts=counts,
        money={**ended.record.money, "spent": 0, "fixed": 0, "saving": 0.0},
    )  # fmt: skip
    found = page(render(begun))
    assert found.faults == []
    assert "in round 1, 20 answers awaited" in found.text
    assert "No rule has stopped the campaign yet" in found.text


def test_spans_are_shown_in_their_sentences(consensus, ended, page):
    plan = {**ended.record.plan, "task": {"types": ["PER"], "labels": [], "encoding": "BIO"}}
    html = render(replace(ended.record, plan=plan), result=consensus)
    found = page(html)
    assert found.faults == []
    assert "The least certain spans" in found.text
    assert len(found.all("mark")) == 20


@pytest.mark.parametrize("single", [True, False])
def test_the_score_is_named_by_the_task(ended, page, single):
    labels = ["rain", "sun"] if single else []
    plan = {**ended.record.plan, "task": {**ended.record.plan["task"], "labels": labels}}
    text = page(render(replace(ended.record, plan=plan))).text
    assert ("accuracy of the model" in text) == single
    assert ("F1 of the model" in text) != single


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """The findings of a campaign of simulated workers and a function."""
    folder = tmp_path_factory.mktemp("mixed")
    write_files(folder, 40)
    people = [{"id": name, "kind": "simulated", "worker": "flip(0.15)"} for name in ("ann", "ben")]
    rules = {"id": "rules", "kind": "python", "call": "campaign.rules:every_second",
             "prices": {"per_answer": "0.001"}}  # fmt: skip
    crowd = {"source": "mixed", "truth": "truth.csv", "workers": [*people, rules]}
    campaign = campaign_of(
        folder, crowd=crowd, redundancy={"max": 3}, aggregate={"method": "ds"},
        control={"n": 4, "gold": "truth.csv", "share": 0.2},
    )  # fmt: skip
    campaign.run()
    yield ReportData.of(campaign.ledger)
    campaign.ledger.close()


def test_people_and_models_stand_side_by_side(mixed, page):
    found = page(render(mixed.record, result=mixed.result))
    assert found.faults == []
    text, record = squeezed(found.text), mixed.record
    part = text[text.index("People and models", text.index("The workers")) :]
    assert set(record.kinds) == {"simulated", "python"}
    kind = record.kinds["simulated"]
    assert f"simulated workers 2 workers {100 * kind['mean']:.1f} %" in part
    for worker, one in record.workers.items():
        words = f"{worker} {CALLED[one['kind']].removesuffix('s')} {100 * one['mean']:.1f} %"
        row = part[part.index(words) :]
        assert f" {one['answers']} " in row[: 60 + len(words)]


def test_where_nothing_is_known_of_it_nothing_is_said(written, mixed):
    assert "People and models" not in written  # one kind of workers
    assert "People and models" not in render(replace(mixed.record, kinds={}))


def test_what_nobody_is_paid_for_has_no_costs(mixed):
    html = squeezed(render(replace(mixed.record, money=None)))
    assert ">Answers</th>" in html
    assert ">Cost</th>" not in html[html.index("People and models", 5000) :]


def test_one_round_makes_no_curve_and_no_answers_set_nothing_right(ended, page):
    def text_of(n, answers):
        last = {**[*ended.record.forecasts.values()][-1]}
        last["ask_again"] = {"answers": answers, "cost": "0", "right_tokens": 0.01}
        rounds, forecasts = ended.record.rounds[:n], {"r": last}
        return page(render(replace(ended.record, rounds=rounds, forecasts=forecasts))).text

    assert "Every point is a round" in text_of(2, 3)
    assert "3 more answers on uncertain items" in text_of(2, 3)
    assert "Every point is a round" not in text_of(1, 0)
    assert "more answers on uncertain items" not in text_of(1, 0)


def test_a_paper_can_quote_gold_questions_and_an_audit_where_there_was_one(ended):
    record = ended.record
    assert "audit" not in " ".join(methods_text(ended.result, record=record))
    found = {"measure": "accuracy", "value": 0.95, "low": 0.9, "high": 0.98, "level": 0.95}
    found |= {"checked": 1, "items": 40, "seed": 3}
    told = methods_text(ended.result, record=replace(record, certificate=found))
    assert told[1].endswith(
        "By an audit of 1 item, drawn at random from 40 with uncertain ones more often (seed 3), "
        "the accuracy of the labels is 95.0 % (95 % interval 90.0–98.0)."
    )
    counts = record.counts
    assert f", and {counts['control_answers']} are to 4 gold questions. That is " in told[0]
    waiting = replace(record, certificate=found | {"value": None})
    assert "audit" not in methods_text(ended.result, record=waiting)[1]


def test_people_and_models_are_counted_by_kind_and_their_pay_is_real(ended):
    own = {"answers": 3, "barred": ""}
    workers = {"ann": {**own, "kind": "people"}, "m": {**own, "kind": "llm", "model": "tiny-1"}}
    money = {**ended.record.money, "spent": 1_500_000, "currency": "EUR"}
    record = replace(ended.record, workers=workers, kinds={"people": {}, "llm": {}}, money=money)
    first = methods_text(ended.result, record=record)[0]
    assert first.startswith("1 person and 1 language model (tiny-1) gave ")
    assert " for 1.50 EUR: " in first
    assert " for " not in methods_text(ended.result, record=replace(record, money=None))[0]
