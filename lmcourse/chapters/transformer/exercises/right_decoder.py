"""Right answers to `decoder` in other styles."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor


def with_partial(tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: dict[str, Any]) -> Tensor:
    norm = partial(parts["rms_norm"], eps=sizes["eps"])
    x = weights["embedding"][tokens]
    for w in weights["blocks"]:
        attention = partial(
            parts["self_attention"],
            qkv=w["qkv"],
            out=w["out"],
            heads=sizes["heads"],
            kv_heads=sizes["kv_heads"],
            theta=sizes["theta"],
            rope=parts["rope"],
            attend=parts["grouped_query_attention"],
        )
        feed_forward = partial(
            parts["glu_ffn"], w_gate=w["gate"].T, w_value=w["up"].T, w_down=w["down"].T, kind="swiglu"
        )
        x = parts["block"](
            x, attention, feed_forward, partial(norm, scale=w["norm_1"]), partial(norm, scale=w["norm_2"]), False
        )
    head = weights["head"] if "head" in weights else weights["embedding"]
    return norm(x, scale=weights["norm"]) @ head.T  # type: ignore[no-any-return]


def with_inner_functions(
    tokens: Tensor, weights: dict[str, Any], sizes: dict[str, Any], parts: dict[str, Any]
) -> Tensor:
    def layer(x: Tensor, w: dict[str, Any]) -> Tensor:
        def norm_1(y: Tensor) -> Tensor:
            return parts["rms_norm"](y, w["norm_1"], sizes["eps"])  # type: ignore[no-any-return]

        def norm_2(y: Tensor) -> Tensor:
            return parts["rms_norm"](y, w["norm_2"], sizes["eps"])  # type: ignore[no-any-return]

        def attention(y: Tensor) -> Tensor:
            kinds = [sizes[name] for name in ("heads", "kv_heads", "theta")]
            return parts["self_attention"](  # type: ignore[no-any-return]
                y, w["qkv"], w["out"], *kinds, parts["rope"], parts["grouped_query_attention"]
            )

        def feed_forward(y: Tensor) -> Tensor:
            return parts["glu_ffn"](y, w["gate"].t(), w["up"].t(), w["down"].t(), "swiglu")  # type: ignore[no-any-return]

        return parts["block"](x, attention, feed_forward, norm_1, norm_2, False)  # type: ignore[no-any-return]

    x = torch.nn.functional.embedding(tokens, weights["embedding"])
    for w in weights["blocks"]:
        x = layer(x, w)
    x = parts["rms_norm"](x, weights["norm"], sizes["eps"])
    return torch.nn.functional.linear(x, weights.get("head", weights["embedding"]))


def by_recursion(
    tokens: Tensor,
    weights: dict[str, Any],
    sizes: dict[str, Any],
    parts: dict[str, Any],
    x: Tensor | None = None,
    at: int = 0,
) -> Tensor:
    x = weights["embedding"].index_select(0, tokens.flatten()).unflatten(0, tokens.shape) if x is None else x
    if at == len(weights["blocks"]):
        head = weights["embedding"] if weights.get("head") is None else weights["head"]
        return torch.einsum("bsd,vd->bsv", parts["rms_norm"](x, weights["norm"], sizes["eps"]), head)
    w = weights["blocks"][at]
    x = parts["block"](
        x,
        lambda y: parts["self_attention"](
            y,
            w["qkv"],
            w["out"],
            sizes["heads"],
            sizes["kv_heads"],
            sizes["theta"],
            parts["rope"],
            parts["grouped_query_attention"],
        ),
        lambda y: parts["glu_ffn"](y, w["gate"].T, w["up"].T, w["down"].T, "swiglu"),
        lambda y: parts["rms_norm"](y, w["norm_1"], sizes["eps"]),
        lambda y: parts["rms_norm"](y, w["norm_2"], sizes["eps"]),
        False,
    )
    return by_recursion(tokens, weights, sizes, parts, x, at + 1)


RIGHT_DECODERS = (with_partial, with_inner_functions, by_recursion)
