"""The tensors that one transformer block saves for the backward pass, by formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BlockPart = Literal["norms", "attention", "feed-forward"]


@dataclass(frozen=True)
class BlockTensor:
    """A tensor of a transformer block that autograd saves for the backward pass.

    Attributes:
        part: the part of the block.
        name: the name of the tensor.
        size: the size in bytes.
        mask: whether it is a dropout mask, which takes one byte per number in any precision.
    """

    part: BlockPart
    name: str
    size: int
    mask: bool = False


def tensors_saved_by_block(
    B: int, S: int, D: int, A: int, d_ff: int, p: int, *, gated: bool = False
) -> list[BlockTensor]:
    """The tensors of one block, in the order in which the block makes them.

    It is a block as Korthikanti et al. (2022, §4.1) count it: LayerNorm, as many key heads as query heads, dropout on
    attention's weights and on what each branch adds, no fused kernels. Sums keep nothing, and what norms keep besides
    their input, two numbers a token, is left out.

    Args:
        B, S, D: number of texts, tokens per text, width.
        A: number of heads.
        d_ff: width of the feed-forward layer.
        p: bytes per number.
        gated: whether a gate multiplies the values of the feed-forward layer.
    """
    return [*_attention(B * S * D, A * B * S * S, p), *_feed_forward(B * S * D, B * S * d_ff, p, gated)]


def _attention(stream: int, pairs: int, p: int) -> Iterator[BlockTensor]:
    yield BlockTensor("norms", "input of the first norm", p * stream)
    yield BlockTensor("attention", "input of q, k and v", p * stream)
    for name in ("queries", "keys", "values"):
        yield BlockTensor("attention", name, p * stream)
    yield BlockTensor("attention", "softmax's result", p * pairs)
    yield BlockTensor("attention", "mask of the weights", pairs, mask=True)
    yield BlockTensor("attention", "weights after dropout", p * pairs)
    yield BlockTensor("attention", "input of the output matrix", p * stream)
    yield BlockTensor("attention", "mask of the output", stream, mask=True)


def _feed_forward(stream: int, hidden: int, p: int, gated: bool) -> Iterator[BlockTensor]:
    yield BlockTensor("norms", "input of the second norm", p * stream)
    yield BlockTensor("feed-forward", "input of up", p * stream)
    yield BlockTensor("feed-forward", "result of gate, before f" if gated else "result of up, before f", p * hidden)
    if gated:
        yield BlockTensor("feed-forward", "result of f", p * hidden)
        yield BlockTensor("feed-forward", "result of up", p * hidden)
    yield BlockTensor("feed-forward", "input of down", p * hidden)
    yield BlockTensor("feed-forward", "mask of the result", stream, mask=True)
