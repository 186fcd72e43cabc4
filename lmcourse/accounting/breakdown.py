"""A sum with its named parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Breakdown(Generic[Number]):
    """A total with named components, such as parameters, FLOPs, bytes or seconds.

    Attributes:
        parts: the size of each part by name, in the order in which they are printed.
    """

    parts: Mapping[str, Number]

    @property
    def total(self) -> Number:
        """The sum of all parts."""
        return sum(self.parts.values())

    def __getitem__(self, part: str) -> Number:
        return self.parts[part]

    def __iter__(self) -> Iterator[tuple[str, Number]]:
        return iter(self.parts.items())

    def __add__(self, other: Breakdown[Number]) -> Breakdown[Number]:
        """Add parts with the same name; new parts come last."""
        names = dict.fromkeys([*self.parts, *other.parts])
        return Breakdown({name: self.parts.get(name, 0) + other.parts.get(name, 0) for name in names})

    def __mul__(self, factor: Number) -> Breakdown[Number]:
        return Breakdown({name: size * factor for name, size in self.parts.items()})

    def only(self, *names: str) -> Breakdown[Number]:
        """Return a breakdown with only these parts; raise KeyError if one does not exist."""
        return Breakdown({name: self.parts[name] for name in names})
