"""Messages of the library, said with a command's options."""

from __future__ import annotations

import pytest

from goldspan.cli.wording import in_options
from goldspan.errors import Fault, FormatError


def test_words_are_replaced_as_a_whole_and_the_error_stays_what_it_was():
    error = FormatError([Fault("my_most, w_bad.csv and runs/w_bad are files. `most` is w_bad.")])
    with pytest.raises(FormatError) as found, in_options({"`most`": "--most", "w_bad": "--bad"}):
        raise error
    assert str(found.value) == "my_most, w_bad.csv and runs/w_bad are files. --most is --bad."
    assert found.value.faults == error.faults


def test_an_encoding_that_must_be_named_is_asked_for_by_its_option(tmp_path, capsys, monkeypatch):
    from goldspan.cli import main

    path = tmp_path / "a.csv"
    path.write_bytes(b"task,worker,label\n1,ann,\x81\n")
    monkeypatch.setattr("sys.argv", ["goldspan", "next", str(path)])
    with pytest.raises(SystemExit):
        main()
    assert "name its encoding with --text-encoding" in capsys.readouterr().err
