"""The numbers that karat must show on the real crowds (data README), through the public face."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest

import karat
from karat.spans import find_spans

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def crowd(data):
    return karat.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")


@pytest.fixture(scope="module")
def raw_folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    with zipfile.ZipFile(data / "ner_mturk" / "raw.zip") as archive:
        archive.extractall(folder)
    return folder


def sentences(crowd):
    """Answers by (document, tokens, worker), because the two files number sentences differently."""
    ids, groups = crowd.worker_ids.to_pylist(), crowd.groups.to_pylist()
    words = [*crowd.tagset.tags, "?"]
    found = {}
    for a in range(len(crowd.latest)):
        item = int(crowd.latest.item[a])
        codes = crowd.latest.codes[crowd.latest.offset[a] : crowd.latest.offset[a + 1]]
        key = (groups[item], tuple(crowd.tokens_list[item]), ids[crowd.latest.worker[a]])
        found.setdefault(key, []).append(tuple(words[code] for code in codes))
    return found


def test_the_crowd_of_paper_000_has_its_size(crowd):
    assert (crowd.n_items, crowd.n_tokens, crowd.n_workers) == (5985, 79901, 47)
    assert len(crowd.answers) == 27990
    assert int((crowd.answers.codes >= 0).sum()) == 366370
    assert len(find_spans(crowd.gold_tagged, crowd.tagset)) == 9907


def test_its_workers_have_the_f1_of_the_data_page(crowd):
    found = karat.agreement(crowd)
    f1 = [value for value in found.workers.column("span_f1").to_pylist() if value is not None]
    assert (round(100 * min(f1), 2), round(100 * max(f1), 2)) == (17.58, 85.22)
    assert round(found.quartiles["workers_per_group"].mean, 3) == 4.935


def test_it_takes_two_bytes_per_token_and_at_most_24_per_answer(crowd):
    answers = crowd.answers
    assert answers.nbytes <= 2 * len(answers.codes) + 24 * len(answers)


def test_the_raw_files_are_read_as_a_folder_of_workers(raw_folder, crowd):
    raw = karat.read_crowd(raw_folder, altered="drop-sentence")
    report = raw.import_report
    assert report.format == "folder"
    assert (raw.n_items, raw.n_tokens, raw.n_workers) == (6253, 82958, 47)
    assert len(set(raw.groups.to_pylist())) == 399
    (files,) = [note for note in report.notes if "answer files" in note]
    assert re.findall(r"\d+", files)[:3] == ["399", "1964", "1158"]
    assert any("1 documents have gold but no answer" in note for note in report.notes)
    assert report.adds_up
    # With the rule of the makers of crowd.tsv every answer that it holds is there, label for label.
    # Its tokens are those of the raw gold less the tags that are glued onto a few of them.
    unglued = re.compile(r"/[BI]-(?:LOC|MISC|ORG|PER)$")
    mine = {
        (doc, tuple(unglued.sub("", t) for t in tokens), worker): tags
        for (doc, tokens, worker), tags in sentences(raw).items()
    }
    theirs = sentences(crowd)
    assert len(raw.latest) == len(crowd.latest)
    assert {key: sorted(value) for key, value in mine.items()} == {
        key: sorted(value) for key, value in theirs.items()
    }


def test_the_report_lists_every_label_that_is_not_placed(raw_folder):
    report = karat.read_crowd(raw_folder).import_report
    assert (report.n_labels, report.n_placed) == (409366, 404006)
    assert report.n_placed + sum(report.reasons.values()) == report.n_labels
    kinds = ("cut-token", "empty-token", "label-as-token", "inserted-token", "altered-token")
    kinds += ("mangled-glue", "replaced-token", "merged-tokens")
    listed = {(f.file, f.line) for f in report.faults if f.kind in kinds}
    assert len(listed) >= sum(report.reasons.values())
    for fault in report.faults[:200]:
        assert fault.file
        assert fault.line
        assert fault.worker


def test_altered_tokens_move_the_votes(raw_folder, crowd):
    f1 = {}
    for rule in ("missing", "keep"):
        raw = karat.read_crowd(raw_folder, altered=rule)
        f1[rule] = karat.score(raw, karat.aggregate(raw, ties="inside")).f1
    f1["drop-sentence"] = karat.score(crowd, karat.aggregate(crowd, ties="inside")).f1
    assert f1["missing"] > f1["keep"] > 0.6
    assert np.isclose(f1["drop-sentence"], 0.6688, atol=1e-4)
