"""The selection rules by name: a new one is a class and one line here."""

from __future__ import annotations

SELECTORS: dict[str, tuple[str, str]] = {
    "coverage": (
        "goldspan.selection.coverage:Coverage",
        "new attribute values by weight and cost: for a cold start",
    ),
    "coverage-paper": (
        "goldspan.selection.coverage:PaperCoverage",
        "the most new attribute values, as Ntoulas et al. have it",
    ),
    "random": ("goldspan.selection.schedule:Random", "drawn at random: the unbiased sample"),
    "density": ("goldspan.selection.uncertainty:Density", "like many other items of the pool"),
    "near-errors": (
        "goldspan.selection.uncertainty:NearErrors",
        "like the labelled items that a model got wrong",
    ),
    "least-confidence": (
        "goldspan.selection.uncertainty:LeastConfidence",
        "the best label or tag sequence is improbable",
    ),
    "margin": ("goldspan.selection.uncertainty:Margin", "the two best are close"),
    "entropy": (
        "goldspan.selection.uncertainty:Entropy",
        "entropy of the label, or of the sequence",
    ),
    "mnlp": ("goldspan.selection.uncertainty:Mnlp", "-ln P(best sequence) per token"),
    "token-entropy": (
        "goldspan.selection.uncertainty:TokenEntropy",
        "mean entropy of a token's tag",
    ),
    "span-change": (
        "goldspan.selection.uncertainty:SpanChange",
        "expected number of spans that an annotator changes, per cost",
    ),
    "vote": ("goldspan.selection.uncertainty:Vote", "several models vote differently"),
    "committee-kl": (
        "goldspan.selection.uncertainty:CommitteeKl",
        "several models have different probabilities",
    ),
}

DEFAULT = "coverage, then mnlp, 10% random"
"""The schedule that did best from a cold start on (docs/math.md, section 9)."""
