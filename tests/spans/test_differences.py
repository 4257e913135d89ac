"""Every row of docs/differences.md is true: what the others say, and what goldspan says."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import version
from pathlib import Path

import iobes
import pytest
import seqeval.metrics
from nervaluate import Evaluator

import goldspan.spans
from goldspan.errors import FaultsError
from goldspan.spans import parse, score, validate
from goldspan.spans.codec import transition_mask, transitions
from goldspan.spans.encoding import Role, get_encoding
from goldspan.spans.parsing import parse_with_errors
from goldspan.spans.scoring import score_codes
from goldspan.spans.text import locate, to_chars
from looping import each
from spans import peers

PAGE = (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")
COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")


def _rows(heading):
    """Read the table below a heading as lists of cells, without its head and without backticks."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines[2:]
    ]


READING = _rows("Reading tags")
BOUNDARIES = _rows("The policy `boundaries` and NCRF++")
PAIRING = _rows("Pairing overlapping spans (SemEval-2013 task 9)")
CALLS = _rows("Calls")


def _tags(cell):
    return [""] if cell == "(empty string)" else cell.split(" ")


def _show(spans):
    return " ".join(f"{kind or '(no type)'}[{a},{b})" for kind, a, b in spans) or "none"


def _or_exception(function, *args):
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 (whatever a peer raises is what the row tells)
        return type(error).__name__


def _iobes(tags, encoding):
    spans, n_errors = peers.read_iobes(tags, encoding)
    plural = "" if n_errors == 1 else "s"
    return _show(spans) + (f"; {n_errors} error{plural}" if n_errors else "")


def _seqeval(tags):
    spans, warns = peers.read_seqeval(tags)
    return _show(spans) + ("; warns" if warns else "")


def _seqeval_strict(tags, encoding):
    if encoding not in peers.SEQEVAL_SCHEMES:
        return "–"
    return _show(peers.read_seqeval_strict(tags, encoding))


def _goldspan(tags, encoding, policy):
    try:
        spans = parse(tags, encoding, policy)
    except FaultsError as error:
        return "refused: " + ", ".join(f"{f.kind}@{f.token}" for f in error.faults)
    return "; ".join([_show(spans), *(f"{e.kind}@{e.index}" for e in validate(tags, encoding))])


def _ids(rows, n):
    return [" ".join(row[:n]) for row in rows]


@pytest.mark.parametrize("row", READING, ids=_ids(READING, 3))
def test_the_row_tells_how_each_tool_reads_the_tags(row):
    cell, encoding, policy, *told, why = row
    tags = _tags(cell)
    assert told == [
        _or_exception(_iobes, tags, encoding),
        _or_exception(_seqeval, tags),
        _or_exception(_seqeval_strict, tags, encoding),
        _or_exception(lambda: _show(peers.read_conlleval_pl(tags))),
        _or_exception(lambda: _show(peers.read_nervaluate(tags))),
        _goldspan(tags, encoding, policy),
    ]
    assert why


@pytest.mark.parametrize("row", READING, ids=_ids(READING, 3))
def test_in_every_row_some_tool_differs_from_goldspan(row):
    *others, ours = row[3:9]
    assert any(other not in {ours, "–"} for other in others)


@pytest.mark.parametrize("row", BOUNDARIES, ids=_ids(BOUNDARIES, 1))
def test_the_row_tells_how_ncrfpp_and_boundaries_read_the_tags(row):
    cell, theirs, ours, why = row
    assert theirs == _show(peers.read_ncrfpp(_tags(cell)))
    assert ours == _show(parse(_tags(cell), "IOBES", "boundaries"))
    assert (theirs == ours) == why.endswith("No difference.")


@pytest.mark.parametrize("row", PAIRING, ids=_ids(PAIRING, 3))
def test_the_row_tells_the_counts_of_nervaluate_and_goldspan(row):
    truth, found, scheme, theirs, ours, why = row
    sides = [truth.split()], [found.split()]
    name = "ent_type" if scheme == "type" else scheme
    counted = Evaluator(*sides, tags=["X", "Y"], loader="list").evaluate()["overall"][name]
    assert theirs == " ".join(str(getattr(counted, count)) for count in COUNTS)
    assert ours == " ".join(str(getattr(score(*sides).schemes[scheme], c)) for c in COUNTS)
    assert why


def _span(kind, start, end):
    return iobes.Span(kind, start, end, tuple(range(start, end)))


def _outcome(code):
    names = {name: getattr(goldspan.spans, name) for name in goldspan.spans.__all__}
    names |= {"get_encoding": get_encoding, "locate": locate, "to_chars": to_chars}
    names |= {"parse_with_errors": parse_with_errors, "transitions": transitions}
    names |= {"transition_mask": transition_mask, "score_codes": score_codes, "Role": Role}
    names |= {"iobes": iobes, "seqeval": seqeval, "Evaluator": Evaluator, "span": _span}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _or_exception(lambda: repr(eval(code, names)))


@pytest.mark.parametrize("row", CALLS, ids=_ids(CALLS, 1))
def test_the_row_tells_what_the_calls_return_or_raise(row):
    theirs, they_say, ours, we_say, why = row
    assert _outcome(theirs) == they_say
    assert _outcome(ours) == we_say
    assert they_say != we_say
    assert why


def test_the_page_has_a_row_for_every_trap_of_the_design():
    shown = {tuple(row[:2]) for row in READING}
    assert {("B-X O", "IOBES"), ("b-X I-X", "BIO"), ("B I", "BIO"), ("PER", "BIO")} <= shown
    assert {("I-O B-O", "IOB"), ("B-X", "IOBES"), ("B-X E-X B-X E-X", "IOBES")} <= shown


@each("package", ["iobes", "seqeval", "nervaluate"])
def test_the_page_names_the_versions_that_were_measured(package):
    assert re.search(rf"\b{package}\s+{re.escape(version(package))}\b", PAGE)
