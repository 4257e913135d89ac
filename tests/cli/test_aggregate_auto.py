"""`goldspan aggregate` without a method: what it tried, what it chose, and what to look at."""

from __future__ import annotations

import pytest

from cli.test_cli import EXAMPLE, goldspan_run


@pytest.fixture
def small(tmp_path):
    """Return the first two documents of the example, with two copies of its first worker."""
    head, *rows = EXAMPLE.read_text().splitlines()
    kept = [row for row in rows if not row or int(row.split("\t")[0][1:]) <= 2]
    lines = [f"{head}\tcopy1\tcopy2"]
    lines += [row and f"{row}\t{row.split(chr(9))[4]}\t{row.split(chr(9))[4]}" for row in kept]
    path = tmp_path / "small.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_it_says_what_it_tried_and_how_sure_it_is(small, tmp_path):
    report = tmp_path / "report.html"
    run = goldspan_run("aggregate", small, "--param", "text=none", "--report", report)
    assert run.returncode == 0, run.stderr
    assert "auto: " in run.stdout
    lines = run.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("methods tried"))
    assert lines[at + 1].split() == ["weight", "method"]
    assert {"ds", "mace", "bsc-seq"} <= {line.split()[1] for line in lines[at + 2 : at + 9]}
    assert "the labels of all of them agree on" in " ".join(run.stdout.split())
    page = report.read_text()
    assert "Methods that were tried" in page
    assert '<th scope="row">bsc-seq</th>' in page


def test_where_nothing_was_judged_votes_decide_and_that_is_said(tmp_path):
    path, report = tmp_path / "labels.csv", tmp_path / "report.html"
    path.write_text("task,worker,label\nq1,a,x\nq2,b,y\nq3,a,x\n")
    run = goldspan_run("aggregate", path, "--report", report)
    at = run.stdout.splitlines().index(next(x for x in run.stdout.splitlines() if "tried" in x))
    assert run.stdout.splitlines()[at + 2].split() == ["100%", "votes"]
    assert "votes decide" in " ".join(run.stdout.split())
    assert '<th scope="row">votes</th>' in report.read_text()


@pytest.mark.compiles
def test_a_tagger_is_trained_on_its_labels(small, tmp_path):
    tagger, gold = tmp_path / "x.goldspan", tmp_path / "gold.conll"
    words = ["--param", "text=none", "--tagger", tagger, "-o", gold]
    assert goldspan_run("aggregate", small, *words).returncode == 0
    run = goldspan_run("tag", tagger, gold, "-o", tmp_path / "tagged.conll")
    assert run.returncode == 0, run.stderr


def test_a_tagger_needs_words_and_a_method_that_has_one(small, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\nq1,a,x\nq1,b,y\n")
    run = goldspan_run("aggregate", path, "--tagger", tmp_path / "x.goldspan")
    assert "a tagger learns from tagged words, and there are none" in run.stderr
    run = goldspan_run("aggregate", small, "-m", "ds", "--tagger", tmp_path / "x.goldspan")
    assert "--tagger needs" in run.stderr


def test_options_of_votes_need_a_method(small):
    for words in (["--ties", "inside"], ["--raw"]):
        run = goldspan_run("aggregate", small, *words)
        assert run.returncode == 1
        assert "is for votes such as mv-token, not for auto" in run.stderr
        assert "choose another --method" in run.stderr
