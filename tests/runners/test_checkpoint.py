"""Files that hold the state of a run: whole or refused."""

from __future__ import annotations

import _thread
import io
import zipfile

import numpy as np
import pytest

from damaged import N_DAMAGED, at_most, damaged_archives
from goldspan.errors import InputError
from goldspan.runners import FileCheckpoint
from torture import DAMAGED

STATE = {"counts": np.arange(6.0).reshape(2, 3), "trace": np.array([1.0, 2.0])}


@pytest.fixture
def kept(tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "run.ckpt")
    checkpoint.save("name", STATE)
    return checkpoint


def test_a_state_comes_back_to_the_bit_and_replaces_the_last(kept):
    for factor in (1, np.pi):
        kept.save("name", {name: value * factor for name, value in STATE.items()})
        found = kept.load("name")
        assert found.keys() == STATE.keys()
        for name, value in STATE.items():
            assert found[name].tobytes() == (value * factor).tobytes()
    assert [path.name for path in kept.path.parent.iterdir()] == ["run.ckpt"]


def test_no_file_is_no_state(tmp_path):
    assert FileCheckpoint(tmp_path / "none").load("name") is None


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        FileCheckpoint(tmp_path / "none" / "run")


def test_the_checkpoint_of_another_run_is_refused(kept):
    with pytest.raises(InputError, match="another run"):
        kept.load("other")


def test_another_version_is_refused(kept, monkeypatch):
    monkeypatch.setattr("goldspan.runners.checkpoint.VERSION", 2)
    with pytest.raises(InputError, match="version 1, not 2"):
        kept.load("name")


def test_a_failed_write_leaves_the_last_state_and_no_rest(kept):
    with pytest.raises(ValueError, match="no"):
        kept.save("name", {"bad": _Bad()})
    assert kept.load("name").keys() == STATE.keys()
    assert [path.name for path in kept.path.parent.iterdir()] == ["run.ckpt"]


def test_ctrl_c_in_the_middle_of_a_write_keeps_the_state(kept):
    with pytest.raises(KeyboardInterrupt):
        kept.save("name", {"counts": _Interrupting()})
    assert kept.load("name").keys() == {"counts"}
    assert [path.name for path in kept.path.parent.iterdir()] == ["run.ckpt"]


class _Interrupting:
    def __array__(self, dtype=None, copy=None):
        _thread.interrupt_main()
        return np.arange(1_000_000.0)


class _Bad:
    def __array__(self, dtype=None, copy=None):
        raise ValueError("no")


@DAMAGED
def test_a_truncated_file_is_refused_wherever_it_is_cut(kept, tortured):
    data = kept.path.read_bytes()
    for size in [*range(0, len(data), 7), len(data) - 1]:
        kept.path.write_bytes(data[:size])
        with pytest.raises(InputError, match="damaged"):
            kept.load("name")
        tortured(1)


@DAMAGED
def test_a_damaged_byte_is_refused_or_does_no_harm(kept, tortured):
    data = kept.path.read_bytes()
    for place in range(0, len(data), 2):
        for flip in (1 << place % 7,):
            kept.path.write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
            tortured(1)
            try:
                found = kept.load("name")
            except InputError:
                continue
            for name in found.keys() & STATE.keys():
                assert found[name].tobytes() == STATE[name].tobytes(), place


def _npy():
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    return stream.getvalue()


def _foreign():
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(3))
    return stream.getvalue()


def _pickled():
    stream = io.BytesIO()
    np.savez(stream, version=1, fingerprint="name", a=np.array([{}], object))
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [b"", b"hello\n", b"PK\x03\x04", _npy(), _foreign(), _pickled(), b"\x80\x04."],
    ids=["empty", "text", "zip", "npy", "foreign", "objects", "pickle"],
)
def test_a_file_that_is_no_checkpoint_is_refused(kept, data):
    kept.path.write_bytes(data)
    with pytest.raises(InputError, match="not a checkpoint of goldspan, or it is damaged"):
        kept.load("name")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError):
        FileCheckpoint(tmp_path / "run").load("name")


def test_whatever_is_damaged_is_refused_or_harmless_in_bounded_memory(kept):
    n_refused = 0
    for data in damaged_archives(kept.path.read_bytes()):
        kept.path.write_bytes(data)
        with at_most(64 * len(data) + 2_000_000):
            try:
                kept.load("name")
            except InputError as error:
                assert str(kept.path) in str(error)  # noqa: PT017 - others are harmless
                n_refused += 1
    assert n_refused > N_DAMAGED // 3


@pytest.mark.parametrize("name", ["counts.npy", "trace.npy", "version.npy", "fingerprint.npy"])
def test_a_member_that_is_missing_is_noticed(kept, name):
    with zipfile.ZipFile(kept.path) as file:
        others = {one: file.read(one) for one in file.namelist() if one != name}
    with zipfile.ZipFile(kept.path, "w") as file:
        for one, data in others.items():
            file.writestr(one, data)
    with pytest.raises(InputError, match="or it is damaged"):
        kept.load("name")


def test_a_compressed_state_is_refused(kept):
    with kept.path.open("wb") as file:
        np.savez_compressed(file, version=1, fingerprint="name", a=np.zeros(10**7))
    with at_most(2_000_000), pytest.raises(InputError, match="or it is damaged"):
        kept.load("name")


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(3), np.array("Größe"),
        np.zeros((0, 3), bool), np.arange(3, dtype=np.int16), np.array([b"ab"]),
        np.array([1 + 2j]), np.arange(4, dtype=">f8"), np.ones((1, 1, 2), np.uint8),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_of_any_plain_kind_come_back(kept, array):
    kept.save("name", {"a": array})
    found = kept.load("name")["a"]
    assert (found.dtype, found.shape, found.tobytes("A")) == (
        array.dtype, array.shape, array.tobytes("A"),
    )  # fmt: skip
    assert found.flags.writeable
