"""Checks that configurations share; each raises an error with a one-line message."""

from __future__ import annotations

from typing import Any, get_args


def check_choice(what: str, value: object, choices: Any) -> None:
    """Raise ValueError unless a value is one of the choices of a `Literal`."""
    if value not in get_args(choices):
        raise ValueError(f"there is no {what} {value!r}; choose from {', '.join(map(repr, get_args(choices)))}")


def check_type(what: str, value: object, kind: type, hint: str) -> None:
    """Raise TypeError, with a hint on what to pass instead, unless a value has a type."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{what} must be {article} {kind.__name__}, not {type(value).__name__}: {hint}")


def check_probability(what: str, value: float) -> None:
    """Raise ValueError unless a dropout probability is at least 0 and below 1."""
    if not 0 <= value < 1:
        raise ValueError(f"{what} must be at least 0 and below 1, not {value}")
