"""The exercise on the FLOPs of a forward pass, part by part."""

from __future__ import annotations

from itertools import chain
from random import Random

import numpy as np

from lmcourse.chapters.flops.counted import product
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER

Parts = dict[str, int]

PARTS = ("qkv", "scores", "values", "out", "ffn", "head")


def _forward(*sizes: int, d_kv: int | None = None, gated: bool = False) -> Parts:
    """Let torch count every product of one layer; all layers take the same FLOPs."""
    batch, length, layers, d_model, d_ff, vocab_size = sizes
    x, keys = (batch, length, d_model), d_model if d_kv is None else d_kv
    up, down = product(x, (d_model, d_ff)), product((batch, length, d_ff), (d_ff, d_model))
    layer = {
        "qkv": product(x, (d_model, d_model)) + 2 * product(x, (d_model, keys)),
        "scores": product(x, (batch, d_model, length)),
        "values": product((batch, length, length), x),
        "out": product(x, (d_model, d_model)),
        "ffn": (2 if gated else 1) * up + down,
    }
    return {part: layers * flops for part, flops in layer.items()} | {"head": product(x, (d_model, vocab_size))}


def _each(name: str, *sizes: int, **rest: int) -> list[Case]:
    """A case for each part, so that one mistake does not cost the points of all."""
    call = f"forward_flops({', '.join([*map(str, sizes), *(f'{word}={value}' for word, value in rest.items())])})"
    return [script(f"{part}: {name}", f'{call}["{part}"]') for part in PARTS]


def _cases(random: Random) -> list[Case]:
    def sizes() -> list[int]:
        batch, length, layers = random.randint(2, 8), random.randint(10, 2000), random.randint(2, 40)
        return [
            batch,
            length,
            layers,
            64 * random.randint(2, 60),
            random.randint(300, 9000),
            random.randint(500, 99999),
        ]

    return [
        *_each("other models", 2, 3, 5, 8, 20, 11, gated=True),
        *_each("other models", 2, 3, 5, 8, 20, 11, d_kv=2, gated=True),
        *_each("other models", 1, 3, 2, 8, 20, 11, d_kv=4),
        *_each("other models", 1, 1, 1, 8, 7, 11),
        *chain.from_iterable(_each("other models", *sizes()) for _ in range(3)),
        *_each("other models", *sizes(), d_kv=64 * random.randint(1, 8)),
        *_each("other models", *sizes(), d_kv=64, gated=True),
        *_each("other models", 1, 1, *sizes()[2:]),
    ]


forward_flops = Exercise(
    "forward_flops",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_forward,
    cases=[
        *_each("two texts of 4 tokens, one small layer", 2, 4, 1, 8, 32, 100),
        *_each("GPT-2 small, one text", 1, 1024, 12, 768, 3072, 50_257),
        *_each("a gate, and key heads shared by two", 2, 16, 3, 64, 256, 1000, d_kv=32, gated=True),
        *_each("Llama 3 8B, one text", 1, 8192, 32, 4096, 14_336, 128_256, d_kv=1024, gated=True),
    ],
    hidden_cases=_cases,
    hints=[
        "Every weight matrix costs 2 · batch · length · (its number of weights). Do these first: qkv, out, ffn, head.",
        "Write down the shape of each matrix. Which get narrower with shared keys, and which one does a gate add?",
        "Scores: each of batch · length queries meets length keys, all heads together d_model wide: 2 · batch · "
        "length² · d_model. The values take the same. Count the head once, not per layer.",
    ],
    forbid=NO_COUNTER,
)


@forward_flops.variant
def part_by_part(
    batch: int,
    length: int,
    layers: int,
    d_model: int,
    d_ff: int,
    vocab_size: int,
    d_kv: int | None = None,
    gated: bool = False,
) -> dict[str, int]:
    tokens, pairs = batch * length, batch * length**2
    keys = values = d_model if d_kv is None else d_kv
    qkv = tokens * d_model * (d_model + keys + values)
    mixed = pairs * d_model
    out = tokens * d_model * d_model
    ffn = tokens * d_model * d_ff * (3 if gated else 2)
    head = tokens * d_model * vocab_size
    layer = {"qkv": qkv, "scores": mixed, "values": mixed, "out": out, "ffn": ffn}
    return {"head": 2 * head} | {part: 2 * layers * products for part, products in layer.items()}


forward_flops.slips(
    part_by_part,
    {
        "2 * layers → layers ;; 2 * head → head": "You count a multiplication and its addition as one FLOP: "
        "everything is half.",
        "tokens, pairs = batch * length → tokens, pairs = batch": "You count texts where it should be tokens: a "
        "weight works on batch · length of them.",
        "2 * layers → 2": "You count one layer. There are `layers` of them.",
        "mixed = pairs * d_model → mixed = pairs * d_model / layers": "You count scores and values of one layer. Every "
        "layer has them.",
        "d_ff * (3 if gated else 2) → d_ff * (3 if gated else 2) / layers": "You count the feed-forward layer once. "
        "There are `layers` of them.",
        "2 * head → 2 * layers * head": "The head is at the end of the model, once. You count it in every layer.",
        "2 * head → 4 * head": "You count twice as much for the head as it takes. It is one product, 2·B·S·D·V; the "
        "embedding is a look-up.",
        "(d_model + keys + values) → d_model": "You count one matrix for queries, keys and values together. Each of "
        "the three has its own matrix.",
        "d_model if d_kv is None else d_kv → d_model": "Keys and values are d_kv wide when heads share them; yours "
        "are as wide as the model.",
        "pairs * d_model → pairs * keys": "You count fewer scores and values if heads share keys. Sharing saves "
        "weights and memory, but no scores: every query head still meets every key with its own query.",
        "(3 if gated else 2) → 2": "A gated feed-forward layer has three matrices: gate, up and down. You count two.",
        "3 if gated else 2 → 2 if gated else 1": "You leave out one matrix of the feed-forward layer, up or down, "
        "with a gate and without.",
        "batch * length**2 → batch * length * (length + 1) // 2": "You count the pairs that a causal mask lets "
        "through, (length + 1) / 2 for each query. Here, as in torch and in most papers, all length² pairs count.",
        "pairs * d_model → pairs * d_model // 2": "You halve scores and values, as if a causal mask saved half of "
        "them. Here, as in torch and in most papers, all length² pairs count.",
        "3 if gated else 2 → 6 if gated else 4": "You count twice as much for the feed-forward layer as it takes. "
        "Count its matrices of D · F again.",
        "length**2 → length": "Your scores grow with the length, not with its square: every query meets every key.",
        "batch * length**2 → (batch * length) ** 2": "Your scores and values grow with batch². Tokens of different "
        "texts do not meet.",
        "d_model + keys + values → keys + keys + values": "Your queries are d_kv wide. Only keys and values are: "
        "queries stay as wide as the model.",
        "d_model + keys + values → d_model + keys + d_model": "Either keys or values are as wide as the model in your "
        "count. Both are d_kv wide.",
        "d_model * d_model → d_model * values": "Your out is d_kv wide. It reads the results of all query heads: its "
        "matrix is D × D.",
        '"scores": mixed, "values": mixed → "scores": 2 * mixed, "values": 0': "Your scores contain the values. Each "
        "of the two is a product and has a name of its own.",
        "tokens * d_model * d_ff * (3 if gated else 2) → tokens * (2 * d_model * d_ff + (d_ff**2 if gated else "
        "0))": "Your gate is F × F. It is one more D × F matrix.",
        "head = tokens → head = batch": "You count the logits of one token per text. A forward pass gives them for "
        "every token.",
        "3 if gated → 4 if gated": "You count four matrices in a gated feed-forward layer. There are three: gate, up "
        "and down.",
        "2 * layers → 6 * layers ;; 2 * head → 6 * head": "You count a training step, three times as much. Count only "
        "the forward pass.",
        "d_model + keys + values → d_model + keys": "You count two of the three matrices for queries, keys and values.",
        "pairs * d_model → 2 * pairs * d_model": "You count scores and values twice. Each of the two is one product "
        "per layer: 2 · B · S² · D.",
        "mixed = pairs * d_model → mixed = pairs": "You count one number for each pair of tokens. A score is a dot "
        "product of features, all heads together D wide.",
        "batch * length**2 → length**2": "Your scores and values are those of one text. Each of the `batch` texts has "
        "its own.",
        "tokens, pairs = batch * length, batch * length**2 → tokens, pairs = length, length**2": "You count one text. "
        "There are `batch` of them.",
        "tokens * d_model * d_ff → tokens * d_model * 4 * d_model": "Your feed-forward layer is 4·D wide. Its width "
        "is given: d_ff.",
        "3 if gated else 2 → 2 if gated else 3": "You inverted `gated`. A gate adds a matrix.",
        "(3 if gated else 2) → 3": "You count three matrices in every feed-forward layer. Without a gate there are "
        "two.",
        '"values": mixed → "values": pairs * values': "You count fewer values if heads share keys. Every query head "
        "still weighs all values on its own.",
        '"scores": mixed → "scores": pairs * keys': "You count fewer scores if heads share keys. Every query head "
        "still meets every key with its own query.",
        "2 * layers * products → layers * products": "In the layers you count a multiplication and its addition as "
        "one FLOP.",
        "2 * head → head": "In the head you count a multiplication and its addition as one FLOP.",
        "batch * length**2 → layers * batch * length**2": "You multiply scores and values by `layers` twice.",
        'return {"head": 2 * head} | {part: 2 * layers * products for part, products in layer.items()} → return [*(2 * '
        "layers * products for products in layer.values()), 2 * head]": "You return the FLOPs without their names. "
        "Return a dict with the six names.",
    },
)


@forward_flops.variant
def two_per_weight_and_token(*sizes: int, d_kv: int | None = None, gated: bool = False) -> dict[str, float]:
    batch, length, layers, d_model, d_ff, vocab_size = sizes
    token = 2.0 * batch * length
    keys = d_kv if d_kv is not None else d_model
    weights = {"qkv": d_model**2 + 2 * d_model * keys, "out": d_model**2, "ffn": d_model * d_ff * (3 if gated else 2)}
    flops = {part: token * layers * size for part, size in weights.items()}
    flops["scores"] = flops["values"] = token * layers * d_model * length
    return flops | {"head": token * d_model * vocab_size}


@forward_flops.variant
def with_numpy(*sizes: int, d_kv: int | None = None, gated: bool = False) -> dict[str, np.int64]:
    B, S, L, D, F, V = np.array(sizes, dtype=np.int64)
    kv = D if d_kv is None else np.int64(d_kv)
    qkv, out = 2 * B * S * D * (D + kv + kv) * L, 2 * B * S * D * D * L
    ffn = [4, 6][gated] * B * S * D * F * L
    names, pairs = ("qkv", "scores", "values", "out", "ffn", "head"), 2 * B * S * S * D * L
    return dict(zip(names, (qkv, pairs, pairs, out, ffn, 2 * B * S * D * V), strict=True))
