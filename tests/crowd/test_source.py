"""Where data come from, and which bytes are refused before any format sees them."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from crowd_tables import refusal, tree, zipped
from goldspan.crowd.source import Source, decode, open_source
from goldspan.errors import FormatError, GoldspanError, InputError

TEXT = "token\tann\nMünchen\tB-LOC\nist\tO\n"


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


def text_of(data, **options):
    return open_source(data, **options).text


def refused(data, *parts, **options):
    with pytest.raises(GoldspanError) as caught:
        text_of(data, **options)
    for part in parts:
        assert part in str(caught.value)
    return str(caught.value)


# Where they come from


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", ["path", "string", "bytes", "bytearray", "file", "memory", "stdin"])
def test_the_same_bytes_give_the_same_text_whichever_way_they_come(
    way, pack, tmp_path, monkeypatch
):
    data = pack(TEXT.encode())
    path = tmp_path / "crowd.tsv"
    path.write_bytes(data)
    monkeypatch.setattr(sys, "stdin", Stdin(data))
    with path.open("rb") as file:
        ways = {
            "path": path,
            "string": str(path),
            "bytes": data,
            "bytearray": bytearray(data),
            "file": file,
            "memory": io.BytesIO(data),
            "stdin": "-",
        }
        source = open_source(ways[way])
    assert source.text.value == TEXT
    named = {"path": str(path), "string": str(path), "file": str(path), "stdin": "<stdin>"}
    assert source.name == named.get(way, "<stream>" if way == "memory" else "<bytes>")


def test_a_text_stream_is_read():
    assert text_of(io.StringIO(TEXT)).value == TEXT


def test_a_source_stays_what_it_is():
    source = Source("x", b"abc")
    assert open_source(source) is source


def test_a_folder_gives_its_files_by_path_without_the_hidden_ones(tmp_path):
    files = {"a/x.txt": "1", "b.txt": b"\xff", ".git/x": "2", "a/.DS_Store": "3", "__MACOSX/y": "4"}
    source = open_source(tree(tmp_path, files))
    assert source.is_folder
    assert [path for path, _ in source.sorted_files()] == ["a/x.txt", "b.txt"]
    assert source.files["a/x.txt"].name == str(tmp_path / "a/x.txt")
    archive = open_source(zipped(files))
    assert [path for path, _ in archive.sorted_files()] == ["a/x.txt", "b.txt"]
    assert archive.files["a/x.txt"].name == "<bytes>/a/x.txt"


def test_compressed_files_in_a_folder_are_unpacked(tmp_path):
    source = open_source(tree(tmp_path, {"x.tsv.gz": gzip.compress(TEXT.encode(), mtime=0)}))
    assert source.files["x.tsv.gz"].text.value == TEXT


@pytest.mark.parametrize(
    ("name", "suffix"), [("a/b.TSV", ".tsv"), ("b.tsv.gz", ".tsv"), ("b", ""), ("b.gz", "")]
)
def test_the_suffix_is_that_without_gz(name, suffix):
    assert Source(name).suffix == suffix


# What is refused


def test_a_path_that_is_not_there_is_refused_by_its_name(tmp_path):
    with pytest.raises(
        InputError, match=r"nope\.tsv: No such file or directory: is the path right\?"
    ):
        open_source(tmp_path / "nope.tsv")


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n1,2\n" * 1000])
def test_text_in_place_of_a_path_is_refused_with_the_way_to_pass_it(text):
    with pytest.raises(
        InputError, match="a string is a path; pass the text itself as bytes"
    ) as caught:
        open_source(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("source", [None, 7, {"a": 1}, ["a.tsv"]])
def test_what_is_no_source_is_refused_with_what_is(source):
    with pytest.raises(
        InputError, match=f"cannot read a {type(source).__name__}: pass a path, bytes"
    ):
        open_source(source)


def test_a_path_with_a_nul_is_refused():
    with pytest.raises(InputError, match="embedded null byte"):
        open_source("a\0b")


def test_a_file_that_may_not_be_read_is_refused_by_its_name(tmp_path, monkeypatch):
    tree(tmp_path, {"a/x.txt": "x O\n"})

    def locked(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", locked)
    for path in (tmp_path, tmp_path / "a" / "x.txt"):
        with pytest.raises(InputError, match=r"x\.txt: Permission denied"):
            open_source(path)


@pytest.mark.parametrize("keep", [5, 20, -1])
def test_a_truncated_gzip_file_is_refused_by_its_name(tmp_path, keep):
    path = tmp_path / "crowd.tsv.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 9)[:keep])
    with pytest.raises(
        FormatError,
        match=r"crowd\.tsv\.gz: the gzip file is truncated or damaged .*: fetch or write it again",
    ):
        open_source(path)


def test_a_truncated_archive_is_refused():
    with pytest.raises(
        FormatError,
        match=r"<bytes>: the zip archive is truncated or damaged .*: fetch or write it again",
    ):
        open_source(zipped({"a/x.txt": "x O\n"})[:-5])


@pytest.mark.parametrize(
    ("place", "value", "what"), [(8, 1, "password required"), (10, 99, "compression method")]
)
def test_an_archive_that_cannot_be_unpacked_is_refused_with_the_way_out(place, value, what):
    archive = bytearray(zipped({"a/x.txt": "x O\n"}))
    archive[archive.index(b"PK\x01\x02") + place] = value
    with pytest.raises(
        FormatError, match=f"cannot be unpacked .*{what}.*: unpack it and pass the folder"
    ):
        open_source(bytes(archive))


def test_a_folder_where_a_file_is_wanted_is_refused(tmp_path):
    refusal(
        tree(tmp_path, {"a/x.txt": "x O\n"}),
        f"{tmp_path}: this is a folder or an archive of files",
        format="wide",
    )


@pytest.mark.parametrize(
    "data", [b"", b"\n", b" \t\r\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)]
)
def test_an_empty_file_is_refused(data):
    assert refused(data) == "<bytes>: the file is empty: is the path right?"


@pytest.mark.parametrize(
    "data", [b"a\nb\0c\n", "a\nb\0c\n".encode("utf-16"), "a\nb".encode("utf-16-le")]
)
def test_a_nul_byte_is_refused_with_its_line(data):
    line = 1 if data.startswith(b"a\0") else 2
    refused(data, f"<bytes> line {line}: a NUL byte: this is not a text file, or it is damaged")


def test_two_text_encodings_in_one_file_are_refused_with_the_lines():
    data = "ä\nö\n".encode() + "x\nü\nß\n".encode("cp1252")
    message = refused(
        data,
        "<bytes> line 4: the line is not UTF-8, but line 1 is: two encodings are mixed",
        "rewrite the file in one",
    )
    assert message.count("\n") == 1
    assert "line 5" in message


def test_bytes_of_no_known_encoding_are_refused_with_the_option():
    message = refused(
        b"a\n\x81\n", "<bytes> line 2: the line is neither UTF-8 nor cp1252", "text_encoding"
    )
    assert "mixed" not in message


@pytest.mark.parametrize("name", ["utf-9", "undefined", "base64", "a\0b", "ascii"])
def test_a_text_encoding_that_does_not_fit_is_refused_by_its_name(name):
    refused("ä".encode(), f"<bytes>: cannot be read as {name}: ", text_encoding=name)


def test_half_of_a_character_is_refused():
    refused(b"a+2AA-", "cannot be read as utf-7", text_encoding="utf-7")
    refused(io.StringIO("a\ud800"), "cannot be read as utf-8")


# Text


@pytest.mark.parametrize(
    ("data", "encoding", "notes"),
    [
        (TEXT.encode(), "utf-8", ()),
        (b"\xef\xbb\xbf" + TEXT.encode(), "utf-8", ("byte order mark removed",)),
        (TEXT.encode("utf-16"), "utf-16", ("text is in utf-16, not UTF-8",)),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16", ("text is in utf-16, not UTF-8",)),
        (TEXT.encode("cp1252"), "cp1252", ("text is in cp1252, not UTF-8",)),
        (
            TEXT.replace("\n", "\r\n").encode(),
            "utf-8",
            ("line ends replaced (they were not line feeds)",),
        ),
        (
            TEXT.replace("\n", "\r").encode(),
            "utf-8",
            ("line ends replaced (they were not line feeds)",),
        ),
    ],
    ids=["utf-8", "bom", "utf-16", "utf-16-be", "cp1252", "crlf", "cr"],
)
def test_the_text_is_the_same_in_every_encoding_and_what_was_changed_is_said(data, encoding, notes):
    text = text_of(data)
    assert (text.value, text.encoding, text.notes) == (TEXT, encoding, notes)
    assert text.data == TEXT.encode()


def test_a_named_text_encoding_is_used():
    assert text_of(TEXT.encode("latin-1"), text_encoding="latin-1").value == TEXT
    data = "Ł\n".encode("cp1250")
    assert text_of(data, text_encoding="cp1250").value == "Ł\n"


def test_a_named_text_encoding_reaches_the_files_of_a_folder_and_the_gold(tmp_path):
    word = "Łódź"
    files = {
        "gold/d.txt": f"{word} O\n".encode("cp1250"),
        "A/d.txt": f"{word} O\n".encode("cp1250"),
    }
    for source in (tree(tmp_path, files), zipped(files)):
        crowd = goldspan.read_crowd(source, format="folder", text_encoding="cp1250")
        assert crowd.tokens_list == [[word]]
    answers = f"item,worker,token,label\n1,a,{word},O\n".encode("cp1250")
    gold = f"item,token,label\n1,{word},O\n".encode("cp1250")
    crowd = goldspan.read_crowd(answers, gold=gold, text_encoding="cp1250")
    assert crowd.tagged_by_id() == {"1": ["O"]}


@given(st.text(st.characters(exclude_characters="\0\r"), min_size=1))
def test_any_text_in_utf8_comes_back(text):
    try:
        found = decode(text.encode(), "x").value
    except FormatError:
        assert not text.strip("\ufeff\n\t ")
    else:
        assert found == text.removeprefix("\ufeff")


def test_an_archive_is_only_read_and_never_unpacked_onto_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../evil/x.txt", "x O\n")
    with pytest.raises(FormatError, match="leads out of it"):
        open_source(buffer.getvalue())
    assert list(tmp_path.iterdir()) == []


# Files that hold no table and no text


def office(*parts, first=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in first:
            archive.writestr(zipfile.ZipInfo(name), content)
        for name in parts:
            archive.writestr(name, "<xml/>")
    return buffer.getvalue()


def old_office(stream):
    """The first sectors of an OLE2 file, whose directory names a stream."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(512, b"\0")
    return (
        head
        + "Root Entry".encode("utf-16-le").ljust(128, b"\0")
        + stream.encode("utf-16-le").ljust(384, b"\0")
    )


def opendocument(kind):
    return office("content.xml", first=[("mimetype", f"application/vnd.oasis.opendocument.{kind}")])


DOCUMENTS = {
    "xlsx": (office("[Content_Types].xml", "xl/workbook.xml"), ["Excel", "CSV"]),
    "xlsb": (office("xl/workbook.bin"), ["Excel", "CSV"]),
    "xls": (old_office("Workbook"), ["Excel", "CSV"]),
    "xls 95": (old_office("Book"), ["Excel", "CSV"]),
    "ods": (opendocument("spreadsheet"), ["OpenDocument spreadsheet", "CSV"]),
    "odt": (opendocument("text"), ["OpenDocument text", "plain text"]),
    "docx": (office("word/document.xml"), ["Word", "plain text"]),
    "doc": (old_office("WordDocument"), ["Word", "plain text"]),
    "pptx": (office("ppt/presentation.xml"), ["PowerPoint"]),
    "locked": (old_office("EncryptedPackage"), ["password"]),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", ["PDF", ".txt"]),
    "rtf": (b"{\\rtf1\\ansi Ann sang.}", ["RTF", "plain text"]),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["picture (PNG)"]),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", ["picture (JPEG)"]),
    "webp": (b"RIFF\x10\0\0\0WEBPVP8 ", ["picture (WebP)"]),
    "wav": (b"RIFF\x10\0\0\0WAVEfmt ", ["audio"]),
    "mp4": (b"\0\0\0\x18ftypmp42", ["video"]),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\x04", ["7-Zip", "unpack"]),
    "bz2": (b"BZh91AY&SY\x00\x01", ["bzip2", "unpack"]),
    "sqlite": (b"SQLite format 3\0\x10\0", ["SQLite", "CSV"]),
    "arrow": (b"ARROW1\0\0\xff\xff\xff\xff", ["Feather", "Parquet"]),
    "dataset": (b"\xff\xff\xff\xff\x10\0\0\0", ["Hugging Face", "to_parquet"]),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("data", "parts"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_refused_with_what_it_is_and_the_way_out(data, parts, pack, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_bytes(pack(data))
    refused(pack(data), *parts)
    with pytest.raises(FormatError, match=r"answers\.csv") as caught:
        goldspan.read_crowd(path)
    assert caught.value.faults[0].kind == "document"


def test_a_document_in_a_folder_is_refused_only_where_it_is_read(tmp_path):
    tree(tmp_path / "crowd", {"doc.txt": "Ann", "ann/doc.ann": "T1\tPER 0 3\tAnn\n"})
    (tmp_path / "crowd" / "notes.xlsx").write_bytes(DOCUMENTS["xlsx"][0])
    (tmp_path / "crowd" / "page.png").write_bytes(DOCUMENTS["png"][0])
    assert goldspan.read_crowd(tmp_path / "crowd").answers_of("doc-1") == {"ann": ["B-PER"]}
    (tmp_path / "crowd" / "doc2.txt").write_bytes(DOCUMENTS["pdf"][0])
    with pytest.raises(FormatError, match=r"doc2\.txt.*PDF"):
        goldspan.read_crowd(tmp_path / "crowd")


@pytest.mark.parametrize("text", ["GIF89a is a format", "BZh, he said", "OggS", "ARROW1,b", "ID3"])
def test_text_that_begins_like_a_document_is_text(text):
    assert text_of(text.encode()).value == text


def test_a_folder_of_json_and_tables_is_not_half_read_in_silence(tmp_path):
    row = '{"text": "Ann sang", "spans_of": {"ann": [[0, 3, "PER"]]}}\n'
    (tmp_path / "a.jsonl").write_text(row, encoding="utf-8")
    (tmp_path / "b.tsv").write_text("token\tann\nAnn\tB-PER\n", encoding="utf-8")
    with pytest.raises(FormatError, match="not recognised"):
        goldspan.read_crowd(tmp_path)
    row = '{"id": 1, "text": "Ann sang", "label": [[0, 3, "PER"]]}\n'
    (tmp_path / "a.jsonl").write_text(row, encoding="utf-8")
    crowd = goldspan.read_crowd(tmp_path)
    assert crowd.import_report.format == "doccano"
    assert any("not read, for they are not JSON: b.tsv" in n for n in crowd.import_report.notes)
