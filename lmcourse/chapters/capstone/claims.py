"""Claims of the course's sources, for the hunt: slips and decoys, drawn by a number of one's own."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass

LINE_CHARS = 96
"""Characters of a line: as many as a notebook shows in a window of 1,280 pixels."""


@dataclass(frozen=True)
class Claim:
    """A claim as it was found.

    Attributes:
        text: what is claimed.
        asked: the number or word to give if it is wrong.
    """

    text: str
    asked: str


ROWS: tuple[tuple[Claim, ...], ...] = (
    (
        Claim(
            "ALiBi with 8 heads: the slopes go up from head to head, each by the same factor.",
            "the slope of the last head divided by that of the first",
        ),
        Claim(
            "h heads project n tokens of d features to d_a each (h = 8, n = 10, d = 64, d_a = 8). The output of one "
            "such projection, of all heads together, has h·d·d_a numbers.",
            "how many numbers it has",
        ),
        Claim(
            "Cross-entropy loss is in bits: PyTorch's `F.cross_entropy` of a certain token, p = 1/e, gives 1.443.",
            "what it gives",
        ),
    ),
    (
        Claim(
            "GPT-3 (174.6·10⁹ parameters, 300·10⁹ tokens) took 3.14·10²³ FLOPs to train.",
            "the FLOPs, by 6ND",
        ),
        Claim(
            "70·10⁹ parameters on 15·10¹² tokens take 1,024 H100s, at half of 989.5 TFLOP/s each, 143.9 days.",
            "the days, by 6ND",
        ),
        Claim(
            "d_k 是 Q, K 矩阵的列数: d_k is the number of columns of the matrices Q and K, whose rows are tokens. So "
            "for Q and K of shape (10, 64), d_k = 64.",
            "d_k for these shapes",
        ),
    ),
    (
        Claim(
            "Of 12 heads, three at a time share a key head. Counted from 1: the first key head "
            "serves the first 3 heads, the "
            "second the heads 3 to 6, and so on.",
            "the key head that head 3 reads",
        ),
        Claim(
            "Positions and the mask both carry weights with a dimension of size S. The causal mask of S = 1,024 thus "
            "has 1,024 learned numbers or more.",
            "how many it has",
        ),
        Claim(
            "RoPE's θ are no hyperparameters: there is nothing to choose. (Yet Llama 2 has a base of "
            "10,000 and Llama 3 "
            "one of 500,000, with heads of 128 features.)",
            "how many times longer the slowest wave of Llama 3 is than that of Llama 2",
        ),
    ),
    (
        Claim(
            "z has the axes batch, token, vocabulary: (2, 5, 7). The softmax that makes "
            "probabilities of logits is over "
            "the batch axis.",
            "the sum of all numbers that the right softmax returns",
        ),
        Claim(
            "Attention is softmax(q·k/√d)·v, and that is the whole formula of a decoder. With four equal scores, the "
            "first token looks at itself with a weight of 1/4.",
            "the weight with which the first of four tokens looks at itself in a decoder",
        ),
        Claim(
            "Multi-query attention does not change the cost of decoding (b = 32 texts, n = 2,048 tokens, d = 4,096, "
            "h = 32 heads; matrices of d², a cache of 2bnd numbers, all counted as the lecture does: "
            "1/d + n/(dh) + 1/b).",
            "FLOPs per number moved with one key head",
        ),
    ),
    (
        Claim(
            "The FFN of a Llama layer is two products of a matrix and a vector: 7,516,192,768 FLOPs a token in Llama 3 "
            "8B (32 layers, d = 4,096, d_ff = 14,336).",
            "FLOPs per token of all its feed-forward layers",
        ),
        Claim(
            "T5's relative positions add learned vectors to the attention. In an encoder of T5-11B (128 heads, 32 "
            "buckets, one table for all layers; heads of 128) these are 524,288 numbers.",
            "learned numbers of relative positions in that encoder",
        ),
        Claim(
            "LaMDA's ratio of heads · d_head to d is one, as usual (128 heads of 128, d = 8,192).",
            "its ratio",
        ),
    ),
    (
        Claim(
            "In multi-head attention, decoding does 1/(n/d + 1/b) = 1.88 FLOPs per number moved "
            "(b = 32, n = 2,048, d = 4,096).",
            "that quotient",
        ),
        Claim(
            "Of the 405,845,000,192 parameters of Llama 3 405B (a vocabulary of 128,000; 126 layers, d = 16,384, "
            "d_ff = 53,248), 81 % are in feed-forward layers.",
            "the share, as a number below 1",
        ),
        Claim(
            "A matrix product of a (3, 16,384) tensor from randn with a (16,384, 5) one from randn has numbers whose "
            "standard deviation is about 128.",
            "that standard deviation",
        ),
    ),
    (
        Claim(
            "A T5 with d = 1,024 has a feed-forward layer of 65,000: 64 times as wide.",
            "the width that is 64 times 1,024",
        ),
        Claim(
            "Gemma 2's feed-forward layers are a factor of eight wider than the model: 14,336 against 3,584 in the 9B.",
            "the factor",
        ),
        Claim(
            "GQA does not hurt the perplexity, but multi-head attention does.",
            "what does: “multi-…” in one word",
        ),
    ),
    (
        Claim(
            "Llama 4, Gemma 3 and Command A all have one layer of full attention in every four.",
            "layers with a window for each full one in Gemma 3",
        ),
        Claim(
            "The backward pass of a linear layer costs 2.5 times its forward pass.",
            "the factor",
        ),
        Claim(
            "With Adam, training takes 16 bytes a parameter, in fp32 as well as in mixed precision (bf16 weights; fp32 "
            "gradients, master weights and moments).",
            "bytes a parameter of that mixed precision",
        ),
    ),
    (
        Claim(
            "A cache of bf16 keys and values for one text of 2,048 tokens takes 3.75 GiB, in a model "
            "with d = 8,192 and "
            "60 layers whose heads all have keys of their own.",
            "its GiB",
        ),
        Claim(
            "ALiBi with 16 heads: the first slope is 2^(−1/2) = 0.7071.",
            "that slope",
        ),
        Claim(
            "GPT-2 XL (48 blocks, d = 1,600, a context of 1,024): what a token does for attention scores, "
            "2·layers·context·d, is 5.3 % of 2N, N = 12·layers·d².",
            "the share, as a number below 1",
        ),
    ),
)
"""Nine rows of three. A number draws one claim of every row."""


def drawn(seed: int) -> list[tuple[int, int]]:
    """Row and column of the nine claims that a number draws, in the order in which they are shown."""
    source = random.Random(seed)
    return source.sample([(row, source.randrange(3)) for row in range(len(ROWS))], len(ROWS))


def show_claims(seed: int) -> str:
    """The nine claims of this number, as text to read."""
    claims = [ROWS[row][column] for row, column in drawn(seed)]
    lines = []
    for number, claim in enumerate(claims, start=1):
        lines.append(textwrap.fill(f"{number}  {claim.text}", LINE_CHARS, subsequent_indent="   "))
        lines.append(textwrap.fill(f"   If it is wrong, give {claim.asked}.", LINE_CHARS, subsequent_indent="   "))
    return "\n".join(lines)
