"""The linear-chain conditional random field (Lafferty et al. 2001; paper 000, section 3).

    p(y | x) = exp{sum_t W[y_t] . phi(x, t) + T[y_{t-1}, y_t] + start[y_1] + end[y_n]} / Z(x)

with a Gaussian prior on the weights, trained by L-BFGS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from goldspan.protocols import Progress, Runner, Serial
from goldspan.tagger.base import Tagger
from goldspan.tagger.carry import carry
from goldspan.tagger.early import Watch
from goldspan.tagger.features import Features
from goldspan.tagger.lbfgs import Interrupted, Minimum
from goldspan.tagger.parameters import MOST, check_number, check_whole
from goldspan.tagger.training import Masks, Targets, train
from goldspan.tagger.weights import Weights


class CRF(Tagger):
    r"""A linear-chain CRF.

    Args:
        templates: A named set ("default", "rodrigues"), a TOML file, or a list of templates; unused
            for dictionaries of features.
        encoding: Of the tags: BIO, IOBES, … or PLAIN.
        c2: Penalty of the squared weights, at most 1e12; the Gaussian prior has variance
            1 / (2 c2).
        hard: Whether what the encoding forbids is impossible, in training and in tagging.
        bias: Whether the first and the last tag have weights of their own.
        min_count: Features that occur less often are left out.
        hash_bits: Hash features into 2 ** hash_bits numbers; 0 numbers them one by one.
        gazetteers: Lists of words by name, for `gazetteer:NAME` templates.
        max_iter: Most steps of L-BFGS.
        tol: Relative decrease of the objective over ten steps at which to stop.
        patience: With a validation set: rounds of ten steps without a better F1 before it stops.

    Attributes:
        trace_: Minus the penalised log-likelihood after every step.
        converged_: Whether it came to its end.
        stop_reason_: Why training stopped: "tol", "max_iter", "validation", "line search", or
            "interrupted".
        n_repaired_: Malformed training tags that were made well-formed (with `hard`).

    >>> tagger = CRF().fit([["Rome", "wins"], ["Kim", "Lee", "wins"]],
    ...                    [["B-LOC", "O"], ["B-PER", "I-PER", "O"]])
    >>> tagger.predict([["Rome", "wins"]])
    [['B-LOC', 'O']]
    """

    name = "crf"

    def __init__(
        self,
        *,
        templates: str | Sequence[str] = "default",
        encoding: str = "BIO",
        c2: float = 0.5,
        hard: bool = True,
        bias: bool = True,
        min_count: int = 1,
        hash_bits: int = 0,
        gazetteers: Mapping[str, Sequence[str]] | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        patience: int = 3,
    ) -> None:
        self.templates = templates
        self.encoding = encoding
        self.c2 = c2
        self.hard = hard
        self.bias = bias
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.gazetteers = gazetteers
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        weight: Sequence[float] | None = None,
        start: CRF | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train.

        Args:
            X: Lists of words, a `Text`, or lists of dictionaries of features.
            y: Lists of tags. Where a token's tag is not known stands None, or several tags of which
                one is right (a set, list or tuple); what is known of the item then counts, summed
                over all that agrees with it. Items of which nothing is known are left out.
            weight: How much every item counts, [n_items], from 0 to 1e12 and not all 0.
            start: A trained CRF to begin with; weights of features that it knows are taken over.
            validation: Items and tags on which to stop early.
            runner: Where to work.
            progress: Told step, most steps, objective, seconds left.

        Raises:
            InputError: Nothing to learn from, X and y do not fit, a template or a parameter is
                faulty, a feature is NaN, or the objective is not finite.
            KeyboardInterrupt: Ctrl-C. After the first step the tagger has the weights found by
                then, ready for use, and `stop_reason_` is "interrupted".
        """
        features, targets = self._prepare(X, y, weight)
        return self.fit_targets(
            features, targets, start=start, validation=validation, runner=runner, progress=progress
        )

    def fit_targets(
        self,
        features: Features,
        targets: Targets,
        *,
        start: CRF | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on soft targets; `codec_` and `features_` must be set. For other methods."""
        self._check()
        begin = None
        if start is not None:
            known = (start.weights_, start.features_, start.codec_)
            begin = carry(*known, self.features_, self.codec_)
        watch = Watch(self, validation, progress)
        try:
            weights, found = train(
                features,
                targets,
                Masks.of(self.codec_, hard=self.hard),
                c2=self.c2,
                runner=runner or Serial(),
                start=begin,
                max_iter=self.max_iter,
                tol=self.tol,
                callback=watch,
                bias=self.bias,
            )
        except Interrupted as stop:
            shape = self.features_.n_features, len(self.codec_.tags)
            self._keep(Weights.of_vector(stop.found.x, *shape), stop.found)
            raise
        self._keep(watch.better_than(weights) or weights, found)
        return self

    def _check(self) -> None:
        check_number("c2", self.c2, 0, MOST)
        check_number("tol", self.tol, 0)
        for name in ("max_iter", "patience"):
            check_whole(name, getattr(self, name), 1)

    def _keep(self, weights: Weights, found: Minimum) -> None:
        self.weights_ = weights
        self.trace_ = found.trace
        self.converged_ = found.converged
        self.stop_reason_ = found.stop_reason
