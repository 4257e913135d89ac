"""The report as a file: what it says, that it stands alone, and that strangers' text stays text."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.crowd.source import ImportReport
from goldspan.errors import Fault, MissingExtraError
from goldspan.report import sections as html
from goldspan.report import write_report

NASTY = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def report(consensus, agreement, score):
    return html.render(consensus, agreement=agreement, score=score)


@pytest.fixture(scope="module")
def model_report(model, crowd, agreement):
    return html.render(model, agreement=agreement, score=goldspan.score(crowd, model))


@pytest.fixture(params=["report", "model_report"])
def either(request):
    """The page of votes, and that of a model, which has more sections."""
    return request.getfixturevalue(request.param)


def test_the_numbers_on_top_are_those_of_the_consensus(report, page, consensus, score):
    text = page(report).text
    mean = 100 * float(np.mean(consensus.span_confidence, dtype=float))
    top = text[: text.index("How good the result is")]
    for fact in (
        "span F1 82.7 % policy conlleval, BIO",
        "items 150",
        "tokens 2,599",
        "workers 7",
        "answers 690",
        f"spans found {len(consensus.span_array)}",
        f"confidence {mean:.1f} % mean of the spans",
    ):
        assert fact in top.replace("\u00a0", " ")
    assert round(100 * score.f1, 1) == 82.7


def test_the_score_table_has_every_type_and_both_means(report, page, score):
    found = page(report)
    for name, rates in score.types.items():
        numbers = [f"{100 * rate:.2f}" for rate in rates[:3]]
        counts = [str(rates.n_true), str(rates.n_predicted)]
        assert found.row(name) == [name, *numbers, *counts]
    assert found.row("micro")[3] == f"{100 * score.f1:.2f}"
    assert found.row("macro")[1:4] == [f"{100 * value:.2f}" for value in score.macro]


def test_the_score_table_has_the_four_schemes(report, page, score):
    found = page(report)
    for name, scheme in score.schemes.items():
        assert found.row(f"{name} ")[3] == f"{100 * scheme.f1:.2f}"


def test_the_bounds_of_f1_are_told_with_their_level(consensus, crowd):
    scored = goldspan.score(crowd, consensus, bootstrap=100, level=0.9)
    text = html.render(consensus, score=scored).replace("\u00a0", " ").replace("&nbsp;", " ")
    low, high = (f"{100 * bound:.1f} %" for bound in scored.interval)
    assert f"With 90 % confidence F1 lies between {low} and {high}" in text


def test_the_measures_of_agreement_come_with_a_way_to_read_them(report, page, agreement):
    found = page(report)
    for name, value in (
        ("Krippendorff’s α", agreement.alpha),
        ("Fleiss’ κ", agreement.fleiss_kappa),
        ("Cohen’s κ", agreement.cohen_kappa),
    ):
        _, shown, meaning = found.row(name)
        assert shown == f"{value:.3f}"
        assert meaning.endswith(".")
    assert "21 pairs" in found.row("Cohen’s κ")[2]
    assert found.row("Equal labels")[1] == f"{100 * agreement.observed:.1f}\u00a0%"
    assert found.row("Span F1 of pairs")[1] == f"{100 * agreement.pairwise_span_f1:.1f}\u00a0%"


def test_the_workers_stand_worst_first_and_the_spammer_is_named(report, page):
    found = page(report)
    assert "Far below the others is 1 of 7 workers: gus (" in found.text
    names = [cells[0] for cells in found.cells if cells[0][:3] in {"gus", "fay", "chi", "ana"}]
    assert names == ["gus far below the others", "fay", "chi", "ana"]


def test_the_method_and_its_settings_are_told(report, page):
    text = page(report).text
    end = text[text.index("How it was made") :]
    for words in (
        "Method mv-token",
        "ties = outside",
        "legal = True",
        "0 illegal tags in the result",
        "votes need no iteration",
        f"goldspan {goldspan.__version__}",
    ):
        assert words in end


def test_a_course_that_did_not_converge_is_told(consensus, page):
    iterated = replace(
        consensus, trace=(-20.0, -10.0, -9.5), converged=False, stop_reason="max_iter"
    )
    text = page(html.render(iterated)).text
    assert "3 steps, objective from -20 to -9.5" in text
    assert "max_iter (not converged)" in text


def test_the_import_report_adds_up_and_shows_the_first_faults(consensus, page):
    faults = tuple(Fault(f"broken {n}", "a.tsv", n, kind="cut") for n in range(1, 26))
    read = ImportReport("a.tsv", "wide", 1200, 1175, {"the token is cut": 25}, faults, ("a note",))
    found = page(
        html.render(replace(consensus, crowd=replace(consensus.crowd, import_report=read)))
    )
    assert "a.tsv, read as wide: 1,200 labels, 1,175 placed." in found.text
    assert found.row("the token is cut")[1] == "25"
    assert found.row("cut")[1] == "25"
    assert "a.tsv line 20: broken 20" in found.text
    assert "broken 21" not in found.text
    assert "and 5 more" in found.text
    assert "a note" in found.text


def test_the_page_is_well_formed(either, page):
    found = page(either)
    assert found.faults == []
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert {attrs.get("scope") for attrs in found.all("th")} == {"row", "col"}
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"][1:] for attrs in found.all("a")}
    assert links
    assert links <= set(ids)


def test_the_checker_sees_what_is_not_well_formed(page):
    assert page("<p><b>x</p></b>").faults
    assert page("<div>").faults


def test_the_page_has_a_language_a_viewport_and_both_colour_schemes(report, page):
    found = page(report)
    assert found.all("html") == [{"lang": "en"}]
    assert any(attrs.get("name") == "viewport" for attrs in found.all("meta"))
    assert "prefers-color-scheme: dark" in report
    assert "@media print" in report


def test_every_picture_has_a_text_alternative_and_the_colours_of_the_page(either, page, agreement):
    pictures = page(either).all("svg")
    assert len(pictures) in {3, 7}
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 40 for attrs in pictures)
    median = agreement.quartiles["worker_f1"].median
    assert any(f"median {100 * median:.1f}" in attrs["aria-label"] for attrs in pictures)
    for part in either.split("<svg")[1:]:
        svg = part[: part.index("</svg>")]
        assert "var(--fig-ink)" in svg
        assert re.findall(r"#[0-9a-fA-F]{6}\b", svg) == []


def test_the_page_needs_no_network_and_no_script(either, page):
    found = page(either)
    assert not re.search(r"https?:|//|@import|src=|data:", either)
    tags = {tag for tag, _ in found.elements}
    assert not {"script", "link", "iframe", "object", "img", "image"} & tags
    assert re.findall(r"url\((?!#)", either) == []
    policy = next(attrs for attrs in found.all("meta") if "http-equiv" in attrs)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_file_is_what_was_rendered_and_nothing_else_is_left(
    report, consensus, agreement, score, tmp_path
):
    write_report(consensus, tmp_path / "r.html", agreement=agreement, score=score)
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == report
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_sections_without_content_are_left_out(consensus, page):
    bare = replace(consensus, crowd=replace(consensus.crowd, import_report=ImportReport()))
    found = page(html.render(bare))
    assert found.faults == []
    headings = ("How good the result is", "How well the workers agree", "What was read")
    assert not any(words in found.text for words in headings)
    links = {"#workers", "#confusions", "#uncertain", "#method"}
    assert {attrs["href"] for attrs in found.all("a")} == links


@pytest.fixture
def hostile():
    """A crowd in which everything that can be text is a script."""
    builder = CrowdBuilder()
    item = builder.add_item(NASTY + "1", [NASTY, "x\x00\x1by"], group=NASTY + "g")
    for n, tags in enumerate((["B-<b>", "O"], ["B-<b>", "I-<b>"], ["O", "O"])):
        builder.add_answer(item, f"{NASTY}{n}", tags)
    crowd = builder.build()
    fault = Fault(NASTY, file=NASTY, item=NASTY, worker=NASTY, kind=NASTY)
    read = ImportReport(NASTY + ".tsv", NASTY, 9, 8, {NASTY: 1}, (fault,), (NASTY,))
    crowd = replace(crowd.with_gold(np.array([1, 0], np.int16)), import_report=read)
    result = replace(
        goldspan.aggregate(crowd, "mv-token"),
        method=NASTY,
        params={NASTY: NASTY},
        notes=(NASTY,),
        stop_reason=NASTY,
        trace=(1.0,),
    )
    return html.render(
        result, agreement=goldspan.agreement(crowd), score=goldspan.score(crowd, result)
    )


def test_text_of_strangers_stays_text(hostile, page):
    found = page(hostile)
    assert found.faults == []
    assert "<script" not in hostile
    assert "<b>" not in hostile
    assert found.text.count(NASTY) > 10
    assert not {"script", "b"} & {tag for tag, _ in found.elements}


def test_control_characters_are_shown_as_a_replacement_mark(hostile):
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", hostile)
    assert "x\ufffd\ufffdy" in hostile


def test_single_labels_get_their_own_words(labels, page):
    result = goldspan.aggregate(labels, "mv-token")
    truth = labels.with_gold(result.codes)
    scored = goldspan.score(truth, result)
    found = page(html.render(result, agreement=goldspan.agreement(labels), score=scored))
    text = found.text.replace("\u00a0", " ")
    assert found.faults == []
    assert "accuracy 100.0 % over 2 labels with gold" in text
    assert "The least certain items" in text
    assert "= result" in text
    assert found.row("2 of 3")[2] == "ann, bob"
    assert not any(
        words in text for words in ("span F1", "spans found", "SemEval", "outside spans")
    )


def test_an_item_without_an_answer_and_a_worker_without_one_are_told(labels, page):
    result = goldspan.aggregate(labels, "mv-token")
    found = page(html.render(result, agreement=goldspan.agreement(labels)))
    assert "1 item without an answer: left open." in found.text
    assert found.row("dan")[:2] == ["dan gave no answer", "0"]


def test_a_crowd_without_gold_and_without_documents_gets_a_report(build, page):
    crowd = build(
        {
            "s1": (["Ann", "sang"], {"a": ["B-PER", "O"], "b": ["O", "O"]}),
            "s2": (["Bo", "ran"], {"a": ["B-PER", "O"], "b": ["B-PER", "O"]}),
        }
    )
    result = goldspan.aggregate(crowd, "mv-token", ties="inside")
    found = page(html.render(result, agreement=goldspan.agreement(crowd)))
    assert found.faults == []
    assert "F1 against the others" in found.text
    assert "gold" not in found.text.replace("goldspan", "")
    assert "1 of 2 PER Ann = result" in found.text


def test_one_worker_alone_gets_a_report_with_dashes(build, page):
    crowd = build({"s1": (["Ann"], {"a": ["B-PER"]})})
    result = goldspan.aggregate(crowd, "mv-token")
    found = page(html.render(result, agreement=goldspan.agreement(crowd)))
    assert found.faults == []
    assert found.row("Krippendorff’s α")[1] == "–"
    assert "1 worker gave 1 answer to 1 item" in found.text


def test_the_report_of_a_large_crowd_stays_small():
    builder = CrowdBuilder()
    rng = np.random.default_rng(1)
    long = "w" * 500
    for n in range(1500):
        item = builder.add_item(f"{n}", [f"t{n}"] * 60)
        for worker in rng.choice(900, 3, replace=False):
            tags = ["O"] * 60
            tags[rng.integers(60)] = "B-X"
            builder.add_answer(item, f"{long}{worker}", tags)
    crowd = builder.build()
    result = goldspan.aggregate(crowd, "mv-token", ties="inside")
    text = html.render(result, agreement=goldspan.agreement(crowd))
    assert len(text) < 400_000
    assert text.count('class="place"') == 20
    assert f"{crowd.n_workers - 200} more workers are not listed" in text


@pytest.mark.parametrize(
    ("modules", "package"),
    [(["jinja2"], "jinja2"), (["matplotlib", "matplotlib.figure"], "matplotlib")],
)
def test_a_missing_package_is_named_with_the_install_line(
    modules, package, request, tmp_path, monkeypatch
):
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)
    consensus, agreement = map(request.getfixturevalue, ("consensus", "agreement"))
    with pytest.raises(MissingExtraError, match=rf"needs {package}.*pip install .*\[report\]"):
        write_report(consensus, tmp_path / "r.html", agreement=agreement)
    assert list(tmp_path.iterdir()) == []


def test_importing_the_room_loads_neither_matplotlib_nor_jinja2():
    code = "import sys, goldspan.report; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
