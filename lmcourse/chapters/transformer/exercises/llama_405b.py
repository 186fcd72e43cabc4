"""The exercise that counts a published model to the last parameter."""

from __future__ import annotations

import torch

from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain
from lmcourse.models.zoo import find_model


def _from_its_tensors() -> dict[str, int]:
    """Count on the model itself, built without memory."""
    entry = find_model("llama-3.1-405b")
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in entry.build().named_parameters()}
    attention, d = entry.decoder.layers[0].attention, entry.decoder.d_model
    share = attention.heads * attention.head_width(d)
    return {
        "embedding": next(shape.numel() for name, shape in shapes.items() if name.startswith("embedding")),
        "queries": sum(share * shape[1] for name, shape in shapes.items() if name.endswith("qkv.weight")),
        "keys": sum(
            (shape[0] - share) // 2 * shape[1] for name, shape in shapes.items() if name.endswith("qkv.weight")
        ),
        "feed_forward": sum(shape.numel() for name, shape in shapes.items() if "feed_forward.layer" in name),
        "norms": sum(shape.numel() for shape in shapes.values() if len(shape) == 1),
        "total": sum(shape.numel() for shape in shapes.values()),
    }


RIGHT = {
    "embedding": 2_101_346_304,
    "queries": 33_822_867_456,
    "keys": 2_113_929_216,
    "feed_forward": 329_772_957_696,
    "norms": 4_145_152,
    "total": 405_853_388_800,
}


def _one_number(asked: Case, value: Plain) -> Plain:
    """Return the number that a case asks for: each of the six earns its part of the points."""
    return value.get(asked.name) if isinstance(value, dict) else value


llama_405b = Exercise(
    "llama_405b",
    value=True,
    view=_one_number,
    cases=[Case(name) for name in RIGHT],
    points=2,
    minutes=8,
    difficulty=2,
    reference=_from_its_tensors,
    hints=[
        "Embedding: V · d, once. Queries: d · d a layer. Keys: 8 heads of 128 features instead of 128 heads.",
        "The feed-forward layer has three matrices of d · d_ff. Norms: two a layer and one before the head.",
        "Total: embedding, the separate head, and per layer queries, keys, values, the output of attention, "
        "feed-forward and norms.",
    ],
)
llama_405b.wrong_value(
    RIGHT | {"embedding": 2_097_152_000, "total": 405_845_000_192},
    "You use 128,000 tokens, the rounded number in the paper's table. The released model has 128,256.",
)
llama_405b.wrong_value(
    RIGHT | {"total": 515_777_708_032},
    "You count one matrix of each feed-forward layer twice: it has three matrices, not four.",
)
llama_405b.wrong_value(
    RIGHT | {"total": 403_752_042_496},
    "The head is missing from your total. It is a separate matrix, because the model is not tied.",
)
llama_405b.wrong_value(
    RIGHT | {"keys": 33_822_867_456, "total": 469_271_265_280},
    "You count as many key heads as query heads. There are 8 key heads for 128 query heads.",
)
llama_405b.wrong_value(RIGHT | {"total": 405_849_243_648}, "The norms are missing from your total.")
llama_405b.wrong_value(
    RIGHT | {"feed_forward": 219_848_638_464, "total": 295_929_069_568},
    "A gated feed-forward layer has three matrices. You count two.",
)
llama_405b.wrong_value(
    RIGHT | {"norms": 4_128_768, "total": 405_853_372_416}, "One norm is missing: the one before the head."
)
llama_405b.wrong_value(
    RIGHT | {"queries": 268_435_456, "keys": 16_777_216, "feed_forward": 2_617_245_696},
    "You count queries, keys and feed-forward for one layer. There are 126 layers.",
)
llama_405b.wrong_value(
    {
        **{"embedding": 2_101_346_304, "queries": 268_435_456, "keys": 16_777_216, "feed_forward": 2_617_245_696},
        **{"norms": 3 * 16_384, "total": 7_390_412_800},
    },
    "You count a single block. There are 126.",
)
llama_405b.wrong_value(
    RIGHT | {"keys": 264_241_152, "total": 402_154_012_672}, "You count a single key head. There are 8 of 128 features."
)
llama_405b.wrong_value(
    RIGHT | {"queries": 67_645_734_912}, "Your queries include the output matrix of attention. Count only the queries."
)
llama_405b.wrong_value(
    RIGHT | {"total": 372_030_521_344},
    "The output matrix of attention is missing from your total. It is as large as the query matrix.",
)
llama_405b.wrong_value(
    RIGHT | {"total": 437_562_327_040},
    "You count as many value heads as query heads. Values are shared like keys: 8 heads.",
)
llama_405b.wrong_value(
    RIGHT | {"total": RIGHT["total"] - RIGHT["keys"]},
    "The value matrices are missing from your total. They are as large as those of the keys.",
)
llama_405b.wrong_value(
    RIGHT | {"norms": 127 * 16_384, "total": RIGHT["total"] - 126 * 16_384},
    "You count one norm a block. There are two: one before attention, one before the feed-forward layer.",
)
llama_405b.wrong_value(
    RIGHT | {"norms": 2 * RIGHT["norms"], "total": RIGHT["total"] + RIGHT["norms"]},
    "You count two numbers per feature in each norm. An RMSNorm has a scale and no shift.",
)
llama_405b.wrong_value(
    RIGHT | {"total": 12 * 126 * 16_384**2},
    "Your total is the rule of thumb, 12·L·d². Add up the matrices of this model.",
)
llama_405b.wrong_value(RIGHT | {"keys": 4_227_858_432}, "Your keys include the values. Count only the keys.")
llama_405b.wrong_value(
    RIGHT | {"embedding": 4_202_692_608},
    "Your embedding includes the head. Count only the table there; the head counts only in the total.",
)
llama_405b.wrong_value(
    RIGHT | {"total": 367_815_245_824},
    "Your total is the sum of the other five numbers. Values, the output matrix of attention and the head belong to "
    "it, too.",
)
llama_405b.right_value(
    '{"embedding": 128256 * 16384, "queries": 126 * 16384**2, "keys": 126 * 16384 * 1024, '
    '"feed_forward": 3 * 126 * 16384 * 53248, "norms": 253 * 16384, "total": 405853388800}',
    '{"total": 405853388800.0, "embedding": 2101346304.0, "queries": 33822867456.0, "keys": 2113929216.0, '
    '"feed_forward": 329772957696.0, "norms": 4145152.0}',
    "dict(embedding=2101346304, queries=33822867456, keys=2113929216, feed_forward=329772957696, norms=4145152, "
    "total=2 * 2101346304 + 2 * 33822867456 + 2 * 2113929216 + 329772957696 + 4145152)",
)
