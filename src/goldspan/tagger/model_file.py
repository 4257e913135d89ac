"""Taggers in files: one zip archive of JSON and NumPy arrays, versioned, without pickle.

`meta.json` describes the tagger; strings are UTF-8 bytes with offsets. A file is read and checked
before a tagger is made of it: a truncated, foreign or newer file is a clear error, and nothing in a
file is ever executed. Only known members are read, by name; others are ignored. Members are not
compressed, so that reading takes memory in proportion to the size of the file.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.archives import StoredArchive
from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.tagger.features import STRING, DictFeatures, FeatureMap, Template
from goldspan.tagger.kernels import Weights
from goldspan.tagger.network import Vectors

MAGIC = "goldspan tagger"
"""Name of the format."""
VERSION = 1
WEIGHTS = ("state", "start", "step", "end")
DAMAGED = (
    OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, RuntimeError, IndexError,
    NotImplementedError, MemoryError, OverflowError, zipfile.BadZipFile, struct.error,
    pa.ArrowException,
)  # fmt: skip
"""What zipfile, NumPy and JSON raise for a foreign or damaged file."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Model:
    """What a file holds: a trained tagger without its code."""

    kind: str  # Name of the tagger's class: "crf" or "hmm"
    params: Mapping[str, Any]  # Its parameters
    codec: Codec
    features: FeatureMap | DictFeatures  # How texts become features
    weights: Weights
    documents: bool  # Whether the training items were grouped by document
    tokens: str  # The rule for tokens that the training words agree with


def write_model(path: str | Path, model: Model) -> None:
    """Write a model; the file appears as a whole or not at all."""
    features, arrays = _features_out(model.features)
    arrays |= {name: getattr(model.weights, name) for name in WEIGHTS}
    params = dict(model.params)
    if isinstance(model.features, FeatureMap):
        params["templates"] = [str(template) for template in model.features.templates]
    meta = {
        "format": MAGIC,
        "version": VERSION,
        "kind": model.kind,
        "params": params,
        "tags": model.codec.tags,
        "encoding": model.codec.encoding,
        "documents": model.documents,
        "tokens": model.tokens,
        "features": features,
    }
    _write(Path(path), meta, arrays)


def read_model(path: str | Path, kinds: Collection[str]) -> Model:
    """Read a model that `write_model` wrote, here or on another machine."""
    try:
        with StoredArchive(path) as archive:
            return _model_of(_meta(archive, path, kinds), _Members(archive))
    except FileNotFoundError:
        raise InputError(f"cannot read {path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"cannot read {path}: it is a folder") from None
    except PermissionError:
        raise InputError(f"cannot read {path}: permission denied") from None
    except _WrongFile as error:
        raise InputError(str(error)) from None
    except DAMAGED as error:
        raise damaged(path, error) from None


def damaged(path: str | Path, error: Exception) -> InputError:
    """Return the error for a file that cannot be made sense of."""
    why = str(error) or type(error).__name__
    return InputError(f"{path} is not a tagger of goldspan, or it is damaged: {why}")


class _WrongFile(Exception):  # noqa: N818 - never leaves this file
    """An intact file of another kind or version."""


class _Members:
    """The arrays of an archive."""

    def __init__(self, archive: StoredArchive) -> None:
        self._archive = archive

    def __call__(self, name: str, kind: type[np.generic], n_dim: int) -> NDArray[Any]:
        array = self._archive.array(name)
        if array.dtype.newbyteorder("=") != np.dtype(kind) or array.ndim != n_dim:
            raise ValueError(f"{name} is {array.dtype} with {array.ndim} axes")
        return np.ascontiguousarray(array, kind)

    def strings(self, name: str) -> pa.Array:
        """Return strings as an Arrow array."""
        data, offsets = self(f"{name}.bytes", np.uint8, 1), self(f"{name}.offsets", np.int64, 1)
        if not len(offsets):
            raise ValueError(f"{name} has no offsets")
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        array = pa.Array.from_buffers(STRING, len(offsets) - 1, buffers)
        array.validate(full=True)
        return array


def _write(path: Path, meta: Mapping[str, Any], arrays: Arrays) -> None:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror} (does the folder exist?)"
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            _write_archive(file, meta, arrays)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _write_archive(file: io.BufferedWriter, meta: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the members with a fixed date, so that equal taggers are equal files."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(meta, ensure_ascii=True, indent=1, default=_plain)
        archive.writestr(zipfile.ZipInfo("meta.json"), text)
        for name, array in arrays.items():
            own = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, own, allow_pickle=False)


def _plain(value: Any) -> Any:
    """Return NumPy numbers and sequences as types that JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Sequence):
        return list(value)
    return str(value)


def _meta(archive: StoredArchive, path: str | Path, kinds: Collection[str]) -> dict[str, Any]:
    if "meta.json" not in archive:
        raise _WrongFile(f"{path} is not a tagger of goldspan: it is another archive")
    meta = json.loads(archive.read("meta.json"))
    if not isinstance(meta, dict) or meta.get("format") != MAGIC:
        raise _WrongFile(f"{path} is not a tagger of goldspan: it is another archive")
    if meta["version"] != VERSION:
        raise _WrongFile(
            f"{path} is a tagger of version {meta['version']}, and this goldspan reads version "
            f"{VERSION}: upgrade goldspan, or train it again"
        )
    if meta["kind"] not in kinds:
        raise _WrongFile(f"{path} holds a tagger {meta['kind']!r}, not {' or '.join(kinds)}")
    return meta


def _model_of(meta: Mapping[str, Any], arrays: _Members) -> Model:
    codec = Codec(tuple(meta["tags"]), meta["encoding"])
    features = _features_in(meta["features"], arrays)
    parts = {
        name: arrays(name, np.float64, n) for name, n in zip(WEIGHTS, (2, 1, 2, 1), strict=True)
    }
    n_features, n_labels = features.n_features, len(codec.tags)
    shapes = [(n_features, n_labels), (n_labels,), (n_labels, n_labels), (n_labels,)]
    if [part.shape for part in parts.values()] != shapes:
        raise ValueError("its weights do not fit its features and tags")
    if not all(np.isfinite(part).all() for part in parts.values()):
        raise ValueError("some of its weights are not finite")
    about = dict(meta["params"]), codec, features, Weights(**parts)
    return Model(meta["kind"], *about, bool(meta["documents"]), str(meta["tokens"]))


def _features_out(features: FeatureMap | DictFeatures) -> tuple[dict[str, Any], Arrays]:
    arrays: Arrays = {}
    if isinstance(features, DictFeatures):
        _strings_out("names", sorted(features.number, key=features.number.__getitem__), arrays)
        return {"kind": "dicts"}, arrays
    for n, keys in enumerate(features.keys):
        arrays[f"keys{n}"] = keys
    for n, strings in enumerate(features.values.values()):
        _strings_out(f"values{n}", strings.to_pylist(), arrays)
    facts: dict[str, Any] = {}
    if features.vectors is not None:
        arrays |= {"vector_mean": features.vectors.mean, "vector_scale": features.vectors.scale}
        facts["vectors"] = {"model": features.vectors.model, "digest": features.vectors.digest}
    return {
        **facts,
        "kind": "templates",
        "templates": [str(template) for template in features.templates],
        "attributes": list(features.values),
    }, arrays


def _features_in(facts: Mapping[str, Any], arrays: _Members) -> FeatureMap | DictFeatures:
    if facts["kind"] == "dicts":
        names = arrays.strings("names").to_pylist()
        return DictFeatures({name: n for n, name in enumerate(names)})
    templates = tuple(map(Template.parse, facts["templates"]))
    values = {name: arrays.strings(f"values{n}") for n, name in enumerate(facts["attributes"])}
    keys = tuple(arrays(f"keys{n}", np.int64, 1) for n in range(len(templates)))
    missing = {part.name for t in templates for part in t.parts} - values.keys()
    if missing:
        raise ValueError(f"the values of {', '.join(sorted(missing))} are missing")
    return FeatureMap(templates, values, keys, _vectors_in(facts, arrays))


def _vectors_in(facts: Mapping[str, Any], arrays: _Members) -> Vectors | None:
    if "vectors" not in facts:
        return None
    mean, scale = (arrays(f"vector_{name}", np.float32, 1) for name in ("mean", "scale"))
    if mean.shape != scale.shape or not (np.isfinite(mean) & np.isfinite(scale)).all():
        raise ValueError("the scale of its vectors is damaged")
    return Vectors(str(facts["vectors"]["model"]), str(facts["vectors"]["digest"]), mean, scale)


def _strings_out(name: str, strings: Sequence[str], arrays: Arrays) -> None:
    try:
        encoded = [string.encode("utf-8") for string in strings]
    except UnicodeEncodeError as error:
        raise InputError(f"a feature's name is not valid Unicode: {error}") from None
    lengths = np.fromiter(map(len, encoded), np.int64, count=len(encoded))
    arrays[f"{name}.bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
    arrays[f"{name}.offsets"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
