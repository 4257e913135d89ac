"""`goldspan check`: whether tags are well-formed."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, table


def check(
    source: r.Input,
    show: Annotated[int, typer.Option(min=0, help="Faults to print.")] = 20,
    encoding: r.EncodingName = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    columns: r.Columns = None,
    workers: r.Workers = None,
    label: r.Labels = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    max_decompressed: r.MaxDecompressed = None,
    json: r.AsJson = False,
) -> None:
    """Check tags against the rules of their encoding: a CoNLL file, or a crowd with its gold.

    Prints every fault with its place and exits with 1 if there is one. A tag that is not in the
    encoding counts as O for the rules that its neighbours must keep.

    Examples:

      goldspan check gold.conll --encoding BIO

      goldspan check answers.tsv.gz --show 5
    """
    options = r.Reading(
        format=format, encoding=encoding, columns=columns, workers=workers, labels=label,
        delimiter=delimiter, text_encoding=text_encoding, unknown="outside",
        unlabelled="keep",
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.crowd.convert import all_faults

    crowd = options.read(source)
    faults = all_faults(crowd)
    kinds = Counter((fault.worker, fault.kind) for fault in faults)
    if json:
        emit_json(
            {
                "file": source,
                "encoding": crowd.tagset.encoding,
                "faults": len(faults),
                "by_column": [
                    {"column": who, "kind": kind, "count": n} for (who, kind), n in kinds.items()
                ],
                "first": [str(fault) for fault in faults[:show]],
            }
        )
    else:
        for fault in faults[:show]:
            say(str(fault))
        if len(faults) > show:
            say(f"… and {len(faults) - show} more (--show {len(faults)})")
        if faults:
            rows = [[who, kind, str(n)] for (who, kind), n in kinds.most_common()]
            say(table([["column", "fault", "count"], *rows], right=(2,)))
        name, size = crowd.tagset.encoding, crowd.n_tokens
        say(f"{source}: {name}, {crowd.n_items} items, {size} tokens, {len(faults)} faults")
    if faults:
        raise typer.Exit(1)
