"""Trained models as annotators: taggers of goldspan, and of spaCy, Hugging Face and GLiNER."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from goldspan.annotators.base import ItemAnswer, SoftSpan, written
from goldspan.annotators.placing import Placed, place_characters
from goldspan.annotators.python import Batched, answer_of, digest_of
from goldspan.errors import InputError, MissingExtraError
from goldspan.params import Number, OneOf, Whole
from goldspan.plugins import plugins
from goldspan.protocols import PoolItem

LIBRARIES = ("goldspan", "spacy", "transformers", "gliner")
Found = list[tuple[str, int, int, float]]
"""Spans of a text: label, first character, one past the last, probability."""
Answers = Callable[[Sequence[PoolItem]], list[ItemAnswer]]


@dataclass(frozen=True)
class TaggerOptions:
    """What the kind "tagger" takes."""

    model: str  # File of a goldspan tagger; name or folder of a model of another library
    # "goldspan", "spacy", "transformers" (Hugging Face) or "gliner"
    library: Annotated[str, OneOf(LIBRARIES)] = "goldspan"
    # What the model calls the labels of the task: `{PERSON = "PER"}`; labels that are not there
    # keep their names, and those that the task has not are left out
    labels: Mapping[str, str] | None = None
    threshold: Annotated[float, Number(0, 1)] = 0.5  # Least score of a span, for GLiNER
    batch: Annotated[int, Whole(1)] = 64  # Items that are given to the model at once


class TrainedTagger(Batched):
    """A trained model. It works on this machine; nothing is sent."""

    Options = TaggerOptions

    @cached_property
    def loaded(self) -> Answers:
        """The model."""
        return _MAKERS[self.options.library](self)

    @property
    def family(self) -> str:
        """The family of the entry; by default its model, as two entries of one model err alike."""
        return self.entry.family or str(Path(self.options.model).name)

    def work(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Let the model label some items."""
        return self.loaded(batch)

    def version(self) -> str:
        """Return a hash of the model's files; of a model by name the versions of the packages."""
        path = self.task.folder / self.options.model
        if path.exists():
            return digest_of(path)
        names = (self.options.library, self.options.model)
        return " ".join(_version_of(name) for name in names)

    def facts(self) -> dict[str, Any]:
        """Return the model."""
        return {"model": self.options.model, "library": self.options.library}

    def name_of(self, label: str) -> str:
        """Return what the task calls a label of the model."""
        return str((self.options.labels or {}).get(label, label))

    def spans(self, item: PoolItem, found: Found) -> ItemAnswer:
        """Return the answer that spans in characters are; other labels than the task's are left."""
        named = [(self.name_of(one[0]), *one[1:]) for one in found]
        mine = [one for one in named if one[0] in self.task.names]
        return self.decided(item, place_characters(item, mine, self.task.names))

    def decided(self, item: PoolItem, placed: Placed) -> ItemAnswer:
        """Return the answer that spans are: the model decided for them, however sure it is."""
        tags = written(placed.spans, len(item.tokens), self.task.codec)
        answer = placed.answer(item)
        return answer if answer.missing else replace(answer, tags=tags)

    def classes(self, item: PoolItem, shares: Mapping[str, float]) -> ItemAnswer:
        """Return the answer that the scores of labels are."""
        named = {self.name_of(name): float(share) for name, share in shares.items()}
        mine = {name: share for name, share in named.items() if name in self.task.names}
        return answer_of(item, mine, self.task, f"worker {self.id}")

    def path(self) -> str:
        """Return the model: a path beside the plan if there is one, else its name."""
        path = self.task.folder / self.options.model
        return str(path if path.exists() else self.options.model)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Turn what a library raises for a model that it cannot load into a message."""
        _check_torch()
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            what = f"{self.options.library} cannot load the model {self.options.model!r}"
            raise InputError(f"worker {self.id}: {what}: {error}") from error


def _goldspan(own: TrainedTagger) -> Answers:
    """Read a tagger that `goldspan train` or a campaign wrote."""
    from goldspan.tagger import load_tagger
    from goldspan.tagger.streams import Item, label

    model = load_tagger(own.task.folder / own.options.model)
    if model.codec_.rules.is_plain != own.task.is_single:
        kinds = ("single labels", "spans")
        mine, other = kinds if own.task.is_single else kinds[::-1]
        raise InputError(
            f"worker {own.id}: {own.options.model} is for {other}, the task for {mine}"
        )

    def answers(items: Sequence[PoolItem]) -> list[ItemAnswer]:
        groups = {name: n for n, name in enumerate({item.group: 0 for item in items})}
        words = [Item([*item.tokens], item.id, groups[item.group]) for item in items]
        found = list(label(model, words))
        if own.task.is_single:
            pairs = zip(items, found, strict=True)
            return [own.classes(item, {one.tags[0]: 1.0}) for item, one in pairs]
        rows = [[SoftSpan(own.name_of(one[0]), *one[1:]) for one in o.spans] for o in found]
        known = [[span for span in row if span.type in own.task.names] for row in rows]
        return [own.decided(item, Placed(row)) for item, row in zip(items, known, strict=True)]

    return answers


def _spacy(own: TrainedTagger) -> Answers:
    """Load a spaCy pipeline: entities for spans, categories of texts for single labels."""
    _check_installed("spacy")
    import spacy

    name = own.options.model  # a package is code, which a plan cannot run
    is_data = (own.task.folder / name).exists() or name in plugins("spacy_models")
    if not is_data and name not in own.task.allow_code:
        raise InputError(
            f"worker {own.id}: {name!r} is neither a folder nor an installed model of spaCy; if it "
            f"is a package that you trust, add --allow-code {name}"
        )
    with own.loading():
        nlp = spacy.load(own.path())
    wanted = {"textcat", "textcat_multilabel"} if own.task.is_single else {
        "ner", "entity_ruler", "span_ruler", "beam_ner",
    }  # fmt: skip
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    if not wanted & factories and not any(name.startswith("custom") for name in factories):
        what = "gives no categories to texts" if own.task.is_single else "finds no entities"
        raise InputError(
            f"worker {own.id}: the pipeline {own.options.model!r} {what}: it has "
            f"{', '.join(nlp.pipe_names) or 'no component'}"
        )

    def answers(items: Sequence[PoolItem]) -> list[ItemAnswer]:
        documents = nlp.pipe([item.text or "" for item in items])
        if own.task.is_single:
            return [own.classes(i, doc.cats) for i, doc in zip(items, documents, strict=True)]
        return [
            own.spans(item, [(e.label_, e.start_char, e.end_char, 1.0) for e in doc.ents])
            for item, doc in zip(items, documents, strict=True)
        ]

    return answers


def _transformers(own: TrainedTagger) -> Answers:
    """Load a pipeline of Hugging Face: token classification, or text classification."""
    _check_installed("transformers")
    import transformers

    make: Any = transformers.pipeline
    no_code = {"trust_remote_code": False}
    with own.loading():
        if own.task.is_single:
            model = make("text-classification", model=own.path(), top_k=None, **no_code)
        else:
            which = {"model": own.path(), "aggregation_strategy": "simple"}
            model = make("token-classification", **which, **no_code)

    def answers(items: Sequence[PoolItem]) -> list[ItemAnswer]:
        found = model([item.text or "" for item in items])
        if own.task.is_single:
            rows = [{one["label"]: one["score"] for one in row} for row in found]
            return [own.classes(item, row) for item, row in zip(items, rows, strict=True)]
        return [
            own.spans(
                item,
                [
                    (one["entity_group"], int(one["start"]), int(one["end"]), float(one["score"]))
                    for one in row
                ],
            )
            for item, row in zip(items, found, strict=True)
        ]

    return answers


def _gliner(own: TrainedTagger) -> Answers:
    """Load a GLiNER model, which is asked for the task's types by their names."""
    if own.task.is_single:
        raise InputError(f"worker {own.id}: GLiNER finds spans, and the task has single labels")
    _check_installed("gliner")
    import gliner

    with own.loading(), _without_code():
        model = gliner.GLiNER.from_pretrained(own.path())
    own_names = set((own.options.labels or {}).values())
    asked = [*(own.options.labels or {}), *(n for n in own.task.names if n not in own_names)]

    def answers(items: Sequence[PoolItem]) -> list[ItemAnswer]:
        rows = [
            model.predict_entities(item.text or "", asked, threshold=own.options.threshold)
            for item in items
        ]
        return [
            own.spans(
                item, [(o["label"], int(o["start"]), int(o["end"]), float(o["score"])) for o in row]
            )
            for item, row in zip(items, rows, strict=True)
        ]

    return answers


_MAKERS: dict[str, Callable[[TrainedTagger], Answers]] = {
    "goldspan": _goldspan, "spacy": _spacy, "transformers": _transformers, "gliner": _gliner,
}  # fmt: skip


def _check_installed(package: str) -> None:
    """Reject a library that is not installed; goldspan's extra of it has the same name."""
    if find_spec(package) is None:
        raise MissingExtraError(package, package, f"a tagger of {package}")


def _check_torch() -> None:
    """Reject a torch that runs code of a file with weights (CVE-2025-32434)."""
    found = _version_of("torch")
    if found and tuple(map(int, found.split(".")[:2])) < (2, 6):
        raise InputError(f"torch {found} may run code that a model's file holds: update it to 2.6")


@contextmanager
def _without_code() -> Iterator[None]:
    """Refuse models that bring Python code: GLiNER has transformers trust it, unasked."""
    loader: Any = import_module("transformers.dynamic_module_utils")

    def refuse(*_: Any, **__: Any) -> None:
        raise InputError("the model brings Python code of its own, which is not run: use another")

    before, loader.get_class_in_module = loader.get_class_in_module, refuse
    try:
        yield
    finally:
        loader.get_class_in_module = before


def _version_of(package: str) -> str:
    """Return the version of an installed package, "" where there is none of the name."""
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return ""
