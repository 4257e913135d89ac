"""Stores of the package's old name: they go on, and their processes and ours keep each other out."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import text

from goldspan.cli import main
from goldspan.old_name import OLD_NAME
from goldspan.store import StoreError, alone, faults_of, import_ledger, open_ledger, serving
from goldspan.store.engine import is_sqlite
from goldspan.store.serving import serving as serve

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


@pytest.mark.parametrize("what", ["alone", "serving"])
def test_a_process_of_before_and_one_of_now_keep_each_other_out(
    new_ledger, new_place, monkeypatch, what
):
    monkeypatch.setattr(alone, "PATIENCE", 0)
    monkeypatch.setattr(serving, "PATIENCE", 0)
    place = new_place()
    one, two = new_ledger(place=place), new_ledger(place=place)
    if is_sqlite(one.database.engine):
        pytest.skip("the files that are locked have kept their names")

    def hold(ledger):
        return ledger.alone() if what == "alone" else serve(ledger.database, "http://me")

    name = f"{OLD_NAME} " + ("serve " if what == "serving" else "")
    take = text(
        "SELECT pg_try_advisory_lock(hashtextextended(CAST(:name AS text) || current_schema(), 0))"
    )
    with one.database.engine.connect() as plain:
        before = plain.execution_options(isolation_level="AUTOCOMMIT")
        assert before.execute(take, {"name": name}).scalar_one()
        sign = text("SELECT set_config('application_name', 'process 7 at http://old', false)")
        before.execute(sign)
        told = "at work on this campaign" if what == "alone" else "by process 7 at http://old: use"
        with pytest.raises(StoreError, match=told), hold(two):
            pass
        before.execute(text("SELECT pg_advisory_unlock_all()"))
        with hold(two):
            assert not before.execute(take, {"name": name}).scalar_one()
        assert before.execute(take, {"name": name}).scalar_one()
        plain.invalidate()
