"""The server's public face is lazy, and says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

import goldspan.web
from goldspan.errors import MissingExtraError


def test_the_public_names_are_there_and_sorted():
    assert goldspan.web.__all__ == sorted(goldspan.web.__all__)
    for name in goldspan.web.__all__:
        assert getattr(goldspan.web, name) is not None
    with pytest.raises(AttributeError):
        _ = goldspan.web.none


def test_importing_it_loads_nothing_heavy():
    code = "import goldspan.web, sys; print([m for m in ('fastapi', 'argon2') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["fastapi", "argon2", "itsdangerous"])
def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(monkeypatch, package):
    def without(name, *_):
        raise ModuleNotFoundError(f"No module named {name!r}", name=package)

    monkeypatch.setattr(goldspan._lazy, "import_module", without)
    monkeypatch.delattr(goldspan.web, "create_app", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[server\]'"):
        from goldspan.web import create_app  # noqa: F401
    with pytest.raises(AttributeError, match=r"pip install .*\[server\]'"):
        _ = goldspan.web.create_app
    assert not hasattr(goldspan.web, "create_app")
