"""Tasks as a page shows them, and answers as a page sends them."""

from __future__ import annotations

from collections.abc import Sequence
from hmac import digest
from typing import Any

from goldspan.campaign import Setting
from goldspan.errors import InputError
from goldspan.protocols import Lease
from goldspan.server.errors import Refused
from goldspan.server.security.secret import Keys
from goldspan.server.security.tokens import Seal
from goldspan.spans import Span, write


class Tasks:
    """Makes tasks of leases, and labels of answers.

    A task's id names the item and the worker, signed: a worker cannot ask for an item. Neither the
    items' ids, which may say too much, nor their places in the pool, which tell control questions
    from others, can be read from it: the number is masked with a keyed hash that differs for every
    item and worker (as in synthetic initialization vectors, so that a task keeps its id).

    Args:
        setting: The campaign.
        keys: The server's.
    """

    def __init__(self, setting: Setting, keys: Keys) -> None:
        self.setting = setting
        self._key = keys.of(f"task {setting.key}")
        self._seal = Seal(self._key)

    def show(self, lease: Lease, *, practice: bool) -> dict[str, Any]:
        """Give what the page needs of a lease."""
        number = self.setting.pool.place[lease.item]
        single = self.setting.plan.is_single
        return {
            "id": self._seal.sign({**self._masked(number, lease.worker), "w": lease.worker}),
            "kind": "single" if single else "spans",
            "tokens": [] if single else list(lease.tokens),
            "text": self._text(number),
            "starts": None if single else self.setting.pool.starts_of(number),
            "expires": lease.expires,
            "training": practice,
        }

    def item(self, worker: str, task: str) -> str:
        """Give the item of a worker's task.

        Raises:
            Refused: The id was not made for this worker.
        """
        facts = self._seal.read(task)
        if facts is None or facts.get("w") != worker or "m" not in facts:
            raise Refused("invalid", "This task is not one of yours: load the page again.", 422)
        number, mark = facts["n"] ^ self._mask(facts["m"]), facts["m"]
        # A pool that was put in another order since has another item in this place.
        if number >= len(self.setting.ids) or mark not in self._marks(number, worker):
            raise Refused("invalid", "The items changed meanwhile: load the page again.", 422)
        return str(self.setting.ids[number])

    def labels(self, item: str, answer: Sequence[Span] | str) -> list[str]:
        """Turn an answer into labels, one per token.

        Raises:
            Refused: It does not fit the item.
        """
        if self.setting.plan.is_single:
            return [self._single(answer)]
        if isinstance(answer, str):
            raise Refused("invalid", "This campaign asks for spans, not for one label.", 422)
        known, length = self.setting.plan.task.types, self._length(item)
        wrong = [span.type for span in answer if span.type not in known]
        if wrong:
            raise Refused("invalid", f"{wrong[0]!r} is none of {', '.join(known)}.", 422)
        try:
            return write(answer, length, self.setting.codec.encoding)
        except InputError as error:
            raise Refused("invalid", f"The spans do not fit: {error}.", 422) from None

    def text(self, item: str) -> str:
        """Give an item as text."""
        return self._text(self.setting.pool.place[item])

    def shown(self, item: str) -> dict[str, Any]:
        """Give an item as a page shows it: tokens, text, and where in it the tokens stand."""
        number = self.setting.pool.place[item]
        if self.setting.plan.is_single:
            return {"tokens": [], "text": self._text(number), "starts": None}
        words, starts = self.setting.words[number], self.setting.pool.starts_of(number)
        return {"tokens": list(words), "text": self._text(number), "starts": starts}

    def spans(self, labels: Sequence[str]) -> list[dict[str, Any]]:
        """Give known labels as the page shows spans."""
        from goldspan.spans import parse

        found = parse(list(labels), self.setting.codec.encoding)
        return [{"start": span.start, "end": span.end, "type": span.type} for span in found]

    def _masked(self, number: int, worker: str) -> dict[str, Any]:
        mark = self._marks(number, worker)[0]
        return {"n": number ^ self._mask(mark), "m": mark}

    def _marks(self, number: int, worker: str) -> tuple[str, str]:
        """Return the mark of a worker's task, and that of a task which version 0.1 gave out."""
        names = (f"item {self.setting.ids[number]} {worker}", f"{number} {worker}")
        both = (digest(self._key, name.encode(), "sha256")[:12].hex() for name in names)
        return next(both), next(both)

    def _mask(self, mark: str) -> int:
        return int.from_bytes(digest(self._key, f"mask {mark}".encode(), "sha256")[:6])

    def _single(self, answer: Sequence[Span] | str) -> str:
        known = self.setting.plan.task.labels
        if not isinstance(answer, str) or answer not in known:
            raise Refused("invalid", f"Choose one of {', '.join(known)}.", 422)
        return answer

    def _length(self, item: str) -> int:
        return len(self.setting.words[self.setting.pool.place[item]])

    def _text(self, number: int) -> str:
        """Return an item's own text, or the cells of a row of a table that has no texts."""
        pool = self.setting.pool
        if pool.text is not None:
            return str(pool.given[number])
        cells = {name: values[number] for name, values in (pool.columns or {}).items()}
        plain = {name: getattr(cell, "as_py", lambda c=cell: c)() for name, cell in cells.items()}
        return "\n".join(f"{name}: {value}" for name, value in plain.items() if value is not None)
