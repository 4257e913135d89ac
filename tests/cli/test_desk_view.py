"""What `goldspan desk` says in words: short, and the same as the desk's pages."""

from __future__ import annotations

import pytest

from goldspan.cli import desk as view

NOW = {
    "title": "Names", "state": "waiting", "why": "", "error": "", "advice": "", "flags": 0,
    "warnings": [],
    "rounds": [], "plan": {"budget": {}, "stop": {}, "changes": [], "pending": []},
    "certificate": None, "confidence": 0.9,
    "learning": {"forecast": None}, "items": {"pool": 159, "picked": 40, "answered": 8},
    "answers": {"counting": 30, "control": 14, "drafts": 0, "workers": 3},
    "money": {"currency": "EUR", "cap": "5.00", "reserved": "0.10", "spent": "0.60",
              "left": "4.30", "labels": "0.32", "control": "0.28"},
    "hours": {"used": 0.26, "left": None},
}  # fmt: skip


def test_the_overview_says_what_the_money_went_for():
    said = view.overview_text(NOW)
    assert "items: 8 of 159 have answers" in said
    assert "spent on labels: 0.32\nspent on practice, test and gold questions: 0.28\n" in said


def test_what_stops_the_campaign_stands_first_with_what_to_do():
    said = view.overview_text(
        {**NOW, "state": "failed", "error": "no room", "advice": "Make some."}
    )
    assert said.splitlines()[:3] == [
        "Names: trouble", "THE CAMPAIGN DOES NOT GO ON: no room", "Make some.",
    ]  # fmt: skip


def test_what_changed_in_the_plan_and_what_waits_for_a_start_is_told():
    plan = {**NOW["plan"], "changes": ["budget.money was 3 and is 5"], "pending": ["stop.x"]}
    said = view.overview_text({**NOW, "plan": plan})
    assert "changed: budget.money was 3 and is 5\n" in said
    assert "not in force until `goldspan serve` starts again: stop.x" in said


def test_a_state_is_called_as_on_the_pages():
    assert view.overview_text(NOW).startswith("Names: open\n")
    assert view.overview_text({**NOW, "state": "ended", "why": "all done"}).startswith(
        "Names: ended (all done)\n"
    )


@pytest.mark.parametrize(
    ("hours", "said"),
    [({"used": 0.26, "left": None}, "time: 16 min"),
     ({"used": 0.0, "left": 3.0}, "time: 0 min, 3.0 h left"),
     ({"used": 60.0, "left": 12.0}, "time: 2.5 days, 12.0 h left")],
)  # fmt: skip
def test_time_is_told_in_minutes_hours_or_days(hours, said):
    assert said in view.overview_text({**NOW, "hours": hours})


def test_a_control_question_has_a_plain_number_of_answers():
    row = {"item": "d1", "text": "x", "answers": 3, "wanted": 1000, "confidence": None,
           "control": True, "gold": False, "flags": 0, "state": "open"}  # fmt: skip
    page = {"items": [row, {**row, "item": "d2", "wanted": 5, "control": False}], "more": False}
    control, plain = view.items_text(page).splitlines()[1:]
    assert control.split() == ["d1", "3", "control", "x"]
    assert plain.split() == ["d2", "3/5", "open", "x"]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_agreement_of_one_worker_is_no_empty_table(value):
    names = ("alpha", "observed", "cohen_kappa", "pairwise_span_f1")
    measures = dict.fromkeys(names, value)
    assert view.agreement_text({"measures": measures}) == view.agreement_text({"measures": None})
    assert "alpha" in view.agreement_text({"measures": {**measures, "alpha": 0.0}})


def test_workers_are_told_with_what_is_counted_and_where_they_stand():
    verdict = {"mean": 0.8, "low": 0.6, "high": 0.9, "why": "right in 80 %", "by": "gold"}
    verdict["measure"] = "right"
    control = {"answered": 3, "right": 12, "total": 15, "unit": "marked words"}
    row = {"worker": "ann", "answers": 9, "earned": "0.45", "control": control,
           "verdict": verdict, "standing": "asked no more"}  # fmt: skip
    head, ann = view.workers_text([row]).splitlines()
    assert "standing" in head
    assert "12 of 15 marked words" in ann
    assert "  0.800  " in ann
    assert ann.endswith("asked no more  right in 80 %")
    (_, ann) = view.workers_text([{**row, "verdict": {**verdict, "by": "others"}}]).splitlines()
    assert "~0.800" in ann  # no known label has shown it
    (_, ann) = view.workers_text(
        [{**row, "verdict": {**verdict, "measure": "agrees"}}]
    ).splitlines()
    assert "agrees 0.800" in ann
    (_, ann) = view.workers_text([{**row, "verdict": {**verdict, "by": ""}}]).splitlines()
    assert "0.800" not in ann


def test_a_span_is_shown_as_it_stands_in_the_text():
    text, tokens, starts = "Dyson  V15!", ["Dyson", "V", "15", "!"], [0, 7, 8, 10]
    spans = [{"type": "COMPANY", "start": 0, "end": 1}, {"type": "PRODUCT", "start": 1, "end": 3}]
    found = {"confidence": 0.5, "spans": spans, "alternatives": [{**spans[1], "confidence": 0.4}]}
    one = {"item": "d1", "text": text, "tokens": tokens, "starts": starts, "found": found}
    assert "COMPANY[Dyson] PRODUCT[V15]" in view.uncertain_text([one])
    answer = {"worker": "ann", "counts": True, "status": "accepted", "labels": spans}
    more = {"gold": spans, "known": None, "answers": [answer], "skipped": [], "flags": []}
    said = view.item_text({**one, **more, "page": 1, "pages": 1})
    assert said.splitlines()[1:] == [
        "gold: COMPANY[Dyson] PRODUCT[V15]",
        "the answers say: COMPANY[Dyson] PRODUCT[V15] (0.500)",
        "  0.400  PRODUCT[V15]",
        "ann: COMPANY[Dyson] PRODUCT[V15]",
    ]
    assert view.item_text({**one, **more, "page": 1, "pages": 2}).endswith("\nmore: --page 2")


def test_the_labels_confidence_is_told_until_somebody_has_checked_them():
    assert "labels: mean confidence 90.0 %; nobody has checked them" in view.overview_text(NOW)
    assert "labels: nobody has checked them" in view.overview_text({**NOW, "confidence": None})
