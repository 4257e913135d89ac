"""The method for spans that nobody has to think about: many methods, and who confirms their spans.

Every span z that any method writes or any annotator gave is right or wrong:

    P(right) = sigmoid(logit(weighted mean of the confidences of all methods) + w x(z)),

x(z) who gave the span and which methods wrote it with which confidence. The weights w are learned
from hidden answers: a hidden annotator gives exactly the span with probability

    P(right) r(s) + (1 - P(right)) e(s),

r and e the rates at which right and wrong spans are given, which depend on the share s of the
others who gave it. Hidden answers of annotators who agree with the methods count more, and w is
shrunk to zero. The labels are the spans of the largest expected F1 (docs/math.md, section 13).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit, softmax

from goldspan._arrays import count_in_rows
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.engine import EngineInputs
from goldspan.aggregation.bsc.engine import Fit as EngineFit
from goldspan.aggregation.bsc.family import Bsc
from goldspan.aggregation.bsc.posterior import (
    Marginals,
    Posterior,
    best_spans,
    consensus_of,
    spans_at,
)
from goldspan.aggregation.bsc.text import (
    TextModel,
    TextScores,
    beside_text,
    measure_dependence,
    rounds,
)
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.dawid_skene import Variational
from goldspan.aggregation.documents import find_missed
from goldspan.aggregation.families import Families
from goldspan.aggregation.judge import (
    LEAST_WEIGHT,
    LOOK_AT,
    Candidate,
    Choice,
    Judge,
    choice_words,
    error_of_mean,
    hold_out,
    weigh,
)
from goldspan.aggregation.machines import beside, evidence, ids_of, judged_power
from goldspan.aggregation.mixture import Mixture, posterior_of_labels
from goldspan.aggregation.truth import LEAST_SPANS, Seen, learn, learn_types
from goldspan.aggregation.votes import TokenVote
from goldspan.crowd import Crowd
from goldspan.crowd.model import Answers
from goldspan.protocols import Runner
from goldspan.spans import Tagged, find_spans
from goldspan.spans.corpus import SpanArray
from goldspan.spans.notebook import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
VOTES = {"votes, ties outside": "outside", "votes, ties inside": "inside"}
PLAIN = ("mace", "ds", "bsc-mace", "bsc-cm", "bsc-seq")
WORDS = ("bsc-cm+words", "bsc-seq+words")
BEGIN_BY_VOTES = frozenset({"bsc-cm", "bsc-seq", *WORDS})
BY_VOTES = ", prior=votes"
"""Behind the name of a method whose workers begin with the habits that the vote shares show."""
BESIDE_TEXT = ("bsc-mace", "bsc-cm", "bsc-seq", f"bsc-seq{BY_VOTES}")
"""Which of them teach a CRF and stand beside it."""
ENOUGH = 1_500
"""Hidden spans that tell enough."""
CLEARLY = 3.0
"""Standard errors by which hidden answers must be likelier for someone to be taken for a model."""
LEAST_CUTS, MOST_CUTS = 2, 5
"""How often answers are hidden."""
LEAST_AGREED = 0.7
"""Share of the annotators who gave the written spans below which confidences are warned of."""
LITTLE_AGREED = (
    "of the annotators of an item, weighted by quality, {:.0%} gave the written spans: mistakes "
    "that they share do not show in answers, and confidences may be too high by .2 and more"
)
NOT_JUDGED = (
    "no item has spans and answers of two workers who err independently: nothing could be judged, "
    "and the mean of all methods decides"
)

# --------------------------------------------------------------------------------------------------
# The candidates.


@dataclass(frozen=True, eq=False)
class Case:
    """A crowd, what is known of it, and the methods that suit it."""

    crowd: Crowd
    context: FitContext  # Known truth, legal, and where to work
    families: Families | None  # Workers who err together; None: everybody errs alone
    folds: TextModel | None  # Features of the words; None without text
    looks_for_missed: bool  # Whether spans are looked for that all workers of an item missed
    others: Crowd | None = None  # Answers of models, which teach nobody (`machines`)
    names: Sequence[str] = PLAIN  # What is fitted, also where answers are hidden
    texts: Texts | None = None  # What CRFs say whom others taught; None: these are to teach them

    @property
    def beside_text(self) -> list[str]:
        """Which of them teach a text model: one that takes hours is taught by one method."""
        teachers = ("bsc-seq",) if self.folds and self.folds.is_slow else BESIDE_TEXT
        return [name for name in teachers if self.folds and name in self.names]

    def fit(self, name: str) -> Fit:
        """Fit a method of the engine with its defaults, but for the prior."""
        method = get_aggregator(name.removesuffix(BY_VOTES), families=self.families or "none")
        assert isinstance(method, Variational)
        if name.endswith(BY_VOTES):
            method.set_params(prior="votes")
        own = FitContext(known=self.context.known, runner=self.context.runner)
        inputs, fit = method.fit_engine(self.crowd, own)
        posterior = Posterior(inputs.shards, fit.tables, self.crowd.tagset, self.context.runner)
        return Fit(inputs, fit, posterior)

    def votes(self) -> dict[str, Posterior]:
        """Return the votes by name."""
        result, known = {}, self.context.known
        for name, ties in VOTES.items():
            vote = TokenVote(ties=ties, families=self.families or "none")
            codes = vote.fit(self.crowd).result_.codes
            if known is not None:
                codes = np.where(known >= 0, known, codes)
            result[name] = posterior_of_labels(self.crowd, codes, self.context.runner, known)
        return result


def names_for(crowd: Crowd, folds: TextModel | None) -> list[str]:
    """Name what is fitted: without items of several answers vote shares say nothing."""
    names = [*PLAIN, *(WORDS if folds else ())]
    has_several = (np.diff(crowd.by_item.bounds) > 1).any()
    return names + [name + BY_VOTES for name in names if name in BEGIN_BY_VOTES and has_several]


@dataclass(frozen=True, eq=False)
class Fit:
    """A method of the engine, fitted without its text model."""

    inputs: EngineInputs  # The crowd and its evidence
    engine: EngineFit  # What was learned
    posterior: Posterior

    def beside(self, text: TextScores, dependence: float, runner: Runner) -> Posterior:
        """Update workers and labels beside what a text model says."""
        inputs, scores = replace(self.inputs, dependence=dependence), text.raised(Bsc.text_power)
        made = beside_text(inputs, self.engine.sums, self.engine.posterior, scores, runner)
        return Posterior(made.shards, made.tables, self.posterior.codec, runner)


Texts = dict[str, tuple[TextScores, float]]
"""What CRFs say, and how much the workers beside them share their mistakes, by who taught them."""


def fit_all(
    case: Case, progress: Steps, texts: Texts | None = None
) -> tuple[dict[str, Posterior], Texts]:
    """Fit all candidates; return them by name, and what their CRFs say.

    Where answers are hidden CRFs are those that all answers have taught: they never saw the item
    that they speak of, nor any other of its document.
    """
    texts = case.texts if texts is None else texts
    fits = {name: case.fit(name) for name in case.names}
    parts = case.votes() | {name: fit.posterior for name, fit in fits.items()}
    progress.tell()
    learned: Texts = {}
    for name in case.beside_text if texts is None else texts:
        folds, (plain, *prior) = case.folds, name.partition(",")
        assert folds is not None
        if texts is None:
            text, dependence, fit = _taught(case, folds, fits[name], progress)
        else:
            text, dependence = texts[name]
            fit = fits[name].beside(text, dependence, case.context.runner)
        learned[name] = text, dependence
        parts["".join((plain, "+", folds.name, *prior))] = fit
    return parts, learned


def _plain(name: str) -> str:
    return name.removesuffix(BY_VOTES)


def _reads(name: str) -> bool:
    """Return whether a method has a text model that was taught by other documents."""
    return "+" in name and not _plain(name).endswith("+words")


def _taught(
    case: Case, folds: TextModel, fit: Fit, progress: Steps
) -> tuple[TextScores, float, Posterior]:
    """Update CRFs and the workers who teach them in turn."""
    crowd = case.families.thin(case.crowd) if case.families else case.crowd
    dependence = measure_dependence(crowd, fit.posterior.marginals(np.inf).probs)
    inputs, quiet = replace(fit.inputs, dependence=dependence), replace(case.context, progress=None)
    for last in rounds(inputs, fit.engine, None, folds, quiet):
        progress.tell()
        text, beside = last.text, last.beside
    posterior = Posterior(beside.shards, beside.tables, crowd.tagset, quiet.runner)
    return text, dependence, posterior


# --------------------------------------------------------------------------------------------------
# Their spans, and who gave them.


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans that a candidate writes or an annotator gave, sorted by item and place."""

    keys: Ints  # [n_spans], their number among all possible spans
    rows: Ints  # [n_spans, 4]: item, first token in the item, one past the last, type
    mass: Floats  # [n_spans, n_candidates], confidence of every candidate
    written: NDArray[np.bool_]  # [n_spans, n_candidates], whether it writes the span
    missed: Floats  # [n_spans], probability that everybody missed the span, 0 if not looked for

    @property
    def mean(self) -> Floats:
        """Mean confidence, or the probability that it was missed, float64 [n_spans]."""
        own = self.mass.mean(axis=1)
        return np.asarray(own + (1 - own) * self.missed)

    def best(self, probs: Floats) -> NDArray[np.bool_]:
        """Choose those of the largest expected F1, bool [n_spans]."""
        item, begin, stop, _ = self.rows.T
        return best_spans(item, begin, stop, probs)[0]


class Keys:
    """Numbers all possible spans of a crowd."""

    def __init__(self, crowd: Crowd) -> None:
        self._most = int(np.diff(crowd.offsets).max(initial=0)) + 1
        self._n_types = max(1, len(crowd.tagset.types))

    def of(self, item: Any, begin: Any, stop: Any, kind: Any) -> Ints:
        """Number spans, int64 [n_spans]."""
        place = (np.asarray(item, np.int64) * self._most + begin) * self._most + stop
        return np.asarray(place * self._n_types + kind)

    def of_array(self, spans: SpanArray, offsets: Ints, items: Any = None) -> Ints:
        """Number spans of the crowd, or of answers, which are to `items`."""
        base = offsets[spans.item]
        item = spans.item if items is None else items[spans.item]
        return self.of(item, spans.start - base, spans.end - base, spans.type)

    def rows(self, keys: Ints) -> Ints:
        """Return item, begin, stop and type of numbers, int64 [n_spans, 4]."""
        place, kind = np.divmod(keys, self._n_types)
        place, stop = np.divmod(place, self._most)
        return np.stack([*np.divmod(place, self._most), stop, kind], axis=1)


def given_spans(crowd: Crowd, answers: Answers) -> tuple[Ints, Ints]:
    """Return the numbers of the spans of answers, and who gave them, int64 [n] each."""
    spans = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset)
    keys = Keys(crowd).of_array(spans, answers.offset, answers.item)
    return keys, answers.worker[spans.item].astype(np.int64)


def spans_of(case: Case, parts: Mapping[str, Posterior]) -> Spans:
    """List the spans of all candidates and annotators."""
    crowd, numbers = case.crowd, Keys(case.crowd)
    every, confident = [given_spans(crowd, crowd.latest)[0]], []
    if case.others is not None:
        every.append(given_spans(crowd, case.others.latest)[0])
    for part in parts.values():
        last = part.marginals()
        chosen, _ = best_spans(last.item, last.begin, last.stop, last.mass)
        keys = numbers.of(last.item, last.begin, last.stop, last.kind)
        every.append(keys[chosen])
        confident.append((keys, last.mass, chosen))
    keys = np.unique(np.concatenate(every))
    mass, written = np.zeros((len(keys), len(parts))), np.zeros((len(keys), len(parts)), np.bool_)
    for n, (own, masses, chosen) in enumerate(confident):
        at, is_there = _places(keys, own)
        mass[at[is_there], n] = masses[is_there]
        written[at[is_there], n] = chosen[is_there]
    spans = Spans(keys, numbers.rows(keys), mass, written, np.zeros(len(keys)))
    return _with_missed(case, parts, spans) if case.looks_for_missed and len(keys) else spans


def _with_missed(case: Case, parts: Mapping[str, Posterior], spans: Spans) -> Spans:
    """Add the spans that everybody missed, as far as those tell who read the text."""
    crowd, numbers, none = case.crowd, Keys(case.crowd), np.zeros(0)
    probs, codes = np.zeros((0, 0), np.float32), none.astype(np.int16)
    item, begin, stop, kind = spans.rows.T
    reads = [n for n, name in enumerate(parts) if _reads(name)] or [*range(len(parts))]
    mass, every = spans.mass[:, reads].mean(axis=1), [*parts.values()]
    last = Marginals(codes, probs, none, item, begin, stop, kind, mass)
    even = np.full(len(reads), 1 / len(reads))
    mean = Mixture([every[n] for n in reads], even, crowd.tagset)
    missed = find_missed(crowd, mean, case.families, last)
    if missed is None:
        return spans
    there = find_spans(Tagged(missed.codes, crowd.offsets), crowd.tagset)
    own = numbers.of_array(there, crowd.offsets)
    keys = np.union1d(spans.keys, own)
    at, size = np.searchsorted(keys, spans.keys), (len(keys), len(parts))
    mass, written = np.zeros(size), np.zeros(size, np.bool_)
    mass[at], written[at] = spans.mass, spans.written
    probability = np.where(np.isin(keys, own), missed.probability, 0.0)
    return Spans(keys, numbers.rows(keys), mass, written, probability)


def _places(keys: Ints, own: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where numbers stand among others, and whether they do."""
    at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    return at, keys[at] == own if len(keys) else np.zeros(len(own), np.bool_)


@dataclass(frozen=True, eq=False)
class Support:
    """Who gave the spans."""

    n_answers: Floats  # [n_spans], answers to the item
    given: Floats  # [n_spans], annotators who gave exactly the span
    alike: Floats  # [n_spans], who gave an overlapping one of its type
    other: Floats  # [n_spans], who gave an overlapping one of another type only
    by_quality: Floats  # [n_spans, 2], share who gave it, weighted by quality and its square
    quality: Floats  # [n_workers], F1 of the workers' spans against the mean of all methods
    by_models: Floats  # [n_spans, 2], share of the models who gave it, or an overlapping one

    @property
    def share(self) -> Floats:
        """Share of the answers that give exactly the span, float64 [n_spans]."""
        return self.given / np.maximum(self.n_answers, 1)


def support_of(case: Case, spans: Spans) -> Support:
    """Count who gave the spans; of a family one counts."""
    crowd = case.families.thin(case.crowd) if case.families else case.crowd
    answers, n_spans = crowd.latest, len(spans.keys)
    keys, worker = given_spans(crowd, answers)
    at = np.searchsorted(spans.keys, keys)
    item, n_given = spans.rows[:, 0], np.bincount(worker, minlength=crowd.n_workers)
    chosen = spans.best(spans.mean)
    right = np.bincount(worker, chosen[at], crowd.n_workers)
    there = np.bincount(item[chosen], minlength=crowd.n_items)
    n_there = np.bincount(answers.worker, there[answers.item], crowd.n_workers)
    mean = 2 * right.sum() / max(1, n_given.sum() + n_there.sum())
    quality = (2 * right + FEW * mean) / (n_given + n_there + FEW)
    weighted = []
    for power in (1, 2):
        weight = quality**power
        total = np.bincount(answers.item, weight[answers.worker], crowd.n_items)[item]
        weighted.append(np.bincount(at, weight[worker], n_spans) / np.maximum(total, 1e-9))
    alike, touched = _overlapping(spans.rows, Keys(crowd).rows(keys), worker, crowd.n_workers)
    n_answers = np.bincount(answers.item, minlength=crowd.n_items)[item].astype(np.float64)
    given = np.bincount(at, minlength=n_spans).astype(np.float64)
    return Support(
        n_answers,
        given,
        alike - given,
        touched - alike,
        np.stack(weighted, axis=1),
        quality,
        _by_models(case, spans),
    )


def _by_models(case: Case, spans: Spans) -> Floats:
    """Return which share of the models of an item gave its spans, and others that overlap them."""
    others, n_spans = case.others, len(spans.keys)
    if others is None:
        return np.zeros((n_spans, 0))
    keys, worker = given_spans(case.crowd, others.latest)
    exact = np.bincount(np.searchsorted(spans.keys, keys), minlength=n_spans)
    _, touched = _overlapping(spans.rows, Keys(case.crowd).rows(keys), worker, others.n_workers)
    n = np.bincount(others.latest.item, minlength=others.n_items)[spans.rows[:, 0]]
    return np.stack([exact, touched - exact], axis=1) / np.maximum(n, 1)[:, None]


FEW = 5.0
"""Spans beside which the mean worker's quality counts half."""
AT_ONCE = 5_000_000
"""Pairs of spans of an item that are compared at once."""


def _overlapping(rows: Ints, given: Ints, worker: Ints, n_workers: int) -> tuple[Floats, Floats]:
    """Count who gave spans that overlap, of the same type and of any, float64 [n_spans] each."""
    order = np.argsort(given[:, 0], kind="stable")
    given, worker = given[order], worker[order]
    first, last = (np.searchsorted(given[:, 0], rows[:, 0], side) for side in ("left", "right"))
    n_pairs = last - first
    alike, touched = np.zeros(len(rows)), np.zeros(len(rows))
    ends = np.flatnonzero(np.diff(np.cumsum(n_pairs) // AT_ONCE)) + 1
    for part in np.split(np.arange(len(rows)), ends):
        n = n_pairs[part]
        one = np.repeat(part, n)
        two = np.arange(len(one)) - np.repeat(np.cumsum(n) - n - first[part], n)
        hit = (given[two, 1] < rows[one, 2]) & (given[two, 2] > rows[one, 1])
        same = hit & (given[two, 3] == rows[one, 3])
        for counts, which in ((alike, same), (touched, hit)):
            pairs = np.unique(one[which] * n_workers + worker[two[which]])
            counts[:] += np.bincount(pairs // n_workers, minlength=len(rows))
    return alike, touched


def features_of(names: Sequence[str], spans: Spans, support: Support) -> Floats:
    """Return what is known of spans beside the mean confidence, float64 [n_spans, n_features]."""
    n = np.maximum(support.n_answers, 1)
    length = np.log(spans.rows[:, 2] - spans.rows[:, 1])
    kinds = np.array([_group(name) for name in names])
    groups = [np.flatnonzero(kinds == kind) for kind in dict.fromkeys(kinds)]
    columns = [
        support.share, np.log1p(support.given), support.alike / n, support.other / n,
        support.given == 0, length, *support.by_quality.T, spans.mean, spans.missed > 0,
        *(spans.written[:, group].mean(axis=1) for group in groups),
        *(spans.mass[:, group].mean(axis=1) for group in groups),
        *support.by_models.T,
    ]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float64)


def _group(name: str) -> str:
    """Return which candidates are alike: votes, one confusion per label, BSC; no two CRFs are."""
    method, prior = _plain(name), name[len(_plain(name)) :]
    if _reads(name):
        return name
    kind = "votes" if name in VOTES else "tokens" if method in ("mace", "ds") else "bsc"
    return f"{kind}{'+words' * method.endswith('+words')}{prior}"


# --------------------------------------------------------------------------------------------------
# What hidden answers say.


SHRINK = 25.0
"""Penalty of the squared weights. 10 to 50 make the same F1 to .3 over eight sources."""
BELIEVED = 2_000.0
"""Spans as which any number of spans counts at most: more of them do not make the two rates truer.
500 to 4,000 make the same F1 to .1."""
RIGHT, WRONG = np.array([0.0, 1.0]), np.array([-2.0, 1.0])
"""Log-odds of giving a right and a wrong span that half of the others gave, and what the share of
these others adds: before anything is seen."""
SURE = 0.002
"""Probabilities nearer to 0 or 1 than this are taken as this where known items correct them."""
KNOWN_HELP = "{} of known items show which spans are right: the probabilities of all are corrected"
UNSURE = 0.02
"""Confidences nearer to 0 or 1 than this are taken as this."""
SHARED = 0.43
"""Share of the right spans that annotators overlook beside which as large a share of the spans that
all believe is wrong: mistakes that everybody shares are not to be seen in answers. The mean over
the sources of docs/results-purity.md; without any one of them it is .40 to .43."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the spans of one cut."""

    features: Floats  # [n_spans, n_features]
    mass: Floats  # [n_spans, n_candidates], confidence of every candidate
    missed: Floats  # [n_spans], probability that everybody missed the span
    share: Floats  # [n_spans], of the shown answers that give the span
    is_given: NDArray[np.bool_]  # [n_spans], whether the hidden annotator gave it
    weight: Floats  # [n_spans], by the quality of the hidden annotator
    is_alone: NDArray[np.bool_]  # [n_spans], given by the one annotator who is shown


@dataclass(frozen=True, eq=False)
class Confirmation:
    """How right spans are told from wrong ones."""

    centre: Floats  # [n_features], mean of every feature
    scale: Floats  # [n_features], its standard deviation
    weights: Floats  # [1 + n_features], the first without a feature
    shares: Floats  # [n_candidates], weights of the candidates in the mean confidence, sum 1
    right: Floats  # [2], log-odds with which a right span is given
    wrong: Floats  # [2], and a wrong one
    tied: Floats  # [1], of what one of two gave, ½ at least: people miss more than they invent

    @classmethod
    def of(cls, cuts: Sequence[Evidence]) -> Confirmation:
        """Learn it from hidden answers."""
        x, mass, missed, share, is_given, weight, is_alone = (
            np.concatenate([getattr(cut, one.name) for cut in cuts]) for one in fields(Evidence)
        )
        centre, scale = x.mean(axis=0), x.std(axis=0)
        scale[scale < 1e-9] = 1.0
        z = np.column_stack([np.ones(len(x)), (x - centre) / scale])
        rates = np.column_stack([np.ones(len(x)), share - 0.5])
        n = len(x) / len(cuts)
        weight = weight / weight.mean() / len(cuts) * (BELIEVED / (BELIEVED + n))
        ends = np.cumsum([z.shape[1], mass.shape[1], 2])
        begin = np.concatenate([np.zeros(ends[1]), RIGHT, WRONG])
        penalty = np.concatenate([np.full(ends[0], SHRINK), np.ones(len(begin) - ends[0])])

        def loss(theta: Floats) -> tuple[float, Floats]:
            own, among, right, wrong = np.split(theta, ends)
            shares = softmax(among)
            mean = mass @ shares
            mean += (1 - mean) * missed
            p = expit(log_odds(mean) + z @ own)
            r, e = expit(rates @ right), expit(rates @ wrong)
            given = np.clip(p * r + (1 - p) * e, 1e-9, 1 - 1e-9)
            slope = -weight * (is_given / given - ~is_given / (1 - given))
            by_odds = slope * (r - e) * p * (1 - p)
            is_free = (mean > UNSURE) & (mean < 1 - UNSURE)
            by_share = mass.T @ (
                by_odds * is_free * (1 - missed) / np.maximum(mean * (1 - mean), UNSURE**2)
            )
            parts = [
                z.T @ by_odds,
                shares * (by_share - shares @ by_share),
                rates.T @ (slope * p * r * (1 - r)),
                rates.T @ (slope * (1 - p) * e * (1 - e)),
            ]
            away = theta - begin
            likelihood = np.log(np.where(is_given, given, 1 - given))
            total = (penalty * away) @ away / 2 - weight @ likelihood
            return float(total), penalty * away + np.concatenate(parts)

        best = minimize(loss, begin, jac=True, method="L-BFGS-B").x
        own, among, right, wrong = np.split(best, ends)
        made = cls(centre, scale, own, softmax(among), right, wrong, np.full(1, 0.5))
        first = np.append(made.probs(x, mass, missed)[is_alone], 0.5).mean()
        not_given = np.logaddexp(0, wrong @ (1, 0.5)) - np.logaddexp(0, right @ (1, 0.5))
        return replace(made, tied=np.maximum(expit(log_odds(first) + not_given), 0.5)[None])

    def probs(self, features: Floats, mass: Floats, missed: Floats, is_tied: Any = False) -> Floats:
        """Return how probably spans are right, float64 [n_spans].

        Of two annotators one is hidden, so that no span was seen yet that one of two gave: these
        are on average as probable as those that one gave if then another does not.
        """
        mean = mass @ self.shares
        mean += (1 - mean) * missed
        own = (features - self.centre) / self.scale @ self.weights[1:]
        odds = log_odds(mean) + self.weights[0] + own
        if np.any(is_tied):
            odds[is_tied] += log_odds(self.tied) - log_odds(expit(odds[is_tied]).mean())
        return np.asarray(expit(odds))

    def confidence(self, probs: Floats, share: Floats) -> Floats:
        """Return what is believed of written spans, given the mistakes that annotators share."""
        given = expit(self.right[0] + self.right[1] * (share - 0.5))
        return np.asarray(probs * (1 - SHARED * (1 - given.mean()))) if len(given) else probs.copy()

    @property
    def numbers(self) -> tuple[float, ...]:
        """All numbers in one row, to keep."""
        every = [getattr(self, one.name) for one in fields(self)]
        return tuple(np.concatenate(every).tolist())

    @classmethod
    def from_numbers(cls, numbers: Sequence[float], n_candidates: int) -> Confirmation:
        """Make it of `numbers`."""
        n = (len(numbers) - n_candidates - 6) // 3
        ends = np.cumsum([n, n, 1 + n, n_candidates, 2, 2])
        return cls(*np.split(np.array(numbers), ends))


def log_odds(probs: Floats) -> Floats:
    """Return log-odds of confidences."""
    return np.asarray(logit(np.clip(probs, UNSURE, 1 - UNSURE)))


# --------------------------------------------------------------------------------------------------
# The result.


def combine_spans(
    crowd: Crowd, case: Case, share: float, seed: int, progress: Steps, choice: Choice | None
) -> Consensus:
    """Combine methods for spans by what hidden answers say; `crowd` has models' answers, too."""
    (parts, texts), cuts = fit_all(case, progress), list[Evidence]()
    if choice and {one.name for one in choice.candidates} != set(parts):
        choice = None
    if crowd.tagset.rules.is_plain:
        return _plain_tags(crowd, case, parts, texts, share, seed, progress, choice)
    if choice is None:
        cuts = _hide(case, texts, share, seed, progress)
    nobody = np.diff(case.crowd.by_item.bounds) == 0
    parts = _beside_models(case, parts, np.repeat(nobody, np.diff(crowd.offsets))[:, None])
    spans = spans_of(case, parts)
    support = support_of(case, spans)
    features = features_of([*parts], spans, support)
    if choice:
        confirmation = Confirmation.from_numbers(choice.confirmation, len(parts))
    elif cuts:
        confirmation = Confirmation.of(cuts)
    else:
        none, even = np.zeros(features.shape[1]), np.full(len(parts), 1 / len(parts))
        confirmation = Confirmation(
            none, none + 1, np.append(none, 0), even, RIGHT, WRONG, np.full(1, 0.5)
        )
    probs = _probs(confirmation, [*parts], spans, support, features)
    seen, sure, notes = _seen(case, texts, confirmation, progress), None, list[str]()
    if seen is not None:
        odds, x = _evidence(confirmation, probs, spans, support, features)
        sure = confirmation.confidence(probs, support.share[spans.best(probs)])
        spans, support, probs, sure, notes = _corrected(
            crowd, case, seen, spans, support, probs, sure, odds, x
        )
    unasked = support.n_answers == 0
    is_known = spans.mean > 1 - 1e-6  # votes alone leave more doubt
    probs[is_known] = 1
    probs[spans.mean < 1e-6] = 0  # known to be wrong
    chosen = spans.best(probs)
    if sure is None:
        sure = confirmation.confidence(probs, support.share[chosen])
    sure[is_known] = 1
    if choice is None:
        weights = _nearest(spans.mass[~unasked], probs[~unasked])
        sums, n_written = probs @ spans.written, spans.written.sum(axis=0)
        f1 = 2 * sums / np.maximum(n_written + probs.sum(), 1e-9)
        scores = np.log(np.clip(f1, 1e-9, 1 - 1e-9)) if cuts else np.zeros(len(f1))
        choice = _choice(crowd, case, parts, scores, weights)
        choice = replace(choice, confirmation=confirmation.numbers if cuts else ())
    item, begin, stop, kind = spans.rows[chosen].T
    array = spans_at(item, crowd.offsets[item] + begin, crowd.offsets[item] + stop, kind)
    words = _words(crowd, spans, chosen, probs, choice)
    result = _consensus(crowd, case, parts, choice, words, array)
    at, is_ours = _places(spans.keys, Keys(crowd).of_array(result.span_array, crowd.offsets))
    confidence = result.span_confidence.copy()
    confidence[is_ours] = sure[at[is_ours]]
    again = float(support.by_quality[chosen, 1].mean()) if chosen.any() else 1.0
    cautions = (LITTLE_AGREED.format(again),) if again < LEAST_AGREED else ()
    notes = [*result.notes, *notes]
    return replace(result, span_confidence=confidence, cautions=cautions, notes=tuple(notes))


def _probs(
    confirmation: Confirmation, names: Sequence[str], spans: Spans, support: Support,
    features: Floats,
) -> Floats:  # fmt: skip
    """Return how probably spans are right by what hidden answers confirm."""
    is_tied = (support.given == 1) & (support.n_answers == 2)
    probs = confirmation.probs(features, spans.mass, spans.missed, is_tied)
    unasked, reads = support.n_answers == 0, [_reads(name) for name in names]
    # only CRFs know of these items
    probs[unasked] = spans.mass[unasked][:, reads].mean(axis=1) if any(reads) else 0.0
    return probs


def _evidence(
    confirmation: Confirmation, probs: Floats, spans: Spans, support: Support, features: Floats
) -> tuple[Floats, Floats]:
    """Return log-odds of spans, and what known items are to say of them (`truth`)."""
    scaled = np.clip((features - confirmation.centre) / confirmation.scale, -5, 5)
    kinds = np.zeros((len(probs), int(spans.rows[:, 3].max(initial=0)) + 1))
    kinds[np.arange(len(probs)), spans.rows[:, 3]] = 1
    odds = logit(np.clip(probs, SURE, 1 - SURE))
    return odds, np.column_stack([support.given == 0, scaled, kinds])


def _seen(case: Case, texts: Texts, confirmation: Confirmation, progress: Steps) -> Seen | None:
    """Fit all methods as if half of the known items were not known, and then the other half."""
    crowd, known = case.crowd, case.context.known
    if known is None:
        return None
    is_known = (count_in_rows(known < 0, crowd.offsets) == 0) & (np.diff(crowd.offsets) > 0)
    true = find_spans(Tagged(known, crowd.offsets), crowd.tagset)
    true_keys = Keys(crowd).of_array(true, crowd.offsets)[is_known[true.item]]
    if len(true_keys) < LEAST_SPANS:
        return None
    group, found = crowd.document_of, []
    names = np.random.default_rng(0).permutation(np.unique(group[is_known]))
    for half in (names[::2], names[1::2]):
        held = is_known & np.isin(group, half)
        left = np.where(np.repeat(held, np.diff(crowd.offsets)), np.int16(-1), known)
        cut = replace(case, context=replace(case.context, known=left))
        parts, _ = fit_all(cut, progress, texts)
        spans = spans_of(cut, parts)
        support = support_of(cut, spans)
        features = features_of([*parts], spans, support)
        probs = _probs(confirmation, [*parts], spans, support, features)
        odds, x = _evidence(confirmation, probs, spans, support, features)
        kept = held[spans.rows[:, 0]]
        width = 1 + features.shape[1] + max(1, len(crowd.tagset.types))
        wide = np.pad(x, ((0, 0), (0, width - x.shape[1])))
        found.append((spans.rows[kept], odds[kept], wide[kept], spans.keys[kept]))
    rows, odds, x, keys = (np.concatenate(one) for one in zip(*found, strict=True))
    return Seen(rows, odds, x, np.isin(keys, true_keys), group[rows[:, 0]], len(true_keys))


def _corrected(
    crowd: Crowd, case: Case, seen: Seen, spans: Spans, support: Support, probs: Floats,
    sure: Floats, odds: Floats, x: Floats,
) -> tuple[Spans, Support, Floats, Floats, list[str]]:  # fmt: skip
    """Apply what known items show: which spans are right, and which types are confused."""
    x = np.pad(x, ((0, 0), (0, seen.features.shape[1] - x.shape[1])))
    correction, notes = learn(seen), list[str]()
    is_open, shown = ~np.isin(spans.rows[:, 0], seen.rows[:, 0]), expit(seen.odds)
    if correction is not None:
        probs[is_open] = correction.choose(odds, x, is_open)[is_open]
        sure[is_open] = correction.confidence(odds, x)[is_open]
        shown = correction.choose(seen.odds, seen.features, np.ones(len(seen.odds), np.bool_))
        notes.append(KNOWN_HELP.format(counted(seen.n_true, "span")))
    known = case.context.known
    assert known is not None
    types = case.folds and learn_types(crowd, seen, shown, Tagged(known, crowd.offsets))
    if types:
        rows, probs, sure = types.apply(spans.rows, probs, sure, is_open)
        notes += types.notes(crowd.tagset.types, spans.rows[:, 3], rows[:, 3], probs)
        keys = Keys(crowd).of(*rows.T)
        order = np.argsort(keys)
        spans = Spans(
            keys[order], rows[order], spans.mass[order], spans.written[order], spans.missed[order]
        )
        own = {
            one.name: getattr(support, one.name)[order]
            for one in fields(support)
            if one.name != "quality"
        }
        support, probs, sure = replace(support, **own), probs[order], sure[order]
    return spans, support, probs, sure, notes


def _words(
    crowd: Crowd, spans: Spans, chosen: NDArray[np.bool_], probs: Floats, choice: Choice
) -> str:
    """Say what was tried, and name the least certain spans that not all methods write."""
    contested = np.flatnonzero(chosen & ~spans.written.all(axis=1))
    first = contested[np.argsort(probs[contested], kind="stable")[:LOOK_AT]]
    names = [
        f"{crowd.item_ids[item].as_py()} {a + 1}-{b} {crowd.tagset.types[k]}"
        for item, a, b, k in spans.rows[first].tolist()
    ]
    agreement = 1 - len(contested) / max(1, int(chosen.sum()))
    return choice_words(choice.candidates, agreement, names, "written spans")


def _choice(
    crowd: Crowd, case: Case, names: Iterable[str], scores: Iterable[float],
    weights: Iterable[float],
) -> Choice:  # fmt: skip
    """List the candidates, the largest weight first."""
    candidates = [
        Candidate(name, float(score), 1.0, float(weight))
        for name, score, weight in zip(names, scores, weights, strict=True)
    ]
    candidates.sort(key=lambda one: (-one.weight, -one.score))
    return Choice(tuple(candidates), len(crowd.latest), models=ids_of(case.others))


def _consensus(
    crowd: Crowd, case: Case, parts: Mapping[str, Posterior], choice: Choice, words: str,
    chosen: SpanArray | None = None,
) -> Consensus:  # fmt: skip
    """Write the chosen spans; all else is that of the mixture of the candidates."""
    weights = np.array([one.weight for one in choice.chosen])
    mixture = Mixture([parts[one.name] for one in choice.chosen], weights, crowd.tagset)
    known = case.context.known
    notes = (words,) if choice.confirmation else (NOT_JUDGED, words)
    result = consensus_of(crowd, mixture, decode="mbr", method="auto", known=known, chosen=chosen)
    return replace(result, memory=choice, families=case.families, notes=notes)


def _plain_tags(
    crowd: Crowd, case: Case, parts: dict[str, Posterior], texts: Texts,
    share: float, seed: int, progress: Steps, choice: Choice | None,
) -> Consensus:  # fmt: skip
    """Combine methods for tags that are no spans by how probable they make hidden tags."""
    if choice is None:
        likelihoods, items = {name: [np.zeros(0)] for name in parts}, [np.zeros(0, np.int32)]
        family, powers = case.families.number if case.families else None, [0.0]
        for n in range(LEAST_CUTS):
            shown, hidden = hold_out(case.crowd, share=share, family=family, seed=seed + n)
            judge = Judge(shown, hidden)
            items.append(judge.item)
            cut = fit_all(replace(case, crowd=shown), progress, texts)[0]
            if case.others is not None:
                powers.append(judged_power([*cut.values()][-1], case.others, judge))
            for name, part in cut.items():
                own = judge.judge(part.marginals(np.inf).probs)
                likelihoods[name].append(own.likelihood)
        every = [np.concatenate(one) for one in likelihoods.values()]
        weights = weigh(every, np.concatenate(items), np.ones(len(parts)))
        scores = [float(np.log(one).mean()) if len(one) else 0.0 for one in every]
        choice = _choice(crowd, case, parts, scores, weights)
        power = sum(powers) / LEAST_CUTS
        choice = replace(choice, confirmation=(UNSURE,) * bool(len(every[0])), models_power=power)
    parts = _beside_models(case, parts, choice.models_power)
    labels = np.array([part.marginals(np.inf).probs.argmax(axis=1) for part in parts.values()])
    agreement = float((labels == labels[0]).all(axis=0).mean())
    words = choice_words(choice.candidates, agreement, [], "tokens")
    return _consensus(crowd, case, parts, choice, words)


def _hide(case: Case, texts: Texts, share: float, seed: int, progress: Steps) -> list[Evidence]:
    """Hide answers several times; return what they confirm."""
    crowd, cuts, n_hidden = case.crowd, list[Evidence](), 0
    family = case.families.number if case.families else None
    for n in range(MOST_CUTS):
        shown, hidden = hold_out(crowd, share=share, family=family, seed=seed + n)
        if n >= LEAST_CUTS and n_hidden >= ENOUGH:
            break
        if not len(hidden):
            continue
        cut = replace(case, crowd=shown)
        parts, _ = fit_all(cut, progress, texts)
        spans = spans_of(cut, parts)
        support = support_of(cut, spans)
        keys, _ = given_spans(crowd, hidden)
        worker = np.full(crowd.n_items, -1)
        worker[hidden.item] = hidden.worker
        if case.context.known is not None:  # what is known confirms nothing about the others
            worker[count_in_rows(case.context.known >= 0, crowd.offsets) > 0] = -1
        asked = worker[spans.rows[:, 0]]
        at = np.flatnonzero(asked >= 0)
        n_hidden += len(keys)
        features = features_of([*parts], spans, support)
        cuts.append(
            Evidence(
                features[at], spans.mass[at], spans.missed[at], support.share[at],
                np.isin(spans.keys, keys)[at], support.quality[asked[at]] ** 2,
                (support.n_answers == 1)[at] & (support.given == 1)[at],
            )
        )  # fmt: skip
    return [cut for cut in cuts if len(cut.share)]


def teaches_well(everybody: Case, people: Case, seed: int, share: float, progress: Steps) -> bool:
    """Return whether hidden answers of people are likelier if those who may be models teach, too.

    `people` has the answers of these apart (`Case.others`), `everybody` has none apart. For a model
    all candidates with a text model say the contrary: it is text that a model teaches its mistakes.
    """
    others = people.others
    assert others is not None
    shown, hidden = hold_out(people.crowd, share=share, seed=seed)
    judge, logs = Judge(shown, hidden), []
    answers, n = everybody.crowd.latest, np.int64(people.crowd.n_workers)
    is_hidden = np.isin(answers.item * n + answers.worker, hidden.item * n + hidden.worker)
    shown_too = replace(everybody.crowd, answers=answers.take(~is_hidden))
    for case, own in ((everybody, shown_too), (people, shown)):
        _, texts = fit_all(case, progress)
        cut = replace(case, crowd=own)
        parts, _ = fit_all(cut, progress, texts)
        if case is people:
            power = judged_power([*parts.values()][-1], others, judge)
            parts = _beside_models(cut, parts, power)
        every = [part.marginals(np.inf).probs for name, part in parts.items() if _reads(name)]
        logs.append([np.log(judge.judge(probs).likelihood) for probs in every])
    ahead = np.array(logs[1]) - np.array(logs[0])
    return not ahead.size or any(
        one.mean() <= CLEARLY * error_of_mean(one, judge.item) for one in ahead
    )


def _beside_models(case: Case, parts: dict[str, Posterior], power: Any) -> dict[str, Posterior]:
    """Add what models say, raised to a power, or to one per token, [n_tokens, 1]."""
    if case.others is None:
        return parts
    probs = [*parts.values()][-1].marginals(np.inf).probs
    added = power * evidence(case.others, probs)
    return {name: beside(part, case.others, added) for name, part in parts.items()}


def _nearest(mass: Floats, probs: Floats) -> Floats:
    """Return the weights, sum 1, with which candidates come nearest to probabilities of spans."""
    weights = nnls(mass, probs)[0] if len(mass) else np.zeros(mass.shape[1])
    if not weights.sum():
        weights = np.ones(mass.shape[1])
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT] = 0
    return np.asarray(weights / weights.sum())


class Steps:
    """Tells of every step."""

    def __init__(self, context: FitContext, total: int) -> None:
        self.context, self.total, self.done = context, total, 0
        self.begin = time.perf_counter()

    def tell(self) -> None:
        """Tell that a step is done."""
        self.done = min(self.done + 1, self.total)
        if self.context.progress:
            left = (self.total / self.done - 1) * (time.perf_counter() - self.begin)
            self.context.progress(self.done, self.total, 0.0, left)
