"""Exercises on the conventions of MFU: the shares of one run under four of them, and the convention of a paper."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from lmcourse.chapters.flops.runs import PUBLISHED, RUNS
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise, value_exercise

Shares = dict[str, float]


def _shares(
    layers: int,
    d_model: int,
    d_attn: int,
    vocab_size: int,
    parameters: int,
    context: int,
    tokens_per_second: float,
    devices: int,
    peak: float,
    recompute: str,
    *,
    weights: float = 3,
    pairs: float = 3,
    causal: float = 0.5,
    blocks: tuple[float, float, float] = (1, 1, 0),
    scores: float = 1,
    scale: float = 1,
    above_one: bool = False,
) -> Shares:
    """Exact shares, counted in forward passes of the weights (including the head) and of scores and values.

    Args:
        weights, pairs: how many forward passes of the weights, and of scores and values, training takes.
        causal: the part of the pairs that the causal convention counts.
        blocks: forward passes of weights, of scores and values, and of the head, that "blocks" repeats.
        scores: forward passes of scores and values that "scores" repeats.
        scale: a factor for all shares.
        above_one: whether a share above 1 is returned.
    """
    once, head = 2 * Fraction(parameters), 2 * Fraction(vocab_size * d_model)
    attention = Fraction(4 * layers * d_attn * context)
    again: Fraction = {
        "nothing": Fraction(0),
        "scores": Fraction(scores) * attention,
        "blocks": Fraction(blocks[0]) * (once - head) + Fraction(blocks[1]) * attention + Fraction(blocks[2]) * head,
    }[recompute]
    matrices, products = Fraction(weights) * once, Fraction(pairs) * attention
    counts = {
        "6N": matrices,
        "all pairs": matrices + products,
        "causal": matrices + Fraction(causal) * products,
        "hardware": matrices + products + again,
    }
    rate = Fraction(tokens_per_second) / (devices * Fraction(peak)) * Fraction(scale)
    shares = {name: count * rate for name, count in counts.items()}
    if max(shares.values()) > 1 and not above_one:
        raise ValueError("the rate is above the peak")
    return {name: float(share) for name, share in shares.items()}


TOY = {
    "layers": 2,
    "d_model": 4,
    "d_attn": 6,
    "vocab_size": 10,
    "parameters": 400,
    "context": 8,
    "tokens_per_second": 0.3,
    "devices": 2,
    "peak": 10_000.0,
}
FULL = {
    **TOY,
    "d_attn": 4,
    "parameters": 128,
    "tokens_per_second": 1.0,
    "devices": 1,
}
"""A case with a share of 1: 6N is 768, scores and values take 768, and a forward pass without the head 176 + 256."""


def _cases(random: Random) -> list[Case]:
    def run(recompute: str) -> Case:
        layers, d_model, vocab_size = random.randint(2, 100), 64 * random.randint(4, 200), random.randint(999, 99_999)
        parameters = 12 * layers * d_model**2 + vocab_size * d_model
        devices, peak = random.randint(2, 5000), random.uniform(1e14, 1e15)
        sizes = {"layers": layers, "d_model": d_model, "d_attn": 64 * random.randint(4, 200), "vocab_size": vocab_size}
        context = random.randint(100, 4000)
        attention = 16 * layers * sizes["d_attn"] * context
        rate = random.uniform(0.2, 0.9) * devices * peak / (8 * parameters + attention)
        rest = {"context": context, "tokens_per_second": rate, "devices": devices, "peak": peak}
        return case(f"other runs, {recompute} again", **sizes, parameters=parameters, **rest, recompute=recompute)

    return [
        edge(case("all of the peak", **{**FULL, "peak": 1536.0}, recompute="nothing")),
        edge(case("all of the peak", **{**FULL, "peak": 1968.0}, recompute="blocks")),
        case("rates that cannot be", **{**FULL, "peak": 1535.0}, recompute="nothing"),
        case("rates that cannot be", **{**FULL, "peak": 1791.0}, recompute="scores"),
        case("rates that cannot be", **{**FULL, "peak": 1967.0}, recompute="blocks"),
        *(run(recompute) for recompute in ("nothing", "scores", "blocks") for _ in range(2)),
    ]


four_shares = Exercise(
    "four_shares",
    points=4,
    minutes=15,
    difficulty=3,
    reference=_shares,
    cases=[
        case("a toy, nothing again", **TOY, recompute="nothing"),
        case("a toy, scores again", **TOY, recompute="scores"),
        case("a toy, blocks again", **TOY, recompute="blocks"),
        case("PaLM 540B", **RUNS["PaLM 540B"]),
        case("OPT-175B", **RUNS["OPT-175B"]),
        case("too fast by every convention", **{**TOY, "tokens_per_second": 30.0}, recompute="nothing"),
        case("too fast with blocks again", **{**FULL, "peak": 1900.0}, recompute="blocks"),
    ],
    hidden_cases=_cases,
    hints=[
        "Count FLOPs per token. How many FLOPs do scores and values of one layer take in the forward pass, if the "
        "query sees all keys?",
        "Training costs as much as three forward passes. Recomputation adds a fourth pass over a part of the model.",
        "“blocks” repeats 2 FLOPs per weight, without the head, and scores and values; “scores” repeats only scores "
        "and values.",
        "Each count times tokens_per_second / (devices · peak) is a share. Which of the four is the largest?",
    ],
)


@four_shares.misconception("You count the scores and values of a forward pass. Training takes three times as much.")
def pairs_forward_only(**run: Any) -> Shares:
    return _shares(**run, pairs=1)


@four_shares.misconception("You count one product for each pair: the score. Weight times value is a second one.")
def scores_without_values(**run: Any) -> Shares:
    return _shares(**run, pairs=1.5, scores=0.5, blocks=(1, 0.5, 0))


@four_shares.misconception(
    "With “scores”, both products are repeated: scores and weighted values. You repeat only one."
)
def half_of_the_scores_again(**run: Any) -> Shares:
    return _shares(**run, scores=0.5)


@four_shares.misconception(
    "You repeat scores and values three times, forward and backward. Only the forward pass is repeated."
)
def scores_three_times_again(**run: Any) -> Shares:
    return _shares(**run, scores=3)


@four_shares.misconception(
    "You repeat all blocks three times, forward and backward. Only their forward pass is repeated."
)
def blocks_three_times_again(**run: Any) -> Shares:
    return _shares(**run, blocks=(3, 3, 0))


@four_shares.misconception(
    "You repeat the head with the blocks. The head is not a block: its product is computed once."
)
def head_again(**run: Any) -> Shares:
    return _shares(**run, blocks=(1, 1, 1))


@four_shares.misconception("Your repeated blocks have weights only. They compute scores and values again, too.")
def blocks_without_pairs(**run: Any) -> Shares:
    return _shares(**run, blocks=(1, 0, 0))


@four_shares.misconception("You replace 6N by 8N. But the head is not repeated, and scores and values are.")
def eight_n(**run: Any) -> Shares:
    return _shares(**run, blocks=(1, 0, 1))


@four_shares.misconception("Your hardware FLOPs equal the model FLOPs: add what is computed again.")
def nothing_again(**run: Any) -> Shares:
    return _shares(**run, scores=0, blocks=(0, 0, 0))


@four_shares.misconception("Your causal share halves everything. The mask halves scores and values; 6N stays.")
def all_of_it_halved(**run: Any) -> Shares:
    shares = _shares(**run)
    return shares | {"causal": shares["all pairs"] / 2}


@four_shares.misconception("Your “all pairs” and your “causal” are swapped: a mask leaves fewer pairs.")
def swapped(**run: Any) -> Shares:
    shares = _shares(**run)
    return shares | {"causal": shares["all pairs"], "all pairs": shares["causal"]}


@four_shares.misconception("Your causal share counts all pairs.")
def causal_counts_all(**run: Any) -> Shares:
    return _shares(**run, causal=1)


@four_shares.misconception(
    "Your hardware share starts from the causal count. It should count all pairs, plus what is repeated."
)
def hardware_from_causal(**run: Any) -> Shares:
    shares = _shares(**run)
    return shares | {"hardware": shares["hardware"] - shares["all pairs"] + shares["causal"]}


@four_shares.misconception("The width of attention is `d_attn`. Yours is `d_model`, which differs in PaLM.")
def width_of_the_model(**run: Any) -> Shares:
    return _shares(**{**run, "d_attn": run["d_model"]})


@four_shares.misconception("Your head has `vocab_size` · `d_attn` weights. It has `vocab_size` · `d_model`.")
def head_of_attention(**run: Any) -> Shares:
    more = run["vocab_size"] * (run["d_attn"] - run["d_model"])
    again = more if run["recompute"] == "blocks" else 0
    shares = _shares(**run)
    return shares | {
        "hardware": shares["hardware"] - 2 * again * run["tokens_per_second"] / run["devices"] / run["peak"]
    }


@four_shares.misconception("You count scores and values of one layer. Every layer has them.")
def pairs_of_one_layer(**run: Any) -> Shares:
    layers = run["layers"]
    return _shares(**run, pairs=3 / layers, scores=1 / layers, blocks=(1, 1 / layers, 0))


@four_shares.misconception(
    "You count the pairs of a whole text, context². A token is one query: it meets `context` keys."
)
def pairs_of_a_text(**run: Any) -> Shares:
    context = run["context"]
    return _shares(**run, pairs=3 * context, scores=context, blocks=(1, context, 0))


@four_shares.misconception("That is the forward pass alone. Training takes three times as much.")
def forward_alone(**run: Any) -> Shares:
    return _shares(**run, weights=1, pairs=1)


@four_shares.misconception(
    "You do not divide by `devices`. `tokens_per_second` is for all devices together, and `peak` for one."
)
def one_device(**run: Any) -> Shares:
    return _shares(**{**run, "devices": 1})


@four_shares.misconception("You take the head out of 6N. Its weights are part of N, and they compute like all others.")
def head_taken_out(**run: Any) -> Shares:
    head = 6 * run["vocab_size"] * run["d_model"] * run["tokens_per_second"] / run["devices"] / run["peak"]
    return {name: share - head for name, share in _shares(**run).items()}


@four_shares.misconception("You return a percentage. A share is between 0 and 1.")
def percent(**run: Any) -> Shares:
    return {name: 100 * share for name, share in _shares(**run).items()}


@four_shares.misconception("You return a share above 1, which is impossible. Raise ValueError.")
def share_above_one(**run: Any) -> Shares:
    return _shares(**run, above_one=True)


@four_shares.misconception("You check the model FLOPs only. The hardware share cannot be above 1 either.")
def hardware_above_one(**run: Any) -> Shares:
    shares = _shares(**run, above_one=True)
    if shares["all pairs"] > 1:
        raise ValueError("the share is above 1")
    return shares


@four_shares.misconception(
    "You return FLOPs per token. Multiply by the tokens per second, and divide by the peak of all devices."
)
def flops_per_token(**run: Any) -> Shares:
    _shares(**run)
    return _shares(**{**run, "tokens_per_second": 1, "devices": 1, "peak": 1}, above_one=True)


@four_shares.variant
def by_the_formulas(
    layers: int,
    d_model: int,
    d_attn: int,
    vocab_size: int,
    parameters: int,
    context: int,
    tokens_per_second: float,
    devices: int,
    peak: float,
    recompute: str,
) -> dict[str, float]:
    possible = devices * peak / tokens_per_second
    pairs = 12 * layers * d_attn * context
    flops = {"6N": 6 * parameters, "all pairs": 6 * parameters + pairs, "causal": 6 * parameters + pairs / 2}
    flops["hardware"] = flops["all pairs"]
    if recompute == "scores":
        flops["hardware"] += pairs / 3
    elif recompute == "blocks":
        flops["hardware"] += 2 * (parameters - d_model * vocab_size) + pairs / 3
    result = {name: count / possible for name, count in flops.items()}
    for share in result.values():
        if share > 1:
            raise ValueError(share)
    return result


@four_shares.variant
def from_seconds_per_token(**run: Any) -> dict[str, float]:
    matrices = 2 * run["parameters"] / run["peak"] / run["devices"]
    pairs = 4 * run["layers"] * run["d_attn"] * run["context"] / run["peak"] / run["devices"]
    head = 2 * run["vocab_size"] * run["d_model"] / run["peak"] / run["devices"]
    extra = {"nothing": 0, "scores": pairs, "blocks": matrices - head + pairs}[run["recompute"]]
    seconds = [3 * matrices, 3 * (matrices + pairs), 3 * matrices + 1.5 * pairs, 3 * (matrices + pairs) + extra]
    one = 1 / run["tokens_per_second"]
    if not max(seconds) <= one:
        raise ValueError("the rate is above the machine's peak")
    return dict(zip(("6N", "all pairs", "causal", "hardware"), (time / one for time in seconds), strict=True))


@four_shares.variant
def a_matrix_of_counts(
    layers: int,
    d_model: int,
    d_attn: int,
    vocab_size: int,
    parameters: int,
    context: int,
    tokens_per_second: float,
    devices: int,
    peak: float,
    recompute: str,
) -> dict[str, np.float64]:
    """Collect the numbers of forward passes of blocks, head and pairs, in a row for each convention."""
    head = vocab_size * d_model
    once = np.array([2.0 * (parameters - head), 2.0 * head, 4.0 * layers * d_attn * context])
    fourth = [3 + (recompute == "blocks"), 3, 3 + (recompute != "nothing")]
    passes = np.array([[3, 3, 0], [3, 3, 3], [3, 3, 1.5], fourth])
    found = passes @ once * tokens_per_second / devices / peak
    if (found > 1).any():
        raise ValueError("the rate is above the peak")
    return {"6N": found[0], "all pairs": found[1], "causal": found[2], "hardware": found[3]}


# which_convention --------------------------------------------------------------------------------------------------

LATER = "GPT-2 124M, later"


def _nearest() -> dict[str, str]:
    """Name the convention whose share is nearest to the published one."""
    published = {**PUBLISHED, LATER: 0.458}
    found = {}
    for name, share in published.items():
        shares = _shares(**RUNS[name.removesuffix(", later")])
        distances = [(abs(other - share), place) for place, other in enumerate(shares.values())]
        found[name] = list(shares)[min(distances)[1]]
    return found


RIGHT = {
    "GPT-3": "6N",
    "PaLM 540B": "all pairs",
    "GPT-2 124M": "all pairs",
    LATER: "causal",
    "175B, scores again": "all pairs",
    "OPT-175B": "hardware",
}

which_convention = value_exercise(
    "which_convention",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_nearest,
    hints=[
        "Call your function for each run, and find which of its shares is the published one.",
        "Two conventions give similar shares if scores and values are a small part. Compare all published digits.",
    ],
)


def _other_conventions() -> None:
    """Register answers with one wrong convention, each with the share that this convention gives."""
    for name, right in RIGHT.items():
        published = 0.458 if name == LATER else PUBLISHED[name]
        shares = _shares(**RUNS[name.removesuffix(", later")])
        for convention, share in shares.items():
            sentence = f"By {convention!r}, {name} has {share:.1%}, and {published:.1%} is published."
            if convention == "hardware" and share == shares[right]:
                sentence = (
                    f"In RUNS {name} computes nothing again, so two conventions fit. Give the first in the table."
                )
            if convention != right:
                which_convention.wrong_value(RIGHT | {name: convention}, sentence)


_other_conventions()
which_convention.wrong_value(
    dict.fromkeys(RIGHT, "all pairs"),
    "You name one convention for all. Three of the six numbers follow another: look at your function's shares.",
)
which_convention.wrong_value(
    RIGHT | {"GPT-2 124M": "causal", LATER: "all pairs"},
    "The two of GPT-2 are swapped. The share fell when the program learned to count fewer pairs.",
)
which_convention.wrong_value(
    RIGHT | {"PaLM 540B": "hardware", "GPT-2 124M": "hardware"},
    "Two conventions fit PaLM 540B and GPT-2 124M: in RUNS they compute nothing again. Give the first in the table.",
)
which_convention.wrong_value(dict.fromkeys(RIGHT, None), "Give a convention for each of the six names.")
which_convention.right_value(
    "{'OPT-175B': 'hardware', 'PaLM 540B': 'all pairs', '175B, scores again': 'all pairs', 'GPT-3': '6N', "
    "'GPT-2 124M': 'all pairs', 'GPT-2 124M, later': 'causal'}",
    "dict(zip(['GPT-3', 'PaLM 540B', 'GPT-2 124M', 'GPT-2 124M, later', '175B, scores again', 'OPT-175B'], "
    "['6N', 'all pairs', 'all pairs', 'causal', 'all pairs', 'hardware']))",
    "dict.fromkeys(['PaLM 540B', 'GPT-2 124M', '175B, scores again'], 'all pairs') | "
    "{'GPT-3': '6N', 'GPT-2 124M, later': 'causal', 'OPT-175B': 'hardware'}",
)
