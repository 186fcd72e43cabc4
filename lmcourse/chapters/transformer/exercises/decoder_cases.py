"""Inputs of the exercise on the whole decoder: weights, and parts that can be told apart by their results."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.inputs import integers, normal64

Weights = dict[str, Any]
Sizes = dict[str, Any]

PARTS = """\
norm = lambda x, scale, eps=1e-5: scale * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
parts = {"rms_norm": norm, "rope": lambda y, theta: y / (1 + theta / 10_000)}
parts["grouped_query_attention"] = lambda y: y.cumsum(1)
parts["self_attention"] = lambda x, qkv, out, heads, kv_heads, theta, rope, attend: (
    attend(rope(x @ qkv.T, theta))[..., : out.shape[1]] @ out.T * (heads - kv_heads / 2)
)
parts["glu_ffn"] = lambda x, w_gate, w_value, w_down, kind: (
    ((x @ w_gate).sigmoid() * (x @ w_value) * (x @ w_gate if kind == "swiglu" else 1)) @ w_down
)
parts["block"] = lambda x, attention, feed_forward, norm_1, norm_2, parallel: (
    x + attention(norm_1(x)) + feed_forward(norm_2(x if parallel else x + attention(norm_1(x))))
)
"""
STRANGE = """\
parts["block"] = lambda x, attention, feed_forward, norm_1, norm_2, parallel: attention(x) - feed_forward(norm_2(x))
parts["glu_ffn"] = lambda x, w_gate, w_value, w_down, kind: (x @ w_gate - x @ w_value) @ w_down
parts["self_attention"] = lambda x, qkv, out, heads, kv_heads, theta, rope, attend: attend(x / theta) + rope(x, heads)
parts["rms_norm"] = lambda x, scale, eps=1e-5: x * scale + eps
"""


def random_weights(
    random: Random, blocks: int, d: int, heads: int, kv: int, width: int, f: int, v: int, tied: bool
) -> Weights:
    """Random weights in the form that `decoder` takes."""

    def layer() -> Weights:
        return {
            "norm_1": 1 + normal64(random, d, scale=0.5),
            "qkv": normal64(random, (heads + 2 * kv) * width, d, scale=0.6),
            "out": normal64(random, d, heads * width, scale=0.6),
            "norm_2": 1 + normal64(random, d, scale=0.5),
            "gate": normal64(random, f, d),
            "up": normal64(random, f, d),
            "down": normal64(random, d, f),
        }

    weights: Weights = {"embedding": normal64(random, v, d), "blocks": [layer() for _ in range(blocks)]}
    weights["norm"] = 1 + normal64(random, d, scale=0.5)
    return weights if tied else weights | {"head": normal64(random, v, d)}


def ask(
    name: str,
    random: Random,
    *,
    blocks: int = 1,
    text: tuple[int, int] = (2, 3),
    tied: bool = False,
    sizes: Sizes | None = None,
    lines: str = "",
    **changed: int,
) -> Case:
    """A case that runs a decoder of random weights with `PARTS`, as changed by `lines`; `changed` has other shapes."""
    shape = {"d": 4, "heads": 2, "kv": 2, "width": 2, "f": 4, "v": 5} | changed
    chosen = {"heads": shape["heads"], "kv_heads": shape["kv"], "theta": 10_000.0, "eps": 1e-5} | (sizes or {})
    return script(
        name,
        PARTS + lines + "decoder(tokens, weights, sizes, parts)",
        tokens=integers(random, *text, low=0, high=shape["v"] - 1, dtype=torch.int64),
        weights=random_weights(random, blocks, **shape, tied=tied),
        sizes=chosen,
    )
