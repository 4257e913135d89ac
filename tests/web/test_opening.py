"""A campaign keeps its id whatever changes in its plan, and its store is its owner's alone."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing

import pytest

from goldspan.campaign import read_inputs, read_plan
from goldspan.errors import InputError
from goldspan.store import backup_ledger, restore_ledger
from goldspan.web import Auth, ServerSettings, open_service
from goldspan.web.errors import Refused
from goldspan.web.opening import FILE
from web.serving import KEYS, Clock, answer, key, open_round, plan_file


@pytest.fixture
def wide():
    """A mask as most machines have it: what is made can be read by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def opened(folder, out="out"):
    """Open a campaign without starting its loop."""
    return closing(open_service(folder / "campaign.toml", folder / out, KEYS, clock=Clock()))


def entrance_of(service):
    settings = ServerSettings(KEYS, clock=service.clock)
    return Auth.of(service.ledger, service.inputs.key, settings)


def raise_money(folder):
    path = folder / "campaign.toml"
    before = path.read_text()
    path.write_text(before.replace('money = "8"', 'money = "9"'))
    assert path.read_text() != before


def test_links_sessions_and_tasks_hold_on_when_the_plan_changes(tmp_path):
    plan_file(tmp_path)
    with opened(tmp_path) as service:
        open_round(service)
        auth = entrance_of(service)
        ((link, token),) = auth.links.make(["ann"], 30)
        worker = auth.sessions.cookie(auth.sessions.begin_work(link))
        desk = auth.sessions.cookie(auth.sessions.begin_desk())
        scope = auth.sessions.scope(auth.sessions.read("worker", worker))
        answer(service, "ann")
        task = service.work.next("ann")["task"]["id"]
        shown = service.desk.names("ann")
    raise_money(tmp_path)
    with opened(tmp_path) as service:
        auth = entrance_of(service)
        assert auth.links.read(token) == link
        assert auth.sessions.read("desk", desk).role == "desk"
        assert auth.sessions.scope(auth.sessions.read("worker", worker)) == scope
        assert service.desk.names("ann") == shown
        assert service.work.submit("ann", task, key(), "sun")["status"] == "accepted"


def test_campaigns_of_one_plan_and_secret_do_not_know_each_others_people(tmp_path):
    plan_file(tmp_path)
    with opened(tmp_path, "one") as one, opened(tmp_path, "two") as two:
        auth, other = entrance_of(one), entrance_of(two)
        ((link, token),) = other.links.make(["ann"], 30)
        with pytest.raises(Refused, match="is not valid here"):
            auth.links.read(token)
        with pytest.raises(Refused, match="personal link"):
            auth.sessions.read("worker", other.sessions.cookie(other.sessions.begin_work(link)))
        assert one.desk.names("ann") != two.desk.names("ann")


def test_the_id_goes_with_a_backup(tmp_path):
    plan_file(tmp_path)
    with opened(tmp_path) as service:
        backup_ledger(service.ledger, tmp_path / "copy.db")
        before = service.inputs.key
    (tmp_path / "new").mkdir()
    restore_ledger(tmp_path / "copy.db", tmp_path / "new" / FILE).close()
    with opened(tmp_path, "new") as service:
        assert service.inputs.key == before


def test_what_was_worked_out_of_a_setting_is_kept_under_its_id(tmp_path):
    inputs = read_inputs(read_plan(plan_file(tmp_path)), tmp_path)
    words, before = inputs.words, inputs.key
    assert inputs.named("other").words is words
    assert (inputs.named("other").key, inputs.key) == ("other", before)


def modes(folder):
    """Return the modes of a folder and of the files of its store; a lock is empty."""
    files = [folder, *(path for path in folder.glob(f"{FILE}*") if path.suffix != ".lock")]
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}


@pytest.mark.usefixtures("wide")
def test_the_store_and_its_folder_are_for_their_owner_alone(tmp_path):
    plan_file(tmp_path)
    with opened(tmp_path) as service:
        open_round(service)
        found = modes(service.out)
    assert found.pop("out") == 0o700
    assert {FILE, f"{FILE}-wal"} <= set(found)
    assert set(found.values()) == {0o600}


@pytest.mark.usefixtures("wide")
def test_a_store_that_others_could_read_is_closed_and_a_folder_that_was_there_is_not(tmp_path):
    plan_file(tmp_path)
    with opened(tmp_path, "old"):
        pass
    (tmp_path / "out").mkdir()
    shutil.copyfile(tmp_path / "old" / FILE, tmp_path / "out" / FILE)
    assert modes(tmp_path / "out")[FILE] == 0o644
    with opened(tmp_path):
        pass
    assert modes(tmp_path / "out") == {"out": 0o755, FILE: 0o600}


@pytest.mark.parametrize("name", [".", ".."])
def test_an_item_that_has_no_address_is_refused_where_people_label(tmp_path, name):
    plan = read_plan(plan_file(tmp_path))
    file = tmp_path / plan.pool.file
    before = file.read_text()
    file.write_text(before.replace("d1", name, 1))
    assert file.read_text() != before
    with pytest.raises(InputError, match="has no address"):
        read_inputs(plan, tmp_path)
