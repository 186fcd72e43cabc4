"""The exercise on reading index notation."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.tensors.exercises.inputs import turned
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _summed(q: Tensor, k: Tensor, x: Tensor, w: Tensor) -> dict[str, Tensor]:
    """Write out every product with its axes in place, then sum, in double precision."""
    d_q, d_k, d_x, d_w = (tensor.double() for tensor in (q, k, x, w))
    results = {
        "scores": (d_q[:, :, None] * d_k[:, None]).sum(-1).permute(0, 3, 1, 2),
        "gated": d_x * d_w,
        "gram": (d_x[..., :, None] * d_x[..., None, :]).sum((0, 1)),
        "norms": (d_q**2).sum((1, 3)),
    }
    return {name: result.to(q.dtype) for name, result in results.items()}


def _inputs(
    random: Random, b: int, s: int, t: int, h: int, d: int, e: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    """The tensors q, k, x and w; in half precision they hold small integers, whose sums are exact."""
    make = normal if dtype in (torch.float32, torch.float64) else integers
    shapes = (b, s, h, d), (b, t, h, d), (b, s, e), (e,)
    return tuple(make(random, *shape, dtype=dtype) for shape in shapes)


FORMULAS = ("scores", "gated", "gram", "norms")


def _each(*inputs: Tensor, name: str = "{}") -> list[Case]:
    """A case for each formula, so that one mistake does not cost the points of all."""
    named = dict(zip(("q", "k", "x", "w"), inputs, strict=True))
    return [script(name.format(each), f'index_notation(q, k, x, w)["{each}"]', **named) for each in FORMULAS]


def _types(name: str, *inputs: Tensor) -> Case:
    """A case that asks for the dtypes alone, so that a wrong formula does not fail it."""
    lines = "[str(each.dtype) for each in index_notation(q, k, x, w).values()]"
    return script(name, lines, **dict(zip("qkxw", inputs, strict=True)))


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    b, s, t, h, d, e = random.sample(range(2, 8), 6)
    return [
        *_each(*_inputs(seen, 3, 2, 5, 4, 6, 7), name="{}, other inputs"),
        *_each(*_inputs(seen, 3, 3, 3, 3, 3, 3), name="{}, other inputs"),
        *_each(*_inputs(seen, 2, 1, 1, 3, 2, 4), name="{}, other inputs"),
        *_each(*_inputs(seen, 2, 3, 4, 2, 1, 1), name="{}, other inputs"),
        _types("other precisions", *_inputs(seen, 2, 3, 4, 2, 5, 6, torch.float64)),
        _types("other precisions", *_inputs(seen, 2, 3, 4, 2, 5, 6, torch.bfloat16)),
        *_each(*map(turned, _inputs(seen, 2, 3, 4, 2, 5, 6)), name="{}, other inputs"),
        *_each(*_inputs(random, b, s, t, h, d, e), name="{}, other inputs"),
        *_each(*_inputs(random, b, s, s, h, d, e), name="{}, other inputs"),
    ]


_FIXED = Random(3)

index_notation = Exercise(
    "index_notation",
    points=4,
    minutes=9,
    difficulty=2,
    reference=_summed,
    cases=[
        *_each(*_inputs(_FIXED, 2, 3, 4, 5, 6, 7)),
        _types("the dtype of the inputs, here float16", *_inputs(_FIXED, 2, 2, 2, 1, 2, 2, torch.float16)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Take the formulas one by one. Which letters are on both sides? They stay. Which are only on the right? They "
        "are summed.",
        "The pattern of einsum is the formula without the names of the tensors: letters of the factors, an arrow, "
        "letters of the result, in the order in which the left side has them.",
        '"b s h d, b t h d -> b h s t" is the first. In the third the same tensor comes twice, with different letters '
        "each time.",
    ],
)


@index_notation.variant
def torchs_own_einsum(q: Tensor, k: Tensor, x: Tensor, w: Tensor) -> dict[str, Tensor]:
    return {
        "scores": torch.einsum("bshd,bthd->bhst", q, k),
        "gated": torch.einsum("bse,e->bse", x, w),
        "gram": torch.einsum("bse,bsf->ef", x, x),
        "norms": torch.einsum("bshd,bshd->bh", q, q),
    }


index_notation.slips(
    torchs_own_einsum,
    {
        'return { → return tuple({ ;; "bshd,bshd->bh", q, q),\n    } → "bshd,bshd->bh", q, q),\n    }.values())': "You "
        "return the tensors without their names. Return a dict with the four names.",
        "bhst → bst": "In `scores` you sum over heads. h is on both sides of the formula, so it stays.",
        "bhst → bhts": "Your `scores` have keys before queries: the left side says b, h, s, t.",
        "bhst → bsht": "Your `scores` have the heads on the wrong axis: the left side says b, h, s, t.",
        "->bse → ->bs": "In `gated` you sum over e. It is on both sides, so nothing is summed.",
        "->ef → ->bef": "In `gram` you keep b. In the formula b and s are only on the right of =, so both are summed.",
        "bsf->ef → bse->e": "You take only the diagonal of `gram`. e and f are two indices: return all pairs.",
        "bsf->ef → ctf->ef": "In `gram` you sum over texts and tokens and then multiply. Both factors share b and s, "
        "so multiply first and sum after.",
        "bsf->ef → btf->ef": "In `gram` you sum over the tokens of a text and then multiply. Both factors share s: "
        "multiply first and sum after.",
        'torch.einsum("bshd,bthd->bhst", q, k) → q.reshape(len(q), q.shape[2], -1, q.shape[3]) @ k.reshape(len(k), '
        "k.shape[2], -1, k.shape[3]).mT": "For `scores` you bring the heads forward with a reshape, which mixes the "
        "numbers of tokens and heads. Move the axis: transpose, permute or einsum.",
        "q, q) → q, q) ** 0.5": "You take a root in `norms`. The formula is a sum of squares; no root is written.",
        "bshd->bh → bshd->bsh": "In `norms` you keep s. It is missing on the left, so it is summed.",
        "q, k) → q, k) / q.shape[-1] ** 0.5": "You divide `scores` by √d, as attention does. The formula has no such "
        "factor.",
        "x, x) → x, x) / len(x)": "Your `gram` is a mean over the texts. An index that is missing on the left is "
        "summed.",
        "bshd->bh → bthe->bh": "In `norms` you sum and then square. Square each number first, then sum.",
        "return { → q, k, x, w = q.float(), k.float(), x.float(), w.float()\n    return {": "Your results are float32. "
        "Keep the dtype of the inputs.",
    },
)


@index_notation.variant
def broadcasting(q: Tensor, k: Tensor, x: Tensor, w: Tensor) -> dict[str, Tensor]:
    flat = x.flatten(0, 1)
    return {
        "scores": q.transpose(1, 2) @ k.permute(0, 2, 3, 1),
        "gated": x.mul(w),
        "gram": flat.T @ flat,
        "norms": q.square().sum(dim=(1, 3)),
    }
