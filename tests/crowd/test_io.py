"""Reading and writing by name and by guess, through the library and through the command."""

from __future__ import annotations

import gzip
import io
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from crowd_tables import (
    assert_same,
    crowd_of,
    damaged,
    read_or_refuse,
    refusal,
    small,
    tree,
    zipped,
)
from goldspan.cli import main
from goldspan.crowd import read_crowd, write_crowd
from goldspan.crowd.atomic import new_file, write_folder, write_text
from goldspan.crowd.io import write_to_stdout
from goldspan.crowd.losses import losses
from goldspan.crowd.registry import formats, get_format
from goldspan.errors import InputError, UnknownNameError
from torture import FUZZED

WIDE = b"doc\tsent\ttoken\tgold\tA1\tA2\nD1\t1\tAnn\tB-PER\tB-PER\t?\nD1\t1\tsang\tO\tO\tO\n"
LONG = b"item,worker,token,label\n1,a,Ann,B-PER\n1,a,sang,O\n"
CONLL = b"Ann B-PER\nsang O\n"
FOLDER = zipped({"gold/d.txt": "Ann B-PER\nsang O\n", "A/d.txt": "Ann O\nsang O\n"})


def leave(tmp_path):
    """Return the names of everything in a folder, hidden files too."""
    return sorted(path.name for path in tmp_path.iterdir())


# Which format


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (WIDE, "wide"),
        (WIDE.replace(b"\t", b";"), "wide"),
        (gzip.compress(WIDE, mtime=0), "wide"),
        (b"\xef\xbb\xbf" + WIDE.replace(b"\n", b"\r\n"), "wide"),
        (LONG, "long"),
        (b"task\tworker\tlabel\n1\ta\tx\n", "long"),
        (CONLL, "conll"),
        (b"Ann NNP B-PER\n", "conll"),
        (FOLDER, "folder"),
    ],
)
def test_the_format_is_guessed_from_the_content(data, name):
    assert read_crowd(data).import_report.format == name


def test_a_parquet_file_and_a_frame_need_no_name(tmp_path):
    write_crowd(small(), tmp_path / "a.parquet")
    assert read_crowd((tmp_path / "a.parquet").read_bytes()).import_report.format == "parquet"
    frame = pd.DataFrame({"task": [1], "worker": ["a"], "label": ["x"]})
    assert read_crowd(frame).import_report.format == "long"
    frame.to_parquet(tmp_path / "b.parquet")
    assert_same(read_crowd(tmp_path / "b.parquet"), read_crowd(frame))


def test_a_named_format_is_used_whatever_the_content_looks_like():
    pool = read_crowd(b"item,token\n1,x\n", format="wide", unlabelled="keep")
    assert pool.tokens_list == [["x"]]
    assert read_crowd(b"token\tA\nx\tO\n", format="conll").gold is not None


def test_text_that_looks_like_nothing_is_refused_with_all_formats():
    message = refusal(
        b"just a few words\nand others\n", "<bytes>: the format is not recognised: name one of "
    )
    assert all(name in message for name in formats())


@pytest.mark.parametrize(
    "call",
    [
        lambda: read_crowd(WIDE, format="wyde"),
        lambda: get_format("wyde"),
        lambda: write_crowd(small(), "x", format="wyde"),
    ],
)
def test_an_unknown_format_is_refused_with_those_that_are_known(call):
    with pytest.raises(
        UnknownNameError, match=r"unknown format 'wyde': choose from .*did you mean 'wide'"
    ) as caught:
        call()
    assert all(name in str(caught.value) for name in formats())


@FUZZED
@given(damaged(b"item,label\n1,x\n", CONLL, WIDE, FOLDER), st.booleans())
def test_damaged_gold_is_attached_or_refused(gold, single):
    answers = b"task,worker,label\n1,a,x\n" if single else WIDE
    read_or_refuse(answers, gold=gold)


# Writing


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.tsv", "wide"),
        ("a.TSV.gz", "wide"),
        ("a.csv", "long"),
        ("a.csv.gz", "long"),
        ("a.parquet", "parquet"),
        ("a.jsonl", "spans"),
        ("folder", "folder"),
    ],
)
def test_the_ending_of_the_name_says_the_format(tmp_path, name, wanted):
    crowd = crowd_of([{"w": ["B-X", "I-X"]}], gold=[["B-X", "O"]], groups=["s0"])
    lost = write_crowd(crowd, tmp_path / name)
    assert lost == losses(crowd, wanted)
    back = read_crowd(tmp_path / name)
    assert back.import_report.format == wanted
    assert back.answers_of(0) == crowd.answers_of(0)


def test_an_ending_that_names_no_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="the ending does not name a format: pass format="):
        write_crowd(small(), tmp_path / "a.xlsx")
    assert leave(tmp_path) == []


def broken():
    yield "begun\n"
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_write_that_fails_leaves_what_was_there_before(tmp_path, name):
    (tmp_path / name).write_text("before", encoding="utf-8")
    with pytest.raises(InputError, match="No space left on device: make room on the disk"):
        write_text(tmp_path / name, broken())
    assert leave(tmp_path) == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "before"


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    def fill(folder):
        (folder / "x").write_text("begun", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", fill)
    assert leave(tmp_path) == []


def test_what_fails_for_another_reason_is_not_called_a_full_disk(tmp_path):
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "x") as temporary:
        (temporary.parent / "absent").read_text()
    assert leave(tmp_path) == []


def test_a_new_file_has_the_rights_of_other_new_files(tmp_path):
    with new_file(tmp_path / "a") as path:
        path.write_text("x", encoding="utf-8")
    (tmp_path / "b").write_text("x", encoding="utf-8")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


class Stdout:
    def __init__(self):
        self.buffer = io.BytesIO()

    def flush(self):
        pass


def test_a_crowd_is_written_to_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stdout())
    assert write_to_stdout(small(), "wide") == []
    data = sys.stdout.buffer.getvalue()
    assert_same(read_crowd(data), small())
    with pytest.raises(InputError, match="format 'folder' is a folder: pass -o FOLDER"):
        write_to_stdout(small(item="d-1", group="d"), "folder")


# Bad input, as a user of the command meets it

LONG_LINE = b"x" * 1_000_000
BAD = {
    "long.tsv": (
        WIDE + b"D1\t2\t" + LONG_LINE + b"\tO\tO\tO\n",
        ["line 4: a cell longer than 10000 bytes"],
    ),
    "silent.tsv": (b"token\tA\tB\nx\t?\t?\n", ["the crowd has no answer"]),
    "tagset.tsv": (
        WIDE.replace(b"\tO\tO\tO", b"\tO\tX-PER\tO"),
        ["line 3, item D1-1 token 1, worker A1: tag 'X-PER' is not in BIO", "--label OLD=NEW"],
    ),
}


def command(monkeypatch, capsys, *words):
    """Run the command in this process; gives exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["goldspan", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    return ended.value.code, shown.out, shown.err


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_words_with_code_1_and_leaves_no_output(
    name, tmp_path, monkeypatch, capsys
):
    data, parts = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    for verb, output in (("aggregate", "gold.conll"), ("convert", "out.parquet")):
        if verb == "convert" and name == "silent.tsv":  # nothing is wrong with writing it
            continue
        code, out, err = command(monkeypatch, capsys, verb, path, "-o", tmp_path / output)
        assert (code, out) == (1, "")
        assert err.startswith("goldspan: ")
        assert "Traceback" not in err
        assert len(err) < 2500
        for part in [*parts, *([name] if name != "silent.tsv" else [])]:
            assert part in err
        assert leave(tmp_path) == [name]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--format", "wyde"], ["unknown format 'wyde'", "wide"]),
        (["--encoding", "BIOX"], ["unknown encoding 'BIOX'", "IOBES"]),
        (["--method", "mv-tokens"], ["unknown method 'mv-tokens'", "mv-token"]),
        (["--altered", "drop"], ["unknown rule for altered tokens 'drop'", "drop-sentence"]),
        (["--repeated", "all"], ["unknown rule for repeated answers 'all'", "last, first"]),
        (["--columns", "wrker=A1"], ["unknown role of a column 'wrker'", "did you mean 'worker'"]),
        (["--workers", "A9"], ["there is no worker column 'A9'"]),
        (["--text-encoding", "utf-9"], ["cannot be read as utf-9"]),
        (["--delimiter", "::"], ["must be one ASCII character"]),
        (["--gold", "nowhere.tsv"], ["nowhere.tsv: No such file"]),
    ],
)
def test_unknown_names_are_refused_with_code_1_and_leave_no_output(
    words, parts, tmp_path, monkeypatch, capsys
):
    (tmp_path / "crowd.tsv").write_bytes(WIDE)
    code, out, err = command(
        monkeypatch,
        capsys,
        "aggregate",
        tmp_path / "crowd.tsv",
        "-o",
        tmp_path / "gold.conll",
        *words,
    )
    assert (code, out) == (1, "")
    assert err.startswith("goldspan: ")
    assert all(part in err for part in parts)
    assert leave(tmp_path) == ["crowd.tsv"]


def test_a_folder_and_a_compressed_gold_are_read_by_the_command(tmp_path, monkeypatch, capsys):
    tree(tmp_path / "crowd", {"A/d.txt": "Ann B-PER\n", "B/d.txt": "Ann B-PER\n"})
    (tmp_path / "gold.tsv.gz").write_bytes(
        gzip.compress(b"item\ttoken\tgold\tx\nd-1\tAnn\tB-PER\t?\n", mtime=0)
    )
    code, out, err = command(
        monkeypatch, capsys, "inspect", tmp_path / "crowd", "--gold", tmp_path / "gold.tsv.gz"
    )
    assert (code, err) == (0, "")
    assert "folder" in out
    assert goldspan.read_crowd(tmp_path / "crowd", gold=tmp_path / "gold.tsv.gz").gold.tolist() == [
        1
    ]
