"""Participants come in once each and only from this study; Prolific's messages are checked."""

from __future__ import annotations

import json
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from campaign.tiny import plan_of
from goldspan.campaign import read_plan
from goldspan.campaign.plan import Provider
from goldspan.errors import FaultsError, InputError, UnknownNameError
from goldspan.web import create_app, open_service
from goldspan.web.providers.payments import PaymentQueue
from goldspan.web.providers.prolific import sign
from goldspan.web.providers.registry import Admission, check_provider, open_provider
from web import played
from web.loops import at_once
from web.played import Played, Records
from web.providers.fake_prolific import STUDY, TOKEN, FakeProlific, ident
from web.serving import open_round, plan_file

ANN, BOB = ident(1), ident(2)
WORK, OTHER = ident(101), ident(102)
SECRET = "webhook-secret"
CLOCK = 1_700_000_000
HOOK = "/api/hooks/prolific"


class Ledger(Records):
    """Records, and workers of whom one may be barred."""

    barred = ""

    def held(self, *_):
        return []

    def standing(self):
        return {self.barred: True}


class Site(Played):
    """A server of a study, and Prolific."""

    def __init__(self, monkeypatch, **options):
        section = Provider(name="prolific", options={"study": STUDY, "code": "DONE1", **options})
        plan = played.tiny_setting().plan.model_copy(update={"provider": section})
        inputs = SimpleNamespace(plan=plan, folder=played.tiny_setting().folder)
        monkeypatch.setattr(played, "tiny_setting", lambda: inputs)
        monkeypatch.setenv("GOLDSPAN_PROLIFIC_TOKEN", TOKEN)
        monkeypatch.setenv("GOLDSPAN_PROLIFIC_WEBHOOK_SECRET", SECRET)
        clock = played.Clock()
        self.fake = FakeProlific(clock)
        self.fake.add(ANN, WORK)
        self.fake.add(BOB, OTHER)
        monkeypatch.setattr("goldspan.web.providers.prolific.Api", lambda _: self.fake.api())
        super().__init__(clock, Ledger())
        self.plan = plan

    def provider(self):
        return open_provider(self.plan, self.ledger, self.clock)

    def join(self, participant=ANN, submission=WORK, study=STUDY, browser=None):
        browser = browser or self.browser()
        words = {"PROLIFIC_PID": participant, "STUDY_ID": study, "SESSION_ID": submission}
        return browser, browser.get("/join/prolific", params=words)

    def hook(self, status, submission=WORK, participant=ANN, **how):
        return post_hook(self.browser(), status, submission, participant, **how)


def post_hook(browser, status, submission=WORK, participant=ANN, *, event=None, at=CLOCK,
              sent=None, secret=SECRET, body=None, signed=None):  # fmt: skip
    facts = {
        "resource_id": submission, "event_type": "submission.status.change",
        "participant_id": participant, "status": status,
    }  # fmt: skip
    body = json.dumps(facts).encode() if body is None else body
    stamp = str(at if sent is None else sent)
    headers = {
        "X-Prolific-Request-Timestamp": stamp,
        "X-Prolific-Request-Signature": sign(secret, stamp, body) if signed is None else signed,
        "X-Timestamp": str(at),
        "X-Event-ID": event or f"{status}-{submission}-{at}".replace(" ", "_"),
    }
    return browser.post(HOOK, content=body, headers=headers)


@pytest.fixture
def site(monkeypatch):
    return Site(monkeypatch)


def test_a_participant_gets_a_cookie_and_the_parameters_leave_the_address(site):
    browser, got = site.join()
    assert (got.status_code, got.headers["location"]) == (303, "/label")
    assert ANN not in got.text + got.headers["location"]
    assert browser.get("/api/work/me").status_code == 200
    assert site.work.calls == [("me", ANN)]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"study": "6" * 24}, 403),
        ({"participant": "5f2b"}, 403),
        ({"participant": ANN.upper()[:-1] + "G"}, 403),
        ({"submission": "../../x"}, 403),
        ({"submission": OTHER}, 403),
        ({"submission": ident(999)}, 403),
    ],
    ids=["other study", "short", "no id", "path", "somebody else's", "unknown"],
)
def test_who_is_not_of_this_study_stays_out(site, words, status):
    browser, got = site.join(**words)
    assert got.status_code == status
    assert "set-cookie" not in got.headers
    assert browser.get("/api/work/me").status_code == 401


def test_a_participant_who_comes_twice_is_one_worker_with_one_link(site):
    for _ in range(2):
        browser, _ = site.join()
        assert browser.get("/api/work/me").status_code == 200
    site.fake.add(ANN, ident(103))
    _, got = site.join(submission=ident(103))
    assert got.status_code == 303
    assert [link.worker for link in site.auth.links.all()] == [ANN]
    assert site.provider().workers() == [ANN]


def test_a_submission_that_one_came_with_lets_nobody_else_in(monkeypatch):
    site = Site(monkeypatch, check=False)
    assert site.join()[1].status_code == 303
    assert site.join(participant=BOB)[1].status_code == 403


@pytest.mark.parametrize("status", ["RETURNED", "TIMED-OUT", "APPROVED"])
def test_a_submission_that_is_over_lets_nobody_in(site, status):
    site.fake.submissions[WORK]["status"] = status
    assert site.join()[1].status_code == 403


def test_while_prolific_cannot_be_asked_people_are_told_to_come_again(site):
    site.fake.faults["get"] = ["lost"] * 5
    _, got = site.join()
    assert (got.status_code, got.headers["retry-after"]) == (503, "60")
    assert site.join()[1].status_code == 303


def test_who_makes_names_up_is_slowed_down_where_nobody_is_checked(monkeypatch):
    site = Site(monkeypatch, check=False)
    found = [site.join(ident(n), ident(500 + n))[1].status_code for n in range(25)]
    assert found == [303] * 20 + [429] * 5


def test_the_completion_is_the_code_and_the_address_of_prolific(monkeypatch):
    site = Site(monkeypatch, code_dropped="DROP1")
    site.join()
    url = "https://app.prolific.com/submissions/complete?cc={}"
    assert site.provider().completion(ANN) == {"url": url.format("DONE1"), "code": "DONE1"}
    site.ledger.barred = ANN
    assert site.provider().completion(ANN)["code"] == "DROP1"
    assert site.provider().completion("by link") is None


def test_who_has_returned_the_submission_is_out_and_comes_in_with_a_new_one(site):
    browser, _ = site.join()
    assert site.hook("RETURNED").json() == {"status": "taken"}
    site.clock.now += 2_000
    assert browser.get("/api/work/me").status_code == 401
    assert site.join()[1].status_code == 403
    site.fake.add(ANN, ident(103))
    browser, got = site.join(submission=ident(103))
    assert got.status_code == 303
    assert site.hook("RETURNED").json() == {"status": "repeated"}
    site.clock.now += 2_000
    assert browser.get("/api/work/me").status_code == 200


@pytest.mark.parametrize("leaves", [False, True])
def test_whose_link_was_taken_back_stays_out_until_there_is_a_new_one(site, leaves):
    site.join()
    (link,) = site.auth.links.all()
    site.auth.links.revoke(link.id)
    if leaves:
        site.hook("RETURNED")
    site.fake.add(ANN, ident(103))
    for submission in (WORK, ident(103)):
        _, got = site.join(submission=submission)
        assert got.status_code == 403
        assert "set-cookie" not in got.headers
    assert "has ended your work here" in got.text
    assert len(site.auth.links.all()) == 1
    site.auth.links.make([ANN], days=1)
    browser, got = site.join(submission=ident(103))
    assert got.status_code == 303
    assert browser.get("/api/work/me").status_code == 200


def test_many_visits_at_once_make_one_link(site):
    admission = Admission(site.provider(), site.ledger, site.auth.links, site.clock)
    came = {"PROLIFIC_PID": ANN, "STUDY_ID": STUDY, "SESSION_ID": WORK}
    make = site.auth.links.make

    def slowly(*words):
        time.sleep(0.02)
        return make(*words)

    site.auth.links.make = slowly
    at_once(lambda: admission.enter(came))
    assert len(site.auth.links.all()) == 1


def test_every_submission_that_may_be_paid_takes_its_reward_off_what_is_owed(monkeypatch):
    site = Site(monkeypatch, reward="1")
    owed = lambda: site.provider().owed(ANN, 2_500_000)  # noqa: E731 - asked after each step
    site.join()
    assert owed() == 1_500_000
    site.fake.add(ANN, ident(103))
    site.join(submission=ident(103))
    assert owed() == 500_000
    assert site.provider().owed(BOB, 2_500_000) == 2_500_000
    site.hook("TIMED-OUT")
    assert owed() == 500_000
    site.hook("RETURNED", ident(103))
    assert owed() == 1_500_000


def test_a_message_counts_once_under_its_id_and_under_its_signature(site):
    site.join()
    assert site.hook("ACTIVE").json()["status"] == "taken"
    assert site.hook("ACTIVE").json()["status"] == "repeated"
    assert site.hook("ACTIVE", sent=CLOCK + 30).json()["status"] == "repeated"
    assert site.hook("ACTIVE", event="made-up").json()["status"] == "repeated"


def test_messages_out_of_order_leave_the_latest_status(site):
    browser, _ = site.join()
    assert site.hook("ACTIVE", at=CLOCK - 10).json()["status"] == "taken"
    assert site.hook("RESERVED", at=CLOCK - 100, sent=CLOCK).json()["status"] == "old"
    assert site.hook("TIMED-OUT", at=CLOCK - 5).json()["status"] == "taken"
    assert site.hook("ACTIVE", at=CLOCK - 7, sent=CLOCK).json()["status"] == "old"
    assert site.provider()._status(WORK) == "TIMED-OUT"
    site.clock.now += 2_000
    assert browser.get("/api/work/me").status_code == 401


def test_of_one_second_the_status_that_follows_counts(site):
    site.join()
    site.hook("APPROVED")
    assert site.hook("AWAITING REVIEW").json()["status"] == "old"


@pytest.mark.torture("messages of a provider are forged, late or odd", "they change nothing")
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"secret": "guessed"}, "signature"),
        ({"signed": ""}, "signature"),
        ({"signed": "é"}, "signature"),
        ({"signed": sign(SECRET, str(CLOCK), b'{"status": "ACTIVE"}')}, "signature"),
        ({"sent": CLOCK - 301}, "late"),
        ({"sent": CLOCK + 301}, "late"),
        ({"sent": "never"}, "late"),
        ({"body": b"[]"}, "invalid"),
        ({"body": b"{"}, "invalid"),
        ({"submission": "x"}, "invalid"),
        ({"event": "a b"}, "invalid"),
        ({"status": "\ud800", "event": "e"}, "invalid"),
    ],
)
def test_a_message_that_is_forged_late_or_odd_changes_nothing(site, how, code):
    browser, _ = site.join()
    if how.get("signed") == "é":
        how = {"signed": "é".encode("latin-1")}
    got = site.hook(**{"status": "RETURNED", **how})
    assert got.status_code in {400, 401}
    assert got.json()["error"]["code"] == code
    site.clock.now += 2_000
    assert browser.get("/api/work/me").status_code == 200


def test_messages_about_others_are_passed_over(site):
    site.join()
    assert site.hook("RETURNED", OTHER, BOB).json() == {"status": "unknown"}
    assert site.hook("RETURNED", WORK, BOB).json() == {"status": "unknown"}
    body = b'{"event_type": "study.status.change", "resource_id": "x", "status": "PAUSED"}'
    assert site.hook("", body=body).json() == {"status": "unknown"}


def test_without_a_secret_nobody_listens(site, monkeypatch):
    monkeypatch.delenv("GOLDSPAN_PROLIFIC_WEBHOOK_SECRET")
    assert site.hook("RETURNED").status_code == 404


def test_finished_work_is_approved_if_the_plan_says_so_but_not_of_who_was_dropped(monkeypatch):
    site = Site(monkeypatch, approve=True)
    site.join()
    site.join(BOB, OTHER)
    site.ledger.barred = BOB
    for submission, worker in [(WORK, ANN), (OTHER, BOB), (WORK, ANN)]:
        site.hook("AWAITING REVIEW", submission, worker)
    letters = PaymentQueue(site.ledger, site.clock).requests()
    assert [(one.act, one.worker) for one in letters] == [("approve", ANN)]


def test_the_tasks_of_who_has_left_are_given_back(tmp_path, monkeypatch):
    monkeypatch.setenv("GOLDSPAN_PROLIFIC_WEBHOOK_SECRET", SECRET)
    path = plan_file(tmp_path, control=None, page={"training": 0})
    words = f'study = "{STUDY}"\ncode = "DONE1"\ncheck = false\n'
    path.write_text(f'{path.read_text()}[provider]\nname = "prolific"\n[provider.options]\n{words}')
    with closing(open_service(path, tmp_path / "out", played.KEYS)) as service:
        open_round(service)
        app = create_app(service, played.ServerSettings(played.KEYS))
        browser = TestClient(app, base_url=played.URL, follow_redirects=False)
        came = {"PROLIFIC_PID": ANN, "STUDY_ID": STUDY, "SESSION_ID": WORK}
        assert browser.get("/join/prolific", params=came).status_code == 303
        assert service.work.next(ANN)["state"] == "task"
        assert service.ledger.held(ANN, service.clock())
        now = service.clock() // 1000
        assert post_hook(browser, "RETURNED", at=now).json() == {"status": "taken"}
        assert not service.ledger.held(ANN, service.clock())
        assert service.work.completion(ANN)["code"] == "DONE1"


def plan_with(**section):
    made = played.tiny_setting().plan
    return made.model_copy(update={"provider": Provider(**section)})


def test_a_provider_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UnknownNameError, match="link, prolific"):
        check_provider(plan_with(name="prolofic"))


def test_all_that_is_wrong_with_options_is_listed():
    options = {"study": "x", "token": "secret", "settle_minutes": 1}
    with pytest.raises(FaultsError) as caught:
        check_provider(plan_with(name="prolific", options=options))
    told = [fault.message for fault in caught.value.faults]
    assert [one.split(":")[0].rpartition(".")[2] for one in told] == [
        "study", "code", "settle_minutes", "token",
    ]  # fmt: skip


def test_the_token_may_stand_in_a_file(tmp_path, monkeypatch):
    provider = open_provider(plan_with(name="prolific", options={"study": STUDY, "code": "A"}),
                             Ledger(), played.Clock())  # fmt: skip
    monkeypatch.delenv("GOLDSPAN_PROLIFIC_TOKEN", raising=False)
    with pytest.raises(InputError, match="GOLDSPAN_PROLIFIC_TOKEN_FILE"):
        provider.sender()
    path = tmp_path / "token"
    monkeypatch.setenv("GOLDSPAN_PROLIFIC_TOKEN_FILE", str(path))
    with pytest.raises(InputError, match="No such file"):
        provider.sender()
    path.write_text("two words")
    with pytest.raises(InputError, match="one word") as caught:
        provider.sender()
    assert "two words" not in str(caught.value)
    path.write_text(f"{TOKEN}\n")
    assert provider.sender()


def test_a_link_provider_gives_what_the_plan_says_and_pays_nobody():
    options = {"url": "https://example.org/end", "code": "C1"}
    link = open_provider(plan_with(name="link", options=options), Ledger(), played.Clock())
    assert link.completion("ann") == options
    assert link.sender() is None
    with pytest.raises(InputError, match="pays nobody"):
        link.about("ann")
    plain = open_provider(played.tiny_setting().plan, Ledger(), played.Clock())
    assert plain.completion("ann") is None
    with pytest.raises(FaultsError, match="https://"):
        check_provider(plan_with(options={"url": "javascript:alert(1)"}))


def test_a_provider_belongs_to_people_in_browsers():
    plan = plan_of({"provider": {"name": "link"}})
    with pytest.raises(FaultsError, match='provider: belongs to source = "web"'):
        read_plan(plan)
