"""The exercise on the table of Kaplan et al. (2020)."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.accounting.flop_rules import kaplan_forward, kaplan_parameters
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER
from lmcourse.models.zoo.styles import gpt_like

Table = dict[str, list[int]]


def _table(layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int) -> Table:
    """Parameters read off the matrices of a configuration, FLOPs from the package's own table."""
    wide = {"width": d_ff}
    config = gpt_like(layers, d_model, 1, vocab_size=vocab_size, context=context, feed_forward=wide, d_head=d_attn)
    (group,) = config.matrices.layers
    q, k, v, out, up, down = (layers * matrix.weights for matrix in group.all)
    flops = kaplan_forward(config, context)
    return {
        "embed": [(vocab_size + context) * d_model, flops["embed"]],
        "qkv": [q + k + v, flops["qkv"]],
        "mask": [0, flops["mask"]],
        "project": [out, flops["project"]],
        "ffn": [up + down, flops["feed-forward"]],
        "de-embed": [0, flops["de-embed"]],
        "total": [kaplan_parameters(config), flops.total - flops["embed"] - flops["de-embed"]],
    }


def _cases(random: Random) -> list[Case]:
    def sizes(d_attn: int | None = None) -> list[int]:
        d_model = 16 * random.randint(8, 99)
        head = [random.randint(2, 60), d_model, d_attn or d_model]
        return [*head, random.randint(500, 9000), random.randint(100, 5000), random.randint(999, 99_999)]

    return [
        case("attention wider or narrower than the model", 3, 10, 4, 30, 7, 11),
        case("other models", 1, 16, 16, 24, 1, 5),
        *(case("other models", *sizes()) for _ in range(3)),
        *(case("attention wider or narrower than the model", *sizes(64 * random.randint(1, 40))) for _ in range(3)),
    ]


kaplan_table = Exercise(
    "kaplan_table",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_table,
    cases=[
        case("a model for the back of an envelope", 2, 10, 10, 40, 100, 1000),
        case("attention twice as wide as the model", 2, 10, 20, 40, 100, 1000),
        case("GPT-2 XL", 48, 1600, 1600, 6400, 1024, 50_257),
    ],
    hidden_cases=_cases,
    hints=[
        "Fill in the rows from the text. All but `embed`, `mask` and `de-embed` have 2 FLOPs per parameter.",
        "`mask` has no parameters and 2 · layers · context · d_attn FLOPs; `de-embed` has 2 · d_model · vocab_size "
        "and, as its weights are the embedding's, no parameters of its own.",
        "`total` is [N, 2·N + mask] with N = 2 · d_model · layers · (2 · d_attn + d_ff): no embedding, no head.",
    ],
    forbid=NO_COUNTER,
)


def _changed(table: Table, row: str, parameters: int = 0, flops: int = 0) -> Table:
    """The right table but for one row, and for the total if that row is part of it."""
    inside = row not in ("embed", "de-embed")
    rows = [row, "total"] if inside else [row]
    return table | {name: [table[name][0] + parameters, table[name][1] + flops] for name in rows}


@kaplan_table.misconception(
    "Your `mask` counts all pairs of tokens. The table means a causal mask: a query sees half of the context, on "
    "average."
)
def all_pairs(*sizes: int) -> Table:
    table = _table(*sizes)
    return _changed(table, "mask", flops=table["mask"][1])


@kaplan_table.misconception(
    "Your `mask` has the exact mean, (context + 1) / 2 keys. The table leaves out the 1: 2 · context · d_attn a layer."
)
def exact_mean(*sizes: int) -> Table:
    table = _table(*sizes)
    return _changed(table, "mask", flops=table["mask"][1] // sizes[4])


@kaplan_table.misconception(
    "Your `mask` holds scores or values, not both, for half of the pairs. Both together give 2 · context · d_attn."
)
def scores_without_values(*sizes: int) -> Table:
    table = _table(*sizes)
    return _changed(table, "mask", flops=-table["mask"][1] // 2)


@kaplan_table.misconception(
    "Your `embed` multiplies with one-hot vectors. A look-up and an addition take a few FLOPs per feature; the table "
    "says 4 · d_model."
)
def one_hot(layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int) -> Table:
    table = _table(layers, d_model, d_attn, d_ff, context, vocab_size)
    return table | {"embed": [table["embed"][0], 2 * (vocab_size + context) * d_model]}


@kaplan_table.misconception("Positions are learned here: `embed` has a vector for each of the `context` places, too.")
def no_positions(*sizes: int) -> Table:
    return _changed(_table(*sizes), "embed", parameters=-sizes[4] * sizes[1])


@kaplan_table.misconception("De-embedding is a product, 2 FLOPs per weight: yours has 4.")
def head_twice(*sizes: int) -> Table:
    table = _table(*sizes)
    return _changed(table, "de-embed", flops=table["de-embed"][1])


@kaplan_table.misconception("The head uses the embedding's weights, which are counted above: it has none of its own.")
def untied(*sizes: int) -> Table:
    return _changed(_table(*sizes), "de-embed", parameters=sizes[1] * sizes[5])


@kaplan_table.misconception(
    "Your total includes embedding and de-embedding. N is 'non-embedding', and so is C: that made their curves "
    "straight."
)
def total_of_all(*sizes: int) -> Table:
    table = _table(*sizes)
    rows = [row for name, row in table.items() if name != "total"]
    return table | {"total": [sum(parameters for parameters, _ in rows), sum(flops for _, flops in rows)]}


@kaplan_table.misconception("`qkv` is three matrices in every layer. Yours lacks the layers.")
def one_layer_of_qkv(*sizes: int) -> Table:
    table = _table(*sizes)
    rest = [-(number - number // sizes[0]) for number in table["qkv"]]
    return _changed(table, "qkv", *rest)


@kaplan_table.misconception("`qkv` is three matrices in every layer: one for queries, one for keys, one for values.")
def one_of_three(*sizes: int) -> Table:
    table = _table(*sizes)
    return _changed(table, "qkv", *(-2 * number // 3 for number in table["qkv"]))


@kaplan_table.misconception("Each weight takes a multiplication and an addition: 2 FLOPs per parameter and token.")
def a_flop_per_weight(*sizes: int) -> Table:
    table = _table(*sizes)
    halved = {name: [table[name][0], table[name][1] // 2] for name in ("qkv", "project", "ffn", "de-embed")}
    return table | halved | {"total": [table["total"][0], table["total"][0] + table["mask"][1]]}


@kaplan_table.variant
def rows_as_tuples(
    layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int
) -> dict[str, tuple[int, int]]:
    qkv, project, ffn = (layers * d_model * width for width in (3 * d_attn, d_attn, 2 * d_ff))
    N, mask = qkv + project + ffn, 2 * layers * context * d_attn
    return {
        "total": (N, 2 * N + mask),
        "embed": (vocab_size * d_model + context * d_model, 4 * d_model),
        "de-embed": (0, 2 * d_model * vocab_size),
        "qkv": (qkv, 2 * qkv),
        "mask": (0, mask),
        "project": (project, 2 * project),
        "ffn": (ffn, 2 * ffn),
    }


@kaplan_table.variant
def added_up(layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int) -> dict[str, list[int]]:
    table = {row: [0, 0] for row in ("embed", "qkv", "mask", "project", "ffn", "de-embed", "total")}
    for _ in range(layers):
        for row, weights in (("qkv", 3 * d_model * d_attn), ("project", d_attn * d_model), ("ffn", 2 * d_model * d_ff)):
            for name in (row, "total"):
                table[name][0] += weights
                table[name][1] += 2 * weights
        for name in ("mask", "total"):
            table[name][1] += 2 * context * d_attn
    table["embed"] = [d_model * (vocab_size + context), 4 * d_model]
    table["de-embed"][1] = 2 * d_model * vocab_size
    return table


@kaplan_table.variant
def in_an_array(
    layers: int, d_model: int, d_attn: int, d_ff: int, context: int, vocab_size: int
) -> dict[str, np.ndarray]:
    """Three rows of weights with 2 FLOPs each, and what attention takes of them in the middle of a causal mask."""
    weights = layers * d_model * np.array([3 * d_attn, d_attn, 2 * d_ff], dtype=np.int64)
    table = dict(zip(("qkv", "project", "ffn"), (np.array([size, 2 * size]).tolist() for size in weights), strict=True))
    mask = 4 * layers * d_attn * context / 2
    total = [float(weights.sum()), float(2 * weights.sum() + mask)]
    ends = {"embed": [(vocab_size + context) * d_model, 4 * d_model], "de-embed": [0, 2 * d_model * vocab_size]}
    return table | ends | {"mask": [0.0, mask], "total": total}
