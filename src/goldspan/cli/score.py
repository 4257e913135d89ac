"""`goldspan score`: how good tags are."""

from __future__ import annotations

from typing import Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, table


def score(
    predicted: Annotated[
        str, typer.Argument(help="What is to be judged: CoNLL or a crowd's gold.")
    ],
    truth: Annotated[str, typer.Argument(help="What it is compared with.")],
    policy: r.Policy = "conlleval",
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0, help="Resamples of items for a 95 % interval of F1, at least 100; 0 for none."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    wrong: Annotated[bool, typer.Option("--wrong", help="List every wrong span.")] = False,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    label: r.Labels = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    max_decompressed: r.MaxDecompressed = None,
    json: r.AsJson = False,
) -> None:
    """Compare tags with the truth: precision, recall and F1 of spans, and token accuracy.

    Items are matched by their ids (by order where no id is shared and the tokens are the same).
    The policy for malformed tags and the encoding stand above the numbers.

    Examples:

      goldspan score gold.conll truth.conll --policy conlleval --json

      goldspan score gold.conll answers.tsv.gz --bootstrap 1000 --wrong
    """
    from goldspan.crowd.compare import aligned_sides
    from goldspan.spans import score as compare
    from goldspan.spans.scoring import MIN_RESAMPLES

    if 0 < bootstrap < MIN_RESAMPLES:
        raise typer.BadParameter(
            f"--bootstrap must be 0 or at least {MIN_RESAMPLES}, not {bootstrap}: an interval of "
            "fewer resamples means nothing"
        )

    options = r.Reading(
        format=format, encoding=encoding, columns=columns, labels=label,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    found, gold = aligned_sides(options.read(predicted), options.read(truth))
    result = compare(
        gold, found, policy=policy, bootstrap=bootstrap, random_state=seed, wrong=wrong
    )
    if json:
        emit_json({"predicted": predicted, "truth": truth, **result.to_dict()})
        return
    say(str(result))
    if wrong and result.wrong:
        ids = list(gold.tagged_by_id())
        rows = [[ids[w.item], w.side, w.type, f"[{w.start}, {w.end})"] for w in result.wrong]
        say(table([["item", "side", "type", "tokens"], *rows]))
