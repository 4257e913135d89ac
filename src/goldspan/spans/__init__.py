"""Spans and tags: parse, check, convert, mask and score, for every encoding.

Imported at first use: `spans.encoding` and `spans.text` do without NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.spans.codec import Codec as Codec
    from goldspan.spans.codec import Tagged as Tagged
    from goldspan.spans.codec import next_tags as next_tags
    from goldspan.spans.codec import transition_mask as transition_mask
    from goldspan.spans.codec import transitions as transitions
    from goldspan.spans.corpus import find_errors as find_errors
    from goldspan.spans.corpus import find_spans as find_spans
    from goldspan.spans.encoding import Span as Span
    from goldspan.spans.parsing import convert as convert
    from goldspan.spans.parsing import parse as parse
    from goldspan.spans.parsing import parse_bilou as parse_bilou
    from goldspan.spans.parsing import parse_bio as parse_bio
    from goldspan.spans.parsing import parse_bmewo as parse_bmewo
    from goldspan.spans.parsing import parse_iob as parse_iob
    from goldspan.spans.parsing import parse_iobes as parse_iobes
    from goldspan.spans.parsing import validate as validate
    from goldspan.spans.parsing import write as write
    from goldspan.spans.scoring import score as score
    from goldspan.spans.text import to_tokens as to_tokens
    from goldspan.spans.text import tokenize as tokenize

__getattr__, __dir__, __all__ = lazy(__name__)
