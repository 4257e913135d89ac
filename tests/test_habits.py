"""The project's habits: hooks, hosted CI, templates and version say what the project does."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

import goldspan


@pytest.fixture
def settings_files(root):
    found = [root / ".pre-commit-config.yaml", root / "RELEASING.md"]
    return [*found, *(path for path in (root / ".github").rglob("*") if path.is_file())]


def test_hosted_ci_runs_what_the_project_runs_itself_on_every_supported_python(root):
    workflow = yaml.safe_load((root / ".github/workflows/ci.yml").read_text("utf-8"))
    job = workflow["jobs"]["test"]
    assert any(step.get("run") == ".ci/run" for step in job["steps"])
    assert (root / ".ci/run").stat().st_mode & 0o111
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    told = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == told


def test_the_hooks_download_nothing(root):
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text("utf-8"))
    for repo in config["repos"]:
        assert repo["repo"] == "local"
        assert {hook["language"] for hook in repo["hooks"]} == {"system"}


def test_no_setting_names_a_host_or_a_path_of_a_machine(settings_files):
    for path in settings_files:
        text = path.read_text("utf-8")
        assert "://" not in text, path
        assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|usr|opt)/", text), path


def test_the_changelog_has_a_section_for_this_version_and_one_for_what_comes(root):
    sections = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(goldspan.__version__)}\] - \d{{4}}-\d\d-\d\d", sections[1])


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.md", "one \ntwo\n", "a.md:1: blanks at the end of the line"),
        ("a.md", "one", "exactly one newline"),
        ("a.py", "<<<<<<< main\n", "a.py:1: a mark of an unfinished merge"),
        ("a.toml", "x = \n", "a.toml: "),
        ("a.json", "{\n", "a.json: "),
        ("a.yml", "x: [\n", "a.yml: "),
    ],
)
def test_a_file_with_a_fault_is_not_committed(root, tmp_path, name, text, fault):
    (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "fine.toml").write_text('x = "y"\n', "utf-8")
    words = [sys.executable, str(root / "tools/check_files.py"), name, "fine.toml"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1
    assert fault in run.stdout
    assert "fine.toml" not in run.stdout
