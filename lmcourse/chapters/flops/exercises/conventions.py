"""Exercises on the conventions of MFU: the shares of one run under four of them, and the convention of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from random import Random
from typing import Any

import numpy as np

from lmcourse.chapters.flops.runs import PUBLISHED, RUNS
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain


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
) -> dict[str, float]:
    """Exact shares, counted in forward passes of the weights (including the head) and of scores and values."""
    once, head = 2 * Fraction(parameters), 2 * vocab_size * d_model
    attention = Fraction(4 * layers * d_attn * context)
    again = {"nothing": Fraction(0), "scores": attention, "blocks": once - head + attention}[recompute]
    counts = {
        "6N": 3 * once,
        "all pairs": 3 * (once + attention),
        "causal": 3 * (once + attention / 2),
        "hardware": 3 * (once + attention) + again,
    }
    rate = Fraction(tokens_per_second) / (devices * Fraction(peak))
    if counts["hardware"] * rate > 1:
        raise ValueError("the rate is above the peak")
    return {name: float(count * rate) for name, count in counts.items()}


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
FULL = {**TOY, "d_attn": 4, "parameters": 128, "tokens_per_second": 1.0, "devices": 1}
"""A case with a share of 1: 6N is 768, scores and values take 768, and a forward pass without the head 176 + 256."""


SHARES = ("6N", "all pairs", "causal", "hardware")


def _each(name: str, run: Mapping[str, Any], shares: Sequence[str] = SHARES) -> list[Case]:
    """A case for each share, so that one mistake does not cost the points of all."""
    return [script(f"{share}: {name}", f'four_shares(**run)["{share}"]', run={**run}) for share in shares]


def _cases(random: Random) -> list[Case]:
    def run(recompute: str) -> list[Case]:
        layers, d_model, vocab_size = random.randint(2, 100), 64 * random.randint(4, 200), random.randint(999, 99_999)
        parameters = 12 * layers * d_model**2 + vocab_size * d_model
        devices, peak = random.randint(2, 5000), random.uniform(1e14, 1e15)
        sizes = {"layers": layers, "d_model": d_model, "d_attn": 64 * random.randint(4, 200), "vocab_size": vocab_size}
        context = random.randint(100, 4000)
        attention = 16 * layers * sizes["d_attn"] * context
        rate = random.uniform(0.2, 0.9) * devices * peak / (8 * parameters + attention)
        rest = {"context": context, "tokens_per_second": rate, "devices": devices, "peak": peak}
        return _each("other runs", {**sizes, "parameters": parameters, **rest, "recompute": recompute})

    return [
        *map(edge, _each("all of the peak", {**FULL, "peak": 1536.0, "recompute": "nothing"}, ["hardware"])),
        *map(edge, _each("all of the peak", {**FULL, "peak": 1968.0, "recompute": "blocks"}, ["hardware"])),
        case("rates that cannot be", **{**FULL, "peak": 1535.0}, recompute="nothing"),
        case("rates that cannot be", **{**FULL, "peak": 1791.0}, recompute="scores"),
        case("rates that cannot be", **{**FULL, "peak": 1967.0}, recompute="blocks"),
        *chain.from_iterable(run(recompute) for recompute in ("nothing", "scores", "blocks") for _ in range(2)),
    ]


four_shares = Exercise(
    "four_shares",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_shares,
    cases=[
        *_each("a toy", {**TOY, "recompute": "nothing"}, SHARES[:3]),
        *_each("a toy, scores again", {**TOY, "recompute": "scores"}, ["hardware"]),
        *_each("a toy, blocks again", {**TOY, "recompute": "blocks"}, ["hardware"]),
        *_each("PaLM 540B", RUNS["PaLM 540B"]),
        *_each("OPT-175B", RUNS["OPT-175B"], ["hardware"]),
        *map(edge, _each("exactly the peak", {**FULL, "peak": 1792.0, "recompute": "scores"}, ["hardware"])),
        *map(
            edge,
            _each("exactly the peak, nothing again", {**FULL, "peak": 1536.0, "recompute": "nothing"}, ["hardware"]),
        ),
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


@four_shares.variant
def passes_of_weights_and_pairs(
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
    weights, head = 2 * parameters, 2 * vocab_size * d_model
    pairs = 4 * layers * d_attn * context
    again = {"nothing": 0, "scores": pairs, "blocks": weights - head + pairs}[recompute]
    matrices, products = 3 * weights, 3 * pairs
    counts = {
        "6N": matrices,
        "all pairs": matrices + products,
        "causal": matrices + products / 2,
        "hardware": matrices + products + again,
    }
    possible = devices * peak / tokens_per_second
    shares = {name: count / possible for name, count in counts.items()}
    if max(shares.values()) > 1:
        raise ValueError("the rate is above the peak")
    return shares


four_shares.slips(
    passes_of_weights_and_pairs,
    {
        "3 * pairs → pairs": "You count the scores and values of a forward pass. Training takes three times as much.",
        "4 * layers → 2 * layers": "You count one product for each pair: the score. Weight times value is a second "
        "one.",
        '"scores": pairs → "scores": pairs / 2': "With “scores”, both products are repeated: scores and weighted "
        "values. You repeat only one.",
        '"scores": pairs → "scores": 3 * pairs': "You repeat scores and values three times, forward and backward. "
        "Only the forward pass is repeated.",
        "weights - head + pairs → 3 * (weights - head + pairs)": "You repeat all blocks three times, forward and "
        "backward. Only their forward pass is repeated.",
        "weights - head + pairs → weights + pairs": "You repeat the head with the blocks. The head is not a block: "
        "its product is computed once.",
        "weights - head + pairs → weights - head": "Your repeated blocks have weights only. They compute scores and "
        "values again, too.",
        "weights - head + pairs → weights": "You replace 6N by 8N. But the head is not repeated, and scores and "
        "values are.",
        " + again → ": "Your hardware FLOPs equal the model FLOPs: add what is computed again.",
        "matrices + products / 2 → (matrices + products) / 2": "Your causal share halves everything. The mask halves "
        "scores and values; 6N stays.",
        '"all pairs" → "causal" ;; "causal" → "all pairs"': "Your “all pairs” and your “causal” are swapped: a mask "
        "leaves fewer pairs.",
        "products / 2 → products": "Your causal share counts all pairs.",
        "products + again → products / 2 + again": "Your hardware share starts from the causal count. It should count "
        "all pairs, plus what is repeated.",
        "layers * d_attn → layers * d_model": "The width of attention is `d_attn`. Yours is `d_model`, which differs "
        "in PaLM.",
        "vocab_size * d_model → vocab_size * d_attn": "Your head has `vocab_size` · `d_attn` weights. It has "
        "`vocab_size` · `d_model`.",
        "4 * layers → 4": "You count scores and values of one layer. Every layer has them.",
        "d_attn * context → d_attn * context**2": "You count the pairs of a whole text, context². A token is one "
        "query: it meets `context` keys.",
        "3 * weights, 3 * pairs → weights, pairs": "That is the forward pass alone. Training takes three times as "
        "much.",
        "devices * peak → peak": "You do not divide by `devices`. `tokens_per_second` is for all devices together, "
        "and `peak` for one.",
        "4 * layers * d_attn * context → 4 * layers * d_attn * (context + 1)": "You count one key too many. A query "
        "meets `context` keys.",
        "weights, head = 2 * parameters, → weights, head = 2 * (parameters + vocab_size * d_model),": "You add the "
        "head to N. `parameters` contains it.",
        "weights - head + pairs → weights - 2 * head + pairs": "You take two matrices of the vocabulary out of the "
        "repeated blocks. Take out the head alone.",
        "layers * d_attn * context → layers * d_attn * context * tokens_per_second": "You multiply by the tokens per "
        "second twice. Count the FLOPs of one token first.",
        "weights - head + pairs → 24 * layers * d_model**2 + pairs": "You count 12·D² weights in a layer. Take them "
        "from `parameters`: layers differ.",
        "weights - head + pairs → 2 * (weights - head + pairs)": "You repeat the blocks twice. They go forward once "
        "more.",
        "3 * weights → 3 * (weights - head)": "You take the head out of 6N. Its weights are part of N, and they "
        "compute like all others.",
        "return shares → return {name: 100 * share for name, share in shares.items()}": "You return a percentage. A "
        "share is between 0 and 1.",
        "max(shares.values()) > 1 → False": "You return a share above 1, which is impossible. Raise ValueError.",
        'max(shares.values()) → shares["all pairs"]': "You check the model FLOPs only. The hardware share cannot be "
        "above 1 either.",
        "return shares → return counts": "You return FLOPs per token. Multiply by the tokens per second, and divide "
        "by the peak of all devices.",
        "products / 2 → pairs / 2": "Your causal share counts scores and values of the forward pass only. Training "
        "takes three times as much.",
        "weights - head + pairs → weights - head / 2 + pairs": "You take one FLOP per weight out for the head. Its "
        "product takes 2 for each weight and token.",
        "weights - head + pairs → (weights - head) / 2 + pairs": "You repeat one FLOP per weight of the blocks. A "
        "forward pass takes 2.",
        "weights - head + pairs → weights - head + 2 * pairs": "With “blocks” you repeat scores and values twice.",
        '"scores": pairs → "scores": 2 * pairs': "With “scores” you repeat scores and values twice.",
        '"scores": pairs → "scores": 0': "With “scores” you repeat nothing. Scores and values are computed a second "
        "time.",
        '"scores": pairs, "blocks": weights - head + pairs → "scores": weights - head + pairs, "blocks": pairs': "You "
        "swapped “scores” and “blocks”.",
        "products + again → again": "Your hardware share starts from 6N. It should count all pairs, plus what is "
        "repeated.",
        '"6N": matrices → "6N": parameters': "Your 6N counts one FLOP per parameter. It counts six.",
        "> 1: → >= 1:": "You reject a share of exactly 1. Only a share above 1 is impossible.",
        "4 * layers → 8 * layers": "You count scores and values twice. Each key costs a query 4 · d_attn, both "
        "products together.",
        "3 * pairs → 2 * pairs": "You count scores and values twice, forward and backward. The backward pass takes "
        "two products for each.",
        "3 * weights, 3 * pairs → 2 * weights, 2 * pairs": "You count as much for the backward pass as for the "
        "forward pass. It takes twice as much.",
        "products / 2 → products / 4": "Your causal share counts a quarter of scores and values. A mask halves the "
        "keys, and so the pairs, once.",
    },
)


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
def a_matrix_of_counts(**run: Any) -> dict[str, np.float64]:
    """Collect the numbers of forward passes of blocks, head and pairs, in a row for each convention."""
    head = run["vocab_size"] * run["d_model"]
    pairs = 4.0 * run["layers"] * run["d_attn"] * run["context"]
    again = [3 + (run["recompute"] == "blocks"), 3, 3 + (run["recompute"] != "nothing")]
    passes = np.array([[3, 3, 0], [3, 3, 3], [3, 3, 1.5], again])
    once = np.array([2.0 * (run["parameters"] - head), 2.0 * head, pairs])
    found = passes @ once * run["tokens_per_second"] / run["devices"] / run["peak"]
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

GROUPS = [[name] for name in ("GPT-3", LATER, "175B, scores again", "OPT-175B")] + [["PaLM 540B", "GPT-2 124M"]]
"""Names that earn points together: two are in one, so that one word for all earns nothing."""


def _asked(asked: Case, value: Plain) -> str:
    """Say whether the conventions of a case's names are right, without the right ones."""
    if not isinstance(value, dict):
        return "no dict with the six names"
    chosen = {name: value.get(name) for name in asked.name.split(" and ")}
    wrong = [f"{each} for {name}" for name, each in chosen.items() if each != RIGHT[name]]
    return " and ".join(wrong) or "the published convention"


which_convention = Exercise(
    "which_convention",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_nearest,
    value=True,
    cases=[Case(" and ".join(names)) for names in GROUPS],
    view=_asked,
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
