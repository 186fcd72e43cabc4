"""The exercise on the number of parameters of a model."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from lmcourse.accounting.parameters import count_parameters
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig

Sizes = dict[str, Any]


def gpt(layers: int, d_model: int, heads: int, vocab_size: int, positions: int) -> Sizes:
    """Return the sizes of a model like GPT-2."""
    sizes = {"layers": layers, "d_model": d_model, "heads": heads, "kv_heads": heads, "d_ff": 4 * d_model}
    return sizes | {"vocab_size": vocab_size, "positions": positions, "gated": False, "biases": True, "tied": True}


def llama(layers: int, d_model: int, heads: int, kv_heads: int, d_ff: int, vocab_size: int) -> Sizes:
    """Return the sizes of a model like Llama."""
    sizes = {"layers": layers, "d_model": d_model, "heads": heads, "kv_heads": kv_heads, "d_ff": d_ff}
    return sizes | {"vocab_size": vocab_size, "positions": 0, "gated": True, "biases": False, "tied": False}


def _count(config: Sizes) -> int:
    biases, positions = config["biases"], config["positions"]
    norm = NormConfig("layer", bias=True) if biases else NormConfig("rms")
    attention = AttentionConfig(config["heads"], config["kv_heads"], bias=biases, out_bias=biases)
    layer = LayerConfig(attention, FeedForwardConfig(config["d_ff"], gated=config["gated"], bias=biases))
    model = TransformerConfig(
        config["vocab_size"],
        config["d_model"],
        repeat_layers([layer], config["layers"]),
        BlockConfig(norm),
        EmbeddingConfig("learned", max_positions=positions) if positions else EmbeddingConfig(),
        HeadConfig(tied=config["tied"]),
        final_norm=norm,
    )
    return count_parameters(model).total


def _cases(random: Random) -> list[Case]:
    def sizes(**changes: Any) -> Sizes:
        kv_heads, group, width = random.randint(2, 4), random.randint(2, 4), random.randint(3, 9)
        heads, layers = kv_heads * group, random.randint(2, 9)
        d_ff, vocab_size = random.randint(20, 900), random.randint(90, 999)
        return llama(layers, heads * width, heads, kv_heads, d_ff, vocab_size) | changes

    small = llama(2, 12, 4, 2, 20, 50)
    return [
        case("gated with biases", small | {"biases": True, "positions": 7}),
        case("gated with biases", small | {"biases": True, "tied": True}),
        case("one key head", small | {"kv_heads": 1, "gated": False}),
        case("one key head", gpt(3, 12, 4, 50, 9) | {"kv_heads": 1}),
        case("tied or not", small | {"positions": 7, "tied": True}),
        case("other sizes", sizes()),
        case("other sizes", sizes(gated=False, biases=True, positions=random.randint(9, 99), tied=True)),
        case("one key head", sizes(kv_heads=1, biases=True)),
        case("tied or not", sizes(tied=True)),
        case("tied or not", sizes(gated=False, positions=random.randint(9, 99))),
        case("gated with biases", sizes(biases=True)),
    ]


parameter_count = Exercise(
    "parameter_count",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_count,
    seconds=30.0,  # the first module on the meta device makes torch import for seconds
    cases=[
        case("one layer, all by hand: d = 4", gpt(1, 4, 2, 10, 8)),
        case("GPT-2", gpt(12, 768, 12, 50_257, 1024)),
        case("GPT-3", gpt(96, 12_288, 96, 50_257, 2048)),
        case("a head of its own", gpt(1, 4, 2, 10, 8) | {"tied": False}),
        case("a gate and biases", llama(2, 12, 4, 2, 20, 50) | {"biases": True}),
        case("Llama 3 8B", llama(32, 4096, 32, 8, 14_336, 128_256)),
        case("Llama 3.1 405B", llama(126, 16_384, 128, 8, 53_248, 128_256)),
    ],
    hidden_cases=_cases,
    hints=[
        "Go through the model from the bottom: embedding, positions, and for each layer attention, feed-forward and "
        "two norms; then the last norm and the head.",
        "Keys and values are kv_heads · d / heads wide. A bias has as many numbers as its matrix has outputs.",
        "A layer: 2·d² + 2·d·kv + (3 if gated else 2)·d·d_ff. With biases another 2·d + 2·kv + d_ff + d, and d_ff once "
        "more for a gate. A norm has d numbers, or 2·d with biases.",
    ],
)
parameter_count.equivalent_mutant(
    "kv, inner = (d // config['heads'] * config['kv_heads'], 2 if config['gated'] else 1) → "
    "kv, inner = (d / config['heads'] * config['kv_heads'], 2 if config['gated'] else 1)",
    "The heads divide the width, and a whole number may be a float.",
)


def _parts(config: Sizes) -> dict[str, int]:
    """Count part by part, for answers that forget one part."""
    d, d_ff, biases = config["d_model"], config["d_ff"], config["biases"]
    kv, matrices = d // config["heads"] * config["kv_heads"], 3 if config["gated"] else 2
    layer = {
        "queries, output": 2 * d**2,
        "keys, values": 2 * d * kv,
        "feed-forward": matrices * d * d_ff,
        "norms": 2 * (1 + biases) * d,
        "biases": biases * (2 * d + 2 * kv + (matrices - 1) * d_ff + d),
    }
    return {part: config["layers"] * size for part, size in layer.items()} | {
        "embedding": config["vocab_size"] * d,
        "positions": config["positions"] * d,
        "last norm": (1 + biases) * d,
        "head": 0 if config["tied"] else config["vocab_size"] * d,
    }


def _without(config: Sizes, *parts: str) -> int:
    return sum(size for part, size in _parts(config).items() if part not in parts)


@parameter_count.misconception(
    "You take 12·layers·d² plus embedding, positions and head. That rule of thumb leaves out norms and biases, and "
    "assumes d_ff = 4d without a gate, and keys as wide as queries."
)
def rule_of_thumb(config: Sizes) -> int:
    ends = _parts(config)
    layers = 12 * config["layers"] * config["d_model"] ** 2
    return int(layers + ends["embedding"] + ends["positions"] + ends["head"])


@parameter_count.misconception("You inverted `tied`. A tied head uses the embedding's matrix again.")
def tied_inverted(config: Sizes) -> int:
    return _without(config | {"tied": not config["tied"]})


@parameter_count.misconception(
    "The norms are missing: each has a scale per feature, and a shift where there are biases."
)
def norms_forgotten(config: Sizes) -> int:
    return _without(config, "norms", "last norm")


@parameter_count.misconception("The last norm is missing, the one between the last layer and the head.")
def last_norm_forgotten(config: Sizes) -> int:
    return _without(config, "last norm")


@parameter_count.misconception("The biases of the matrices are missing.")
def biases_forgotten(config: Sizes) -> int:
    return _without(config, "biases")


@parameter_count.misconception("The learned positions are missing: one vector of d numbers for each position.")
def positions_forgotten(config: Sizes) -> int:
    return _without(config, "positions")


@parameter_count.misconception("A tied head is the embedding once more, not a second matrix. You count it twice.")
def tied_head_counted(config: Sizes) -> int:
    return _count(config | {"tied": False})


@parameter_count.misconception(
    "The separate head is missing. If it is not tied, it has its own matrix, as large as the embedding."
)
def head_forgotten(config: Sizes) -> int:
    return _without(config, "head")


@parameter_count.misconception(
    "Your keys and values are as wide as the model. They have kv_heads heads, and heads that share are stored once."
)
def four_d_squared(config: Sizes) -> int:
    return _count(config | {"kv_heads": config["heads"]})


@parameter_count.misconception("You count two matrices in a gated feed-forward layer. It has three: gate, up and down.")
def gate_forgotten(config: Sizes) -> int:
    return _count(config | {"gated": False})


@parameter_count.misconception("The bias of the gate is missing: with biases, every matrix has one.")
def gate_without_bias(config: Sizes) -> int:
    missing = config["layers"] * config["d_ff"] if config["gated"] and config["biases"] else 0
    return _count(config) - int(missing)


@parameter_count.misconception("Your norms always have a shift. Without `biases` a norm has only a scale: d numbers.")
def shift_in_every_norm(config: Sizes) -> int:
    more = 0 if config["biases"] else (2 * config["layers"] + 1) * config["d_model"]
    return _count(config) + int(more)


@parameter_count.misconception("Your norms have no shift. With `biases` a norm has a scale and a shift: 2·d numbers.")
def no_shift(config: Sizes) -> int:
    missing = (2 * config["layers"] + 1) * config["d_model"] if config["biases"] else 0
    return _count(config) - int(missing)


@parameter_count.misconception("Your head has a bias. The text says that embedding and head have none.")
def head_with_a_bias(config: Sizes) -> int:
    return _count(config) + int(config["biases"] * config["vocab_size"])


@parameter_count.misconception("The biases of keys and values are missing: each has kv_heads · d / heads numbers.")
def no_biases_of_keys(config: Sizes) -> int:
    kv = config["d_model"] // config["heads"] * config["kv_heads"]
    return _count(config) - int(config["biases"] * config["layers"] * 2 * kv)


@parameter_count.misconception("Your separate head has a bias. Only the matrices of the layers have one.")
def separate_head_with_a_bias(config: Sizes) -> int:
    return _count(config) + int(config["biases"] and not config["tied"]) * int(config["vocab_size"])


@parameter_count.misconception("The four biases of attention are missing: those of queries, keys, values and output.")
def no_biases_of_attention(config: Sizes) -> int:
    kv = config["d_model"] // config["heads"] * config["kv_heads"]
    return _count(config) - int(config["biases"] * config["layers"] * 2 * (config["d_model"] + kv))


@parameter_count.misconception(
    "Your queries are as narrow as keys and values. They have `heads` heads: d_model numbers."
)
def narrow_queries(config: Sizes) -> int:
    kv = config["d_model"] // config["heads"] * config["kv_heads"]
    rows = config["d_model"] + int(config["biases"])
    return _count(config) - int(config["layers"] * rows * (config["d_model"] - kv))


@parameter_count.misconception("You count one norm a layer. There are two, and a last one after all layers.")
def one_norm_a_layer(config: Sizes) -> int:
    return _count(config) - int(config["layers"] * (1 + config["biases"]) * config["d_model"])


@parameter_count.misconception(
    "That is 12·layers·d² and the embeddings: a rule of thumb without norms, biases, other widths, and a separate head."
)
def rule_of_thumb_tied(config: Sizes) -> int:
    ends = _parts(config)
    return int(12 * config["layers"] * config["d_model"] ** 2 + ends["embedding"] + ends["positions"])


@parameter_count.misconception(
    "Your biases of keys and values are as wide as the queries'. A bias has as many numbers as its matrix has outputs."
)
def wide_biases_of_keys(config: Sizes) -> int:
    kv = config["d_model"] // config["heads"] * config["kv_heads"]
    return _count(config) + int(config["biases"] * config["layers"] * 2 * (config["d_model"] - kv))


@parameter_count.misconception(
    "Your bias of down is d_ff wide. A bias has as many numbers as its matrix has outputs, and down has d."
)
def wide_bias_of_down(config: Sizes) -> int:
    return _count(config) + int(config["biases"] * config["layers"] * (config["d_ff"] - config["d_model"]))


@parameter_count.misconception("You count one layer plus embedding and head. The model has `layers` layers.")
def one_layer(config: Sizes) -> int:
    return _count(config | {"layers": 1})


@parameter_count.misconception(
    "That is 12·L·d², the rule for the matrices of GPT's blocks. Add embedding, norms and biases; and other models "
    "have other blocks."
)
def twelve_l_d_squared(config: Sizes) -> int:
    return 12 * int(config["layers"]) * int(config["d_model"]) ** 2


@parameter_count.variant
def sizes_of_all_shapes(config: dict[str, Any]) -> int:
    d, kv, d_ff = config["d_model"], config["d_model"] * config["kv_heads"] // config["heads"], config["d_ff"]
    shapes: list[tuple[int, ...]] = [(config["vocab_size"], d), (config["positions"], d)]
    if not config["tied"]:
        shapes.append((d, config["vocab_size"]))
    for _ in range(config["layers"]):
        shapes += [(d, d), (d, kv), (d, kv), (d, d), (d, d_ff), (d_ff, d), (d,), (d,)]
        if config["gated"]:
            shapes.append((d, d_ff))
        if config["biases"]:
            shapes += [(d,), (kv,), (kv,), (d,), (d_ff,), (d,), (d,), (d,)]
            shapes += [(d_ff,)] * config["gated"]
    shapes += [(d,)] * (2 if config["biases"] else 1)
    return sum(math.prod(shape) for shape in shapes)


@parameter_count.variant
def modules_without_memory(config: dict[str, Any]) -> int:
    d, biases = config["d_model"], config["biases"]
    kv = config["kv_heads"] * (d // config["heads"])
    with torch.device("meta"):
        layer = [nn.Linear(d, d, biases), nn.Linear(d, kv, biases), nn.Linear(d, kv, biases), nn.Linear(d, d, biases)]
        layer += [nn.Linear(d, config["d_ff"], biases) for _ in range(1 + config["gated"])]
        layer += [nn.Linear(config["d_ff"], d, biases)]
        norms = [nn.LayerNorm(d, bias=biases) for _ in range(2)]
        ends = [nn.Embedding(config["vocab_size"], d) for _ in range(1 if config["tied"] else 2)]
        ends += [nn.Embedding(config["positions"], d)]
    count = sum(p.numel() for module in (*layer, *norms) for p in module.parameters()) * config["layers"]
    return int(count) + sum(p.numel() for module in (*ends, norms[0]) for p in module.parameters())


@parameter_count.variant
def rows_with_one_more(config: dict[str, Any]) -> np.int64:
    """Count with one more row for a matrix with a bias."""
    more = 1 if config["biases"] else 0
    d, f = np.int64(config["d_model"]), np.int64(config["d_ff"])
    head = d // config["heads"]
    wide = np.array([d, head * config["kv_heads"], head * config["kv_heads"], d])
    block = ((d + more) * wide).sum() + (d + more) * f * (2 if config["gated"] else 1) + (f + more) * d
    norm = d * (1 + more)
    tokens = config["vocab_size"] * (2 - int(config["tied"])) + config["positions"]
    return np.int64(config["layers"] * (block + 2 * norm) + norm + tokens * d)
