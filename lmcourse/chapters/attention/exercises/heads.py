"""The exercise on many heads."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal

Turn = Callable[[Tensor], Tensor]
Change = Callable[[Tensor], Tensor]


def _by_torch(
    x: Tensor,
    source: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_out: Tensor,
    heads: int,
    visible: Tensor | None = None,
    turn: Turn | None = None,
    change: Change | None = None,
) -> Tensor:
    """Compute attention with nn.MultiheadAttention's function, in fp64.

    The function takes queries and keys that are projected, turned and joined again, and unit weights for them. The
    batch is its second axis, and in its masks True means hidden. Its unit weight for the output leaves the heads side
    by side.
    """
    q, k = (_applied(turn, F.linear(y, w).double(), heads) for y, w in ((x, w_q), (source, w_k)))
    queries, keys, values = (y.transpose(0, 1) for y in (q, k, source.double()))
    unit = torch.eye(x.shape[-1], dtype=torch.float64)
    mixed, _ = F.multi_head_attention_forward(
        queries,
        keys,
        values,
        embed_dim_to_check=x.shape[-1],
        num_heads=heads,
        in_proj_weight=torch.cat([unit, unit, w_v.double()]),
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=unit,
        out_proj_bias=None,
        training=False,
        attn_mask=None if visible is None else ~visible,
    )
    return F.linear(_applied(change, mixed.transpose(0, 1), heads), w_out.double()).to(x.dtype)


def _applied(function: Callable[[Tensor], Tensor] | None, y: Tensor, heads: int) -> Tensor:
    """Apply a function of (b, heads, tokens, width) to heads that lie side by side."""
    if function is None:
        return y
    return torch.cat(function(torch.stack(y.chunk(heads, dim=-1), dim=1)).unbind(dim=1), dim=-1)


def _layer(random: Random, batch: int, s: int, t: int, heads: int, width: int) -> tuple[Tensor, ...]:
    """Random sequences for queries and keys, and four weight matrices; with t = 0 both sequences are the same."""
    d = heads * width
    x = normal(random, batch, s, d)
    source = normal(random, batch, t, d) if t else x
    return x, source, *(normal(random, d, d, scale=d**-0.5) for _ in range(4))


def _whole(random: Random) -> tuple[Tensor, ...]:
    """Return inputs in bf16 whose sums are exact, or have only positive terms, so that nothing cancels."""
    units = torch.eye(8, dtype=torch.bfloat16)
    x = integers(random, 1, 4, 8, low=1, high=2, dtype=torch.bfloat16)
    w_q, w_k = (units[torch.tensor(random.sample(range(8), 8))] for _ in range(2))
    w_v, w_out = (integers(random, 8, 8, low=0, high=1, dtype=torch.bfloat16) for _ in range(2))
    return x, x, w_q, w_k, w_v, w_out


def _past(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def _turning(random: Random, s: int, heads: int, width: int) -> Case:
    """A case whose rotation multiplies each feature of each token by its own factor."""
    inputs = dict(zip(_NAMES, _layer(random, 1, s, 0, heads, width), strict=True))
    del inputs["source"]
    factors = normal(random, s, width)
    arguments = f"x, x, w_q, w_k, w_v, w_out, {heads}, visible=visible, turn=lambda y: y * factors"
    return script(
        "queries and keys that are turned", f"multi_head({arguments})", **inputs, visible=_past(s), factors=factors
    )


def _changed(random: Random, s: int, heads: int, width: int) -> Case:
    """A case whose `change` halves the last head's result at the last token."""
    factors = torch.ones(heads, s, 1)
    factors[-1, -1] = 0.5
    inputs = dict(zip(_NAMES, _layer(random, 2, s, 0, heads, width), strict=True))
    del inputs["source"]
    arguments = f"x, x, w_q, w_k, w_v, w_out, {heads}, visible=visible, change=lambda results: results * factors"
    return script("a result is halved", f"multi_head({arguments})", **inputs, visible=_past(s), factors=factors)


def _holes(random: Random, s: int, t: int) -> Tensor:
    """Return a random mask in which every query may look at some key."""
    return torch.tensor([[i == j % s or random.random() < 0.6 for j in range(t)] for i in range(s)])


_NAMES = ("x", "source", "w_q", "w_k", "w_v", "w_out")
_IN_THE_MODEL = """
from lmcourse.chapters.attention.replace_attention import in_the_model
in_the_model(multi_head)
"""


def _cases(random: Random) -> list[Case]:
    b, s, t, heads, width = (random.randint(2, 5) for _ in range(5))
    seen, some = Random(7), torch.tensor([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0]]).bool()
    return [
        case("other shapes", *_layer(seen, 2, 4, 0, 3, 5), 3),
        case("one head", *_layer(seen, 3, 2, 0, 1, 6), 1),
        case("one token", *_layer(seen, 2, 1, 0, 2, 3), 2),
        case("heads of width 1", *_layer(seen, 2, 3, 0, 6, 1), 6),
        case("another sequence", *_layer(seen, 2, 3, 5, 2, 3), 2),
        case("another sequence", *_layer(seen, 2, 3, 5, 2, 3), 2, visible=some),
        case("another sequence", *_layer(seen, 2, 3, 3, 2, 3), 2, visible=some[:, 1:4]),
        case("other precisions", *_whole(seen), 2, visible=_past(4)),
        case("other shapes", *_layer(random, b, s, 0, heads, width), heads),
        case("other shapes", *_layer(random, 1, t, 0, heads + 1, 8), heads + 1),
        case("one head", *_layer(random, b, s, 0, 1, 6), 1),
        case("a causal mask", *_layer(random, b, s, 0, heads, width), heads, visible=_past(s)),
        case("another sequence", *_layer(random, b, s, s + t, heads, width), heads),
        case("another sequence", *_layer(random, b, s, s + t, heads, width), heads, visible=_holes(random, s, s + t)),
        _turning(random, s, heads, width),
        _changed(random, s, heads, width),
    ]


_FIXED = Random(6)

multi_head = Exercise(
    "multi_head",
    points=3,
    minutes=12,
    difficulty=2,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("two heads, three tokens", *_layer(_FIXED, 1, 3, 0, 2, 4), 2),
        case("a batch of two, four heads", *_layer(_FIXED, 2, 5, 0, 4, 2), 4),
        case("a decoder: causal", *_layer(_FIXED, 1, 4, 0, 2, 4), 2, visible=_past(4)),
        case("cross-attention: six keys for three queries", *_layer(_FIXED, 1, 3, 6, 2, 4), 2),
        _turning(_FIXED, 3, 2, 4),
        case("some keys are hidden", *_layer(_FIXED, 1, 4, 0, 2, 4), 2, visible=_holes(_FIXED, 4, 4)),
        _changed(_FIXED, 3, 2, 4),
        edge(case("bf16", *_whole(Random(8)), 2, visible=_past(4))),
        edge(script("inside the trained model", _IN_THE_MODEL)),
    ],
    hidden_cases=_cases,
    hints=[
        "Project first, as if there were one wide head; then cut the last axis into heads. A head is a slice of "
        "*consecutive* features.",
        'rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=heads). Your attention works on this shape. `turn`, if it is '
        "not None, takes q and k in this shape.",
        'At the end, apply `change` if it is given, rearrange back: "b h s d -> b s (h d)", and multiply by w_out.T. '
        "F.scaled_dot_product_attention takes `visible` as attn_mask.",
    ],
    forbid=["torch.nn.MultiheadAttention", ".multi_head_attention_forward"],
)


@multi_head.variant
def cut_attend_join(*args: Any, visible: Tensor | None = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    q, k, v = x @ w_q.T, source @ w_k.T, source @ w_v.T
    q, k, v = (rearrange(y, "b s (h d) -> b h s d", h=heads) for y in (q, k, v))
    if turn is not None:
        q, k = turn(q), turn(k)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    if change is not None:
        mixed = change(mixed)
    return rearrange(mixed, "b h s d -> b s (h d)") @ w_out.T


multi_head.slips(
    cut_attend_join,
    {
        'rearrange(y, "b s (h d) -> b h s d", h=heads) → y.reshape(len(y), heads, y.shape[1], -1)': "You reshape (b, "
        "s, d) straight to (b, h, s, d/h). That cuts the *tokens* into heads: split the last axis, then swap two axes.",
        'rearrange(y, "b s (h d) -> b h s d", h=heads) → y.reshape(len(y), heads, y.shape[1], -1) ;; rearrange(mixed, '
        '"b h s d -> b s (h d)") → mixed.reshape(x.shape)': "You reshape (b, s, d) straight to heads and straight "
        "back: a head gets the features of a few tokens, not a few features of all tokens. Split the last axis and "
        "swap two axes; at the end, swap them back first.",
        '"b s (h d) → "b s (d h) ;; b s (h d)" → b s (d h)"': "Your heads take every h-th feature. In these weights a "
        "head is a block of consecutive features: (h d), not (d h).",
        'rearrange(mixed, "b h s d -> b s (h d)") → mixed.reshape(x.shape)': "You flatten heads and tokens in the "
        "order of memory. First move the token axis back in front of the heads.",
        "attn_mask=visible → attn_mask=visible, scale=x.shape[-1] ** -0.5": "You scale by the model's width; each head "
        "has its own, d / heads.",
        "h=heads → h=1": "That is one head as wide as the model: `heads` is not used.",
        " @ w_out.T → ": "The output projection is missing: the heads lie side by side, but nothing mixes them.",
        "w_q.T → w_q ;; w_k.T → w_k ;; w_v.T → w_v ;; w_out.T → w_out": "You multiply by w, but these weights are "
        "(out, in) as in nn.Linear: x @ w.T.",
        "w_out.T → w_out": "The last product is with w_out. These weights are (out, in): w_out.T.",
        'b s (h d)") → b s (d h)")': "You split the heads in one order and join them in another. Each head's features "
        "go back side by side: (h d).",
        "source @ w_k.T, source @ w_v.T → x @ w_k.T, x @ w_v.T": "Keys and values come from `source`; yours come from "
        "x, so this is self-attention only.",
        "source @ w_v.T → x @ w_v.T": "Keys come from `source`, and so do values: yours are made from x.",
        "w_v.T → w_k.T": "You compute the values with w_k. They have their own matrix, w_v.",
        ", attn_mask=visible → ": "Queries look where `visible` does not let them: in a decoder they would see the "
        "future.",
        "attn_mask=visible → attn_mask=torch.ones(x.shape[1], source.shape[1]).tril(source.shape[1] - "
        "x.shape[1]).bool()": "Your attention is always causal. It should hide only what `visible` hides.",
        "attn_mask=visible → attn_mask=None if visible is None else ~visible": "You read `visible` the wrong way "
        "round: True means 'may look' here (and 'hidden' in nn.MultiheadAttention).",
        "attn_mask=visible → is_causal=True": "You always pass `is_causal=True`, so that a query sees only the first "
        "keys. What is hidden depends on `visible` alone.",
        "attn_mask=visible → attn_mask=None if visible is None else visible.to(q.dtype)": "Your mask of 0s and 1s is "
        "added to the scores, so nothing is hidden. Pass booleans, or −∞ where a query may not look.",
        "turn(q), turn(k) → q, k": "`turn` is not used: where it is given, apply it to queries and keys.",
        "w_v.T → w_v.T\n    if turn is not None:\n        q, k = turn(q), turn(k) ;; turn(q), turn(k) → "
        "q, k": "You call `turn` before you split the heads. It needs queries and keys of shape (b, heads, tokens, d / "
        "heads).",
        "turn(q), turn(k) → turn(q.transpose(1, 2)).transpose(1, 2), turn(k.transpose(1, "
        "2)).transpose(1, 2)": "You call `turn` while the tokens still come before the heads. It needs the shape (b, "
        "heads, tokens, d / heads).",
        "q, k = turn(q), turn(k) → q, k, v = turn(q), turn(k), turn(v)": "You turn the values, too. Only queries and "
        "keys are turned.",
        "turn(q), turn(k) → turn(q), k": "You turn the queries only. The keys are turned by the same function.",
        "attn_mask=visible → is_causal=visible is not None": "You use `visible` only to switch `is_causal` on. It may "
        "hide any keys: pass the mask itself.",
        "mixed = change(mixed) → pass": "`change` is not used: where it is given, apply it to the heads' results.",
        "mixed = change(mixed) → mixed = change(mixed.transpose(1, 2)).transpose(1, 2)": "You call `change` when the "
        "tokens come before the heads. It needs the shape (b, heads, s, d / heads).",
        "mixed = change(mixed) → pass ;; turn(q), turn(k) → turn(q), turn(k)\n    v = v if change is None else "
        "change(v)": "You change the values. `change` is for the heads' results, after attention.",
        "mixed = change(mixed) → return change(mixed).transpose(1, 2).flatten(2)": "Where `change` is given, your "
        "output projection is missing.",
    },
)


@multi_head.variant
def softmax_in_float32(*args: Any, visible: Tensor | None = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    split = (x.shape[0], -1, heads, x.shape[2] // heads)
    q, k, v = (y.matmul(w.T).reshape(split).transpose(1, 2) for y, w in ((x, w_q), (source, w_k), (source, w_v)))
    if turn:
        q, k = turn(q), turn(k)
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
    mixed = torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)
    mixed = change(mixed) if change else mixed
    return mixed.transpose(1, 2).reshape(x.shape).matmul(w_out.T)


multi_head.slips(
    softmax_in_float32,
    {
        "~visible → visible": "You fill scores where `visible` is True, and so hide what a query may look at. Fill "
        "those where it is False."
    },
)


@multi_head.variant
def head_after_head(*args: Any, visible: Tensor | None = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    width = x.shape[2] // heads
    results = []
    for head in range(heads):
        mine = slice(head * width, (head + 1) * width)
        q, k, v = x @ w_q[mine].T, source @ w_k[mine].T, source @ w_v[mine].T
        if turn is not None:
            q, k = turn(q[:, None])[:, 0], turn(k[:, None])[:, 0]
        scores = q @ k.transpose(1, 2) / math.sqrt(width)
        if visible is not None:
            scores = scores.masked_fill(visible.logical_not(), float("-inf"))
        results.append(scores.softmax(-1) @ v)
    stacked = torch.stack(results, 1)
    stacked = stacked if change is None else change(stacked)
    return sum(stacked[:, head] @ w_out[:, head * width : (head + 1) * width].T for head in range(heads))


@multi_head.variant
def view_and_transpose(
    *args: Any, visible: Tensor | None = None, turn: Any = lambda y: y, change: Any = lambda y: y
) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    batch, s, d = x.shape
    t = source.shape[1]
    q = F.linear(x, w_q).view(batch, s, heads, d // heads).transpose(1, 2)
    k = F.linear(source, w_k).view(batch, t, heads, d // heads).transpose(1, 2)
    v = F.linear(source, w_v).view(batch, t, heads, d // heads).transpose(1, 2)
    mask = torch.zeros(s, t, dtype=x.dtype)
    if visible is not None:
        mask[~visible] = -torch.inf
    mixed = F.scaled_dot_product_attention(turn(q), turn(k), v, attn_mask=mask)
    return F.linear(change(mixed).transpose(1, 2).contiguous().view(batch, s, d), w_out)


@multi_head.variant
def weights_cut_into_heads(*args: Any, visible: Tensor | None = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    d = x.shape[-1]
    cut_q, cut_k, cut_v = (w.reshape(heads, d // heads, d) for w in (w_q, w_k, w_v))
    q = torch.einsum("bid,hed->bhie", x, cut_q) * (d // heads) ** -0.5
    k = torch.einsum("bjd,hed->bhje", source, cut_k)
    if turn:
        q, k = turn(q), turn(k)
    scores = torch.einsum("bhie,bhje->hbij", q, k)
    if visible is not None:
        scores = torch.where(visible, scores, -torch.inf)
    results = torch.einsum("hbij,hbje->bhie", scores.softmax(dim=-1), torch.einsum("hef,bjf->hbje", cut_v, source))
    results = results if change is None else change(results)
    mixed: Tensor = torch.einsum("bhie,dhe->bid", results, w_out.reshape(d, heads, d // heads))
    return mixed
