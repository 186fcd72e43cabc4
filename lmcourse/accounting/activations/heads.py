"""Queries, keys and values as views of a storage, and the copies that reshaping makes."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.activations.saved_tensor_list import ActivationSettings, TensorSize


@dataclass(frozen=True)
class Heads:
    """A tensor [batch, heads, tokens, d] in some memory order, perhaps a view of a larger storage.

    Attributes:
        storage: the tensor whose memory it is a view of.
        count: of heads.
        d: a head's width.
        head_major: whether memory goes head by head. A projection writes token by token, and what works on each number
            alone keeps that order; most other operations write head by head.
        owns_storage: whether the storage holds nothing else, such as keys behind queries.
    """

    storage: TensorSize
    count: int
    d: int
    head_major: bool = False
    owns_storage: bool = False

    def numbers(self, setting: ActivationSettings) -> int:
        """How many numbers the tensor has, without what else is in its storage."""
        return setting.tokens * self.count * self.d

    def new(self, setting: ActivationSettings, width: int, *, head_major: bool | None = None) -> Heads:
        """A newly allocated tensor of this shape; by default, in this memory order."""
        order = self.head_major if head_major is None else head_major
        return Heads(TensorSize(self.numbers(setting), width), self.count, self.d, order, owns_storage=True)

    def part(self, count: int) -> Heads:
        """The first or last `count` heads: a view of the same storage."""
        return Heads(self.storage, count, self.d, self.head_major)

    def merged(self, setting: ActivationSettings) -> TensorSize:
        """As [batch, tokens, heads · d], for a linear layer: a copy if memory goes head by head."""
        return self._copy_unless(self.count == 1 or not self.head_major, setting)

    def stacked(self, setting: ActivationSettings) -> TensorSize:
        """As [batch · heads, tokens, d], for a batched product: a copy if batch and heads do not lie in a row."""
        return self._copy_unless(1 in (setting.batch, self.count) or (self.head_major and self.owns_storage), setting)

    def flat(self, setting: ActivationSettings) -> TensorSize:
        """As [batch · heads · tokens, d]: a copy if these do not lie in a row."""
        if self.head_major:
            return self._copy_unless(self.owns_storage or setting.batch == 1, setting)
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
