"""A damaged SQLite file: the right result or one message, never changed labels with exit code 0."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3

import pytest

from cli.test_refused import goldspan
from goldspan.web import load_keys, open_service
from goldspan.web.opening import FILE
from web.serving import answer, open_round, plan_file

PLACES = int(os.environ.get("GOLDSPAN_TORTURE") or "12")
"""Places that are damaged at random."""
PLAN = ["campaign.toml", "--out", "out"]
COMMANDS = {
    "verify": ["verify", *PLAN],
    "backup": ["backup", "out", "copy.sqlite"],
    "export": ["desk", "export", "campaign.toml", "answers.tsv", "-o", "answers.tsv", "--names"],
    "gold": ["desk", "export", "campaign.toml", "spans.jsonl", "-o", "spans.jsonl"],
    "overview": ["desk", "overview", "campaign.toml"],
    "items": ["desk", "items", "campaign.toml"],
    "item": ["desk", "item", "campaign.toml"],
    "report": ["report", "out", "--json"],
    "run": ["run", *PLAN],
    "serve": ["serve", *PLAN, "--port", "0", "--no-loop"],
}
LABELS = ("export", "gold", "item", "run", "backup")
OTHERS = ("verify", "overview", "items", "report", "serve")
WRITES = ("answers.tsv", "spans.jsonl", "copy.sqlite")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a campaign in which three people have answered."""
    folder = tmp_path_factory.mktemp("damaged") / "whole"
    folder.mkdir()
    plan_file(folder, spans=True)
    service = open_service(folder / "campaign.toml", folder / "out", load_keys(folder / "out"))
    open_round(service)
    for _ in range(8):
        for worker in ("ann", "bob", "cat"):
            answer(service, worker)
    (folder / "item").write_text(service.ledger.given()[0].item)
    # With what SQLite has not yet put into the file, as after a crash.
    folder_of_crash = shutil.copytree(folder, folder.with_name("crashed"))
    service.close()
    assert (folder_of_crash / "out" / f"{FILE}-wal").stat().st_size
    return folder


def call(name, folder, monkeypatch):
    """Run a command in a folder; return exit code, what it said, and what it wrote."""
    monkeypatch.chdir(folder)
    words = list(COMMANDS[name])
    if name == "item":
        words.append((folder / "item").read_text())
    code, said = goldspan(*words)
    wrote = {path: (folder / path).read_bytes() for path in WRITES if (folder / path).exists()}
    if name == "run":
        gold = sorted((folder / "out").glob("gold.*"))
        wrote = {path.name: path.read_bytes() for path in gold}
    if name == "backup":  # SQLite counts openings in the file's first page
        wrote = {path: len(content) for path, content in wrote.items()}
    return code, said, wrote


@pytest.fixture
def copy(whole, tmp_path):
    """Make a copy of the campaign that may be damaged."""
    made = []

    def make(of=whole):
        made.append(shutil.copytree(of, tmp_path / f"n{len(made)}"))
        return made[-1], made[-1] / "out" / FILE

    return make


def zeroed(content, rng):
    at = rng.randrange(len(content) // 4096) * 4096
    return content[:at] + bytes(4096) + content[at + 4096 :]


def noise(content, rng):
    at = rng.randrange(len(content) // 4096) * 4096
    return content[:at] + rng.randbytes(4096) + content[at + 4096 :]


def a_few_bytes(content, rng):
    at = rng.randrange(len(content) - 8)
    return content[:at] + rng.randbytes(rng.randint(1, 8)) + content[at + 8 :]


def a_letter(content, rng):
    """Change one letter in a text: the page stays whole, and so does the JSON."""
    at = rng.choice([n for n in range(len(content)) if content[n : n + 1].isalpha()])
    return content[:at] + rng.choice(b"OBIPLEabc").to_bytes(1, "big") + content[at + 1 :]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


DAMAGE = (zeroed, noise, a_few_bytes, a_letter, cut)
NO_DATABASE = {
    "header": lambda content: bytes(100) + content[100:],
    "text": lambda _: b"item,label\n1,rain\n" * 100,
    "half": lambda content: content[: len(content) // 2],
    "a few bytes": lambda content: content[:50],
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("what", NO_DATABASE)
def test_a_file_that_cannot_be_read_gives_one_message(copy, monkeypatch, what, name):
    folder, file = copy()
    file.write_bytes(NO_DATABASE[what](file.read_bytes()))
    code, said, wrote = call(name, folder, monkeypatch)
    if what == "nothing" and name in {"run", "serve"}:  # an empty file is a new place
        return
    assert code in {1, 3}, said
    assert "Traceback" not in said
    assert "goldspan restore" in said or what == "nothing", said
    assert not wrote


def right(name, whole, monkeypatch, tmp_path):
    folder = shutil.copytree(whole, tmp_path / f"right-{name}")
    found = call(name, folder, monkeypatch)
    assert found[0] == 0, found
    return found


def wrong(name, found, expected):
    """Return what is wrong with what a command did on a damaged file; "" if nothing is."""
    code, said, wrote = found
    if "Traceback" in said:
        return "a traceback"
    if code == 0:
        if wrote != expected[2]:
            return "another output"
        if name in {"item", "items", "overview"} and without_time(said) != without_time(
            expected[1]
        ):
            return "another result"
        return ""
    if code not in {1, 3} or ("goldspan: " not in said and name != "verify"):
        return "no message"
    return "a half-written output" if wrote else ""


def without_time(said):
    return [line for line in said.splitlines() if not line.startswith("time: ")]


def test_damage_at_random_places_gives_the_right_result_or_a_message(
    copy, whole, monkeypatch, tmp_path
):
    rng = random.Random(int(os.environ.get("GOLDSPAN_SEED") or "7"))
    expected = {name: right(name, whole, monkeypatch, tmp_path) for name in COMMANDS}
    assert expected["run"][2]
    refused, wrongs = 0, []
    for n in range(PLACES):
        damage = DAMAGE[n % len(DAMAGE)]
        folder, file = copy()
        content = damage(file.read_bytes(), rng)
        for name in rng.sample(LABELS, 2) + rng.sample(OTHERS, 1):
            mine = shutil.copytree(folder, tmp_path / "mine")
            (mine / "out" / FILE).write_bytes(content)
            found = call(name, mine, monkeypatch)
            why = wrong(name, found, expected[name])
            if why:
                wrongs.append(f"{damage.__name__} {n}, {name}: {why}: {found}")
            refused += found[0] != 0
            shutil.rmtree(mine)
        shutil.rmtree(folder)
    assert not wrongs, "\n".join(wrongs)
    assert refused


def test_a_damaged_write_ahead_log_loses_its_end_and_changes_no_label(
    copy, whole, monkeypatch, tmp_path
):
    rng = random.Random(3)
    crashed = whole.with_name("crashed")
    known = right("export", crashed, monkeypatch, tmp_path)[2]["answers.tsv"].splitlines()
    for _ in range(max(3, PLACES // 4)):
        folder, file = copy(crashed)
        wal = file.with_name(f"{FILE}-wal")
        wal.write_bytes(a_few_bytes(wal.read_bytes(), rng))
        code, said, wrote = call("export", folder, monkeypatch)
        assert "Traceback" not in said
        assert code in {0, 1}, said
        assert len(wrote) == (code == 0)
        for content in wrote.values():
            assert len(content.splitlines()) <= len(known)


def test_a_start_after_a_crash_that_changed_labels_is_refused(copy, whole, monkeypatch):
    folder, file = copy(whole.with_name("crashed"))
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT OR REPLACE INTO openings VALUES ('1', 'gone 1 1')")
        changed = connection.execute("UPDATE batches SET opened = 0").rowcount
    connection.close()
    assert changed
    for name in ("run", "serve"):
        code, said, _ = call(name, folder, monkeypatch)
        assert code == 1
        assert "batches, number 1, opened: 0; the log says" in said
        assert "goldspan restore" in said
