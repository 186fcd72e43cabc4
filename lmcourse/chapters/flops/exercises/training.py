"""The exercise on the model FLOPs of a training step."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
from torch import Tensor

from lmcourse.accounting.counter import count_flops
from lmcourse.chapters.flops.counted import empty
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _block(batch: int, length: int, d_model: int, expansion: int) -> Tensor:
    """Compute the products of one layer; the number of heads does not change their FLOPs."""

    def weights(inputs: int, outputs: int) -> Tensor:
        return empty(inputs, outputs, trained=True)

    x = empty(batch, length, d_model, trained=True)
    q, k, v = (x @ weights(d_model, d_model) for _ in range(3))
    mixed = (q @ k.mT) @ v @ weights(d_model, d_model)
    return mixed @ weights(d_model, expansion * d_model) @ weights(expansion * d_model, d_model)


def _model(batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int) -> int:
    """Let autograd train one layer and the head while torch counts. All layers take the same FLOPs."""

    def head() -> Tensor:
        return empty(batch, length, d_model, trained=True) @ empty(d_model, vocab_size, trained=True)

    layer = count_flops(lambda: _block(batch, length, d_model, expansion), backward=True)
    return layers * layer.total + count_flops(head, backward=True).total


def _cases(random: Random) -> list[Case]:
    def sizes(expansion: int) -> list[int]:
        head = [random.randint(2, 64), random.randint(20, 3000), random.randint(2, 80)]
        return [*head, 8 * random.randint(3, 900), expansion, random.randint(300, 99_999)]

    return [
        case("other widths of the feed-forward layer", 2, 5, 3, 8, 1, 11),
        case("texts of one token", 3, 1, 2, 8, 4, 11),
        case("other models", 1, 64, 1, 8, 4, 2),
        *(case("other models", *sizes(4)) for _ in range(3)),
        *(case("other widths of the feed-forward layer", *sizes(expansion)) for expansion in (2, 3, 8)),
        case("texts of one token", random.randint(2, 9), 1, *sizes(4)[2:]),
    ]


model_flops = Exercise(
    "model_flops",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_model,
    tolerance=Tolerance(1e-13),  # floats are fine, and these are larger than 2^53
    cases=[
        case("a model for the back of an envelope", 2, 10, 3, 20, 4, 50),
        case("GPT-2 small, a text of 1024 tokens", 1, 1024, 12, 768, 4, 50_257),
        case("a wide feed-forward layer", 2, 10, 3, 20, 8, 50),
        case("GPT-3, a batch of 3.2 million tokens", 1563, 2048, 96, 12_288, 4, 50_257),
        case("odd sizes", 1563, 2047, 97, 12_287, 3, 50_257),
    ],
    hidden_cases=_cases,
    hints=[
        "Your `forward_flops` has the products. Which of them are in every layer, and which occurs only once?",
        "Every product has two gradients, each as expensive as the product itself. So what does a step cost?",
        "Forward, a layer takes 8·B·S·D² for its four projections, 4·B·S²·D for scores and values, and 4·E·B·S·D²; "
        "the head takes 2·B·S·D·V, once.",
    ],
    forbid=NO_COUNTER,
)


@model_flops.variant
def three_forward_passes(batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int) -> int:
    tokens = batch * length
    projections = 2 * tokens * 4 * d_model**2
    feed_forward = 2 * tokens * 2 * expansion * d_model**2
    pairs = 4 * tokens * length * d_model
    head = 2 * tokens * d_model * vocab_size
    forward = layers * (projections + feed_forward + pairs) + head
    return 3 * forward


model_flops.slips(
    three_forward_passes,
    {
        "3 * forward → forward": "That is the forward pass alone. Training goes back, too, and that takes twice as "
        "much.",
        "3 * forward → 2 * forward": "You count two forward passes. A step takes three: one forward, and the backward "
        "pass twice as much, because every product has two gradients.",
        " + head → ": "The head is missing: 2·B·S·D·V forward. In a small model it is a quarter of the work.",
        "head = 2 → head = 4": "Your head takes 4·B·S·D·V forward. It is one product, so 2: the embedding is looked "
        "up.",
        "3 * forward → 3 * forward - 2 * head": "Your head takes 2·B·S·D·V. That is its forward pass: it has two "
        "gradients, too.",
        "expansion * d_model**2 → expansion * d_model": "You take `expansion` for the width of the feed-forward "
        "layer. The width is expansion · d_model.",
        "pairs) + head → pairs + head)": "Your head is in every layer. There is one, at the end.",
        " + pairs → ": "You count 6 · tokens · weights. That leaves out scores and values, which have no weights.",
        "4 * tokens → 2 * tokens": "You count half of the pairs, as for a causal mask. Here all pairs count.",
        "4 * tokens * length → 2 * tokens * (length + 1)": "You count half of the pairs, as for a causal mask. Here "
        "all pairs count.",
        "3 * forward → 4 * forward - head": "You count the forward pass of every layer twice. That is the "
        "recomputation of checkpointing: it counts as hardware FLOPs, not as model FLOPs.",
        "batch * length → length": "You count one text. A batch has `batch` of them.",
        "4 * tokens → 4 * batch * tokens": "Your scores and values grow with batch². Tokens of different texts do not "
        "meet.",
        "2 * expansion → 3 * expansion": "You count three matrices in the feed-forward layer. It has two here: no "
        "gate.",
        "batch * length → batch": "You count texts for tokens: one factor S is missing everywhere.",
        "2 * expansion → 2 * 4": "Your feed-forward layer is always 4·D wide. It is `expansion` · D.",
        "4 * tokens → 8 * tokens": "You count scores and values twice. The two together take 4·B·S²·D forward in each "
        "layer.",
        "4 * tokens * length → 4 * tokens": "Your scores and values grow with the length. They grow with its square: "
        "every token meets every token.",
        "2 * tokens * 4 → 2 * tokens * 3": "You count three projections in a layer. Attention has four: queries, "
        "keys, values and output.",
        "2 * tokens * 4 → 2 * tokens": "You count one projection in a layer. Attention has four: queries, keys, "
        "values and output.",
        "head = 2 * tokens → head = 2 * batch": "Your head works on one token per text. Training needs the logits of "
        "every token.",
        "2 * expansion → expansion": "You count one matrix in the feed-forward layer. It has two, up and down.",
        "layers * (projections + feed_forward + pairs) → layers * (projections + feed_forward) + pairs": "You count "
        "scores and values of one layer. Every layer has them.",
        "layers * (projections → (projections": "You count one layer. There are `layers` of them.",
        "3 * forward → 3 * forward - 2 * layers * pairs": "You count scores and values in the forward pass only. They "
        "have two gradients each, too.",
        "3 * forward → 3 * forward // 2": "You count a multiplication and its addition as one FLOP.",
        "3 * forward → 6 * forward": "You count six forward passes. The 6 of 6·N·T contains the 2 FLOPs of a weight: "
        "a step takes three forward passes.",
        "3 * forward → 4 * forward": "You count the forward pass twice. Forward and backward are three times the "
        "forward pass.",
        "4 * tokens * length → 4 * length**2": "Your scores and values are those of one text. Each of the `batch` "
        "texts has its own.",
    },
)


@model_flops.variant
def as_megatron_has_it(batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int) -> Fraction:
    """Compute the FLOPs of the terms with D², and multiply by 1 plus the ratios of the other terms to them."""
    B, S, L, D, V = batch, length, layers, d_model, vocab_size
    square = 12 * (2 + expansion) * B * S * L * D**2
    return square * (1 + Fraction(S, (2 + expansion) * D) + Fraction(V, 2 * (2 + expansion) * L * D))


@model_flops.variant
def six_per_weight_and_attention(
    batch: int, length: int, layers: int, d_model: int, expansion: int, vocab_size: int
) -> np.int64:
    weights = np.int64(layers) * (4 + 2 * expansion) * d_model**2 + d_model * vocab_size
    per_token = 6 * weights + 12 * np.int64(layers) * d_model * length
    return np.int64(batch * length * per_token)
