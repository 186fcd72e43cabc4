"""The exercise on the numbers of a model that can be counted before it is trained."""

from __future__ import annotations

from random import Random

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like


def _reference(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    """Build a real model on the meta device: its tensors are counted here, its products by torch."""
    config = llama_like(layers, d_model, heads, d_ff, vocab_size=vocabulary, context=length)
    with torch.device("meta"):
        built = Transformer(config)
        tokens = torch.zeros((batch, length), dtype=torch.long)
    parameters = sum(parameter.numel() for parameter in built.parameters())
    with FlopCounterMode(display=False) as counter, nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        built(tokens)
    return {
        "parameters": parameters,
        "flops": 3 * counter.get_total_flops(),
        "states": sum(4 * 4 * parameter.numel() for parameter in built.parameters()),
        "cache": 4 * 2 * sum(layer.attention.key_heads for layer in config.layers) * (d_model // heads),
    }


SMALL = (2, 48, 3, 128, 128, 16, 64)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("one layer", 1, 64, 4, 176, 128, 16, 64),
        case("a batch of one", 4, 24, 2, 64, 100, 1, 32),
        case("one byte of text", 2, 16, 1, 48, 128, 3, 1),
        case("a large model", 31, 248, 2, 679, 1001, 3, 127),
        case("a feed-forward layer that is narrow", 3, 32, 4, 8, 50, 5, 7),
    ]
    for _ in range(2):
        heads = random.choice([2, 3, 4])
        d_model, d_ff = 8 * heads * random.randint(1, 4), 8 * random.randint(1, 9) + 4
        sizes = random.randint(2, 5), d_model, heads, d_ff, random.randint(20, 200), random.randint(2, 9)
        cases.append(case("other sizes", *sizes, random.randint(2, 40)))
    return cases


account_of = Exercise(
    "account_of",
    points=4,
    minutes=15,
    difficulty=3,
    reference=_reference,
    cases=[
        case("two blocks, 48 wide", *SMALL),
        case("four blocks, 32 wide", 4, 32, 2, 88, 128, 16, 64),
        case("a tiny one, by hand", 1, 2, 1, 3, 5, 1, 2),
    ],
    hidden_cases=_hidden,
    hints=[
        "A block: four matrices of attention, three of the feed-forward layer, two norms. Around "
        "the blocks: a table, a "
        "head, and one more norm.",
        "Every number of a matrix costs two FLOPs a token. The table is only looked up. Scores "
        "and weighted values: two "
        "products of d_model FLOPs × 2 for each pair of positions, in every block.",
        "tokens = batch * length; forward = 2 * tokens * (layers * (4 * d * d + 3 * d * d_ff) + "
        "vocabulary * d) + layers "
        "* 4 * tokens * length * d. A step is three times that. fp32 with Adam: four numbers of "
        "four bytes a parameter.",
    ],
)


def _costs(
    sizes: tuple[int, ...],
    *,
    tables: int = 2,
    matrices: int = 3,
    norms: int = 1,
    final_norm: bool = True,
    projections: int = 4,
    head_flops: int = 1,
    pairs: float = 1,
    embedding_flops: int = 0,
    passes: int = 3,
    state_bytes: int = 16,
    cache_numbers: int = 2,
    cache_bytes: int = 4,
) -> dict[str, int]:
    """Return the account; the keyword arguments change the parts that people forget."""
    layers, d, _, d_ff, vocabulary, batch, length = sizes
    block = projections * d * d + matrices * d * d_ff
    parameters = tables * vocabulary * d + layers * block + norms * (2 * layers + final_norm) * d
    tokens = batch * length
    forward = 2 * tokens * (layers * block + (head_flops + embedding_flops) * vocabulary * d)
    forward += int(pairs * layers * 4 * tokens * length * d)
    return {
        "parameters": parameters,
        "flops": passes * forward,
        "states": state_bytes * parameters,
        "cache": cache_bytes * cache_numbers * layers * d,
    }


@account_of.misconception("You count one table. The head and the embedding are two matrices here.")
def tied(*sizes: int) -> dict[str, int]:
    return _costs(sizes, tables=1)


@account_of.misconception("You count two matrices in the feed-forward layer. A gated one has three.")
def two_matrices(*sizes: int) -> dict[str, int]:
    return _costs(sizes, matrices=2)


@account_of.misconception(
    "You count 6ND. The table multiplies nothing, and scores and weighted values are products too."
)
def six_nd(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    return right | {"flops": 6 * right["parameters"] * sizes[-1] * sizes[-2]}


@account_of.misconception(
    "Your FLOPs leave out the scores and weighted values: two more products for every pair of positions."
)
def no_scores(*sizes: int) -> dict[str, int]:
    return _costs(sizes, pairs=0)


@account_of.misconception(
    "You count half of the FLOPs for the pairs of positions. All pairs count, the hidden ones too, and each takes two "
    "products: a score and a weighted value."
)
def causal_half(*sizes: int) -> dict[str, int]:
    return _costs(sizes, pairs=0.5)


@account_of.misconception(
    "You count the pairs that a causal mask leaves, n(n + 1)/2 a text. All pairs count, the hidden ones too."
)
def causal_pairs(*sizes: int) -> dict[str, int]:
    return _costs(sizes, pairs=(sizes[-1] + 1) / (2 * sizes[-1]))


@account_of.misconception(
    "You add the scores to 6ND. N includes the table and the norms, which are no matrices that multiply."
)
def six_nd_and_scores(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    products = right["flops"] - _costs(sizes, pairs=0)["flops"]
    return right | {"flops": 6 * right["parameters"] * sizes[-1] * sizes[-2] + products}


@account_of.misconception(
    "You count pairs of positions in all texts of the batch together. A token meets only the tokens of its own text."
)
def pairs_across_texts(*sizes: int) -> dict[str, int]:
    return _costs(sizes, pairs=sizes[-2])


@account_of.misconception("You multiply by the embedding. It is a table: looking up rows takes no FLOPs.")
def embedding_multiplied(*sizes: int) -> dict[str, int]:
    return _costs(sizes, embedding_flops=1)


@account_of.misconception(
    "Your backward pass costs as much as the forward pass. It costs twice as much, so a step costs three forward "
    "passes."
)
def backward_once(*sizes: int) -> dict[str, int]:
    return _costs(sizes, passes=2)


@account_of.misconception("You count the FLOPs of a forward pass only. A training step has a backward pass, too.")
def forward_only(*sizes: int) -> dict[str, int]:
    return _costs(sizes, passes=1)


@account_of.misconception("You count 18 bytes per parameter, as for mixed precision. The order says fp32: 16.")
def states_of_mixed_precision(*sizes: int) -> dict[str, int]:
    return _costs(sizes, state_bytes=18)


@account_of.misconception(
    "Your states are three numbers per parameter. Weights, gradients and two moments are four, of four bytes each."
)
def three_numbers(*sizes: int) -> dict[str, int]:
    return _costs(sizes, state_bytes=12)


@account_of.misconception("You forget the norms: two a block, and one at the end.")
def norms_forgotten(*sizes: int) -> dict[str, int]:
    return _costs(sizes, norms=0)


@account_of.misconception(
    "You count three matrices in attention, for queries, keys and values. The outputs of the heads go through a fourth."
)
def no_output_matrix(*sizes: int) -> dict[str, int]:
    return _costs(sizes, projections=3)


@account_of.misconception("Your FLOPs leave out the head. It is a matrix, and every token multiplies it.")
def head_not_multiplied(*sizes: int) -> dict[str, int]:
    return _costs(sizes, head_flops=0)


@account_of.misconception(
    "You multiply the products of the scores by the heads. Each head has only a part of the d_model features."
)
def scores_times_heads(*sizes: int) -> dict[str, int]:
    return _costs(sizes, pairs=sizes[2])


@account_of.misconception("You count a multiplication and an addition as one FLOP. They are two.")
def one_flop_for_two(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    return right | {"flops": right["flops"] // 2}


@account_of.misconception("You count the FLOPs of one text. A step trains on `batch` texts.")
def flops_of_a_text(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    return right | {"flops": right["flops"] // sizes[-2]}


@account_of.misconception("Your norms have a shift as well. An RMSNorm has one number per feature, its gain.")
def norms_with_a_shift(*sizes: int) -> dict[str, int]:
    return _costs(sizes, norms=2)


@account_of.misconception("The last norm is missing, the one between the last block and the head.")
def last_norm_forgotten(*sizes: int) -> dict[str, int]:
    return _costs(sizes, final_norm=False)


@account_of.misconception(
    "You multiply the cache by the heads. All heads together have keys of d_model features: each has a part of them."
)
def cache_times_heads(*sizes: int) -> dict[str, int]:
    return _costs(sizes, cache_numbers=2 * sizes[2])


@account_of.misconception("Your cache holds the keys and values of one head. Every head keeps its own.")
def cache_of_a_head(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    return right | {"cache": right["cache"] // sizes[2]}


@account_of.misconception("Your cache is that of one layer. Every layer keeps keys and values.")
def cache_of_a_layer(*sizes: int) -> dict[str, int]:
    right = _costs(sizes)
    return right | {"cache": right["cache"] // sizes[0]}


@account_of.misconception(
    "Your cache has 4 bytes per layer and feature. Each keeps a key and a value, of 4 bytes in fp32."
)
def keys_only(*sizes: int) -> dict[str, int]:
    return _costs(sizes, cache_numbers=1)


@account_of.misconception("You return the cache of a whole text. Return the bytes that one token adds.")
def cache_of_a_text(*sizes: int) -> dict[str, int]:
    return _costs(sizes, cache_bytes=4 * sizes[-1])


@account_of.variant
def with_tensors(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    shapes = [(vocabulary, d_model), (d_model,)]
    multiplied = [(vocabulary, d_model)]
    for _ in range(layers):
        multiplied += [(d_model, d_model)] * 4 + [(d_ff, d_model)] * 3
        shapes += [(d_model,), (d_model,)]
    n = sum(torch.empty(shape, device="meta").numel() for shape in shapes + multiplied)
    flops = sum(2 * batch * length * rows * columns for rows, columns in multiplied)
    flops += layers * 2 * (2 * batch * heads * length * length * (d_model // heads))
    return {"parameters": n, "flops": 3 * flops, "states": 4 * n + 4 * n + 2 * 4 * n, "cache": layers * 8 * d_model}


@account_of.variant
def part_by_part(
    layers: int, d_model: int, heads: int, d_ff: int, vocabulary: int, batch: int, length: int
) -> dict[str, int]:
    attention = [(d_model, d_model)] * 4
    feed_forward = [(d_ff, d_model), (d_ff, d_model), (d_model, d_ff)]
    read = [*(attention + feed_forward) * layers, (vocabulary, d_model)]
    n = vocabulary * d_model + d_model
    flops = 0
    for rows, columns in read:
        n += rows * columns
        flops += 2 * rows * columns * batch * length
    for _ in range(layers):
        n += 2 * d_model
        for _ in range(heads):
            flops += 2 * 2 * batch * length * length * (d_model // heads)
    return {"parameters": n, "flops": flops + 2 * flops, "states": (4 + 4 + 8) * n, "cache": layers * 2 * d_model * 4}


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
