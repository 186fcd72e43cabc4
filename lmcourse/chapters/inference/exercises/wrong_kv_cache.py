"""Wrong answers to the exercise on the KV cache: a right one, and what differs from it."""

from __future__ import annotations

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]


class _Right:
    """Keys and values per layer, with a method for everything that people do otherwise."""

    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity, self.lengths = capacity, [0] * layers
        self.memory: list[Pair | None] = [None] * layers

    def __len__(self) -> int:
        return min(self.lengths)

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for pair in self.memory if pair is not None for tensor in pair)

    def check(self, end: int) -> None:
        if end > self.capacity:
            raise ValueError("the cache is full")

    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        end = self.lengths[layer] + k.shape[2]
        self.check(end)
        keys, values = self.write(layer, k, v, self.lengths[layer], end)
        self.lengths[layer] = end
        return keys[:, :, :end], values[:, :, :end]

    def make(self, like: Tensor) -> Pair:
        b, h, _, d = like.shape
        return like.new_zeros(b, h, self.capacity, d), like.new_zeros(b, h, self.capacity, d)

    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        pair = self.memory[layer] or self.make(k)
        self.memory[layer] = pair
        pair[0][:, :, start:end], pair[1][:, :, start:end] = k, v
        return pair

    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("not so many tokens")
        self.lengths = [tokens] * len(self.lengths)


class WholeMemory(_Right):
    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        super().append(layer, k, v)
        return self.memory[layer] or (k, v)


class NewOnly(_Right):
    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        super().append(layer, k, v)
        return k, v


class OneMemory(_Right):
    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        pair = super().write(0, k, v, start, end)
        self.memory[layer] = pair
        return pair


class FromTheBeginning(_Right):
    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        return super().write(layer, k, v, 0, end - start)


class Concatenated(_Right):
    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        old = self.memory[layer]
        pair = (k, v) if old is None else (torch.cat([old[0], k], 2), torch.cat([old[1], v], 2))
        self.memory[layer] = pair
        return pair

    def truncate(self, tokens: int) -> None:
        super().truncate(tokens)
        self.memory = [pair and (pair[0][:, :, :tokens], pair[1][:, :, :tokens]) for pair in self.memory]


class KeysForValues(_Right):
    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        return super().write(layer, k, k, start, end)


class FirstLayerCounts(_Right):
    def __len__(self) -> int:
        return self.lengths[0]


class LongestLayerCounts(_Right):
    def __len__(self) -> int:
        return max(self.lengths)


class FirstLayerForgets(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("not so many tokens")
        self.lengths[0] = tokens


class ForgetsSoMany(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("not so many tokens")
        self.lengths = [length - tokens for length in self.lengths]


class OnlyIfLonger(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("not so many tokens")
        if tokens < len(self):
            self.lengths = [tokens] * len(self.lengths)


class UsedBytes(_Right):
    @property
    def nbytes(self) -> int:
        return super().nbytes // self.capacity * max(self.lengths)


class KeysWeighed(_Right):
    @property
    def nbytes(self) -> int:
        return super().nbytes // 2


class AlwaysFourBytes(_Right):
    @property
    def nbytes(self) -> int:
        return 4 * sum(tensor.numel() for pair in self.memory if pair is not None for tensor in pair)


class DropsTheOldest(_Right):
    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        if self.lengths[layer] + k.shape[2] > self.capacity:
            self.lengths[layer] = max(self.capacity - k.shape[2], 0)
        return super().append(layer, k[:, :, -self.capacity :], v[:, :, -self.capacity :])


class CountsFirst(_Right):
    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        start = self.lengths[layer]
        self.lengths[layer] += k.shape[2]
        self.check(self.lengths[layer])
        keys, values = self.write(layer, k, v, start, self.lengths[layer])
        return keys[:, :, : self.lengths[layer]], values[:, :, : self.lengths[layer]]


class KeepsAnything(_Right):
    def truncate(self, tokens: int) -> None:
        self.lengths = [min(max(tokens, 0), length) for length in self.lengths]


WRONG_CACHES = (
    (WholeMemory, "You return the whole memory, with rows that nobody has written yet. Cut it to the tokens so far."),
    (NewOnly, "You return the new keys and values. A query needs all so far."),
    (OneMemory, "Your layers share one memory, and overwrite each other. Each layer has its own keys and values."),
    (FromTheBeginning, "Each append writes at the beginning. New tokens stand behind those before."),
    (
        Concatenated,
        "You concatenate: each new token copies all before it, and the memory grows. Take it once, and write into it.",
    ),
    (KeysForValues, "Your values are the keys."),
    (FirstLayerCounts, "len counts the first layer. In the middle of a pass the last layer has fewer: take the least."),
    (LongestLayerCounts, "len counts the fullest layer. In the middle of a pass others have fewer: take the least."),
    (FirstLayerForgets, "Only the first layer forgets. All of them have to."),
    (ForgetsSoMany, "`tokens` says how many *stay*. You take so many away."),
    (
        OnlyIfLonger,
        "A layer may hold more than len, after a pass that broke off. truncate sets all of them to the same.",
    ),
    (UsedBytes, "You count what is used. Memory is taken for the whole capacity."),
    (KeysWeighed, "Keys *and* values: twice that."),
    (AlwaysFourBytes, "You count four bytes for every number. Half precision has two, double eight."),
    (DropsTheOldest, "A full cache refuses with ValueError. Yours overwrites what it should keep."),
    (CountsFirst, "You count the tokens before you refuse them: after a refusal the length is wrong."),
    (KeepsAnything, "truncate to a negative number, or to more than there are, raises ValueError."),
)
