"""The exercise on the numbers of a model that can be counted before it is trained."""

from __future__ import annotations

from random import Random

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like


def _reference(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    """Build a real model on the meta device: its tensors are counted here, its products by torch."""
    config = llama_like(layers, d_model, heads, d_ff, vocab_size=vocabulary, context=length)
    with torch.device("meta"):
        built, tokens = Transformer(config), torch.zeros((batch, length), dtype=torch.long)
    parameters = sum(parameter.numel() for parameter in built.parameters())
    with FlopCounterMode(display=False) as counter, nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        built(tokens)
    return {
        "parameters": parameters,
        "flops": 3 * counter.get_total_flops(),
        "states": 4 * 4 * parameters,
        "cache": 4 * 2 * sum(layer.attention.key_heads for layer in config.layers) * (d_model // heads),
    }


def _each(name: str, *sizes: int) -> list[Case]:
    """A case for each of the four numbers, so that each earns points alone."""
    call = f"account_of({', '.join(map(str, sizes))})"
    return [script(f"{name}: {number}", f'{call}["{number}"]') for number in ("parameters", "flops", "states", "cache")]


def _hidden(random: Random) -> list[Case]:
    cases = [
        *_each("one layer", 1, 64, 4, 176, 128, 16, 64),
        *_each("a batch of one", 4, 24, 2, 64, 100, 1, 32),
        *_each("one byte of text", 2, 16, 1, 48, 128, 3, 1),
        *_each("a large model", 31, 248, 2, 679, 1001, 3, 127),
        *_each("a feed-forward layer that is narrow", 3, 32, 4, 8, 50, 5, 7),
    ]
    for _ in range(2):
        heads = random.choice([2, 3, 4])
        d_model, d_ff = 8 * heads * random.randint(1, 4), 8 * random.randint(1, 9) + 4
        sizes = random.randint(2, 5), d_model, heads, d_ff, random.randint(20, 200), random.randint(2, 9)
        cases += _each("other sizes", *sizes, random.randint(2, 40))
    return cases


account_of = Exercise(
    "account_of",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_reference,
    cases=[
        *_each("a tiny one, by hand", 1, 2, 1, 3, 5, 1, 2),
        *_each("two blocks, 48 wide", 2, 48, 3, 128, 128, 16, 64),
        *_each("four blocks, 32 wide", 4, 32, 2, 88, 128, 16, 64),
    ],
    hidden_cases=_hidden,
    hints=[
        "A block: four matrices of attention, three of the feed-forward layer, two norms. Around the blocks: a table, "
        "a head, and one more norm.",
        "Every number of a matrix costs two FLOPs a token. The table is only looked up. Scores and weighted values: "
        "two products of d_model FLOPs × 2 for each pair of positions, in every block.",
        "tokens = batch * length; forward = 2 * tokens * (layers * (4 * d * d + 3 * d * d_ff) + vocabulary * d) + "
        "layers * 4 * tokens * length * d. A step is three times that. fp32 with Adam: four numbers of four bytes a "
        "parameter.",
    ],
)


@account_of.variant
def matrices_and_pairs(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    tokens, d = batch * length, d_model
    block = 4 * d * d + 3 * d * d_ff
    norms = (2 * layers + 1) * d
    table = head = vocabulary * d
    parameters = table + layers * block + norms + head
    pairs = layers * 4 * tokens * length * d
    forward = 2 * tokens * (layers * block + head) + pairs
    return {"parameters": parameters, "flops": 3 * forward, "states": 16 * parameters, "cache": layers * 2 * 4 * d}


account_of.slips(
    matrices_and_pairs,
    {
        "table + layers → layers": "You count one table. The head and the embedding are two matrices here.",
        "3 * d * d_ff → 2 * d * d_ff": "You count two matrices in the feed-forward layer. A gated one has three.",
        "3 * forward → 6 * parameters * tokens": "You count 6ND. The table multiplies nothing, and scores and "
        "weighted values are products too.",
        " + pairs → ": "Your FLOPs leave out the scores and weighted values: two more products for every pair of "
        "positions.",
        "4 * tokens → 2 * tokens": "You count half of the FLOPs for the pairs of positions. All pairs count, the "
        "hidden ones too, and each takes two products: a score and a weighted value.",
        "4 * tokens * length → 2 * tokens * (length + 1)": "You count the pairs that a causal mask leaves, n(n + 1)/2 "
        "a text. All pairs count, the hidden ones too.",
        "3 * forward → 6 * parameters * tokens + 3 * pairs": "You add the scores to 6ND. N includes the table and the "
        "norms, which are no matrices that multiply.",
        "tokens * length → tokens * tokens": "You count pairs of positions in all texts of the batch together. A "
        "token meets only the tokens of its own text.",
        "block + head) → block + table + head)": "You multiply by the embedding. It is a table: looking up rows takes "
        "no FLOPs.",
        "3 * forward → 2 * forward": "Your backward pass costs as much as the forward pass. It costs twice as much, "
        "so a step costs three forward passes.",
        "3 * forward → forward": "You count the FLOPs of a forward pass only. A training step has a backward pass, "
        "too.",
        "16 → 18": "You count 18 bytes per parameter, as for mixed precision. The order says fp32: 16.",
        "16 → 12": "Your states are three numbers per parameter. Weights, gradients and two moments are four, of four "
        "bytes each.",
        " + norms → ": "You forget the norms: two a block, and one at the end.",
        "4 * d * d → 3 * d * d": "You count three matrices in attention, for queries, keys and values. The outputs of "
        "the heads go through a fourth.",
        "block + head) → block)": "Your FLOPs leave out the head. It is a matrix, and every token multiplies it.",
        "4 * tokens → heads * 4 * tokens": "You multiply the products of the scores by the heads. Each head has only "
        "a part of the d_model features.",
        "3 * forward → 3 * forward // 2": "You count a multiplication and an addition as one FLOP. They are two.",
        "batch * length → length": "You count the FLOPs of one text. A step trains on `batch` texts.",
        "norms = (2 * layers + 1) → norms = 2 * (2 * layers + 1)": "Your norms have a shift as well. An RMSNorm has "
        "one number per feature, its gain.",
        "2 * layers + 1 → 2 * layers": "The last norm is missing, the one between the last block and the head.",
        "2 * 4 * d → 2 * 4 * heads * d": "You multiply the cache by the heads. All heads together have keys of "
        "d_model features: each has a part of them.",
        "2 * 4 * d → 2 * 4 * d // heads": "Your cache holds the keys and values of one head. Every head keeps its own.",
        "layers * 2 * 4 → 2 * 4": "Your cache is that of one layer. Every layer keeps keys and values.",
        "layers * 2 * 4 → layers * 4": "Your cache has 4 bytes per layer and feature. Each keeps a key and a value, "
        "of 4 bytes in fp32.",
        "2 * 4 * d → 2 * 4 * length * d": "You return the cache of a whole text. Return the bytes that one token adds.",
        "16 * parameters → 4 * parameters": "Your states are the weights alone, or four numbers instead of their "
        "bytes. Weights, gradients and two moments have four bytes each.",
        "16 * parameters → 8 * parameters": "Your states have 8 bytes per parameter. Weights, gradients and two "
        "moments are four numbers, of four bytes each.",
        "2 * 4 * d → 2 * 4 * batch * d": "You return the cache of the whole batch. Return the bytes that one token of "
        "one text adds.",
        "2 * 4 * d → 2 * 4 * tokens * d": "You return the cache of all tokens of the batch. Return the bytes that one "
        "token adds.",
        "2 * 4 * d → 2 * d": "You count the numbers in the cache. Return bytes: four for each number.",
        "layers * 2 * 4 → layers * 3 * 4": "Your cache keeps queries, too. A later token needs only the keys and "
        "values of the earlier ones.",
        "2 * layers + 1 → layers + 1": "You count one norm a block. There are two, and one more at the end.",
        "4 * d * d + 3 * d * d_ff → 4 * d * d + 3 * d * d_ff + 5 * d + 2 * d_ff": "You count biases. These matrices "
        "have none.",
        "head = vocabulary * d → head = vocabulary * d\n    table = table + length * d": "You count a table of "
        "positions. This model has none: its positions are rotations, without parameters.",
        "2 * tokens * (layers → tokens * (layers": "In the matrices you count a multiplication and an addition as one "
        "FLOP. They are two.",
        "pairs = layers * 4 → pairs = 4": "You count the scores and weighted values of one block. Every block has its "
        "own.",
        "length * d\n → length * d // heads\n": "You count the scores and weighted values of one head. All heads "
        "together have d_model features.",
        "3 * forward → 4 * forward": "You count four forward passes. A backward pass costs two forward passes, so a "
        "step costs three.",
    },
)


@account_of.variant
def one_expression_each(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, float]:
    d, w, t = d_model, layers * (4 * d_model**2 + 3 * d_model * d_ff) + vocabulary * d_model, batch * length
    n = w + (vocabulary + 2 * layers + 1) * d
    return {
        "cache": 8.0 * layers * d,
        "states": 16.0 * n,
        "flops": 6.0 * t * (w + 2 * layers * length * d),
        "parameters": n,
    }
