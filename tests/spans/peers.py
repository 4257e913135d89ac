"""How other tools read tags: run where they are installed, told as half-open spans.

`conlleval.pl` and NCRF++ are no Python packages. Their rules are written down here from the
scripts (version 2004-01-26, and `get_ner_BMES` of jiesutd/NCRFpp) as tables of letters.
"""

from __future__ import annotations

import logging
import warnings

import iobes
from nervaluate.loaders import ListLoader
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Tokens

Found = list[tuple[str, int, int]]

logging.getLogger("iobes").setLevel(logging.CRITICAL)  # it logs a line for every malformed tag

IOBES_NAMES = {"PLAIN": iobes.SpanEncoding.TOKEN} | {
    name: iobes.SpanEncoding[name] for name in ("IOB", "BIO", "IOBES", "BILOU", "BMEWO")
}
SEQEVAL_SCHEMES = {"IOB": IOB1, "BIO": IOB2, "IOBES": IOBES, "BILOU": BILOU}

# Pairs of prefixes (previous, current) within one type, from startOfChunk and endOfChunk.
CONLLEVAL_STARTS = {"BB", "IB", "OB", "OI", "OE", "EE", "EI"}
CONLLEVAL_ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}


def read_iobes(tags: list[str], encoding: str) -> tuple[Found, int]:
    """Return the spans of iobes and the number of its errors."""
    spans, errors = iobes.parse_spans_with_errors(tags, IOBES_NAMES[encoding])
    return [(span.type, span.start, span.end) for span in spans], len(errors)


def read_seqeval(tags: list[str]) -> tuple[Found, bool]:
    """Return the entities of seqeval's default mode, and whether it warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        entities = get_entities(list(tags))
    return [(kind, first, last + 1) for kind, first, last in entities], bool(caught)


def read_seqeval_strict(tags: list[str], encoding: str) -> Found:
    """Return the entities of seqeval's strict mode."""
    found = Tokens(list(tags), SEQEVAL_SCHEMES[encoding]).entities
    return [(entity.tag, entity.start, entity.end) for entity in found]


def read_nervaluate(tags: list[str]) -> Found:
    """Return the entities of nervaluate, which knows prefixes B and I only."""
    return [(e.label, e.start, e.end + 1) for e in ListLoader().load([list(tags)])[0]]


def read_conlleval_pl(tags: list[str]) -> Found:
    """Return the chunks of the Perl script."""
    spans: Found = []
    begun, was, before = None, "", "O"
    for i, tag in enumerate([*tags, "O"]):
        now, _, kind = tag.partition("-")
        if (before + now in CONLLEVAL_ENDS or (before not in "O." and was != kind)) and begun:
            spans.append((*begun, i))
            begun = None
        if before + now in CONLLEVAL_STARTS or (now not in "O." and was != kind):
            begun = (kind, i)
        before, was = now, kind
    return spans


def read_ncrfpp(tags: list[str]) -> Found:
    """Return the entities of NCRF++ in IOBES: from B to the next E, whatever lies between.

    A new B or S closes an open span before it; a span that is still open at the end is given
    one token.
    """
    spans: Found = []
    begun = None
    for i, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix in {"B", "S"} and begun:
            spans.append((*begun, i))
        if prefix == "E" and begun:
            spans.append((*begun, i + 1))
        if prefix == "S":
            spans.append((kind, i, i + 1))
        if prefix in {"B", "E", "S"}:
            begun = (kind, i) if prefix == "B" else None
    if begun:
        spans.append((*begun, begun[1] + 1))
    return spans
