"""The open task of notebook 02: attention without a fused kernel, in as little memory as possible, measured.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.measured import MeasuredCall, measured_call, one_thread
from lmcourse.exercises.open_task import Unfit

Inputs = tuple[Tensor, Tensor, Tensor]
Attention = Callable[..., Tensor]
"""Takes q, k and v of shape (b, s, h·d), and the number of heads; returns (b, s, h·d)."""

TEXTS, TOKENS, HEADS, WIDTH = 2, 512, 4, 16
KIB = 2**10
PEAK, OPERATORS = "peak, KiB", "operators"
FINISH = {PEAK: 560, OPERATORS: 3200}

_SMALL = ((2, 130, 1, 5), (2, 7, 2, 3), (1, 1, 2, 4), (1, 65, 4, 8))
"""Sizes at which values are compared: texts, tokens, heads, width of a head."""

_CLOSE = 1e-5
_PART = 0.9

FORM = "Return a float32 tensor of the shape of q, here {right}; yours is {yours}."
FAR = (
    "With scores of ±1,000 your attention gives NaN or ∞. Subtract from each row its own largest score: without it exp "
    "overflows, and with a larger one a whole row can become 0."
)
NOTHING = "Token {token} gets NaN or ∞. Does it see itself, with a finite score? 0 · ∞ and ∞ − ∞ are NaN."
AGAIN = (
    "Called again with the same inputs, your attention returns other numbers. Is a part of the result never written?"
)
END = (
    "The results before token {token} of {tokens} are right, and that of the last token is not. Is a part left out, or "
    "masked as if it began at token 0?"
)
SPLIT = "The heads are cut wrongly: a `view` to (b, h, s, d) cuts tokens. Cut the features first, then move the heads."
MERGED = "The heads are merged wrongly, as in Exercise 3: move the tokens before the heads first."
FUTURE = "It sees the future: with another last token, the result of token {token} changes."
APART = "If one text changes, another one gets another result. Each text is read alone."
SUM = "With v = 1 everywhere your result is not 1. The weights of a query sum to 1, over its keys."
SCALE = "The scores are not divided by √d, with d the width of one head, here {width}."
PRECISION = "Your numbers are within 2 % of the right ones, and not within 0.001 %. Is a part computed in 16 bits?"
FIRST = (
    "The result of token 0 is not v's token 0, the only one that it may see. Does your mask hide a token from itself?"
)
WRONG = "The result of token {token} is wrong. Compare with `textbook`, on inputs of shape {shape} and {heads} heads."
NO_PRODUCTS = "Of the matrix products that attention needs, {part:.0%} were seen. Compute both with `@` or einsum."
OTHERS = """Everything in place needs a third of the textbook's memory.
Eight queries at a time for all heads need 774 KiB: most of it is the result, and what @ copies.
Parts of one text, or of one head of one text, need no copies: 512 and 500 KiB.
Fused kernels go through the keys in blocks, too (Dao et al., 2022): 408 KiB in blocks of 64.
For each query they keep the largest score so far, and two sums, which shrink when a larger score comes."""


def new_inputs(texts: int, tokens: int, heads: int, width: int, seed: int | None = 0) -> Inputs:
    """Return random q, k and v; of no fixed seed for None."""
    generator = torch.Generator()
    generator.manual_seed(generator.seed() if seed is None else seed)
    q, k, v = torch.randn(3, texts, tokens, heads * width, generator=generator).unbind()
    return q.clone(), k.clone(), v.clone()


def fused(
    q: Float[Tensor, "b s hd"], k: Float[Tensor, "b s hd"], v: Float[Tensor, "b s hd"], heads: int, scale: float = 1.0
) -> Tensor:
    """PyTorch's own causal attention; `scale` multiplies its scores."""
    q, k, v = (rearrange(x, "b s (h d) -> b h s d", h=heads) for x in (q, k, v))
    blend = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale / q.shape[-1] ** 0.5)
    return rearrange(blend, "b h s d -> b s (h d)")


def inspect_attention(attention: Attention) -> None:
    """Compare with PyTorch's attention at small sizes; raise Unfit if a result differs, or with scores of ±1,000."""
    for sizes in _SMALL:
        _inspect(attention, new_inputs(*sizes), sizes[2])
    q, k, v = new_inputs(2, 9, 2, 8)
    _inspect(attention, (1000 * q, k, v), 2, not_finite=FAR)


def _inspect(attention: Attention, inputs: Inputs, heads: int, not_finite: str = "") -> MeasuredCall:
    """Measure a call on these inputs; raise Unfit if its result is wrong."""
    q, k, v = inputs
    found = measured_call(attention, q, k, v, heads)
    y = found.result
    if not isinstance(y, Tensor) or (y.shape, y.dtype) != (q.shape, q.dtype):
        yours = f"{y.dtype} of {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise Unfit(FORM.format(right=tuple(q.shape), yours=yours))
    right = fused(q.double(), k.double(), v.double(), heads)
    off = ~((y - right).abs() <= _CLOSE * (1 + 100 * bool(not_finite)) * right.abs().max())
    if off.any():
        token = int(off.any(dim=-1).any(dim=0).nonzero()[0])
        if not y.isfinite().all():
            cut_off = token > 1 and off[:, -1].any()
            raise Unfit(not_finite or (END if cut_off else NOTHING).format(token=token, tokens=q.shape[1]))
        raise Unfit(_reason(attention, inputs, heads, y, token))
    return found


def _reason(attention: Attention, inputs: Inputs, heads: int, y: Tensor, token: int) -> str:
    """Return a sentence on a wrong result, of which `token` is the first wrong one."""
    q, k, v = inputs
    tokens, width = q.shape[1], q.shape[2] // heads
    if token > 1 and _differ(y, fused(q, k, v, heads))[:, -1].any():
        return END.format(token=token, tokens=tokens)
    if _differ(attention(*inputs, heads), y).any():
        return AGAIN
    cut_q, cut_k, cut_v = (x.reshape(len(x), heads, tokens, width) for x in inputs)
    wrongly_cut = F.scaled_dot_product_attention(cut_q, cut_k, cut_v, is_causal=True)
    if any(_near(y, one) for one in (wrongly_cut.reshape(q.shape), rearrange(wrongly_cut, "b h s d -> b s (h d)"))):
        return SPLIT
    if not _differ(y, fused(q, k, v, heads), 0.02).any():
        return PRECISION
    if _near(y, rearrange(fused(q, k, v, heads), "b s (h d) -> b h s d", h=heads).reshape(q.shape)):
        return MERGED
    if not _near(attention(q, k, torch.ones_like(v), heads), torch.ones_like(v)):
        return SUM
    moved = _differ(attention(*(torch.cat([x[:, :-1], -x[:, -1:]], dim=1) for x in inputs), heads), y)[:, :-1]
    if moved.any():
        return FUTURE.format(token=int(moved.any(dim=-1).any(dim=0).nonzero()[0]))
    for other, (first, rest) in enumerate(((1, -1), (-1, 1))):
        turned = attention(*(torch.cat([first * x[:1], rest * x[1:]]) for x in inputs), heads)
        if _differ(turned, y)[other : other + 1].any():
            return APART
    if any(_near(y, fused(q, k, v, heads, scale)) for scale in (width**0.5, heads**-0.5, width**-0.5)):
        return SCALE.format(width=width)
    return (WRONG if token else FIRST).format(token=token, shape=tuple(q.shape), heads=heads)


def _differ(a: Tensor, b: Tensor, close: float = _CLOSE) -> Tensor:
    return ~((a - b).abs() <= close * b.abs().max())


def _near(a: Tensor, b: Tensor) -> bool:
    return not bool(_differ(a, b).any())


def measure_attention(attention: Attention, others: list[list[int]]) -> dict[str, float]:
    """Return the peak and the operators of a call with new random numbers; compare values at `others` sizes, too."""
    for texts, tokens, heads, width in others:
        _inspect(attention, new_inputs(texts, tokens, heads, width), heads)
    found = _inspect(attention, new_inputs(TEXTS, TOKENS, HEADS, WIDTH, None), HEADS)
    products = 2 * TEXTS * HEADS * WIDTH * TOKENS * (TOKENS + 1)  # two products with the keys that each query sees
    if found.flops < _PART * products:
        raise Unfit(NO_PRODUCTS.format(part=found.flops / products))
    return {PEAK: found.peak / KIB, OPERATORS: found.operators}


def print_other_ways(attention: Attention) -> None:
    """Print what others did, once an answer reaches the finish line."""
    reached = all(round(number) <= FINISH[name] for name, number in measure_attention(attention, []).items())
    print(OTHERS if reached else "Reach the finish line of the open task first.")


@one_thread()
def print_attention(name: str, attention: Attention) -> None:
    """Print what a call at the task's size takes: its peak, operators, and the shortest of five times."""
    inputs = new_inputs(TEXTS, TOKENS, HEADS, WIDTH)
    found, times = measured_call(attention, *inputs, HEADS), []
    for _ in range(5):
        start = process_time()
        attention(*inputs, HEADS)
        times.append(process_time() - start)
    peak = f"{found.peak / KIB:7,.0f} KiB, {found.operators:6,} operators"
    print(f"{name:18} peak {peak}, {1000 * min(times):4.0f} ms of the processor")
