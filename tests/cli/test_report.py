"""`goldspan report`, and the report that `goldspan run` leaves."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, toml, write_files
from goldspan.cli import app
from goldspan.errors import InputError


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a plan that has run to its end in `out`, and what the run printed."""
    found = tmp_path_factory.mktemp("report")
    write_files(found)
    made = plan_of({"model": {"name": "none"}})
    (found / "campaign.toml").write_text(toml(made))
    run = invoke("run", found / "campaign.toml", "--out", found / "out")
    assert run.exit_code == 0, run.output
    assert f"{found / 'out' / 'report.html'}" in run.stdout
    return found


def test_the_report_that_is_made_again_is_the_same(folder):
    page = folder / "out" / "report.html"
    first = page.read_bytes()
    page.unlink()
    again = invoke("report", folder / "out")
    assert again.exit_code == 0, again.output
    assert again.stdout == f"written: {page}\n"
    assert page.read_bytes() == first


def test_with_json_the_numbers_are_printed_and_nothing_is_written(folder):
    page = folder / "out" / "report.html"
    before = page.stat().st_mtime_ns
    found = json.loads(invoke("report", folder / "out", "--json").stdout)
    assert found == json.loads((folder / "out" / "record.json").read_text())
    assert page.stat().st_mtime_ns == before


def test_a_store_elsewhere_can_be_named(folder, tmp_path):
    place = f"sqlite:///{folder / 'out' / 'campaign.sqlite'}"
    run = invoke("report", tmp_path / "new", "--store", place)
    assert run.exit_code == 0, run.output
    first = (folder / "out" / "report.html").read_bytes()
    assert (tmp_path / "new" / "report.html").read_bytes() == first


def test_a_folder_without_a_campaign_is_refused_and_left_alone(tmp_path):
    run = invoke("report", tmp_path)
    assert isinstance(run.exception, InputError)
    assert "holds no campaign: there is no campaign.sqlite in it" in str(run.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_that_waits_has_exports_and_a_report_of_what_there_is(tmp_path):
    write_files(tmp_path)
    made = plan_of({"model": {"name": "none"}})
    made["crowd"] = {"source": "files"}
    (tmp_path / "campaign.toml").write_text(toml(made))
    out = tmp_path / "out"
    first = invoke("run", tmp_path / "campaign.toml", "--out", out)
    assert "written so far" in first.stdout
    page = (out / "report.html").read_text()
    assert "in round 1, 20 answers awaited" in page
    key = json.loads((out / "record.json").read_text())["id"]
    sent = (tmp_path / "tasks" / "tasks-r001.1.jsonl").read_text()
    tasks = [json.loads(line) for line in sent.splitlines()]
    items = [one["item"] for one in tasks if "item" in one][:3]
    rows = [
        {"campaign": key, "worker": worker, "item": item, "labels": ["rain"]}
        for item in dict.fromkeys(items)
        for worker in ("ann", "bob")
    ]
    (tmp_path / "answers").mkdir(exist_ok=True)
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "answers" / "some.jsonl").write_text(lines + "\n")
    found = json.loads(invoke("run", tmp_path / "campaign.toml", "--out", out, "--json").stdout)
    assert found["waiting"]["answers"] == 20 - len(rows)
    assert str(out / "report.html") in found["files"]
    assert len((out / "gold.csv").read_text().splitlines()) == 1 + len(set(items))
    assert "2 workers gave" in (out / "report.html").read_text()


def test_what_a_paper_can_quote_is_printed_and_nothing_is_written(folder):
    page = folder / "out" / "report.html"
    before = page.stat().st_mtime_ns
    run = invoke("report", folder / "out", "--methods")
    assert run.exit_code == 0, run.output
    first, second = run.stdout.strip().split("\n\n")
    record = json.loads((folder / "out" / "record.json").read_text())
    n = sum(1 for one in record["workers"].values() if one["answers"])
    answers, spent = record["counts"]["answers"], record["money"]["spent"] / 1e6
    assert first.startswith(f"{n} simulated workers gave {answers} answers for {spent:.2f}: ")
    assert f"That is {answers / 20:.1f} answers per item. The price was 0.05 per answer." in first
    assert "audit" not in second
    found = json.loads(invoke("report", folder / "out", "--methods", "--json").stdout)
    assert found == {"methods": [first, second]}
    assert first in page.read_text()
    assert page.stat().st_mtime_ns == before
