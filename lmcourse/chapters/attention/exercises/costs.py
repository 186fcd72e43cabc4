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


@attention_flops_bytes.variant
def weights_and_pairs(
    batch: int, new: int, context: int, d_model: int, heads: int, kv_heads: int, fused: bool = True
) -> tuple[int, int]:
    width = d_model // heads
    weights = 2 * d_model**2 + 2 * d_model * kv_heads * width
    pairs = batch * new * context
    flops = 2 * (batch * new * weights + 2 * pairs * heads * width)
    numbers = weights + 2 * batch * new * d_model + 2 * batch * context * kv_heads * width
    if not fused:
        numbers += 2 * pairs * heads
    return flops, 2 * numbers


attention_flops_bytes.slips(
    weights_and_pairs,
    {
        "flops = 2 * → flops = 1 *": "You count a multiplication and the addition that goes with it as one FLOP.",
        "flops, 2 * numbers → flops, numbers": "You count numbers, not bytes: each takes two in bf16.",
        "2 * numbers → 4 * numbers": "Your numbers take four bytes each. In bf16 they take two.",
        "context * kv_heads → context * heads": "Your keys and values are kept for every query head. Only kv_heads of "
        "them are stored: that is the whole point.",
        "d_model * kv_heads → d_model * heads": "The projections to keys and values are only kv_heads · width wide; "
        "yours are as wide as the model.",
        "pairs * heads * width → pairs * kv_heads * width": "Sharing keys does not make the scores cheaper: every "
        "query head still multiplies its own queries with every key.",
        "pairs * heads * width → pairs * kv_heads * width ;; += 2 * pairs * heads → += 2 * pairs * "
        "kv_heads": "You count scores for the key heads only. Every query head has its own scores, in the FLOPs and in "
        "the score matrix.",
        "pairs * heads * width → batch * (new * context - new * (new - 1) // 2) * heads * width": "You count only the "
        "pairs that a causal mask shows. Count all pairs: the products compute the hidden ones as well.",
        "2 * pairs * heads * width → pairs * heads * width": "Your scores and values take half of their FLOPs. There "
        "are two products; count all pairs in both, also hidden ones.",
        "pairs * heads * width → pairs * heads * d_model": "You give every head the full width d. A head is d / heads "
        "wide: all heads together cost what one wide head costs.",
        "+= 2 * pairs * heads → += 2 * pairs": "You store one score matrix for all heads. Every query head has its "
        "own.",
        "+= 2 * pairs → += 2 * batch * context**2": "Your score matrix has a row for each token of the context. Only "
        "the new tokens have queries: new × context.",
        "2 * batch * new * d_model → 2 * batch * context * d_model": "You move the input and output of the whole "
        "context. The layer reads and writes the new tokens only.",
        "2 * batch * context → 2 * batch * batch": "Your cache holds batch · batch numbers per feature. It holds batch "
        "· context.",
        "2 * batch * context → 2 * batch * new": "You read the keys and values of the new tokens only. A step reads "
        "the keys and values of the whole context.",
        "numbers = weights → numbers = batch * weights": "The weights are read once for the whole batch, not once for "
        "every text.",
        "weights = 2 * d_model**2 → weights = d_model**2": "The output projection is missing, in the FLOPs and in the "
        "weights.",
        "+= 2 * pairs → += pairs": "You count half of what the score matrix moves. One kernel writes it and the next "
        "reads it, for every query head.",
        "batch * new * weights → batch * context * weights": "You project the whole context. Keys and values of old "
        "tokens are in the cache; only the new tokens are projected.",
        "batch * new * weights → batch * (new * 2 * d_model**2 + context * 2 * d_model * kv_heads * width)": "You make "
        "the keys and values of the whole context again. Those of old tokens are in the cache: project the new tokens "
        "only.",
        " + 2 * batch * new * d_model → ": "The layer's input and its output move as well: two vectors for each new "
        "token.",
        "2 * batch * new * d_model → batch * new * d_model": "The input of the layer moves, and its output, too: you "
        "count one of them.",
        "2 * batch * context → batch * context": "A token has a key and a value in the cache. You count one of the "
        "two.",
        "if not fused → if True": "You count the score matrix even for a fused kernel, which never writes it.",
    },
)


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
    "d_head = d_model // heads → d_head = d_model / heads", "The heads share the width out evenly, and 3.0 counts as 3."
)
