"""The API reference of the site: a page per package, from the docstrings of its public names.

MkDocs calls `on_config` and `on_files` when it builds the site (`hooks` in mkdocs.yml); nothing is
written into `docs/`. Public are the names in `__all__` of `goldspan` and of its packages; the
classes that public functions return are described too.

    python tools/api_reference.py PACKAGE     # print one page, for a look
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

PACKAGES = (
    "goldspan", "goldspan.spans", "goldspan.crowd", "goldspan.aggregation", "goldspan.workers",
    "goldspan.selection", "goldspan.simulation", "goldspan.tagger", "goldspan.campaign",
    "goldspan.annotators", "goldspan.store", "goldspan.web", "goldspan.report", "goldspan.runners",
    "goldspan.client",
)  # fmt: skip
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$")
ENTRY = re.compile(r"^(\*{0,2}[\w.]+(?:, [\w.]+)*): (.*)$")
TITLES = {"Args": "Parameters"}
INDEX = """# API reference

Generated from the docstrings. Public names are those in a package's `__all__`; everything else may
change without notice. [Extending goldspan](../extending.md) shows the base classes at work.

| package | |
|---|---|
"""


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, in the place of `api/`."""
    pages = [{name: f"api/{name}.md"} for name in PACKAGES]
    for entry in config.nav:
        if entry.get("API reference") == "api/":
            entry["API reference"] = [{"Overview": "api/index.md"}, *pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those of the site."""
    from mkdocs.structure.files import File

    pages = {f"{name}.md": page_of(name) for name in PACKAGES} | {"index.md": index()}
    for name, text in pages.items():
        files.append(File.generated(config, f"api/{name}", content=text))
    return files


def index() -> str:
    """Return the page that lists the packages."""
    rows = []
    for name in PACKAGES:
        summary = (inspect.getdoc(importlib.import_module(name)) or "").split("\n\n")[0]
        rows.append(f"| [{name}]({name}.md) | {escaped(' '.join(summary.split()))} |")
    return INDEX + "\n".join(rows) + "\n"


def page_of(package: str) -> str:
    """Return the page of a package in Markdown."""
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if not name.startswith("__")]
    parts = [f"# {package}", markdown(inspect.getdoc(module) or "")]
    for name in names:
        parts += entry_of(name, getattr(module, name), "##")
    for name, kind in results_of(module, names).items():
        parts += entry_of(name, kind, "##")
    return "\n\n".join(part for part in parts if part) + "\n"


def results_of(module: Any, names: list[str]) -> dict[str, type]:
    """Return the classes of a package that its public functions return, beside the public names."""
    found: dict[str, type] = {}
    for function in filter(inspect.isfunction, (getattr(module, name) for name in names)):
        known = vars(sys.modules[function.__module__])
        for word in re.findall(r"\w+", str(inspect.signature(function).return_annotation)):
            kind = known.get(word)
            if inspect.isclass(kind) and kind.__module__.startswith(f"{module.__name__}."):
                found[word] = kind
    return {name: found[name] for name in sorted(found.keys() - set(names))}


def entry_of(name: str, value: Any, level: str) -> Iterator[str]:
    """Yield the parts of one public name: heading, signature, docstring, methods."""
    yield f"{level} {name}"
    is_class = inspect.isclass(value)
    if not is_class and not callable(value):
        yield f"A value of the type `{type(value).__name__}`."
        return
    signature = signature_of(value)
    if signature:
        yield f"```py\n{name}{signature}\n```"
    yield markdown(inspect.getdoc(value) or "")
    if is_class and not issubclass(value, BaseException):
        for method in methods_of(value):
            yield from entry_of(f"{name}.{method}", getattr(value, method), level + "#")


def methods_of(kind: type) -> list[str]:
    """List the public methods and class methods that a class defines itself, with docstrings."""
    found = []
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            found.append(name)
    return found


def signature_of(value: Any) -> str:
    """Return a signature, one parameter a line where it is long; "" where there is none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    kept = [one for name, one in found.parameters.items() if name not in {"self", "connection"}]
    back = inspect.Signature.empty if inspect.isclass(value) else found.return_annotation
    found = found.replace(parameters=kept, return_annotation=back)
    short = re.sub(r"\b(?:numpy|typing|collections\.abc|pathlib)\.", "", str(found))
    short = short.replace("'", "") if "'" in short and '"' not in short else short
    if len(short) < 80:
        return short
    stars, lines = False, []
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not stars:
            stars = True
            lines.append("    *,")
        lines.append(f"    {str(one).replace(chr(39), '')},")
        stars |= one.kind is one.VAR_POSITIONAL
    tail = "" if back is found.empty else f" -> {getattr(back, '__name__', back)}"
    return "(\n" + "\n".join(lines) + "\n)" + tail.replace("'", "")


def markdown(doc: str) -> str:
    """Turn a docstring in Google's style into Markdown: lists of parameters, examples as code."""
    out: list[str] = []
    in_section = in_example = False
    for line in doc.split("\n"):
        if line.startswith(">>>"):
            if not in_example:
                out += ["", "```py"]
            in_example, in_section = True, False
            out.append(line)
        elif in_example and line.strip():
            out.append(line)
        elif in_example:
            in_example = False
            out += ["```", ""]
        elif match := SECTION.match(line):
            in_section = True
            out += ["", f"**{TITLES.get(match[1], match[1])}**", ""]
        elif in_section and line.startswith("    ") and (match := ENTRY.match(line.strip())):
            is_deep = line.startswith("        ")
            text = escaped(line.strip()) if is_deep else f"* `{match[1]}`: {escaped(match[2])}"
            out.append(f"  {text}" if is_deep else text)
        elif in_section and line.startswith(" "):
            out.append(f"  {escaped(line.strip())}" if out[-1] else escaped(line.strip()))
        else:
            in_section = in_section and not line
            out.append(escaped(line) if not line.startswith("    ") else line)
    if in_example:
        out.append("```")
    return "\n".join(out).strip()


def escaped(text: str) -> str:
    """Keep angle and square brackets outside of code from being read as HTML or links."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if n % 2 else part.replace("<", "&lt;").replace("[", "\\[").replace("|", "\\|")
        for n, part in enumerate(parts)
    )


if __name__ == "__main__":
    print(page_of(sys.argv[1]))
