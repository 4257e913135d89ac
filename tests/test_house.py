"""The house rules: who may import whom, what stays unloaded, what the public face is."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import goldspan

SRC = Path(goldspan.__file__).parent
PACKAGES = {
    "spans": set(),
    "crowd": {"spans"},
    "chains": {"spans"},
    "tagger": {"spans", "chains"},
    "aggregation": {"crowd", "chains", "tagger"},
    "simulation": {"crowd", "tagger", "aggregation"},
    "annotators": {"crowd", "tagger", "simulation"},
    "workers": {"crowd", "aggregation"},
    "selection": {"crowd", "tagger"},
    "runners": set(),
    "store": {"crowd"},
    "auditing": {"crowd", "aggregation"},
    "report": {"campaign", "auditing"},
    "campaign": {"aggregation", "auditing", "workers", "selection", "annotators", "store"},
    "web": {"campaign"},
}
# A package may use what the packages that it may import hand on: crowd hands on spans, for example.
SHARED = {
    "archives",
    "client",
    "errors",
    "http",
    "money",
    "params",
    "protocols",
    "plugins",
    "_arrays",
    "_kernel",
    "_lazy",
    "__version__",
}
BUDGET = {
    "": 2_260, "aggregation": 14_968, "annotators": 3_357, "auditing": 1_177, "campaign": 8_606,
    "chains": 1_325, "cli": 8_224, "crowd": 20_435, "report": 3_296, "runners": 672,
    "selection": 2_601, "simulation": 1_608, "spans": 2_668, "store": 6_529, "tagger": 5_222,
    "web": 10_876, "workers": 7_054,
}  # fmt: skip
"""Lines of Python per package, "" for the modules above them; `python tools/lines.py` prints them.
A change that adds may raise its package's number only if a person agrees, and the message of its
commit says why."""
HIDING = (".args", ".__class__")
HEAVY = ("numba", "scipy", "pandas", "pyarrow", "matplotlib", "sqlalchemy", "fastapi")


def _allowed(package: str) -> set[str]:
    found = set(PACKAGES[package])
    for other in PACKAGES[package]:
        found |= _allowed(other)
    return found


@cache
def _read(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], list[str]]:
    """Return a file's imports, at its top and in functions, and what it assigns to, in text."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    written = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    return imports, [ast.unparse(target) for target in written]


def _imported_packages(path: Path) -> set[str]:
    packages = set()
    for node in _read(path)[0]:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "goldspan":
                names = [f"goldspan.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        packages |= {name.split(".")[1] for name in names if name.startswith("goldspan.")}
    return packages


def _files() -> list[Path]:
    packages = [path for path in SRC.rglob("*.py") if len(path.relative_to(SRC).parts) > 1]
    return [path for path in packages if path.relative_to(SRC).parts[0] in PACKAGES]


def test_a_package_imports_only_the_packages_that_the_architecture_allows():
    forbidden = {}
    for path in _files():
        package = path.relative_to(SRC).parts[0]
        forbidden[str(path)] = _imported_packages(path) - _allowed(package) - SHARED - {package}
    assert {path: found for path, found in forbidden.items() if found} == {}


def test_no_package_has_more_lines_than_its_budget():
    """What a change adds it pays for by what it deletes: `python tools/lines.py` shows both."""
    lines = dict.fromkeys(BUDGET, 0)
    for path in SRC.rglob("*.py"):
        inner = path.relative_to(SRC).parts
        lines[inner[0] if len(inner) > 1 else ""] += len(path.read_text("utf-8").splitlines())
    assert {name: n for name, n in lines.items() if n > BUDGET[name]} == {}


def test_every_package_is_in_the_table():
    packages = {path.name for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages <= PACKAGES.keys() | {"cli"}


@pytest.mark.parametrize(
    "code",
    [
        "import goldspan",
        """
import goldspan, sys; sys.argv = ['goldspan', '--help']
from goldspan.cli import main
try: main()
except SystemExit: pass""",
        "import goldspan; dir(goldspan)",
    ],
    ids=["import", "help", "dir"],
)
def test_nothing_heavy_is_loaded(code):
    tail = (
        f"\nimport json, sys; print('\\n' + json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout.splitlines()[-1]) == []


def test_tab_finds_the_public_names_of_every_package_and_nothing_else():
    files = _modules().items()
    faces = [importlib.import_module(n) for n, path in files if path.name == "__init__.py"]
    assert goldspan in faces
    for face in faces:
        assert dir(face) == face.__all__ == sorted(face.__all__), face.__name__
        for name in face.__all__:
            assert not isinstance(getattr(face, name), ModuleType), f"{face.__name__}.{name}"


@pytest.mark.parametrize(
    "first", ["goldspan.aggregation", "goldspan.aggregation.votes", "goldspan"]
)
def test_goldspan_aggregate_can_be_called_whatever_was_imported_first(first):
    code = (
        f"import {first}, goldspan\n"
        "print(goldspan.aggregate(b'task,worker,label\\n1,a,x\\n', method='mv-token').labels)\n"
        "assert 'ds' in goldspan.aggregation.methods()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['x']"


def test_importing_sets_up_no_logging_and_no_thread():
    code = (
        "import logging, threading; before = list(logging.root.handlers)\n"
        "import goldspan, goldspan.cli, goldspan.spans, goldspan.crowd, goldspan.aggregation\n"
        "assert logging.root.handlers == before and threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_file_has_a_name_that_says_nothing():
    names = {path.name for path in SRC.rglob("*.py")}
    assert not names & {"utils.py", "helpers.py", "common.py", "misc.py"}


def test_the_constraints_name_no_index(root):
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        assert line.startswith("#") or "==" in line
        assert "://" not in line


def _parametrized_sets(path: Path) -> list[int]:
    """Find sets in lists of cases that are named by how they print: lines."""
    calls = (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call))
    lines = []
    for call in calls:
        ids = next((word.value for word in call.keywords if word.arg == "ids"), None)
        if isinstance(ids, ast.Name) and ids.id in {"str", "repr"}:
            inside = [node for value in call.args for node in ast.walk(value)]
            lines += [node.lineno for node in inside if isinstance(node, ast.Set | ast.SetComp)]
    return lines


def test_no_case_of_a_test_is_named_by_the_order_of_a_set():
    # The order changes from process to process, and the workers of a test run must agree on names.
    found = {str(path): _parametrized_sets(path) for path in Path(__file__).parent.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


def _modules() -> dict[str, Path]:
    """Return the modules of the package by name."""
    found = {}
    for path in SRC.rglob("*.py"):
        parts = path.relative_to(SRC.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported_modules(name: str, known: dict[str, Path]) -> set[str]:
    """Return the modules that a module imports anywhere: at its top, in functions, for types."""
    found = set()
    for node in _read(known[name])[0]:
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (whole & known.keys()) or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {other for other in found if other in known and other != name}


def _cycle(imports: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a ring, empty if there are none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(imports[name]):
            ring = visit(other, [*way, name])
            if ring:
                return ring
        done.add(name)
        return []

    return next(filter(None, (visit(name, []) for name in sorted(imports))), [])


def test_no_modules_import_each_other():
    known = _modules()
    # A package's own file hands its public names on: nothing is known there that could be needed.
    fronts = {name for name, path in known.items() if path.name == "__init__.py"}
    imports = {name: _imported_modules(name, known) for name in known}
    for name in fronts:
        imports[name] = {other for other in imports[name] if not other.startswith(f"{name}.")}
    assert _cycle(imports) == []


def test_a_ring_of_imports_is_found():
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_nothing_is_hidden_in_other_objects():
    """No callable module, no rewritten text of an error, nothing in the `__dict__` of another."""
    hidden = {
        str(path): [t for t in _read(path)[1] if ".__dict__[" in t or t.endswith(HIDING)]
        for path in SRC.rglob("*.py")
    }
    assert {path: found for path, found in hidden.items() if found} == {}


def test_every_slow_test_exists(root):
    for line in (root / "tests" / "slow.txt").read_text("utf-8").splitlines():
        file, _, case = line.partition("::")
        name = f"def {case.partition('[')[0]}(" if case else "def test_"
        assert name in (root / file).read_text("utf-8"), line
