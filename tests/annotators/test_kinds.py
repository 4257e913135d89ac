"""Functions, taggers, simulated and recorded workers as annotators."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from goldspan.annotators import AnnotationTask, SoftSpan, open_annotator
from goldspan.errors import InputError, MissingExtraError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.tagger import CRF

NAMES = Codec.from_types(["LOC", "PER"])
LABELS = Codec.from_types(["no", "yes"], "PLAIN")
ITEMS = [
    PoolItem("a", ("Ann", "sang")),
    PoolItem("b", ("in", "Rome", "."), text="in  Rome.", token_start=(0, 4, 8)),
]
EXTERNAL = ("spacy", "transformers", "gliner")


@pytest.fixture
def module(monkeypatch):
    """A module whose functions can be called: `module.label = …`."""
    one = ModuleType("my_rules")
    monkeypatch.setitem(sys.modules, "my_rules", one)
    return one


def answers(entry, items=ITEMS, codec=NAMES, folder=None):
    own = (entry.get("call", "").partition(":")[0],)
    task = AnnotationTask(codec, folder=folder or Path(), allow_code=own)
    with open_annotator({"id": "w", **entry}, task) as annotator:
        return list(annotator.label(items))


def called(module, function, items=ITEMS, codec=NAMES, **entry):
    module.label = function
    return answers({"kind": "python", "call": "my_rules:label", **entry}, items, codec)


# Functions.


@pytest.mark.parametrize(
    "marked",
    [
        {"start": 4, "end": 8, "label": "LOC", "probability": 0.9},
        {"start": 4, "end": 8, "label": "LOC", "score": 0.9},
        (4, 8, "LOC", 0.9),
        [4, 8, "LOC", 0.9],
    ],
)
def test_a_function_says_spans_in_characters(module, marked):
    found = called(module, lambda items: [[marked] if "Rome" in one.text else [] for one in items])
    assert [answer.spans for answer in found] == [(), (SoftSpan("LOC", 1, 2, 0.9),)]
    assert found[1].labels(NAMES, 3) == ["O", "B-LOC", "O"]


def test_spans_of_a_function_that_have_no_place_are_not_nothing(module):
    found = called(module, lambda _: [[(0, 3, "PER"), (50, 60, "LOC")], [(4, 8, "CITY")]])
    assert found[0].labels(NAMES, 2) == ["B-PER", None]
    assert found[1].missing == "none of its spans can be placed"
    assert found[1].unplaced == ("'CITY' of 'Rome' is not a label of the task",)


def test_a_function_is_given_texts_and_may_give_tags_or_none(module):
    def label(items):
        assert [one.text for one in items] == ["Ann sang", "in  Rome."]
        return [["B-PER", "O"], None]

    first, second = called(module, label, prices={"per_answer": "0.01", "per_token": "0.001"})
    assert first.labels(NAMES, 2) == ["B-PER", "O"]
    assert (first.cost, second.cost) == (12_000, 0)
    assert (second.missing, second.spans) == ("none was given", None)


def test_a_function_gives_single_labels_or_their_probabilities(module):
    given = ["yes", {"yes": 3, "no": 1, "maybe": 4}, {"maybe": 1.0}, None]
    items = [PoolItem(str(n), (str(n),)) for n in range(4)]
    found = called(module, lambda _: given, items, LABELS)
    assert [answer.classes for answer in found] == [
        {"yes": 1.0}, {"no": 0.25, "yes": 0.75}, None, None,
    ]  # fmt: skip
    assert found[2].missing == "no label of the task was given"
    assert found[1].unplaced == ("'maybe' is not a label of the task",)


def test_items_come_in_batches_and_answers_in_order(module):
    sizes = []

    def label(items):
        sizes.append(len(items))
        return [[(0, 1, "PER")] for _ in items]

    many = [PoolItem(str(n), ("x",)) for n in range(5)]
    found = called(module, label, many, batch=2)
    assert sizes == [2, 2, 1]
    assert [answer.item for answer in found] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda _: [[]], "returned 1 answers for 2 items"),
        (lambda _: 1 / 0, "failed on items a to b: ZeroDivisionError"),
        (lambda _: ["PER", []], "spans must be a list"),
        (lambda _: [["O"], []], "1 tags for 2 tokens"),
        (lambda _: [["O", "B-EVIL"], []], "tag 'B-EVIL' is not in"),
        (lambda _: [[(0.5, 1, "PER")], []], "a span has start and end"),
        (lambda _: [[(0, 1, "PER", 2)], []], "a span has start and end"),
        (lambda _: [[{"start": 0}], []], "a span has start and end"),
        (lambda _: [[(True, 1, "PER")], []], "a span has start and end"),
    ],
)
def test_what_a_function_does_wrong_is_named_with_the_item(module, given, message):
    with pytest.raises(InputError, match=r"^worker w") as caught:
        called(module, given)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [3, {"yes": -1}, {"yes": "x"}, {"yes": float("nan")}])
def test_a_single_label_that_is_none_is_rejected(module, value):
    with pytest.raises(InputError, match="a single label is a name"):
        called(module, lambda _: [value], [PoolItem("1", ("1",))], LABELS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("no_such_module_here:label", "cannot import no_such_module_here"),
        ("json:label", "json has no function 'label'"),
        ("json:decoder", "is not a function"),
        ("label", "must look like module:function, or be an entry point"),
    ],
)
def test_a_function_that_is_not_there_is_named(call, message):
    with pytest.raises(InputError, match="worker w") as caught:
        answers({"kind": "python", "call": call})
    assert message in str(caught.value)


def test_a_function_can_be_called_by_its_entry_point(module, monkeypatch):
    monkeypatch.setattr("goldspan.annotators.python.plugins", lambda _: {"mine": "my_rules:label"})
    module.label = lambda items: [[] for _ in items]
    assert [one.spans for one in answers({"kind": "python", "call": "mine"})] == [(), ()]


# Simulated and recorded workers.

CROWD = """\
{"goldspan": 1, "encoding": "BIO", "types": ["LOC", "PER"]}
{"item": "1", "tokens": ["Ann", "sang"], "gold": {"tags": ["B-PER", "O"]}, "answers": [
 {"worker": "ann", "tags": ["B-PER", "O"]}, {"worker": "bo", "tags": ["I-PER", null]}]}
{"item": "2", "tokens": ["Rome"], "gold": {"tags": ["B-LOC"]}, "answers": [
 {"worker": "ann", "tags": ["B-LOC"]}]}
""".replace("[\n", "[")


@pytest.fixture
def crowd(tmp_path):
    (tmp_path / "crowd.jsonl").write_text(CROWD)
    return tmp_path


RECORDED = [PoolItem("1", ("Ann", "sang")), PoolItem("2", ("Rome",)), PoolItem("9", ("x",))]


def test_a_recorded_worker_answers_as_then(crowd):
    entry = {"kind": "replay", "answers": "crowd.jsonl"}
    found = answers({**entry, "id": "ann"}, RECORDED, folder=crowd)
    assert [one.labels(NAMES, 2) for one in found] == [["B-PER", "O"], ["B-LOC"], None]
    assert found[2].missing == "there is no answer to this item"
    found = answers({**entry, "worker": "bo"}, RECORDED, folder=crowd)
    assert found[0].labels(NAMES, 2) == ["I-PER", None]  # as it was given, also what was skipped
    with pytest.raises(InputError, match="there is no worker 'w'"):
        answers(entry, RECORDED, folder=crowd)
    with pytest.raises(InputError, match="item 1 has 1 tokens, and 2"):
        answers({**entry, "id": "ann"}, [PoolItem("1", ("Ann",))], folder=crowd)
    with pytest.raises(InputError, match="labels that the task has not: B-LOC, I-LOC"):
        answers({**entry, "id": "ann"}, codec=Codec.from_types(["PER"]), folder=crowd)


def test_a_simulated_worker_answers_by_its_name_and_the_item_alone(crowd):
    entry = {"kind": "simulated", "worker": "flip(0.5)", "truth": "crowd.jsonl", "seed": 3}
    whole = answers(entry, RECORDED[:2], folder=crowd)
    assert answers(entry, RECORDED[1:2], folder=crowd) == whole[1:]
    perfect = answers({**entry, "worker": "perfect"}, RECORDED, folder=crowd)
    assert [one.labels(NAMES, 2) for one in perfect] == [["B-PER", "O"], ["B-LOC"], None]


# Taggers.


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    words = [["Ann", "sang"], ["in", "Rome", "."], ["Bob", "sang"], ["in", "Oslo", "."]]
    tags = [["B-PER", "O"], ["O", "B-LOC", "O"]] * 2
    CRF().fit(words, tags).save(folder / "ner.goldspan")
    return folder


def test_a_tagger_of_goldspan_gives_its_spans_and_how_sure_it_is(tagger):
    found = answers({"kind": "tagger", "model": "ner.goldspan"}, folder=tagger)
    assert found[0].labels(NAMES, 2) == ["B-PER", "O"]
    assert found[1].labels(NAMES, 3) == ["O", "B-LOC", "O"]
    assert 0.3 < found[0].spans[0].probability < 1
    mapped = {"kind": "tagger", "model": "ner.goldspan", "labels": {"PER": "NAME", "LOC": "x"}}
    found = answers(mapped, codec=Codec.from_types(["NAME"]), folder=tagger)
    assert [[span.type for span in one.spans] for one in found] == [["NAME"], []]
    with open_annotator(
        {"kind": "tagger", "model": "ner.goldspan"}, AnnotationTask(NAMES, folder=tagger)
    ) as one:
        assert one.family == "ner.goldspan"
        assert one.facts() == {"model": "ner.goldspan", "library": "goldspan"}


def test_a_tagger_that_is_for_something_else_is_rejected(tagger, tmp_path):
    with pytest.raises(InputError, match=r"is for spans, the task for single labels"):
        answers({"kind": "tagger", "model": "ner.goldspan"}, codec=LABELS, folder=tagger)
    with pytest.raises(InputError, match="no-such"):
        answers({"kind": "tagger", "model": "no-such.goldspan"}, folder=tmp_path)


@pytest.mark.parametrize("library", EXTERNAL)
def test_a_library_that_is_not_installed_is_named_with_its_extra(library, monkeypatch):
    monkeypatch.setattr("goldspan.annotators.tagger.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=rf"extra '{library}'"):
        answers({"kind": "tagger", "library": library, "model": "m"})


def _installed(monkeypatch, name, **parts):
    """Put a library of this face in the place of the real one."""
    one = ModuleType(name)
    vars(one).update(parts)
    monkeypatch.setitem(sys.modules, name, one)
    monkeypatch.setattr("goldspan.annotators.tagger.find_spec", lambda _: one)


def test_a_token_classifier_of_hugging_face_gives_spans_with_scores(monkeypatch):
    asked = {}

    def pipeline(task, **given):
        asked.update(given, task=task)
        row = {"entity_group": "LOC", "start": 4, "end": 8, "score": 0.4}
        other = {"entity_group": "MISC", "start": 0, "end": 2, "score": 0.9}
        return lambda texts: [[row, other] if "Rome" in text else [] for text in texts]

    _installed(monkeypatch, "transformers", pipeline=pipeline)
    entry = {"kind": "tagger", "library": "transformers", "model": "org/ner"}
    found = answers(entry)
    assert asked == {
        "task": "token-classification", "model": "org/ner", "aggregation_strategy": "simple",
        "trust_remote_code": False,
    }  # fmt: skip
    assert found[1].spans == (SoftSpan("LOC", 1, 2, 0.4),)
    assert found[1].labels(NAMES, 3) == ["O", "B-LOC", "O"]  # it decided for it


def test_a_text_classifier_of_hugging_face_gives_a_distribution(monkeypatch):
    rows = [{"label": "POSITIVE", "score": 0.8}, {"label": "NEGATIVE", "score": 0.2}]
    _installed(
        monkeypatch, "transformers", pipeline=lambda *_, **__: lambda texts: [rows for _ in texts]
    )
    entry = {
        "kind": "tagger", "library": "transformers", "model": "m",
        "labels": {"POSITIVE": "yes", "NEGATIVE": "no"},
    }  # fmt: skip
    assert answers(entry, codec=LABELS)[0].classes == {"no": 0.2, "yes": 0.8}


def test_gliner_is_asked_for_the_types_by_their_names(monkeypatch):
    class GLiNER:
        @classmethod
        def from_pretrained(cls, model):
            assert model == "org/gliner" or loader.get_class_in_module()
            return cls()

        def predict_entities(self, text, labels, threshold):
            assert (labels, threshold) == (["person", "LOC"], 0.3)
            found = {"label": "person", "start": 0, "end": 3, "score": 0.7}
            return [found] if text.startswith("Ann") else []

    _installed(monkeypatch, "gliner", GLiNER=GLiNER)
    loader = ModuleType("transformers.dynamic_module_utils")
    loader.get_class_in_module = None
    monkeypatch.setitem(sys.modules, "transformers", ModuleType("transformers"))
    monkeypatch.setitem(sys.modules, loader.__name__, loader)
    entry = {"kind": "tagger", "library": "gliner", "model": "org/gliner", "threshold": 0.3,
             "labels": {"person": "PER"}}  # fmt: skip
    assert [one.spans for one in answers(entry)] == [(SoftSpan("PER", 0, 1, 0.7),), ()]
    with pytest.raises(InputError, match="code of its own"):
        answers({**entry, "model": "org/evil"})
    assert loader.get_class_in_module is None
    with pytest.raises(InputError, match="GLiNER finds spans"):
        answers(entry, codec=LABELS)


def test_a_model_that_cannot_be_loaded_is_named(monkeypatch):
    def pipeline(*_, **__):
        raise OSError("m is not a local folder")

    _installed(monkeypatch, "transformers", pipeline=pipeline)
    with pytest.raises(InputError, match=r"worker w: transformers cannot load the model 'm'"):
        answers({"kind": "tagger", "library": "transformers", "model": "m"})


# spaCy itself, where it is installed.


def _ruler(spacy, folder):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Rome"}, {"label": "PER", "pattern": "Ann"}])
    nlp.to_disk(folder)


def test_a_pipeline_of_spacy_gives_its_entities(tmp_path):
    spacy = pytest.importorskip("spacy")
    _ruler(spacy, tmp_path / "rules")
    entry = {"kind": "tagger", "library": "spacy", "model": "rules", "labels": {"GPE": "LOC"}}
    found = answers(entry, folder=tmp_path)
    assert [one.spans for one in found] == [(SoftSpan("PER", 0, 1),), (SoftSpan("LOC", 1, 2),)]


def test_a_pipeline_of_spacy_that_finds_nothing_of_the_kind_is_rejected(tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    entry = {"kind": "tagger", "library": "spacy", "model": "blank"}
    with pytest.raises(InputError, match="finds no entities: it has no component"):
        answers(entry, folder=tmp_path)
    with pytest.raises(InputError, match="gives no categories to texts"):
        answers(entry, codec=LABELS, folder=tmp_path)


def test_a_text_classifier_of_spacy_gives_a_distribution(tmp_path):
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    classifier = nlp.add_pipe("textcat")
    for name in ("no", "yes"):
        classifier.add_label(name)
    nlp.initialize()
    nlp.to_disk(tmp_path / "cats")
    (first, _) = answers(
        {"kind": "tagger", "library": "spacy", "model": "cats"}, codec=LABELS, folder=tmp_path
    )
    assert sum(first.classes.values()) == pytest.approx(1)


# Hugging Face itself, where it is installed: models without training, which say anything.


def _save(kind, folder, names):
    """Save a tiny model of a kind, with random weights."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ann", "sang", "in", "rome", "."]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, id2label=dict(enumerate(names)),
        label2id={name: n for n, name in enumerate(names)},
    )  # fmt: skip
    getattr(transformers, kind)(config).save_pretrained(folder)


@pytest.mark.filterwarnings("ignore")
def test_a_real_gliner_is_asked_for_the_types_by_their_names(tmp_path):
    gliner = pytest.importorskip("gliner")
    _save("BertModel", tmp_path / "encoder", [])
    config = {"model_name": str(tmp_path / "encoder"), "hidden_size": 8, "max_width": 3}
    gliner.GLiNER.from_config(config).save_pretrained(str(tmp_path / "model"))
    entry = {"kind": "tagger", "library": "gliner", "model": "model", "threshold": 0.0,
             "labels": {"person": "PER"}}  # fmt: skip
    found = answers(entry, folder=tmp_path)
    assert all(one.spans for one in found)  # with a threshold of 0 it finds something anywhere
    assert {span.type for one in found for span in one.spans} <= {"PER", "LOC"}


class Evil:
    """Runs as it is unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def _poison(folder, target):
    """Put pickles in place of weights and tables, and a module that a configuration names."""
    for file in [one for one in folder.rglob("*") if one.suffix not in {".json", ".cfg", ".txt"}]:
        if file.is_file():
            file.write_bytes(pickle.dumps(Evil(target)))
    for weights in folder.rglob("*.safetensors"):
        weights.rename(weights.with_name("pytorch_model.bin"))
    code = f"open({str(target)!r}, 'w')\nfrom transformers import BertModel as Evil"
    (folder / "evil.py").write_text(code)
    config = folder / "config.json"
    if config.is_file():
        names = ("AutoConfig", "AutoModel", "AutoModelForTokenClassification")
        mapped = dict.fromkeys(names, "evil.Evil")
        config.write_text(json.dumps(json.loads(config.read_text()) | {"auto_map": mapped}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["spacy", "transformers", "gliner"])
def test_a_model_of_a_stranger_runs_no_code(tmp_path, library, monkeypatch):
    module, model, target = pytest.importorskip(library), tmp_path / "model", tmp_path / "ran"
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "cache"))
    if library == "spacy":
        _ruler(module, model)
    elif library == "transformers":
        _save("BertForTokenClassification", model, ["B-PER", "B-LOC"])
    else:
        _save("BertModel", tmp_path / "encoder", [])
        encoder = {"model_type": "bert", "vocab_size": 10, "hidden_size": 8,
                   "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
                   "auto_map": {"AutoModel": f"{model}--evil.Evil"}}  # fmt: skip
        config = {"model_name": str(tmp_path / "encoder"), "hidden_size": 8}
        module.GLiNER.from_config(config).save_pretrained(str(model))
        facts = json.loads((model / "gliner_config.json").read_text())
        facts["encoder_config"] = encoder
        (model / "gliner_config.json").write_text(json.dumps(facts))
    _poison(model, target)
    with pytest.raises(InputError, match="code of its own" if library == "gliner" else library):
        answers({"kind": "tagger", "library": library, "model": "model"}, folder=tmp_path)
    assert not target.exists()


@pytest.mark.filterwarnings("ignore")
def test_a_real_token_classifier_of_hugging_face_gives_spans_of_whole_tokens(tmp_path):
    _save("BertForTokenClassification", tmp_path / "ner", ["B-PER", "B-LOC"])
    entry = {"kind": "tagger", "library": "transformers", "model": "ner"}
    found = answers(entry, folder=tmp_path)
    assert all(one.spans for one in found)  # every token has one of the two labels
    assert all(0 < span.probability <= 1 for one in found for span in one.spans)
    assert all(one.labels(NAMES, len(i.tokens)) for one, i in zip(found, ITEMS, strict=True))


@pytest.mark.filterwarnings("ignore")
def test_a_real_text_classifier_of_hugging_face_gives_a_distribution(tmp_path):
    _save("BertForSequenceClassification", tmp_path / "cats", ["yes", "no"])
    entry = {"kind": "tagger", "library": "transformers", "model": "cats"}
    for one in answers(entry, codec=LABELS, folder=tmp_path):
        assert {*one.classes} == {"no", "yes"}
        assert sum(one.classes.values()) == pytest.approx(1)
