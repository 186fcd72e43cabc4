"""The exercise that counts a published model to the last parameter."""

from __future__ import annotations

from lmcourse.accounting.parameters import count_parameters
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain
from lmcourse.models.zoo import find_model


def _from_the_configuration() -> dict[str, int]:
    """Count with the course's own accounting."""
    counted = count_parameters(find_model("llama-3.1-405b").config)
    return {
        "embedding": counted["embedding"],
        "queries": counted["attention q"],
        "keys": counted["attention k"],
        "feed_forward": counted["feed-forward"],
        "norms": counted["norms"],
        "total": counted.total,
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
    reference=_from_the_configuration,
    hints=[
        "Embedding: V · d, once. Queries: d · d a layer. Keys: 8 heads of 128 features instead of 128 heads.",
        "The feed-forward layer has three matrices of d · d_ff. Norms: two a layer and one before the head.",
        "Total: embedding, the separate head, and per layer queries, keys, values, the output of attention, "
        "feed-forward and norms.",
    ],
)


def _wrong(sentence: str, **numbers: int) -> None:
    llama_405b.wrong_value(RIGHT | numbers, sentence)


_wrong(
    "You use 128,000 tokens, the rounded number in the paper's table. The released model has 128,256.",
    embedding=2_097_152_000,
    total=405_845_000_192,
)
_wrong("You count one matrix of each feed-forward layer twice: it has three matrices, not four.", total=515_777_708_032)
_wrong(
    "The head is missing from your total. It is a separate matrix, because the model is not tied.",
    total=403_752_042_496,
)
_wrong(
    "You count as many key heads as query heads. There are 8 key heads for 128 query heads.",
    keys=33_822_867_456,
    total=469_271_265_280,
)
_wrong("The norms are missing from your total.", total=405_849_243_648)
_wrong(
    "A gated feed-forward layer has three matrices. You count two.", feed_forward=219_848_638_464, total=295_929_069_568
)
_wrong("One norm is missing: the one before the head.", norms=4_128_768, total=405_853_372_416)
_wrong(
    "You count queries, keys and feed-forward for one layer. There are 126 layers.",
    queries=268_435_456,
    keys=16_777_216,
    feed_forward=2_617_245_696,
)
_wrong(
    "You count a single block. There are 126.",
    queries=268_435_456,
    keys=16_777_216,
    feed_forward=2_617_245_696,
    norms=49_152,
    total=7_390_412_800,
)
_wrong("You count a single key head. There are 8 of 128 features.", keys=264_241_152, total=402_154_012_672)
_wrong("Your queries include the output matrix of attention. Count only the queries.", queries=67_645_734_912)
_wrong(
    "The output matrix of attention is missing from your total. It is as large as the query matrix.",
    total=372_030_521_344,
)
_wrong("You count as many value heads as query heads. Values are shared like keys: 8 heads.", total=437_562_327_040)
_wrong(
    "The value matrices are missing from your total. They are as large as those of the keys.",
    total=RIGHT["total"] - RIGHT["keys"],
)
_wrong(
    "You count one norm a block. There are two: one before attention, one before the feed-forward layer.",
    norms=127 * 16_384,
    total=RIGHT["total"] - 126 * 16_384,
)
_wrong(
    "You count two numbers per feature in each norm. An RMSNorm has a scale and no shift.",
    norms=2 * RIGHT["norms"],
    total=RIGHT["total"] + RIGHT["norms"],
)
_wrong("Your total is the rule of thumb, 12·L·d². Add up the matrices of this model.", total=12 * 126 * 16_384**2)
_wrong("Your keys include the values. Count only the keys.", keys=4_227_858_432)
_wrong(
    "Your embedding includes the head. Count only the table there; the head counts only in the total.",
    embedding=4_202_692_608,
)
_wrong(
    "Your total is the sum of the other five numbers. Values, the output matrix of attention and the head "
    "belong to it, too.",
    total=367_815_245_824,
)
llama_405b.right_value(
    '{"embedding": 128256 * 16384, "queries": 126 * 16384**2, "keys": 126 * 16384 * 1024, '
    '"feed_forward": 3 * 126 * 16384 * 53248, "norms": 253 * 16384, "total": 405853388800}',
    '{"total": 405853388800.0, "embedding": 2101346304.0, "queries": 33822867456.0, "keys": 2113929216.0, '
    '"feed_forward": 329772957696.0, "norms": 4145152.0}',
    "dict(embedding=2101346304, queries=33822867456, keys=2113929216, feed_forward=329772957696, norms=4145152, "
    "total=2 * 2101346304 + 2 * 33822867456 + 2 * 2113929216 + 329772957696 + 4145152)",
)
