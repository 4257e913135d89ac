"""A model and a tokenizer of Hugging Face, which score the tags of words.

torch and transformers are loaded when they are needed: importing this module loads neither.
"""

from __future__ import annotations

import copy
import hashlib
import io
import logging
import os
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import load_array
from goldspan.errors import InputError, MissingExtraError
from goldspan.spans import Codec
from goldspan.tagger.kernels import Floats
from goldspan.tagger.text import MARKS, Pieces, Text, Window, by_length, reads_small_letters_only

SCORED_PIECES = 8192
"""Pieces that are scored at once."""


ONNX = "model.onnx"
"""The model in a folder that `Network.export` wrote."""


def check_installed(extra: str = "encoder", purpose: str = "an encoder tagger") -> None:
    """Reject a machine without what an extra installs."""
    needed = {
        "encoder": ("torch", "transformers"),
        "onnx": ("onnxruntime", "transformers"),
    }
    for package in needed[extra]:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra, purpose)


@dataclass(frozen=True, eq=False)
class Network:
    """A model with its tokenizer, on a device."""

    model: Any  # A model of Hugging Face for token classification
    tokenizer: Any
    pieces: Pieces  # Cuts texts into windows
    case: bool  # Whether words with capitals are marked
    device: str
    is_mixed: bool  # Whether products of matrices are computed in bfloat16

    @classmethod
    def open(cls, m: Any, codec: Codec) -> Network:
        """Load a pre-trained encoder and put a new layer for the tags on it."""
        import torch
        import transformers

        if not m.model:
            raise InputError("model: name a model of Hugging Face, or a folder with one")
        make: Any = transformers.AutoModelForTokenClassification
        with torch.random.fork_rng(devices=[]), loading(m.model) as where:
            torch.manual_seed(m.random_state or 0)
            tokenizer = read_tokenizer(m.model, where)
            model = make.from_pretrained(
                m.model, ignore_mismatched_sizes=True, use_safetensors=True, dtype=torch.float32,
                **where, num_labels=len(codec.tags), id2label=dict(enumerate(codec.tags)),
                label2id={tag: n for n, tag in enumerate(codec.tags)},
            )  # fmt: skip
            case = m.case == "yes" or (m.case == "auto" and reads_small_letters_only(tokenizer))
            if case and tokenizer.add_tokens(list(MARKS), special_tokens=True):
                model.resize_token_embeddings(len(tokenizer))
        return cls._of(m, model, tokenizer, case)

    @classmethod
    def read(cls, m: Any, folder: Path, codec: Codec, *, marks: bool) -> Network:
        """Read what `save` wrote."""
        import torch
        import transformers

        make: Any = transformers.AutoModelForTokenClassification
        with loading(str(folder)) as where:
            tokenizer = read_tokenizer(str(folder), where)
            model = make.from_pretrained(
                str(folder), use_safetensors=True, dtype=torch.float32, **where
            )
        if [model.config.id2label.get(n) for n in range(len(codec.tags))] != list(codec.tags):
            raise InputError(f"{folder}: config.json and goldspan.json name different tags")
        return cls._of(m, model, tokenizer, marks)

    @classmethod
    def _of(cls, m: Any, model: Any, tokenizer: Any, case: bool) -> Network:
        size = min(m.window, most_pieces(model.config, tokenizer))
        pieces = Pieces(tokenizer, size, case=case, documents=m.documents)
        device = best_device(m.device)
        return cls(model.to(device), tokenizer, pieces, case, device, _is_mixed(m, device))

    def take_over(self, other: Network) -> None:
        """Begin with the weights of another network, as far as they fit."""
        own = self.model.state_dict()
        theirs = other.model.state_dict()
        if not any(name in own and own[name].shape == w.shape for name, w in theirs.items()):
            raise InputError("start: that encoder is of another kind: no weight of it fits")
        fits = {n: w for n, w in theirs.items() if n in own and own[n].shape == w.shape}
        self.model.load_state_dict(fits, strict=False)

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as Hugging Face does."""
        with _quiet():
            self.model.save_pretrained(str(folder), safe_serialization=True)
            self.tokenizer.save_pretrained(str(folder))

    def export(self, folder: Path) -> None:
        """Write the model for ONNX Runtime, and the tokenizer."""
        import torch

        if find_spec("onnxscript") is None:
            raise MissingExtraError("onnxscript", "onnx", "the export of an encoder")
        self.model.eval()
        mask = torch.tensor([[1] * 8, [1] * 6 + [0] * 2])  # two arguments must not be one tensor
        given = {"input_ids": mask.clone(), "attention_mask": mask}
        shape = {0: torch.export.Dim("windows"), 1: torch.export.Dim("pieces")}
        with (
            _quiet(),
            _level("torch.onnx", logging.ERROR),  # it tells of packages that it does not need
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            model = copy.deepcopy(self.model).to("cpu")
            torch.onnx.export(
                model, kwargs=given, f=str(folder / ONNX), dynamo=True,
                dynamic_shapes=dict.fromkeys(given, shape), input_names=list(given),
                output_names=["logits"], verbose=False,
            )  # fmt: skip
            self.model.config.save_pretrained(str(folder))
            self.tokenizer.save_pretrained(str(folder))

    def logits(self, text: Text) -> Floats:
        """Score the tags of every word, float64 [n_tokens, J]."""
        import torch

        self.model.eval()
        found = np.zeros((text.n_tokens, self.model.config.num_labels))
        with torch.inference_mode():
            for chosen in batches_of(self.pieces, text):
                out, token = self.forward(chosen)
                found[token] = out.float().cpu().numpy()
        return found

    def forward(self, windows: Sequence[Window]) -> tuple[Any, NDArray[np.int64]]:
        """Score the words of some windows."""
        import torch

        ids, mask = padded(windows, self.tokenizer.pad_token_id or 0)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.is_mixed):
            out = self.model(
                input_ids=torch.from_numpy(ids).to(self.device),
                attention_mask=torch.from_numpy(mask).to(self.device),
            ).logits
        row, at, token = places(windows)
        return out[torch.from_numpy(row), torch.from_numpy(at)], token


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """A model that `Network.export` wrote, in ONNX Runtime; it tags and does not learn."""

    session: Any  # The session of ONNX Runtime
    n_labels: int
    pad: int  # The piece that fills up short windows
    pieces: Pieces  # Cuts texts into windows
    case: bool  # Whether words with capitals are marked
    device: str = "onnx"

    @classmethod
    def read(cls, m: Any, folder: Path, codec: Codec, *, marks: bool) -> OnnxNetwork:
        """Read a folder; torch is not needed."""
        import onnxruntime
        import transformers

        with loading(str(folder)) as where:
            tokenizer = read_tokenizer(str(folder), where)
            config = transformers.AutoConfig.from_pretrained(str(folder), **where)
            session = onnxruntime.InferenceSession(
                str(folder / ONNX), providers=onnxruntime.get_available_providers()
            )
        size = min(m.window, most_pieces(config, tokenizer))
        pieces = Pieces(tokenizer, size, case=marks, documents=m.documents)
        return cls(session, len(codec.tags), tokenizer.pad_token_id or 0, pieces, marks)

    def logits(self, text: Text) -> Floats:
        """Score the tags of every word, float64 [n_tokens, J]."""
        found = np.zeros((text.n_tokens, self.n_labels))
        for chosen in batches_of(self.pieces, text):
            ids, mask = padded(chosen, self.pad)
            [out] = self.session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
            row, at, token = places(chosen)
            found[token] = out[row, at]
        return found


def batches_of(pieces: Pieces, text: Text) -> Iterator[list[Window]]:
    """Cut a text into windows, and yield those that are scored at once."""
    windows = pieces.windows(text)
    for batch in by_length(windows, SCORED_PIECES):
        yield [windows[n] for n in batch]


def padded(windows: Sequence[Window], pad: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pieces of windows as one array, int64 [n_windows, longest], and their mask."""
    longest = max(len(window.ids) for window in windows)
    ids = np.full((len(windows), longest), pad, np.int64)
    mask = np.zeros((len(windows), longest), np.int64)
    for n, window in enumerate(windows):
        ids[n, : len(window.ids)] = window.ids
        mask[n, : len(window.ids)] = 1
    return ids, mask


def places(windows: Sequence[Window]) -> tuple[NDArray[np.int64], ...]:
    """Return window, place and number of every word that is scored in some windows."""
    row = np.repeat(np.arange(len(windows)), [len(window.at) for window in windows])
    at = np.concatenate([window.at for window in windows])
    return row, at, np.concatenate([window.token for window in windows])


def most_pieces(config: Any, tokenizer: Any) -> int:
    """Return how many pieces an encoder can read at once."""
    places = getattr(config, "max_position_embeddings", None) or 1 << 30
    if getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert", "xmod"}:
        places -= (config.pad_token_id or 0) + 1  # which number places from there
    return int(min(places, tokenizer.model_max_length))


def best_device(name: str) -> str:
    """Return a device that is there; "auto" is the fastest one."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next((one for one, is_there in there.items() if is_there), "cpu")
    if not there.get(name, True):
        raise InputError(f"device: this machine has no {name}; take 'auto' or 'cpu'")
    return name


def _is_mixed(m: Any, device: str) -> bool:
    import torch

    if m.precision == "auto":
        return device == "cuda" and bool(torch.cuda.is_bf16_supported())
    return bool(m.precision == "bfloat16")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers: its bars, and its remark that the new layer is not trained yet."""
    from transformers.utils import logging as words

    level, had_bars = words.get_verbosity(), words.is_progress_bar_enabled()
    words.set_verbosity(logging.CRITICAL)
    words.disable_progress_bar()
    try:
        with _level("huggingface_hub", logging.CRITICAL):  # it tells of every attempt to connect
            yield
    finally:
        words.set_verbosity(level)
        if had_bars:
            words.enable_progress_bar()


@contextmanager
def _level(name: str, level: int) -> Iterator[None]:
    """Let a logger tell less for a while."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def read_tokenizer(name: str, where: dict[str, Any]) -> Any:
    """Load a tokenizer; without its files transformers makes one to which every word is unknown."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **where)
    if not set(tokenizer.get_vocab()) - {*tokenizer.all_special_tokens, *MARKS}:
        raise InputError(
            f"cannot load the encoder {name}: its tokenizer has no words; tokenizer.json or "
            "vocab.txt, with which the model was trained, must be in the folder"
        )
    return tokenizer


@contextmanager
def loading(name: str) -> Iterator[dict[str, Any]]:
    """Turn what Hugging Face raises for a model that cannot be loaded into a message."""
    # Yields the arguments that say where to look
    path = Path(name)  # a name of the hub has no slash, or one
    is_folder = path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1
    is_folder = is_folder or (path.parent != Path() and path.parent.is_dir())
    if is_folder and not path.is_dir():
        what = "it is a file" if path.exists() else "there is no such folder"
        raise InputError(f"cannot read the encoder {name}: {what}")
    if is_folder and not (path / "config.json").is_file():
        raise InputError(f"{name} is not a Hugging Face model: it has no config.json")
    try:
        with _quiet():
            yield {"local_files_only": is_folder, "trust_remote_code": False}
    except InputError:
        raise
    except Exception as error:  # each model and library raises its own
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        hint = (
            "the folder must hold config.json, model.safetensors and the files of a tokenizer"
            if is_folder
            else "no folder has that name; a name of the Hugging Face hub needs a connection or an "
            "earlier download: where there is none, give the folder of a model"
        )
        raise InputError(f"cannot load the encoder {name}: {first} ({hint})") from error


# --------------------------------------------------------------------------------------------------
# Vectors of words from a frozen encoder: dense features of a CRF, without fine-tuning.
#
# The vector of a word is the mean over its word pieces and over the encoder's layers, in the place
# in which it stands; each of its D numbers is scaled to mean 0 and the same variance over the
# training words. The weights of the encoder are not kept with a tagger, only its name and a hash.


CACHE = "GOLDSPAN_VECTORS"
"""The variable of the environment that names a folder in which vectors are kept between runs."""
STRENGTH = 5.0
"""Length of a typical word's vector: as that of as many indicator features as its square."""
WINDOW = 256
"""Most word pieces that are read at once."""
KEPT = 2
"""Texts whose vectors are kept in memory."""
LEAST = 1e-6
"""Standard deviation below which a number of the vectors counts as constant."""
Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of a frozen encoder, scaled."""

    model: str  # Name of a model of Hugging Face, or a folder with one
    digest: str  # Hash of its weights and tokenizer
    mean: Vector  # float32 [D], of the training words
    scale: Vector  # float32 [D], what is multiplied with

    @classmethod
    def fit(cls, model: str, text: Text) -> Vectors:
        """Take the scale from the words of a text."""
        frozen = open_frozen(model)
        raw = frozen.vectors(text)
        if not len(raw):
            raise InputError("vectors: there is no word to read")
        sd = raw.std(axis=0, dtype=np.float64)
        scale = np.where(sd > LEAST, STRENGTH / np.sqrt(raw.shape[1]) / np.maximum(sd, LEAST), 0.0)
        mean = raw.mean(axis=0, dtype=np.float64)
        return cls(model, frozen.digest, mean.astype(np.float32), scale.astype(np.float32))

    @property
    def size(self) -> int:
        """Numbers in a vector, D."""
        return len(self.mean)

    def of(self, text: Text) -> Vector:
        """Return the vectors of all words, float32 [n_tokens, D]."""
        return (self.opened().vectors(text) - self.mean) * self.scale

    def at(self, model: str) -> Vectors:
        """Return the same from where the encoder is on this machine."""
        moved = replace(self, model=model)
        moved.opened()
        return moved

    def is_like(self, other: Vectors | None) -> bool:
        """Return whether weights that were learned with the other vectors mean the same here."""
        return other is not None and (
            self.digest == other.digest
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.scale, other.scale)
        )

    def opened(self) -> FrozenEncoder:
        """Load the encoder, or take it from memory."""
        try:
            frozen = open_frozen(self.model)
        except InputError as error:
            raise InputError(
                f"{error}. This tagger was trained with vectors of that encoder, which are not in "
                "its file: say where the encoder is (goldspan tag --vectors NAME_OR_FOLDER, "
                "load_tagger(…, vectors=…))"
            ) from error
        if frozen.digest != self.digest:
            raise InputError(
                f"the encoder {self.model} is not the one whose vectors this tagger was trained "
                f"with: its hash is {frozen.digest}, not {self.digest}. Name the same encoder "
                "(--vectors NAME_OR_FOLDER), or train the tagger again"
            )
        return frozen


@dataclass(frozen=True, eq=False)
class FrozenEncoder:
    """An encoder that reads and does not learn."""

    model: Any  # The model of Hugging Face, without a layer for any task
    pad: int  # The piece that fills up short windows
    pieces: Pieces  # Cuts texts into windows
    digest: str  # Hash of weights and tokenizer
    device: str  # Where it runs
    _kept: OrderedDict[str, Vector] = field(default_factory=OrderedDict)

    def vectors(self, text: Text) -> Vector:
        """Return the vectors of all words, float32 [n_tokens, D]; those of late texts are kept."""
        name = f"{self.digest}-{_digest_of(text)}"
        found = self._kept.pop(name, None)
        if found is None:
            found = _from_disk(name, text.n_tokens)
        if found is None:
            found = self._read(text)
            _to_disk(name, found)
        self._kept[name] = found
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def _read(self, text: Text) -> Vector:
        import torch

        found = np.zeros((text.n_tokens, self.model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for chosen in batches_of(self.pieces, text):
                ids, mask = padded(chosen, self.pad)
                layers = self.model(
                    input_ids=torch.from_numpy(ids).to(self.device),
                    attention_mask=torch.from_numpy(mask).to(self.device),
                    output_hidden_states=True,
                ).hidden_states
                mean = torch.stack(layers).float().mean(dim=0).cpu().numpy()
                for row, window in zip(mean, chosen, strict=True):
                    found[window.token] = _means(row, window)
        return found


def _means(row: Vector, window: Window) -> Vector:
    """Return the mean over the pieces of every word that is scored in a window."""
    sums = np.concatenate([np.zeros((1, row.shape[1])), np.cumsum(row, axis=0, dtype=np.float64)])
    total = sums[window.at + window.size] - sums[window.at]
    return np.asarray(total / window.size[:, None], np.float32)


@lru_cache(maxsize=1)
def open_frozen(model: str) -> FrozenEncoder:
    """Load an encoder; the last one stays in memory."""
    check_installed(purpose="a tagger with an encoder's vectors")
    import torch
    import transformers

    make: Any = transformers.AutoModel
    with loading(model) as where:
        tokenizer = read_tokenizer(model, where)
        encoder = make.from_pretrained(model, use_safetensors=True, dtype=torch.float32, **where)
    # An encoder that goldspan fine-tuned knows marks before words with capitals.
    case = set(MARKS) <= set(tokenizer.get_vocab())
    pieces = Pieces(
        tokenizer, min(WINDOW, most_pieces(encoder.config, tokenizer)), case=case, documents=False
    )
    device = best_device("auto")
    digest = _digest_of_model(encoder, tokenizer)
    return FrozenEncoder(
        encoder.eval().to(device), tokenizer.pad_token_id or 0, pieces, digest, device
    )


def _digest_of_model(encoder: Any, tokenizer: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, value in encoder.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    for word, number in sorted(tokenizer.get_vocab().items()):
        digest.update(f"{word} {number}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _digest_of(text: Text) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(text.offsets - text.offsets[0]).tobytes())
    for word in text.words.to_pylist():
        digest.update(word.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------
# A folder of vectors, if the environment names one.


def _from_disk(name: str, n_tokens: int) -> Vector | None:
    folder = os.environ.get(CACHE)
    path = Path(folder or "") / f"{name}.npy"
    if not folder or not path.is_file():
        return None
    try:
        found = np.array(load_array(path))  # a copy: the file may be written anew
    except (OSError, ValueError, EOFError):  # damaged: read the text again
        return None
    is_right = found.dtype == np.float32 and found.ndim == 2 and len(found) == n_tokens
    return found if is_right else None


def _to_disk(name: str, vectors: Vector) -> None:
    """Keep vectors; the file appears as a whole."""
    folder = os.environ.get(CACHE)
    if not folder:
        return
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        with os.fdopen(handle, "wb") as file:
            np.save(file, vectors, allow_pickle=False)
        Path(temporary).replace(Path(folder) / f"{name}.npy")
    except OSError as error:
        raise InputError(
            f"cannot keep vectors in {folder}, which {CACHE} names: {error.strerror}"
        ) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
