"""Find the wrong part of a model: compare each sub-layer with the course's version on the same input.

If one part of a model is wrong, everything after it is wrong, too, so the logits do not show which part it is. Here
every part gets the input that the course's part has at the same place, and the first part with a different result is
reported. If all results agree, gradients are compared in the same way, because a part that blocks gradients has the
right logits but learns less.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.models.loss import next_token_loss
from lmcourse.models.parity.parts import (
    COURSE_PARTS,
    decoder,
    decoder_sizes,
    decoder_weights,
    norm_scale,
    rotary_base,
    serial_layers,
)
from lmcourse.models.transformer import Transformer, forward_context
from lmcourse.nn.context import ForwardContext

TOLERANCE = 1e-4
"""Tolerance relative to the largest number in the course's result: fp32 has seven digits, and a different order of
summation loses two of them.
"""

GRADIENT_TOLERANCE = 1e-3
"""Tolerance for gradients, which are sums of more products."""

COMPARED = (
    "rms_norm",
    "rope",
    "grouped_query_attention",
    "self_attention",
    "glu_ffn",
    "block",
    "decoder",
    "next_token_loss",
    "causal_lm_loss",
)
"""The parts that can be compared. The inputs of `decoder` and `self_attention` include the course's functions."""

DIFFERENTIABLE: Mapping[str, Callable[..., Any]] = {
    **COURSE_PARTS,
    "decoder": decoder,
    "causal_lm_loss": lambda logits, tokens: next_token_loss(logits[:, :-1], tokens[:, 1:]),
}
"""The course's functions for the comparison of gradients."""

Expected = tuple[str, str, Callable[..., Any], tuple[Any, ...], Tensor]
"""A comparison: its place, the name of the part, the part, its arguments, and the result of the course's part."""


@dataclass(frozen=True)
class Difference:
    """The first part that differs from the course's version: its place in the model, such as "block 2, attention", its
    name, and a few words on the difference.
    """

    place: str
    part: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: `{self.part}` {self.what}"


def find_difference(
    parts: Mapping[str, Callable[..., Any]], model: Transformer, tokens: Int[Tensor, "b s"]
) -> Difference | None:
    """Return the first sub-layer, from the embedding to the loss, in which a given part differs; None if all agree.

    Results are compared first. If all results agree, the gradients with respect to all floating-point inputs of a part
    are compared. A model without these parts, or a part with an unknown name, raises ValueError.

    Args:
        parts: the parts by the names of their exercises, any of `COMPARED`; missing parts are not compared.
        model: a model of the course in the style of LLaMA, such as `load_pretrained().model`: RMSNorm before each
            branch, rotary embeddings, SwiGLU, no biases.
        tokens: the tokens of a text for the model.
    """
    if unknown := parts.keys() - {*COMPARED}:
        raise ValueError(f"there is no part called {', '.join(sorted(unknown))}; choose from {', '.join(COMPARED)}")
    with torch.no_grad():
        comparisons = list(_comparisons(parts, model, tokens))
        for place, name, part, arguments, expected in comparisons:
            if what := _compare(part, arguments, expected):
                return Difference(place, name, what)
    for place, name, part, arguments, _ in comparisons:
        if name in DIFFERENTIABLE and (what := _compare_gradients(part, DIFFERENTIABLE[name], arguments)):
            return Difference(place, name, what)
    return None


def _comparisons(parts: Mapping[str, Callable[..., Any]], model: Transformer, tokens: Tensor) -> Iterator[Expected]:
    """Yield every use of a part, in the order of a forward pass, with the course's result for the same input."""
    context = forward_context(model.embedding, model.position_bias, tokens, None, None, None)
    x = model.embedding(tokens, context.shared_positions)
    weights = decoder_weights(model)
    for number, block in enumerate(model.blocks):
        for place, name, arguments, expected in _in_block(block, weights["blocks"][number], x, context):
            if name in parts:
                yield f"block {number}, {place}", name, parts[name], arguments, expected
        x = block(x, context)
    ends: list[tuple[str, str, tuple[Any, ...], Tensor]] = [("final norm", *_norm(model.norm, x))]
    logits = model.head(model.norm(x))
    ends.append(("logits", "decoder", (tokens, weights, decoder_sizes(model), COURSE_PARTS), logits))
    loss = next_token_loss(logits[:, :-1], tokens[:, 1:])
    ends += [("loss", name, (logits, tokens), loss) for name in ("next_token_loss", "causal_lm_loss")]
    yield from ((place, name, parts[name], given, expected) for place, name, given, expected in ends if name in parts)


def _in_block(
    block: Any, weights: dict[str, Tensor], x: Tensor, context: ForwardContext
) -> Iterator[tuple[str, str, tuple[Any, ...], Tensor]]:
    attention, feed_forward = serial_layers(block)
    theta = rotary_base(block)
    yield "norm before attention", *_norm(block.attention.input_norm, x)
    normed = block.attention.input_norm(x)
    qk, v = attention.project(normed)
    q, k = attention.qk_transform(qk, context)
    rotated = torch.cat([q, k], dim=1)
    yield "rotary embedding", "rope", (_neighbours(qk), context.positions[0], theta), _neighbours(rotated)
    mixed = attention.attend_fused(q, k, v, context.positions, context)
    yield "attention", "grouped_query_attention", (q, k, v), mixed
    given = (normed, weights["qkv"], weights["out"], attention.heads, attention.kv_heads, theta)
    inside = (COURSE_PARTS["rope"], COURSE_PARTS["grouped_query_attention"])
    yield "attention with its matrices", "self_attention", given + inside, attention(normed, context)
    x_1 = block.attention(x, context)
    yield "norm before feed-forward", *_norm(block.feed_forward.input_norm, x_1)
    read = block.feed_forward.input_norm(x_1)
    matrices = [weights[name].T for name in ("gate", "up", "down")]
    yield "feed-forward", "glu_ffn", (read, *matrices, "swiglu"), feed_forward(read)
    layers = (partial(attention, context=context), feed_forward)
    norms = (block.attention.input_norm, block.feed_forward.input_norm)
    yield "all of it", "block", (x, *layers, *norms, False), block(x, context)


def _norm(norm: Any, x: Tensor) -> tuple[str, tuple[Any, ...], Tensor]:
    return "rms_norm", (x, norm_scale(norm), norm.eps), norm(x)


def _neighbours(x: Tensor) -> Tensor:
    """Put features i and i + d/2 next to each other: the course's model rotates these pairs, `rope` rotates
    neighbours."""
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


def _compare(part: Callable[..., Any], arguments: tuple[Any, ...], expected: Tensor) -> str:
    """Return how a part's result differs from the expected result, or ""."""
    try:
        # Pass copies, because a part that writes into its input must not spoil later comparisons.
        copies = [each.clone() if isinstance(each, Tensor) else each for each in arguments]
        result = torch.as_tensor(part(*copies))
    except Exception as error:  # a learner's code may raise any exception, which is then reported
        return f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if result.shape != expected.shape:
        return f"gives shape {tuple(result.shape)}, not {tuple(expected.shape)}"
    worst = (result.double() - expected.double()).abs().max().item()
    if worst <= TOLERANCE * max(1.0, expected.abs().max().item()):
        return ""
    return f"differs by up to {worst:.2g} from numbers of up to {expected.abs().max().item():.2g}"


def _compare_gradients(part: Callable[..., Any], reference: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """Return how a part's gradients differ from the gradients of the course's function, or ""."""
    expected = _gradients(reference, arguments)
    try:
        found = _gradients(part, arguments)
    except Exception as error:  # a learner's code may raise any exception, which is then reported
        return f"has the right result, and its backward pass raises {type(error).__name__}"
    if all(not gradient.any() for gradient in found.values()):
        return "has the right result, and lets no gradient through"
    largest = max(gradient.abs().max().item() for gradient in expected.values())
    for place, gradient in expected.items():
        scale = max(gradient.abs().max().item(), GRADIENT_TOLERANCE * largest)
        worst = (found[place] - gradient).abs().max().item() / scale
        if not worst <= GRADIENT_TOLERANCE:
            how = "no gradient" if not found[place].any() else f"a gradient that is wrong by up to {worst:.0%}"
            return f"has the right result, and gives {_name(reference, place)} {how}"
    return ""


Place = tuple[int | str, ...]
"""The place of a tensor: the number of the argument, then keys and indices within it."""


def _gradients(part: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[Place, Tensor]:
    """Return the gradient of each tensor among the arguments, for one random direction of the result."""
    leaves: dict[Place, Tensor] = {}

    def copied(value: Any, place: Place) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            leaves[place] = value.detach().clone().requires_grad_()
            return leaves[place]
        if isinstance(value, list):
            return [copied(each, (*place, index)) for index, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: copied(each, (*place, name)) for name, each in value.items()}
        return value

    with torch.enable_grad():
        result = part(*(copied(value, (number,)) for number, value in enumerate(arguments)))
        if not (isinstance(result, Tensor) and result.requires_grad):
            return {place: torch.zeros_like(leaf) for place, leaf in leaves.items()}
        direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        found = torch.autograd.grad(
            result, list(leaves.values()), direction.to(result), allow_unused=True, materialize_grads=True
        )
    return dict(zip(leaves, found, strict=True))


def _name(function: Callable[..., Any], place: Place) -> str:
    """Return a tensor's place as code, such as `v` or `weights["blocks"][0]["qkv"]`."""
    number, *inner = place
    parameters = list(inspect.signature(function).parameters)
    keys = (f'["{key}"]' if isinstance(key, str) else f"[{key}]" for key in inner)
    return f"`{parameters[int(number)]}{''.join(keys)}`"
