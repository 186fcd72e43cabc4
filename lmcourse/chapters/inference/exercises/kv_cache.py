"""The exercise on a KV cache that can also forget tokens."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.inference.exercises.right_kv_cache import RIGHT_CACHES
from lmcourse.chapters.inference.exercises.wrong_kv_cache import WRONG_CACHES
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


class _Reference:
    """Keys and values of all layers in one tensor, of shape (layers, 2, b, h, capacity, d)."""

    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity, self.memory, self.lengths = capacity, torch.empty(0), torch.zeros(layers, dtype=torch.long)

    def __len__(self) -> int:
        return int(self.lengths.min())

    @property
    def nbytes(self) -> int:
        return self.memory.numel() * self.memory.element_size()

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start = int(self.lengths[layer])
        end = start + k.shape[2]
        if end > self.capacity:
            raise ValueError(f"{end} tokens in a cache for {self.capacity}")
        if not self.memory.numel():
            b, h, _, d = k.shape
            self.memory = torch.zeros(len(self.lengths), 2, b, h, self.capacity, d, dtype=k.dtype)
        self.memory[layer, :, :, :, start:end] = torch.stack([k, v])
        self.lengths[layer] = end
        keys, values = self.memory[layer, :, :, :, :end]
        return keys, values

    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError(f"cannot keep {tokens} of {len(self)} tokens")
        self.lengths[:] = tokens


STEPS = """\
cache = KVCache(1, 4)
[x.clone() for x in cache.append(0, k[:, :, :2], v[:, :, :2])]
len(cache)
[x.clone() for x in cache.append(0, k[:, :, 2:], v[:, :, 2:])]
len(cache)"""
LAYERS = """\
cache = KVCache(2, 5)
n = k.shape[2]
cache.append(0, k, v)[0].clone()
len(cache)
cache.append(1, 2 * k, 3 * v)[1].clone()
len(cache)
cache.append(0, -k[:, :, 1:], v[:, :, 1:])[0].clone()
cache.append(1, 4 * k[:, :, 1:], 5 * v[:, :, 1:])[1].clone()
len(cache) - n"""
PLACE = """\
cache = KVCache(1, 8)
mine = k.clone()
first, _ = cache.append(0, mine, v)
later, _ = cache.append(0, 2 * k, v)
later.data_ptr() == first.data_ptr()
mine.zero_()
later.clone()"""
OWN = """\
cache = KVCache(1, k.shape[2])
mine, yours = k.clone(), v.clone()
held = cache.append(0, mine, yours)
mine.zero_()
yours.zero_()
[x.clone() for x in held]"""
BYTES = """\
cache = KVCache({layers}, {capacity})
for layer in range({layers}):
    cache.append(layer, k, v)
cache.nbytes"""
FORGET = """\
cache = KVCache(2, 4)
for layer in (0, 1):
    cache.append(layer, k, v)
cache.truncate({keep})
len(cache)
cache.append(1, {new}, {new})[0].clone()
len(cache)
cache.append(0, -{new}, {new})[0].clone()
len(cache)"""
HALF_WAY = """\
cache = KVCache(2, 4)
for layer in (0, 1):
    cache.append(layer, k[:, :, :2], v[:, :, :2])
cache.append(0, k[:, :, 2:], v[:, :, 2:])
len(cache)
cache.truncate(len(cache))
cache.append(0, v[:, :, :1], k[:, :, :1])[0].clone()
cache.append(1, k[:, :, :1], v[:, :, :1])[1].clone()"""
TOO_MUCH = "cache = KVCache(1, {capacity})\ncache.append(0, k, v)\ncache.append(0, k[:, :, :{more}], v[:, :, :{more}])"
REFUSED = """\
cache = KVCache(1, 4)
cache.append(0, k, v)
try:
    cache.append(0, k, v)
except ValueError:
    reply = 'refused'
else:
    reply = 'accepted'
reply
len(cache)
cache.append(0, 2 * k[:, :, :1], v[:, :, :1])[0].clone()"""
AHEAD = """\
cache = KVCache(2, 4)
cache.append(0, k[:, :, :2], v[:, :, :2])[0].clone()
cache.append(0, k[:, :, 2:], v[:, :, 2:])[0].clone()
cache.append(1, k, v)[1].clone()
len(cache)"""
OVERFULL = "cache = KVCache(2, 3)\ncache.append(0, k, v)\ncache.append(0, k[:, :, :1], v[:, :, :1])"
TRUNCATED = "cache = KVCache(1, 4)\ncache.append(0, k, v)\ncache.truncate({keep})"
TRUNCATED_AHEAD = """\
cache = KVCache(2, 4)
cache.append(0, k, v)
cache.append(1, k[:, :, :2], v[:, :, :2])
cache.truncate(3)"""
EMPTY = "cache = KVCache(3, 4)\nlen(cache)\ncache.nbytes\ncache.truncate(0)\nlen(cache)"


def _pair(random: Random, *shape: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Keys and values of shape b h n d."""
    return {"k": normal(random, *shape, dtype=dtype), "v": normal(random, *shape, dtype=dtype)}


def _small(n: int) -> dict[str, Tensor]:
    numbers = torch.arange(1.0, n + 1).reshape(1, 1, n, 1)
    return {"k": numbers, "v": 10 * numbers}


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    three = _pair(fixed, 2, 3, 3, 4)
    return [
        script("several texts and heads", STEPS, **three),
        script("several texts and heads", LAYERS, **three),
        script("double precision", STEPS, **_pair(fixed, 1, 2, 4, 3, dtype=torch.float64)),
        script("half precision", LAYERS, **_pair(fixed, 2, 1, 2, 2, dtype=torch.float16)),
        script("exactly full", STEPS.replace("4", "3"), **_pair(fixed, 1, 1, 3, 2)),
        script("no new tokens", STEPS, **_pair(fixed, 1, 2, 2, 3)),
        script("one memory for all", PLACE, **_pair(fixed, 2, 2, 3, 2)),
        script("one memory for all", OWN, **_pair(random, 1, 2, 3, 2)),
        script("bytes", BYTES.format(layers=3, capacity=7), **_pair(fixed, 2, 3, 2, 5)),
        script("bytes", BYTES.format(layers=1, capacity=6), **_pair(fixed, 1, 2, 5, 4, dtype=torch.bfloat16)),
        script("before anything is kept", EMPTY),
        script("forgetting", FORGET.format(keep=0, new="k"), **_pair(fixed, 2, 2, 2, 3)),
        script("forgetting", FORGET.format(keep=2, new="v[:, :, :2]"), **_pair(fixed, 1, 3, 3, 2)),
        script("forgetting", FORGET.format(keep=3, new="k[:, :, 1:2]"), **_pair(fixed, 1, 2, 3, 2)),
        script("a pass that broke off", HALF_WAY, **_pair(fixed, 2, 2, 3, 2)),
        script("one layer runs ahead", AHEAD, **_pair(fixed, 1, 2, 3, 2)),
        script("bad input", OVERFULL, **_small(3)),
        script("an append that is refused leaves all as it was", REFUSED, **_pair(fixed, 1, 2, 3, 2)),
        *(script("bad input", TOO_MUCH.format(capacity=c, more=m), **_small(n)) for c, m, n in ((2, 1, 2), (5, 2, 4))),
        script("bad input", "cache = KVCache(1, 2)\ncache.append(0, k, v)", **_small(3)),
        *(script("bad input", TRUNCATED.format(keep=keep), **_small(2)) for keep in (3, -1, -2)),
        script("bad input", TRUNCATED_AHEAD, **_small(3)),
        script("other sizes", STEPS, **{name: integers(random, 2, 2, 4, 3, low=-9, high=9) for name in "kv"}),
        script("other sizes", FORGET.format(keep=1, new="k[:, :, :2]"), **_pair(random, 2, 2, 2, 3)),
    ]


KVCache = Exercise(
    "KVCache",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_Reference,
    cases=[
        script("two tokens, then one", STEPS, **_small(3)),
        script("two layers", LAYERS, **_small(2)),
        script("nothing is copied again, and nothing of yours is kept", PLACE, **_small(2)),
        script("half precision", LAYERS, **_pair(Random(9), 1, 2, 2, 2, dtype=torch.float16)),
        script("full at once, and nothing of yours is kept", OWN, **_small(3)),
        script("bytes", BYTES.format(layers=2, capacity=8), **_pair(Random(5), 1, 2, 3, 4)),
        script("forget the last two of three", FORGET.format(keep=1, new="v[:, :, :2]"), **_small(3)),
        script("a pass that broke off after layer 0", HALF_WAY, **_small(3)),
        script("one layer is called more often than another", AHEAD, **_small(3)),
        script("an append that is refused", REFUSED, **_small(3)),
        script("too many tokens", TOO_MUCH.format(capacity=4, more=2), **_small(3)),
        script("keep more than there are", TRUNCATED.format(keep=4), **_small(3)),
        script("keep a negative number", TRUNCATED.format(keep=-1), **_small(3)),
        script("keep more than every layer holds", TRUNCATED_AHEAD, **_small(3)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Per layer: two tensors of shape (b, h, capacity, d), allocated at the first append, and the number of tokens "
        "that the layer holds. Before that nbytes is 0.",
        "append: end = start + k.shape[2]. If that is more than the capacity, raise before you change anything. Then "
        "keys[:, :, start:end] = k, and return keys[:, :, :end]. A slice shares the memory; torch.cat would copy.",
        "len is what *every* layer holds: the minimum over the layers. truncate only sets the numbers back: the next "
        "append overwrites what comes after them.",
    ],
)

for right_answer in RIGHT_CACHES:
    KVCache.variant(right_answer)
for wrong_answer, sentence in WRONG_CACHES:
    KVCache.misconception(sentence)(wrong_answer)
