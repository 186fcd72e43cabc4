"""The exercise on a mixture of experts: routing, capacity and the balance loss."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64

Result = tuple[Tensor, Tensor]


def _expert(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor) -> Tensor:
    return (F.silu(x @ w_gate) * (x @ w_value)) @ w_down


def _moe(
    x: Tensor,
    w_router: Tensor,
    w_gate: Tensor,
    w_value: Tensor,
    w_down: Tensor,
    k: int,
    capacity: float | None = None,
) -> Result:
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
                row = row + p[e] / total * _expert(token, w_gate[e], w_value[e], w_down[e])
        rows.append(row)
    fractions = torch.tensor(chosen, dtype=x.dtype) / (n * k)
    return torch.stack(rows), experts * (fractions * probabilities.mean(dim=0)).sum()


def _ask(
    name: str,
    random: Random,
    n: int,
    experts: int,
    k: int,
    capacity: float | None = None,
    d: int = 3,
    w: int = 2,
    sharp: float = 1.5,
) -> Case:
    """Random tokens and experts in double precision; the router prefers its first expert."""
    x, router = normal64(random, n, d), sharp * normal64(random, d, experts)
    x[:, 0] = x[:, 0].abs()
    router[0, 0] += 1.5
    weights = [normal64(random, experts, *of) for of in ((d, w), (d, w), (w, d))]
    return case(name, x, router, *weights, k, **({} if capacity is None else {"capacity": capacity}))


def _idle(name: str) -> Case:
    """A case with an expert that no token chooses, and whose weights are NaN."""
    asked = _ask(name, Random(5), 5, 4, 2)
    x, router, *weights = asked.args[:5]
    assert isinstance(x, Tensor)
    assert isinstance(router, Tensor)
    x[:, 0], router[0, 2] = 1.0, -40.0
    for weight in weights:
        assert isinstance(weight, Tensor)
        weight[2] = float("nan")
    return asked


def _each_its_own(name: str, chosen: list[int], k: int = 1, capacity: float | None = None) -> Case:
    """A case in which the router gives each token a probability near 1 for the expert in `chosen`."""
    experts, fixed = 4, Random(3)
    x = 1.0 * torch.eye(experts, dtype=torch.float64)[chosen]
    router = 9 * torch.eye(experts, dtype=torch.float64) + 0.01 * normal64(fixed, experts, experts)
    weights = [normal64(fixed, experts, *of) for of in ((4, 2), (4, 2), (2, 4))]
    return case(name, x, router, *weights, k, **({} if capacity is None else {"capacity": capacity}))


def _moe_cases(random: Random) -> list[Case]:
    fixed = Random(2)
    return [
        edge(_ask("other sizes", fixed, 1, 2, 1)),
        edge(_ask("other sizes", fixed, 4, 1, 1)),
        _each_its_own("equal shares", [0, 1, 2, 3, 3, 2, 1, 0]),
        _each_its_own("one expert takes all", [1] * 8),
        _each_its_own("one expert takes all", [1] * 8, capacity=1.0),
        _ask("other sizes", random, 7, 5, 3, d=4, w=6),
        _ask("other sizes", random, 6, 3, 2, d=2, w=1),
        _ask("every expert", random, 5, 3, 3),
        _ask("capacity", random, 12, 4, 1, capacity=1.25),
        _ask("capacity", random, 12, 4, 2, capacity=0.75),
        _ask("capacity", random, 10, 4, 3, capacity=0.5),
        _ask("capacity that drops nothing", random, 8, 4, 2, capacity=4.0),
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
        _ask("k = 1", _FIXED, 6, 4, 1),
        _ask("every expert: k = E = 3", _FIXED, 4, 3, 3),
        _ask("k = 2, capacity 1", _FIXED, 8, 4, 2, capacity=1.0),
        _ask("k = 1, capacity 1.25", _FIXED, 9, 4, 1, capacity=1.25),
        _idle("an expert that no token chooses, with NaN in its weights"),
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


def _chosen(x: Tensor, w_router: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The router's probabilities, and its choices as 0 and 1, both (n, E)."""
    p = (x @ w_router).softmax(dim=-1)
    return p, torch.zeros_like(p).scatter(1, p.topk(k, dim=-1).indices, 1.0)


def _kept(picked: Tensor, limit: float) -> Tensor:
    return picked * (picked.cumsum(dim=0) <= limit)


def _divided(p: Tensor, picked: Tensor, k: int) -> Tensor:
    return p * picked / (p * picked).sum(dim=-1, keepdim=True) if k > 1 else p * picked


def _mixed(x: Tensor, shares: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor) -> Tensor:
    """The sum of the experts weighted with these shares (n, E). An expert without a share computes nothing."""
    y = torch.zeros_like(x)
    for e, weights in enumerate(zip(w_gate, w_value, w_down, strict=True)):
        (rows,) = shares[:, e].nonzero(as_tuple=True)
        y = y.index_add(0, rows, shares[rows, e, None] * _expert(x[rows], *weights))
    return y


def _limit(n: int, k: int, experts: int, capacity: float | None) -> float:
    return n if capacity is None else math.floor(capacity * n * k / experts)


def _balanced(p: Tensor, picked: Tensor, k: int) -> Tensor:
    return p.shape[1] * (picked.mean(dim=0) / k * p.mean(dim=0)).sum()


@moe.misconception(
    "You do not divide the weights of the chosen experts by their sum. For k above 1 the weights add up to 1."
)
def weights_not_divided(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = p * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "For k = 1 your weight is always 1: divided by itself, or a softmax of a single score. So the result sends the "
    "router no gradient. For k = 1 the weight is p."
)
def divided_for_one(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = p * picked / (p * picked).sum(dim=-1, keepdim=True)
    shares = shares * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "The experts' results are added without weights, so the result sends the router no gradient. Multiply each by the "
    "router's probability, and for k above 1 divide by the sum over the k."
)
def not_weighted(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("Every expert works on every token: k is not used for the result, only p.")
def all_experts(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    return _mixed(x, p, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("Only the best expert of each token counts for f. It has n·k choices: all k of every token.")
def first_choice_for_f(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, _ = _chosen(x, w_router, k)
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, _balanced(p, F.one_hot(p.argmax(dim=-1), len(w_gate)).to(p), 1)


@moe.misconception("Your f adds up to k. It is a fraction of the n·k choices, and adds up to 1.")
def fractions_of_tokens(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, k * balance


@moe.misconception(
    "Your f is made of the weights, so it has a gradient. It counts choices: a token counts the same for each of its k."
)
def weights_for_f(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, _balanced(p, _divided(p, picked, k), 1)


@moe.misconception("The factor E is missing from the balance: equal shares should give 1.")
def balance_without_factor(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, balance / len(w_gate)


@moe.misconception("Your balance squares f. It multiplies f by the mean of p: only p has a gradient.")
def fractions_squared(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    _, picked = _chosen(x, w_router, k)
    return y, len(w_gate) * ((picked.mean(dim=0) / k) ** 2).sum()


@moe.misconception("Your f counts what is left after dropping. It counts what the tokens chose.")
def balance_after_dropping(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, _balanced(p, _kept(picked, _limit(len(x), k, len(w_gate), capacity)), k)


@moe.misconception("Your limit leaves out k: an equal share is n·k/E tokens, and the capacity multiplies that.")
def capacity_without_k(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    return _moe(x, w_router, w_gate, w_value, w_down, k, None if capacity is None else capacity / k)


@moe.misconception("The capacity is not used: each expert takes every token that chose it.")
def capacity_ignored(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    return _moe(x, w_router, w_gate, w_value, w_down, k)


@moe.misconception("You round the limit up. An expert takes at most ⌊capacity · n · k / E⌋ tokens.")
def limit_rounded_up(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    limit = len(x) if capacity is None else math.ceil(capacity * len(x) * k / len(w_gate))
    shares = _divided(p, picked, k) * _kept(picked, limit)
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("You take one token too few: a token at place `limit` in the queue, counted from 1, still fits.")
def one_too_few(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    limit = len(x) if capacity is None else _limit(len(x), k, len(w_gate), capacity) - 1
    shares = _divided(p, picked, k) * _kept(picked, limit)
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "Your full expert keeps the tokens with the largest weights. It should keep the tokens that come first."
)
def best_tokens_kept(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    limit = _limit(len(x), k, len(w_gate), capacity)
    rank = (p * picked).argsort(dim=0, descending=True).argsort(dim=0)
    shares = _divided(p, picked, k) * (rank < limit)
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "Your experts take the first choices of all tokens before any second choice. They take tokens in the order of the "
    "text, whichever choice it was."
)
def first_choices_first(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    limit = _limit(len(x), k, len(w_gate), capacity)
    taken, kept = [0] * len(w_gate), torch.zeros_like(p)
    for choices in p.topk(k, dim=-1).indices.T.tolist():
        for token, e in enumerate(choices):
            taken[e] += 1
            kept[token, e] = taken[e] <= limit
    return _mixed(x, _divided(p, picked, k) * kept, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "You send a token whose expert is full to another expert. Here the full expert adds nothing, and the token's other "
    "experts stay as they are."
)
def sent_to_another(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    limit = _limit(len(x), k, len(w_gate), capacity)
    found, taken = torch.zeros_like(p), [0] * len(w_gate)
    for token, row in enumerate(p.detach().tolist()):
        free = [e for e in sorted(range(len(row)), key=row.__getitem__, reverse=True) if taken[e] < limit][:k]
        for e in free:
            taken[e] += 1
            found[token, e] = 1
    shares = p * found
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp(min=1e-30) if k > 1 else shares
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "You divide the weights again after dropping. They are divided by the sum over the k chosen experts, full or not."
)
def divided_after_dropping(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = p * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp(min=1e-30) if k > 1 else shares
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("SiLU is on the wrong branch of your experts: it belongs to x·W_gate, and x·W_value stays linear.")
def branches_of_experts_swapped(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    return _moe(x, w_router, w_value, w_gate, w_down, k, capacity)


@moe.misconception(
    "The values are right, but no gradient reaches the router through the weights: they are detached, or computed "
    "under no_grad. The router learns from them."
)
def weights_detached(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = _divided(p, picked, k) * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    return _mixed(x, shares.detach(), w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception(
    "You run all experts and give weight 0 to the ones that were not chosen: 0 · NaN is NaN, and no FLOP is saved. Let "
    "an expert compute its own tokens only."
)
def all_experts_masked(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = _divided(p, picked, k) * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    every = torch.stack([_expert(x, *weights) for weights in zip(w_gate, w_value, w_down, strict=True)], dim=1)
    return (shares[:, :, None] * every).sum(dim=1), _balanced(p, picked, k)


@moe.misconception("You take the mean of f · p̄ and leave out E. It is E times the sum: equal shares should give 1.")
def mean_for_sum(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, balance / len(w_gate) ** 2


@moe.misconception("Your balance squares the mean of p. One factor is f, which counts the choices.")
def probabilities_squared(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    p, _ = _chosen(x, w_router, k)
    return y, len(w_gate) * p.mean(dim=0).square().sum()


@moe.misconception("Your balance has no gradient. It has to push the router: p̄ must not be detached.")
def balance_detached(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return y, balance.detach()


@moe.misconception("You add x to the result. The block does that (notebook 10): this layer returns what it adds.")
def adds_the_stream(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    return x + y, balance


@moe.misconception(
    "You return x for a token whose experts are all full. They add nothing: its row is 0, and the block adds x."
)
def dropped_keep_x(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, balance = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    _, picked = _chosen(x, w_router, k)
    kept = _kept(picked, _limit(len(x), k, len(w_gate), capacity)).sum(dim=1, keepdim=True)
    return torch.where(kept > 0, y, x), balance


@moe.misconception(
    "Your p̄ is the mean over the chosen experts only. Every token has a p for each expert, and all of them count."
)
def mean_of_the_chosen(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    y, _ = _moe(x, w_router, w_gate, w_value, w_down, k, capacity)
    p, picked = _chosen(x, w_router, k)
    return y, _balanced(p * picked, picked, k)


@moe.misconception("You use the capacity as a number of tokens. It is a factor: the limit is ⌊capacity · n · k / E⌋.")
def capacity_in_tokens(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = _divided(p, picked, k) * _kept(picked, len(x) if capacity is None else capacity)
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("Your weights are the router's scores before the softmax. Use p: it is positive.")
def scores_for_weights(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    scores = x @ w_router
    shares = _divided(scores, picked, 2) * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    return _mixed(x, shares, w_gate, w_value, w_down), _balanced(p, picked, k)


@moe.misconception("Your experts use GELU in the gate. They are SwiGLU layers, which use SiLU.")
def gelu_experts(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> Result:
    p, picked = _chosen(x, w_router, k)
    shares = _divided(p, picked, k) * _kept(picked, _limit(len(x), k, len(w_gate), capacity))
    y = torch.zeros_like(x)
    for e in range(len(w_gate)):
        (rows,) = shares[:, e].nonzero(as_tuple=True)
        hidden = F.gelu(x[rows] @ w_gate[e]) * (x[rows] @ w_value[e])
        y = y.index_add(0, rows, shares[rows, e, None] * (hidden @ w_down[e]))
    return y, _balanced(p, picked, k)


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


@moe.variant
def gathered_matrices(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> tuple[Tensor, Tensor]:
    n, experts = x.shape[0], w_router.shape[1]
    p = torch.softmax(x @ w_router, -1)
    weight, chosen = torch.topk(p, k)
    if k > 1:
        weight = weight / weight.sum(1, keepdim=True)
    gate = torch.einsum("nd,nkdw->nkw", x, w_gate[chosen])
    value = torch.einsum("nd,nkdw->nkw", x, w_value[chosen])
    out = torch.einsum("nkw,nkwd->nkd", F.silu(gate) * value, w_down[chosen])
    counts = F.one_hot(chosen, experts)  # (n, k, E)
    if capacity is not None:
        place = counts.sum(1).cumsum(0).gather(1, chosen)
        weight = weight * (place <= math.floor(capacity * n * k / experts))
    f = counts.sum((0, 1)) / (n * k)
    return (weight.unsqueeze(-1) * out).sum(1), experts * torch.dot(f.to(p.dtype), p.mean(0))


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


@moe.variant
def sorted_by_expert(
    x: Tensor, w_router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int, capacity: float | None = None
) -> tuple[Tensor, Tensor]:
    n, experts = len(x), len(w_gate)
    p = torch.exp(torch.log_softmax(x.matmul(w_router), dim=-1))
    order = p.argsort(dim=-1, descending=True)[:, :k]
    best = p.gather(-1, order)
    if k != 1:
        best = best / best.sum(-1, keepdim=True)
    flat = order.flatten()
    sizes = torch.bincount(flat, minlength=experts)
    choices = flat.argsort(stable=True)  # choice i belongs to token i // k; grouped by expert, in the order of the text
    y = torch.zeros_like(x)
    for e, mine in enumerate(torch.split(choices, sizes.tolist())):
        if capacity is not None:
            mine = mine[: int(capacity * n * k // experts)]
        tokens = mine // k
        hidden = torch.sigmoid(x[tokens] @ w_gate[e]) * (x[tokens] @ w_gate[e]) * (x[tokens] @ w_value[e])
        y.index_add_(0, tokens, best.flatten()[mine][:, None] * (hidden @ w_down[e]))
    return y, experts / (n * k) * (sizes * p.mean(0)).sum()
