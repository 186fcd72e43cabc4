"""The exercise on the attention sub-layer, made of a rotary embedding and attention."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def cut_one_by_one(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    width = out.shape[1] // heads
    sizes = [heads * width, kv_heads * width, kv_heads * width]
    rows, counts = torch.split(x @ qkv.T, sizes, dim=-1), (heads, kv_heads, kv_heads)
    at = torch.arange(x.shape[1])
    q, k, v = (y.reshape(*x.shape[:2], n, -1).transpose(1, 2) for y, n in zip(rows, counts, strict=True))
    z: Tensor = attend(rope(q, at, theta), rope(k, at, theta), v)
    return rearrange(z, "b h s d -> b s (h d)") @ out.T


ROPE = "rope = lambda y, positions, theta: y + y.flip(-1) * positions[:, None].double() / theta\n"
SUM = "attend = lambda q, k, v: q + 10 * k + 100 * v\n"
SHARED = "share = lambda q, y: y.repeat_interleave(q.shape[1] // y.shape[1], 1)\n"
ATTEND = SHARED + "attend = lambda q, k, v: (q @ share(q, k).mT).tril() @ share(q, v)\n"
KEPT = "import torch\nkept = []\nattend = lambda q, k, v: kept.append([q, k, v]) or q * 1\n"


def _ask(name: str, heads: int, kv_heads: int, theta: float, how: str, **tensors: Tensor) -> Case:
    call = f"self_attention(x, qkv, out, {heads}, {kv_heads}, {theta}, rope, attend)"
    lines = f"y = {call}\n[torch.cat(texts) for texts in zip(*kept)]\ny" if how == KEPT else call
    return script(name, ROPE + how + lines, **tensors)


def _drawn(name: str, random: Random, *sizes: int, theta: float = 10.0, how: str = ATTEND) -> Case:
    b, s, d, heads, kv_heads, width = sizes
    x = normal64(random, b, s, d)
    qkv, out = normal64(random, (heads + 2 * kv_heads) * width, d, scale=0.5), normal64(random, d, heads * width)
    return _ask(name, heads, kv_heads, theta, how, x=x, qkv=qkv, out=out)


X = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
ROWS = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], dtype=torch.float64)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    stays = ROPE + ATTEND + "y = self_attention(x, qkv, out, 2, 1, 10.0, rope, attend)\nx\nqkv\nout"
    tensors = {"x": normal64(fixed, 2, 3, 4), "qkv": normal64(fixed, 8, 4), "out": normal64(fixed, 4, 4)}
    return [
        _drawn("other shapes", fixed, 2, 3, 8, 4, 4, 2),
        _drawn("other shapes", fixed, 1, 5, 6, 2, 2, 4),
        _drawn("fewer key heads", fixed, 2, 4, 8, 4, 2, 2),
        _drawn("fewer key heads", fixed, 2, 4, 6, 6, 1, 2),
        _drawn("heads of another width", fixed, 2, 4, 6, 3, 3, 4),
        _drawn("heads of another width", fixed, 2, 4, 8, 4, 2, 6),
        _drawn("one token", fixed, 3, 1, 4, 2, 1, 2),
        _drawn("another base", fixed, 1, 4, 4, 2, 2, 2, theta=500.0),
        _drawn("what attention is given", fixed, 2, 3, 4, 2, 1, 2, how=KEPT),
        _drawn("what attention is given", fixed, 1, 4, 6, 3, 3, 2, how=KEPT),
        script("inputs stay", stays, **tensors),
        *(_drawn("other shapes", random, 2, s, 6, 4, 2, 4) for s in random.sample(range(2, 9), 2)),
    ]


self_attention = Exercise(
    "self_attention",
    points=3,
    minutes=13,
    difficulty=3,
    reference=cut_one_by_one,
    differentiable=True,
    cases=[
        _ask("one head of two features", 1, 1, 4.0, SUM, x=X, qkv=ROWS, out=torch.eye(2, dtype=torch.float64)[:1]),
        _drawn("two heads", Random(1), 1, 3, 4, 2, 2, 2, how=SUM),
        _drawn("what attention is given", Random(2), 2, 3, 4, 2, 1, 2, how=KEPT),
        _drawn("four heads, two key heads", Random(3), 2, 3, 8, 4, 2, 2),
        _drawn("heads wider than d_model / heads", Random(4), 1, 3, 4, 2, 2, 4),
        _drawn("another base", Random(5), 1, 3, 4, 2, 1, 2, theta=1000.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "x @ qkv.T contains heads + 2 · kv_heads vectors per token, one after the other. How wide is each?",
        'einops: "b s (h d) -> b h s d" with h=heads + 2 * kv_heads, then split along the heads into q, k and v.',
        'rope for q and for k, with positions 0 … s − 1, not for v. Then attend, and back: "b h s d -> b s (h d)", '
        "times out.T.",
    ],
)


@self_attention.variant
def heads_first(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    y = rearrange(x @ qkv.T, "b s (h d) -> b h s d", h=heads + 2 * kv_heads)
    q, k, v = torch.split(y, [heads, kv_heads, kv_heads], dim=1)
    positions = torch.arange(x.shape[1])
    z: Tensor = attend(rope(q, positions, theta), rope(k, positions, theta), v)
    return rearrange(z, "b h s d -> b s (h d)") @ out.T


self_attention.slips(
    heads_first,
    {
        "theta), v) → theta), rope(v, positions, theta))": "You rotate the values, too. Only queries and keys are "
        "rotated: the score depends on positions, the value does not.",
        "rope(k, positions, theta) → k": "Your keys are not rotated. If both are, a score depends on the *difference* "
        "of their positions alone.",
        "rope(q, positions, theta) → q": "Your queries are not rotated. A score compares positions only if both are.",
        'b s (h d)") @ → b s (d h)") @': "You join the heads feature by feature, (d h). `out` reads them side by side, "
        "(h d): a whole head, then the next.",
        "rope(q, positions, theta), rope(k, positions, theta) → q, k": "You rotate nothing. Without `rope`, a score "
        "does not depend on the positions of its two tokens.",
        "torch.arange(x.shape[1]) → torch.arange(x.shape[1]) + 1": "Positions start at 0. Yours start at 1.",
        "rope(q, positions, theta), rope(k, positions, theta) → rope(q, positions, 10_000.0), rope(k, positions, "
        "10_000.0)": "`theta` does not reach `rope`: yours always rotates with 10,000.",
        "q, k, v = torch.split(y, [heads, kv_heads, kv_heads] → k, q, v = "
        "torch.split(y, [kv_heads, heads, kv_heads]": "Queries and keys are swapped. The fused matrix holds queries, "
        "keys, values, and `attend` takes them in this order.",
        "q, k, v = → q, v, k =": "Values come last in the fused matrix. You swapped keys and values.",
        "b s (h d) -> → b s (d h) ->": "You take every h-th feature, (d h). A head is a block of neighbouring "
        "features, (h d).",
        'rearrange(z, "b h s d -> b s (h d)") → z.reshape(*x.shape[:2], -1)': "You do not join the heads correctly: a "
        "reshape of (b, h, s, d) without a transpose mixes tokens.",
        " @ out.T → ": "You leave out `out`. The joined heads go through it before they are added to the stream.",
        'rearrange(z, "b h s d -> b s (h d)") @ out.T → sum(z[:, h] @ out.T.split(q.shape[-1], dim=1)[h].T for h in '
        "range(heads)) || out.T → out": "You multiply by `out` itself. It is (out, in), like every weight of "
        "nn.Linear: multiply by its transpose.",
        "return rearrange → return x + rearrange": "You add x to your result. The block adds it (notebook 10): a "
        "sub-layer returns only what it adds.",
        "theta), v) → theta), v.detach())": "Your values are detached, so they get no gradient. The result is right, "
        "but the model learns less.",
        "rope(q, positions, theta), rope(k, positions, theta) → rope(q, positions, theta).detach(), rope(k, positions, "
        "theta).detach()": "Your queries and keys are detached, so they get no gradient. The model could never learn "
        "where to look.",
        "y = rearrange → x, qkv, out = x.detach(), qkv.detach(), out.detach()\n    y = rearrange": "No gradient "
        "passes: you compute under `torch.no_grad`, or detach. The model will be trained with this.",
        '"b s (h d) -> b h s d", h=heads + 2 * kv_heads → "b s (g r d) -> b r g s d", g=kv_heads, r=heads // kv_heads '
        '+ 2 ;; torch.split(y, [heads, kv_heads, kv_heads], dim=1) → rearrange(y[:, :-2], "b r g s d -> b (g r) s d"), '
        "y[:, -2], y[:, -1]": "You read the rows head by head, with the query, key and value of each side by side. "
        "Here all queries come first, then all keys, then all values.",
        'rearrange(x @ qkv.T, "b s (h d) -> b h s d", h=heads + 2 * kv_heads) → (x @ qkv.T).view(len(x), heads + 2 * '
        "kv_heads, x.shape[1], -1)": "You view the product as (b, heads, s, d_head), which mixes tokens. View it as "
        "(b, s, heads, d_head), and then swap two axes.",
        "rope(q, positions, theta) → rope(q, positions, theta) / q.shape[-1] ** 0.5": "You scale the queries by "
        "1/√d_head. `attend` already does that (notebook 08).",
        "rope(k, positions, theta), v → rope(k, positions, theta).repeat_interleave(heads // kv_heads, 1), "
        "v.repeat_interleave(heads // kv_heads, 1)": "You repeat keys and values before `attend`. It accepts the "
        "smaller number of heads and shares them itself.",
        "h=heads + 2 * kv_heads → d=x.shape[2] // heads": "Your heads are d / heads wide, so the pieces of your "
        "split do not add up to the rows of `qkv`. Read the width of a head off the shape of `qkv` or `out`.",
        "torch.split(y, [heads, kv_heads, kv_heads], dim=1) → y[:, 0::3], y[:, 1::3], y[:, 2::3]": "You take every "
        "third head. All query heads come first, then all key heads, then all value heads.",
        "torch.split(y, [heads, kv_heads, kv_heads], dim=1) → y.chunk(3, dim=1)": "You cut the heads into thirds. "
        "There may be fewer key and value heads than query heads: use `kv_heads`.",
        "torch.arange(x.shape[1]) → torch.arange(x.shape[0])": "Your positions count the texts. Count the tokens of "
        "a text, x.shape[1].",
        "rope(q, positions, theta), rope(k, positions, theta) → rope(q.transpose(1, 2), positions, "
        "theta).transpose(1, 2), rope(k.transpose(1, 2), positions, theta).transpose(1, 2)": "`rope` gets your "
        "tokens before your heads, so it takes heads for positions. It wants (b, h, s, d_head).",
        "attend(rope(q, positions, theta), rope(k, positions, theta), v) → F.scaled_dot_product_attention(rope(q, "
        "positions, theta), rope(k, positions, theta), v, is_causal=True)": "You do not call `attend` but an "
        "attention of your own. The check passes another function.",
    },
)


self_attention.variant(cut_one_by_one)
self_attention.slips(
    cut_one_by_one,
    {
        "q, k, v = ( → flat = [rope(y[:, None], at, theta)[:, 0] for y in rows[:2]]\n    q, k, v = ( ;; zip(rows, → "
        "zip([*flat, rows[2]], ;; rope(q, at, theta), rope(k, at, theta) → q, k": "You rotate queries and keys before "
        "you cut them into heads. `rope` takes (b, h, s, d_head): each head by itself.",
        'y.reshape(*x.shape[:2], n, -1).transpose(1, 2) → y.reshape(len(x), n, x.shape[1], -1) ;; rearrange(z, "b h s '
        'd -> b s (h d)") → z.reshape(*x.shape[:2], -1)': "You reshape to (b, h, s, d_head) at once, which mixes "
        "tokens and heads. Cut into (b, s, h, d_head) first, then swap the axes, and swap them back before you join "
        "the heads.",
        "y.reshape(*x.shape[:2], n, -1).transpose(1, 2) → y.reshape(len(x), n, x.shape[1], -1)": "A view or reshape to "
        "(b, h, s, d) mixes tokens. Split the last axis into heads, and then swap the axes of heads and tokens.",
        "out.shape[1] → x.shape[2] ;; sizes = [heads * width, kv_heads * width, kv_heads * width] → ends = [heads * "
        "width, (heads + kv_heads) * width] ;; torch.split(x @ qkv.T, sizes → torch.tensor_split(x @ qkv.T, ends || "
        "out.shape[1] → x.shape[2] ;; sizes = [heads * width, kv_heads * width, kv_heads * width] → ends = [heads * "
        "width, (heads + kv_heads) * width] ;; torch.split(x @ qkv.T, sizes → torch.tensor_split(x @ qkv.T, ends ;; n, "
        "-1) → n, width)": "Your heads are d / heads wide, so your slices do not fit `qkv`. Read the width of a head "
        "off the shape of `qkv` or `out`.",
        "    z: →     q = rows[0].reshape(len(x), heads, x.shape[1], -1)\n    z:": "You reshape the queries to (b, h, "
        "s, d_head) at once, which mixes tokens. Cut them into (b, s, h, d_head), then swap two axes.",
        '    z: →     q = rearrange(rows[0], "b s (e h) -> b h s e", h=heads)\n    z:': "Your query heads take every "
        "h-th feature, (e h). A head is a block of neighbouring features, (h e).",
        "reshape(*x.shape[:2], n, -1).transpose(1, 2) → reshape(*x.shape[:2], -1, n).permute(0, 3, 1, 2)": "Your heads "
        "take every h-th feature of the queries, keys and values, (e h). A head is a block of neighbours, (h e).",
        "out.shape[1] → x.shape[2]": "Your heads are d / heads wide, so the pieces of your split do not add up to the "
        "rows of `qkv`. Read the width of a head off the shape of `qkv` or `out`.",
    },
)


self_attention.equivalent_mutant(
    "positions = torch.arange(x.shape[1], device=x.device) → positions = torch.arange(x.shape[1])",
    "on a processor the device is the default; answers are judged there",
)
