"""What every command says and writes is what was frozen (tools/golden.py; the whole: --check)."""

from __future__ import annotations

import importlib.util
import json
import sys
from fnmatch import fnmatchcase

import pytest

from conftest import ROOT

_spec = importlib.util.spec_from_file_location("golden", ROOT / "tools" / "golden.py")
golden = importlib.util.module_from_spec(_spec)
sys.modules["golden"] = golden
_spec.loader.exec_module(golden)
CASES = golden.all_cases()


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return golden.Runner(tmp_path_factory.mktemp("golden"))


@pytest.mark.uncounted
@pytest.mark.xdist_group("golden")
@pytest.mark.parametrize("name", golden.quick(list(CASES)))
def test_a_command_gives_what_was_frozen(runner, name):
    assert golden.compare(runner, name, golden.Changes.read()) == []


def test_every_command_has_a_case_or_a_reason():
    commands = golden.command_names()
    called = {
        name
        for name in commands
        for case in CASES.values()
        if case.words.split()[: len(name.split())] == name.split()
    }
    assert commands.keys() - called == golden.WITHOUT_JSON.keys()
    assert all(commands[name] == any(
        case.as_json for case in CASES.values() if case.words.startswith(f"{name} ")
    ) for name in called)  # fmt: skip


def test_every_case_is_frozen_and_small():
    files = list(golden.FROZEN.iterdir())
    assert {path.name for path in files} == {f"{name}.json" for name in CASES}
    assert sum(path.stat().st_size for path in files) < 1_500_000


def hidden(value, path=""):
    """Yield the path of everything that is masked."""
    if value == golden.MASK:
        yield path
    elif isinstance(value, dict | list):
        below = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in below:
            yield from hidden(one, f"{path}.{key}" if path else str(key))


def test_every_mask_hides_something():
    table, found = golden.Changes.read(), []
    for name in CASES:
        frozen = json.loads((golden.FROZEN / f"{name}.json").read_text("utf-8"))
        found += [f"{name}/{path}" for path in hidden(table.applied(name, frozen))]
    for glob in golden.MASKS:
        assert any(fnmatchcase(path, glob) for path in found), glob


def changes(*entries):
    return golden.Changes([*entries])


FROZEN = {"json": {"doubts": [{"f1": 1.0, "said": "agrees with all"}], "old": 3}}


def test_what_changed_on_purpose_is_applied_to_the_frozen_form():
    table = changes(
        ("key", {"at": "*/*", "old": "doubts", "new": "uncertain"}),
        ("word", {"at": "*/json.doubts.*.said", "old": "all", "new": "everybody"}),
        ("intended", {"at": "a*/json.doubts.*.f1", "old": "1.0", "new": "0.667"}),
        ("intended", {"at": "*/json.old", "gone": True}),
        ("intended", {"at": "*/json.more", "added": True, "new": "[null]"}),
    )
    uncertain = [{"f1": 0.667, "said": "agrees with everybody"}]
    now = {"json": {"uncertain": uncertain, "more": [None]}}
    assert list(golden.differences(table.applied("a-case", FROZEN), now)) == []
    assert table.unused() == []
    other = changes(("intended", {"at": "b*/json.old", "new": "4"}))
    assert other.applied("a-case", FROZEN) == FROZEN
    assert len(other.unused()) == 1


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"a": 1.0 + 1e-8, "b": ["x"]}, "a: was 1.0, is 1.00000001"),
        ({"a": 1.0, "b": ["y"]}, 'b.0: was "x", is "y"'),
        ({"a": 1.0, "b": []}, "b: was 1 long, is 0"),
        ({"a": True, "b": ["x"]}, "a: was 1.0, is true"),
        ({"a": None, "b": ["x"]}, "a: was 1.0, is null"),
        ({"b": ["x"]}, "a: was 1.0, is missing"),
        ({"a": 1.0, "b": ["x"], "c": 0}, "c: is new, 0"),
    ],
)
def test_a_difference_is_found_and_placed(now, said):
    frozen = {"a": 1.0, "b": ["x"]}
    assert list(golden.differences(frozen, now)) == [said]
    assert list(golden.differences(frozen, json.loads(json.dumps(frozen)))) == []
    assert list(golden.differences(frozen, {"a": 1.0 + 1e-10, "b": ["x"]})) == []


def test_the_numbers_of_a_case_may_agree_less_closely_if_the_table_says_so():
    frozen, now = {"a": 1.0, "b": ["x"]}, {"a": 1.0 + 1e-6, "b": ["x"]}
    table = golden.Changes([("near", {"at": "a-*/", "within": 1e-5, "reason": "…"})])
    assert table.differences("a-case", frozen, frozen) == []
    assert len(table.unused()) == 1  # nothing needed it
    assert len(table.differences("b-case", frozen, now)) == 1
    assert table.differences("a-case", frozen, now) == []
    assert table.unused() == []
    assert len(table.differences("a-case", frozen, {"a": 1.1, "b": ["y"]})) == 2


def test_arrays_agree_to_the_neighbouring_float32():
    import numpy as np

    numbers = np.array([0.1, 0.5, np.nan, 1e-20], "f4")
    near, far = numbers.copy(), numbers.copy()
    near[0] = np.nextafter(near[0], np.float32(1))
    far[0] += np.float32(1e-7)
    packed = {"p": golden._packed(numbers)}
    assert list(golden.differences(packed, {"p": golden._packed(near)})) == []
    (said,) = golden.differences(packed, {"p": golden._packed(far)})
    assert said.startswith("p: 1 of 4 numbers differ, most number 0")
    (said,) = golden.differences(packed, {"p": golden._packed(numbers[:3])})
    assert "was 4 numbers, is 3" in said
