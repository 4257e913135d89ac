"""How people sign in, over records in memory and a clock that tests move."""

from __future__ import annotations

import pytest

from goldspan.web import Auth, ServerSettings
from web.played import KEYS, Clock, Records


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger():
    return Records()


@pytest.fixture
def auth(ledger, clock):
    return Auth.of(ledger, "names-1", ServerSettings(KEYS, clock=clock))
