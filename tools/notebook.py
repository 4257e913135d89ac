"""Runs a notebook in this Python, keeps what it prints in it, and shows it as a page of the site.

A cell's output is what it prints, then the value of its last expression: as HTML where the value
has it, else as text. That is all that the tutorial needs of a kernel; it runs in Jupyter as well.

    python tools/notebook.py docs/tutorial.ipynb            # is what it prints what it holds?
    python tools/notebook.py docs/tutorial.ipynb --write

MkDocs calls `on_page_markdown` (`hooks` in mkdocs.yml): a line `<!-- notebook: tutorial.ipynb -->`
becomes the notebook beside the page.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

PLACE = re.compile(r"^<!-- notebook: (\S+) -->$", re.MULTILINE)


def main() -> None:
    """Run a notebook; write it, or tell whether its outputs are the same."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the outputs in the notebook")
    given = parser.parse_args()
    before = read(given.notebook)
    after = run(before)
    if given.write:
        given.notebook.write_text(json.dumps(after, ensure_ascii=False, indent=1) + "\n", "utf-8")
    elif before != after:
        sys.exit(f"{given.notebook} prints something else now: look at it, then add --write")


def read(path: Path) -> dict[str, Any]:
    """Return the notebook of a file."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells, run one after the other."""
    names: dict[str, Any] = {"__name__": "__main__"}
    made, n = [], 0
    for cell in notebook["cells"]:
        more: dict[str, Any] = {}
        if cell["cell_type"] == "code":
            n += 1
            more = {"execution_count": n, "outputs": _outputs(source(cell), names, n)}
        made.append({**cell, **more})
    return {**notebook, "cells": made}


def source(cell: dict[str, Any]) -> str:
    """Return the text of a cell."""
    return "".join(cell["source"])


def _outputs(code: str, names: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """Run a cell, and return its outputs as a notebook has them."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {n}>", "exec"), names)  # noqa: S102 - that is what it is for
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"<cell {n}>", "eval"), names)  # noqa: S307
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        found.append(
            {"data": data, "execution_count": n, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


# --------------------------------------------------------------------------------------------------
# On the site


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Put a notebook where a page names one."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent
    return PLACE.sub(lambda found: to_markdown(read(folder / found[1])), markdown)


def to_markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown: its text, its code, and below each cell what it gave."""
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(source(cell))
            continue
        parts.append(f"```py\n{source(cell)}\n```")
        parts += [_shown(output) for output in cell["outputs"]]
    return "\n\n".join(parts)


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return "```text\n" + "".join(output["text"]) + "```"
    data = output["data"]
    if "text/html" in data:
        html = "".join(line for line in data["text/html"] if line.strip())
        return f'<div class="notebook-output">\n{html}\n</div>'
    return "```text\n" + "".join(data["text/plain"]) + "\n```"


if __name__ == "__main__":
    main()
