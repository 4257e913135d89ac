"""The command line as people use it: results, exit codes, and files left behind."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import goldspan
from goldspan.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "crowd.tsv"
COMMANDS = ("inspect", "aggregate", "score", "agreement", "check", "convert")


@dataclass
class Run:
    """What a call of `goldspan` gave."""

    returncode: int
    stdout: str
    stderr: str


def goldspan_run(*words, cwd=None, stdin=b""):
    """Run `goldspan` in this process, which saves the start of another."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["goldspan", *map(str, words)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        if cwd:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as end:
            main()
            sys.exit(0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Run(end.value.code or 0, *texts)


def goldspan_process(*words, cwd=None, stdin=None):
    """Run `goldspan` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "goldspan", *map(str, words)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=isinstance(stdin, str) or stdin is None,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )


def done(*words, **options):
    """Run `goldspan`, which must succeed in silence on standard error."""
    run = goldspan_run(*words, **options)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def refused(*words, **options):
    """Run `goldspan`, which must refuse its input without a traceback."""
    run = goldspan_run(*words, **options)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    assert run.stderr.startswith("goldspan: ")
    return run.stderr


@pytest.fixture
def gold(tmp_path):
    done("aggregate", EXAMPLE, "-m", "mv-token", "-o", tmp_path / "gold.conll")
    return tmp_path / "gold.conll"


def test_the_version_is_shown():
    assert done("--version").strip() == f"goldspan {goldspan.__version__}"


@pytest.mark.parametrize(
    "words",
    [["nope"], ["aggregate"], ["aggregate", "x", "--nope"], ["convert", "x", "--columns", "a"]],
)
def test_wrong_usage_exits_with_2(words):
    assert goldspan_run(*words).returncode == 2


def test_inspect_says_what_was_detected_and_what_to_run_next():
    text = done("inspect", EXAMPLE)
    for part in ("wide", "BIO", "workers: 7", "items: 150", "next: goldspan aggregate"):
        assert part in text


def test_the_command_that_inspect_prints_runs(tmp_path):
    command = done("inspect", EXAMPLE).splitlines()[-1].removeprefix("next: ").split()
    done(*command[1:], cwd=tmp_path)
    assert (tmp_path / "gold.conll").exists()


def test_aggregate_writes_gold_and_a_report_and_scores(tmp_path):
    text = done(
        "aggregate",
        EXAMPLE,
        "-m",
        "mv-token",
        "-o",
        tmp_path / "g.conll",
        "--report",
        tmp_path / "r.html",
    )
    assert "encoding BIO, malformed tags read by policy conlleval" in text
    assert (tmp_path / "g.conll").read_text().startswith("# id = N01-1\n")
    assert "<html" in (tmp_path / "r.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.conll", "r.html"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_confidences_of_a_written_file_are_measured(tmp_path, ending):
    path = tmp_path / f"gold.{ending}"
    said = json.loads(done("aggregate", EXAMPLE, "-m", "ds", "-o", path, "--json"))["score"]
    found = json.loads(done("score", path, EXAMPLE, "--json"))
    for name in ("n", "right", "ece", "brier", "auroc"):
        expected = pytest.approx(said["confidence"][name], abs=1e-3)
        assert found["confidence"][name] == expected
    text = done("score", path, EXAMPLE)
    assert "calibration error (ECE)" in text
    assert ("cross-entropy" in text) == (ending == "parquet")


def test_score_says_how_both_files_were_read(tmp_path):
    tagged, spans = tmp_path / "tagged.conll", tmp_path / "ann.jsonl"
    tagged.write_text("Seen\tLOC-B\nplatte\tLOC-I\nrauscht\tO\n")
    spans.write_text('{"id": "a", "text": "Seenplatte rauscht", "label": [[0, 10, "LOC"]]}\n')
    run = goldspan_run("score", tagged, spans)
    assert "LOC             100.00" in run.stdout
    assert f"{tagged}: tags of spans in another spelling: 'LOC-B' as B-LOC" in run.stderr
    assert f"{spans}: its only annotator, ann, says what is known of it" in run.stderr
    facts = json.loads(done("score", tagged, spans, "--json"))
    assert [len(said) for said in facts["remarks"].values()] == [1, 1]


def test_gold_on_standard_output_is_the_file_and_the_words_go_elsewhere(gold):
    run = goldspan_run("aggregate", EXAMPLE, "-m", "mv-token", "-o", "-")
    assert run.stdout == gold.read_text()
    assert "mv-token" in run.stderr


def test_standard_input_works(gold):
    run = goldspan_process(
        "aggregate", "-", "-m", "mv-token", "-o", "-", stdin=EXAMPLE.read_bytes()
    )
    assert run.returncode == 0
    assert run.stdout.decode() == gold.read_text()


def test_votes_take_their_options():
    raw = json.loads(
        done(
            "aggregate",
            EXAMPLE,
            "-m",
            "mv-token",
            "--ties",
            "inside",
            "--raw",
            "--seed",
            "3",
            "--json",
        )
    )
    wanted = {"ties": "inside", "legal": False, "random_state": 3, "history": None}
    wanted["families"] = "none"
    assert raw["result"]["params"] == wanted
    same = done(
        "aggregate",
        EXAMPLE,
        "-m",
        "mv-token",
        "--param",
        "ties=inside",
        "--param",
        "legal=false",
        "--json",
    )
    assert json.loads(same)["result"]["params"]["legal"] is False


def test_single_labels_become_a_table(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("question;user;answer\nq1;a;yes\nq1;b;yes\nq2;a;no\n")
    roles = ["--columns", "item=question", "--columns", "worker=user", "--columns", "label=answer"]
    done("aggregate", path, *roles, "-m", "mv-token", "-o", tmp_path / "gold.csv")
    lines = (tmp_path / "gold.csv").read_text().splitlines()
    assert lines == ["item,label,confidence", "q1,yes,1.0000", "q2,no,1.0000"]
    truth = tmp_path / "truth.csv"
    truth.write_text("item,label\nq1,yes\nq2,yes\n")
    found = json.loads(done("score", tmp_path / "gold.csv", truth, "--json"))
    assert found["accuracy"] == 0.5


@pytest.mark.parametrize(
    "words",
    [
        ["--workers", 'eve,"Lee, Ann"'],
        ["--workers", '"Lee, Ann"', "--workers", "eve"],
        ["--workers", '"Lee, Ann",eve,"say ""hi"""'],
    ],
)
def test_workers_are_named_in_lists_and_one_by_one_also_with_a_comma(tmp_path, words):
    path = tmp_path / "labels.csv"
    path.write_text('task,worker,label\n1,"Lee, Ann",x\n1,eve,y\n1,bob,y\n1,"say ""hi""",z\n')
    done("convert", path, *words, "-o", tmp_path / "some.jsonl")
    wanted = {"Lee, Ann", "eve"} | ({'say "hi"'} if "hi" in words[-1] else set())
    assert set(goldspan.read_crowd(tmp_path / "some.jsonl").worker_ids.to_pylist()) == wanted
    assert shlex.join(words) in done("inspect", path, *words)


@pytest.mark.parametrize("words", ['"Lee, Ann', '"Lee" Ann'])
def test_a_list_of_workers_with_a_stray_quote_is_wrong_usage(words):
    run = goldspan_run("inspect", EXAMPLE, "--workers", words)
    assert run.returncode == 2
    assert "--workers: " in run.stderr


def test_the_help_says_how_to_name_a_worker_with_a_comma():
    assert '"Lee, Ann",bob' in done("inspect", "--help")


def test_agree_prints_measures_and_every_worker(tmp_path):
    text = done("agreement", EXAMPLE, "--plot", tmp_path / "a.svg")
    for part in ("Krippendorff", "Fleiss", "Cohen", "span F1", "gus", "workers per group"):
        assert part in text
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_check_lists_faults_and_exits_with_1(gold):
    assert "0 faults" in done("check", gold, "--encoding", "BIO")
    run = goldspan_run("check", EXAMPLE, "--show", "2")
    assert run.returncode == 1
    assert "must open with its begin tag" in run.stdout
    assert "more (--show" in run.stdout
    assert "item N" in run.stdout
    assert "worker " in run.stdout


def test_check_with_the_wrong_encoding_names_the_right_one(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Ann\tB-PER\nLee\tL-PER\n")
    run = goldspan_run("check", path, "--encoding", "BIO")
    assert run.returncode == 1
    for part in ("x.conll line 2", "item 1 token 1", "'L-PER' is not in BIO", "BILOU"):
        assert part in run.stdout


def test_check_lists_unknown_tags_and_broken_rules_at_once_in_the_order_of_the_file(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("a\tI-PER\nb\tPERS\nc\tI-PER\n\nd\tQ-X\n")
    run = goldspan_run("check", path, "--encoding", "BIO")
    assert run.returncode == 1
    places = [line.partition(": ")[0].split(", ", 1)[1] for line in run.stdout.splitlines()[:4]]
    assert places == [
        f"item {n}, worker gold" for n in ("1 token 0", "1 token 1", "1 token 2", "2 token 0")
    ]
    assert "4 faults" in run.stdout
    counts = json.loads(goldspan_run("check", path, "--encoding", "BIO", "--json").stdout)
    assert {row["kind"]: row["count"] for row in counts["by_column"]} == {
        "no-begin": 2,
        "unknown-label": 2,
    }


def test_convert_refuses_malformed_tags_and_repair_reads_them(tmp_path):
    message = refused("convert", EXAMPLE, "--to", "IOBES", "-o", tmp_path / "x.tsv")
    assert "break the rules of BIO" in message
    assert list(tmp_path.iterdir()) == []
    done("convert", EXAMPLE, "--to", "IOBES", "--repair", "conlleval", "-o", tmp_path / "x.tsv")
    assert "0 faults" in done("check", tmp_path / "x.tsv")


def test_convert_goes_to_another_format_and_says_what_is_lost(tmp_path):
    done("convert", EXAMPLE, "-o", tmp_path / "x.parquet")
    assert goldspan.read_crowd(tmp_path / "x.parquet") == goldspan.read_crowd(EXAMPLE)
    run = goldspan_run("convert", EXAMPLE, "-o", tmp_path / "x.conll")
    assert run.returncode == 0
    assert "the file does not give back: 690 answers" in run.stderr


def test_what_was_not_read_is_said_by_convert_and_agreement(tmp_path):
    nested = [{"start": 0, "end": 3, "label": "PER"}, {"start": 0, "end": 8, "label": "EV"}]
    path = tmp_path / "tasks.jsonl"
    task = {"text": "Ann sang in Rome.", "answer": "accept", "spans": nested}
    path.write_text("".join(json.dumps({**task, "_annotator_id": w}) + "\n" for w in "ab"))
    rule = ["--overlapping", "longest"]
    for command in (
        ["convert", path, "-o", tmp_path / "x.parquet", *rule],
        ["agreement", path, *rule],
    ):
        said = goldspan_run(*command).stderr
        assert "tasks.jsonl: 2 not placed: nested span" in said
        facts = json.loads(done(*command, "--json", *(["--overwrite"] if "-o" in command else [])))
        assert facts["remarks"][0] == "2 not placed: nested span"


def test_an_output_that_is_the_input_is_refused(tmp_path):
    path = tmp_path / "crowd.tsv"
    path.write_bytes(EXAMPLE.read_bytes())
    for words in ([], ["--overwrite"]):
        assert "is an input too" in refused("aggregate", path, "-o", path, *words)
    assert path.read_bytes() == EXAMPLE.read_bytes()


def test_a_missing_folder_for_the_output_is_one_clear_message(tmp_path):
    message = refused("aggregate", EXAMPLE, "-o", tmp_path / "no" / "gold.conll")
    assert "cannot write" in message
    assert "does the folder exist" in message


def _bad(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return path


BAD = {
    "absent": (None, ["absent.tsv", "is the path right"]),
    "empty": (b"", ["empty.tsv", "the file is empty"]),
    "gzip": (gzip.compress(b"token\ta\nx\tO\n" * 100)[:-9], ["truncated or damaged"]),
    "ragged": (b"token\ta\tb\nx\tO\tO\ny\tO\n", ["line 3", "2 cells where the header has 3"]),
    "tab": (b"token\ta\tb\nx\ty\tO\tO\n", ["line 2", "does a token hold the delimiter"]),
    "nul": (b"token\ta\tb\nx\0\tO\tO\n", ["line 2", "NUL"]),
    "mixed": (b"token\ta\tb\n\xc3\xa9\tO\tO\n\xe9\tO\tO\n", ["line 3", "two encodings are mixed"]),
    "long": (b"token\ta\tb\n" + b"x" * 1_000_000 + b"\tO\tO\n", ["line 2", "longer than"]),
    "twice": (
        b"doc\tsent\ttoken\ta\nd\t1\tx\tO\n\nd\t2\ty\tO\n\nd\t1\tz\tO\n",
        ["line 6", "item d-1", "appears twice", "line 2"],
    ),
    "label": (
        b"token\tann\tbob\nx\tB-PER\tO\ny\tPERSON\tO\n",
        ["line 3", "item 1 token 1", "worker ann", "'PERSON'", "--label"],
    ),
    "schemes": (b"token\tann\tbob\nx\tB-PER\tB-PER\ny\tE-PER\tL-PER\n", ["two encodings", "L-PER"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_clear_message_and_no_file(tmp_path, name):
    data, parts = BAD[name]
    path = tmp_path / "absent.tsv" if data is None else _bad(tmp_path, f"{name}.tsv", data)
    before = sorted(tmp_path.iterdir())
    message = refused("aggregate", path, "--format", "wide", "-o", tmp_path / "gold.conll")
    for part in parts:
        assert part in message
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--method", "mv-tokens"], "did you mean 'mv-token'"),
        (["--encoding", "BIX"], "unknown encoding 'BIX'"),
        (["--format", "widest"], "unknown format 'widest'"),
        (["-m", "mv-token", "--ties", "both"], "unknown value of ties 'both'"),
        (["--ties", "inside"], "--ties is for votes such as mv-token, not for auto"),
        (["-m", "mv-token", "--policy", "perl"], "unknown policy 'perl'"),
        (["--altered", "guess"], "unknown rule for altered tokens"),
        (["--param", "nope=1"], "unknown parameter of auto 'nope'"),
        (["--columns", "token=word"], "there is no column 'word'"),
        (["--gold", "nothing.csv"], "nothing.csv"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path, words, part):
    message = refused("aggregate", EXAMPLE, "-o", tmp_path / "gold.conll", *words)
    assert part in message
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m goldspan convert {EXAMPLE} --to-format wide | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in run.stderr
    assert run.stdout.startswith("doc\tsent\ttoken\tgold")
