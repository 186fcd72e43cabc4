"""Right answers to the exercise on the KV cache, in other styles than the printed one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class PairsOfTensors:
    def __init__(self, layers: int, capacity: int) -> None:
        self.room = capacity
        self.pairs: list[Any] = [None] * layers
        self.filled = [0] * layers

    def __len__(self) -> int:
        return min(self.filled)

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for pair in self.pairs if pair is not None for tensor in pair)

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        new, old = k.size(2), self.filled[layer]
        if old + new > self.room:
            raise ValueError("full")
        if self.pairs[layer] is None:
            b, h, _, d = k.shape
            self.pairs[layer] = (k.new_empty(b, h, self.room, d), v.new_empty(b, h, self.room, d))
        self.filled[layer] += new
        for memory, tensor in zip(self.pairs[layer], (k, v), strict=True):
            memory.narrow(2, old, new).copy_(tensor)
        keys, values = (memory.narrow(2, 0, old + new) for memory in self.pairs[layer])
        return keys, values

    def truncate(self, tokens: int) -> None:
        if tokens < 0 or tokens > len(self):
            raise ValueError("the cache does not hold that many tokens")
        self.filled = [tokens for _ in self.filled]


class OneLayer:
    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity = capacity
        self.layers: list[Any] = [{"k": torch.tensor([]), "v": torch.tensor([]), "n": 0} for _ in range(layers)]

    def __len__(self) -> int:
        return int(min(layer["n"] for layer in self.layers))

    @property
    def nbytes(self) -> int:
        return int(sum(layer[x].numel() * layer[x].element_size() for layer in self.layers for x in "kv"))

    def append(self, layer: int, k: Tensor, v: Tensor) -> list[Any]:
        own: Any = self.layers[layer]
        end = own["n"] + k.shape[-2]
        if not end <= self.capacity:
            raise ValueError(f"{end} > {self.capacity}")
        for name, tensor in (("k", k), ("v", v)):
            if own[name].ndim == 1:
                own[name] = torch.zeros((*tensor.shape[:2], self.capacity, tensor.shape[-1]), dtype=tensor.dtype)
            own[name][..., own["n"] : end, :] = tensor
        own["n"] = end
        return [own["k"][..., :end, :], own["v"][..., :end, :]]

    def truncate(self, tokens: int) -> None:
        if tokens not in range(len(self) + 1):
            raise ValueError(f"{tokens} not in 0..{len(self)}")
        for layer in self.layers:
            layer["n"] = tokens


class ByPosition:
    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity = capacity
        self.memory: dict[int, Any] = {}
        self.counts = dict.fromkeys(range(layers), 0)

    def __len__(self) -> int:
        return sorted(self.counts.values())[0]

    @property
    def nbytes(self) -> int:
        total = 0
        for both in self.memory.values():
            total += both.untyped_storage().nbytes()
        return total

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        count = self.counts[layer]
        if count + k.shape[2] > self.capacity:
            raise ValueError("the cache has no room for these tokens")
        if layer not in self.memory:
            self.memory[layer] = torch.zeros(2, self.capacity, *k[:, :, 0:1].transpose(1, 2).squeeze(1).shape).to(k)
        for step in range(k.shape[2]):
            self.memory[layer][0, count + step] = k[:, :, step]
            self.memory[layer][1, count + step] = v[:, :, step]
        self.counts[layer] = count + k.shape[2]
        both = self.memory[layer][:, : self.counts[layer]].permute(0, 2, 3, 1, 4)
        return both[0], both[1]

    def truncate(self, tokens: int) -> None:
        assert isinstance(tokens, int)
        if tokens > len(self) or tokens < 0:
            raise ValueError
        self.counts = dict.fromkeys(self.counts, tokens)


RIGHT_CACHES = (PairsOfTensors, OneLayer, ByPosition)
