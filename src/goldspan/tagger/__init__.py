"""Taggers: a linear-chain CRF, an HMM, and pre-trained encoders; on hard or soft labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from goldspan._lazy import lazy
from goldspan.errors import InputError

if TYPE_CHECKING:
    from goldspan.tagger.base import FeatureTagger, Tagger
    from goldspan.tagger.crf import CRF as CRF
    from goldspan.tagger.encoder import Encoder as Encoder
    from goldspan.tagger.encoder import SoftTags as SoftTags
    from goldspan.tagger.features import Text as Text
    from goldspan.tagger.hmm import HMM as HMM

__getattr__, __dir__, __all__ = lazy(__name__, also=("load_tagger",))


def _kinds_in_files() -> dict[str, type[FeatureTagger]]:
    from goldspan.tagger.crf import CRF
    from goldspan.tagger.hmm import HMM

    return {"crf": CRF, "hmm": HMM}


def tagger_kinds() -> dict[str, Callable[[], Tagger]]:
    """Return what makes a tagger of each kind, by its name."""
    from goldspan.tagger.encoder import Encoder

    return {**_kinds_in_files(), "encoder": Encoder}


def load_tagger(path: str | Path, *, vectors: str | None = None) -> Tagger:
    """Read a tagger that `Tagger.save` wrote, here or on another machine.

    A file is a CRF or an HMM, a folder an encoder.

    Args:
        path: The file or folder.
        vectors: Where the frozen encoder is whose vectors a CRF was trained with: a name of Hugging
            Face or a folder. By default where it was then.

    Raises:
        InputError: There is no such file, it is not a tagger, it is damaged, or of another version;
            or `vectors` is not the encoder that the tagger was trained with.
        MissingExtraError: It is an encoder, and torch or transformers are not installed.

    >>> import tempfile
    >>> from goldspan.tagger import CRF
    >>> tagger = CRF().fit([["Rome", "wins"]], [["B-LOC", "O"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tagger.save(f"{folder}/ner.goldspan")
    ...     load_tagger(f"{folder}/ner.goldspan").predict([["Rome", "wins"]])
    [['B-LOC', 'O']]
    """
    from goldspan.tagger.encoder import Encoder
    from goldspan.tagger.features import FeatureMap
    from goldspan.tagger.model_file import DAMAGED, damaged, read_model

    if Path(path).is_dir():
        if vectors is not None:
            raise InputError(f"{path} is an encoder tagger, which has no frozen vectors")
        return Encoder.load(path)
    kinds = _kinds_in_files()
    model = read_model(path, kinds)
    if vectors is not None:
        known = model.features
        if not isinstance(known, FeatureMap) or known.vectors is None:
            raise InputError(f"{path} was trained without vectors of an encoder")
        moved = replace(known, vectors=known.vectors.at(vectors))
        model = replace(model, features=moved, params={**model.params, "vectors": vectors})
    try:
        tagger = kinds[model.kind](**model.params)
    except DAMAGED as error:
        raise damaged(path, error) from None
    tagger.codec_, tagger.features_, tagger.weights_ = model.codec, model.features, model.weights
    tagger.documents_, tagger.tokens_ = model.documents, model.tokens
    tagger.n_repaired_ = 0
    return tagger
