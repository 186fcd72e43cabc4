"""Replace every attention layer of the small trained model with a given function.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.data.token_file import TokenFile
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import Attention
from lmcourse.nn.context import ForwardContext
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.training.command.run_folder import VALIDATION

MultiHead = Callable[..., Tensor]
"""Takes (x, source, w_q, w_k, w_v, w_out, heads, visible=…, turn=…, change=…)."""

Mask = Callable[[int, int], Tensor]
"""Takes the numbers of queries and keys; returns a mask that is True where a query may look."""

CLOSE = 1e-4
"""Largest difference of equal logits: float32 adds the same terms in another order."""


@contextmanager
def with_attention(model: Transformer, attention: MultiHead, mask: Mask | None = None) -> Iterator[None]:
    """A context in which every attention layer of the model calls `attention` with its weights, mask and rotation.

    If `mask` is given, it makes the mask in place of the layer's own.

    Raises:
        ValueError: a layer shares keys between heads or has biases, which `attention` does not take.
    """
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    if any(layer.kv_heads != layer.heads or layer.qkv.bias is not None for layer in layers):
        raise ValueError("your `attention` fits only layers without biases that have as many key heads as query heads")
    for layer in layers:
        vars(layer)["forward"] = partial(_forward, layer, attention, mask)
    try:
        yield
    finally:
        for layer in layers:
            del vars(layer)["forward"]


def _forward(
    layer: Attention, attention: MultiHead, mask: Mask | None, x: Float[Tensor, "b s d"], context: ForwardContext
) -> Float[Tensor, "b s d"]:
    w_q, w_k, w_v = layer.qkv.weight.chunk(3)
    visible = mask(x.shape[1], x.shape[1]) if mask else context.mask(layer.pattern, context.positions)[0][0]
    rotary = layer.qk_transform.rotary
    turn = partial(rotary.rotate, cos_sin=context.cos_sin(rotary)) if rotary else None
    return attention(x, x, w_q, w_k, w_v, layer.out.weight, layer.heads, visible=visible, turn=turn)


@cache
def validation_texts(count: int = 8, length: int = 128) -> Int[Tensor, "count length"]:
    """Token sequences that the model was not trained on."""
    with TokenFile(pretrained_folder() / VALIDATION) as file:
        return torch.stack(
            [torch.as_tensor(file[start : start + length]) for start in range(0, count * length, length)]
        )


def loss_of(logits: Float[Tensor, "b s v"], tokens: Int[Tensor, "b s"]) -> float:
    """Cross-entropy of each next token, in nats per token."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1).double(), tokens[:, 1:].flatten()).item()


@torch.no_grad()
def logits_with(attention: MultiHead | None, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "b s v"]:
    """Logits of the trained model with a function in place of its attention; None keeps the model's own attention."""
    model = _model()
    with with_attention(model, attention) if attention else nullcontext():
        logits: Tensor = model(tokens)
    return logits


@cache
def _model() -> Transformer:
    return load_pretrained().model


def in_the_model(attention: MultiHead) -> dict[str, Any]:
    """Compare the model's logits with those after replacing its attention with a function; include the loss of each."""
    tokens = validation_texts(2)
    expected, received = logits_with(None, tokens), logits_with(attention, tokens)
    difference = (received - expected).abs().max().item()
    same = "equal to the model's" if difference < CLOSE else f"off by up to {difference:.0f}"
    return {"logits": same, "loss": round(loss_of(received, tokens), 2)}


def print_slips(count: int = 8) -> None:
    """Print what famous slips in multi-head attention do to the trained model's logits, loss and best tokens."""
    tokens = validation_texts(count)
    expected = logits_with(None, tokens)
    print(f"{'in every layer':37} {'a logit moves by':>16} {'loss':>6} {'same best token':>16}")
    for name, settings in SLIPS.items():
        received = logits_with(partial(_multi_head, **settings), tokens)
        difference = (received - expected).abs().max().item()
        same = (received.argmax(dim=-1) == expected.argmax(dim=-1)).float().mean().item()
        print(f"{name:37} {difference:16.0f} {loss_of(received, tokens):6.2f} {same:16.0%}")


_CUT, _JOIN = "b s (h d) -> b h s d", "b h s d -> b s (h d)"

SLIPS: dict[str, dict[str, Any]] = {
    "the right heads": {},
    "`view` at both ends, no transpose": {"cut": "", "join": ""},
    "`view` in front only": {"cut": ""},
    "`view` at the end only": {"join": ""},
    "every h-th feature, at both ends": {"cut": "b s (d h) -> b h s d", "join": "b h s d -> b s (d h)"},
    "no mask": {"masked": False},
    "no `turn`": {"turned": False},
}
"""Settings of the course's function that reproduce a well-known mistake."""


def _multi_head(
    x: Tensor,
    source: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_out: Tensor,
    heads: int,
    visible: Tensor | None = None,
    turn: Callable[[Tensor], Tensor] | None = None,
    *,
    cut: str = _CUT,
    join: str = _JOIN,
    masked: bool = True,
    turned: bool = True,
) -> Tensor:
    """Multi-head attention; an empty `cut` or `join` means a plain reshape, which leaves the numbers in their memory
    order."""
    wide = x @ w_q.T, source @ w_k.T, source @ w_v.T
    q, k, v = (rearrange(y, cut, h=heads) if cut else y.reshape(len(y), heads, y.shape[1], -1) for y in wide)
    if turn is not None and turned:
        q, k = turn(q), turn(k)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible if masked else None)
    return (rearrange(mixed, join) if join else mixed.reshape(x.shape)) @ w_out.T
