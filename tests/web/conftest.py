"""Passwords cost next to nothing in tests: what they cost for real is in `test_passwords.py`.

Who is told to try again later is told so at once.
"""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from cli.test_serve import started
from goldspan.web.security import account as passwords
from goldspan.web.security import middleware
from store.conftest import (  # noqa: F401 - fixtures
    new_ledger,
    new_place,
    own_postgres,
    schemas,
    server,
    tables,
)


@pytest.fixture(autouse=True)
def _cheap_passwords(monkeypatch):
    monkeypatch.setattr(middleware, "PAUSE", 0)
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_HASHER", cheap)
    monkeypatch.setattr(passwords, "_NONE", cheap.hash("nobody has this"))


@pytest.fixture
def start():
    """Starts servers, and kills those that a test leaves."""
    made = []

    def begin(*words, **how):
        process, said = started(*words, **how)
        made.append(process)
        return process, said

    yield begin
    for process in made:
        if process.poll() is None:
            process.kill()
            process.communicate()
