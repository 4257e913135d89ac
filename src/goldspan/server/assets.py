"""The files that pages load – scripts and styles – under addresses that name their content.

All of them lie in one folder `/static/HASH/`, so that ES modules import each other by relative
names, and a browser may keep them for ever: other content has another address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Response

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Kinds of files that are served, by their endings; others in the folder are not."""
FOR_EVER = "public, max-age=31536000, immutable"
_IMPORT = re.compile(rb"""^(?:import|export)\b[^;]*?"\./([^"]+)";""", re.MULTILINE)


@dataclass(frozen=True)
class Assets:
    """The static files of this version, read once.

    Attributes:
        files: Content by name.
        version: Hash of all names and contents; part of every address.
    """

    files: Mapping[str, bytes]
    version: str

    @classmethod
    def read(cls) -> Assets:
        """Read them from the package."""
        folder = files("goldspan.server").joinpath("static")
        found = sorted(path.name for path in folder.iterdir() if _ending(path.name) in TYPES)
        contents = {name: folder.joinpath(name).read_bytes() for name in found}
        digest = blake2b(digest_size=8)
        for name, content in contents.items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return cls(contents, digest.hexdigest())

    def address(self, name: str) -> str:
        """Give the address of a file; a name that is not there is an error of the template."""
        if name not in self.files:
            raise LookupError(f"there is no static file {name!r}: {', '.join(self.files)}")
        return f"/static/{self.version}/{name}"

    def modules(self, *names: str) -> list[str]:
        """Give the addresses of scripts and of all that they import, those of the first one first.

        A page names them in its head: the browser then gets them at once, and not one after the
        other as it comes to their imports.
        """
        found: list[str] = []
        for name in names:
            new = [name]
            for one in new:
                ahead = [match.decode() for match in _IMPORT.findall(self.files[one])]
                new += [other for other in dict.fromkeys(ahead) if other not in [*found, *new]]
            found += [one for one in new if one not in found]
        return [self.address(one) for one in found]


@cache
def assets() -> Assets:
    """Give the static files; they do not change while the process runs."""
    return Assets.read()


def static_files() -> APIRouter:
    """Give the route of the static files; it needs no cookie."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{version}/{name}")
    async def static_file(version: str, name: str) -> Response:
        known = assets()
        # A name is looked up among those that were read, and never becomes a path.
        if version != known.version or name not in known.files:
            raise HTTPException(404, "there is no such file")
        headers = {"Cache-Control": FOR_EVER, "X-Content-Type-Options": "nosniff"}
        return Response(known.files[name], headers=headers, media_type=TYPES[_ending(name)])

    return router


def _ending(name: str) -> str:
    return name.rpartition(".")[2]
