"""`hasattr` never raises: what an object does not have is an AttributeError that says why."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from functools import cached_property

import pytest

import goldspan
from goldspan import errors
from goldspan.aggregation import get_aggregator, methods
from goldspan.errors import InputError, MissingExtraError, UnavailableError

LABELS = b"task,worker,label\n1,ann,x\n1,bob,x\n2,ann,y\n3,bob,?\n"
TAGS = b"token\tann\tbob\nAnn\tB-PER\tB-PER\nsang\tO\tB-PER\n"
PACKAGES = [
    "aggregation",
    "campaign",
    "runners",
    "crowd",
    "workers",
    "selection",
    "web",
    "simulation",
]
PACKAGES += ["spans", "store", "tagger"]
LEARNED_FROM_TEXT = {"crf-conc", "crf-ma", "multicrf", "multicrf-max"}


def _objects():
    labels, tags = goldspan.read_crowd(LABELS), goldspan.read_crowd(TAGS)
    for crowd in (labels, tags, tags.with_gold(tags.answers.codes[:2])):
        yield from (crowd, crowd.answers, crowd.by_item, crowd.tagset, crowd.import_report)
        yield goldspan.agreement(crowd)
    for crowd, method in (
        (labels, "mv-token"),
        (labels, "ds"),
        (tags, "mv-seg"),
        (tags, "bsc-seq"),
    ):
        result = goldspan.aggregate(crowd, method)
        yield from (result, result.span_array, result.tagged)
        yield from (goldspan.score(result, result), goldspan.score(result, result).micro)
    for method in methods():
        yield get_aggregator(method)
    for method in set(methods()) - LEARNED_FROM_TEXT - {"mv-seg", "ordinal"}:
        if "+" not in method:
            yield get_aggregator(method).fit(labels)
    yield from (goldspan.tagger.CRF(), goldspan.tagger.HMM())
    yield goldspan.crowd.CrowdBuilder()
    yield goldspan.selection.Pool.of(tags)
    yield goldspan.workers.measure_reliability(tags.with_gold(tags.answers.codes[:2]))
    yield InputError("x")


@pytest.fixture(scope="module")
def objects():
    for name in ("tagger", "selection", "workers"):
        importlib.import_module(f"goldspan.{name}")
    return list(_objects())


def test_no_attribute_of_a_public_object_raises_when_it_is_asked_for(objects):
    raising = []
    for each in objects:
        for name in {*dir(each), *getattr(type(each), "__annotations__", {}), "labels_", "tagger"}:
            try:
                hasattr(each, name)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is listed
                raising.append(f"{type(each).__name__}.{name}: {type(error).__name__}")
    assert sorted(set(raising)) == []


def test_what_is_asked_for_in_vain_is_not_there_and_says_why():
    labels, tags = goldspan.aggregate(LABELS, "mv-token"), goldspan.aggregate(TAGS, "mv-token")
    assert hasattr(labels, "labels")
    assert not hasattr(tags, "labels")
    assert not hasattr(tags, "label_array")
    assert not hasattr(tags.crowd, "gold_tagged")
    assert getattr(tags.crowd, "gold_tagged", 7) == 7
    for get in (lambda: tags.labels, lambda: tags.crowd.gold_tagged, lambda: tags.label_array):
        with pytest.raises(UnavailableError) as caught:
            get()
        assert isinstance(caught.value, InputError)
        assert ";" in str(caught.value) or ":" in str(caught.value)


def _public_classes():
    for package in PACKAGES:
        module = importlib.import_module(f"goldspan.{package}")
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.isclass(value):
                yield value


def test_no_property_of_a_public_class_raises_anything_but_an_attribute_error():
    seen = 0
    for cls in {base for each in _public_classes() for base in each.__mro__}:
        for name, value in vars(cls).items():
            getter = {property: "fget", cached_property: "func"}.get(type(value))
            if getter is None or not cls.__module__.startswith("goldspan"):
                continue
            tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(value, getter))))
            for node in ast.walk(tree):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    kind = getattr(errors, ast.unparse(node.exc.func), None)
                    assert kind, f"{cls.__name__}.{name}"
                    assert issubclass(kind, AttributeError), f"{cls.__name__}.{name}"
                    seen += 1
    assert seen >= 3


@pytest.mark.parametrize(
    ("package", "name", "needs", "extra"),
    [("web", "create_app", "fastapi", "server"), ("store", "open_ledger", "sqlalchemy", "store")],
)
def test_a_name_that_needs_an_extra_is_not_there_without_it(
    monkeypatch, package, name, needs, extra
):
    module = importlib.import_module(f"goldspan.{package}")

    def without(path):
        raise ModuleNotFoundError(f"No module named {path!r}", name=needs)

    monkeypatch.delitem(vars(module), name, raising=False)
    monkeypatch.setattr(importlib.import_module("goldspan._lazy"), "import_module", without)
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=rf"{needs}.*\[{extra}\]"):
        getattr(module, name)
    with pytest.raises(MissingExtraError, match=rf"{needs}.*\[{extra}\]"):
        exec(f"from goldspan.{package} import {name}", {})


def test_an_extra_that_a_module_misses_itself_is_told_in_the_same_two_ways(monkeypatch):
    module = importlib.import_module("goldspan.campaign")

    def without(_path):
        raise MissingExtraError("pydantic", "campaign", "a campaign's plan")

    name = module.__all__[0]
    monkeypatch.delitem(vars(module), name, raising=False)
    monkeypatch.setattr(importlib.import_module("goldspan._lazy"), "import_module", without)
    assert not hasattr(module, name)
    with pytest.raises(MissingExtraError, match="needs pydantic"):
        exec(f"from goldspan.campaign import {name}", {})


def test_another_module_that_is_missing_is_an_import_error_of_its_own(monkeypatch):
    module = importlib.import_module("goldspan.store")

    def without(_path):
        raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")

    monkeypatch.delitem(vars(module), "open_ledger", raising=False)
    monkeypatch.setattr(importlib.import_module("goldspan._lazy"), "import_module", without)
    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        _ = module.open_ledger
