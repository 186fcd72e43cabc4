"""Queries, keys and values as views of a storage, and the copies that reshaping makes."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.activations.ledger import ActivationSettings, TensorSize


@dataclass(frozen=True)
class Heads:
    """A tensor [batch, heads, tokens, d] in some memory order, perhaps a view of a larger storage.

    Attributes:
        storage: the tensor whose memory it is a view of.
        count: of heads.
        d: a head's width.
        by_head: whether memory goes head by head. A projection writes token by token, and what works on each number
            alone keeps that order; most other operations write head by head.
        alone: whether the storage holds nothing else, such as keys behind queries.
    """

    storage: TensorSize
    count: int
    d: int
    by_head: bool = False
    alone: bool = False

    def numbers(self, setting: ActivationSettings) -> int:
        """How many numbers the tensor has, without what else is in its storage."""
        return setting.tokens * self.count * self.d

    def new(self, setting: ActivationSettings, width: int, *, by_head: bool | None = None) -> Heads:
        """A newly allocated tensor of this shape; by default, in this memory order."""
        order = self.by_head if by_head is None else by_head
        return Heads(TensorSize(self.numbers(setting), width), self.count, self.d, order, alone=True)

    def part(self, count: int) -> Heads:
        """The first or last `count` heads: a view of the same storage."""
        return Heads(self.storage, count, self.d, self.by_head)

    def merged(self, setting: ActivationSettings) -> TensorSize:
        """As [batch, tokens, heads · d], for a linear layer: a copy if memory goes head by head."""
        return self._copy_unless(self.count == 1 or not self.by_head, setting)

    def stacked(self, setting: ActivationSettings) -> TensorSize:
        """As [batch · heads, tokens, d], for a batched product: a copy if batch and heads do not lie in a row."""
        return self._copy_unless(1 in (setting.batch, self.count) or (self.by_head and self.alone), setting)

    def flat(self, setting: ActivationSettings) -> TensorSize:
        """As [batch · heads · tokens, d]: a copy if these do not lie in a row."""
        if self.by_head:
            return self._copy_unless(self.alone or setting.batch == 1, setting)
        return self._copy_unless(self.count == 1, setting)

    def spread(self, setting: ActivationSettings, heads: int) -> TensorSize:
        """Each head repeated for all queries that share it, then stacked. The repeats are no copies until stacked."""
        if heads == self.count:
            return self.stacked(setting)
        if self.count == setting.batch == 1:
            return self.storage
        return TensorSize(setting.tokens * heads * self.d, self.storage.width)

    def _copy_unless(self, view: bool, setting: ActivationSettings) -> TensorSize:
        return self.storage if view else TensorSize(self.numbers(setting), self.storage.width)
