"""The exercise on the attention sub-layer, made of a rotary embedding and attention."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.transformer.exercises.right_attention import RIGHT_ATTENTIONS
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _head_by_head(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    """Give every head its own rows of the fused matrix, and its own columns of the output matrix."""
    width = qkv.shape[0] // (heads + 2 * kv_heads)
    vectors = [torch.einsum("bsd,nd->bsn", x, rows) for rows in qkv.split(width)]  # type: ignore[no-untyped-call]
    positions = torch.arange(x.shape[1])
    q, k = (
        torch.stack([rope(vector[:, None], positions, theta)[:, 0] for vector in some], dim=1)
        for some in (vectors[:heads], vectors[heads : heads + kv_heads])
    )
    mixed = attend(q, k, torch.stack(vectors[heads + kv_heads :], dim=1))
    columns = out.split(width, dim=1)  # type: ignore[no-untyped-call]
    return sum((mixed[:, h] @ columns[h].T for h in range(heads)), torch.zeros_like(x[..., :1]))


ROPE = "rope = lambda y, positions, base: y + y.flip(-1) * positions[:, None].double() / base\n"
SUM = "attend = lambda q, k, v: q + 10 * k + 100 * v\n"
SHARED = "share = lambda q, y: y.repeat_interleave(q.shape[1] // y.shape[1], 1)\n"
ATTEND = SHARED + "attend = lambda q, k, v: (q @ share(q, k).mT).tril() @ share(q, v)\n"
KEPT = "import torch\nkept = []\nattend = lambda q, k, v: kept.append([q, k, v]) or q * 1\n"


def _ask(name: str, heads: int, kv_heads: int, theta: float, how: str, **tensors: Tensor) -> Case:
    call = f"self_attention(x, qkv, out, {heads}, {kv_heads}, {theta}, rope, attend)"
    lines = f"y = {call}\n[torch.cat(texts) for texts in zip(*kept)]\ny" if how == KEPT else call
    return script(name, ROPE + how + lines, **tensors)


def _drawn(
    name: str,
    random: Random,
    b: int,
    s: int,
    d: int,
    heads: int,
    kv_heads: int,
    width: int,
    theta: float = 10.0,
    how: str = ATTEND,
) -> Case:
    x = normal64(random, b, s, d)
    qkv, out = normal64(random, (heads + 2 * kv_heads) * width, d, scale=0.5), normal64(random, d, heads * width)
    return _ask(name, heads, kv_heads, theta, how, x=x, qkv=qkv, out=out)


X = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
ROWS = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], dtype=torch.float64)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    stays = ROPE + ATTEND + "y = self_attention(x, qkv, out, 2, 1, 10.0, rope, attend)\nx\nqkv\nout"
    tensors = {
        "x": normal64(fixed, 2, 3, 4),
        "qkv": normal64(fixed, 8, 4),
        "out": normal64(fixed, 4, 4),
    }
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
    points=4,
    minutes=15,
    difficulty=3,
    reference=_head_by_head,
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


for right_answer in RIGHT_ATTENTIONS:
    self_attention.variant(right_answer)


def _attended(
    x: Tensor, qkv: Tensor, heads: int, kv_heads: int, rotate: Any, attend: Any, pattern: str = "b s (h d) -> b h s d"
) -> Tensor:
    split = rearrange(x @ qkv.T, pattern, h=heads + 2 * kv_heads)
    q, k, v = split.split([heads, kv_heads, kv_heads], dim=1)  # type: ignore[no-untyped-call]
    return attend(*rotate(q, k, v))  # type: ignore[no-any-return]


def _merge(mixed: Tensor) -> Tensor:
    return rearrange(mixed, "b h s d -> b s (h d)")


@self_attention.misconception(
    "You rotate the values, too. Only queries and keys are rotated: the score depends on positions, the value does not."
)
def values_rotated(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    return _merge(_attended(x, qkv, heads, kv_heads, lambda *y: [rope(z, at, theta) for z in y], attend)) @ out.T


@self_attention.misconception(
    "Your keys are not rotated. If both are, a score depends on the *difference* of their positions alone."
)
def keys_not_rotated(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    return _merge(_attended(x, qkv, heads, kv_heads, lambda q, k, v: (rope(q, at, theta), k, v), attend)) @ out.T


@self_attention.misconception("Your queries are not rotated. A score compares positions only if both are.")
def queries_not_rotated(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    return _merge(_attended(x, qkv, heads, kv_heads, lambda q, k, v: (q, rope(k, at, theta), v), attend)) @ out.T


@self_attention.misconception(
    "You rotate queries and keys before you cut them into heads. `rope` takes (b, h, s, d_head): each head by itself."
)
def rotated_before_the_cut(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, width = torch.arange(x.shape[1]), qkv.shape[0] // (heads + 2 * kv_heads)
    sizes = [heads * width, kv_heads * width, kv_heads * width]
    q, k, v = (x @ qkv.T).split(sizes, dim=-1)  # type: ignore[no-untyped-call]
    rows = (rope(q[:, None], at, theta)[:, 0], rope(k[:, None], at, theta)[:, 0], v)
    return _merge(attend(*(rearrange(each, "b s (h d) -> b h s d", d=width) for each in rows))) @ out.T


@self_attention.misconception(
    "You join the heads feature by feature, (d h). `out` reads them side by side, (h d): a whole head, then the next."
)
def joined_by_feature(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    rotated = lambda q, k, v: (rope(q, at, theta), rope(k, at, theta), v)  # noqa: E731
    return rearrange(_attended(x, qkv, heads, kv_heads, rotated, attend), "b h s d -> b s (d h)") @ out.T


@self_attention.misconception(
    "You reshape to (b, h, s, d_head) at once, which mixes tokens and heads. Cut into (b, s, h, d_head) first, then "
    "swap the axes, and swap them back before you join the heads."
)
def reshaped_at_once(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    (b, s, _), at, width = x.shape, torch.arange(x.shape[1]), qkv.shape[0] // (heads + 2 * kv_heads)
    sizes = [heads * width, kv_heads * width, kv_heads * width]
    q, k, v = (x @ qkv.T).split(sizes, dim=-1)  # type: ignore[no-untyped-call]
    q, k, v = (each.reshape(b, -1, s, width) for each in (q, k, v))
    return attend(rope(q, at, theta), rope(k, at, theta), v).reshape(b, s, -1) @ out.T  # type: ignore[no-any-return]


@self_attention.misconception(
    "You rotate nothing. Without `rope`, a score does not depend on the positions of its two tokens."
)
def no_rope(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    return _merge(_attended(x, qkv, heads, kv_heads, lambda *y: y, attend)) @ out.T


@self_attention.misconception("Positions start at 0. Yours start at 1.")
def from_one(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    return _head_by_head(x, qkv, out, heads, kv_heads, theta, lambda y, at, base: rope(y, at + 1, base), attend)


@self_attention.misconception("`theta` does not reach `rope`: yours always rotates with 10,000.")
def usual_base(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    return _head_by_head(x, qkv, out, heads, kv_heads, 10_000.0, rope, attend)


@self_attention.misconception("The fused matrix holds queries, then keys, then values. Yours reads keys first.")
def keys_first(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    width = qkv.shape[0] // (heads + 2 * kv_heads)
    w_k, w_q, w_v = qkv.split([kv_heads * width, heads * width, kv_heads * width])  # type: ignore[no-untyped-call]
    return _head_by_head(x, torch.cat([w_q, w_k, w_v]), out, heads, kv_heads, theta, rope, attend)


@self_attention.misconception("Values come last in the fused matrix. You swapped keys and values.")
def values_before_keys(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    width = qkv.shape[0] // (heads + 2 * kv_heads)
    w_q, w_v, w_k = qkv.split([heads * width, kv_heads * width, kv_heads * width])  # type: ignore[no-untyped-call]
    return _head_by_head(x, torch.cat([w_q, w_k, w_v]), out, heads, kv_heads, theta, rope, attend)


@self_attention.misconception("You take every h-th feature, (d h). A head is a block of neighbouring features, (h d).")
def interleaved(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, pattern = torch.arange(x.shape[1]), "b s (d h) -> b h s d"
    rotated = lambda q, k, v: (rope(q, at, theta), rope(k, at, theta), v)  # noqa: E731
    return _merge(_attended(x, qkv, heads, kv_heads, rotated, attend, pattern)) @ out.T


@self_attention.misconception(
    "You do not join the heads correctly: a reshape of (b, h, s, d) without a transpose mixes tokens."
)
def merged_by_reshape(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    rotated = lambda q, k, v: (rope(q, at, theta), rope(k, at, theta), v)  # noqa: E731
    mixed = _attended(x, qkv, heads, kv_heads, rotated, attend)
    return mixed.reshape(x.shape[0], x.shape[1], -1) @ out.T


@self_attention.misconception(
    "You leave out `out`. The joined heads go through it before they are added to the stream."
)
def without_out(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at = torch.arange(x.shape[1])
    return _merge(
        _attended(x, qkv, heads, kv_heads, lambda q, k, v: (rope(q, at, theta), rope(k, at, theta), v), attend)
    )


@self_attention.misconception(
    "You multiply by `out` itself. It is (out, in), like every weight of nn.Linear: multiply by its transpose."
)
def out_not_transposed(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    return _head_by_head(x, qkv, out.T, heads, kv_heads, theta, rope, attend)


@self_attention.misconception(
    "You add x to your result. The block adds it (notebook 10): a sub-layer returns only what it adds."
)
def adds_the_stream(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    return x + _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, attend)


@self_attention.misconception(
    "Your values are detached, so they get no gradient. The result is right, but the model learns less."
)
def values_detached(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    without = lambda q, k, v: attend(q, k, v.detach())  # noqa: E731
    return _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, without)


@self_attention.misconception(
    "Your queries and keys are detached, so they get no gradient. The model could never learn where to look."
)
def scores_detached(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    without = lambda q, k, v: attend(q.detach(), k.detach(), v)  # noqa: E731
    return _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, without)


@self_attention.misconception(
    "No gradient passes: you compute under `torch.no_grad`, or detach. The model will be trained with this."
)
def without_a_graph(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    with torch.no_grad():
        return _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, attend)


@self_attention.misconception(
    "You read the rows head by head, with the query, key and value of each side by side. Here all queries come first, "
    "then all keys, then all values."
)
def per_head_layout(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, inside = torch.arange(x.shape[1]), heads // kv_heads
    groups = rearrange(x @ qkv.T, "b s (g r d) -> b r g s d", g=kv_heads, r=inside + 2)
    q = rearrange(groups[:, :inside], "b r g s d -> b (g r) s d")
    mixed = attend(rope(q, at, theta), rope(groups[:, -2], at, theta), groups[:, -1])
    return _merge(mixed) @ out.T


@self_attention.misconception(
    "A view or reshape to (b, h, s, d) mixes tokens. Split the last axis into heads, and then swap the axes of heads "
    "and tokens."
)
def split_by_view(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, (b, s, _) = torch.arange(x.shape[1]), x.shape
    width = qkv.shape[0] // (heads + 2 * kv_heads)
    sizes = [heads * width, kv_heads * width, kv_heads * width]
    q, k, v = (y.reshape(b, -1, s, width) for y in (x @ qkv.T).split(sizes, dim=-1))  # type: ignore[no-untyped-call]
    return _merge(attend(rope(q, at, theta), rope(k, at, theta), v)) @ out.T


@self_attention.misconception(
    "You view the product as (b, heads, s, d_head), which mixes tokens. View it as (b, s, heads, d_head), and then "
    "swap two axes."
)
def viewed_before_the_split(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, (b, s, _) = torch.arange(x.shape[1]), x.shape
    split = (x @ qkv.T).reshape(b, heads + 2 * kv_heads, s, -1)
    q, k, v = split.split([heads, kv_heads, kv_heads], dim=1)  # type: ignore[no-untyped-call]
    return _merge(attend(rope(q, at, theta), rope(k, at, theta), v)) @ out.T


@self_attention.misconception(
    "Your heads are d / heads wide, so your slices do not fit `qkv`. Read the width of a head off the shape of `qkv` "
    "or `out`."
)
def width_from_d_sliced(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, (b, s, d) = torch.arange(x.shape[1]), x.shape
    y, m, n = x @ qkv.T, heads * (d // heads), (heads + kv_heads) * (d // heads)
    q, k, v = y[..., :m].reshape(b, s, heads, -1), y[..., m:n].reshape(b, s, kv_heads, -1), y[..., n:]
    values = v.reshape(b, s, kv_heads, -1).transpose(1, 2)
    mixed = attend(rope(q.transpose(1, 2), at, theta), rope(k.transpose(1, 2), at, theta), values)
    return _merge(mixed) @ out.T


@self_attention.misconception(
    "Your heads are d / heads wide, so the pieces of your split do not add up to the rows of `qkv`. Read the width of "
    "a head off the shape of `qkv` or `out`."
)
def width_from_d_split(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    at, width = torch.arange(x.shape[1]), x.shape[-1] // heads
    pieces = (x @ qkv.T).split([heads * width, kv_heads * width, kv_heads * width], dim=-1)  # type: ignore[no-untyped-call]
    q, k, v = (rearrange(piece, "b s (h d) -> b h s d", d=width) for piece in pieces)
    return _merge(attend(rope(q, at, theta), rope(k, at, theta), v)) @ out.T


@self_attention.misconception("You scale the queries by 1/√d_head. `attend` already does that (notebook 08).")
def scaled_twice(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    width = qkv.shape[0] // (heads + 2 * kv_heads)
    return _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, lambda q, k, v: attend(q / width**0.5, k, v))


@self_attention.misconception(
    "You repeat keys and values before `attend`. It accepts the smaller number of heads and shares them itself."
)
def keys_repeated(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    times = heads // kv_heads
    repeated = lambda q, k, v: attend(q, k.repeat_interleave(times, 1), v.repeat_interleave(times, 1))  # noqa: E731
    return _head_by_head(x, qkv, out, heads, kv_heads, theta, rope, repeated)


self_attention.equivalent_mutant(
    "positions = torch.arange(x.shape[1], device=x.device) → positions = torch.arange(x.shape[1])",
    "on a processor the device is the default; answers are judged there",
)
