"""The worked examples of docs/extending.md run, and the page shows them as they are."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest

import goldspan
import studies
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.registry import METHODS
from goldspan.campaign import Campaign, Steps, read_inputs, read_plan
from goldspan.campaign.plan import AggregateSection
from goldspan.crowd.registry import FORMATS, Format
from goldspan.errors import FormatError
from goldspan.plugins import plugins
from goldspan.selection import select_items
from goldspan.selection.registry import SELECTORS
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger
from goldspan.web.pages import PAGES
from goldspan.workers import next_answers
from goldspan.workers.stopping import RULES, get_rule

EXAMPLES = ("worker_model", "method", "pipe_format", "selection_rule", "stopping_rule", "study")
LABELS = b"task,worker,label\n" + b"".join(
    b"%d,%s,%s\n" % (task, worker, label)
    for task in range(6)
    for worker, label in [(b"ann", b"xy"[task % 2 :][:1]), (b"ben", b"x"), (b"cid", b"x")]
)


@pytest.fixture
def example(root, monkeypatch):
    """Import an example by its name."""
    monkeypatch.syspath_prepend(str(root / "examples" / "extend"))
    yield importlib.import_module
    for name in EXAMPLES:
        sys.modules.pop(name, None)


@pytest.fixture
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_shows_the_example_as_it_is(root, name):
    page = (root / "docs" / "extending.md").read_text("utf-8")
    code = (root / "examples" / "extend" / f"{name}.py").read_text("utf-8")
    shown = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert f"# examples/extend/{name}.py\n{code}" in shown


def test_a_worker_model(example, crowd, monkeypatch):
    module = example("worker_model")
    monkeypatch.setitem(METHODS, "bsc-shared", ("worker_model:BscShared", "all workers alike"))
    result = goldspan.aggregate(crowd, "bsc-shared")
    steps = np.diff(result.trace)
    assert len(steps) > 1
    assert (steps >= -1e-9 * abs(result.trace[-1])).all()
    assert result.memory.posterior.right.shape == (1,)  # one accuracy for all workers
    assert goldspan.score(crowd, result).f1 > 0.6
    model, rng = module.SharedAccuracy(), np.random.default_rng(0)
    assert np.allclose(model.draw(module.Prior(), 1, 3, rng).sum(axis=2), 1)


def test_a_method(example, crowd, monkeypatch):
    example("method")
    known = ("method:MostExperienced", "the worker with most answers")
    monkeypatch.setitem(METHODS, "most-experienced", known)
    result = goldspan.aggregate(crowd, "most-experienced", least=2)
    assert result.params == {"least": 2}
    n_answers = np.bincount(crowd.latest.worker)
    most = crowd.worker_ids[int(np.flatnonzero(n_answers == n_answers.max())[-1])].as_py()
    item = crowd.item_ids[0].as_py()
    assert result.tags[0] == crowd.answers_of(item)[most]
    assert repr(get_aggregator("most-experienced", least=2)) == "MostExperienced(least=2)"


def test_a_format(example, tmp_path, monkeypatch):
    example("pipe_format")
    monkeypatch.setitem(FORMATS, "pipe", Format("pipe_format", "item | worker | label"))
    crowd = goldspan.read_crowd(LABELS)
    goldspan.write_crowd(crowd, tmp_path / "answers.pipe", format="pipe")
    assert goldspan.read_crowd(tmp_path / "answers.pipe", format="pipe") == crowd
    (tmp_path / "bad.pipe").write_text("1 | ann | x\n1 | ben\n\n", "utf-8")
    with pytest.raises(FormatError, match="2 cells") as caught:
        goldspan.read_crowd(tmp_path / "bad.pipe", format="pipe")
    assert [fault.line for fault in caught.value.faults] == [2, 3]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Register modules as formats of an installed package."""
    plugins.cache_clear()

    def install(**modules):
        info = tmp_path / "site" / "pipes-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pipes\nVersion: 1.0\n")
        points = "".join(f"{name} = {module}\n" for name, module in modules.items())
        (info / "entry_points.txt").write_text(f"[goldspan.formats]\n{points}")
        monkeypatch.syspath_prepend(str(info.parent))
        plugins.cache_clear()

    yield install
    plugins.cache_clear()


def test_a_format_of_another_package_is_recognised_by_content(example, tmp_path, installed):
    module, path = example("pipe_format"), tmp_path / "answers.txt"
    crowd = goldspan.read_crowd(LABELS)
    module.write(crowd, path)
    with pytest.raises(FormatError, match="these are texts without answers"):
        goldspan.read_crowd(path)
    installed(pipe="pipe_format", wide="pipe_format")
    found = goldspan.read_crowd(path)
    assert found == crowd
    assert found.import_report.format == "pipe"
    # Other files, folders and DataFrames stay what they are, also if a name is taken.
    assert goldspan.read_crowd(LABELS).import_report.format == "long"
    for name, ending in [("wide", "one.tsv"), ("parquet", "one.parquet"), ("folder", "one")]:
        tags = goldspan.read_crowd(b"token\tann\tbob\nAnn\tB-PER\tO\n")
        goldspan.write_crowd(tags, tmp_path / ending, format=name)
        assert goldspan.read_crowd(tmp_path / ending).import_report.format == name


def test_a_broken_format_of_another_package_is_left_out(installed):
    installed(broken="no_such_module")
    with pytest.warns(RuntimeWarning, match="format 'broken' of another package is left out"):
        assert goldspan.read_crowd(LABELS).n_workers == 3


def test_a_selection_rule(example, monkeypatch):
    example("selection_rule")
    monkeypatch.setitem(SELECTORS, "capitals", ("selection_rule:Capitals", "names first"))
    pool = ["It rained all day", "He met Ann Lee", "She went to Rome"]
    picked = select_items(pool, "capitals", n=2)
    assert [int(item) for item in picked.item] == [1, 2]


def test_a_stopping_rule_for_items(example, crowd, monkeypatch):
    example("stopping_rule")
    known = ("stopping_rule:EnoughOrLong", "some answers, one more for long items")
    monkeypatch.setitem(RULES, "enough_or_long", known)
    rule = get_rule("enough_or_long(2, long=12)")
    finished = rule.finished(crowd)
    needed = 2 + (np.diff(crowd.offsets) >= 12)
    assert (finished == (np.diff(crowd.by_item.bounds) >= needed)).all()
    asked = next_answers(
        crowd, goldspan.aggregate(crowd, "mv-token"), n=3, rule="enough_or_long(30)"
    )
    assert len(asked) == 3
    assert asked.rule.answers == 30


def test_a_stopping_rule_for_campaigns(example, root, tmp_path):
    module = example("stopping_rule")
    plan = read_plan(root / "examples" / "campaign.toml")
    plan = plan.model_copy(update={"aggregate": AggregateSection(method="ibcc")})
    inputs = read_inputs(plan, root / "examples")
    ledger = create_ledger(
        tmp_path / "one.sqlite", name=inputs.plan.name, cap=25_000_000, currency="EUR",
        tagset=inputs.codec, now=BEGIN,
    )  # fmt: skip
    steps = Steps.of(inputs, ledger, stop=module.EnoughLabelled(items=20))
    decision = Campaign(inputs, ledger, steps).run()
    assert decision.rule == "enough"
    ledger.close()


def test_a_study(example, tmp_path, monkeypatch):
    example("study")
    monkeypatch.setitem(studies.STUDIES, "differ", ("study:study", "votes and Dawid-Skene"))
    folder = tmp_path / "classification" / "small"
    folder.mkdir(parents=True)
    (folder / "labels.csv").write_bytes(LABELS)
    found = studies.run_study("differ", tmp_path)
    assert "| small | 6 |" in found.markdown()


def test_every_page_of_the_desk_has_a_template_and_a_script(root):
    web = root / "src" / "goldspan" / "web"
    for name, (path, title) in PAGES.items():
        assert path.startswith("/desk")
        assert title
        assert (web / "templates" / f"desk_{name}.html.j2").is_file()
        assert (web / "static" / f"desk_{name}.js").is_file()
