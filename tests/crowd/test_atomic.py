"""Files that are written whole or not at all."""

from __future__ import annotations

import errno

import pytest

from goldspan.crowd.atomic import new_file, write_text
from goldspan.errors import InputError


def chunks(number):
    yield "first\n"
    raise OSError(number, "said by the disk")


def test_a_full_disk_is_told_and_the_file_that_was_there_stays(tmp_path):
    path = tmp_path / "gold.conll"
    path.write_text("before")
    with pytest.raises(InputError, match=r"gold\.conll.*make room"):
        write_text(path, chunks(errno.ENOSPC))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_for_another_reason_is_not_called_a_full_disk(tmp_path):
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "x") as temporary:
        (temporary.parent / "absent").read_text()
    assert list(tmp_path.iterdir()) == []
