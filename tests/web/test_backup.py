"""A campaign is copied while people label; the copy gives the same files again."""

from __future__ import annotations

import threading

from typer.testing import CliRunner

from goldspan.cli import app
from goldspan.store import backup_ledger, restore_ledger
from goldspan.store.verify import faults_of
from goldspan.web.opening import FILE
from web.serving import answer, open_round, serve


def goldspan(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_copy_made_while_people_label_is_whole_and_has_what_was_acknowledged(tmp_path):
    service = serve(tmp_path)
    open_round(service)
    told: list[tuple[str, str]] = []

    def label(worker):
        while (got := answer(service, worker)) is not None:
            told.append((worker, got[0]))

    people = [threading.Thread(target=label, args=(name,)) for name in ("ann", "bob", "cid")]
    for person in people:
        person.start()
    for n in range(3):
        before = set(told)
        backup_ledger(service.ledger, tmp_path / f"{n}.sqlite")
        after = set(told)
        with restore_ledger(tmp_path / f"{n}.sqlite", tmp_path / f"again{n}.sqlite") as copy:
            assert faults_of(copy.database) == []
            kept = {(row.worker, row.item) for row in copy.given()}
        # A reply may be on its way to `told` while the copy has the answer already.
        assert before <= kept
        assert len(kept - after) <= len(people)
    for person in people:
        person.join()
    assert told
    service.close()


def test_a_restored_campaign_has_the_same_log_and_goes_on(tmp_path):
    service = serve(tmp_path)
    open_round(service)
    answer(service, "ann")
    expected = list(service.ledger.events())
    assert goldspan("backup", tmp_path / "out", tmp_path / "copy.sqlite").exit_code == 0
    answer(service, "ann")
    service.close()
    said = goldspan("restore", tmp_path / "copy.sqlite", tmp_path / "again")
    assert "holds the campaign 'weather'" in said.output
    with restore_ledger(tmp_path / "again" / FILE, tmp_path / "other.sqlite") as ledger:
        assert list(ledger.events()) == expected
    (tmp_path / "out").rename(tmp_path / "before")
    (tmp_path / "again").rename(tmp_path / "out")
    again = serve(tmp_path)
    assert again.work.me("ann")["done"] == 1
    assert answer(again, "ann") is not None
    again.close()


def test_a_folder_with_a_campaign_is_not_restored_over(tmp_path):
    service = serve(tmp_path)
    backup_ledger(service.ledger, tmp_path / "copy.sqlite")
    service.close()
    refused = goldspan("restore", tmp_path / "copy.sqlite", tmp_path / "out")
    assert "exists already" in str(refused.exception)
