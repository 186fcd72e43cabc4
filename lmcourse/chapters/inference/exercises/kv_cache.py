"""The exercise on a KV cache that can also forget tokens."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


class TwoTensorsPerLayer:
    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity, self.lengths = capacity, [0] * layers
        self.memory: list[Any] = [None] * layers

    def __len__(self) -> int:
        return min(self.lengths)

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for pair in self.memory if pair for tensor in pair)

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start = self.lengths[layer]
        end = start + k.shape[2]
        if end > self.capacity:
            raise ValueError("the cache is full")
        if self.memory[layer] is None:
            b, h, _, d = k.shape
            self.memory[layer] = k.new_zeros(b, h, self.capacity, d), v.new_zeros(b, h, self.capacity, d)
        keys, values = self.memory[layer]
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        self.lengths[layer] = end
        return keys[:, :, :end], values[:, :, :end]

    def truncate(self, tokens: int) -> None:
        if not 0 <= tokens <= len(self):
            raise ValueError("the cache does not hold that many tokens")
        self.lengths = [tokens] * len(self.lengths)


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
last = cache.append(1, k[:, :, :1], v[:, :, :1])[1]
last.shape[2]
last[:, :, -1:].clone()"""
TOO_MUCH = "cache = KVCache(1, {capacity})\ncache.append(0, k, v)\ncache.append(0, k[:, :, :{more}], v[:, :, :{more}])"
REFUSED = """\
cache = KVCache(1, 4)
cache.append(0, k, v)
try:
    cache.append(0, k[:, :, 1:], v[:, :, 1:])
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
        script("forgetting", FORGET.format(keep=0, new="k"), **_pair(fixed, 2, 2, 2, 3)),
        script("forgetting", FORGET.format(keep=2, new="v[:, :, :2]"), **_pair(fixed, 1, 3, 3, 2)),
        script("forgetting", FORGET.format(keep=3, new="k[:, :, 1:2]"), **_pair(fixed, 1, 2, 3, 2)),
        script("a pass that broke off", HALF_WAY, **_pair(fixed, 2, 2, 3, 2)),
        script("bad input", OVERFULL, **_small(3)),
        script("an append that is refused leaves all as it was", REFUSED, **_pair(fixed, 1, 2, 3, 2)),
        *(script("bad input", TOO_MUCH.format(capacity=c, more=m), **_small(n)) for c, m, n in ((2, 1, 2), (5, 2, 4))),
        *(script("bad input", TRUNCATED.format(keep=keep), **_small(2)) for keep in (3, -1, -2)),
        script("bad input", TRUNCATED_AHEAD, **_small(3)),
        script("other sizes", STEPS, **{name: integers(random, 2, 2, 4, 3, low=-9, high=9) for name in "kv"}),
        script("other sizes", FORGET.format(keep=1, new="k[:, :, :2]"), **_pair(random, 2, 2, 2, 3)),
    ]


KVCache = Exercise(
    "KVCache",
    points=4,
    minutes=10,
    difficulty=3,
    reference=TwoTensorsPerLayer,
    cases=[
        script("two tokens, then one", STEPS, **_small(3)),
        script("two layers", LAYERS, **_small(2)),
        script("nothing is copied again, and nothing of yours is kept", PLACE, **_small(2)),
        script("two texts, in half precision", LAYERS, **_pair(Random(9), 2, 2, 2, 2, dtype=torch.float16)),
        script("full at once, and nothing of yours is kept", OWN, **_small(3)),
        script("bytes", BYTES.format(layers=2, capacity=8), **_pair(Random(5), 1, 2, 3, 4)),
        edge(
            script(
                "bytes in bf16",
                BYTES.format(layers=1, capacity=6),
                **_pair(Random(6), 1, 2, 2, 4, dtype=torch.bfloat16),
            )
        ),
        edge(script("before anything is kept", EMPTY)),
        edge(script("forget everything", FORGET.format(keep=0, new="k"), **_pair(Random(8), 1, 2, 2, 2))),
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


KVCache.variant(TwoTensorsPerLayer)
KVCache.slips(
    TwoTensorsPerLayer,
    {
        "self.lengths[layer] = end → self.lengths[layer] += 1": "You count one token for each append. It may bring "
        "several: add `k.shape[2]`.",
        "if end > self.capacity: → if False:": "You do not ask whether the tokens fit. If they need more than "
        "`capacity`, raise ValueError before you write.",
        "min(self.lengths) → self.lengths[0] ;; start = self.lengths[layer] → start = self.lengths[0] ;; "
        "self.lengths[layer] = end → self.lengths[0] = end": "You have one length for all layers, and every layer adds "
        "its tokens to it. Give each layer its own.",
        "return keys[:, :, :end], values[:, :, :end] → return keys, values": "You return the whole memory, with rows "
        "that are not written yet. Return only the tokens so far.",
        "return keys[:, :, :end], values[:, :, :end] → return k, v": "You return only the new keys and values. "
        "Return all that the layer holds.",
        "return keys[:, :, :end], values[:, :, :end] → return keys[:, :, start:end], "
        "values[:, :, start:end]": "You return only the new keys and values. Return all that the layer holds.",
        "return keys[:, :, :end], values[:, :, :end] → return values[:, :, :end], keys[:, "
        ":, :end]": "You return the values first. The keys come first.",
        "        self.lengths[layer] = end\n → ": "The layer's number of tokens never grows, so each append "
        "overwrites the one before.",
        "        values[:, :, start:end] = v\n → ": "You never write the values into the memory.",
        "        keys[:, :, start:end] = k\n → ": "You never write the keys into the memory.",
        "if self.memory[layer] is None: → if True:": "You allocate at each append, and lose the earlier tokens. "
        "Allocate at the layer's first call only.",
        "if end > self.capacity → if sum(self.lengths) + k.shape[2] > self.capacity": "You count the tokens of all "
        "layers together against the capacity. Each layer has room for `capacity` tokens.",
        "min(self.lengths) → sum(self.lengths)": "len adds up the layers. It is the number of tokens that every "
        "layer holds: take the minimum.",
        "<= len(self) → < len(self)": "truncate rejects len(cache) itself. Keeping all tokens is allowed.",
        "if self.memory[layer] is None:\n            b, h, _, d = k.shape\n            self.memory[layer] = → if "
        "self.memory[0] is None:\n            b, h, _, d = k.shape\n            self.memory[0] = ;; keys, values = "
        "self.memory[layer] → keys, values = self.memory[0]": "Your layers share one memory, and overwrite each "
        "other. Give each layer its own.",
        "keys, values = → self.memory = [self.memory[layer]] * len(self.memory)\n        "
        "keys, values =": "Your layers share one memory, and overwrite each other. Give each layer its own.",
        "keys[:, :, start:end] → keys[:, :, : end - start] ;; values[:, :, start:end] → "
        "values[:, :, : end - start]": "Each append writes at the beginning. Write new tokens after the earlier ones.",
        "k.new_zeros(b, h, self.capacity, d), v.new_zeros(b, h, self.capacity, d) → k, v ;; keys[:, :, start:end] = "
        "k\n        values[:, :, start:end] = v → if keys is not k:\n            keys, values = torch.cat([keys[:, :, "
        ":start], k], 2), torch.cat([values[:, :, :start], v], 2)\n        "
        "self.memory[layer] = keys, values": "You concatenate: each append copies all earlier tokens. Allocate the "
        "memory once, and write into it.",
        "= v\n → = k\n": "You store the keys in place of the values.",
        "keys, values = self.memory[layer] → keys = values = self.memory[layer][0]": "Keys and values share one "
        "memory, so the values overwrite the keys. Allocate two.",
        "if self.memory[layer] is None: → if self.memory[layer] is None and end == self.capacity:\n            "
        "self.memory[layer] = k, v\n        if self.memory[layer] is None:": "If the first append fills the cache, you "
        "keep the tensors that you were given. When they change, so does the cache: copy them into memory of your own.",
        "<= len(self) → <= max(self.lengths)": "truncate accepts as many tokens as the fullest layer holds. The "
        "others hold fewer: the limit is len(cache).",
        "<= len(self) → <= self.capacity": "truncate accepts more tokens than the cache holds. The limit is "
        "len(cache).",
        "tensor.nbytes → tensor.numel()": "You count numbers, not bytes. Multiply by the bytes of a number, or use "
        "`tensor.nbytes`.",
        "min(self.lengths) → self.lengths[0]": "len is the length of the first layer. In the middle of a pass later "
        "layers hold fewer: take the minimum.",
        "min(self.lengths) → max(self.lengths)": "len is the length of the fullest layer. In the middle of a pass "
        "others hold fewer: take the minimum.",
        "min(self.lengths) → self.lengths[-1]": "len is the length of the last layer. Layers may be called in any "
        "order: take the minimum of all.",
        "return keys[:, :, :end], values[:, :, :end] → return keys[:, :, :end].clone(), "
        "values[:, :, :end].clone()": "You return copies of the memory. Return views: slices like `keys[:, :, :end]`.",
        "end > self.capacity → end >= self.capacity": "You reject tokens that just fit. A cache with `capacity` "
        "tokens is full, not too full.",
        "self.lengths = [tokens] → self.memory = [pair and (pair[0][:, :, :tokens], pair[1][:, :, :tokens]) for pair "
        "in self.memory]\n        self.lengths = [tokens]": "truncate cuts the memory itself, so the next tokens "
        "have no place. Keep the memory, and change the number of tokens only.",
        "self.lengths = [tokens] * len(self.lengths) → self.lengths[0] = tokens": "truncate changes only the first "
        "layer. Change all of them.",
        "[tokens] * len(self.lengths) → [length - tokens for length in self.lengths]": "`tokens` is the number that "
        "*stays*. You remove that many.",
        "self.lengths = [tokens] → for pair, length in zip(self.memory, self.lengths):\n            for tensor in "
        "pair or ():\n                tensor[:, :, :tokens] = tensor[:, :, length - tokens : length].clone()\n        "
        "self.lengths = [tokens]": "truncate keeps the last tokens, as a window does. Keep the *first* `tokens` "
        "tokens.",
        "min(self.lengths) → self.lengths[0] ;; start = self.lengths[layer] → start = self.lengths[0] - (k.shape[2] "
        "if layer else 0) ;; self.lengths[layer] = end → self.lengths[0] = end": "You have one length for all layers, "
        "which grows at layer 0. Give each layer its own: a pass may break off, and layers may be called in any order.",
        "min(self.lengths) → self.lengths[-1] ;; start = self.lengths[layer] → start = self.lengths[-1] ;; "
        "self.lengths[layer] = end → if layer == len(self.lengths) - 1:\n            "
        "self.lengths[-1] = end": "You have one length for all layers, which grows at the last layer. Give each "
        "layer its own: a pass may break off, and layers may be called in any order.",
        "self.lengths = [tokens] → if tokens < len(self):\n            self.lengths = "
        "[tokens]": "If `tokens` is len(cache), your truncate changes nothing. After a pass that broke off, a layer "
        "holds more: set all layers to the same length.",
        "tensor.nbytes → tensor.nbytes // self.capacity * max(self.lengths)": "You count the used memory. Count the "
        "allocated memory, for the whole capacity.",
        "in pair) → in pair[:1])": "You count the keys *or* the values. Count both.",
        "tensor.nbytes → 4 * tensor.numel()": "Your cache takes four bytes for every number, or counts them. Half "
        "precision has two, double precision eight: use the dtype of k.",
        'raise ValueError("the cache is full") → k, v = k[:, :, -self.capacity :], v[:, :, -self.capacity '
        ":]\n            start, end = self.capacity - k.shape[2], self.capacity": "If new tokens do not fit, you "
        "drop old ones. Raise ValueError.",
        'raise ValueError("the cache is full") → self.lengths[layer] = k.shape[2]\n            raise ValueError("the '
        'cache is full")': "A rejected append changes the layer's number of tokens. Raise before you change anything.",
        "if end > self.capacity: → self.lengths[layer] = end\n        if end > self.capacity:": "After a rejected "
        "append your cache has changed: you count the new tokens before you reject them.",
        'raise ValueError("the cache does not hold that many tokens") → pass ;; [tokens] * len(self.lengths) → '
        "[min(max(tokens, 0), length) for length in self.lengths]": "Your truncate accepts a negative number, or "
        "more tokens than there are. Raise ValueError.",
    },
)
