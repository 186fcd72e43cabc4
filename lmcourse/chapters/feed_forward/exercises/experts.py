"""The exercise on a mixture of experts: routing, capacity and the balance loss."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _moe(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the mixture token by token, as the text of the exercise describes it."""
    n, experts = len(x), len(w_gate)
    limit = n if capacity is None else math.floor(capacity * n * k / experts)
    probabilities = F.softmax(torch.einsum("nd,de->ne", x, w_router), dim=1)
    taken, chosen = [0] * experts, [0] * experts
    rows = []
    for token, p in zip(x, probabilities, strict=True):
        best = sorted(range(experts), key=p.detach().tolist().__getitem__, reverse=True)[:k]
        total = sum((p[e] for e in best), torch.zeros_like(p[0])) if k > 1 else torch.ones_like(p[0])
        row = torch.zeros_like(token)
        for e in best:
            chosen[e] += 1
            if taken[e] < limit:
                taken[e] += 1
                row = row + p[e] / total * (F.silu(token @ w_gate[e]) * (token @ w_value[e])) @ w_down[e]
        rows.append(row)
    fractions = torch.tensor(chosen, dtype=x.dtype) / (n * k)
    return torch.stack(rows), experts * (fractions * probabilities.mean(dim=0)).sum()


def _ask(
    name: str, random: Random, n: int, experts: int, k: int, capacity: float | None = None, d: int = 3, w: int = 2
) -> Case:
    """Random tokens and experts in double precision; the router prefers its first expert."""
    x, router = normal64(random, n, d), 1.5 * normal64(random, d, experts)
    x[:, 0] = x[:, 0].abs()
    router[0, 0] += 1.5
    weights = [normal64(random, experts, *of) for of in ((d, w), (d, w), (w, d))]
    return case(name, x, router, *weights, k, **({} if capacity is None else {"capacity": capacity}))


def _part(asked: Case, part: int) -> Case:
    """The same inputs, but a case that looks at one of the two results."""
    names = ("x", "w_router", "w_gate", "w_value", "w_down", "k")
    call = f"moe({', '.join((*names, *asked.kwargs))})[{part}]"
    what = ("the result", "the balance")[part]
    return script(f"{asked.name}: {what}", call, **dict(zip(names, asked.args, strict=True)), **asked.kwargs)


def _parts(asked: Case) -> list[Case]:
    return [_part(asked, 0), _part(asked, 1)]


def _work(name: str, n: int, k: int) -> Case:
    """A case that counts multiplications: two more experts a token leave room for the router."""
    asked = _ask(name, Random(6), n, 8, k, d=4, w=8)
    lines = f"""
from lmcourse.exercises.work import multiplications
multiplications(moe, x, w_router, w_gate, w_value, w_down, k) < {n} * {k + 2} * 3 * 4 * 8
"""
    return replace(_part(asked, 0), name=name, script=lines.strip() + "\n" + str(_part(asked, 0).script))


def _idle(name: str, seed: int = 5) -> Case:
    """A case with an expert that no token chooses, and whose weights are NaN."""
    asked = _ask(name, Random(seed), 5, 4, 2)
    x, router, *weights = asked.args[:5]
    assert isinstance(x, Tensor)
    assert isinstance(router, Tensor)
    x[:, 0], router[0, 2] = 1.0, -40.0
    for weight in weights:
        assert isinstance(weight, Tensor)
        weight[2] = float("nan")
    return asked


def _each_its_own(name: str, chosen: list[int], capacity: float | None = None) -> Case:
    """A case in which the router gives each token a probability near 1 for the expert in `chosen`."""
    experts, fixed = 4, Random(3)
    x = 1.0 * torch.eye(experts, dtype=torch.float64)[chosen]
    router = 9 * torch.eye(experts, dtype=torch.float64) + 0.01 * normal64(fixed, experts, experts)
    weights = [normal64(fixed, experts, *of) for of in ((4, 2), (4, 2), (2, 4))]
    return case(name, x, router, *weights, 1, **({} if capacity is None else {"capacity": capacity}))


def _moe_cases(random: Random) -> list[Case]:
    fixed, other = Random(2), "other sizes and capacities"
    return [
        *map(edge, _parts(_ask(other, fixed, 1, 2, 1))),
        *map(edge, _parts(_ask(other, fixed, 4, 1, 1))),
        _part(_each_its_own(other, [0, 1, 2, 3, 3, 2, 1, 0]), 1),
        _part(_each_its_own(other, [1] * 8), 1),
        _part(_each_its_own(other, [1] * 8, capacity=1.0), 0),
        *_parts(_ask(other, random, 7, 5, 3, d=4, w=6)),
        *_parts(_ask(other, random, 6, 3, 2, d=2, w=1)),
        _part(_ask(other, random, 5, 3, 3), 0),
        _part(_ask(other, random, 12, 4, 1, capacity=1.25), 0),
        _part(_ask(other, random, 12, 4, 2, capacity=0.75), 0),
        _part(_ask(other, random, 10, 4, 3, capacity=0.5), 0),
        _part(_ask(other, random, 8, 4, 2, capacity=4.0), 0),
        _part(_idle("another expert that no token chooses", 6), 0),
        _work("few multiplications: 12 tokens, 8 experts, k = 2", 12, 2),
    ]


_FIXED = Random(11)

moe = Exercise(
    "moe",
    points=4,
    minutes=18,
    difficulty=3,
    reference=_moe,
    differentiable=True,
    cases=[
        _ask("six tokens, four experts, k = 2", _FIXED, 6, 4, 2),
        *_parts(_ask("k = 1", _FIXED, 6, 4, 1)),
        *_parts(_ask("every expert: k = E = 3", _FIXED, 4, 3, 3)),
        *_parts(_ask("k = 2, capacity 1", _FIXED, 8, 4, 2, capacity=1.0)),
        _part(_ask("k = 1, capacity 1.5", _FIXED, 7, 4, 1, capacity=1.5), 0),
        _part(_ask("24 tokens, k = 1, capacity 0.75", Random(9), 24, 4, 1, capacity=0.75), 0),
        _part(_ask("k = 1, capacity 0.5: a limit of 0", _FIXED, 6, 4, 1, capacity=0.5), 0),
        _part(_idle("an expert that no token chooses, with NaN in its weights"), 0),
        _work("few multiplications: 16 tokens, 8 experts, k = 1", 16, 1),
    ],
    hidden_cases=_moe_cases,
    hints=[
        "p.topk(k, dim=-1) returns the k largest probabilities of each token and their experts, both (n, k).",
        "Make one matrix of 0 and 1, (n, E): which token chose which expert. Its mean over the tokens, divided by k, "
        "is f. Its cumulative sum along the tokens is each token's place in the queue of an expert.",
        "Write the weights into zeros of shape (n, E) with scatter. For each expert take the rows that it keeps, "
        "compute the layer for x[rows] alone, and add the weighted result with index_add.",
    ],
    tolerance=Tolerance(1e-6, 1e-9),  # fractions of whole numbers are float32 in torch
)


@moe.variant
def with_queues(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> tuple[Tensor, Tensor]:
    n, experts = len(x), len(w_gate)
    p = (x @ w_router).softmax(dim=-1)
    picked = torch.zeros_like(p).scatter(1, p.topk(k).indices, 1.0)
    weights = p * picked
    if k > 1:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    limit = n if capacity is None else math.floor(capacity * n * k / experts)
    kept = picked * (picked.cumsum(dim=0) <= limit)
    shares = weights * kept
    y = torch.zeros_like(x)
    for e in range(experts):
        (rows,) = shares[:, e].nonzero(as_tuple=True)
        hidden = F.silu(x[rows] @ w_gate[e]) * (x[rows] @ w_value[e])
        y = y.index_add(0, rows, shares[rows, e, None] * (hidden @ w_down[e]))
    f = picked.mean(dim=0) / k
    return y, experts * (f * p.mean(dim=0)).sum()


moe.slips(
    with_queues,
    {
        "    if k > 1:\n        weights = weights / weights.sum(dim=-1, keepdim=True)\n → ": "You do not divide the "
        "weights of the chosen experts by their sum. For k above 1 the weights add up to 1.",
        "k > 1 → k > 0": "For k = 1 your weight is always 1: divided by itself, or a softmax of a single score. So the "
        "result sends the router no gradient. For k = 1 the weight is p.",
        "weights * kept → kept": "The experts' results are added without weights, so the result sends the router no "
        "gradient. Multiply each by the router's probability, and for k above 1 divide by the sum over the k.",
        "weights * kept → p": "Every expert works on every token: k is not used for the result, only p.",
        "f = picked.mean(dim=0) / k → f = F.one_hot(p.argmax(dim=-1), experts).to(p).mean(dim=0)": "Only the best "
        "expert of each token counts for f. It has n·k choices: all k of every token.",
        " / k → ": "Your f adds up to k. It is a fraction of the n·k choices, and adds up to 1.",
        "picked.mean(dim=0) / k → weights.mean(dim=0)": "Your f is made of the weights, so it has a gradient. It "
        "counts choices: a token counts the same for each of its k.",
        "experts * (f → (f": "The factor E is missing from the balance: equal shares should give 1.",
        "f * p.mean(dim=0) → f**2": "Your balance squares f. It multiplies f by the mean of p: only p has a gradient.",
        "picked.mean → kept.mean": "Your f counts what is left after dropping. It counts what the tokens chose.",
        "n * k / experts → n / experts": "Your limit leaves out k: an equal share is n·k/E tokens, and the capacity "
        "multiplies that.",
        "n if capacity is None else math.floor(capacity * n * k / experts) → n": "The capacity is not used: each "
        "expert takes every token that chose it.",
        "math.floor → math.ceil": "Your limit is rounded up. An expert takes at most ⌊capacity · n · k / E⌋ tokens.",
        "math.floor(capacity * n * k / experts) → max(1, math.floor(capacity * n * k / experts))": "Your experts "
        "always take a token. The limit ⌊capacity · n · k / E⌋ may be 0.",
        "capacity * n * k / experts → capacity * (n * k // experts)": "You round the equal share down before you "
        "multiply it by the capacity. Round the product, ⌊capacity · n · k / E⌋.",
        "/ experts) → / experts) - 1": "You take one token too few: a token at place `limit` in the queue, counted "
        "from 1, still fits.",
        "picked.cumsum(dim=0) <= limit → weights.argsort(dim=0, descending=True).argsort(dim=0) < limit": "Your full "
        "expert keeps the tokens with the largest weights. It should keep the tokens that come first.",
        "kept = picked * (picked.cumsum(dim=0) <= limit) → queue = F.one_hot(p.topk(k).indices.T.flatten(), "
        "experts)\n    kept = (queue * (queue.cumsum(dim=0) <= limit)).view(k, n, experts).sum(dim=0)": "Your experts "
        "take the first choices of all tokens before any second choice. They take tokens in the order of the text, "
        "whichever choice it was.",
        "kept = picked * (picked.cumsum(dim=0) <= limit) → kept = torch.zeros_like(p)\n    for token, order in "
        "enumerate(p.argsort(descending=True).tolist()):\n        kept[token, [e for e in order if kept[:, e].sum() < "
        "limit][:k]] = 1 ;; shares = weights * kept → shares = p * kept\n    shares = shares / shares.sum(dim=-1, "
        "keepdim=True).clamp(min=1e-30) if k > 1 else shares": "You send a token whose expert is full to another "
        "expert. Here the full expert adds nothing, and the token's other experts stay as they are.",
        "shares = weights * kept → shares = p * kept\n    shares = shares / shares.sum(dim=-1, "
        "keepdim=True).clamp(min=1e-30) if k > 1 else shares": "You divide the weights again after dropping. They are "
        "divided by the sum over the k chosen experts, full or not.",
        "@ w_gate[e] → @ w_value[e] ;; @ w_value[e] → @ w_gate[e]": "SiLU is on the wrong branch of your experts: it "
        "belongs to x·W_gate, and x·W_value stays linear.",
        "weights * kept → weights.detach() * kept": "The values are right, but no gradient reaches the router through "
        "the weights: they are detached, or computed under no_grad. The router learns from them.",
        "(rows,) = shares[:, e].nonzero(as_tuple=True) → rows = torch.arange(n)": "You run all experts and give weight "
        "0 to the ones that were not chosen: 0 · NaN is NaN, and no FLOP is saved. Let an expert compute its own "
        "tokens only.",
        "(rows,) = shares[:, e].nonzero(as_tuple=True) → rows = torch.arange(n if shares[:, e].any() else 0)": "Each "
        "expert that some token chose computes every token. Let it compute its own tokens only: that is what saves "
        "FLOPs.",
        "experts * (f → (f ;; .sum()\n → .mean()\n": "You take the mean of f · p̄ and leave out E. It is E times the "
        "sum: equal shares should give 1.",
        "f * p.mean(dim=0) → p.mean(dim=0) ** 2": "Your balance squares the mean of p. One factor is f, which counts "
        "the choices.",
        "softmax(dim=-1) → softmax(dim=0)": "Your softmax runs over the tokens: each expert shares out 1 among them. "
        "p is a softmax over the experts of each token, dim=-1.",
        "p.mean(dim=0)).sum() → p.sum(dim=0)).sum()": "You add p up over the tokens. p̄ is its mean over the tokens.",
        "F.silu(x[rows] @ w_gate[e]) → (x[rows] @ w_gate[e])": "Your experts have no activation. They are SwiGLU "
        "layers: SiLU acts on x·W_gate.",
        "y = y.index_add(0, rows, shares[rows, e, None] * (hidden @ w_down[e])) → "
        "y[rows] = shares[rows, e, None] * (hidden @ w_down[e])": "Each expert overwrites what the experts before it "
        "returned for a token. Add the results up.",
        "math.floor(capacity * n * k / experts) → int(capacity * n * k / experts) ;; "
        "picked.cumsum(dim=0) → picked.flip(0).cumsum(dim=0).flip(0)": "Your full expert keeps the last tokens of the "
        "text. It should keep those that come first.",
        "weights = p * picked → weights = (x @ w_router if k > 1 else p) * picked || weights = p * picked → weights = "
        "x @ w_router * picked ;; k > 1 → k > 0": "Your weights are the router's scores before the softmax. Use p: it "
        "is positive.",
        "f * p.mean → f * p.detach().mean": "Your balance has no gradient. It has to push the router: p̄ must not be "
        "detached.",
        "return y → return x + y": "You add x to the result. The block does that (notebook 10): this layer returns "
        "what it adds.",
        "return y → return torch.where(kept.sum(dim=-1, keepdim=True) > 0, y, x)": "You return x for a token whose "
        "experts are all full. They add nothing: its row is 0, and the block adds x.",
        "f * p.mean(dim=0) → f * (p * picked).mean(dim=0)": "Your p̄ is the mean over the chosen experts only. Every "
        "token has a p for each expert, and all of them count.",
        "math.floor(capacity * n * k / experts) → capacity": "You use the capacity as a number of tokens. It is a "
        "factor: the limit is ⌊capacity · n · k / E⌋.",
        "F.silu → F.gelu": "Your experts use GELU in the gate. They are SwiGLU layers, which use SiLU.",
    },
)


@moe.variant
def softmax_over_the_chosen_logits(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> list[Tensor]:
    logits = x @ w_router
    p = logits.softmax(1)
    top, chosen = logits.topk(k, dim=1)
    weights = top.softmax(1) if k > 1 else p.gather(1, chosen)
    limit = len(x) if capacity is None else int(capacity * len(x) * k / len(w_gate))
    y = 0 * x
    balance = torch.zeros((), dtype=x.dtype)
    for e in range(len(w_gate)):
        token, choice = torch.where(chosen == e)
        balance = balance + len(w_gate) * len(token) / chosen.numel() * p[:, e].mean()
        token, choice = token[:limit], choice[:limit]
        inside = x[token]
        hidden = F.silu(inside @ w_gate[e]) * (inside @ w_value[e])
        y[token] = y[token] + weights[token, choice].unsqueeze(1) * (hidden @ w_down[e])
    return [y, balance]


for same_in_two_axes in (
    "p = (x @ w_router).softmax(dim=-1) → p = (x @ w_router).softmax(dim=1)",
    "largest, chosen = p.topk(k, dim=-1) → largest, chosen = p.topk(k)",
    "largest, chosen = p.topk(k, dim=-1) → largest, chosen = p.topk(k, dim=1)",
    "weights = largest / largest.sum(dim=-1, keepdim=True) if k > 1 else largest → "
    "weights = largest / largest.sum(dim=1, keepdim=True) if k > 1 else largest",
):
    moe.equivalent_mutant(same_in_two_axes, "A matrix has two axes: the last one is axis 1, and topk's default.")
moe.equivalent_mutant(
    "picked = picked * (place <= math.floor(capacity * chosen.numel() / experts)) → "
    "picked = picked * (place <= capacity * chosen.numel() / experts)",
    "A place is a whole number: it is at most a limit exactly if it is at most the limit rounded down.",
)
for never_read in ("torch.ones_like(p)", "p"):
    moe.equivalent_mutant(
        f"shares = torch.zeros_like(p).scatter(1, chosen, weights) → shares = {never_read}.scatter(1, chosen, weights)",
        "Shares of experts that were not chosen are never read.",
    )
