"""The exercise on the memory that training GPT-3 takes."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.chapters.memory.exercises.devices import MIXED, Sizes
from lmcourse.chapters.memory.gpt3 import gpt_3, gpt_3_parameters
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.units import GIB


def _gpt3(B: int, S: int, T: int = 1) -> Sizes:
    states = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=T))
    optimizer = states["master weights"] + states["optimizer moments"]
    sizes: Sizes = {"weights": states["weights"], "gradients": states["gradients"], "optimizer": optimizer}
    sizes["activations"] = korthikanti(gpt_3(), B, S, tensor=T)
    return {part: size / GIB for part, size in sizes.items()}


def _gpt3_cases(random: Random) -> list[Case]:
    return [
        case("other devices", 3, 700, T=3),
        case("other devices", 2, 1000, T=96),
        case("other lengths", 1, 1),
        case("other batches", random.randint(2, 99), 2048),
        case("other lengths", 1, random.randint(100, 2000)),
        case("other devices", random.randint(1, 9), random.randint(100, 2000), T=random.choice([2, 4, 16])),
        case("other devices", 1, 2048, T=random.choice([3, 6, 12])),
    ]


gpt3_case = Exercise(
    "gpt3_case",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_gpt3,
    cases=[
        case("one text of 2048 tokens", 1, 2048),
        case("a batch of 8", 8, 2048),
        case("870 tokens", 1, 870),
        case("one text, on 8 devices", 1, 2048, T=8),
    ],
    hidden_cases=_gpt3_cases,
    hints=[
        "Count N first, with the embeddings. You know the bytes per parameter, and your function from exercise 9 gives "
        "what one of T devices keeps.",
        "A GiB is 2**30 bytes. Check one number in your head: 2 bytes for each of 175 billion are 350 GB.",
        "The states are those of state_bytes(N, 'mixed'), over T. The activations are in the result of "
        "tensor_parallel_bytes(T, N, L, B, S, D, A).",
    ],
    uses=["state_bytes", "tensor_parallel_bytes"],
)
gpt3_case.equivalent_mutant(
    "sizes['activations'] = tensor_parallel_bytes(T, N, L, B, S, D, A)['activations'] → "
    "sizes['activations'] = tensor_parallel_bytes(T, N, B, L, S, D, A)['activations']",
    "Layers and texts multiply the activations alike.",
)


@gpt3_case.variant
def all_in_one(B: int, S: int, T: int = 1) -> dict[str, float]:
    L, D, A, V = 96, 12_288, 96, 50_257
    N = 12 * L * D**2 + V * D + 2048 * D
    bytes_each = dict(zip(("weights", "gradients", "optimizer"), (2, 4, 12), strict=True))
    sizes = {part: each * N / T for part, each in bytes_each.items()}
    whole, inside, scores = 10 * D, 24 * D, 5 * A * S
    sizes["activations"] = L * B * S * (whole + (inside + scores) / T)
    return {part: size / 2**30 for part, size in sizes.items()}


gpt3_case.slips(
    all_in_one,
    {
        "2, 4, 12 → 1, 2, 6": "Your states are half as large as they should be. A parameter takes 2, 4 and 12 bytes, "
        "not 1, 2 and 6.",
        "2**30 → 2**40": "You return TiB, 2⁴⁰ bytes. A GiB is 2³⁰.",
        "2**30 → 10**9": "You return GB, 10⁹ bytes. A GiB is 2³⁰.",
        " + V * D + 2048 * D → ": "You leave out the embeddings of tokens and positions. They are 0.37 % of the "
        "parameters.",
        "V * D + 2048 * D → T * (V * D + 2048 * D)": "You keep the whole embeddings on each device. They are divided "
        "as well.",
        "N / T → N": "Your states do not depend on T: each device holds 1/T of them.",
        "whole + (inside + scores) / T → (whole + inside + scores) / T": "You divide all activations by T. Norms and "
        "dropout work on whole vectors on every device.",
        "2048 * D → S * D": "Your learned positions depend on S. GPT-3 has 2048 of them, even for a shorter text.",
        "L * B → B": "That is one layer's worth of activations. GPT-3 has 96.",
        "12 * L * D**2 + V * D + 2048 * D → 175e9": "You round N to 175 billion. Count it: 12·L·D², and embeddings of "
        "V tokens and 2048 positions.",
        "2, 4, 12 → 2, 2, 12": "Your gradients take 2 bytes a parameter. Here they are summed in fp32: 4 bytes.",
        " + 2048 * D → ": "The learned positions are missing: 2048 vectors of D numbers.",
        "2, 4, 12 → 2, 4, 8": "Your optimizer takes 8 bytes a parameter. The master weights belong to it: 4 more.",
        " / 2**30 → ": "You return bytes. Divide by 2³⁰ for GiB.",
        "V * D → 2 * V * D": "You count the head as a second matrix. N has V·D once: GPT-3's head is its embedding.",
        "V * D + 2048 * D → 2 * V * D": "You count the vocabulary twice, for embedding and head, and no positions. N "
        "has V vectors for tokens and 2048 for positions.",
        "L * B → L": "Your activations are those of one text. There are B texts.",
        "(whole + (inside + scores) / T) → (whole + (inside + scores) / T) / T": "You divide the activations by T "
        "twice. What tensor_parallel_bytes returns is for one device already.",
        "2, 4, 12 → 6, 4, 8": "You count the master copy among the weights, and the task has it in `optimizer`.",
        "2, 4, 12 → 6, 4, 8 ;; 2048 * D → 2048 * D + (13 * L + 2) * D": "You count the master copy among the weights, "
        "and the task has it in `optimizer`. You also count biases and norms in N.",
        "2, 4, 12 → 6, 4, 8 ;; 2**30 → 10**9": "You count GB of 10⁹ bytes instead of GiB, and the master copy among "
        "the weights instead of in `optimizer`.",
        "2, 4, 12 → 6, 4, 8 ;; 2**30 → 10**9 ;; 2048 * D → 2048 * D + (13 * L + 2) * D": "You count GB of 10⁹ bytes "
        "instead of GiB, and the master copy among the weights instead of in `optimizer`. You also count biases and "
        "norms in N.",
        "2, 4, 12 → 2, 2, 8": "You give gradients 2 bytes and the optimizer 8: gradients are summed in fp32, and the "
        "optimizer has a master copy.",
        "2, 4, 12 → 2, 2, 8 ;; 2048 * D → 2048 * D + (13 * L + 2) * D": "You give gradients 2 bytes and the optimizer "
        "8: gradients are summed in fp32, and the optimizer has a master copy. You also count biases and norms in N.",
        "12 * L * D**2 + V * D + 2048 * D → 174.6e9": "You count N as 174.6 billion, rounded. Compute 12·L·D² and "
        "both embeddings exactly.",
        "12 * L * D**2 + V * D + 2048 * D → 175e9 ;; 2**30 → 10**9": "You take N as 175 billion and count GB of 10⁹ "
        "bytes. Count N, and divide by 2³⁰.",
        "2, 4, 12 → 4, 4, 8": "Your states are those of fp32: 4, 4 and 8 bytes a parameter. In mixed precision they "
        "are 2, 4 and 12.",
        "2, 4, 12 → 2, 2, 12 ;; 2**30 → 10**9": "You count GB of 10⁹ bytes, and gradients of 2 bytes. Use GiB, and "
        "gradients in fp32.",
        "(inside + scores) / T → inside + scores": "Your activations do not depend on T. What is inside attention and "
        "feed-forward layer is divided by T.",
        "(inside + scores) / T → inside / T + scores": "You keep the scores of all heads on every device. Each device "
        "has 1/T of the heads, so it has 1/T of the scores.",
        "(inside + scores) / T → inside / T": "You leave the scores out of the activations: 5 bytes for each head and "
        "pair of tokens.",
        "10 * D, 24 * D, 5 * A → 18 * D, 48 * D, 9 * A": "You count activations of 4 bytes a number. In mixed "
        "precision they have 2, and masks 1.",
        "2048 * D → 2048 * D + (13 * L + 2) * D": "You count biases and norms in N. Here N is 12·L·D² and both "
        "embeddings.",
    },
)


@gpt3_case.variant
def exactly(B: int, S: int, T: int = 1) -> dict[str, Fraction]:
    N = sum(4 * 12288 * 12288 + 2 * 12288 * 4 * 12288 for _ in range(96)) + (50257 + 2048) * 12288
    share = Fraction(1, T * 2**30)
    sizes = {part: each * N * share for part, each in (("weights", 2), ("gradients", 4), ("optimizer", 4 + 4 + 4))}
    numbers = 10 * T * 12288 + 24 * 12288 + 5 * 96 * S
    return {**sizes, "activations": 96 * B * S * numbers * share}


@gpt3_case.variant
def by_scaling(B: int, S: int, T: int = 1) -> dict[str, np.float64]:
    """Compute the weights, then the other states by their ratios to them, and the activations per token."""
    weights = np.float64(2 * (12 * 96 * 12_288**2 + (50_257 + 2048) * 12_288)) / T / 2**30
    token = np.float64(96) / 2**30 * (122_880 + 294_912 / T + 480 / T * S)
    return {"weights": weights, "gradients": 2 * weights, "optimizer": 6 * weights, "activations": B * S * token}
