"""The method that a user need not think about: many methods, and hidden answers that weigh them.

Single labels are the matter of `auto_labels`, spans of `auto_spans`. Workers who err together are
found first (`families`). Nothing is tuned to a crowd: what is learned about it is learned from its
answers (docs/math.md, sections 12 and 13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.aggregation.auto_labels import combine_labels
from goldspan.aggregation.auto_spans import (
    MOST_CUTS,
    Case,
    Steps,
    combine_spans,
    fit_all,
    names_for,
    teaches_well,
)
from goldspan.aggregation.base import Aggregator, FitContext, has_words, legal_known
from goldspan.aggregation.bsc.family import Bsc, check_encoder_params
from goldspan.aggregation.bsc.posterior import consensus_of
from goldspan.aggregation.bsc.text import Folds, Settings, TextModel
from goldspan.aggregation.consensus import Consensus, unanswered
from goldspan.aggregation.documents import DOCUMENTS
from goldspan.aggregation.families import check_families, families_for
from goldspan.aggregation.judge import Choice
from goldspan.aggregation.machines import (
    answer_everything,
    check_models,
    describe,
    ids_of,
    models_of,
    split,
)
from goldspan.aggregation.mixture import posterior_of_probs
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.params import MOST, Number, OneOf, Rounds, Seed, Whole, result
from goldspan.protocols import Runner

TEXTS = ("auto", "none")
TOO_FEW = "people have answered too few of the items: models are fitted like people"
OVERLAP = 0.1
"""Share of the items with answers of two workers below which a warning is due."""


class Auto(Aggregator):
    """The mixture of all methods that predicts hidden answers best.

    `update` and `start=` fit the methods that were chosen before and judge none, as long as the
    answers have not grown or shrunk by a quarter since all were judged.

    For single labels only `families`, `models` and `random_state` have an effect: their words are
    not read, there are no CRFs, and a fifth of the answers is hidden.

    Args:
        text: "auto" uses the words of the items where there are any; "none" the answers only.
        families: Workers who err together count as fewer. "auto" finds them by the answers, "none"
            does not look for any; or a CSV file with columns worker and family, or a mapping from
            worker ids to names.
        models: Ids of workers that are models: their answers count beside people and text, but
            labels and CRFs are not learned from them, where people have answered a quarter of the
            items. By default those that the crowd's `worker_facts` call llm, tagger, python or
            prediction; an empty list: nobody is one.
        documents: "auto": places that nobody marked and that hold the words of a span of the same
            document are spans too, as far as the answers say that such places were missed; "none".
        share: Of the answers that is hidden to judge the candidates.
        templates: Feature templates of the CRF: a named set, a TOML file, or a list.
        c2: Penalty of the CRF's squared weights.
        min_count: Features that occur less often are left out.
        vectors: A model of Hugging Face or a folder with one, whose vectors of the words are
            features of the CRF, too (needs the extra `encoder`).
        encoder: The model of Hugging Face, or the folder with one, that is fine-tuned in the place
            of the CRF (needs the extra `encoder`). It never is unless it is named: every round
            fine-tunes `folds` encoders, so that a run takes hours instead of minutes.
        encoder_params: Other parameters of `Encoder`, as a mapping or in one string,
            "epochs=2, precision=bfloat16".
        folds: Into how many parts documents are dealt, each scored by a CRF that never saw it.
        rounds: How often workers and CRFs are updated in turn, at most.
        random_state: Seed of the choice of hidden answers and of the deal.

    >>> import goldspan
    >>> result = goldspan.aggregate("examples/crowd.tsv", "auto")
    >>> result.candidates[0].weight > 0
    True
    """

    name = "auto"
    can_go_on: ClassVar[bool] = True
    text_power: ClassVar[float] = Bsc.text_power
    _choice: Choice | None = result()

    text: Annotated[str, OneOf(TEXTS)] = "auto"
    families: Annotated[Any, check_families] = "auto"
    models: Annotated[Any, check_models] = None
    documents: Annotated[str, OneOf(DOCUMENTS)] = "auto"
    share: Annotated[float, Number(0.01, 0.5)] = 0.1
    templates: str | Sequence[str] = "default"
    c2: Annotated[float, Number(0, MOST)] = 4.0
    min_count: Annotated[int, Whole(1)] = 2
    vectors: str | None = None
    encoder: str | None = None
    encoder_params: Annotated[Any, check_encoder_params] = None
    folds: Annotated[int, Whole(2)] = 5
    rounds: Rounds = 4
    random_state: Seed = 0

    def _check(self) -> None:
        """Reject parameters that make no sense, and an encoder where none can be trained."""
        super()._check()
        if self.encoder is None:
            return
        if self.vectors is not None:
            raise InputError("auto: vectors are features of the CRF: name vectors or an encoder")
        from goldspan.aggregation.bsc.encoder import encoder_params
        from goldspan.tagger.network import check_installed

        encoder_params(self.encoder, self.encoder_params)
        check_installed(purpose="auto with an encoder")

    def fit_chosen(
        self, crowd: Any, choice: Choice, gold: Any = None, *, runner: Runner | None = None
    ) -> Self:
        """Aggregate by methods that were chosen before, whatever the crowd has become."""
        self._choice = choice
        try:
            return self.fit(crowd, gold, runner=runner)
        finally:
            del self._choice

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        choice, said = self._begun(crowd, context)
        found = (self._labels if crowd.is_classification else self._spans)(crowd, context, choice)
        n_known = 0 if context.known is None else int((context.known >= 0).sum())
        notes = [f"{n_known} tokens of known truth"] if n_known else []
        notes += said
        if context.checkpoint is not None:
            notes.append("auto makes no use of a checkpoint")
        if choice is not None and found.memory is choice:
            n_new = len(crowd.latest) - choice.n_answers
            now = f"; now there are {len(crowd.latest)}" if n_new else ""
            notes.append(f"judged when there were {choice.n_answers} answers{now}")
        elif choice is not None:
            notes.append("judged and fitted from the beginning: the earlier choice does not suit")
        named = [found.families.note] if found.families else []
        is_found = self.families == "auto"  # of given families nobody need be warned
        notes += [*found.notes, *([] if is_found else named)]
        return replace(
            found,
            candidates=found.memory.candidates,
            stop_reason="candidates averaged",
            notes=(*notes, *_unanswered(crowd, found.codes, context)),
            cautions=(*(named if is_found else []), *found.cautions, *_overlap(crowd)),
        )

    def _begun(self, crowd: Crowd, context: FitContext) -> tuple[Choice | None, list[str]]:
        """Return the choice to go on from, if it holds, and what is to be said of it."""
        fixed = vars(self).get("_choice")
        if fixed is not None or context.start is None:
            return fixed, []
        choice, n_answers = context.start.memory, len(crowd.latest)
        if not isinstance(choice, Choice):
            return None, [
                f"fitted from the beginning: the earlier result is of {context.start.method}"
            ]
        if not choice.holds(n_answers):
            grown = f"{choice.n_answers} answers have become {n_answers}"
            return None, [f"judged and fitted from the beginning: {grown}"]
        return choice, []

    def _labels(self, crowd: Crowd, context: FitContext, choice: Choice | None) -> Consensus:
        """Aggregate single labels, without their words."""
        given = models_of(crowd, self.models)
        people, others = split(crowd, given)
        seed, ids = self.random_state or 0, ids_of(others)
        if choice is not None and choice.models != ids:
            choice = None
        families = families_for(self.families, people, context.known)
        opinions = families.opinions(people) if families and self.families == "auto" else [families]
        found = combine_labels(people, context, seed, opinions, choice, others)
        families = opinions[0 if found.is_bold else -1]
        made = Choice(
            tuple(found.candidates), len(crowd.latest), is_bold=found.is_bold,
            models_power=found.models_power, models=ids,
        )  # fmt: skip
        notes = (*found.reasons, *([TOO_FEW] if given and others is None else []))
        if others is not None:
            notes = (*notes, describe(others))
        posterior = posterior_of_probs(crowd, found.probs, context.runner)
        result = consensus_of(crowd, posterior, decode="viterbi", method=self.name)
        is_same = choice is not None and made.candidates == choice.candidates
        return replace(result, memory=choice if is_same else made, families=families, notes=notes)

    def _spans(self, crowd: Crowd, context: FitContext, choice: Choice | None) -> Consensus:
        """Aggregate tagged tokens."""
        if context.known is not None:
            context = replace(context, known=legal_known(context.known, crowd)[0])
        given, seed = models_of(crowd, self.models), self.random_state or 0
        case, said = self._case(crowd, context, given), [TOO_FEW] if given else []
        is_open = not given and self.models is None and case.folds is not None
        if choice is not None:
            suits = choice.models == ids_of(case.others) or (is_open and choice.models)
            choice = choice if choice.confirmation and suits else None
        progress = Steps(
            context, len(case.beside_text) * self.rounds + 1 + (0 if choice else MOST_CUTS)
        )
        if is_open:
            said, case = self._undeclared(case, choice, seed, progress)
        made = combine_spans(crowd, case, self.share, seed, progress, choice)
        if case.others is not None:
            said = [*(one for one in said if one != TOO_FEW), describe(case.others)]
        return replace(made, notes=(*made.notes, *said))

    def _undeclared(
        self, case: Case, choice: Choice | None, seed: int, progress: Steps
    ) -> tuple[list[str], Case]:
        """Let those who answer everything teach no CRF, or nobody if they are models."""
        names = [*choice.models] if choice and choice.models else answer_everything(case.crowd)
        if not names:
            return [], case
        apart = self._case(case.crowd, case.context, names)
        if apart.others is None:  # people answered too little
            return [], case
        apart = replace(apart, texts=fit_all(apart, progress)[1])
        who = ", ".join(names)
        if not choice.models if choice else teaches_well(case, apart, seed, self.share, progress):
            quiet = f"{who} answered nearly everything: not used to fit the models of text"
            return [quiet], replace(case, texts=apart.texts)
        said = f"{who}: taken for models as before" if choice else (
            f"{who} answered nearly everything: taken for models, since hidden answers of the "
            "others are likelier so; name models (models=, --param models=) to decide it"
        )  # fmt: skip
        return [said], apart

    def _case(self, crowd: Crowd, context: FitContext, models: Sequence[str]) -> Case:
        """Prepare the answers of people, and those of models."""
        people, others = split(crowd, models)
        looks_for_missed = "none" not in (self.documents, self.text)
        families = families_for(self.families, people, context.known)
        folds = self._folds(people)
        names = names_for(people, folds)
        return Case(people, context, families, folds, looks_for_missed, others, names)

    def _folds(self, crowd: Crowd) -> TextModel | None:
        """Return the features of the words, None where there are none to learn from."""
        active = np.diff(crowd.by_item.bounds) > 0
        if self.text == "none" or not has_words(crowd) or active.sum() < 2:
            return None
        if pc.count_distinct(crowd.tokens.flatten()).as_py() < 2:  # words that say nothing
            return None
        if self.encoder is None:
            return Folds(crowd, active, Settings.of(self))
        from goldspan.aggregation.bsc.encoder import EncoderFolds

        return EncoderFolds(crowd, active, Settings.of(self))


# --------------------------------------------------------------------------------------------------
# What is to be said of the result.


def _unanswered(crowd: Crowd, codes: NDArray[np.int16], context: FitContext) -> list[str]:
    """Say what became of the items that nobody answered and of which nothing is known."""
    is_alone = (np.diff(crowd.by_item.bounds) == 0) & (np.diff(crowd.offsets) > 0)
    if context.known is not None:
        is_alone &= count_in_rows(context.known >= 0, crowd.offsets) == 0
    is_open = count_in_rows(codes >= 0, crowd.offsets) == 0
    by_words = unanswered(int((is_alone & ~is_open).sum()), "labelled by their words alone")
    return unanswered(int((is_alone & is_open).sum()), "left open") + by_words


def _overlap(crowd: Crowd) -> list[str]:
    """Warn where hardly any item has answers of two workers."""
    n_answers = np.diff(crowd.by_item.bounds)
    n_items, n_shared = int((n_answers > 0).sum()), int((n_answers > 1).sum())
    if n_shared >= OVERLAP * n_items:
        return []
    few = f"{n_shared} of {n_items} items have answers of two workers: the choice of method and "
    return [f"{few}the worker models rest on these; have more items answered twice"]
