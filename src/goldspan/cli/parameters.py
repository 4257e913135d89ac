"""The parameters of a method: from --param, and from the options that some have of their own."""

from __future__ import annotations

from typing import Any

import typer

from goldspan.cli.output import key_values

_WORDS = {"true": True, "false": False, "none": None}
_VOTES = "votes such as mv-token"


def method_params(
    method: str, param: list[str] | None, *, ties: str | None, raw: bool, seed: int | None
) -> dict[str, Any]:
    """Put together the parameters of a method.

    Raises:
        typer.BadParameter: A parameter is given twice, or does not look like NAME=VALUE.
        InputError: An option is for other methods.
        UnknownNameError: There is no such method.
    """
    params = {name: _value(text) for name, text in key_values(param, "NAME=VALUE").items()}
    own: list[tuple[str, str, Any, str]] = []
    own += [("--ties", "ties", ties, _VOTES)] if ties is not None else []
    own += [("--raw", "legal", False, _VOTES)] if raw else []
    own += [("--seed", "random_state", seed, "methods that draw")] if seed is not None else []
    for option, name, value, meant in own:
        if name in params:
            raise typer.BadParameter(f"{option} and --param {name}=… are the same: leave one out")
        _check_has(method, name, option, meant)
        params[name] = value
    return params


def _check_has(method: str, name: str, option: str, meant: str) -> None:
    from goldspan.aggregation import get_aggregator
    from goldspan.errors import InputError

    if name not in get_aggregator(method).parameter_names():
        raise InputError(f"{option} is for {meant}, not for {method}: leave it out")


def _value(text: str) -> Any:
    """Read a parameter: true, false, none, a number, or a string."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
