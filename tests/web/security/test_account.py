"""The link to choose a password holds once and for an hour; the last password counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.web import Auth, ServerSettings
from goldspan.web.errors import Refused
from goldspan.web.security import account as module
from goldspan.web.security.account import FREE, LONGEST_WAIT, Delays
from goldspan.web.security.sessions import PASSWORD as KIND
from web.played import HOUR, KEYS, PASSWORD, Clock, Records


@pytest.fixture
def account(auth):
    return auth.account


@pytest.fixture
def watch(account, monkeypatch):
    """A clock of seconds that only goes forward, by which the account waits."""
    found = Clock(5)
    monkeypatch.setattr(account, "_delays", Delays(found))
    return found


def guess(account, n, **known):
    """Return what became of so many guesses: False for wrong, or the seconds to wait."""
    told = []
    for k in range(n):
        try:
            told.append(account.is_password(f"a good guess {k}", **known))
        except Refused as error:
            told.append(error.retry if error.status == 429 else error)
    return told


@pytest.fixture
def fast(monkeypatch):
    """Hash by putting a word before: argon2id takes its time on purpose."""
    monkeypatch.setattr(module, "hash_password", lambda password, _: f"hash {password}")


def refused(account, token):
    with pytest.raises(Refused, match="was used") as error:
        account.choose(token, PASSWORD)
    assert (error.value.code, error.value.status) == ("setup", 403)


def test_without_a_password_nobody_can_log_in(account):
    assert not account.has_password
    assert not account.is_password("")
    assert not account.is_password(PASSWORD)


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


def test_guesses_of_one_account_wait_longer_and_longer_from_wherever_they_come(account, watch):
    account.choose(account.open_setup(), PASSWORD)
    assert guess(account, FREE) == [False] * FREE
    for wait in (1, 2, 4, 8, 16, 30, 30, 30):
        assert guess(account, 3) == [wait] * 3  # who comes too early does not make it longer
        watch.now += wait
        assert guess(account, 1) == [False]
    assert LONGEST_WAIT == 30


def test_a_right_password_that_comes_too_early_is_not_looked_at(account, watch, monkeypatch):
    account.choose(account.open_setup(), PASSWORD)
    guess(account, FREE)
    looked = []
    real = module.is_password
    monkeypatch.setattr(module, "is_password", lambda *found: looked.append(1) or real(*found))
    with pytest.raises(Refused, match=r"wrong passwords: try again in 1 second\."):
        account.is_password(PASSWORD)
    assert looked == []
    watch.now += 1
    assert account.is_password(PASSWORD)
    assert guess(account, FREE) == [False] * FREE  # a right one begins anew


def test_where_there_is_no_password_the_guesses_are_slowed_alike(account, watch):
    told = guess(account, FREE + 2)
    account.choose(account.open_setup(), PASSWORD)
    watch.now += 3_600
    assert guess(account, FREE + 2) == told == [False] * FREE + [1, 1]


def test_wrong_passwords_are_forgotten_after_an_hour_without_one(account, watch):
    guess(account, FREE)
    watch.now += 3_599
    assert guess(account, 2) == [False, 2]
    watch.now += 3_600
    assert guess(account, FREE + 1) == [False] * FREE + [1]


def test_the_clock_on_the_wall_shortens_no_wait(account, watch, clock):  # noqa: ARG001
    guess(account, FREE)
    for jump in (10 * HOUR, -20 * HOUR):
        clock.now += jump
        assert guess(account, 1) == [1]


def test_many_guesses_at_once_are_as_few_as_one_after_the_other(account, watch):  # noqa: ARG001
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: guess(account, 1)[0], range(24)))
    assert sorted(told, key=bool) == [False] * FREE + [1] * (24 - FREE)


def test_a_browser_in_which_the_owner_was_before_is_not_locked_out(account, watch):
    account.choose(account.open_setup(), PASSWORD)
    known = account.know()
    guess(account, FREE)
    assert guess(account, 1) == [1]
    assert account.is_password(PASSWORD, known)
    assert guess(account, 1) == [1]  # for all others nothing has changed
    # Whoever has stolen its cookie has as many tries, and is then like everybody else.
    assert guess(account, FREE + 1, known=known) == [False] * FREE + [1]
    watch.now += 1
    assert guess(account, 3, known=known) == [False, False, 2]


@pytest.mark.torture("links and cookies are forged", "none is taken")
@pytest.mark.parametrize("how", ["made up", "changed", "of another campaign", "too old", "a link"])
def test_a_browser_is_not_known_by_a_cookie_that_does_not_hold(account, watch, clock, how):  # noqa: ARG001
    cookie = account.know()
    if how == "made up":
        cookie = "known"
    elif how == "changed":
        middle = len(cookie) // 2  # the last sign has bits that say nothing
        cookie = cookie[:middle] + ("A" if cookie[middle] != "A" else "B") + cookie[middle + 1 :]
    elif how == "too old":
        clock.now += module.KNOWN_DAYS * 24 * HOUR
    else:
        other = Auth.of(
            Records(), "moods-2" if "campaign" in how else "names-1", ServerSettings(KEYS)
        )
        cookie = other.account.know() if "campaign" in how else other.links.make(["a"], 9)[0][1]
    guess(account, FREE)
    assert guess(account, 1, known=cookie) == [1]
