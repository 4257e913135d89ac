"""`goldspan qualification`: what it says, what it refuses."""

from __future__ import annotations

import pytest

COMMAND = "qualification"


def test_the_plan_is_said_in_words_with_its_table(run):
    code, out, _ = run("--bad", 0.6, "--good", 0.8)
    assert code == 0
    assert out.startswith("45 questions, pass with 33 or more right answers\n")
    assert " 60 %    4.5 %       4.9 %       21.7" in out
    assert "asked  pass with" not in out


def test_the_limits_are_shown_on_request(run):
    code, out, _ = run("--bad", 0.25, "--good", 0.8, "--sequential")
    assert code == 0
    assert "asked  pass with  fail with" in out
    (sure,) = [line for line in out.splitlines() if line.startswith("100 %")]
    assert sure.split() == ["100", "%", "100.0", "%", "100.0", "%", "4.0"]


def test_the_cost_of_all_candidates_is_said(run):
    _, out, _ = run("--bad", 0.6, "--good", 0.8, "--price", "0.05", "--candidates", 100)
    assert "cost for 100 candidates at 0.05: 225.00; asked one by one 108.35 if all" in out


def test_who_passes_is_said_for_a_pool(run):
    _, out, _ = run("--bad", 0.6, "--good", 0.8, "--prior", "4,2")
    assert "43.3 % of the candidates pass" in out


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        (["--bad", 0.8, "--good", 0.6], 1, "--bad must be below the share of good workers"),
        (["--bad", 0.6, "--good", 0.61], 1, "about 20,475 questions"),
        (["--bad", 0.6, "--good", 0.8, "--alpha", 0], 1, "--alpha must lie between"),
        (["--bad", 0.6, "--good", 0.8, "--price", -1], 1, "the price of a question"),
        (["--bad", 0.6, "--good", 0.8, "--prior", "4"], 2, "two numbers such as 4,2"),
        (["--bad", 0.6, "--good", 0.61], 1, "or a longer test (see --max)"),
        (["--bad", 1.6, "--good", 0.61], 1, "--bad must be a chance"),
        (["--bad", 0.6], 2, "--good"),
    ],
)
def test_what_makes_no_sense_is_refused(run, words, code, match):
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert match in err
