"""The link to choose a password holds once and for an hour; the last password counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.server import Entrance, ServerSettings
from goldspan.server.errors import Refused
from goldspan.server.security import account as module
from goldspan.server.security.sessions import PASSWORD as KIND
from server.houses import HOUR, KEYS, PASSWORD, Clock, Records


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger():
    return Records()


@pytest.fixture
def account(ledger, clock):
    return Entrance.of(ledger, "names-1", ServerSettings(KEYS, clock=clock)).account


@pytest.fixture
def fast(monkeypatch):
    """Hash by putting a word before: argon2id takes its time on purpose."""
    monkeypatch.setattr(module, "hash_password", lambda password: f"hash {password}")


def refused(account, token):
    with pytest.raises(Refused, match="was used") as error:
        account.choose(token, PASSWORD)
    assert (error.value.code, error.value.status) == ("setup", 403)


def test_without_a_password_nobody_can_log_in(account):
    assert not account.has_password
    assert not account.is_password("")
    assert not account.is_password(PASSWORD)


def test_the_link_holds_once(account):
    token = account.open_setup()
    account.check_setup(token)
    account.choose(token, PASSWORD)
    assert account.has_password
    assert account.is_password(PASSWORD)
    assert not account.is_password(PASSWORD + ".")
    refused(account, token)


@pytest.mark.usefixtures("fast")
def test_the_link_holds_for_an_hour(account, clock):
    first = account.open_setup()
    clock.now += HOUR - 1
    account.check_setup(first)
    clock.now += 1
    refused(account, first)
    assert not account.has_password


@pytest.mark.usefixtures("fast")
def test_a_new_link_takes_the_place_of_the_old_one(account):
    first, second = account.open_setup(), account.open_setup()
    refused(account, first)
    account.choose(second, PASSWORD)
    refused(account, first)


def test_what_is_no_token_is_refused_also_before_there_is_one(account):
    for token in ("", "guess", "\ud800"):
        refused(account, token)
    token = account.open_setup()
    for bad in ("", token[:-1], token + "x", token.swapcase()):
        refused(account, bad)


def test_a_bad_password_does_not_use_the_link_up(account):
    token = account.open_setup()
    with pytest.raises(Refused, match="12 to 1000"):
        account.choose(token, "short")
    account.check_setup(token)


@pytest.mark.usefixtures("fast")
def test_of_many_who_use_the_link_at_once_one_sets_the_password(account):
    token = account.open_setup()

    def choose(n):
        try:
            account.choose(token, f"{PASSWORD} {n}")
        except Refused:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(choose, range(8))) == 1


@pytest.mark.usefixtures("fast")
def test_who_was_let_in_before_another_set_the_password_does_not_set_it_too(account, monkeypatch):
    token = account.open_setup()
    check = account.check_setup

    def slow_check(given):
        monkeypatch.setattr(account, "check_setup", check)
        found = check(given)
        account.choose(given, PASSWORD)  # another is quicker
        return found

    monkeypatch.setattr(account, "check_setup", slow_check)
    with pytest.raises(Refused, match="used just now"):
        account.choose(token, "another good sentence")
    assert account._kept() == f"hash {PASSWORD}"


def test_neither_tokens_nor_passwords_are_kept(account, ledger):
    token = account.open_setup()
    account.choose(token, PASSWORD)
    assert token not in str(ledger.kept)
    assert PASSWORD not in str(ledger.kept)
    assert "$argon2id$" in str(ledger.kept[KIND])


def test_a_reset_takes_the_password_away_until_another_is_chosen(account):
    account.choose(account.open_setup(), PASSWORD)
    token = account.reset()
    assert not account.has_password
    assert not account.is_password(PASSWORD)
    account.choose(token, "another good sentence")
    assert account.is_password("another good sentence")
    assert not account.is_password(PASSWORD)
