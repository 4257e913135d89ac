"""Bonuses are paid once, whatever goes wrong on the way; approvals and rejections arrive."""

from __future__ import annotations

import itertools

import pytest

from goldspan.campaign.clock import CampaignClock
from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.store import create_ledger
from goldspan.web.providers.payments import Later, PaymentQueue, PaymentThread, send_all
from goldspan.web.providers.prolific import ProlificSender
from web.loops import at_once, wait_until
from web.played import Records
from web.providers.fake_prolific import STUDY, TOKEN, FakeProlific, ident
from web.serving import Clock

ANN, BOB = ident(1), ident(2)
WORK, OTHER = ident(101), ident(102)
MINUTES = 60
PAYING = pytest.mark.torture(
    "calls to a payment provider fail, are cut off, or the sender is killed",
    "everything is paid exactly once",
)
REASON = "too many words were left without any label, although the instructions show such. " * 2


class Memory(Records):
    """What an outbox needs of a ledger, without a disk, for the many combinations."""

    def charge(self, *_):
        return True

    def close(self):
        pass


def real_ledger(folder, clock):
    return create_ledger(
        folder / "post.sqlite", name="post", cap=10_000_000, currency="GBP",
        tagset=Codec.from_types(["PER"], "BIO"), now=clock(),
    )  # fmt: skip


class Post:
    """An outbox and the other side."""

    def __init__(self, folder=None):
        self.clock = Clock()
        self.ledger = Memory() if folder is None else real_ledger(folder, self.clock)
        self.fake = FakeProlific(self.clock)
        self.fake.add(ANN, WORK, "AWAITING REVIEW")
        self.fake.add(BOB, OTHER, "AWAITING REVIEW")
        self.outbox = PaymentQueue(self.ledger, self.clock)

    def sender(self):
        return ProlificSender(self.fake.api(), STUDY, MINUTES, self.clock)

    def send(self):
        """Send once; being told to come later is no fault."""
        try:
            send_all(self.outbox, self.sender().deliver)
        except Later:
            return False
        return True

    def send_for(self, hours=6):
        """Send every twenty minutes."""
        for _ in range(3 * hours):
            self.send()
            self.clock.pass_seconds(20 * 60)

    def states(self):
        return [one.state for one in self.outbox.requests()]


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def kept(tmp_path):
    """Give an outbox over a real ledger."""
    made = Post(tmp_path)
    yield made
    made.ledger.close()


def test_a_bonus_is_prepared_paid_and_taken_from_the_budget(kept):
    kept.outbox.bonus(ANN, WORK, 1_500_000, "week 1")
    assert kept.send()
    assert kept.fake.cents_of(WORK) == [150]
    assert kept.states() == ["sent"]
    assert kept.ledger.totals().spent == 1_500_000
    kept.send_for()
    assert kept.fake.cents_of(WORK) == [150]


FAULTS = ["lost", "cut", "500 after", "503", "429", ""]


@PAYING
@pytest.mark.parametrize("lists_after", [0, 600])
@pytest.mark.parametrize("faults", [*itertools.product(FAULTS[:5], FAULTS)], ids="+".join)
def test_a_bonus_is_paid_exactly_once_whatever_happens_to_its_calls(post, faults, lists_after):
    post.fake.lists_after = lists_after
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.faults["pay"] = list(faults)
    post.fake.faults["get"] = ["503", "cut"]
    post.fake.faults["set up"] = ["429", "500 after", "cut"]
    post.send_for()
    assert post.fake.cents_of(WORK) == [50]
    assert post.states() == ["sent"]


@PAYING
@pytest.mark.parametrize(
    ("lists_after", "faults"),
    [(0, ["cut", "503", "cut"]), (600, ["cut", "503", "cut"]), (600, ["", "503"])],
)
def test_two_equal_bonuses_of_a_worker_are_both_paid_once(post, lists_after, faults):
    post.fake.lists_after = lists_after
    post.fake.faults["pay"] = faults
    for why in ("week 1", "week 2"):
        post.outbox.bonus(ANN, WORK, 500_000, why)
    post.outbox.bonus(BOB, OTHER, 500_000, "week 1")
    post.send_for(hours=12)
    assert post.fake.cents_of(WORK) == [50, 50]
    assert post.fake.cents_of(OTHER) == [50]
    assert post.states() == ["sent"] * 3


class Killed(BaseException):
    """The process ends here."""


@PAYING
@pytest.mark.parametrize("at", ["before the step", "after the step", "after the pay"])
def test_a_kill_at_any_moment_does_not_pay_twice(kept, monkeypatch, at):
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    real = PaymentQueue.note

    def note(self, letter, state, **facts):
        if (at, state) in {("before the step", "sending"), ("after the pay", "sent")}:
            raise Killed
        made = real(self, letter, state, **facts)
        if at == "after the step":
            raise Killed
        return made

    with monkeypatch.context() as patched:
        patched.setattr(PaymentQueue, "note", note)
        with pytest.raises(Killed):
            kept.send()
    assert kept.fake.cents_of(WORK) == ([50] if at == "after the pay" else [])
    kept.outbox = PaymentQueue(kept.ledger, kept.clock)
    kept.send_for()
    assert kept.fake.cents_of(WORK) == [50]
    assert kept.states() == ["sent"]


def test_nothing_is_sent_again_before_payments_had_time_to_be_listed(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.faults["pay"] = ["503"]
    for _ in range(5):
        post.send()
        post.clock.pass_seconds((MINUTES - 1) * 60 / 5)
    assert post.fake.calls.count("pay") == 1
    post.clock.pass_seconds(120)
    post.send()
    assert post.fake.calls.count("pay") == 2


def test_of_two_senders_one_pays(kept):
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    other = PaymentQueue(kept.ledger, kept.clock)
    (mine,), (theirs,) = kept.outbox.requests(), other.requests()
    kept.sender().deliver(mine, kept.outbox)
    kept.sender().deliver(theirs, other)
    assert kept.fake.calls.count("pay") == 1


@PAYING
def test_many_senders_at_once_pay_once(kept):
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    at_once(lambda: send_all(PaymentQueue(kept.ledger, kept.clock), kept.sender().deliver))
    assert kept.fake.cents_of(WORK) == [50]


def test_the_same_reason_pays_nobody_twice_on_whatever_work_and_no_other_amount(kept):
    first = kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    words = r"bonus of 0\.50 was written for .week 1., not of 0\.60: give another reason"
    for work in (WORK, ident(103)):
        assert kept.outbox.bonus(ANN, work, 500_000, "week 1") == first
        with pytest.raises(InputError, match=words):
            kept.outbox.bonus(ANN, work, 600_000, "week 1")
    assert [one.about for one in kept.outbox.requests()] == [WORK]
    assert kept.ledger.totals().spent == 500_000


def test_a_bonus_that_was_charged_and_not_written_is_written_about_later_work_for_nothing(
    kept, monkeypatch
):
    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(PaymentQueue, "_write", killed)
        with pytest.raises(Killed):
            kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    kept.outbox.bonus(ANN, ident(103), 500_000, "week 1")
    assert len(kept.outbox.requests()) == 1
    assert kept.ledger.totals().spent == 500_000


def test_of_two_who_write_a_bonus_about_different_work_at_once_one_does(kept, monkeypatch):
    other, real = PaymentQueue(kept.ledger, kept.clock), kept.ledger.charge

    def late(*words):
        monkeypatch.setattr(kept.ledger, "charge", real)
        other.bonus(ANN, ident(103), 500_000, "week 1")
        return real(*words)

    monkeypatch.setattr(kept.ledger, "charge", late)
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    assert [one.about for one in kept.outbox.requests()] == [ident(103)]
    assert kept.ledger.totals().spent == 500_000


def test_a_bonus_over_the_budget_is_not_written(kept):
    with pytest.raises(InputError, match=r"does not hold a bonus of 10\.01"):
        kept.outbox.bonus(ANN, WORK, 10_010_000, "week 1")
    assert kept.outbox.requests() == []


def test_what_answers_earned_is_sent_once_in_whole_cents_and_not_charged_again(kept):
    kept.outbox.earned(ANN, WORK, 1_239_000)
    assert kept.outbox.earned(ANN, WORK, 1_239_000) is None
    kept.outbox.earned(ANN, WORK, 1_500_000)
    kept.send()
    assert kept.fake.cents_of(WORK) == [123, 27]
    assert kept.ledger.totals().spent == 0


def test_a_refused_letter_says_why_and_is_sent_again_when_asked_to(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.faults["set up"] = ["400"]
    post.send()
    (letter,) = post.outbox.requests()
    assert letter.state == "refused"
    assert "400" in letter.facts["why"]
    post.send_for()
    assert post.fake.paid == []
    post.outbox.reopen(letter.id)
    post.send()
    assert post.fake.cents_of(WORK) == [50]
    with pytest.raises(InputError, match="no request"):
        post.outbox.reopen(letter.id)


def test_an_amount_that_prolific_understands_otherwise_is_not_paid(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.understands = 100
    post.send()
    assert post.states() == ["refused"]
    assert post.fake.paid == []


def test_a_bonus_that_may_be_paid_is_not_called_refused_when_it_cannot_be_looked_up(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.faults["pay"] = ["cut"]
    post.send()
    post.fake.faults["get"] = ["400"]
    assert not post.send()
    assert post.states() == ["sending"]
    post.send()
    assert post.states() == ["sent"]
    assert post.fake.cents_of(WORK) == [50]


def test_a_wrong_token_refuses_no_letter(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    for call in ("get", "set up", "pay"):
        post.fake.faults[call] = ["401"]
        assert not post.send()
    assert post.states() == ["ready"]
    assert post.send()
    assert post.fake.cents_of(WORK) == [50]


def test_a_sender_that_slept_before_paying_does_not_pay(post, monkeypatch):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    real, other = PaymentQueue.note, PaymentQueue(post.ledger, post.clock)

    def sleep(self, letter, state, **facts):
        made = real(self, letter, state, **facts)
        if self is post.outbox and state == "sending":
            post.clock.pass_seconds(2 * MINUTES * 60)
            send_all(other, post.sender().deliver)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(PaymentQueue, "note", sleep)
        post.send()
    assert post.fake.cents_of(WORK) == [50]


def test_a_sender_whose_monotone_clock_slept_too_does_not_pay(tmp_path, monkeypatch):
    kept, real = Post(tmp_path), PaymentQueue.note
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    clock = CampaignClock(kept.ledger, wall=kept.clock, monotone=lambda: 0)

    def sleep(self, letter, state, **facts):
        made = real(self, letter, state, **facts)
        if state == "sending":
            kept.clock.pass_seconds(2 * MINUTES * 60)
        return made

    monkeypatch.setattr(PaymentQueue, "note", sleep)
    sender = ProlificSender(kept.fake.api(), STUDY, MINUTES, clock)
    send_all(PaymentQueue(kept.ledger, clock), sender.deliver)
    assert (kept.states(), kept.fake.cents_of(WORK)) == (["ready"], [])
    kept.ledger.close()


def test_refused_earnings_are_sent_again_and_not_written_again(post):
    post.fake.faults["set up"] = ["400"]
    name = post.outbox.earned(ANN, WORK, 1_000_000)
    post.send()
    assert post.outbox.earned(ANN, WORK, 1_000_000) is None
    post.outbox.reopen(name)
    post.send()
    assert post.fake.cents_of(WORK) == [100]


def test_parts_of_a_cent_are_refused(post):
    post.outbox.bonus(ANN, WORK, 505_000, "week 1")
    post.send()
    assert post.states() == ["refused"]
    assert post.fake.calls == []


@PAYING
@pytest.mark.parametrize("fault", ["lost", "cut", "500 after", "503", "429"])
def test_an_approval_arrives_whatever_happens_to_its_calls(post, fault):
    post.outbox.approve(ANN, WORK)
    post.fake.faults["transition"] = [fault] * 7
    post.send_for(hours=1)
    assert post.fake.submissions[WORK]["status"] == "APPROVED"
    assert post.states() == ["sent"]


def test_a_rejection_is_sent_and_cannot_meet_an_approval(post):
    post.outbox.reject(ANN, WORK, REASON, "LOW_EFFORT")
    with pytest.raises(InputError, match="a request to reject already"):
        post.outbox.approve(ANN, WORK)
    post.send()
    assert post.fake.submissions[WORK]["status"] == "REJECTED"


def test_a_submission_in_another_state_is_refused_and_can_be_decided_again_or_by_hand(post):
    for status in ("ACTIVE", "AWAITING REVIEW", "APPROVED"):
        post.fake.submissions[WORK]["status"] = status
        post.outbox.approve(ANN, WORK)
        post.send()
    assert post.states() == ["refused", "sent"]
    post.fake.submissions[OTHER]["status"] = "APPROVED"  # by hand
    post.outbox.approve(BOB, OTHER)
    post.fake.faults["transition"] = ["400"]
    post.send()
    assert post.states() == ["refused", "sent", "sent"]


def test_pauses_are_as_long_as_prolific_says_or_grow_and_a_long_one_is_not_waited_for(post):
    post.fake.faults["get"] = ["429", "503", "503"]
    post.fake.api().submission(WORK)
    assert post.fake.slept == [7, 2, 4]
    post.fake.faults["get"] = ["429 long"]
    with pytest.raises(Later):
        post.fake.api().submission(WORK)
    assert post.fake.slept == [7, 2, 4]


def test_the_token_is_in_no_message_and_no_record(kept, caplog):
    caplog.set_level("DEBUG")
    kept.outbox.bonus(ANN, WORK, 500_000, "week 1")
    kept.fake.faults["set up"] = ["400"]
    kept.send()
    with pytest.raises(Later) as caught:
        kept.fake.faults["get"] = ["cut"] * 9
        kept.fake.api().submission(WORK)
    log = str([event.body for event in kept.ledger.events()])
    for words in (caplog.text, log, str(caught.value), repr(kept.fake.api())):
        assert TOKEN not in words


def test_the_server_sends_in_the_background_and_goes_on_after_a_fault(post):
    post.outbox.bonus(ANN, WORK, 500_000, "week 1")
    post.fake.faults["get"] = ["503"] * 5
    sending = PaymentThread(post.outbox, post.sender().deliver, every=0.01)
    sending.start()
    wait_until(lambda: post.states() == ["sent"])
    sending.stop()
    assert post.fake.cents_of(WORK) == [50]
