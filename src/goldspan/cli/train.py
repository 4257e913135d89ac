"""`goldspan train`: from labelled items to a tagger in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, emit_json, say, steps, warn

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.tagger.base import Tagger
    from goldspan.tagger.features import Text


def train(
    source: r.Input,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write the tagger, such as ner.goldspan.")
    ],
    overwrite: Overwrite = False,
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
        int | None,
        typer.Option(min=1, help="Most steps of training (200 by default; hmm: 50 rounds)."),
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
    max_decompressed: r.MaxDecompressed = None,
    json: r.AsJson = False,
) -> None:
    """Train a tagger on items whose tags are known, and write it to one file.

    The file is read with every format that holds gold. Items tagged in part count for what is
    known of them; items without any tag are left out. The result does not depend on the number of
    threads. Ctrl-C ends training, and what was learnt by then is written.

    Examples:

      goldspan train gold.conll -o ner.goldspan

      goldspan train gold.conll -o ner.goldspan --validation dev.conll --c2 0.2

      goldspan train gold.conll -o small.goldspan --model hmm
    """
    check_outputs(output, inputs=[source, validation, start], overwrite=overwrite)
    r.check_files(output=output)
    _check_start(start, model)
    options = r.Reading(
        format=format, encoding=encoding, columns=columns, labels=label,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    chosen = {"templates": templates, "c2": c2, "max_iter": max_iter}
    params = {name: value for name, value in chosen.items() if value is not None}
    params |= {"min_count": min_count, "hash_bits": hash_bits, "hard": not soft}
    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        data = _labelled_items(crowd)
        if not soft:
            _check_possible(data, crowd.tagset.encoding)
        tagger = _make(model, params | {"encoding": crowd.tagset.encoding})
        held_out = _held_out(options.read(validation)) if validation else None
        step(f"training a {model}")
        from goldspan.runners import Threads

        around: dict[str, Any] = {"runner": Threads(threads), "progress": step.round}
        around |= {"start": _load(start), "validation": held_out}
        interrupted = _fit(tagger, data, around)
        step("writing")
        tagger.save(output)
    facts = _facts(tagger, data, held_out)
    if json:
        emit_json({"input": source, "output": output, **_counts(tagger, data), **facts})
    else:
        _tell(tagger, data, facts)
        say(f"written: {output} ({Path(output).stat().st_size / 1e6:.1f} MB)")
    if interrupted:
        n_steps = facts.get("steps")
        warn(f"goldspan: interrupted after {n_steps} steps; what is written is their result")
        raise typer.Exit(130)


@dataclass(frozen=True, eq=False)
class _Data:
    """Items to learn from; None stands for a tag that is not known."""

    ids: list[str]
    text: Text
    tags: list[list[str | None]]
    n_in_part: int
    n_left_out: int


def _labelled_items(crowd: Crowd) -> _Data:
    """Return words and tags of the items of which some tag is known."""
    import numpy as np

    from goldspan.errors import InputError
    from goldspan.tagger import Text

    count = np.concatenate([[0], np.cumsum(crowd.gold_tagged.codes < 0)])
    unknown = count[crowd.offsets[1:]] - count[crowd.offsets[:-1]]
    useless = (unknown > 0) & (unknown == np.diff(crowd.offsets))
    if useless.all():
        raise InputError("there is no item of which a tag is known: read it with its gold")
    kept = crowd.select_items(~useless) if useless.any() else crowd
    groups = None if kept.groups is None else [str(name) for name in kept.groups.to_pylist()]
    tags = kept.tagset.decode(kept.gold_tagged)
    return _Data(
        kept.item_ids.to_pylist(),
        Text.of(kept.tokens_list, groups),
        tags,
        int(((unknown > 0) & ~useless).sum()),
        int(useless.sum()),
    )


def _check_start(start: str | None, model: str) -> None:
    """Reject a tagger to begin with where none is used.

    Raises:
        InputError: It is so.
    """
    from goldspan.errors import InputError

    if start and model == "hmm":
        raise InputError("--start is for --model crf: an hmm is counted afresh")


def _check_possible(data: _Data, encoding: str) -> None:
    """Reject tags that no well-formed sequence has; those of whole items are made well-formed.

    Raises:
        InputError: Some item is tagged in part so; the first is named.
    """
    if not data.n_in_part:
        return
    import numpy as np

    from goldspan.chains.decoding import first_without_path
    from goldspan.errors import InputError
    from goldspan.spans import Codec
    from goldspan.tagger.crf import Masks
    from goldspan.tagger.targets import allowed_tags, named_tags

    codec = Codec.from_tags(set(named_tags(data.tags)), encoding)
    masks = Masks.of(codec, hard=True)
    in_part = np.array([None in tags for tags in data.tags], np.float64)
    allowed = allowed_tags(data.tags, codec)
    chain = (masks.start, masks.step, masks.end)
    item = first_without_path(data.text.offsets, in_part, allowed, *chain)
    if item >= 0:
        raise InputError(
            f"item {data.ids[item]}: no well-formed sequence has the tags that are known of it: "
            "mend them, or pass --soft to allow any sequence"
        )


def _held_out(crowd: Crowd) -> tuple[Text, list[list[str | None]]]:
    """Return words and tags of the items whose tags are all known."""
    import numpy as np

    from goldspan.errors import InputError

    data = _labelled_items(crowd)
    whole = np.array([None not in item for item in data.tags])
    if not whole.any():
        raise InputError("there is no item to validate on: their tags must all be known")
    items = np.flatnonzero(whole)
    return data.text.select(items), [data.tags[n] for n in items]


def _fit(tagger: Tagger, data: _Data, around: dict[str, Any]) -> bool:
    """Train, and say whether Ctrl-C ended it with something learnt."""
    try:
        tagger.fit(data.text, data.tags, **around)
    except KeyboardInterrupt:
        if "weights_" not in vars(tagger):
            raise
        return True
    return False


def _tell(tagger: Tagger, data: _Data, facts: dict[str, Any]) -> None:
    if data.n_left_out:
        warn(f"{data.n_left_out} items without any tag were left out")
    if data.n_in_part:
        warn(f"{data.n_in_part} items are tagged in part: what is known of them counts")
    if tagger.n_repaired_:
        warn(f"{tagger.n_repaired_} tags were made well-formed (--soft trains on them as they are)")
    for name, value in facts.items():
        say(f"  {name.replace('_', ' ')}: {value}")


def _counts(tagger: Tagger, data: _Data) -> dict[str, int]:
    return {
        "items_left_out": data.n_left_out,
        "items_in_part": data.n_in_part,
        "tags_made_well_formed": tagger.n_repaired_,
    }


def _make(model: str, params: dict[str, Any]) -> Tagger:
    from goldspan.errors import UnknownNameError
    from goldspan.tagger.load import KINDS

    if model not in KINDS:
        raise UnknownNameError("model", model, KINDS)
    return KINDS[model]().set_params(**params)


def _load(path: str | None) -> Tagger | None:
    if path is None:
        return None
    from goldspan.tagger import load_tagger

    return load_tagger(path)


def _facts(tagger: Tagger, data: _Data, held_out: tuple[Any, Any] | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "model": tagger.name,
        "tags": list(tagger.codec_.tags),
        "items": len(data.tags),
        "tokens": data.text.n_tokens,
        "features": tagger.features_.n_features,
    }
    seen = vars(tagger)
    if seen["trace_"]:
        n_steps = len(seen["trace_"]) - (tagger.name == "crf")  # which has its start there too
        facts |= {"steps": n_steps, "stopped_by": seen["stop_reason_"]}
        facts["objective"] = seen["trace_"][-1]
    if held_out is not None:
        name = "accuracy" if tagger.codec_.rules.is_plain else "f1"
        facts[f"validation_{name}"] = round(100 * tagger.score(*held_out), 2)
    return facts
