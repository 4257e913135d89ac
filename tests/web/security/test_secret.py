"""The server's secret is made once, is nobody else's to read, and never guessable."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.errors import InputError
from goldspan.web.settings import FILE, VARIABLE, Keys, load_keys


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def test_it_is_made_at_the_first_start_and_kept(tmp_path):
    made = load_keys(tmp_path / "out")
    assert load_keys(tmp_path / "out") == made
    assert stat.S_IMODE((tmp_path / "out" / FILE).stat().st_mode) == 0o600
    assert load_keys(tmp_path / "other") != made


def test_of_many_who_make_it_at_once_all_get_the_same(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        assert len({keys.root for keys in pool.map(load_keys, [tmp_path] * 64)}) == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_every_purpose_has_its_own_key():
    keys = Keys(bytes(range(32)))
    assert len({keys.of(f"purpose {n}") for n in range(100)} | {keys.root}) == 101


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    load_keys(tmp_path)
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(InputError, match="chmod 600"):
        load_keys(tmp_path)


@pytest.mark.parametrize("words", [b"", b"short", bytes(64), b"a" * 64, b" " * 40 + b"abc\n"])
def test_what_can_be_guessed_is_no_secret(tmp_path, monkeypatch, words):
    (tmp_path / "key").write_bytes(words)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "key"))
    with pytest.raises(InputError, match="32 random bytes"):
        load_keys(tmp_path)


def test_the_variable_names_another_file_which_is_never_made(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "key"))
    with pytest.raises(InputError, match="No such file"):
        load_keys(tmp_path)
    (tmp_path / "key").write_text("0123456789abcdef" * 4 + "\n")
    first = load_keys(tmp_path)
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    assert load_keys(tmp_path) == first
    assert not (tmp_path / FILE).exists()


def test_the_secret_is_not_shown():
    keys = Keys.new()
    assert keys.root.hex() not in repr(keys)
    assert str(keys.root) not in repr(keys)
    assert Keys.new() != keys
