"""Stores of the old name: they go on, and its processes and ours keep each other out."""

from __future__ import annotations

import fcntl
import json
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from goldspan.cli import main
from goldspan.old_name import OLD_NAME
from goldspan.store import StoreError, import_ledger, open_ledger
from goldspan.store import roles as alone
from goldspan.store import roles as serving
from goldspan.store.engine import is_sqlite
from goldspan.store.roles import serving as serve
from goldspan.store.verify import faults_of

MADE = Path(__file__).parents[1] / "fixtures" / "old_name"


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["goldspan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


def test_an_exported_campaign_of_before_is_imported_and_ends_with_the_same_bytes(
    new_place, tmp_path, monkeypatch
):
    place = new_place()
    url = str(place) if "://" in str(place) else f"sqlite:///{place}"
    with import_ledger(MADE / "export", place) as ledger:
        assert ledger.name == "weather"
        if not is_sqlite(ledger.database.engine):  # as a store of before has it
            with ledger.database.engine.begin() as connection:
                old = f"{OLD_NAME}_log_only_grows"
                connection.execute(text(f"ALTER FUNCTION goldspan_log_only_grows RENAME TO {old}"))
    with zipfile.ZipFile(MADE / "run.zip") as packed:
        for name in ("campaign.toml", "pool.jsonl", "truth.csv"):
            packed.extract(name, tmp_path)
    plan, outs = tmp_path / "campaign.toml", (tmp_path / "continued", tmp_path / "whole")
    assert run(monkeypatch, "run", plan, "--out", outs[0], "--store", url) == 0
    assert run(monkeypatch, "run", plan, "--out", outs[1]) == 0
    for name in ("gold.csv", "bill.csv", "rounds.jsonl"):
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes()
    with open_ledger(place) as ledger:
        assert faults_of(ledger.database) == []
        ledger.verify()
        if not is_sqlite(ledger.database.engine):
            with ledger.database.engine.begin() as connection:
                old = f"{OLD_NAME}_log_only_grows"
                connection.execute(text(f"ALTER FUNCTION {old} RENAME TO goldspan_log_only_grows"))


def test_what_is_exported_names_the_package_as_it_is_called_now(tmp_path):
    from goldspan.store import export_ledger

    with import_ledger(MADE / "export", tmp_path / "c.sqlite") as ledger:
        export_ledger(ledger, tmp_path / "export")
    about = json.loads((tmp_path / "export" / "campaign.json").read_text())
    assert about.pop("goldspan") == "campaign"
    old = json.loads((MADE / "export" / "campaign.json").read_text())
    assert about == {name: value for name, value in old.items() if name != OLD_NAME}
    assert (tmp_path / "export" / "events.jsonl").read_bytes() == (
        MADE / "export" / "events.jsonl"
    ).read_bytes()


TAKE = text(
    "SELECT pg_try_advisory_lock(hashtextextended(CAST(:name AS text) || current_schema(), 0))"
)
SIGN = text("SELECT set_config('application_name', 'process 7 at http://old', false)")


@contextmanager
def held_as_before(database, what):
    """Hold a campaign as a process of before does; raises OSError if another one holds it."""
    if is_sqlite(database.engine):
        ending = {"alone": ".lock", "serving": ".serve.lock"}[what]
        with Path(f"{database.engine.url.database}{ending}").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(b"process 7 at http://old")
            file.flush()
            yield
        return
    name = {"alone": f"{OLD_NAME} ", "serving": f"{OLD_NAME} serve "}[what]
    with database.engine.connect() as plain:
        session = plain.execution_options(isolation_level="AUTOCOMMIT")
        try:
            if not session.execute(TAKE, {"name": name}).scalar_one():
                raise BlockingIOError
            session.execute(SIGN)
            yield
        finally:
            plain.invalidate()


@pytest.mark.parametrize("what", ["alone", "serving"])
def test_a_process_of_before_and_one_of_now_keep_each_other_out(
    new_ledger, new_place, monkeypatch, what
):
    monkeypatch.setattr(alone, "PATIENCE", 0)
    monkeypatch.setattr(serving, "PATIENCE", 0)
    place = new_place()
    one, two = new_ledger(place=place), new_ledger(place=place)

    def held_now():
        return two.alone() if what == "alone" else serve(two.database, "http://me")

    told = "at work on this campaign" if what == "alone" else "by process 7 at http://old: use"
    with held_as_before(one.database, what), pytest.raises(StoreError, match=told), held_now():
        pass
    # PostgreSQL lets go of a lock a little after the session has ended.
    monkeypatch.setattr(alone, "PATIENCE", 30)
    monkeypatch.setattr(serving, "PATIENCE", 30)
    with held_now(), pytest.raises(BlockingIOError), held_as_before(one.database, what):
        pass
