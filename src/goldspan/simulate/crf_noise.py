"""`crf_noise(variance)`: a consistent worker (paper 000, section 4.1.1).

A CRF is trained on the truth; Gaussian noise of the given variance is added to all its parameters,
those of features as those of steps; the best path of what results is the answer. Such a worker
errs alike on alike words. One CRF serves all workers of a truth: only the noise is their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.gold import translate
from goldspan.errors import InputError
from goldspan.protocols import Progress, Runner
from goldspan.simulate.base import Assignment, Codes, Scene, SimulatedWorker
from goldspan.simulate.truth import known_truth
from goldspan.spans import Codec
from goldspan.tagger import CRF, Text
from goldspan.tagger.base import potentials_of, transform
from goldspan.tagger.chain import decode
from goldspan.tagger.features import Features
from goldspan.tagger.training import Masks
from goldspan.tagger.weights import Weights

TEMPLATES = "rodrigues"
"""Feature templates unless others are named: those of paper 000."""
MOST_NOISE = 1e6
"""Largest variance: weights are of size 1 to 10, so that long before answers are mere noise."""


@dataclass(frozen=True, eq=False)
class TruthTagger:
    """A trained CRF and the features of the items to answer, found once for all workers.

    Attributes:
        crf: The CRF.
        features: Features of the items.
        tagset: Of the answers; it holds the CRF's tags.

    >>> from goldspan.simulate import draw_truth, simulate_crowd
    >>> truth = draw_truth(30, labels=2, seed=1)
    >>> tagger = TruthTagger.train(truth)
    >>> for repeat in range(30):
    ...     crowd = simulate_crowd(truth, ["crf_noise(0.1) x5"], seed=repeat, tagger=tagger)
    """

    crf: CRF
    features: Features
    tagset: Codec

    @classmethod
    def train(
        cls,
        truth: Any,
        *,
        runner: Runner | None = None,
        progress: Progress | None = None,
        **params: Any,
    ) -> TruthTagger:
        """Train a CRF on a truth, to answer the same items.

        Args:
            truth: A crowd with gold at every token, or what `read_crowd` reads.
            runner: Where to work.
            progress: Who is told of every step.
            params: Parameters of the `CRF`; `templates` is "rodrigues" by default.

        Raises:
            InputError: Some gold is not known, or a parameter is wrong.
        """
        crowd = known_truth(truth)
        given = {"templates": TEMPLATES, "encoding": crowd.tagset.encoding, **params}
        crf = CRF().set_params(**given)
        tags = crowd.tagset.decode_complete(crowd.gold_tagged)
        crf.fit(_text(crowd), tags, runner=runner, progress=progress)
        return cls.of(crf, crowd)

    @classmethod
    def of(cls, crf: CRF, truth: Any) -> TruthTagger:
        """Take a CRF that was trained elsewhere, to answer the items of a truth.

        Raises:
            InputError: The CRF knows tags that the truth's tag set lacks, or takes no words.
        """
        if not isinstance(crf, CRF) or "weights_" not in vars(crf):
            raise InputError(f"tagger must be a trained CRF or a TruthTagger, not {crf!r}")
        crowd = known_truth(truth)
        known, wanted = crf.codec_, crowd.tagset
        strange = [tag for tag in known.tags if tag not in wanted.tags]
        if strange or known.encoding != wanted.encoding:
            raise InputError(
                f"the tagger gives {known.encoding} tags {' '.join(known.tags)}; the truth has "
                f"{wanted.encoding} {' '.join(wanted.tags)}: train it on such tags"
            )
        return cls(crf, transform(crf.features_, _text(crowd)), wanted)

    def answer(self, items: NDArray[np.int64], variance: float, rng: np.random.Generator) -> Codes:
        """Decode items under weights with noise.

        Args:
            items: int64 [n_items], indices of items.
            variance: Of the noise.
            rng: The worker's; it gives the same noise whatever the items.

        Returns:
            int16 [n_tokens], codes of the tag set.
        """
        weights = self.crf.weights_
        vector = weights.vector
        vector += np.sqrt(variance) * rng.standard_normal(len(vector))
        noisy = Weights.of_vector(vector, *weights.state.shape)
        masks = Masks.of(self.crf.codec_, hard=self.crf.hard)
        potentials = potentials_of(self.features.select(items), noisy, masks)
        codes = decode(potentials, self.crf.codec_, least=np.inf).codes
        return translate(codes, self.crf.codec_, self.tagset)


@dataclass(frozen=True)
class CrfNoise(SimulatedWorker):
    """Answers as a CRF does whose parameters were disturbed.

    Attributes:
        variance: Of the noise, at most 1e6; 0 gives the CRF's own answers.
        templates: Features of the CRF, a named set or a TOML file. By default it is the tagger
            that was given to `simulate_crowd`, and if none was, one with the set "rodrigues".
    """

    variance: float
    templates: str | None = None
    name = "crf_noise"

    def __post_init__(self) -> None:
        self.check_number("variance", most=MOST_NOISE)

    def prepare(self, scene: Scene) -> None:
        """Train the CRF unless another worker did."""
        key = self._key(scene)
        if key not in scene.taggers:
            scene.taggers[key] = TruthTagger.train(
                scene.truth, templates=key, runner=scene.runner, progress=scene.progress
            )

    def answer(self, work: Assignment) -> Codes:
        """Decode with noise."""
        tagger = work.scene.taggers[self._key(work.scene)]
        return tagger.answer(work.items, self.variance, work.draws.generator("noise"))

    def _key(self, scene: Scene) -> str:
        if self.templates is not None:
            return self.templates
        return "" if "" in scene.taggers else TEMPLATES


def _text(crowd: Crowd) -> Text:
    groups = None
    if crowd.groups is not None:
        groups = [str(name) for name in crowd.groups.to_pylist()]
    return Text.of(crowd.tokens_list, groups)
