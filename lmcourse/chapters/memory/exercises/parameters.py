"""The exercise on the number of parameters of a model."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

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


@parameter_count.variant
def part_by_part(config: dict[str, Any]) -> int:
    d, d_ff, layers = config["d_model"], config["d_ff"], config["layers"]
    kv = d // config["heads"] * config["kv_heads"]
    matrices = 3 if config["gated"] else 2
    attention = d * d + d * kv + d * kv + d * d
    feed_forward = matrices * d * d_ff
    norm, biases = d, 0
    if config["biases"]:
        norm = 2 * d
        biases = d + kv + kv + d + (matrices - 1) * d_ff + d
    layer = attention + feed_forward + biases + 2 * norm
    embedding = config["vocab_size"] * d
    positions = config["positions"] * d
    head = 0 if config["tied"] else embedding
    return int(layers * layer + embedding + positions + norm + head)


parameter_count.slips(
    part_by_part,
    {
        "layers * layer → 12 * layers * d**2 ;; + norm + head → + head": "You take 12·layers·d² plus embedding, "
        "positions and head. That rule of thumb leaves out norms and biases, and assumes d_ff = 4d without a gate, "
        "and keys as wide as queries.",
        '0 if config["tied"] else embedding → embedding if config["tied"] else 0': "You inverted `tied`. A tied head "
        "uses the embedding's matrix again.",
        " + 2 * norm →  ;; + norm + head → + head": "The norms are missing: each has a scale per feature, and a shift "
        "where there are biases.",
        "+ norm + head → + head": "The last norm is missing, the one between the last layer and the head.",
        " + biases → ": "The biases of the matrices are missing.",
        " + positions → ": "The learned positions are missing: one vector of d numbers for each position.",
        '0 if config["tied"] else embedding → embedding': "A tied head is the embedding once more, not a second "
        "matrix. You count it twice.",
        "norm + head → norm": "The separate head is missing. If it is not tied, it has its own matrix, as large as "
        "the embedding.",
        'd // config["heads"] * config["kv_heads"] → d': "Your keys and values are as wide as the model. They have "
        "kv_heads heads, and heads that share are stored once.",
        '3 if config["gated"] else 2 → 2': "You count two matrices in a gated feed-forward layer. It has three: gate, "
        "up and down.",
        "(matrices - 1) * d_ff → d_ff": "The bias of the gate is missing: with biases, every matrix has one.",
        "biases = d, 0 → biases = 2 * d, 0": "Your norms always have a shift. Without `biases` a norm has only a "
        "scale: d numbers.",
        "norm = 2 * d → norm = d": "Your norms have no shift. With `biases` a norm has a scale and a shift: 2·d "
        "numbers.",
        'norm + head → norm + head + config["biases"] * config["vocab_size"]': "Your head has a bias. The text says "
        "that embedding and head have none.",
        "d + kv + kv + d → d + d": "The biases of keys and values are missing: each has kv_heads · d / heads numbers.",
        'else embedding → else embedding + config["biases"] * config["vocab_size"]': "Your separate head has a bias. "
        "Only the matrices of the layers have one.",
        "d + kv + kv + d + → ": "The four biases of attention are missing: those of queries, keys, values and output.",
        "attention = d * d → attention = d * kv ;; biases = d + → biases = kv +": "Your queries are as narrow as keys "
        "and values. They have `heads` heads: d_model numbers.",
        "2 * norm → norm": "You count one norm a layer. There are two, and a last one after all layers.",
        "layers * layer → 12 * layers * d**2 ;;  + norm + head → ": "That is 12·layers·d² and the embeddings: a rule "
        "of thumb without norms, biases, other widths, and a separate head.",
        "d + kv + kv + d → d + d + d + d": "Your biases of keys and values are as wide as the queries'. A bias has as "
        "many numbers as its matrix has outputs.",
        "d_ff + d\n → d_ff + d_ff\n": "Your bias of down is d_ff wide. A bias has as many numbers as its matrix has "
        "outputs, and down has d.",
        "layers * layer → layer": "You count one layer plus embedding and head. The model has `layers` layers.",
        "layers * layer + embedding + positions + norm + head → 12 * layers * d**2": "That is 12·L·d², the rule for "
        "the matrices of GPT's blocks. Add embedding, norms and biases; and other models have other blocks.",
        'd // config["heads"] * config["kv_heads"] → d * config["kv_heads"]': "Each of your key heads is as wide as "
        "the model. A head has d / heads numbers.",
        'd // config["heads"] * config["kv_heads"] → d // config["kv_heads"]': "Your keys and values are d / kv_heads "
        "wide. They have kv_heads heads of d / heads numbers each.",
        'd // config["heads"] * config["kv_heads"] → config["kv_heads"]': "Your keys and values have one number per "
        "head. A head is d / heads wide.",
        "kv + d * kv → kv + d * d": "One of your matrices for keys and values is as wide as the queries'. Both have "
        "kv_heads heads.",
        "kv + d * d\n → kv + d * kv\n": "One matrix too many is as narrow as keys and values. The output matrix reads "
        "all heads: it is d × d.",
        "kv + d * d\n → kv\n": "One matrix of d × d is missing in attention: it has queries, keys, values and output.",
        "norm + head → d + head": "Your last norm has no shift. With `biases` every norm has a scale and a shift.",
        "+ 2 * norm → + 3 * norm ;; + norm + head → + head": "You count the last norm in every layer. It comes once, "
        "after all layers.",
        "d_ff + d\n → d_ff\n": "One bias of d numbers is missing in each layer: queries, output and down have "
        "one each.",
        " + (matrices - 1) * d_ff + d\n → \n": "The biases of the feed-forward layer are missing: each of its "
        "matrices has one.",
        "else embedding → else embedding + positions": "You count the positions twice if the head is not tied. Only "
        "the embedding's size comes again.",
        '3 if config["gated"] else 2 → 2 if config["gated"] else 3': "You inverted `gated`. With a gate there are "
        "three matrices, without one two.",
        '3 if config["gated"] else 2 → 3': "You count three matrices in every feed-forward layer. Without a gate "
        "there are two.",
        "+ embedding + positions → + positions": "The embedding is missing: a vector of d numbers for each word of "
        "the vocabulary.",
        'config["positions"] * d → config["positions"]': "You count the positions and not their numbers. Each is a "
        "vector of d.",
        'if config["biases"]: → if not config["biases"]:': "You inverted `biases`.",
    },
)


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
