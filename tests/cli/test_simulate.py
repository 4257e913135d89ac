"""`goldspan simulate`: what it writes, what it says, what it refuses."""

from __future__ import annotations

import json

import pytest

import goldspan

COMMAND = "simulate"


@pytest.fixture
def gold(root):
    return root / "examples" / "crowd.tsv"


def test_a_crowd_is_written_and_read_back(run, gold):
    code, out, _ = run(
        *(gold, "-w", "flip(0.1) x3", "-w", "ana=acc + misses(0.2)", "--per-item", 3),
        *("--workload", "zipf", "--seed", 7, "-o", "crowd.tsv"),
    )
    assert code == 0
    assert "flip(0.1)" in out
    assert "written: crowd.tsv (150 items, 450 answers)" in out
    crowd = goldspan.read_crowd("crowd.tsv")
    assert crowd.worker_ids.to_pylist() == ["w1", "w2", "w3", "ana"]
    assert len(crowd.answers) == 450
    library = goldspan.simulation.simulate_crowd(
        goldspan.read_crowd(gold),
        ["flip(0.1) x3", "ana=acc + misses(0.2)"],
        per_item=3,
        workload="zipf",
        seed=7,
    )
    assert crowd.answers_of(5) == library.answers_of(5)


def test_the_crowd_goes_to_standard_output_and_the_table_beside_it(run, gold):
    code, out, err = run(gold, "-w", "perfect")
    assert code == 0
    assert out.startswith("doc\tsent\ttoken\tgold\tw1\n")
    assert "perfect" in err
    assert goldspan.read_crowd(out.encode()).n_items == 150


def test_single_labels_are_drawn(run):
    code, out, _ = run(
        *("--items", 400, "--labels", "no,yes", "--shares", "1,3"),
        *("-w", "flip(0.3) x4", "--per-item", 2, "--workload", "1,1,1,5"),
    )
    assert code == 0
    crowd = goldspan.read_crowd(out.encode())
    assert crowd.is_classification
    assert (crowd.n_items, len(crowd.answers), crowd.tagset.tags) == (400, 800, ("no", "yes"))
    assert crowd.gold.mean() == pytest.approx(0.75, abs=0.1)
    assert run("--items", 9, "--labels", 4, "-w", "acc", "-o", "l.csv")[0] == 0
    assert goldspan.read_crowd("l.csv").n_items == 9


def test_a_trained_tagger_is_used(run, gold, monkeypatch, tmp_path):
    truth = goldspan.read_crowd(gold)
    tags = truth.tagset.decode(truth.gold_tagged)
    goldspan.tagger.CRF(max_iter=20).fit(truth.tokens_list, tags).save(tmp_path / "ner.goldspan")
    monkeypatch.setattr("goldspan.simulation.TruthTagger.train", None)
    code, out, _ = run(
        gold, "-w", "crf_noise(0.01)", "--tagger", "ner.goldspan", "-o", "c.tsv", "--json"
    )
    assert code == 0
    assert json.loads(out)["workers"][0]["f1"] > 0.8


def test_options_about_answers_reach_them(run, gold):
    words = [gold, "-w", "flip(0.5)", "--times", "--legal", "-o", "x.parquet"]
    assert run(*words)[0] == 0
    crowd = goldspan.read_crowd("x.parquet")
    assert crowd.answers.submitted is not None
    assert goldspan.crowd.convert_crowd(crowd, "IOBES").n_items == 150  # it refuses malformed tags


def test_items_without_all_gold_are_left_out_and_counted(run, tmp_path):
    text = "item\ttoken\tgold\n1\ta\tB-X\n\n2\tb\t?\n"
    (tmp_path / "some.tsv").write_text(text)
    code, _, err = run("some.tsv", "-w", "perfect", "-o", "out.tsv")
    assert code == 0
    assert "left out: 1 item without all tags" in err
    assert goldspan.read_crowd("out.tsv").n_items == 1


def test_what_the_format_cannot_hold_is_said(run, gold):
    code, _, err = run(gold, "-w", "perfect", "--times", "-o", "out.tsv")
    assert code == 0
    assert "the submission times of" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["GOLD"], 1, "no worker"),
        (["GOLD", "-w", "filp(1)"], 1, "did you mean 'flip'"),
        (["GOLD", "-w", "flip(2)"], 1, "at least 0 and at most 1"),
        (["GOLD", "-w", "acc", "--per-item", "2"], 1, "per_item"),
        (["GOLD", "-w", "acc", "-o", "no/where.tsv"], 1, "folder"),
        (["GOLD", "-w", "acc", "--tagger", "no.goldspan"], 1, "no such file"),
        (["nothing.tsv", "-w", "acc"], 1, "nothing.tsv"),
        (["-w", "acc"], 2, "--items"),
        (["GOLD", "--items", "3", "-w", "acc"], 2, "--items"),
        (["GOLD", "--labels", "3", "-w", "acc"], 2, "--labels"),
        (["GOLD", "-w", "acc x2", "--per-item", "1", "--workload", "zip"], 2, "zipf"),
        (["--items", "3", "--shares", "a", "-w", "acc"], 2, "--shares"),
        (["GOLD", "-w", "acc", "-o", "-", "--json"], 2, "--json"),
        (["GOLD", "-w", "acc x1000000000"], 1, "more than 1,000,000 workers"),
        (["GOLD", "-w", "merges(1, 1.5)"], 1, "whole number"),
        (["GOLD", "-w", "acc x3", "--per-item", "1", "--workload", "0,0,0"], 1, "is 0"),
        (["GOLD", "-w", "acc", "--tagger", "GOLD"], 2, "crf_noise"),
        (["GOLD", "-w", "crf_noise(1, hmm)", "--tagger", "GOLD"], 2, "crf_noise"),
        (["GOLD", "--labels", "", "-w", "acc"], 2, "--labels"),
        (["--items", "3", "--labels", "0", "-w", "acc"], 1, "at least 1"),
        (["--items", "3", "--labels", "", "-w", "acc"], 1, "'' cannot be the name"),
        (["--items", "3", "--labels", "a,?", "-w", "acc"], 1, "'?' cannot be the name"),
    ],
)
def test_wrong_calls_are_refused_and_nothing_is_written(run, gold, words, code, message, tmp_path):
    found, _, err = run(*(gold if word == "GOLD" else word for word in words))
    assert found == code
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        *(["--gold", "g.csv"], ["--format", "long"], ["--encoding", "BIO"], ["--label", "a=b"]),
        *(["--columns", "item=q"], ["--delimiter", "tab"], ["--text-encoding", "cp1252"]),
    ],
)
def test_drawn_items_are_not_read(run, words):
    code, _, err = run("--items", 3, "-w", "acc", *words)
    assert code == 2
    assert "--items draws the truth" in err


def test_a_tagger_may_be_used_deep_in_a_worker(run, gold, tmp_path):
    truth = goldspan.read_crowd(gold)
    tags = truth.tagset.decode(truth.gold_tagged)
    goldspan.tagger.CRF(max_iter=3).fit(truth.tokens_list, tags).save(tmp_path / "ner.goldspan")
    worker = "drift(flip(0.1), crf_noise(0.01) + late(0.1))"
    assert run(gold, "-w", worker, "--tagger", "ner.goldspan", "-o", "c.tsv")[0] == 0


def test_an_input_without_gold_is_refused(run, tmp_path):
    (tmp_path / "open.tsv").write_text("token\tann\nParis\tB-LOC\n")
    code, _, err = run("open.tsv", "-w", "acc", "-o", "x.tsv")
    assert code == 1
    assert "gold" in err
