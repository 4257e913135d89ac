"""`goldspan tagger inspect`: what is in a tagger's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, table

if TYPE_CHECKING:
    from goldspan.tagger.base import Tagger
    from goldspan.tagger.parameters import Floats

tagger = typer.Typer(help="Look into trained taggers.", no_args_is_help=True, rich_markup_mode=None)


@tagger.callback()
def _root() -> None:
    """Look into trained taggers."""


@tagger.command()
def inspect(
    source: Annotated[str, typer.Argument(metavar="TAGGER", help="A file of `goldspan train`.")],
    top: Annotated[int, typer.Option(min=0, help="Features to show per tag.")] = 8,
    label: Annotated[list[str] | None, typer.Option(help="Show this tag only. Repeatable.")] = None,
    json: r.AsJson = False,
) -> None:
    """Show what a tagger is: its tags, parameters, largest weights per tag, and steps.

    A weight says how much a feature speaks for a tag; an HMM's are logarithms of probabilities,
    less their mean over the tags.

    Examples:

      goldspan tagger inspect ner.goldspan

      goldspan tagger inspect ner.goldspan --label B-PER --top 30 --json
    """
    from goldspan.errors import UnknownNameError
    from goldspan.tagger import load_tagger

    model = load_tagger(source)
    tags = model.codec_.tags
    for name in label or []:
        if name not in tags:
            raise UnknownNameError("tag", name, tags)
    facts = _facts(model)
    largest = {name: _largest(model, tags.index(name), top) for name in label or tags}
    steps = _steps(model)
    if json:
        emit_json({**facts, "weights": largest, "steps": steps})
        return
    for name, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        say(f"{name.replace('_', ' ')}: {shown}")
    for name, rows in largest.items():
        say(f"\n{name}")
        if rows:
            say(table([["  " + feature, f"{w:+.3f}"] for feature, w in rows], right=(1,)))
    say("\nsteps from (row) to (column)")
    say(table(_step_rows(steps), right=tuple(range(1, len(tags) + 2))))


def _facts(model: Tagger) -> dict[str, Any]:
    params = model.get_params()
    params.pop("gazetteers")
    templates = params.pop("templates")
    return {
        "model": model.name,
        "encoding": model.codec_.encoding,
        "tags": list(model.codec_.tags),
        "features": model.features_.n_features,
        "templates": [templates] if isinstance(templates, str) else list(templates),
        "gazetteers": sorted(getattr(model.features_, "gazetteers", {})),
        "documents": model.documents_,
        **params,
    }


def _largest(model: Tagger, tag: int, top: int) -> list[tuple[str, float]]:
    """Return the features that speak most for a tag, with their weights."""
    import numpy as np

    state = model.weights_.state
    own: Floats = state[:, tag] - (state.mean(axis=1) if model.name == "hmm" else 0.0)
    best = np.argsort(-own, kind="stable")[:top]
    return [(model.features_.name(int(n)), float(own[n])) for n in best if own[n] > 0]


def _steps(model: Tagger) -> dict[str, dict[str, float | None]]:
    """Return the weights between tags; None where a step is impossible."""
    from goldspan.tagger.crf import Masks

    masks, w = Masks.of(model.codec_, hard=model.hard), model.weights_
    tags = model.codec_.tags

    def row(weights: Floats, allowed: Floats) -> list[float | None]:
        return [float(x) if a else None for x, a in zip(weights, allowed, strict=True)]

    found = {"<start>": dict(zip(tags, row(w.start, masks.start), strict=True))}
    ends = row(w.end, masks.end)
    for n, tag in enumerate(tags):
        found[tag] = dict(zip(tags, row(w.step[n], masks.step[n]), strict=True))
        found[tag]["<end>"] = ends[n]
    return found


def _step_rows(steps: dict[str, dict[str, float | None]]) -> list[list[str]]:
    names = [*steps["<start>"], "<end>"]
    rows = [["", *names]]
    for tag, values in steps.items():
        cells = [values.get(name) for name in names]
        rows.append([tag, *("-" if value is None else f"{value:+.2f}" for value in cells)])
    return rows
