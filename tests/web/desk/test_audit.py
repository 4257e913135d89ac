"""Drawn items are checked blind; what is found is kept beside the answers."""

from __future__ import annotations

import json
from io import BytesIO
from zipfile import ZipFile

import pytest

import goldspan
from goldspan.campaign import CampaignRecord
from goldspan.campaign.auditing import CHECK, last_draw
from goldspan.money import from_micro
from goldspan.report.campaign import render
from goldspan.store.verify import verify
from goldspan.web.desk_api import mask_overview
from goldspan.web.errors import Refused
from goldspan.web.security.access import Caller
from web.desk.conftest import worked
from web.desks import Served
from web.played import DAY
from web.serving import answer, key, right_answer
from web.test_reviewer import reviewer

N = 12
SEEN = {"id", "kind", "tokens", "text", "starts", "expires", "training"}


@pytest.fixture(params=[False, True], ids=["single", "spans"])
def audited(request, tmp_path):
    """A campaign with a draw."""
    made = worked(tmp_path, spans=request.param, select={"batch": N + 2})
    while answer(made, "ann.k") or answer(made, "bob.k"):
        made.clock.pass_seconds(3)
    made.engine._next_look = 0
    made.engine.look()
    made.desk.draw_audit(N)
    yield made
    made.close()


def check(service, who):
    """Check the next item; return it."""
    found = service.desk.checking.next(who)
    task = found["task"]["id"]
    item = service.desk.tasks.item(who, task)
    service.desk.checking.submit(who, who, task, key(), right_answer(service, item))
    return item


def test_what_is_served_is_the_text_alone(audited):
    served = Served(service=audited)
    rita = reviewer(served)
    told = rita.post("audit/next", json={})
    page = rita.get(f"{served.settings.public_url}/desk/audit/check")
    assert 'href="/desk/audit">‹ Back to the audit' in page.text
    assert told.json()["task"].keys() == SEEN
    item = last_draw(audited.ledger)["items"][0]
    assert told.json()["task"]["text"] == audited.desk.tasks.text(item)
    words = told.text.replace(json.dumps(audited.desk.tasks.text(item)), "")
    assert not [name for name in (item, "LOC", "rain", "sun", "confidence") if f'"{name}"' in words]
    assert rita.get("audit").json() == {"drawn": N, "open": N, "certificate": None}
    assert rita.post("audit/draw", json={}).status_code == 403


def test_two_check_different_items_and_each_goes_on_where_they_were(audited):
    checking, drawn = audited.desk.checking, last_draw(audited.ledger)["items"]
    first = checking.next("a")["task"]
    assert checking.next("a")["task"]["id"] == first["id"]
    assert check(audited, "b") == drawn[1]
    audited.clock.pass_seconds(60 * audited.inputs.plan.page.lease_minutes + 1)
    assert check(audited, "b") == drawn[0]
    with pytest.raises(Refused):
        audited.desk.tasks.item("b", first["id"])


def test_sent_again_a_check_counts_once_and_another_under_its_key_is_refused(audited):
    checking, sent = audited.desk.checking, key()
    task = checking.next("a")["task"]["id"]
    answer = right_answer(audited, audited.desk.tasks.item("a", task))
    told = [checking.submit("a", "", task, sent, answer) for _ in range(2)]
    assert told[0] == told[1]
    assert len(audited.ledger.records(CHECK)) == 1
    with pytest.raises(Refused, match="Another answer"):
        checking.skip("a", "", task, sent, "I am not sure")


def test_checks_are_in_the_log_and_nowhere_among_answers(audited, tmp_path):
    files = [one.name for one in audited.desk.exports()
             if one.name.startswith(("answers.", "bill", "gold."))]  # fmt: skip

    def known():
        return (
            [audited.desk.export(name, names=True).content for name in files],
            audited.desk.workers(), audited.desk.answer_counts(), audited.desk.money(),
            audited.ledger.slots().to_pydict(), audited.desk.uncertain(),
        )  # fmt: skip

    before, version = known(), audited.engine.live.version
    assert [check(audited, "a") for _ in range(N)] == last_draw(audited.ledger)["items"]
    assert audited.desk.checking.next("a")["state"] == "done"
    assert known() == before
    audited.engine._next_look = 0
    audited.engine.look()
    assert audited.engine.live.version > version
    found = audited.desk.overview().certificate
    assert found["checked"] == N
    card = ZipFile(BytesIO(audited.desk.export("dataset.zip").content)).read("README.md").decode()
    record = json.loads(audited.desk.export("record.json").content)
    assert found["text"] in card
    assert found["design"] in card
    assert record["certificate"] == found
    assert found["text"] in render(CampaignRecord.of(audited.ledger, audited.engine.live.result))
    ZipFile(BytesIO(audited.desk.export("audit.zip").content)).extractall(tmp_path)
    again = goldspan.audit(
        tmp_path / "labels.jsonl", tmp_path / "checked.jsonl", tmp_path / "labels.audit.json",
        anytime=True,
    ).estimate  # fmt: skip
    assert again == pytest.approx([found[end] for end in ("value", "low", "high")], abs=1e-4)
    assert verify(audited.ledger.database).is_whole


@pytest.fixture
def wanting(tmp_path):
    """A campaign that wants a certificate; ann has answered everything."""
    twice = {"min": 2, "max": 2}
    made = worked(
        tmp_path, stop={"certified": {"accuracy": 0.5}}, select={"batch": N}, redundancy=twice
    )
    while answer(made, "ann.k"):
        made.clock.pass_seconds(3)
    made.campaign.run()
    made.engine._next_look = 0
    made.engine.look()
    yield made
    made.close()


def test_checks_end_a_campaign_within_a_round_and_nobody_is_asked_more(wanting):
    assert wanting.campaign.run().answers > 0
    wanting.desk.draw_audit(N)
    for _ in range(N):
        check(wanting, "a")
    found = wanting.campaign.run()
    assert (found.stop, found.rule) == (True, "certified")
    assert not wanting.ledger.records("round")
    assert answer(wanting, "bob.k") is None


def test_a_desk_waits_for_the_checks_that_are_missing_and_pays_them(tmp_path):
    made = worked(
        tmp_path, stop={"certified": {"accuracy": 0.6}}, select={"batch": N + 2},
        redundancy={"min": 2, "max": 2}, prices={"per_check": "0.50"}, budget={"money": "9"},
    )  # fmt: skip
    while answer(made, "ann.k") or answer(made, "bob.k"):
        made.clock.pass_seconds(3)
    made.engine._next_look = 0
    made.engine.look()
    made.desk.draw_audit(N)
    before, sent = made.ledger.totals().spent, []
    for seconds in (5, 20, 20, 9, 50) * 2:
        task = made.desk.checking.next("a")["task"]["id"]
        right = right_answer(made, made.desk.tasks.item("a", task))
        made.clock.pass_seconds(seconds)
        sent.append(("a", "rita", task, key(), right))
        made.desk.checking.submit(*sent[-1])
    made.desk.checking.submit(*sent[-1])  # sent again, it is paid once
    assert made.ledger.totals().spent - before == 5_000_000
    record = CampaignRecord.of(made.ledger)
    assert record.money["checks"] == {"n": 10, "cost": 5_000_000, "seconds": 20}
    assert "5.00 for 10 checks, 20 seconds each in the median" in render(record)
    bill = made.desk.export("bill.csv").content.decode().splitlines()
    assert bill[-1].startswith("audit rita,10,10,10,3.467,")
    assert bill[-1].endswith(",5.00")
    made.desk.checking.submit(*sent[-1][:3], key(), sent[-1][4])  # changed: it is paid already
    assert made.ledger.totals().spent - before == 5_000_000
    assert CampaignRecord.of(made.ledger).money["checks"] == record.money["checks"]
    made.clock.pass_seconds(DAY)  # nobody checks any more
    waiting, found = made.campaign.run(), made.campaign.certificate()
    assert (waiting.answers, waiting.items) == (0, found["missing"])
    ends = [from_micro(500_000 * round(found["end"][side])) for side in ("low", "high")]
    assert found["cost"].startswith(f" ({ends[0]} to {ends[1]}")
    made.engine._publish(waiting=waiting, certificate=found)
    shown = made.desk.overview()
    assert shown.why == "it waits for checks"
    assert (
        mask_overview(shown, Caller("t", "t", frozenset({"progress"}))).certificate["cost"] is None
    )
    made.ledger.set_cap(made.ledger.totals().spent + 499_999, made.clock())
    assert "does not pay" in made.desk.checking.next("a")["message"]
    assert "the money is not enough with a chance of 100" in made.campaign.certificate()["cost"]
    ended = made.campaign.run()
    assert (ended.rule, ended.why) == ("checks", found["goal"])
    made.close()


def test_a_round_waits_for_who_checks_until_they_go_or_the_requester_ends_it(wanting):
    wanting.desk.draw_audit(N)
    check(wanting, "a")
    while answer(wanting, "bob.k"):
        wanting.clock.pass_seconds(1)
    waiting = wanting.campaign.run()
    assert (waiting.answers, waiting.items) == (0, N - 1)
    wanting.desk.stop()
    found = wanting.campaign.run()
    assert found.rule == "requester"
    assert "too few drawn items are checked" in found.why
