"""The open task: one attention layer that continues a repeating text."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.attention.one_layer import inspect_layer, measure_copying
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, NO_OPTIMIZER
from lmcourse.exercises.open_task import Band, OpenTask


def _late_keys(
    x: Tensor, source: Tensor, *weights: Any, visible: Any = None, turn: Any = None, change: Any = None
) -> Tensor:
    """Attend with keys that come one token late, head after head."""
    w_q, w_k, w_v, w_out, heads = weights
    late = torch.cat([torch.zeros_like(source[:, :1]), source[:, :-1]], dim=1)
    results = []
    for mine in zip(*(w.chunk(heads) for w in (w_q, w_k, w_v)), strict=True):
        q, k, v = (y @ w.T for y, w in zip((x, late, source), mine, strict=True))
        q, k = (y if turn is None else turn(y[:, None])[:, 0] for y in (q, k))
        results.append(F.scaled_dot_product_attention(q, k, v, attn_mask=visible))
    stacked = torch.stack(results, dim=1)
    return torch.cat((stacked if change is None else change(stacked)).unbind(dim=1), dim=-1) @ w_out.T


one_layer = Exercise(
    "one_layer",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_late_keys,
    seconds=60.0,
    cases=[case("seeds 0 to 2", seeds=[0, 1, 2])],
    hidden_cases=lambda _: [case("seeds 3 to 5", seeds=[3, 4, 5])],
    hints=[
        "What must a key say about its token, so that the query of the second 7 in 7 2 9 … 7 finds the first 2?",
        "What does layer 0 of two layers put into every token, and which of query, key and value needs it in layer 1?",
        "Change one of the three, and write down by hand, for 7 2 9 7, which query meets which key and gets which "
        "value. What does token 0 get? Is the future still hidden?",
    ],
    forbid=[*NO_AUTOGRAD, *NO_OPTIMIZER, "sys", "inspect", "gc"],
    task=OpenTask(
        inspect=inspect_layer,
        measure=measure_copying,
        baseline={
            "attention as in Exercise 4": {"run 1": 2.60, "run 2": 2.59, "run 3": 2.57, "mean": 2.58},
            "two layers of it": {"run 1": 0.47, "run 2": 0.46, "run 3": 0.38, "mean": 0.44},
        },
        finish={"mean": 0.9},
        bands=[
            Band(1, "causal, and it runs"),
            *(Band(1, at_most={"mean": loss}) for loss in (2.0, 1.2, 0.9)),
        ],
    ),
)


# 4 points: late keys, in several ways ----------------------------------------------------------------------------


@one_layer.idea(4)
def keys_one_late(
    x: Tensor,
    source: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_out: Tensor,
    heads: int,
    visible: Any = None,
    turn: Any = None,
    change: Any = None,
) -> Tensor:
    late = F.pad(source, (0, 0, 1, 0))[:, :-1]
    pairs = (x, w_q), (late, w_k), (source, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in pairs)
    if turn is not None:
        q, k = turn(q), turn(k)
    results = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    if change is not None:
        results = change(results)
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T


one_layer.slips(
    keys_one_late,
    {
        "attn_mask=visible → attn_mask=None": "It reads the future: at token 0 your layer knows token 1.",
        "(late, w_k), (source, w_v) → (source, w_k), (F.pad(source, (0, 0, 0, 1))[:, 1:], w_v)": "It reads the future: "
        "at token 0 your layer knows token 1.",
        "attn_mask=visible → attn_mask=visible if x.shape[1] <= 20 else None": "It reads the future: at token 0 your "
        "layer knows token 1.",
        "attn_mask=visible → attn_mask=visible | (torch.arange(len(visible))[:, None] > 8)": "It reads the future: at "
        "token 9 your layer knows token 10.",
        "F.pad(source, (0, 0, 1, 0))[:, :-1] → source.roll(1, dims=1)": "At token 1 your layer knows the last token: a "
        "roll brings the end of a text to its start.",
        "results = F.scaled_dot_product_attention(q, k, v, attn_mask=visible) → scores = (q @ k.mT / q.shape[-1] ** "
        "0.5).masked_fill(~visible.tril(-1), -torch.inf)\n    results = scores.softmax(dim=-1) @ v": "At token 0 your "
        "layer returns NaN or ∞. A query without any visible key gives NaN.",
        "F.pad(source, (0, 0, 1, 0))[:, :-1] → F.pad(source, (0, 0, 0, 0, 1, 0))[:-1]": "Text 1 gets another result if "
        "only text 0 is changed. Each text is read alone.",
        "attn_mask=visible → attn_mask=visible, dropout_p=0.1": "Called again with the same inputs, your layer returns "
        "something else. Keep and draw nothing.",
        "@ w_out.T → @ w_out.T / len(late[0])": "The results of the first 2 tokens depend on how long the text is.",
        "(x, w_q) → (x, torch.eye(x.shape[-1]))": "`w_q` is not used: with another one, your layer returns the same. "
        "It has to use all four.",
        "@ w_out.T → ": "`w_out` is not used: with another one, your layer returns the same. It has to use all four.",
        "results = change(results) → pass": "`change` is not used: where it is given, apply it to the heads' results, "
        "as in Exercise 4.",
        "late = F.pad(source, (0, 0, 1, 0))[:, :-1] → late = source\n    late[:, 1:] = source[:, :-1].clone()": "Your "
        "layer changes its inputs in place. Return a new tensor, and leave x and the weights alone.",
        'rearrange(results, "b h s d -> b s (h d)") @ w_out.T → results': "Return a tensor of the shape of x, here "
        "(32, 31, 32); yours is of shape (32, 2, 31, 16).",
    },
)


@one_layer.idea(4)
def values_of_the_next_token_without_the_own(
    *args: Any, visible: Any = None, turn: Any = None, change: Any = None
) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    s = x.shape[1]
    following = torch.cat([source[:, 1:], torch.zeros_like(source[:, :1])], dim=1)
    inputs = (x, w_q), (source, w_k), (following, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in inputs)
    scores = turn(q) @ turn(k).mT / q.shape[-1] ** 0.5
    earlier = visible & ~torch.eye(s).bool()
    weights = scores.masked_fill(~earlier, -torch.inf).softmax(dim=-1).nan_to_num()
    results = weights @ v
    if change is not None:
        results = change(results)
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T


# fewer points ----------------------------------------------------------------------------------------------------


@one_layer.idea(2)
def the_same_weights_twice(*args: Any, visible: Any = None, turn: Any = None, change: Any = None) -> Tensor:
    x, _, w_q, w_k, w_v, w_out, heads = args
    y = x
    for _ in range(2):
        q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for w in (w_q, w_k, w_v))
        results = F.scaled_dot_product_attention(turn(q), turn(k), v, attn_mask=visible)
        results = change(results) if change else results
        y = y + rearrange(results, "b h s d -> b s (h d)") @ w_out.T
    return y - x


@one_layer.idea(1)
def as_in_exercise_4(*args: Any, visible: Any = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    inputs = (x, w_q), (source, w_k), (source, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in inputs)
    results = F.scaled_dot_product_attention(turn(q), turn(k), v, attn_mask=visible)
    results = change(results) if change else results
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T


# not valid -------------------------------------------------------------------------------------------------------


@one_layer.misconception("`w_q` is not used: with another one, your layer returns the same. It has to use all four.")
def equal_tokens_matched_by_hand(*args: Any, visible: Any = None, turn: Any = None, change: Any = None) -> Tensor:
    x, source, _, _, w_v, w_out, heads = args
    before = F.pad(source, (0, 0, 1, 0))[:, :-1]
    scores = 50.0 * (x @ before.mT > x.shape[-1] - 0.1)[:, None].expand(-1, heads, -1, -1)
    v = rearrange(source @ w_v.T, "b s (h d) -> b h s d", h=heads)
    results = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1) @ v
    results = change(results) if change else results
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T


@one_layer.idea(0)
def two_equal_tokens_matched_by_hand_and_a_little_learned(
    *args: Any, visible: Any = None, turn: Any = None, change: Any = None
) -> Tensor:
    x, source, w_q, w_k, w_v, w_out, heads = args
    one, two = (F.pad(source, (0, 0, back, 0))[:, : x.shape[1]] for back in (1, 2))
    same = (x @ one.mT > x.shape[-1] - 0.1) & (one @ two.mT > x.shape[-1] - 0.1)
    inputs = (x, w_q), (source, w_k), (source, w_v)
    q, k, v = (rearrange(y @ w.T, "b s (h d) -> b h s d", h=heads) for y, w in inputs)
    scores = 50.0 * same[:, None] + 0.5 * turn(q) @ turn(k).mT
    results = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1) @ v
    results = change(results) if change else results
    return rearrange(results, "b h s d -> b s (h d)") @ w_out.T
