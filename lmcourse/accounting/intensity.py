"""Arithmetic intensity: FLOPs per byte that crosses the memory's bus, in closed form.

Compared with an accelerator's ridge, peak / bandwidth, it says which of the two limits. `latency` adds up the operators
of a whole model.
"""

from __future__ import annotations

from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format


def matmul_intensity(tokens: int, inputs: int, outputs: int, precision: Format = "bf16") -> float:
    """FLOPs per byte of a product of tokens × inputs with inputs × outputs, everything read or written once.

    For a square matrix of width D and n tokens it is (2/p) · n·D/(2n + D) at p bytes per number: about 2n/p for few
    tokens, as in decoding, and at most D/p for many, as in training.
    """
    moved = tokens * inputs + inputs * outputs + tokens * outputs
    return 2 * tokens * inputs * outputs / (BYTES_PER_NUMBER[precision] * moved)


def elementwise_intensity(operations: float, precision: Format = "bf16") -> float:
    """FLOPs per byte of C operations on each number, which is read and written: C/(2p). Always limited by memory, so it
    pays to do several at once (fusion)."""
    return operations / (2 * BYTES_PER_NUMBER[precision])


def decode_attention_intensity(sharing: int, precision: Format = "bf16") -> float:
    """FLOPs per byte of attention in decoding, one query per text on the cache: 2 · sharing / p, whatever the batch.

    A key is read once for all the query heads that share it (`sharing` = heads / kv_heads); each multiplies it, and
    its value, once.
    """
    return 2 * sharing / BYTES_PER_NUMBER[precision]


def compute_bound_tokens(width: int, accelerator: Accelerator, precision: Format = "bf16") -> float:
    """From how many tokens on arithmetic limits the product with a square matrix; infinity if it never does.

    (2/p) · n·D/(2n + D) = λ, so n = λ·p·D/(2·(D − λ·p)) with λ the accelerator's ridge.
    """
    bound = accelerator.ridge(precision) * BYTES_PER_NUMBER[precision]
    return bound * width / (2 * (width - bound)) if width > bound else float("inf")
