"""Which runner a name gives, and what is said where there is none; with Ray: tests/cluster."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest
from typer.testing import CliRunner

from goldspan.cli import app
from goldspan.errors import InputError, MissingExtraError, UnknownNameError
from goldspan.runners import Ray, Threads, cluster, working


@pytest.fixture
def has_ray(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: ModuleSpec(name, None))


@pytest.fixture
def lacks_ray(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(cluster, "find_spec", lambda name: None if name == "ray" else real(name))


@pytest.mark.parametrize(
    ("name", "n", "shown"),
    [
        (None, 2, "Threads(2)"),
        ("threads", 3, "Threads(3)"),
        ("threads(4)", None, "Threads(4)"),
        ("ray", None, "Ray('local')"),
        ("ray", 2, "Ray('local', n_workers=2)"),
        ("ray(auto)", None, "Ray('auto')"),
        ("ray(10.0.0.1:6379)", None, "Ray('10.0.0.1:6379')"),
    ],
)
@pytest.mark.usefixtures("has_ray")
def test_a_runner_is_called_by_its_name(name, n, shown):
    with working(name, n) as runner:
        assert repr(runner) == shown
        assert isinstance(runner, Threads | Ray)


@pytest.mark.parametrize(
    "name", ["", " ray", "raj", "ray()", "threads(0)", "threads(a)", "ray(a)b"]
)
def test_another_name_is_refused(name):
    with pytest.raises(UnknownNameError, match="runner"), working(name or "x"):
        pass


@pytest.mark.usefixtures("has_ray")
def test_numbers_that_make_no_sense_are_refused():
    for wrong in ({"n_workers": 0}, {"n_workers": 1.5}, {"retries": -1}, {"memory": 1000}):
        with pytest.raises(InputError, match="at least"):
            Ray(**wrong)
    with pytest.raises(InputError, match="auto has its own"):
        Ray("auto", n_workers=2)


@pytest.mark.usefixtures("lacks_ray")
def test_without_ray_it_is_said_how_to_install_it():
    with pytest.raises(MissingExtraError, match=r"the runner ray needs ray.*cluster"):
        Ray()
    done = CliRunner().invoke(
        app, ["aggregate", "examples/crowd.tsv", "-m", "ds", "--runner", "ray"]
    )
    assert isinstance(done.exception, MissingExtraError)


def test_a_command_takes_a_runner(root):
    words = ["aggregate", str(root / "examples" / "crowd.tsv"), "-m", "mv-token", "--json"]
    one, other = (
        CliRunner().invoke(app, [*words, *more]) for more in ([], ["--runner", "threads"])
    )
    assert one.exit_code == other.exit_code == 0
    refused = CliRunner().invoke(app, [*words, "--runner", "gpu"])
    assert isinstance(refused.exception, UnknownNameError)


def test_two_numbers_of_threads_are_refused():
    with pytest.raises(InputError, match="leave out --threads 1"), working("threads(2)", 1):
        pass
