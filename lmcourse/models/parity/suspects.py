"""Decoders with one wrong part each, for `first_difference`: slips of kinds that have cost people weeks.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.models.initialize import initialize
from lmcourse.models.parity.parts import COURSE_PARTS, decoder, decoder_sizes, decoder_weights
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like

Parts = dict[str, Callable[..., Any]]
Weights = dict[str, Any]

right: Parts = dict(reversed(list(COURSE_PARTS.items())))
"""The course's six parts, those that call others first: who goes part by part finds the wrong one."""
_ATTEND, _NORM, _ROPE, _GLU = (right[name] for name in ("grouped_query_attention", "rms_norm", "rope", "glu_ffn"))


def small_llama(seed: int = 0) -> Transformer:
    """Make LLaMA 3 with 2 blocks of 64 features and random weights, also in the norms: 8 heads share 2 key heads."""
    torch.manual_seed(seed)
    config = llama_like(2, 64, 8, 96, vocab_size=100, context=64, kv_heads=2, theta=500_000.0)
    model = Transformer(config).eval()
    initialize(model, "fan_in")
    for name, parameter in model.named_parameters():
        if "norm" in name:  # as after training: at 1, a norm that forgets its scale would be right
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def small_text() -> Tensor:
    """Draw two texts of 24 tokens for the small model."""
    return torch.randint(100, (2, 24), generator=torch.Generator().manual_seed(0))


def small_model(seed: int = 0) -> tuple[Tensor, dict[str, Any], dict[str, Any]]:
    """Return tokens, weights and sizes of a LLaMA of 2 blocks, with which a decoder can be tried."""
    model = small_llama(seed)
    return small_text(), decoder_weights(model), decoder_sizes(model)


def decode(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: Parts) -> Tensor:
    """The course's decoder. It calls the parts with positional arguments, in the order of the table."""

    def called(name: str, *given: Any, **named: Any) -> Any:
        return parts[name](*inspect.signature(right[name]).bind(*given, **named).args)

    return decoder(tokens, weights, sizes, {name: partial(called, name) for name in parts})


def only_norm(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: Parts) -> Any:
    """A decoder that calls one part, once."""
    return parts["rms_norm"](weights["embedding"][tokens], weights["norm"], sizes["eps"])


def three_norms(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: Parts) -> Any:
    """A decoder that calls one part three times, the second time with numbers so small that ε counts."""
    stream = weights["embedding"][tokens]
    return sum(parts["rms_norm"](size * stream, weights["norm"], sizes["eps"]) for size in (100, 0.1, 200))


def norm_of_zeros(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: Parts) -> Any:
    """A decoder that calls one part, once, with a stream of zeros."""
    return parts["rms_norm"](torch.zeros_like(weights["embedding"][tokens]), weights["norm"], sizes["eps"])


def gradients(part: Callable[..., Tensor], arguments: Iterable[Any]) -> Tensor:
    """Return what a random direction of the result sends back to all float tensors that it was given, in one vector."""
    copies = [each.detach().clone().requires_grad_() if _is_float(each) else each for each in arguments]
    leaves = [each for each in copies if _is_float(each)]
    with torch.enable_grad():
        result = part(*copies)
    if not result.requires_grad:
        return torch.zeros(sum(leaf.numel() for leaf in leaves))
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(0), dtype=result.dtype)
    found = torch.autograd.grad(result, leaves, direction, allow_unused=True, materialize_grads=True)
    return torch.cat([each.flatten() for each in found])


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _interleaved(q: Tensor, k: Tensor, v: Tensor) -> Any:
    times = q.shape[1] // k.shape[1]
    return _ATTEND(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1))


def _block_from_x(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Any:
    return x + attention(norm_1(x)) + feed_forward(norm_2(x))


def _larger_branch(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Any:
    h = x + attention(norm_1(x))
    return h + 1.0005 * feed_forward(norm_2(h))


def _norm_in_place(x: Tensor, scale: Tensor, eps: float) -> Any:
    return x.div_((x.square().mean(-1, keepdim=True) + eps).sqrt()) * scale


def _values_cleared(q: Tensor, k: Tensor, v: Tensor) -> Any:
    result = _ATTEND(q, k, v)
    v.data.zero_()  # unseen by autograd: an answer that misses it finds a wrong gradient
    return result


def _head_by_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    group = q.shape[1] // k.shape[1]
    heads = [[q[:, h : h + 1], *(each[:, h // group, None] for each in (k, v))] for h in range(q.shape[1])]
    return torch.cat([_ATTEND(*head) for head in heads], dim=1)


SUSPECTS: dict[str, Parts] = {
    "no mask": {"grouped_query_attention": partial(F.scaled_dot_product_attention, enable_gqa=True)},
    "key heads in turn": {"grouped_query_attention": _interleaved},
    "another base": {"rope": lambda x, positions, theta: _ROPE(x, positions, 10_000.0)},
    "gate and value swapped": {"glu_ffn": lambda x, gate, value, down, kind: _GLU(x, value, gate, down, kind)},
    "second branch reads x": {"block": _block_from_x},
    "branch 0.05 % too large": {"block": _larger_branch},
    "positions from 1": {"rope": lambda x, positions, theta: _ROPE(x, positions + 1, theta)},
    "norm in place": {"rms_norm": _norm_in_place},
    "values detached": {"grouped_query_attention": lambda q, k, v: _ATTEND(q, k, v.detach())},
    "scores detached": {"grouped_query_attention": lambda q, k, v: _ATTEND(q.detach(), k.detach(), v)},
    "attention under no_grad": {"self_attention": torch.no_grad()(right["self_attention"])},
    "norm's scale detached": {"rms_norm": lambda x, scale, eps: _NORM(x, scale.detach(), eps)},
}
"""Twelve wrong decoders by the name of their slip: the part that replaces the right one."""

OTHERS: dict[str, Parts] = {
    "norm in place, and gate and value swapped": {"rms_norm": _norm_in_place} | SUSPECTS["gate and value swapped"],
    "sums in another order": {"rms_norm": lambda x, s, eps: x * s * (x.square().mean(-1, keepdim=True) + eps).rsqrt()},
    "head by head": {"grouped_query_attention": _head_by_head},
    "norm 0.007 % too large": {"rms_norm": lambda x, scale, eps: 1.00007 * _NORM(x, scale, eps)},
    "norm 0.015 % too large": {"rms_norm": lambda x, scale, eps: 1.00015 * _NORM(x, scale, eps)},
    "norm's input detached": {"rms_norm": lambda x, scale, eps: _NORM(x.detach(), scale, eps)},
    "values cleared": {"grouped_query_attention": _values_cleared},
    "norm without ε": {"rms_norm": lambda x, scale, eps: _NORM(x, scale, 0.0)},
    "norm in place, and doubled": {"rms_norm": lambda x, scale, eps: 2 * _norm_in_place(x, scale, eps)},
    "values detached, and a branch too large": {
        "grouped_query_attention": lambda q, k, v: _ATTEND(q, k, v.detach()),
        "block": _larger_branch,
    },
    "two slips, one inside the other": {
        "self_attention": lambda *given: 1.1 * right["self_attention"](*given),
        **{"grouped_query_attention": partial(F.scaled_dot_product_attention, enable_gqa=True)},
    },
}
"""Right decoders, decoders at the limit of what counts as right, and more slips."""


def suspect(name: str) -> Parts:
    """Return the six parts of a suspect by its name, such as "no mask". All are new functions, right or wrong."""

    def renewed(part: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(part)(lambda *given, **named: part(*given, **named)) if inspect.isfunction(part) else part

    chosen = right | (SUSPECTS | OTHERS)[name]
    return {each: renewed(part) for each, part in chosen.items()}


def moves_the_logits(decoder: Callable[..., Tensor], name: str) -> str:
    """Return the first part of a suspect that moves the logits if it replaces the right one in a whole decoder."""
    tokens, weights, sizes = small_model()
    logits = decoder(tokens, weights, sizes, right)
    for part, wrong in suspect(name).items():
        with torch.no_grad():
            moved = decoder(tokens, weights, sizes, right | {part: wrong}) - logits
        if moved.abs().max() > 1e-4 * logits.abs().max():
            return part
    return "nothing"


@torch.no_grad()
def continued(
    logits_of: Callable[..., Tensor], start: list[int], weights: Weights, sizes: Weights, count: int = 24
) -> list[int]:
    """Return the likeliest continuation of a text. There is no cache: every token computes all again."""
    written = list(start)
    for _ in range(count):
        written.append(int(logits_of(torch.tensor([written]), weights, sizes)[0, -1].argmax()))
    return written[len(start) :]
