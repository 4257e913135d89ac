"""`goldspan init`: from a file of texts to a plan that can be served, in a few seconds."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import tomllib
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from typer.testing import CliRunner

from cli.test_serve import started
from goldspan.archives import FREE
from goldspan.campaign import read_inputs, read_plan
from goldspan.cli import app
from goldspan.cli.init import EXAMPLE, Campaign, Kind, example_folder, plan_text
from goldspan.errors import FaultsError, InputError
from test_docs import ROOT

LABELS = ("--labels", "PRODUCT,COMPANY")
TEXTS = [f"Sentence {n} about Toyota's cars." for n in range(20)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("\n".join(TEXTS) + "\n")
    rows = [f'{n},"{text}",web' for n, text in enumerate(TEXTS)]
    (tmp_path / "my reviews.csv").write_text("\n".join(["nr,comment,source", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*words):
    return CliRunner().invoke(app, ["init", *words])


def made(*words):
    """Return the plan that is written."""
    result = init(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    out = words[words.index("--out") + 1] if "--out" in words else "plan.toml"
    return read_plan(out)


def test_a_file_that_decompresses_to_too_much_is_refused_without_an_option_that_is_not_there(
    folder,
):
    data = gzip.compress(bytes(1 << 20)) * ((FREE >> 20) + 1)
    (folder / "notes.txt.gz").write_bytes(data)
    found = init("notes.txt.gz", *LABELS)
    assert found.exit_code == 1
    assert found.stderr.endswith("if it is right, decompress it first\n")
    assert not (folder / "plan.toml").exists()


@pytest.mark.usefixtures("folder")
def test_with_one_answer_per_item_the_labels_are_the_annotators_own():
    assert made("notes.txt", *LABELS, "--overlap", "1").method == "mv-token"
    assert made("notes.txt", *LABELS, "--out", "two.toml").method == "auto"


def test_a_plan_is_short_commented_unpaid_and_can_be_opened(folder):
    plan = made("notes.txt", *LABELS, "--annotators", "ann,ben,cleo", "--overlap", "2")
    assert (plan.name, plan.pool.file, plan.crowd.source) == ("notes", "notes.txt", "web")
    assert plan.task.types == ("PRODUCT", "COMPANY")
    assert plan.crowd.annotators == ("ann", "ben", "cleo")
    assert (plan.redundancy.min, plan.redundancy.max) == (2, 2)
    assert not plan.is_paid
    assert read_inputs(plan, folder).pool.n_items == 20
    text = (folder / "plan.toml").read_text()
    assert text.count("#") >= 8
    assert len(text.splitlines()) <= 25
    assert list(tomllib.loads(text)) == ["name", "task", "pool", "crowd", "redundancy", "select"]


def test_it_says_what_it_found_and_what_follows(folder):
    result = init("notes.txt", *LABELS, "--out", "my plan.toml")
    assert "notes.txt: 20 items" in result.stdout
    assert "first item: Sentence 0 about Toyota's cars." in result.stdout
    commands = [shlex.split(line) for line in result.stdout.splitlines() if "   goldspan" in line]
    assert commands == [
        ["goldspan", "serve", "my plan.toml"],
        ["goldspan", "invite", "my plan.toml", "--workers", "dora"],
    ]
    facts = json.loads(init("notes.txt", *LABELS, "--out", "my plan.toml", "--overwrite",
                            "--json").stdout)  # fmt: skip
    assert [shlex.split(one) for one in facts["next"]] == commands
    assert (facts["items"], facts["first"], facts["plan"]) == (20, TEXTS[0], "my plan.toml")
    assert facts["annotators"] == ["annotator-1", "annotator-2", "annotator-3"]
    assert folder.joinpath("my plan.toml").is_file()


@pytest.mark.usefixtures("folder")
def test_one_label_for_each_text():
    plan = made("notes.txt", "--kind", "single", "--labels", "good,bad", "--annotators", "1")
    assert plan.is_single
    assert plan.task.labels == ("good", "bad")
    assert (plan.crowd.annotators, plan.redundancy.max) == (("annotator-1",), 1)


@pytest.mark.usefixtures("folder")
def test_all_items_are_open_at_once():
    plan = made("notes.txt", *LABELS)
    assert (plan.select.by, plan.select.batch) == ("random", 20)


def test_a_plan_elsewhere_names_the_file_from_there(folder):
    (folder / "plans").mkdir()
    plan = made("notes.txt", *LABELS, "--out", "plans/a.toml")
    assert plan.pool.file == "../notes.txt"
    assert read_inputs(plan, folder / "plans").pool.n_items == 20


def test_a_name_that_is_no_campaigns_is_made_one(folder):
    (folder / "+++ Müller's  файл?.txt").write_text("a text\n")
    assert made("+++ Müller's  файл?.txt", *LABELS).name == "Müller-s  файл"
    (folder / "???.txt").write_text("a text\n")
    assert made("???.txt", *LABELS, "--out", "b.toml").name == "campaign"


@pytest.mark.usefixtures("folder")
def test_labels_of_any_characters_come_back_from_toml():
    labels = ['a "b"', "c\\d", "é", "e,f"]
    plan = made("notes.txt", "--labels", 'a,"e,f"', "--labels", "é", "--out", "x.toml")
    assert plan.task.types == ("a", "e,f", "é")
    labels.append("\x7f")
    text = plan_text(Campaign("x.txt", labels, Kind.SPANS, {}, 3, ["ann"], 1), Path("x.toml"))
    assert tomllib.loads(text)["task"]["types"] == labels


def test_a_plan_that_is_there_is_not_replaced(folder):
    (folder / "plan.toml").write_text("mine")
    result = init("notes.txt", *LABELS)
    assert isinstance(result.exception, InputError)
    said = "plan.toml exists already: choose another name, or replace it with --overwrite"
    assert said in str(result.exception)
    assert (folder / "plan.toml").read_text() == "mine"
    assert made("notes.txt", *LABELS, "--overwrite").name == "notes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.txt", *LABELS], "none.txt"),
        (["notes.txt", "--labels", "A,A"], "A, A"),
        (["notes.txt", "--labels", "good", "--kind", "single"], "at least two"),
        (["notes.txt", *LABELS, "--annotators", "ann,ann"], "appears twice in ann, ann"),
    ],
)
def test_what_cannot_be_a_campaign_is_refused_and_nothing_is_written(folder, words, said):
    result = init(*words)
    assert isinstance(result.exception, InputError | FaultsError)
    assert said in str(result.exception)
    assert not (folder / "plan.toml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "FILE is missing, as in: goldspan init"),
        (["notes.txt"], "--labels is missing, as in: goldspan init"),
        (["notes.txt", *LABELS, "--annotators", "0"], "from 1 to 1000 people, not 0"),
        (["notes.txt", *LABELS, "--annotators", "2", "--overlap", "3"], "there are 2"),
        (["notes.txt", *LABELS, "--annotators", "ann", "--overlap", "2"], "there is 1"),
        (["notes.txt", *LABELS, "--kind", "spam"], "spam"),
    ],
)
def test_wrong_usage_says_what_is_meant(folder, words, said):
    result = init(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
    assert not (folder / "plan.toml").exists()


def test_the_column_of_the_texts_is_found_and_named_in_the_plan(folder):
    plan = made("my reviews.csv", *LABELS)
    assert (plan.name, plan.pool.file, plan.pool.text) == (
        "my reviews",
        "my reviews.csv",
        "comment",
    )
    pool = read_inputs(plan, folder).pool
    assert list(pool.given) == TEXTS
    facts = json.loads(init("my reviews.csv", *LABELS, "--overwrite", "--json").stdout)
    assert facts["columns"][0] == "comment"
    assert set(facts["columns"]) == {"nr", "comment", "source"}


@pytest.mark.usefixtures("folder")
def test_columns_can_be_named():
    words = ("my reviews.csv", *LABELS, "--text-column", "source", "--id-column", "nr")
    plan = made(*words)
    assert (plan.pool.text, plan.pool.id) == ("source", "nr")
    result = init("my reviews.csv", *LABELS, "--text-column", "txt", "--overwrite")
    assert "txt" in str(result.exception)
    assert read_plan("plan.toml") == plan


def test_the_reviews_of_the_example_are_texts_to_label(folder):
    plan = made(str(ROOT / "examples" / "reviews.csv"), *LABELS)
    assert (plan.pool.text, plan.pool.id) == ("text", "id")
    assert read_inputs(plan, folder).pool.n_items == 20


def test_the_example_is_written_out(folder):
    result = init("--example", "demo", "--json")
    facts = json.loads(result.stdout)
    assert sorted(path.name for path in (folder / "demo").iterdir()) == sorted(EXAMPLE)
    for name in EXAMPLE:
        assert (folder / "demo" / name).read_bytes() == (ROOT / "examples" / name).read_bytes()
    assert shlex.split(facts["next"][0])[:3] == ["goldspan", "run", "demo/campaign.toml"]
    plan = read_plan(folder / "demo" / "campaign.toml")
    assert read_inputs(plan, folder / "demo").pool.n_items == 150
    again = init("--example", "demo")
    assert "demo/README.md exists already" in str(again.exception)
    assert init("--example", "demo", "--overwrite").exit_code == 0


def test_the_wheel_holds_the_files_of_the_example():
    with (ROOT / "pyproject.toml").open("rb") as file:
        build = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {f"examples/{name}": f"goldspan/example/{name}" for name in EXAMPLE}
    assert build["force-include"] == wanted
    assert example_folder() == ROOT / "examples"


def test_an_installed_package_has_its_example_beside_it(tmp_path, monkeypatch):
    import goldspan

    package = tmp_path / "site-packages" / "goldspan"
    (package / "example").mkdir(parents=True)
    (package / "example" / EXAMPLE[0]).write_text("x")
    monkeypatch.setattr(goldspan, "__file__", str(package / "__init__.py"))
    assert example_folder() == package / "example"


def test_from_init_to_the_first_page_it_is_three_steps(folder):
    made("notes.txt", *LABELS, "--annotators", "ann,Ben Lee")
    out = folder / "out"
    process, said = started(folder / "plan.toml", out, "--no-loop")
    try:
        links = dict(
            re.findall(r"^  (ann|Ben Lee) +(http://127\.0\.0\.1:\d+/w/\S+)$", said, re.MULTILINE)
        )
        assert list(links) == ["ann", "Ben Lee"]
        for url in links.values():
            browser = build_opener(HTTPCookieProcessor())
            with browser.open(url, timeout=30) as page:
                assert 'id="work"' in page.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    # Links are shown once; who is new in the plan gets theirs at the next start.
    text = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(text.replace('"ann"', '"ann", "dora"'))
    process, said = started(folder / "plan.toml", out, "--no-loop")
    try:
        assert re.findall(r"^  (\S.*?) +http\S+/w/", said, re.MULTILINE) == ["dora"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_column_that_looks_like_ids_is_pointed_out(folder):
    told = init("my reviews.csv", *LABELS, "--text-column", "comment").output
    assert "if 'nr' has ids, name it with pool.id in a plan, --id-column on the command" in told
    told = init("my reviews.csv", *LABELS, "--id-column", "nr", "--out", "other.toml").output
    assert "pool.id" not in told
    assert read_plan(folder / "other.toml").pool.id == "nr"
