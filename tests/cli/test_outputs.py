"""What every command does about its outputs: nothing is replaced, left behind, or missed late."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.test_refused import goldspan, trees
from goldspan.cli import app
from goldspan.web import load_keys, open_service
from web.serving import answer, plan_file

CROWD = "task,worker,label\n" + "".join(
    f"{n},{worker},{'xy'[n % 2]}\n" for n in range(12) for worker in ("ann", "bob", "cat")
)
GOLD = "item,label\n" + "".join(f"{n},{'xy'[n % 2]}\n" for n in range(12))
TAGS = "Ann\tB-PER\nlives\tO\nin\tO\nRome\tB-LOC\n\n" * 6

# By name: the words of a call that works, with OUT for each output.
CALLS = {
    "aggregate": ["aggregate", "crowd.csv", "-m", "mv-token", "-o", "OUT.csv"],
    "aggregate --report": ["aggregate", "crowd.csv", "-m", "mv-token", "--report", "OUT.html"],
    "aggregate --workers-table": ["aggregate", "crowd.csv", "-m", "ds", "--workers-table",
        "OUT.csv"],
    "aggregate --tagger": [
        "aggregate", "tags.tsv", "-m", "bsc-acc+crf", "--param", "rounds=1", "--tagger",
        "OUT.goldspan",
    ],
    "agreement --plot": ["agreement", "crowd.csv", "--plot", "OUT.svg"],
    "audit draw": ["audit", "draw", "gold.conll", "-o", "OUT.jsonl"],
    "bill": ["bill", "crowd.csv", "--per-answer", "0.05", "-o", "OUT.csv"],
    "gold-questions": [
        "gold-questions", "crowd.csv", "--gold", "gold.csv", "-n", "4", "-o", "OUT.csv"],
    "convert": ["convert", "crowd.csv", "-o", "OUT.parquet"],
    "init": ["init", "pool.txt", "--labels", "PERSON", "--out", "OUT.toml"],
    "label": [
        "label", "pool.txt", "--labels", "PER", "-w", "python:goldspan.annotators.python:nothing",
        "-o", "OUT.jsonl",
    ],
    "label --details": [
        "label", "pool.txt", "--labels", "PER", "-w", "python:goldspan.annotators.python:nothing",
        "--details", "OUT.jsonl", "--json",
    ],
    "next": ["next", "crowd.csv", "-o", "OUT.csv"],
    "select": ["select", "pool.txt", "-n", "2", "-o", "OUT.jsonl"],
    "simulate": ["simulate", "--items", "9", "-w", "flip(0.1) x3", "-o", "OUT.csv"],
    "tag": ["tag", "model.goldspan", "pool.txt", "-o", "OUT.conll"],
    "train": ["train", "hmm", "gold.conll", "-o", "OUT.goldspan"],
    "workers": ["workers", "crowd.csv", "-o", "OUT.csv"],
    "workers --plot": ["workers", "crowd.csv", "--plot", "OUT.svg"],
    "backup": ["backup", "out", "OUT.sqlite"],
    "desk export": ["desk", "export", "campaign.toml", "answers.csv", "-o", "OUT.csv"],
}  # fmt: skip
EXISTS = "exists already: choose another name, or replace it with --overwrite"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with what the commands read, a campaign in which somebody answered among it."""
    folder = tmp_path_factory.mktemp("files")
    plan_file(folder)
    with closing(
        open_service(folder / "campaign.toml", folder / "out", load_keys(folder / "out"))
    ) as service:
        service.campaign.run()
        for worker in ("ann", "bob"):
            answer(service, worker)
    (folder / "crowd.csv").write_text(CROWD, encoding="utf-8")
    (folder / "gold.csv").write_text(GOLD, encoding="utf-8")
    (folder / "gold.conll").write_text(TAGS, encoding="utf-8")
    (folder / "pool.txt").write_text("Ann lives in Rome .\nBob is in Kiel .\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["simulate", "gold.conll", "-w", "flip(0.1) x3", "-o", "tags.tsv"]
        assert CliRunner().invoke(app, words).exit_code == 0
        words = ["train", "hmm", "gold.conll", "-o", "model.goldspan"]
        assert CliRunner().invoke(app, words).exit_code == 0
    return folder


@pytest.fixture
def here(files, monkeypatch):
    """That folder as the working directory; what a test writes is removed again."""
    monkeypatch.chdir(files)
    before = trees(files)
    yield files
    for name in {name.split("/")[0] for name in trees(files)} - before.keys():
        path = files / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def output_of(words):
    (name,) = [word for word in words if word.startswith("OUT")]
    return name


@pytest.mark.parametrize("name", CALLS)
def test_an_output_that_exists_is_kept_unless_it_may_be_replaced(here, name):
    words, path = CALLS[name], here / output_of(CALLS[name])
    path.write_bytes(b"mine")
    code, said = goldspan(*words)
    assert (code, said) == (1, f"goldspan: {path.name} {EXISTS}\n")
    assert path.read_bytes() == b"mine"
    code, said = goldspan(*words, "--overwrite")
    assert code == 0, said
    assert path.read_bytes() != b"mine"
    path.unlink()
    assert goldspan(*words)[0] == 0
    assert path.stat().st_size > 10


@pytest.mark.parametrize("name", [name for name in CALLS if name not in {"backup", "desk export"}])
def test_it_is_kept_before_anything_is_read(here, name):
    (here / output_of(CALLS[name])).write_bytes(b"mine")
    words = ["none" + word if (here / word).is_file() and "OUT" not in word else word
             for word in CALLS[name]]  # fmt: skip
    assert EXISTS in goldspan(*words)[1]


def test_where_nothing_is_replaced_no_option_for_it_is_named(here):
    (here / "OUT").write_bytes(b"mine")
    said = goldspan("train", "project", "gold.conll", "--for", "gliner", "-o", "OUT")[1]
    assert said == "goldspan: OUT exists already: choose another name\n"


def test_a_folder_is_never_replaced(here):
    (here / "OUT").mkdir()
    code, said = goldspan("convert", "tags.tsv", "-o", "OUT", "--to-format", "brat", "--overwrite")
    assert (code, "is a folder: remove it" in said) == (1, True)


def test_messages_that_were_written_are_kept_and_no_link_is_made(here):
    (here / "mails").mkdir()
    (here / "mails" / "ann.eml").write_text("mine")
    words = ["invite", "campaign.toml", "--workers", "ann,bob", "--mail", "mails"]
    code, said = goldspan(*words)
    assert (code, "holds messages already, to ann" in said) == (1, True), said
    assert "ann" not in goldspan("invite", "campaign.toml", "--list")[1]
    assert goldspan(*words, "--overwrite")[0] == 0
    assert (here / "mails" / "ann.eml").read_text() != "mine"
    assert goldspan("invite", "campaign.toml", "--list")[1].count("ann") == 1


@pytest.mark.usefixtures("here")
def test_what_goes_on_needs_no_permission():
    words = ["aggregate", "tags.tsv", "-m", "bsc-acc", "--checkpoint", "OUT.npz"]
    for _ in range(2):
        assert goldspan(*words)[0] == 0
    assert goldspan("report", "out")[0] == 0
    assert goldspan("report", "out")[0] == 0


# What fails leaves nothing behind. BAD is a file that nothing can be made of.
FAILING = {
    **{name: [{"crowd.csv": "BAD", "tags.tsv": "BAD", "gold.conll": "BAD", "pool.txt": "NONE",
               "model.goldspan": "BAD"}.get(word, word) for word in words]
       for name, words in CALLS.items() if name not in {"simulate", "backup", "desk export"}},
    "simulate": ["simulate", "--items", "9", "-w", "nobody(3)", "-o", "OUT.csv"],
    "backup": ["backup", "nowhere", "OUT.sqlite"],
    "backup of a folder without one": ["backup", "empty", "OUT.sqlite"],
    "restore": ["restore", "BAD", "new/folder"],
    "restore of none": ["restore", "NONE", "new/folder"],
    "desk export": ["desk", "export", "campaign.toml", "none.csv", "-o", "OUT.csv"],
    "desk": ["desk", "overview", "campaign.toml", "--out", "nowhere"],
    "invite": ["invite", "campaign.toml", "--workers", "ann", "--mail", "new", "--days", "0"],
    "invite without a server": ["invite", "campaign.toml", "--workers", "ann", "--out", "nowhere"],
    "init of the example": ["init", "--example", "BAD"],
    "init of the example where a file of it is": ["init", "--example", "."],
    "payments": ["payments", "campaign.toml", "--out", "nowhere"],
    "report": ["report", "nowhere"],
    "report of an empty folder": ["report", "empty"],
    "run": ["run", "NONE", "--out", "new/folder"],
    "run with another store": ["run", "campaign.toml", "--out", "new", "--store", "BAD"],
    "serve": ["serve", "NONE", "--out", "new/folder", "--port", "0"],
    "serve with another store": [
        "serve", "campaign.toml", "--out", "new", "--store", "BAD", "--port", "0"],
    "serve without the folder of the store": [
        "serve", "campaign.toml", "--out", "new", "--store", "none/x.sqlite", "--port", "0"],
    "a folder that is not there": ["aggregate", "crowd.csv", "-m", "ds", "-o", "none/OUT.csv"],
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_fails_leaves_nothing_behind(here, name):
    (here / "BAD").write_bytes(b"\x00Dear diary\xff" * 3)
    (here / "empty").mkdir()
    before = trees(here)
    code, said = goldspan(*FAILING[name])
    assert code in {1, 2}, said
    assert "Traceback" not in said
    assert trees(here) == before


BLOCKED = {
    "matplotlib": [
        ["aggregate", "NONE", "--report", "OUT.html"], ["agreement", "NONE", "--plot", "OUT.svg"],
        ["workers", "NONE", "--plot", "OUT.svg"], ["report", "out"],
        ["desk", "export", "NONE", "report.html"],
        ["audit", "report", "NONE", "NONE", "--html", "OUT.html"],
    ],
    "jinja2": [["aggregate", "NONE", "--report", "OUT.html"], ["report", "out"],
               ["serve", "NONE", "--out", "new"]],
    "sqlalchemy": [
        ["run", "NONE", "--out", "new"], ["serve", "NONE"], ["invite", "NONE", "--list"],
        ["payments", "NONE"], ["desk", "overview", "NONE"], ["desk", "export", "NONE", "OUT.csv"],
        ["backup", "out", "OUT.sqlite"], ["restore", "NONE", "new"], ["report", "out"],
    ],
    "fastapi": [["serve", "NONE"], ["invite", "NONE", "--list"], ["payments", "NONE"],
                ["desk", "overview", "NONE"]],
    "httpx2": [["label", "NONE", "-w", "llm", "--set", "model=m", "--set", "base_url=http://h/v1"]],
    "itsdangerous": [["serve", "NONE"], ["invite", "NONE", "--list"], ["payments", "NONE"]],
    "argon2": [["serve", "NONE"], ["desk", "overview", "NONE"]],
}  # fmt: skip
"""Packages, and calls that cannot do without; what they read is not there, so that it is clear
that the package is missed first."""
SCRIPT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
sys.modules[sys.argv[1]] = None
from goldspan.cli import main
found = []
for words in json.loads(sys.argv[2]):
    sys.argv = ["goldspan", *words]
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            found.append([end.code, said.getvalue()])
print(json.dumps(found))
"""


@pytest.mark.parametrize("package", BLOCKED)
def test_a_package_that_is_missing_is_named_before_the_work(here, package):
    before = trees(here)
    calls = BLOCKED[package]
    words = [sys.executable, "-c", SCRIPT, package, json.dumps(calls)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for call, (code, said) in zip(calls, json.loads(run.stdout), strict=True):
        assert code == 1, (call, said)
        assert f"needs {package}, which is not installed. It comes with" in said, (call, said)
        assert "pip install" in said, (call, said)
    assert trees(here) == before


def test_a_campaign_without_pictures_says_so_at_the_start_and_runs(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, said = goldspan("run", "campaign.toml", "--out", "again")
    assert code == 0, said
    assert said.startswith("goldspan: there will be no report.html: a report needs matplotlib")
    assert not (here / "again" / "report.html").exists()


def test_a_classifier_that_is_missing_is_named_before_anything_is_made(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in [name for name in sys.modules if name.startswith("sklearn.")]:
        monkeypatch.setitem(sys.modules, name, None)
    before = trees(here)
    for words in (["plan", "check"], ["run"], ["serve"]):
        code, said = goldspan(
            *words, "campaign.toml", *([] if "plan" in words else ["--out", "new"])
        )
        assert (code, "needs scikit-learn, which is not installed" in said) == (1, True), said
    assert trees(here) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [["methods"], ["--version"], ["methods", "--json"]])
def test_output_that_finds_no_room_is_told_in_a_sentence(command):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - no file of ours
        run = subprocess.run(
            [sys.executable, "-m", "goldspan", *command], stdout=full, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr == "goldspan: cannot write the output: No space left on device\n"
