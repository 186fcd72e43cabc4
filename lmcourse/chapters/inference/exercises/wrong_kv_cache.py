"""Wrong answers to the exercise on the KV cache: a right cache, and subclasses that change one part."""

from __future__ import annotations

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]


class _Right:
    """Keys and values per layer, with a method for each part that wrong answers change."""

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
            raise ValueError("the cache does not hold that many tokens")
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


class OneMemoryForBoth(_Right):
    def make(self, like: Tensor) -> Pair:
        keys, _ = super().make(like)
        return keys, keys


class OwnTensors(_Right):
    def write(self, layer: int, k: Tensor, v: Tensor, start: int, end: int) -> Pair:
        if self.memory[layer] is None and end == self.capacity:
            self.memory[layer] = (k, v)
            return k, v
        return super().write(layer, k, v, start, end)


class LongestLayerLimits(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= max(self.lengths):
            raise ValueError("the cache does not hold that many tokens")
        self.lengths = [tokens] * len(self.lengths)


class CapacityLimits(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= self.capacity:
            raise ValueError("the cache does not hold that many tokens")
        self.lengths = [tokens] * len(self.lengths)


class ElementsCounted(_Right):
    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() for pair in self.memory if pair is not None for tensor in pair)


class FirstLayerCounts(_Right):
    def __len__(self) -> int:
        return self.lengths[0]


class LongestLayerCounts(_Right):
    def __len__(self) -> int:
        return max(self.lengths)


class LastLayerCounts(_Right):
    def __len__(self) -> int:
        return self.lengths[-1]


class ReturnsCopies(_Right):
    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        keys, values = super().append(layer, k, v)
        return keys.clone(), values.clone()


class NeverQuiteFull(_Right):
    def check(self, end: int) -> None:
        if end >= self.capacity:
            raise ValueError("the cache is full")


class CutsItsMemory(_Right):
    def truncate(self, tokens: int) -> None:
        super().truncate(tokens)
        self.memory = [pair and (pair[0][:, :, :tokens], pair[1][:, :, :tokens]) for pair in self.memory]


class FirstLayerForgets(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("the cache does not hold that many tokens")
        self.lengths[0] = tokens


class ForgetsSoMany(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("the cache does not hold that many tokens")
        self.lengths = [length - tokens for length in self.lengths]


class KeepsTheLast(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("the cache does not hold that many tokens")
        for pair, length in zip(self.memory, self.lengths, strict=True):
            for tensor in pair or ():
                tensor[:, :, :tokens] = tensor[:, :, length - tokens : length].clone()
        self.lengths = [tokens] * len(self.lengths)


class OneLengthForAll(_Right):
    def __len__(self) -> int:
        return self.lengths[0]

    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        n = k.shape[2]
        if layer == 0:
            self.check(self.lengths[0] + n)
            self.lengths[0] += n
        end = self.lengths[0]
        keys, values = self.write(layer, k, v, end - n, end)
        return keys[:, :, :end], values[:, :, :end]


class LengthOfTheLast(_Right):
    def __len__(self) -> int:
        return self.lengths[-1]

    def append(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        end = len(self) + k.shape[2]
        self.check(end)
        keys, values = self.write(layer, k, v, len(self), end)
        if layer == len(self.lengths) - 1:
            self.lengths[-1] = end
        return keys[:, :, :end], values[:, :, :end]


class OnlyIfLonger(_Right):
    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("the cache does not hold that many tokens")
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
    (WholeMemory, "You return the whole memory, with rows that are not written yet. Return only the tokens so far."),
    (NewOnly, "You return only the new keys and values. Return all that the layer holds."),
    (OneMemory, "Your layers share one memory, and overwrite each other. Give each layer its own."),
    (FromTheBeginning, "Each append writes at the beginning. Write new tokens after the earlier ones."),
    (
        Concatenated,
        "You concatenate: each append copies all earlier tokens. Allocate the memory once, and write into it.",
    ),
    (KeysForValues, "You store the keys in place of the values."),
    (OneMemoryForBoth, "Keys and values share one memory, so the values overwrite the keys. Allocate two."),
    (
        OwnTensors,
        "If the first append fills the cache, you keep the tensors that you were given. When they change, so does the "
        "cache: copy them into memory of your own.",
    ),
    (
        LongestLayerLimits,
        "truncate accepts as many tokens as the fullest layer holds. The others hold fewer: the limit is len(cache).",
    ),
    (CapacityLimits, "truncate accepts up to the capacity. The limit is len(cache)."),
    (ElementsCounted, "You count numbers, not bytes. Multiply by the bytes of a number, or use `tensor.nbytes`."),
    (
        FirstLayerCounts,
        "len is the length of the first layer. In the middle of a pass later layers hold fewer: take the minimum.",
    ),
    (
        LongestLayerCounts,
        "len is the length of the fullest layer. In the middle of a pass others hold fewer: take the minimum.",
    ),
    (
        LastLayerCounts,
        "len is the length of the last layer. Layers may be called in any order: take the minimum of all.",
    ),
    (ReturnsCopies, "You return copies of the memory. Return views: slices like `keys[:, :, :end]`."),
    (NeverQuiteFull, "You reject tokens that just fit. A cache with `capacity` tokens is full, not too full."),
    (
        CutsItsMemory,
        "truncate cuts the memory itself, so the next tokens have no place. Keep the memory, and change the number of "
        "tokens only.",
    ),
    (FirstLayerForgets, "truncate changes only the first layer. Change all of them."),
    (ForgetsSoMany, "`tokens` is the number that *stays*. You remove that many."),
    (KeepsTheLast, "truncate keeps the last tokens, as a window does. Keep the *first* `tokens` tokens."),
    (
        OneLengthForAll,
        "You have one length for all layers, which grows at layer 0. Give each layer its own: a pass may break off, "
        "and layers may be called in any order.",
    ),
    (
        LengthOfTheLast,
        "You have one length for all layers, which grows at the last layer. Give each layer its own: a pass may break "
        "off, and layers may be called in any order.",
    ),
    (
        OnlyIfLonger,
        "If `tokens` is len(cache), your truncate changes nothing. After a pass that broke off, a layer holds more: "
        "set all layers to the same length.",
    ),
    (UsedBytes, "You count the used memory. Count the allocated memory, for the whole capacity."),
    (KeysWeighed, "You count the keys *or* the values. Count both."),
    (
        AlwaysFourBytes,
        "Your cache takes four bytes for every number, or counts them. Half precision has two, double precision eight: "
        "use the dtype of k.",
    ),
    (DropsTheOldest, "If new tokens do not fit, you drop old ones. Raise ValueError."),
    (
        CountsFirst,
        "After a rejected append your cache has changed: you count the new tokens before you reject them.",
    ),
    (KeepsAnything, "Your truncate accepts a negative number, or more tokens than there are. Raise ValueError."),
)
