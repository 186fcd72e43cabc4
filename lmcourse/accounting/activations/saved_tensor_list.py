"""Tensors by their sizes alone, and the list of those that autograd saves for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lmcourse.accounting.breakdown import Breakdown

Shared = TypeVar("Shared")

PARTS = (
    "embedding",
    "norms",
    "qkv",
    "qk transform",
    "attention",
    "attention out",
    "feed-forward",
    "residual",
    "blocks",
    "head and loss",
    "weight copies",
)
"""The parts of a prediction. A tensor that two parts save counts for the first."""


@dataclass(frozen=True, eq=False)
class TensorSize:
    """A tensor of which only the size is known. Compared by identity: equal sizes are two tensors, a view is its base.

    Attributes:
        numbers: how many it holds.
        width: bytes per number.
    """

    numbers: int
    width: int

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.numbers * self.width


@dataclass(frozen=True)
class ActivationSettings:
    """Batch, formats and form of attention of a forward pass.

    Attributes:
        batch, seq_len: of the tokens.
        param_bytes: bytes per parameter.
        matmul_bytes: bytes per number that matrix products read and write; differs from `param_bytes` under autocast.
        materialized_attention: whether attention takes the readable form, which materializes its scores, where it could
            take the fused one.
    """

    batch: int
    seq_len: int
    param_bytes: int
    matmul_bytes: int
    materialized_attention: bool

    @property
    def tokens(self) -> int:
        """Tokens of the batch: batch · seq_len."""
        return self.batch * self.seq_len

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key: batch · seq_len², for one head."""
        return self.batch * self.seq_len**2

    @property
    def autocast(self) -> bool:
        """Whether matrix products cast the stored parameters to another format."""
        return self.param_bytes != self.matmul_bytes


class SavedTensorList:
    """The tensors that autograd keeps, each counted once, and bytes by part."""

    def __init__(self) -> None:
        self._kept: set[TensorSize] = set()
        self._shared: dict[object, Any] = {}
        self._sizes = dict.fromkeys(PARTS, 0)
        self._part = PARTS[0]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what is kept in this `with` block under a part; `name` is one of PARTS."""
        before, self._part = self._part, name
        try:
            yield
        finally:
            self._part = before

    def keep(self, *tensors: TensorSize) -> None:
        """Record tensors that autograd keeps for the backward pass."""
        for tensor in tensors:
            if tensor not in self._kept:
                self._kept.add(tensor)
                self._sizes[self._part] += tensor.size

    def shared(self, name: object, make: Callable[[], Shared]) -> Shared:
        """A value that all layers share, such as cosine tables: made at the first call with a name, then returned."""
        if name not in self._shared:
            self._shared[name] = make()
        found: Shared = self._shared[name]
        return found

    def sizes(self) -> Breakdown[int]:
        """Saved bytes by part; parts that save nothing are left out."""
        return Breakdown({part: size for part, size in self._sizes.items() if size})
