"""Small files that decompress to large ones: refused soon, in bounded memory, naming the option."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goldspan
from damaged import N_DAMAGED, at_most, damaged
from goldspan.archives import FREE, Allowance, parse_size
from goldspan.cli import main
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError, InputError
from goldspan.selection.files import read_pool

TABLE = b"item,worker,label\n" + b"".join(b"%d,ann,x\n" % n for n in range(2000))
OPTION = r"limit.*decompress it first \(see max_decompressed\)"
FEW = 20 << 20
"""More memory than this is not needed to find out that 1 MiB is exceeded."""


def zeros(n_bytes, wbits=31):
    """Return as many zeros, compressed; never held at once."""
    packer, parts = zlib.compressobj(9, wbits=wbits), []
    for _ in range(n_bytes >> 20):
        parts += [packer.compress(bytes(1 << 20))]
    return b"".join([*parts, packer.flush()])


def zipped(*members, packing=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def lying(data, true, said):
    """Return an archive that says of a member of `true` bytes that it has `said`."""
    return data.replace(true.to_bytes(4, "little"), said.to_bytes(4, "little"))


BOMB = bytes(8 << 20)
BOMBS = {
    "gzip": gzip.compress(BOMB),
    "gzip of several parts": gzip.compress(bytes(1 << 19)) * 16,
    "zip": zipped(("a.csv", BOMB)),
    "zip of many": zipped(*((f"{n}.csv", bytes(1 << 19)) for n in range(16))),
    "zip that lies": lying(zipped(("a.csv", BOMB)), len(BOMB), 1000),
    "zip of gzip": zipped(("a.csv.gz", gzip.compress(BOMB))),
    "zip of zips": zipped(("a.zip", zipped(("b.zip", zipped(("c.csv", BOMB)))))),
    "gzip of zip": gzip.compress(zipped(("a.csv", BOMB))),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_grows_beyond_the_limit_is_refused_in_bounded_memory(kind):
    message = "larger|damaged" if kind == "zip that lies" else OPTION
    with at_most(FEW), pytest.raises(FormatError, match=message):
        open_source(BOMBS[kind], max_decompressed="1MiB")


def test_the_default_refuses_a_bomb_of_the_usual_limit():
    data = zeros(FREE + (2 << 20))
    assert len(data) < FREE / 500
    with pytest.raises(FormatError, match=f"more than 256 MiB, which is the {OPTION}"):
        open_source(data)


def test_the_usual_limit_is_the_free_amount_a_ratio_and_four_gibibytes():
    assert [Allowance(n).left for n in (10, 10 << 20, 1 << 40)] == [FREE, 1000 << 20, 4 << 30]
    assert Allowance(10, "20GiB").left == 20 << 30


def test_a_raised_limit_reads_it(tmp_path):
    crowd = goldspan.read_crowd(gzip.compress(TABLE), max_decompressed=len(TABLE))
    assert crowd.n_items == 2000
    with pytest.raises(FormatError, match=OPTION):
        goldspan.read_crowd(gzip.compress(TABLE), max_decompressed=len(TABLE) - 1)
    path = tmp_path / "gold.csv.gz"
    path.write_bytes(gzip.compress(b"item,label\n1,x\n"))
    with pytest.raises(FormatError, match=OPTION):
        goldspan.read_crowd(TABLE, gold=path, max_decompressed=5)
    with pytest.raises(FormatError, match=OPTION):
        read_pool(gzip.compress(b"one\ntwo\n"), "text", max_decompressed=5)


def test_what_is_not_compressed_is_not_bounded():
    assert goldspan.read_crowd(TABLE, max_decompressed=5).n_items == 2000


def test_a_folder_is_bounded_as_a_whole(tmp_path):
    for n in range(4):
        (tmp_path / f"{n}.csv.gz").write_bytes(gzip.compress(bytes(1 << 19)))
    assert len(open_source(tmp_path, max_decompressed="2MiB").files) == 4
    with pytest.raises(FormatError, match=OPTION):
        open_source(tmp_path, max_decompressed="1.9MiB")


def test_archives_are_nested_three_deep_at_most():
    data = TABLE
    for n in range(3):
        data = zipped((f"{n}.zip" if n else "a.csv", data))
    opened = open_source(data)
    assert list(opened.files["2.zip"].files["1.zip"].files) == ["a.csv"]
    with pytest.raises(FormatError, match="nested deeper than 3: unpack it"):
        open_source(zipped(("3.zip", data)))


@pytest.mark.parametrize("name", ["../a.csv", "a/../../b.csv", "/a.csv", "C:a.csv", r"..\a.csv"])
def test_names_that_lead_out_of_an_archive_are_refused(name):
    with pytest.raises(FormatError, match="leads out of it"):
        open_source(zipped(("good.csv", TABLE), (name, TABLE)))


def test_names_given_twice_are_refused():
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("a.csv", TABLE), ("a.csv", b"other"))
    with pytest.raises(FormatError, match=r"'a\.csv' is in the archive twice"):
        open_source(data)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_bounded_are_refused(packing):
    data = zipped(("a.csv", BOMB), packing=packing)
    with at_most(FEW), pytest.raises(FormatError, match="unpack it and pass the folder"):
        open_source(data)


def test_a_tar_is_refused_with_what_to_do(tmp_path):
    import tarfile

    path = tmp_path / "crowd.tar.gz"
    (tmp_path / "a.csv").write_bytes(TABLE)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "a.csv", "a.csv")
    with pytest.raises(FormatError, match=r"a tar archive.*unpack it"):
        goldspan.read_crowd(path)


def parquet(table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd", **options)
    return stream.getvalue()


def rows_of(label, n, **more):
    return pa.table({"item": np.arange(n).astype(str), "worker": ["a"] * n, "label": label, **more})


PARQUET = {
    "a long column": parquet(
        rows_of(["x"] * 10, 10, text=["y" * (1 << 20)] * 10), use_dictionary=False
    ),
    "a long word in a dictionary": parquet(rows_of(["x" * (1 << 16)] * 500, 500)),
    "lists of it": parquet(rows_of(["x"] * 500, 500, tokens=[["x" * (1 << 16)]] * 500)),
    "numbers": parquet(rows_of(["x"] * 500_000, 500_000, cost=np.zeros(500_000))),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARQUET)
def test_parquet_is_bounded_by_what_it_becomes_in_memory(kind):
    before = pa.total_allocated_bytes()
    with pytest.raises(FormatError, match=OPTION):
        goldspan.read_crowd(PARQUET[kind], max_decompressed="1MiB")
    assert pa.total_allocated_bytes() - before < FEW


def test_parquet_that_is_read_is_the_table_that_was_written():
    n = 70_000
    words = pa.array(["x", "y"] * (n // 2)).dictionary_encode()
    table = rows_of(words, n, tokens=[["a", None]] * n, more=[{"b": "c"}] * n)
    table = table.replace_schema_metadata({"own": "note"})
    from goldspan.crowd.formats.columns import parquet_table

    back = parquet_table(open_source(parquet(table, row_group_size=30_000)))
    assert back.schema.metadata[b"own"] == b"note"
    assert back.to_pydict() == table.to_pydict()


@pytest.mark.parametrize("kind", ["gzip", "zip", "parquet"])
def test_whatever_is_damaged_is_refused_or_read_in_bounded_memory(kind):
    data = {
        "gzip": gzip.compress(TABLE),
        "zip": zipped(("a.csv", TABLE), ("b/c.csv", TABLE)),
        "parquet": parquet(rows_of(["x"] * 50, 50)),
    }[kind]
    for seed in range(N_DAMAGED):
        with at_most(FEW):
            try:
                goldspan.read_crowd(damaged(data, seed), max_decompressed="1MiB")
            except InputError as error:
                assert str(error)  # noqa: PT017 - others are harmless


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [(1, 1), ("7", 7), ("1k", 1024), ("1 kB", 1000), ("1.5GiB", 3 << 29), ("2tb", 2 * 10**12)],
)
def test_sizes_are_read(size, n_bytes):
    assert parse_size(size) == n_bytes


@pytest.mark.parametrize("size", ["", "x", "4 GiBs", "-1", "0", 0, True, "1e9", None, "9" * 400])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(InputError, match="size"):
        parse_size(size)


@pytest.mark.parametrize(
    "command", ["inspect", "convert", "agreement", "aggregate", "select", "score"]
)
def test_commands_name_their_option_and_take_it(command, tmp_path, capsys, monkeypatch):
    path = tmp_path / "crowd.csv.gz"
    path.write_bytes(gzip.compress(b"item,worker,label,text\n" + b"1,a,x,one\n2,b,y,two\n" * 1))
    more = {
        "convert": ["-o", str(tmp_path / "out.parquet")],
        "select": ["-n", "1"],
        "score": [str(path)],
    }.get(command, [])
    monkeypatch.setattr(
        sys, "argv", ["goldspan", command, str(path), *more, "--max-decompressed", "9"]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "decompress it first (see --max-decompressed)" in said
    assert "crowd.csv.gz" in said
