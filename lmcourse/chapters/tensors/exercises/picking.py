"""The exercise on picking numbers by index and putting them back."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.tensors.exercises.inputs import turned
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _by_masks(
    scores: Tensor, tokens: Tensor, states: Tensor, lengths: Tensor, rows: Tensor, owner: Tensor, count: int, k: int
) -> dict[str, Tensor]:
    """Compare with all candidates, and keep those that match."""
    said = torch.arange(scores.shape[-1]) == tokens[..., None]
    ends = torch.arange(states.shape[1]) == lengths[:, None] - 1
    owns = torch.arange(count)[:, None] == owner
    return {
        "said": torch.where(said, scores, 0).sum(-1),
        "last": torch.where(ends[..., None], states, 0).sum(1),
        "sums": owns.to(rows.dtype) @ rows,
        "best": scores.argsort(-1, descending=True).argsort(-1) < k,
    }


def _inputs(
    random: Random, b: int, s: int, v: int, d: int, n: int, count: int, k: int, dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """Inputs of these sizes. If the sizes allow it, one owner has no rows and no text is full."""
    return {
        "scores": normal(random, b, s, v, dtype=dtype),
        "tokens": torch.tensor([[random.randrange(v) for _ in range(s)] for _ in range(b)]),
        "states": normal(random, b, s, d, dtype=dtype),
        "lengths": torch.tensor([random.randint(1, max(s - 1, 1)) for _ in range(b)]),
        "rows": integers(random, n, d, low=-9, high=9, dtype=dtype),
        "owner": torch.tensor([random.randrange(max(count - 1, 1)) for _ in range(n)], dtype=torch.int64),
        "count": count,
        "k": k,
    }


_CALL = "picked(scores, tokens, states, lengths, rows, owner, count, k)"
_BY_SIZE = "r = picked(scores, tokens, states, lengths, rows, owner, count, k)['best']"


def _each(inputs: dict[str, Any], name: str = "{}") -> list[Case]:
    """A case for each result, so that one mistake does not cost the points of all."""
    results = ("said", "last", "sums", "best")
    return [script(name.format(result), f'{_CALL}["{result}"]', **inputs) for result in results]


def _ties(inputs: dict[str, Any]) -> Case:
    """A case that asks how many are chosen at each place, and whether each has at least the score of those left out."""
    lines = (
        f"{_BY_SIZE}\nstr(r.dtype)\nr.sum(-1)\n"
        "scores.masked_fill(~r, 99.0).amin(-1) - scores.masked_fill(r, -99.0).amax(-1) >= 0"
    )
    tied = inputs["scores"].sign()
    tied[0, 0] = 0.5
    return script("equal scores", lines, **inputs | {"scores": tied})


def _gradients(inputs: dict[str, Any]) -> list[Case]:
    """Cases on the gradients of `said` with respect to the scores and of `sums` with respect to the rows."""
    g = normal(Random(5), *inputs["tokens"].shape)
    h = normal(Random(6), inputs["count"], inputs["rows"].shape[1])
    return [_gradient("said", "scores", g, inputs), _gradient("sums", "rows", h, inputs)]


def _gradient(result: str, of: str, weights: Tensor, inputs: dict[str, Any]) -> Case:
    call = _CALL.replace(of, "y")
    lines = f"y = {of}.clone().requires_grad_()\n({call}['{result}'] * weights).sum().backward()\ny.grad"
    return edge(script(f"the gradient of {result}", lines, weights=weights, **inputs))


def _no_loop() -> Case:
    two, seven = _inputs(Random(1), 2, 8, 4, 2, 20, 9, 2), _inputs(Random(2), 7, 8, 4, 2, 20, 9, 2)
    lines = (
        "from lmcourse.chapters.tensors.operators import operators  # in the notebook\n"
        "len(operators(picked, *two, views=True)) == len(operators(picked, *seven, views=True))\npicked(*two)['last']"
    )
    return script("as many operators for 7 texts as for 2", lines, two=[*two.values()], seven=[*seven.values()])


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    b, s, v, d, n, count = random.sample(range(3, 9), 6)
    usual = _inputs(seen, 3, 4, 6, 2, 9, 5, 2)
    full = usual | {"lengths": torch.tensor([4, 1, 4])}
    few = usual | {"rows": usual["rows"][:0], "owner": usual["owner"][:0]}
    many = usual | {"rows": integers(seen, 200_000, 1), "owner": torch.tensor(random.choices(range(5), k=200_000))}
    return [
        *_each(_inputs(seen, 3, 5, 4, 6, 11, 7, 3), name="{}, other inputs"),
        *_each(_inputs(random, b, s, v, d, n, count, 2), name="{}, other inputs"),
        *map(edge, _each(_inputs(seen, 1, 1, 3, 2, 1, 1, 1), name="{}, other inputs")),
        *_each(_inputs(seen, 2, 3, 4, 2, 5, 3, 2, torch.float16), name="{}, other inputs"),
        *_each(
            {name: turned(value) if isinstance(value, Tensor) else value for name, value in usual.items()},
            name="{}, other inputs",
        ),
        script("texts without padding", f'{_CALL}["last"]', **full),
        script("no rows at all", f'{_CALL}["sums"]', **few),
        script("200,000 rows", f'{_CALL}["sums"]', **many),
        edge(script("all or one chosen", f'{_CALL}["best"]', **usual | {"k": 6})),
        edge(script("all or one chosen", f'{_CALL}["best"]', **usual | {"k": 1})),
        _ties(usual),
        *_gradients(usual),
    ]


_FIXED = _inputs(Random(3), 2, 3, 4, 5, 6, 4, 2)

picked = Exercise(
    "picked",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_by_masks,
    cases=[
        *_each(_FIXED),
        edge(_each(_inputs(Random(4), 1, 1, 3, 2, 1, 1, 1), name="{}, one text of one token")[0]),
        edge(script("tokens of 32 bits", f'{_CALL}["said"]', **_FIXED | {"tokens": _FIXED["tokens"].int()})),
        edge(_each(_inputs(Random(5), 2, 3, 4, 2, 5, 3, 2, torch.float64), name="{}, in fp64")[2]),
        _ties(_FIXED),
        *_gradients(_FIXED),
        _no_loop(),
    ],
    hidden_cases=_hidden,
    hints=[
        "Take the four one by one. Write down the shape of the result and, for one of its elements, which element of "
        "the input it is. Then: is one number picked at each place (gather), a whole row of each text (a pair of index "
        "lists), or is something added up (scatter)?",
        "`said`: the index needs as many axes as `scores`; remove the extra axis afterwards. `last`: one list holds "
        "the numbers of the texts, the other the places of the tokens.",
        "`sums`: use a scatter that adds, since an owner may occur twice. `best`: `topk` returns places as well as "
        "scores; put True at these places.",
    ],
    forbid=[".tolist", ".item", ".numpy", "numpy", "torch.vmap", "torch.func", "functorch", "builtins.map"],
)


@picked.variant
def gathered_paired_added(
    scores: Tensor, tokens: Tensor, states: Tensor, lengths: Tensor, rows: Tensor, owner: Tensor, count: int, k: int
) -> dict[str, Tensor]:
    texts = torch.arange(len(states))
    zeros = rows.new_zeros(count, rows.shape[1])
    nowhere = torch.zeros_like(scores, dtype=torch.bool)
    return {
        "said": scores.gather(2, tokens[..., None]).squeeze(2),
        "last": states[texts, lengths - 1],
        "sums": zeros.index_add(0, owner, rows),
        "best": nowhere.scatter(-1, scores.topk(k).indices, True),
    }


picked.slips(
    gathered_paired_added,
    {
        "index_add(0, owner, rows) → index_put((owner,), rows)": "`sums` keeps one row of each owner: a plain "
        "`scatter` overwrites, and `out[owner] += rows` writes each owner only once. Add up the rows of one owner.",
        "[texts, lengths - 1] → [:, lengths - 1]": "`last` has the states of all texts at all lengths, (b, b, d): you "
        "index only one axis. Pair the index with the number of the text.",
        "scores.gather(2, tokens[..., None]).squeeze(2) → scores[:, :, tokens]": "`said` has the shape (b, s, b, s): "
        "each place gets the scores of the tokens of all places. Each place needs the score of its own token only.",
        "index_add(0, owner, rows) → scatter_add(0, owner[:, None], rows)": "Only the first column of `sums` is "
        "filled: `scatter` writes one number for each number of its index, and your index has one column.",
        "index_add(0, owner, rows) → scatter(0, owner[:, None], rows)": "Only the first column of `sums` is filled, "
        "with one row of each owner: `scatter` overwrites, and writes one number for each number of its index.",
        "owner, rows) → owner, rows) / torch.bincount(owner, minlength=count).clamp(min=1)[:, None]": "Your `sums` are "
        "means. Return the sum of each owner's rows.",
        "nowhere.scatter(-1, scores.topk(k).indices, True) → scores >= scores.topk(k).values[..., -1:]": "`best` takes "
        "every score that is at least the k-th best: with equal scores that is more than k. Choose places, not a "
        "threshold.",
        "nowhere.scatter(-1, scores.topk(k).indices, True) → scores > scores.topk(k).values[..., -1:]": "`best` takes "
        "only scores above the k-th best, so at most k − 1. Choose places, not a threshold.",
        "scores.gather(2, tokens[..., None]).squeeze(2) → scores[:, torch.arange(scores.shape[1]), tokens]": "`said` "
        "has the shape (b, b, s): each text gets the scores of the tokens of all texts. Pair each token with its text, "
        "too.",
        "lengths - 1 → lengths": "`last` is one token too late: a text of length n ends at place n − 1.",
        "[texts, lengths - 1] → [:, -1]": "`last` takes the last place of each text, which may be padding. `lengths` "
        "says where a text ends.",
        "scores.gather(2, tokens[..., None]).squeeze(2) → scores.amax(-1)": "`said` is the largest score at each "
        "place. Return the score of the token at that place.",
        ".squeeze(2) → ": "`said` keeps an axis of size 1 at the end: gather returns as many axes as its index has. "
        "Return one number per place.",
        "return { → return tuple({ ;; scores.topk(k).indices, True),\n    } → scores.topk(k).indices, True),\n    "
        "}.values())": "You return the tensors without their names. Return a dict with the four names.",
        "scores.topk(k) → scores.topk(k, dim=1)": "`best` compares the tokens of a text. Choose k at each place: along "
        "the last axis.",
        "nowhere.scatter(-1, scores.topk(k).indices, True) → scores.topk(k).indices": "`best` holds indices. Return a "
        "mask of True and False with the shape of `scores`.",
        "nowhere.scatter(-1, scores.topk(k).indices, True) → scores.argsort(-1, descending=True) < k": "`best` "
        "compares the result of argsort with k. argsort lists the places in order; the rank of a place is the inverse "
        "of that.",
        "nowhere.scatter(-1, scores.topk(k).indices, True) → nowhere.flatten(1).scatter(1, "
        "scores.flatten(1).topk(k).indices, True).view_as(scores)": "`best` chooses k scores of each whole text. "
        "Choose k at each place.",
        "owner, rows) → owner, rows)[: len(owner) and owner.max() + 1]": "`sums` has rows only for owners that occur. "
        "Return `count` rows: an owner without rows has zeros.",
        "states[texts, lengths - 1] → torch.stack([states[text, lengths[text] - 1] for text in texts])": "Your numbers "
        "are right, but a loop in Python picks them: the number of operators grows with the texts.",
    },
)


@picked.variant
def all_by_index(
    scores: Tensor, tokens: Tensor, states: Tensor, lengths: Tensor, rows: Tensor, owner: Tensor, count: int, k: int
) -> dict[str, Tensor]:
    b, s, _ = scores.shape
    i, j = torch.arange(b)[:, None], torch.arange(s)
    best = torch.zeros(scores.shape, dtype=torch.bool)
    best[i[:, :, None], j[:, None], scores.sort(descending=True, stable=True).indices[..., :k]] = True
    sums = torch.zeros(count, rows.shape[1], dtype=rows.dtype)
    return {
        "said": scores[i, j, tokens],
        "last": states.flatten(0, 1)[i[:, 0] * s + lengths - 1],
        "sums": sums.index_put((owner,), rows, accumulate=True),
        "best": best,
    }
