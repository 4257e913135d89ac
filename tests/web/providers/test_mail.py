"""Invitations are messages that mail programs open, one file per worker, for its owner's eyes."""

from __future__ import annotations

import stat
from email import message_from_bytes
from email.policy import default

import pytest

from goldspan.errors import FaultsError, InputError
from goldspan.web.providers.invitations import Invitation, read_addresses, write_mails

EXPIRES = 1_700_000_000_000


def invite(worker, address="", title="Names", instructions="Mark **names**."):
    url = f"https://labels.example.org/w/token-of-{len(worker)}"
    return Invitation(worker, address, url, EXPIRES, title, instructions)


def read(path):
    return message_from_bytes(path.read_bytes(), policy=default)


def test_a_message_holds_the_link_the_title_the_instructions_and_the_end(tmp_path):
    (path,) = write_mails(tmp_path, [invite("ann", "ann@example.org", "Näme\r\nBcc: x")])
    mail = read(path)
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == "Labelling: Näme Bcc: x"
    assert mail["Bcc"] is None
    text = mail.get_content()
    for words in ("https://labels.example.org/w/token-of-3", "2023-11-14 22:13", "Mark names."):
        assert words in text


def test_instructions_stand_in_a_letter_without_marks(tmp_path):
    given = "# Names\n\n**Mark** all.\n\n> [Ann Lee](PER) sang\n\n1. [a](https://b.org)\n2. `b`"
    (path,) = write_mails(tmp_path, [invite("ann", instructions=given)])
    words = "Names\n\nMark all.\n\n    Ann Lee (PER) sang\n\n1. a (https://b.org)\n2. b\n"
    assert read(path).get_content().replace("\r\n", "\n").endswith(words)


def test_an_address_may_be_the_worker_or_be_left_to_fill_in(tmp_path):
    first, second = write_mails(tmp_path, [invite("bob@example.org"), invite("cat")])
    assert read(first)["To"] == "bob@example.org"
    assert read(second)["To"] is None


def test_files_stay_in_the_folder_apart_and_private(tmp_path):
    workers = ["../../etc/x", "a b", "a/b", "..", "李"]
    paths = write_mails(tmp_path, [invite(worker) for worker in workers])
    assert len(set(paths)) == len(workers)
    assert all(path.parent == tmp_path for path in paths)
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "ann.eml").mkdir()
    with pytest.raises(InputError, match=r"ann\.eml"):
        write_mails(tmp_path, [invite("ann")])


def test_addresses_are_read_and_all_that_is_wrong_is_listed(tmp_path):
    path = tmp_path / "team.csv"
    path.write_text('worker,address\nann,ann@example.org\n\n"Lee, Bob",bob@example.org\n')
    assert read_addresses(path) == {"ann": "ann@example.org", "Lee, Bob": "bob@example.org"}
    path.write_text("ann,ann@example.org\nann,other@example.org\nbob\ncat,no address\n")
    with pytest.raises(FaultsError) as caught:
        read_addresses(path)
    assert [fault.line for fault in caught.value.faults] == [2, 3, 4]
    with pytest.raises(InputError, match="cannot read"):
        read_addresses(tmp_path / "none.csv")
