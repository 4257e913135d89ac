"""Wall clocks that jump, at boot and while a campaign is served: nothing ends or is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, toml, write_files
from goldspan.campaign import write_exports
from goldspan.campaign.clock import (
    BEAT,
    CLOCK,
    DOWNTIME,
    CampaignClock,
    WallTimes,
    open_clock,
    wall_clock,
)
from goldspan.campaign.crowds import is_over
from goldspan.campaign.results import ReportData
from goldspan.cli import app as command
from goldspan.cli.campaign import write_page
from goldspan.store import open_ledger
from goldspan.web.errors import Refused
from web.desks import Served, as_json
from web.loops import wait_until
from web.played import with_token
from web.serving import answer, key, open_round, plan_file, right_answer
from web.serving import serve as open_served

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
YEAR = 365 * DAY
LEASE = 5 * MINUTE
JUMPS = pytest.mark.parametrize("jump", [YEAR, -YEAR])
WHEN = pytest.mark.parametrize("at_boot", [False, True], ids=["serving", "boot"])


class Machine:
    """The two clocks of a machine."""

    def __init__(self):
        self.wall, self.gone = 1_700_000_000_000, 77_000

    def time_ns(self):
        return self.wall * 10**6

    def monotonic_ns(self):
        return self.gone * 10**6

    def work(self, milliseconds):
        """Let time pass."""
        self.wall += milliseconds
        self.gone += milliseconds

    def restart(self, milliseconds=1_000):
        """Let time pass in which nothing runs; the monotone clock begins anew."""
        self.wall += milliseconds
        self.gone = 5


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    monkeypatch.setattr("goldspan.campaign.clock.time", made)
    return made


@pytest.fixture
def site(tmp_path, machine):
    """A served campaign that can be ended and served again."""

    def start(**sections):
        site.service = open_served(tmp_path, **sections)
        site.service.clock.note(BEAT)  # as the keeper does when it starts
        site.served = Served(service=site.service)
        open_round(site.service)
        return site

    def jump(milliseconds, at_boot, *, killed=False):
        if not at_boot:
            machine.wall += milliseconds
            site.service.clock.note()  # as the keeper does within a second
            return
        if not killed:
            site.service.start(loop=False)
        site.service.close()
        machine.restart(1_000 + milliseconds)
        start()

    site = SimpleNamespace(start=start, jump=jump, machine=machine, folder=tmp_path)
    yield start()
    site.service.close()


def held(site, worker="ann"):
    return [one.item for one in site.service.ledger.held(worker, site.service.clock())]


@JUMPS
@WHEN
def test_a_jump_neither_ends_a_lease_nor_makes_it_longer(site, jump, at_boot):
    task = site.service.work.next("ann")["task"]
    (item,) = held(site)
    site.machine.work(MINUTE)
    site.jump(jump, at_boot)
    site.service.ledger.expire(site.service.clock())
    assert held(site) == [item]
    again = site.service.work.next("ann")["task"]
    assert again["id"] == task["id"]
    site.machine.work(LEASE - MINUTE - DOWNTIME - 1)
    site.service.ledger.expire(site.service.clock())
    assert held(site) == [item]
    site.machine.work(DOWNTIME + 1)
    assert site.service.ledger.expire(site.service.clock()) == 1
    assert held(site) == []


@JUMPS
def test_a_kill_with_a_jump_makes_no_lease_longer_than_what_was_quiet_before(site, jump):
    site.service.work.next("ann")
    site.machine.work(MINUTE)
    site.jump(jump, at_boot=True, killed=True)
    site.service.ledger.expire(site.service.clock())
    assert len(held(site)) == 1
    site.machine.work(LEASE)
    assert site.service.ledger.expire(site.service.clock()) == 1


@JUMPS
@WHEN
def test_the_page_is_told_the_end_of_a_lease_by_the_date_of_the_replies(site, jump, at_boot):
    site.jump(jump, at_boot)
    task = site.service.work.next("ann")["task"]
    assert task["expires"] == site.machine.wall + LEASE


@JUMPS
@WHEN
def test_how_long_an_answer_took_is_not_changed_by_a_jump(site, jump, at_boot):
    for n, seconds in enumerate((40, 30, 2)):  # the last one is far too fast
        task = site.service.work.next("ann")["task"]
        item = site.service.work.tasks.item("ann", task["id"])
        if n == 1:
            site.jump(jump, at_boot)
        site.machine.work(seconds * 1_000)
        said = right_answer(site.service, item)
        assert site.service.work.submit("ann", task["id"], key(), said)["status"] == "accepted"
    answers = site.service.ledger.crowd().latest
    took = answers.submitted - answers.started
    first, middle, last = took[np.argsort(answers.submitted, kind="stable")].tolist()
    assert (first, last) == (40_000, 2_000)
    assert 30_000 <= middle <= 30_000 + (DOWNTIME if at_boot else 0)


@JUMPS
@WHEN
def test_a_jump_ends_no_session_and_none_lasts_longer(site, jump, at_boot):
    worker, requester = site.served.worker("ann"), site.served.requester()
    site.jump(jump, at_boot)

    def status(browser, path):
        made = site.served.browser()
        made.cookies.update(browser.cookies)
        with_token(made, browser.headers["X-Goldspan-CSRF"])
        return made.get(path).status_code

    assert status(worker, "/api/work/me") == 200
    assert status(requester, "/api/desk/overview") == 200
    site.machine.work(59 * MINUTE)
    assert status(requester, "/api/desk/overview") == 200
    site.machine.work(61 * MINUTE)
    assert status(requester, "/api/desk/overview") == 401
    assert status(worker, "/api/work/me") == 200
    site.machine.work(30 * DAY)
    assert status(worker, "/api/work/me") == 401


@pytest.mark.parametrize("jump", [HOUR, YEAR, -YEAR])
def test_a_link_expires_by_the_wall_clock(site, jump):
    links = site.served.auth.links
    ((link, token),) = links.make(["ann"], 7)
    assert link.expires == site.machine.wall + 7 * DAY
    site.jump(jump, at_boot=False)
    if jump == YEAR:
        with pytest.raises(Refused, match="expired"):
            links.read(token)
    else:
        assert links.read(token).worker == "ann"


@JUMPS
@WHEN
def test_nothing_is_refused_because_of_the_time(site, jump, at_boot):
    answer(site.service, "ann")
    site.jump(jump, at_boot)
    answer(site.service, "bob")
    desk, ledger = site.served.requester(), site.service.ledger
    for act, paused in (("pause", True), ("resume", False)):
        reply = desk.post(f"/api/desk/{act}")
        assert reply.status_code == 200, reply.text
        assert ledger.is_paused == paused
    links = site.served.auth.links
    ((link, _),) = links.make(["cat"], 1)
    links.revoke(link.id)
    assert links.has_ended(link.id)
    site.service.engine.look()
    for name in ("answers.csv", "record.json", "bill.csv", "gold.csv"):
        assert site.service.desk.export(name, names=True, by="").content
    assert write_exports(site.service.campaign, site.folder / "files")
    found = ReportData.of(ledger, site.service.campaign.progress.result)
    assert write_page(found, site.folder / "files")
    times = [event.time for event in ledger.events()]
    assert times == sorted(times)
    assert ledger.verify() == len(times)


@JUMPS
@WHEN
def test_people_read_what_the_wall_clock_showed(site, jump, at_boot):
    shown = []
    for worker in ("ann", "bob", "cat"):
        item, _ = answer(site.service, worker)
        shown.append((worker, item, site.machine.wall))
        site.machine.work(20_000)
        if worker == "ann":
            site.jump(jump, at_boot)
    for worker, item, wall in shown:
        rows = as_json(site.service.desk.item(item))["answers"]
        (read,) = [row["submitted"] for row in rows if row["worker"] == worker]
        assert abs(read - wall) < 1_000
    read = WallTimes(site.service.ledger).crowd(site.service.ledger.crowd())
    plain = site.service.ledger.crowd().answers
    assert sorted(read.answers.submitted.tolist()) == pytest.approx(
        sorted(wall for *_, wall in shown), abs=1_000
    )
    took = read.answers.submitted - read.answers.started
    assert (took == plain.submitted - plain.started).all()


@JUMPS
def test_a_command_beside_a_server_ends_no_lease_and_is_not_refused(site, jump):
    site.service.work.next("ann")
    site.machine.work(LEASE - DOWNTIME // 2)
    real = site.machine.wall
    with open_ledger(site.folder / "out" / "campaign.sqlite") as ledger:
        site.machine.wall += jump
        clock = open_clock(ledger)
        site.machine.wall = real
        ledger.record("note", "of a command", {}, clock())
        ledger.pause(clock())
    site.service.ledger.expire(site.service.clock())
    assert len(held(site)) == 1
    site.service.ledger.pause(site.service.clock(), paused=False)
    times = [event.time for event in site.service.ledger.events()]
    assert times == sorted(times)
    assert times[-1] - site.service.clock() <= DOWNTIME


def test_downtime_does_not_end_leases_and_counts_up_to_a_bound(site):
    site.service.work.next("ann")
    before = site.service.clock()
    site.jump(2 * DAY, at_boot=True)
    assert site.service.clock() - before == DOWNTIME
    assert len(held(site)) == 1
    site.service.work.next("bob")
    before = site.service.clock()
    site.jump(20_000, at_boot=True)
    assert site.service.clock() - before == 21_000


def test_a_quiet_server_that_is_ended_has_lost_no_time(site):
    site.machine.work(10 * HOUR)
    site.jump(0, at_boot=True)
    assert site.service.clock() - site.machine.wall == 0


def test_the_time_of_a_quiet_server_is_kept_now_and_then(site):
    ledger, clock = site.service.ledger, site.service.clock
    n = ledger.n_events
    site.machine.work(BEAT - 1)
    clock.note(BEAT)
    assert ledger.n_events == n
    site.machine.work(1)
    clock.note(BEAT)
    assert ledger.n_events == n + 1
    assert list(ledger.records(CLOCK).values())[-1] == {"time": clock(), "wall": clock.wall()}


def test_a_server_notes_a_jump_by_itself(site):
    site.service.start(loop=False)
    site.machine.wall += HOUR
    wait_until(lambda: site.service.ledger.records(CLOCK))
    (note,) = site.service.ledger.records(CLOCK).values()
    assert note["wall"] - note["time"] == HOUR


@JUMPS
@WHEN
def test_a_jump_uses_up_no_hours_of_the_campaign(tmp_path, machine, jump, at_boot):
    options = {"budget": {"hours": 3}}
    service = open_served(tmp_path, **options)
    open_round(service)
    if at_boot:
        service.close()
        machine.restart(jump)
        service = open_served(tmp_path, **options)
    else:
        machine.wall += jump
    assert not is_over(service.inputs, service.ledger, service.clock())
    machine.work(3 * HOUR)
    assert is_over(service.inputs, service.ledger, service.clock())
    service.close()


def test_days_between_two_runs_over_files_count(tmp_path, machine):
    path = plan_file(tmp_path)
    write_files(tmp_path)
    made = plan_of(budget={"hours": 30})
    made["crowd"] = {"source": "files"}
    path.write_text(toml(made))
    words = ["run", str(path), "--out", str(tmp_path / "out"), "--json"]
    assert "waiting" in json.loads(CliRunner().invoke(command, words).stdout)
    for change, waits in ((20 * HOUR, True), (-YEAR, True), (5 * HOUR, True), (6 * HOUR, False)):
        machine.restart(change)
        found = CliRunner().invoke(command, words)
        assert found.exit_code == 0, found.output
        assert ("waiting" in json.loads(found.stdout)) == waits


def test_the_clock_goes_on_from_the_last_event_whatever_the_wall_clock_shows(site):
    site.service.ledger.pause(site.service.clock())
    last = list(site.service.ledger.events())[-1].time
    for wall in (0, 1, last - YEAR, last + YEAR):
        site.machine.wall = wall
        clock = CampaignClock(site.service.ledger)
        assert last <= clock() <= last + DOWNTIME
        assert clock.wall() == wall == wall_clock()


@pytest.mark.parametrize("jump", [0, HOUR, YEAR])
def test_letters_settle_between_commands_that_run_alone(tmp_path, machine, jump):
    """Each `goldspan payments --send` is a process of its own, and writes nothing as it waits."""
    service = open_served(tmp_path)
    service.ledger.record("note", "sent", {}, service.clock())
    sent, settle = service.clock(), 90 * MINUTE
    service.close()
    for _ in range(4):
        machine.restart(30 * MINUTE)
        with open_ledger(tmp_path / "out" / "campaign.sqlite") as ledger:
            now = open_clock(ledger, settle)()
    assert now - sent == 2 * HOUR
    machine.restart(jump)
    with open_ledger(tmp_path / "out" / "campaign.sqlite") as ledger:
        assert open_clock(ledger, settle)() - now == min(jump, settle)


def test_a_store_is_opened_without_writing_and_a_server_that_starts_notes_the_time(site):
    """A second server is refused after it has opened the store, perhaps with another clock."""
    site.machine.work(10 * MINUTE)  # it is quiet: who opens now has another idea of the time
    n = site.service.ledger.n_events
    second = open_served(site.folder)
    assert second.ledger.n_events == n
    second.start(loop=False)  # as one that has the role
    (note,) = second.ledger.records(CLOCK).values()
    second.close()
    assert note["wall"] - note["time"] == 10 * MINUTE - DOWNTIME


def test_a_server_puts_right_what_a_command_beside_it_took_for_the_time(site, monkeypatch):
    monkeypatch.setattr("goldspan.campaign.clock.EVERY", 0.01)
    site.machine.work(10 * MINUTE)
    with open_ledger(site.folder / "out" / "campaign.sqlite") as ledger:
        open_clock(ledger)
    ledger = site.service.ledger

    def last_note():
        return list(ledger.records(CLOCK).values())[-1]

    (wrong,) = ledger.records(CLOCK).values()
    assert wrong["wall"] - wrong["time"] == 10 * MINUTE - DOWNTIME
    site.service.start(loop=False)
    wait_until(lambda: len(ledger.records(CLOCK)) >= 2)
    assert last_note() == {"time": site.service.clock(), "wall": site.machine.wall}
    with open_ledger(site.folder / "out" / "campaign.sqlite") as other:  # while the keeper runs
        site.machine.work(10 * MINUTE)
        open_clock(other)
    wait_until(lambda: last_note()["wall"] == last_note()["time"])


def test_a_day_of_a_bound_is_one_of_the_wall_clock(site):
    """The campaign's clock leaves out the nights in which nobody serves."""
    site.service.close()
    site.start(page={"training": 1, "daily_writes": 20})
    work = site.service.work
    for _ in range(10):
        work.release("ann", work.next("ann")["task"]["id"])
    with pytest.raises(Refused, match="Come back tomorrow") as refused:
        work.next("ann")
    assert refused.value.retry == -(-(DAY - site.machine.wall % DAY) // 1_000)
    site.service.close()
    site.machine.restart(DAY)
    site.start(page={"training": 1, "daily_writes": 20})
    assert site.service.clock() // DAY < site.machine.wall // DAY  # not yet tomorrow
    assert site.service.work.next("ann")["state"] == "task"
