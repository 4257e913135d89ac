"""`goldspan gold-questions`: choosing gold questions and checking them."""

from __future__ import annotations

import pytest

import goldspan

COMMAND = "gold-questions"


@pytest.fixture
def answers(root):
    return root / "examples" / "crowd.tsv"


def test_questions_are_chosen_written_and_checked(run, answers, tmp_path):
    code, out, _ = run(answers, "-n", 10, "--seed", 2, "-o", "control.tsv")
    assert code == 0
    assert out.startswith("10 gold questions: ")
    assert "written: control.tsv" in out
    chosen = goldspan.workers.choose_gold_questions(
        goldspan.read_crowd(answers), 10, random_state=2
    )
    assert set(goldspan.read_crowd("control.tsv").item_ids.to_pylist()) == set(chosen.item_ids)
    goldspan.write_crowd(goldspan.read_crowd(answers).with_gold(None), tmp_path / "answers.tsv")
    code, out, _ = run("answers.tsv", "--gold", "control.tsv", "--check", "--max-shown", 1)
    assert code == 0
    assert out.startswith("10 gold questions, shown up to")
    assert out.count("retire ") == 10


def test_without_an_output_nothing_is_written(run, answers):
    assert "nothing written: pass -o" in run(answers, "-n", 3)[1]


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        (["--check", "-o", "x.tsv"], 2, "--check chooses no questions: leave out -o"),
        (["--check", "-n", 5, "--seed", 0], 2, "leave out -n, --seed"),
        (["--check", "--hard", 0.3], 2, "leave out --hard"),
        (["--max-shown", 100], 2, "--max-shown is for --check"),
        (["-n", 1000], 1, "only 150 of 150 items have"),
        (["-n", 3, "-o", "x.csv"], 1, "tagged tokens as .tsv"),
    ],
)
def test_what_cannot_be_chosen_is_refused(run, answers, words, code, match):
    found, out, err = run(answers, *words)
    assert (found, out) == (code, "")
    assert match in err


def test_without_gold_the_option_is_named(run, tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,ann,x\n")
    for words in ([], ["--check"]):
        code, _, err = run("a.csv", *words)
        assert code == 1
        assert "(see --gold)" in err
        assert "gold=" not in err
