"""Encoders as taggers. With torch: a tiny model of random weights. Without: what says that it is
missing, and folders that are none."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from goldspan.errors import InputError, MissingExtraError, NotFittedError
from goldspan.runners import FileCheckpoint
from goldspan.spans import Codec
from goldspan.tagger import CRF, Encoder, SoftTags, Text, load_tagger
from goldspan.tagger.decoding import spans_with_confidence
from tagger.tiny_encoder import write_tiny

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch and transformers are not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

X = [
    ["Rome", "wins"],
    ["Kim", "Lee", "wins"],
    ["Kim", "goes", "to", "Rome"],
    ["the", "Lee", "wins", "in", "Rome"],
] * 4
Y = [
    ["B-LOC", "O"],
    ["B-PER", "I-PER", "O"],
    ["B-PER", "O", "O", "B-LOC"],
    ["O", "B-PER", "O", "O", "B-LOC"],
] * 4
FAST = {"epochs": 12, "learning_rate": 5e-3, "batch_pieces": 64, "held_out": 0.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def trained(folder):
    return Encoder(model=str(folder), **FAST).fit(X, Y)


def weights(tagger):
    state = tagger.network_.model.state_dict()
    return np.concatenate([value.numpy().ravel() for value in state.values()])


# Learning.


@needs_torch
def test_it_learns_what_it_is_shown(trained):
    assert trained.predict(X) == Y
    assert trained.score(X, Y) == 1.0
    assert trained.stop_reason_ == "max_iter"
    assert trained.trace_[-1] < trained.trace_[0]
    assert trained.predict([["Kim", "wins", "in", "Rome"]]) == [["B-PER", "O", "O", "B-LOC"]]


@needs_torch
def test_the_same_seed_gives_the_same_weights_and_another_one_does_not(folder):
    few = {**FAST, "epochs": 2, "model": str(folder)}
    one, again = (weights(Encoder(**few, random_state=3).fit(X, Y)) for _ in range(2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, weights(Encoder(**few, random_state=4).fit(X, Y)))


@needs_torch
def test_soft_labels_that_are_certain_are_as_good_as_tags(folder):
    codec = Codec.from_tags({tag for tags in Y for tag in tags})
    codes = codec.encode(Y).codes
    few = {**FAST, "epochs": 2, "model": str(folder)}
    hard = Encoder(**few).fit(X, Y)
    soft = Encoder(**few).fit(X, SoftTags(codec, np.eye(len(codec.tags))[codes]))
    assert np.allclose(weights(hard), weights(soft), atol=1e-6)


@needs_torch
def test_probabilities_come_near_those_of_soft_labels(folder):
    codec = Codec.from_types(["X"])
    probs = np.tile([0.7, 0.3, 0.0], (40, 1))
    soft = SoftTags(codec, probs)
    tagger = Encoder(model=str(folder), **{**FAST, "epochs": 30}).fit([["kim"]] * 40, soft)
    assert tagger.predict_marginals([["kim"]])[0][0]["B-X"] == pytest.approx(0.3, abs=0.05)
    sharp = Encoder(model=str(folder), **{**FAST, "epochs": 30}, power=4.0)
    sharp.fit([["kim"]] * 40, soft)
    assert sharp.predict_marginals([["kim"]])[0][0]["B-X"] < 0.1  # .3⁴ / (.3⁴ + .7⁴) = .03


@needs_torch
def test_tokens_of_weight_0_teach_nothing(folder):
    codec = Codec.from_tags({tag for tags in Y for tag in tags})
    right = np.eye(len(codec.tags))[codec.encode(Y).codes]
    wrong = right.copy()
    flat = [word for item in X for word in item]
    kim = np.array([word == "Kim" for word in flat])
    wrong[kim] = np.eye(len(codec.tags))[codec.index["B-LOC"]]
    weight = np.where(kim, 0.0, 1.0)
    few = {**FAST, "epochs": 2, "model": str(folder)}
    one = Encoder(**few).fit(X, SoftTags(codec, right, weight))
    other = Encoder(**few).fit(X, SoftTags(codec, wrong, weight))
    assert np.array_equal(weights(one), weights(other))


@needs_torch
def test_items_may_be_tagged_in_part(folder):
    some = [list(tags) for tags in Y]
    some[0] = [None, None]
    some[1][2] = None
    some[2][0] = {"B-PER", "B-LOC"}
    tagger = Encoder(model=str(folder), **FAST).fit(X, some)
    assert tagger.predict(X[:4]) == Y[:4]


@needs_torch
def test_malformed_tags_are_made_well_formed(folder):
    tagger = Encoder(model=str(folder), **{**FAST, "epochs": 1}).fit(X[:2], [["I-LOC", "O"], Y[1]])
    assert tagger.n_repaired_ == 1


@needs_torch
def test_it_stops_early_by_held_out_documents_and_keeps_the_best_epoch(folder):
    text = Text.of(X, [f"d{n // 2}" for n in range(len(X))])
    tagger = Encoder(
        model=str(folder), **{**FAST, "held_out": 0.25, "epochs": 60, "patience": 2}
    ).fit(text, Y)
    assert tagger.stop_reason_ == "validation"
    assert tagger.converged_
    best = int(np.argmax(tagger.scores_))
    assert len(tagger.scores_) == best + 3 < 60
    assert tagger.score(X, Y) >= tagger.scores_[best] - 0.2


@needs_torch
def test_a_validation_set_stops_and_calibrates(folder):
    tagger = Encoder(model=str(folder), **{**FAST, "epochs": 6}).fit(X, Y, validation=(X, Y))
    assert len(tagger.scores_) == 6 or tagger.stop_reason_ == "validation"
    assert tagger.temperature_ < 1  # it is always right there, and so may be surer than it was


@needs_torch
def test_training_goes_on_from_a_checkpoint_and_ends_with_the_same_weights(folder, tmp_path):
    few = {**FAST, "model": str(folder), "epochs": 4, "held_out": 0.25}
    whole = Encoder(**few).fit(X, Y)
    keep = FileCheckpoint(tmp_path / "state")

    class StoppedError(Exception):
        pass

    def stop(step, total, *_):
        if step > total // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        Encoder(**few).fit(X, Y, checkpoint=keep, progress=stop)
    steps = []
    resumed = Encoder(**few).fit(
        X, Y, checkpoint=keep, progress=lambda *given: steps.append(given[0])
    )
    assert steps[0] > 1
    assert np.array_equal(weights(whole), weights(resumed))
    assert whole.scores_ == resumed.scores_
    with pytest.raises(InputError, match="another run"):
        Encoder(**{**few, "learning_rate": 1e-3}).fit(X, Y, checkpoint=keep)


@needs_torch
def test_interrupted_training_leaves_the_best_epoch(folder):
    def stop(step, total, *_):
        if step > 2 * total / 12:
            raise KeyboardInterrupt

    tagger = Encoder(model=str(folder), **FAST)
    with pytest.raises(KeyboardInterrupt):
        tagger.fit(X, Y, progress=stop)
    assert tagger.is_fitted
    assert tagger.stop_reason_ == "interrupted"
    assert len(tagger.predict(X)) == len(X)


@needs_torch
def test_it_begins_with_the_weights_of_another(folder, trained):
    warm = Encoder(model=str(folder), **{**FAST, "epochs": 1, "learning_rate": 1e-9})
    warm.fit(X, Y, start=trained)
    assert warm.predict(X) == Y


@needs_torch
def test_items_of_a_document_are_read_side_by_side(folder):
    text = Text.of(X, [f"d{n // 4}" for n in range(len(X))])
    tagger = Encoder(model=str(folder), **FAST, documents=True).fit(text, Y)
    assert tagger.documents_
    assert tagger.predict(text) == Y
    alone, together = (tagger.log_potentials(one).unary for one in (X, text))
    assert not np.allclose(alone, together)


@needs_torch
def test_long_items_are_tagged_by_windows(trained):
    words = ["kim", "goes", "to", "rome"] * 100
    [tags] = trained.predict([words])
    assert len(tags) == 400
    assert sum(tag == "B-LOC" for tag in tags) > 50


@needs_torch
def test_capitals_are_marked_for_an_encoder_of_small_letters_only(folder, tmp_path, trained):
    assert trained.network_.case
    tells = trained.log_potentials([["Kim"], ["kim"]]).unary
    assert not np.allclose(tells[0], tells[1])
    cased = write_tiny(tmp_path / "cased", lower=False)
    few = {**FAST, "epochs": 1}
    assert not Encoder(model=str(cased), **few).fit(X, Y).network_.case
    assert not Encoder(model=str(folder), **few, case="no").fit(X, Y).network_.case


# Tagging: the chain's own answers.


@needs_torch
def test_spans_have_posteriors_of_all_well_formed_sequences(trained):
    item = ["kim", "lee", "wins"]
    codec = trained.codec_
    potentials = trained.log_potentials([item])
    p = np.exp(potentials.unary)
    total, mass = 0.0, 0.0
    legal, start = codec.mask, codec.start_mask
    n = len(codec.tags)
    for path in np.ndindex(n, n, n):
        if start[path[0]] and legal[path[0], path[1]] and legal[path[1], path[2]]:
            weight = p[0, path[0]] * p[1, path[1]] * p[2, path[2]]
            total += weight
            tags = [codec.tags[j] for j in path]
            mass += weight * (tags[:2] == ["B-PER", "I-PER"] and tags[2] != "I-PER")
    found = trained.tag([item], least=1e-6)
    spans, sure = spans_with_confidence(found, codec)
    rows = list(zip(found.spans.start, found.spans.end, found.spans.type, found.mass, strict=True))
    [own] = [m for a, b, t, m in rows if (a, b, codec.types[t]) == (0, 2, "PER")]
    assert own == pytest.approx(mass / total, rel=1e-6)
    assert len(spans) == len(sure)


@needs_torch
def test_tagging_nothing_gives_nothing(trained):
    assert trained.predict([]) == []
    assert trained.predict([[]]) == [[]]


# Folders.


@needs_torch
def test_a_saved_folder_gives_the_same_probabilities_and_is_one_of_hugging_face(trained, tmp_path):
    import transformers

    trained.save(tmp_path / "ner")
    again = load_tagger(tmp_path / "ner")
    assert isinstance(again, Encoder)
    assert again.predict(X) == trained.predict(X)
    both = (one.log_potentials(X).unary for one in (trained, again))
    assert np.allclose(*both, atol=1e-6)
    model = transformers.AutoModelForTokenClassification.from_pretrained(str(tmp_path / "ner"))
    assert model.config.id2label == dict(enumerate(trained.codec_.tags))
    assert not [path for path in tmp_path.iterdir() if path.name != "ner"]


@needs_torch
def test_a_folder_of_goldspan_is_replaced_and_another_one_is_not(trained, tmp_path):
    trained.save(tmp_path / "ner")
    trained.save(tmp_path / "ner")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="something else is there"):
        trained.save(tmp_path / "mine")
    with pytest.raises(InputError, match="does the folder exist"):
        trained.save(tmp_path / "none" / "ner")


@needs_torch
def test_a_saved_folder_can_be_fine_tuned_again(trained, tmp_path):
    trained.save(tmp_path / "ner")
    again = Encoder(model=str(tmp_path / "ner"), **{**FAST, "epochs": 1, "learning_rate": 1e-9})
    assert again.fit(X, Y).predict(X) == Y


@needs_torch
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2: this goldspan reads version 1"),
        ({"format": "else"}, "not of an encoder tagger"),
        ({"temperature": None}, "damaged"),
        ({"temperature": 0}, "damaged: the temperature is 0"),
        ({"params": {"no": 1}}, "no"),
        ({"tags": ["O", "B-X", "I-X"]}, "different tags"),
    ],
)
def test_folders_that_do_not_fit_are_refused(trained, tmp_path, change, message):
    trained.save(tmp_path / "ner")
    file = tmp_path / "ner" / "goldspan.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        load_tagger(tmp_path / "ner")


@needs_torch
def test_a_folder_without_weights_is_refused(trained, tmp_path):
    trained.save(tmp_path / "ner")
    (tmp_path / "ner" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"cannot load the encoder .*model\.safetensors"):
        load_tagger(tmp_path / "ner")


@needs_torch
def test_a_folder_without_the_words_of_its_tokenizer_is_refused(trained, folder, tmp_path):
    trained.save(tmp_path / "ner")
    shutil.copytree(folder, tmp_path / "bare")
    for name in ("ner", "bare"):
        for file in ("tokenizer.json", "vocab.txt"):
            (tmp_path / name / file).unlink(missing_ok=True)
    with pytest.raises(InputError, match="its tokenizer has no words"):
        load_tagger(tmp_path / "ner")
    with pytest.raises(InputError, match="its tokenizer has no words"):
        Encoder(model=str(tmp_path / "bare")).fit(X, Y)


@needs_torch
def test_models_that_are_not_there_are_refused_with_a_way_out(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="name a model of Hugging Face, or a folder"):
        Encoder().fit(X, Y)
    with pytest.raises(InputError, match="there is no such folder"):
        Encoder(model=str(tmp_path / "none")).fit(X, Y)
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(InputError, match="there is no such folder"):
        Encoder(model=f"{tmp_path.name}/none").fit(X, Y)
    with pytest.raises(InputError, match=r"it has no config\.json"):
        Encoder(model=str(tmp_path)).fit(X, Y)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file"):
        Encoder(model=str(tmp_path / "file")).fit(X, Y)
    shutil.copytree(folder, tmp_path / "half")
    (tmp_path / "half" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"the folder must hold config\.json, model\.safetensors"):
        Encoder(model=str(tmp_path / "half")).fit(X, Y)


@needs_torch
def test_a_name_that_nobody_has_downloaded_needs_a_connection(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="needs a connection or an earlier download"):
        Encoder(model="nobody/no-such-encoder").fit(X, Y)


@needs_torch
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["O"]] * 16, "has 2 words and 1 tags"),
        ([[None, None]] * 16, "empty"),
        (SoftTags(Codec.from_types(["X"]), np.zeros((3, 3))), "must be of shape"),
        (SoftTags(Codec.from_types(["X"]), np.zeros((56, 3))), "empty"),
        (SoftTags(Codec.from_types(["X"]), np.full((56, 3), np.nan)), "finite"),
        (SoftTags(Codec.from_types(["X"]), np.ones((56, 3)), np.ones(3)), "weights of tokens"),
    ],
)
def test_targets_that_do_not_fit_are_refused(folder, y, message):
    with pytest.raises(InputError, match=message):
        Encoder(model=str(folder), **FAST).fit(X, y)


@needs_torch
def test_devices_that_are_not_there_are_refused(folder):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(InputError, match="this machine has no cuda"):
        Encoder(model=str(folder), **FAST, device="cuda").fit(X, Y)


# ONNX Runtime.


needs_onnx = pytest.mark.skipif(
    not (HAS_TORCH and importlib.util.find_spec("onnxscript")
         and importlib.util.find_spec("onnxruntime")),
    reason="torch, onnxscript and onnxruntime are not all installed",
)  # fmt: skip


@needs_onnx
def test_an_exported_encoder_gives_the_same_probabilities_without_torch(trained, tmp_path):
    trained.export(tmp_path / "onnx")
    assert not (tmp_path / "onnx" / "model.safetensors").exists()
    again = load_tagger(tmp_path / "onnx")
    items = [*X, ["kim"] * 200, []]
    both = (one.log_potentials(items).unary for one in (trained, again))
    assert np.allclose(*both, atol=1e-4)
    assert again.predict(items) == trained.predict(items)
    with pytest.raises(InputError, match="copy its folder"):
        again.save(tmp_path / "more")
    with pytest.raises(InputError, match="exported already"):
        again.export(tmp_path / "more")
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from goldspan.tagger import load_tagger\n"
        f"print(load_tagger({str(tmp_path / 'onnx')!r}).predict([['Kim', 'wins']]))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip().endswith("[['B-PER', 'O']]")


def test_without_onnx_runtime_an_exported_folder_says_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setattr("goldspan.tagger.network.find_spec", lambda _: None)
    facts = {"format": "goldspan encoder", "version": 1, "runtime": "onnx"}
    (tmp_path / "goldspan.json").write_text(json.dumps(facts))
    with pytest.raises(MissingExtraError, match="'onnx'"):
        load_tagger(tmp_path)


# Without torch.


def test_without_the_extra_it_says_how_to_get_it(monkeypatch, tmp_path):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "goldspan.tagger.network.find_spec", lambda name: None if name == "torch" else there(name)
    )
    with pytest.raises(MissingExtraError, match="'encoder'"):
        Encoder(model="x").fit(X, Y)
    (tmp_path / "goldspan.json").write_text('{"format": "goldspan encoder", "version": 1}')
    with pytest.raises(MissingExtraError, match="an encoder tagger needs torch"):
        load_tagger(tmp_path)


def test_importing_it_loads_neither_torch_nor_transformers():
    code = (
        "import sys, goldspan.tagger.encoder\nassert not {'torch', 'transformers'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_untrained_one_says_so(tmp_path):
    with pytest.raises(NotFittedError, match="call fit first"):
        Encoder(model="x").predict(X)
    with pytest.raises(NotFittedError, match="before save"):
        Encoder(model="x").save(tmp_path / "m")


def test_folders_that_are_no_taggers_are_named(tmp_path):
    with pytest.raises(InputError, match=r"it is a folder without goldspan\.json"):
        load_tagger(tmp_path)
    (tmp_path / "goldspan.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load_tagger(tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"epochs": 0}, "epochs"), ({"device": "tpu"}, "device"), ({"window": 10}, "window")],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(InputError, match=message):
        Encoder(model="x", **params).fit(X, Y)


def test_features_are_refused():
    with pytest.raises(InputError, match="reads words, not dictionaries"):
        if not HAS_TORCH:
            from goldspan.tagger.finetuning import words_of

            words_of([[{"a": 1}]])
        Encoder(model="x").fit([[{"a": 1}]], [["O"]])


def test_files_stay_crfs(tmp_path):
    CRF(max_iter=2).fit(X, Y).save(tmp_path / "m.goldspan")
    assert isinstance(load_tagger(tmp_path / "m.goldspan"), CRF)
