"""A pre-trained encoder as tagger: token classification on soft or hard labels.

A model of Hugging Face scores the tags of a word at its first word piece (Devlin et al. 2019). It
is fine-tuned with the cross-entropy against what is believed of every token,

    loss = - sum_t w_t sum_j q_t(j) ln p_t(j) / sum_t w_t,   p_t = softmax(logits of token t),

where q_t is one tag, the posterior of a consensus, or, where several tags are possible, p_t among
them. Tagging takes ln p_t, divided by a temperature, as scores of a chain in which the pair table
forbids what the encoding forbids: labels are always well-formed, and marginals, entropies and span
posteriors are those of all well-formed sequences, exactly as for the CRF.

The best epoch by span F1 on held-out documents is kept (early stopping), and the temperature is the
one with the smallest cross-entropy there (Guo et al. 2017). torch and transformers are loaded when
they are needed: importing this module loads neither.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np

from goldspan.errors import InputError, NotFittedError
from goldspan.params import Number, OneOf, Rounds, Seed, Whole, result
from goldspan.protocols import Checkpoint, Progress, Runner
from goldspan.spans import Codec
from goldspan.tagger.base import Tagger, token_rule
from goldspan.tagger.decoding import Potentials
from goldspan.tagger.finetuning import (
    SoftTags,
    TokenTargets,
    Trainer,
    best_temperature,
    documents_of,
    in_order_of,
    of_soft_tags,
    unary_potentials,
    words_of,
)
from goldspan.tagger.network import Network, OnnxNetwork, check_installed
from goldspan.tagger.targets import Labels, Masks

__all__ = ["Encoder", "SoftTags", "check_installed"]

FILE = "goldspan.json"
"""What a folder has beside the files of Hugging Face."""
FORMAT, VERSION = "goldspan encoder", 1


class Encoder(Tagger):
    """A pre-trained encoder with a layer that scores tags, fine-tuned.

    Needs the extra `encoder`. It runs on the CPU, and on CUDA or MPS where they are there (not
    tested by goldspan's own tests).

    Args:
        model: Name of a model of Hugging Face, or a folder with one: its weights (safetensors),
            `config.json` and tokenizer. A folder that `save` wrote will do.
        encoding: Of the tags: BIO, IOBES, … or PLAIN.
        hard: Whether what the encoding forbids is impossible in tagging.
        epochs: Most passes over the items.
        learning_rate: Of AdamW; it rises over the first tenth of all steps and falls to 0. None:
            5e-5 · (768 / the encoder's width)².
        batch_pieces: Most word pieces per step of training, with padding.
        window: Most word pieces that are read at once, at least 64; the encoder may read fewer.
            Longer items are cut into windows that overlap.
        documents: Whether the items of a document are read side by side, up to a window.
        case: Whether words with capitals are marked: "yes", "no", or "auto": for encoders that
            read small letters only.
        held_out: Share of the documents to stop early and calibrate by, if `fit` is given no
            validation set; 0 for none.
        patience: Epochs without a better score on held-out items before it stops.
        power: Soft labels are raised to this power.
        weight_decay: Of AdamW.
        device: "auto", "cpu", "cuda" or "mps".
        precision: "float32", "bfloat16" for the products of matrices (faster where the processor is
            made for it), or "auto": bfloat16 on CUDA where it is supported.
        random_state: Seed of the new layer, dropout, batches and held-out documents.

    Attributes:
        temperature_: What scores are divided by.
        trace_: Mean loss of every epoch.
        scores_: Span F1 on held-out items after every epoch; empty without any.
        converged_: Whether it stopped early.
        stop_reason_: "max_iter" (all epochs), "validation", or "interrupted".

    >>> Encoder(model="bert-base-cased", epochs=4)
    Encoder(model='bert-base-cased', epochs=4)
    """

    name = "encoder"

    model: str = ""
    encoding: str = "BIO"
    hard: bool = True
    epochs: Rounds = 8
    learning_rate: Annotated[float | None, Number(above=0, most=1)] = None
    batch_pieces: Annotated[int, Whole(1)] = 512
    window: Annotated[int, Whole(64)] = 256
    documents: bool = False
    case: Annotated[str, OneOf(("auto", "yes", "no"))] = "auto"
    held_out: Annotated[float, Number(0, 0.5)] = 0.1
    patience: Annotated[int, Whole(1)] = 2
    power: Annotated[float, Number(above=0)] = 1.0
    weight_decay: Annotated[float, Number(0)] = 0.01
    device: Annotated[str, OneOf(("auto", "cpu", "cuda", "mps"))] = "auto"
    precision: Annotated[str, OneOf(("auto", "float32", "bfloat16"))] = "auto"
    random_state: Seed = 0
    network_: Network | OnnxNetwork = result()
    temperature_: float = result()

    @property
    def is_fitted(self) -> bool:
        """Whether it has learned something."""
        return "network_" in vars(self)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        weight: Sequence[float] | None = None,
        start: Encoder | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Fine-tune.

        Args:
            X: Lists of words, or a `Text`; its groups are documents.
            y: Lists of tags, or `SoftTags`. In lists None where a tag is not known, or several tags
                of which one is right. Items of which nothing is known are left out.
            weight: How much every item counts, [n_items], from 0 to 1e12 and not all 0.
            start: A trained `Encoder` of the same model to begin with.
            validation: Items and tags to stop early and calibrate by; by default some documents are
                held out.
            runner: Not used: torch has threads of its own.
            progress: Called with step, most steps, loss, seconds left.
            checkpoint: Where the state is kept after every epoch; training goes on from it.

        Raises:
            MissingExtraError: torch or transformers are not installed.
            InputError: There is nothing to learn from, X and y do not fit, a parameter is faulty,
                or the model cannot be loaded.
            KeyboardInterrupt: Ctrl-C. After the first epoch the tagger has the best weights by then
                and can be used; `stop_reason_` is "interrupted".
        """
        del runner
        self._check()
        check_installed()
        vars(self).pop("network_", None)
        task = self._task(X, y, weight)
        self.codec_, self.n_repaired_ = task.codec, task.n_repaired
        self.tokens_ = token_rule(task.text)
        self.documents_ = self.documents and task.text.group is not None
        train, held_out = self._split(task, validation)
        network = Network.open(self, task.codec)
        if start is not None:
            if isinstance(start.network_, OnnxNetwork):
                raise InputError("start: an exported encoder does not learn")
            network.take_over(start.network_)
        trainer = Trainer(self, network, train, held_out)
        try:
            trainer.run(progress, checkpoint)
        except KeyboardInterrupt:
            if trainer.trace:
                self._keep(trainer, held_out)
            raise
        self._keep(trainer, held_out)
        return self

    def log_potentials(self, X: Any) -> Potentials:
        """Return the log scores of a text; see `Tagger.log_potentials`."""
        self._check_fitted()
        text = words_of(X)
        return unary_potentials(self.network_.logits(text), self.temperature_, text, self._masks())

    def save(self, path: str | Path) -> None:
        """Write a folder of Hugging Face (model, tokenizer) with a file `goldspan.json`.

        It appears as a whole or not at all; an older one of goldspan is replaced.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: The folder cannot be written, or something else is there.
        """
        if not self.is_fitted:
            raise NotFittedError("Encoder: call fit before save")
        network = self.network_
        if isinstance(network, OnnxNetwork):
            raise InputError("an exported encoder is not saved again: copy its folder")
        with new_folder(Path(path)) as folder:
            network.save(folder)
            self._write_facts(folder, "torch")

    def export(self, path: str | Path) -> None:
        """Write a folder that ONNX Runtime tags with, without torch; `load_tagger` reads it.

        Needs the extra `onnx` too. It appears as a whole or not at all.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: The folder cannot be written, or something else is there.
            MissingExtraError: onnxscript is not installed.
        """
        self._check_fitted()
        network = self.network_
        if isinstance(network, OnnxNetwork):
            raise InputError("this encoder was exported already: copy its folder")
        with new_folder(Path(path)) as folder:
            network.export(folder)
            self._write_facts(folder, "onnx")

    def _write_facts(self, folder: Path, runtime: str) -> None:
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "runtime": runtime,
            "tags": list(self.codec_.tags),
            "encoding": self.codec_.encoding,
            "temperature": self.temperature_,
            "documents": self.documents_,
            "tokens": self.tokens_,
            "marks": self.network_.case,
            "params": self.get_params(),
        }
        (folder / FILE).write_text(
            json.dumps(facts, indent=1, default=lambda value: value.item()) + "\n", "utf-8"
        )

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto") -> Encoder:
        """Read a folder that `save` wrote, here or on another machine; `load_tagger` calls it.

        Raises:
            InputError: There is no such folder, or it holds something else or a newer version.
            MissingExtraError: torch or transformers are not installed.
        """
        facts = read_facts(path)
        is_onnx = facts.get("runtime") == "onnx"
        check_installed("onnx" if is_onnx else "encoder")
        try:
            params = dict(facts["params"])
            tagger = cls().set_params(**{**params, "device": device})
            tagger.codec_ = Codec(tuple(facts["tags"]), facts["encoding"])
            tagger.temperature_ = float(facts["temperature"])
            tagger.documents_, tagger.tokens_ = bool(facts["documents"]), str(facts["tokens"])
            tagger.trace_, tagger.scores_ = (), ()
            tagger.converged_, tagger.stop_reason_ = True, "read from a folder"
            marks = bool(facts["marks"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: {FILE} is damaged: {error}") from None
        if not 0 < tagger.temperature_ < np.inf:
            raise InputError(
                f"{path}: {FILE} is damaged: the temperature is {facts['temperature']}"
            )
        kind = OnnxNetwork if is_onnx else Network
        tagger.network_ = kind.read(tagger, Path(path), tagger.codec_, marks=marks)
        return tagger

    def _masks(self) -> Masks:
        return Masks.of(self.codec_, hard=self.hard)

    def _keep(self, trainer: Trainer, held_out: TokenTargets | None) -> None:
        trainer.restore_best()
        self.network_ = trainer.network
        self.trace_, self.scores_ = tuple(trainer.trace), tuple(trainer.scores)
        self.stop_reason_ = trainer.stop_reason
        self.converged_ = trainer.stop_reason == "validation"
        self.temperature_ = 1.0
        if held_out is not None:
            logits = self.network_.logits(held_out.text)
            self.temperature_ = best_temperature(logits, held_out, self._masks())

    def _task(self, X: Any, y: Any, weight: Any, codec: Codec | None = None) -> TokenTargets:
        """Check what is to be learned, and make arrays of it."""
        text = words_of(X)
        if isinstance(y, SoftTags):
            return of_soft_tags(text, y, weight, self.power)
        labels = Labels.of(y, self.encoding, weight)
        if labels.partial:
            text, labels = labels.leave_out_unknown(text)
        labels.check_lengths(text)
        labels.check_weight()
        known, n_repaired = labels.known(repair=self.hard)
        tags = labels.codec
        if codec is not None and codec != tags:
            known, tags = in_order_of(codec, tags, known), codec
        size = known.sum(axis=1)
        each = np.repeat(labels.weight, np.diff(text.offsets)) * (size < known.shape[1])
        target = (known / np.maximum(size, 1)[:, None]).astype(np.float32)
        open_tokens = (size > 1) & (size < known.shape[1])
        return TokenTargets(text, tags, target, open_tokens, each.astype(np.float32), n_repaired)

    def _split(
        self, task: TokenTargets, validation: tuple[Any, Any] | None
    ) -> tuple[TokenTargets, TokenTargets | None]:
        """Return what to learn from, and what to stop and calibrate by."""
        if validation is not None:
            X, y = validation
            if isinstance(y, SoftTags) and y.codec != task.codec:
                raise InputError("validation: its tags are not those that are learned")
            return task, self._task(X, y, None, task.codec).whole()
        rng = np.random.default_rng(self.random_state)
        document = documents_of(task.text)
        n_documents = int(document.max()) + 1
        n_out = round(self.held_out * n_documents)
        if n_out < 1:
            return task, None
        out = np.isin(document, rng.permutation(n_documents)[:n_out])
        held_out = task.select(np.flatnonzero(out)).whole()
        return (task.select(np.flatnonzero(~out)) if held_out else task), held_out


# --------------------------------------------------------------------------------------------------
# Folders.


def read_facts(path: str | Path) -> dict[str, Any]:
    """Read `goldspan.json` of a folder."""
    file = Path(path) / FILE
    try:
        facts = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"cannot read {path}: it is a folder without {FILE}, which `goldspan train encoder` "
            "writes into the folder of a tagger"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise InputError(f"{file} is not of an encoder tagger of goldspan")
    if facts.get("version") != VERSION:
        raise InputError(
            f"{path} is a tagger of version {facts.get('version')}: this goldspan reads version "
            f"{VERSION}: upgrade goldspan, or train it again"
        )
    return facts


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path` when all went well."""
    if path.exists() and not (path / FILE).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"cannot write {path}: something else is there; name another folder")
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror} (does the folder exist?)"
        ) from None
    try:
        yield made
        made.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            path.replace(old / "old")
            made.replace(path)
            shutil.rmtree(old)
        else:
            made.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
