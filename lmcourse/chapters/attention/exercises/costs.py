"""The exercise on the cost of attention: FLOPs and moved bytes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _measured(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    """Run the layer on tensors without memory: torch counts the FLOPs, and the shapes of the tensors give the bytes."""
    width = d_model // heads

    def tensor(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.bfloat16, device="meta")

    x, w_q, w_out = tensor(batch, new, d_model), tensor(d_model, heads * width), tensor(heads * width, d_model)
    w_k, w_v = tensor(d_model, kv_heads * width), tensor(d_model, kv_heads * width)
    keys, values = tensor(batch, kv_heads, context, width), tensor(batch, kv_heads, context, width)
    counter = FlopCounterMode(display=False)
    with counter:
        q = (x @ w_q).reshape(batch, new, heads, width).transpose(1, 2)
        x @ w_k, x @ w_v
        scores = q @ keys.repeat_interleave(heads // kv_heads, dim=1).mT
        mixed = scores.softmax(dim=-1) @ values.repeat_interleave(heads // kv_heads, dim=1)
        out = mixed.transpose(1, 2).flatten(2) @ w_out
    moved = sum(part.nbytes for part in (x, w_q, w_k, w_v, w_out, keys, values, out))
    return counter.get_total_flops(), moved if fused else moved + 2 * scores.nbytes


def _cases(random: Random) -> list[Case]:
    width, groups, times = random.choice([16, 32, 64]), random.randint(2, 4), random.randint(2, 4)
    heads = groups * times
    d_model, batch, length = heads * width, random.randint(2, 9), random.randint(100, 900)
    return [
        case("other layers", 3, 50, 50, 96, 6, 2),
        case("other layers", 5, 1, 70, 96, 6, 3),
        case("one head", 3, 7, 9, 24, 1, 1),
        case("one key head (MQA)", 3, 1, 40, 64, 8, 1),
        case("several new tokens", 7, 3, 11, 60, 5, 5),
        case("a score matrix that is written", 3, 20, 20, 96, 6, 2, fused=False),
        case("a score matrix that is written", 3, 4, 20, 96, 6, 2, fused=False),
        case("other layers", batch, length, length, d_model, heads, groups),
        case("other layers", batch, 1, length, d_model, heads, groups),
        case("one key head (MQA)", batch, 1, length, d_model, heads, 1),
        case("a key head each (MHA)", batch, length, length, d_model, heads, heads),
        case("several new tokens", batch, random.randint(2, 9), length, d_model, heads, groups),
        case("a score matrix that is written", batch, length, length, d_model, heads, groups, fused=False),
        case("a score matrix that is written", batch, 1, length, d_model, heads, groups, fused=False),
    ]


attention_flops_bytes = Exercise(
    "attention_flops_bytes",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_measured,
    tolerance=EXACT,
    cases=[
        case("training: 2 texts of 8 tokens", 2, 8, 8, 16, 4, 4),
        case("decoding: 2 texts, 1 new token, 8 in all", 2, 1, 8, 16, 4, 4),
        case("decoding with one key head", 2, 1, 8, 16, 4, 1),
        case("training with a score matrix", 2, 8, 8, 16, 4, 2, fused=False),
        case("three new tokens with a score matrix", 2, 3, 8, 16, 4, 2, fused=False),
        case("Llama-3 8B's layer, decoding", 16, 1, 8192, 4096, 32, 8),
    ],
    hidden_cases=_cases,
    hints=[
        "A product of an m × k and a k × n matrix takes 2·m·k·n FLOPs. List the six products, each with its shapes.",
        "Projections: batch·new rows times 2·d² weights for q and out, and 2·d·kv_heads·width for k and v. Scores and "
        "values: batch·heads·new·context·width each.",
        "Bytes, at 2 per number: all weights once; x and the result; 2·batch·kv_heads·context·width of keys and "
        "values; without fusing, twice the batch·heads·new·context scores.",
    ],
    forbid=NO_COUNTER,
)


def _wrong(
    *args: int,
    fused: bool,
    per_product: int = 2,
    number: int = 2,
    projected_heads: int | None = None,
    scored_heads: int | None = None,
    cached_heads: int | None = None,
    cached_tokens: int | None = None,
    weight_reads: int = 1,
    outputs: int = 1,
    score_moves: int = 2,
    stored_score_heads: int | None = None,
    key_tokens: int | None = None,
    scored_pairs: int | None = None,
    stored_pairs: int | None = None,
    score_products: int = 2,
    written_tokens: int | None = None,
    projected_tokens: int | None = None,
    inputs_and_outputs: int = 2,
    keys_and_values: int = 2,
) -> tuple[int, int]:
    """Count FLOPs and bytes with one mistake switched on."""
    batch, new, context, d_model, heads, kv_heads = args
    width = d_model // heads
    shared = kv_heads if projected_heads is None else projected_heads
    weights = (1 + outputs) * d_model**2 + 2 * d_model * shared * width
    pairs = batch * new * context
    old = 0 if key_tokens is None else batch * (key_tokens - new) * 2 * d_model * shared * width
    projected = batch * (new if projected_tokens is None else projected_tokens)
    products = (
        projected * weights
        + old
        + score_products * (scored_pairs or pairs) * width * (heads if scored_heads is None else scored_heads)
    )
    cached = batch * context if cached_tokens is None else cached_tokens
    moved = weight_reads * weights + inputs_and_outputs * batch * (written_tokens or new) * d_model
    moved += keys_and_values * cached * width * (kv_heads if cached_heads is None else cached_heads)
    if not fused:
        moved += score_moves * (stored_pairs or pairs) * (heads if stored_score_heads is None else stored_score_heads)
    return per_product * products, number * moved


@attention_flops_bytes.misconception("You count a multiplication and the addition that goes with it as one FLOP.")
def multiply_adds(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, per_product=1)


@attention_flops_bytes.misconception("You count numbers, not bytes: each takes two in bf16.")
def numbers_for_bytes(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, number=1)


@attention_flops_bytes.misconception("Your numbers take four bytes each. In bf16 they take two.")
def four_bytes_each(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, number=4)


@attention_flops_bytes.misconception(
    "Your keys and values are kept for every query head. Only kv_heads of them are stored: that is the whole point."
)
def cache_for_every_query_head(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, cached_heads=args[4])


@attention_flops_bytes.misconception(
    "The projections to keys and values are only kv_heads · width wide; yours are as wide as the model."
)
def wide_key_projections(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, projected_heads=args[4])


@attention_flops_bytes.misconception(
    "Sharing keys does not make the scores cheaper: every query head still multiplies its own queries with every key."
)
def scores_of_key_heads_only(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, scored_heads=args[5])


@attention_flops_bytes.misconception(
    "You count scores for the key heads only. Every query head has its own scores, in the FLOPs and in the score "
    "matrix."
)
def score_matrix_of_key_heads_only(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, scored_heads=args[5], stored_score_heads=args[5])


@attention_flops_bytes.misconception(
    "You count only the pairs that a causal mask shows. Count all pairs: the products compute the hidden ones as well."
)
def visible_pairs_only(*args: int, fused: bool = True) -> tuple[int, int]:
    batch, new, context = args[:3]
    return _wrong(*args, fused=fused, scored_pairs=batch * (new * context - new * (new - 1) // 2))


@attention_flops_bytes.misconception("You count the scores, but not the product of the weights and the values.")
def scores_alone(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, score_products=1)


@attention_flops_bytes.misconception(
    "You give every head the full width d. A head is d / heads wide: all heads together cost what one wide head costs."
)
def heads_of_full_width(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, scored_heads=args[4] ** 2)


@attention_flops_bytes.misconception("You store one score matrix for all heads. Every query head has its own.")
def one_score_matrix(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, stored_score_heads=1)


@attention_flops_bytes.misconception(
    "Your score matrix has a row for each token of the context. Only the new tokens have queries: new × context."
)
def square_score_matrix(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, stored_pairs=args[0] * args[2] ** 2)


@attention_flops_bytes.misconception(
    "You move the input and output of the whole context. The layer reads and writes the new tokens only."
)
def whole_context_written(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, written_tokens=args[2])


@attention_flops_bytes.misconception("Your cache holds batch · batch numbers per feature. It holds batch · context.")
def batch_squared(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, cached_tokens=args[0] ** 2)


@attention_flops_bytes.misconception(
    "You read the keys and values of the new tokens only. A step reads the keys and values of the whole context."
)
def new_keys_only(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, cached_tokens=args[0] * args[1])


@attention_flops_bytes.misconception("The weights are read once for the whole batch, not once for every text.")
def weights_for_every_text(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, weight_reads=args[0])


@attention_flops_bytes.misconception("The output projection is missing, in the FLOPs and in the weights.")
def no_output_projection(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, outputs=0)


@attention_flops_bytes.misconception(
    "You count half of what the score matrix moves. One kernel writes it and the next reads it, for every query head."
)
def scores_moved_once(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, score_moves=1)


@attention_flops_bytes.misconception(
    "You project the whole context. Keys and values of old tokens are in the cache; only the new tokens are projected."
)
def whole_context_projected(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, projected_tokens=args[2])


@attention_flops_bytes.misconception(
    "You make the keys and values of the whole context again. Those of old tokens are in the cache: project the new "
    "tokens only."
)
def keys_of_the_context_projected(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, key_tokens=args[2])


@attention_flops_bytes.misconception("The layer's input and its output move as well: two vectors for each new token.")
def input_and_output_missing(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, inputs_and_outputs=0)


@attention_flops_bytes.misconception("The input of the layer moves, and its output, too: you count one of them.")
def output_missing(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, inputs_and_outputs=1)


@attention_flops_bytes.misconception("A token has a key and a value in the cache. You count one of the two.")
def keys_alone(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=fused, keys_and_values=1)


@attention_flops_bytes.misconception("You count the score matrix even for a fused kernel, which never writes it.")
def scores_always_written(*args: int, fused: bool = True) -> tuple[int, int]:
    return _wrong(*args, fused=False)


@attention_flops_bytes.variant
def product_by_product(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    width = d_model // heads
    shapes = [(batch * new, d_model, columns * width) for columns in (heads, kv_heads, kv_heads)]
    shapes.append((batch * new, d_model, d_model))
    shapes += [(new, width, context), (new, context, width)] * (batch * heads)
    flops = sum(2 * m * k * n for m, k, n in shapes)
    numbers = sum(k * n for _, k, n in shapes[:4]) + 2 * batch * new * d_model
    numbers += 2 * batch * context * kv_heads * width
    if not fused:
        numbers += 2 * batch * heads * new * context
    return flops, numbers * 2


@attention_flops_bytes.variant
def closed_form_with_a_quotient(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    share = kv_heads / heads
    flops = 4 * batch * new * d_model * (d_model * (1 + share) + context)
    moved = 4 * d_model**2 * (1 + share) + 4 * batch * d_model * (new + context * share)
    return round(flops), round(moved) + (not fused) * 4 * batch * heads * new * context


@attention_flops_bytes.variant
def shapes_by_numpy(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    width = d_model // heads
    shapes = [[batch, new, d_model], [d_model, d_model], [d_model, kv_heads * width], [batch, kv_heads, context, width]]
    if not fused:
        shapes.append([batch, heads, new, context])
    moved: Any = 2 * sum(np.prod(shape) for shape in shapes) * np.dtype(np.float16).itemsize
    multiplications = batch * new * (2 * d_model * d_model + 2 * d_model * kv_heads * width + 2 * d_model * context)
    return 2 * multiplications, moved


attention_flops_bytes.equivalent_mutant(
    "d_head = d_model // heads → d_head = d_model / heads",
    "The heads share the width out evenly, and 3.0 counts as 3.",
)
