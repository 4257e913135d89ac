"""The hosted workflows: they parse, pin what they use, and call what is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = ROOT / ".github" / "workflows" / "release.yml"


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(path: Path) -> list[dict]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def targets() -> set[str]:
    found = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    return set(found)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_jobs_call_what_is_there(path):
    called = 0
    for step in steps(path):
        assert ("run" in step) != ("uses" in step), step
        for target in re.findall(r"^make ([a-z-]+)", step.get("run", ""), re.MULTILINE):
            assert target in targets(), target
            called += 1
        for script in re.findall(r"(?:^|\s)(\.ci/\w+)", step.get("run", "")):
            assert (ROOT / script).stat().st_mode & 0o100, script
            called += 1
    assert called


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_say_their_version(path):
    lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_may_do_little_and_end_some_day(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        needs = job.get("needs", [])
        needs = {needs} if isinstance(needs, str) else set(needs)
        assert needs <= workflow["jobs"].keys(), name
        if "container" not in job:
            assert "latest" not in job["runs-on"], name


def test_what_is_published_is_what_was_built_checked_and_tested():
    workflow = read(RELEASE)
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*.*.*"]}}
    jobs = workflow["jobs"]
    publish = jobs["publish"]
    assert set(publish["needs"]) == jobs.keys() - {"publish", "pages"}
    assert jobs["pages"]["needs"] == "publish"
    assert publish["permissions"] == {"id-token": "write"}
    assert [job for job in jobs if "id-token" in jobs[job].get("permissions", {})] == ["publish"]
    assert not any("secrets." in str(step) for step in steps(RELEASE))
    names = {
        (step["with"]["name"], step["uses"].partition("@")[0])
        for step in steps(RELEASE)
        if "artifact" in step.get("uses", "")
    }
    assert names == {("dist", "actions/upload-artifact"), ("dist", "actions/download-artifact")}


def test_every_python_that_the_package_names_is_tested_before_a_release():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {
        found[1]
        for one in project["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one))
    }
    assert named
    assert named <= set(read(RELEASE)["jobs"]["install"]["strategy"]["matrix"]["python"])
