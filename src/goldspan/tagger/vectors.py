"""Vectors of words from a frozen encoder: dense features of a CRF, without fine-tuning.

An encoder of Hugging Face reads a text once. The vector of a word is the mean over its word pieces
and over the encoder's layers, in the place in which it stands; each of its D numbers is scaled to
mean 0 and the same variance over the training words. To a CRF they are features like others, with
weights that are learned.

The weights of the encoder are not kept with a tagger, only its name and a hash of it: the same
encoder must be there when the tagger is used. torch and transformers are loaded when they are
needed: importing this module loads neither.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import load_array
from goldspan.errors import InputError

if TYPE_CHECKING:
    from goldspan.tagger.pieces import Pieces, Window
    from goldspan.tagger.text import Text

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

        from goldspan.tagger.network import SCORED_PIECES, padded
        from goldspan.tagger.pieces import by_length

        windows = self.pieces.windows(text)
        found = np.zeros((text.n_tokens, self.model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for batch in by_length(windows, SCORED_PIECES):
                chosen = [windows[n] for n in batch]
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
    from goldspan.tagger.network import (
        best_device,
        check_installed,
        loading,
        most_pieces,
        read_tokenizer,
    )
    from goldspan.tagger.pieces import MARKS, Pieces

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
