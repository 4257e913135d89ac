"""llms.txt of the site: every page of the navigation and its first sentence, for programs.

MkDocs calls `on_nav` and `on_post_build` when it builds the site (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FACTS = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
PROSE = re.compile(r"(?!```|\d+\.)(?:[\w`\"“\[]|\*\*)")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_pages: list[Any] = []


def first_sentence(markdown: str) -> str:
    r"""Return the first sentence of a page's prose as plain text, "" where it has none.

    >>> first_sentence("# Pay\n\n![A bill](b.png)\n\nWho **earns** [what](pay.md)? It depends.")
    'Who earns what?'
    """
    parts = (part.strip() for part in FACTS.sub("", markdown).split("\n\n"))
    text = " ".join(next(filter(PROSE.match, parts), "").split())
    return re.split(r"(?<=[.?!])(?<! al\.)\s", re.sub(r"\*\*|`", "", LINK.sub(r"\1", text)))[0]


def on_nav(nav: Any, **_: Any) -> None:
    """Note the pages in their order."""
    _pages[:] = nav.pages


def on_post_build(config: Any) -> None:
    """Write llms.txt beside the pages."""
    rows = [f"- [{one.title}]({one.url}): {first_sentence(one.markdown)}" for one in _pages]
    text = "\n".join([f"# {config.site_name}", "", f"> {config.site_description}.", "", *rows, ""])
    (Path(config.site_dir) / "llms.txt").write_text(text, "utf-8")
