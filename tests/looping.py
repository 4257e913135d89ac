"""Many small cases in one test: a case of its own costs each of pytest's processes milliseconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Callable[..., None]]:
    """Run a test with every case, as `pytest.mark.parametrize` does, but as one test.

    All cases are run; what fails is raised together, and every failure says its case.
    """
    names, several = ((names,), False) if isinstance(names, str) else (names, True)
    cases = list(cases)

    def looped(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for values in cases:
                case = dict(zip(names, values if several else (values,), strict=True))
                try:
                    test(**fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
                    error.add_note(f"in the case {case!r}")
                    failures.append(error)
            if failures:
                message = f"{len(failures)} of {len(cases)} cases of {test.__name__}"
                raise BaseExceptionGroup(message, failures)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=left)  # what pytest has fixtures for
        return run

    return looped
