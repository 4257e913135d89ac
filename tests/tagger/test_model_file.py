"""Model files: round trips, and files that are damaged, foreign or newer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from damaged import N_DAMAGED, at_most, damaged_archives
from goldspan.errors import InputError, NotFittedError
from goldspan.tagger import CRF, HMM, load_tagger
from tagger.corpora import random_items
from torture import DAMAGED

X, Y = random_items(30)
DICTS = [[{"w": word, "größe": 0.5} for word in words] for words in X]
MODELS = {
    "crf": (CRF(max_iter=5), X),
    "crf-dicts": (CRF(max_iter=5, c2=0.125), DICTS),
    "hmm": (HMM(nu=0.25, hard=False), X),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    tagger, items = MODELS[request.param]
    return tagger.fit(items, Y), items


@pytest.fixture
def path(tmp_path):
    CRF(max_iter=3, templates=["word"]).fit(X, Y).save(tmp_path / "m.goldspan")
    return tmp_path / "m.goldspan"


def test_a_loaded_tagger_is_the_saved_one(model, tmp_path):
    tagger, items = model
    tagger.save(tmp_path / "m.goldspan")
    loaded = load_tagger(tmp_path / "m.goldspan")
    assert type(loaded) is type(tagger)
    np.testing.assert_array_equal(loaded.weights_.vector, tagger.weights_.vector)
    assert loaded.predict_marginals(items) == tagger.predict_marginals(items)
    assert loaded.codec_ == tagger.codec_
    assert loaded.c2 == tagger.c2 if isinstance(tagger, CRF) else loaded.nu == tagger.nu
    assert loaded.hard == tagger.hard
    n = min(tagger.features_.n_features, 40)
    assert [loaded.features_.name(i) for i in range(n)] == [
        tagger.features_.name(i) for i in range(n)
    ]
    assert loaded.fit(items, Y).score(items, Y) == tagger.score(items, Y)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["Toyota", "'", "s", "3", "M", "東"], "fine"),
        (["Toyota's", "plug-in", "1,000", "km"], "words"),
        (["Yes,", "it", "rains."], "space"),
    ],
)
def test_a_tagger_remembers_how_its_words_were_cut(words, rule, tmp_path):
    tagger = HMM().fit([words], [["O"] * len(words)])
    assert tagger.tokens_ == rule
    tagger.save(tmp_path / "m.goldspan")
    assert load_tagger(tmp_path / "m.goldspan").tokens_ == rule


def test_a_second_save_has_the_same_bytes_and_leaves_nothing_behind(path):
    load_tagger(path).save(path.with_name("again.goldspan"))
    assert path.with_name("again.goldspan").read_bytes() == path.read_bytes()
    assert sorted(p.name for p in path.parent.iterdir()) == ["again.goldspan", "m.goldspan"]


def test_another_process_reads_it_the_same(path):
    code = (
        "import sys; from goldspan.tagger import load_tagger\n"
        "print(load_tagger(sys.argv[1]).predict([['w1', 'w2', 'w3']]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True, env=env
    )
    assert run.stdout.strip() == str(load_tagger(path).predict([["w1", "w2", "w3"]]))


def test_there_is_no_pickle_in_it(path):
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) >= {"meta.json", "state.npy", "keys0.npy"}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    np.lib.format.read_array(member, allow_pickle=False)


@DAMAGED
def test_a_changed_byte_is_noticed_or_harmless(path, tortured):
    rng = np.random.default_rng(0)
    data = path.read_bytes()
    before = load_tagger(path).weights_.vector
    refused = 0
    for place in rng.integers(len(data), size=300):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            np.testing.assert_array_equal(load_tagger(path).weights_.vector, before)
        except InputError:
            refused += 1
    tortured(300)
    assert refused > 250


@pytest.mark.parametrize("content", [b"hello\n", b"\x80\x04K\x01.", os.urandom(1000)])
def test_a_foreign_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a tagger of goldspan"):
        load_tagger(path)


def test_another_archive_is_refused(path):
    np.savez(path.with_suffix(".npz"), x=np.zeros(3))
    with pytest.raises(InputError, match="another archive"):
        load_tagger(path.with_suffix(".npz"))


def rewritten(path, change):
    """Change the meta data of a file."""
    members = members_of(path)
    meta = json.loads(members["meta.json"])
    change(meta)
    packed(path, members | {"meta.json": json.dumps(meta)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version 3, and this goldspan reads version 1: upgrade goldspan"),
        ({"kind": "transformer"}, "holds a tagger 'transformer', not crf or hmm"),
        ({"format": "else"}, "another archive"),
        ({"tags": ["O"]}, "do not fit"),
        ({"features": {"kind": "templates"}}, "damaged"),
        ({"params": {"c3": 1}}, "damaged"),
        ({"encoding": "XYZ"}, "damaged|unknown encoding"),
    ],
)
def test_files_that_do_not_fit_are_refused(path, change, message):
    rewritten(path, lambda meta: meta.update(change))
    with pytest.raises(InputError, match=message):
        load_tagger(path)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        load_tagger(tmp_path / "none.goldspan")
    with pytest.raises(InputError, match="it is a folder"):
        load_tagger(tmp_path)
    with pytest.raises(InputError, match="does the folder exist"):
        CRF(max_iter=1).fit(X, Y).save(tmp_path / "none" / "m.goldspan")


def test_an_untrained_tagger_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError, match="before save"):
        CRF().save(tmp_path / "m.goldspan")
    assert not list(Path(tmp_path).iterdir())


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path, members, packing=zipfile.ZIP_STORED):
    """Write an archive; members is a dictionary, or pairs where a name appears twice."""
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in dict(members).items() if isinstance(members, dict) else members:
            archive.writestr(name, content)


def npy(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), ",  # tokenize.TokenError
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4",
        "(" * 5000,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 9999999), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "__import__('os').abort()",
        "",
    ],
)
def test_a_damaged_header_of_an_array_is_refused(path, header):
    packed(path, members_of(path) | {"state.npy": npy(header, bytes(96))})
    with pytest.raises(InputError, match="or it is damaged: an array is damaged"):
        load_tagger(path)


def test_weights_that_are_not_finite_are_refused(path):
    n = len(load_tagger(path).weights_.end)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},), }}"
    packed(path, members_of(path) | {"end.npy": npy(header, np.full(n, np.nan).tobytes())})
    with pytest.raises(InputError, match="some of its weights are not finite"):
        load_tagger(path)


def test_whatever_is_damaged_is_refused_or_harmless_in_bounded_memory(path):
    load_tagger(path)
    data = path.read_bytes()
    n_refused = 0
    for one in damaged_archives(data):
        path.write_bytes(one)
        with at_most(64 * len(one) + 2_000_000):
            try:
                load_tagger(path)
            except InputError as error:
                assert str(path) in str(error)  # noqa: PT017 - others are harmless
                n_refused += 1
    assert n_refused > N_DAMAGED // 2


def test_members_that_no_tagger_has_are_not_read(path):
    before = load_tagger(path).weights_.vector
    members = members_of(path) | {"README": b"x", "extra.npy": b"no array"}
    packed(path, members)
    np.testing.assert_array_equal(load_tagger(path).weights_.vector, before)


def test_compressed_members_and_names_given_twice_or_leading_out_are_refused(path):
    members = members_of(path)
    packed(path, members, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="is compressed"):
        load_tagger(path)
    for name, message in (("../a", "leads out"), ("/etc/a", "leads out"), ("C:a", "leads out")):
        packed(path, members | {name: b""})
        with pytest.raises(InputError, match=message):
            load_tagger(path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed(path, [*members.items(), ("state.npy", members["state.npy"])])
    with pytest.raises(InputError, match="twice"):
        load_tagger(path)


def test_strings_without_offsets_are_refused(path):
    none = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }")
    packed(path, members_of(path) | {"values0.offsets.npy": none})
    with pytest.raises(InputError, match="has no offsets"):
        load_tagger(path)
