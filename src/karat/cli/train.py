"""`karat train`: from labelled items to a tagger in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from karat.cli import reading as r
from karat.cli.output import emit_json, say, steps, warn

if TYPE_CHECKING:
    from karat.crowd import Crowd
    from karat.tagger.base import Tagger
    from karat.tagger.features import Text


def train(
    source: r.Input,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write the tagger, such as ner.karat.")
    ],
    model: Annotated[str, typer.Option("--model", "-m", help="crf or hmm.")] = "crf",
    templates: Annotated[
        str | None,
        typer.Option(
            help="Features: default, rodrigues, hmm, or a TOML file with a list `templates`."
        ),
    ] = None,
    c2: Annotated[
        float | None, typer.Option(help="crf: penalty of the squared weights (0.5 by default).")
    ] = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out features that occur less often.")
    ] = 1,
    hash_bits: Annotated[
        int, typer.Option(min=0, max=26, help="Hash features into 2 ** N numbers; 0 for none.")
    ] = 0,
    soft: Annotated[
        bool, typer.Option("--soft", help="Allow tag sequences that the encoding forbids.")
    ] = False,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="crf: most steps of training (200 by default).")
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Items to score; crf: training stops early on them."),
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="FILE", help="crf: a trained tagger to begin with.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
    ] = None,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    label: r.Labels = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    json: r.AsJson = False,
) -> None:
    """Train a tagger on items whose tags are known, and write it to one file.

    The file is read with every format that holds gold; items that are not tagged as a whole are
    left out. The result does not depend on the number of threads.

    Examples:

      karat train gold.conll -o ner.karat

      karat train gold.conll -o ner.karat --validation dev.conll --c2 0.2

      karat train gold.conll -o small.karat --model hmm
    """
    r.check_output(output, source, *(name for name in (validation, start) if name))
    options = r.Reading(format=format, encoding=encoding, columns=columns, labels=label)
    given = {"templates": templates, "c2": c2, "max_iter": max_iter}
    params = {name: value for name, value in given.items() if value is not None}
    params |= {"min_count": min_count, "hash_bits": hash_bits, "hard": not soft}
    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        text, tags, n_left = _labelled_items(crowd)
        tagger = _make(model, params | {"encoding": crowd.tagset.encoding})
        held_out = _labelled_items(options.read(validation))[:2] if validation else None
        step(f"training a {model}")
        from karat.compute import Threads

        tagger.fit(
            text,
            tags,
            start=_load(start),
            validation=held_out,
            runner=Threads(threads),
            progress=step.round,
        )
        step("writing")
        tagger.save(output)
    facts = _facts(tagger, text, tags, held_out)
    if json:
        emit_json({"input": source, "output": output, "items_left_out": n_left, **facts})
        return
    if n_left:
        warn(f"{n_left} items without all tags were left out")
    if tagger.n_repaired_:
        warn(f"{tagger.n_repaired_} tags were made well-formed (--soft trains on them as they are)")
    for name, value in facts.items():
        say(f"  {name.replace('_', ' ')}: {value}")
    say(f"written: {output} ({Path(output).stat().st_size / 1e6:.1f} MB)")


def _labelled_items(crowd: Crowd) -> tuple[Text, list[list[str]], int]:
    """Give words and tags of the items whose tags are all known, and the number of the others."""
    import numpy as np

    from karat.errors import InputError
    from karat.tagger import Text

    codes = crowd.gold_tagged.codes
    unknown = np.concatenate([[0], np.cumsum(codes < 0)])
    bad = unknown[crowd.offsets[1:]] > unknown[crowd.offsets[:-1]]
    if bad.all():
        raise InputError("there is no item whose tags are all known: read it with its gold")
    kept = crowd.select_items(~bad) if bad.any() else crowd
    groups = None if kept.groups is None else [str(name) for name in kept.groups.to_pylist()]
    text = Text.of(kept.tokens_list, groups)
    return text, kept.tagset.decode(kept.gold_tagged), int(bad.sum())


def _make(model: str, params: dict[str, Any]) -> Tagger:
    from karat.errors import UnknownNameError
    from karat.tagger.model_file import KINDS

    if model not in KINDS:
        raise UnknownNameError("model", model, KINDS)
    return KINDS[model]().set_params(**params)


def _load(path: str | None) -> Tagger | None:
    if path is None:
        return None
    from karat.tagger import load_tagger

    return load_tagger(path)


def _facts(
    tagger: Tagger, text: Text, tags: list[list[str]], held_out: tuple[Any, Any] | None
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "model": tagger.name,
        "tags": list(tagger.codec_.tags),
        "items": len(tags),
        "tokens": text.n_tokens,
        "features": tagger.features_.n_features,
    }
    if "trace_" in vars(tagger):
        seen = vars(tagger)
        facts |= {"steps": len(seen["trace_"]) - 1, "stopped_by": seen["stop_reason_"]}
        facts["objective"] = seen["trace_"][-1]
    if held_out is not None:
        name = "accuracy" if tagger.codec_.rules.is_plain else "f1"
        facts[f"validation_{name}"] = round(100 * tagger.score(*held_out), 2)
    return facts
