"""Reading taggers from files; `Tagger.save` writes them."""

from __future__ import annotations

from pathlib import Path

from goldspan.tagger.base import Tagger
from goldspan.tagger.crf import CRF
from goldspan.tagger.hmm import HMM
from goldspan.tagger.model_file import DAMAGED, damaged, read_model

KINDS: dict[str, type[Tagger]] = {"crf": CRF, "hmm": HMM}


def load_tagger(path: str | Path) -> Tagger:
    """Read a tagger that `Tagger.save` wrote, here or on another machine.

    Raises:
        InputError: There is no such file, it is not a tagger, it is damaged, or of another version.

    >>> import tempfile
    >>> tagger = CRF().fit([["Rome", "wins"]], [["B-LOC", "O"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tagger.save(f"{folder}/ner.goldspan")
    ...     load_tagger(f"{folder}/ner.goldspan").predict([["Rome", "wins"]])
    [['B-LOC', 'O']]
    """
    model = read_model(path, KINDS)
    try:
        tagger = KINDS[model.kind](**model.params)
    except DAMAGED as error:
        raise damaged(path, error) from None
    tagger.codec_, tagger.features_, tagger.weights_ = model.codec, model.features, model.weights
    tagger.documents_, tagger.tokens_ = model.documents, model.tokens
    tagger.n_repaired_ = 0
    return tagger
