"""The exercise on expert parallelism: a mixture whose experts are divided among the workers."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def weighted_there(
    worker: CollectiveWorker, x: Tensor, router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int
) -> Tensor:
    n, each = worker.size, len(w_gate)
    p = (x @ router).softmax(1)
    least = p.sort(1, descending=True).values[:, k - 1 : k]
    p = p.where(p >= least, torch.zeros_like(p))
    if k > 1:
        p = p / p.sum(1, keepdim=True)
    rows = [p[:, rank * each : (rank + 1) * each].sum(1).nonzero()[:, 0] for rank in range(n)]
    shares = worker.all_to_all([p[at, rank * each : (rank + 1) * each] for rank, at in enumerate(rows)])
    sums = []
    for tokens, share in zip(worker.all_to_all([x[at] for at in rows]), shares, strict=True):
        every = F.silu(torch.einsum("td,edf->tef", tokens, w_gate)) * torch.einsum("td,edf->tef", tokens, w_value)
        sums.append(torch.einsum("tef,efd,te->td", every, w_down, share))
    y = torch.zeros_like(x)
    for at, part in zip(rows, worker.all_to_all(sums), strict=True):
        y[at] += part
    return y


def _ask(name: str, random: Random, workers: int, t: int, d: int, each: int, k: int) -> Case:
    """A case in which each worker has `t` tokens and `each` experts; with a limit for the bytes."""
    xs = [normal64(random, t, d) for _ in range(workers)]
    router = normal64(random, d, workers * each)
    gates, values, downs = ([normal64(random, each, d, d) for _ in range(workers)] for _ in range(3))
    owners = [(x @ router).topk(k).indices // each for x in xs]
    away = sum(int((one != rank).sum()) for rank, one in enumerate(owners))
    call = f"experts, xs, [router] * {workers}, gates, values, downs, [{k}] * {workers}, collectives=True"
    given = {"xs": xs, "router": router, "gates": gates, "values": values, "downs": downs}
    return ask(name, call, "run.results", f"sum(run.sent) <= {away * (2 * 8 * d + 16)}", "run.changed", **given)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("one worker", fixed, 1, 4, 3, 4, 2),
        _ask("more workers", fixed, 4, 5, 4, 2, 1),
        _ask("more workers", fixed, 4, 6, 4, 1, 3),
        _ask("one token each", fixed, 3, 1, 4, 2, 2),
        _ask("all experts", fixed, 2, 3, 4, 2, 4),
        _ask("other shapes", random, 3, random.randint(3, 6), random.randint(3, 5), 2, 2),
    ]


experts = Exercise(
    "experts",
    points=3,
    minutes=15,
    difficulty=3,
    reference=weighted_there,
    cases=[
        _ask("two workers with one expert each, top 1", Random(2), 2, 3, 2, 1, 1),
        _ask("two workers with two experts each, top 1", Random(5), 2, 4, 2, 2, 1),
        _ask("two workers with two experts each, top 2", Random(8), 2, 4, 2, 2, 2),
        _ask("three workers, top 3", Random(4), 3, 4, 4, 2, 3),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin as on one worker: p, the k largest, their weights. Expert e is on worker e // len(w_gate), where it has "
        "the number e % len(w_gate).",
        "For each rank find the pairs (token, slot) whose expert is there: (chosen // len(w_gate) == rank).nonzero(). "
        "The first all-to-all sends these tokens, a second one the numbers of their experts.",
        "Compute what came from each worker, and send it back in the same order: a third all-to-all. Then row i of "
        "what comes from worker w belongs to pair i of those that you sent to w.",
        "y.index_add(0, tokens, weights · results) adds the k results of a token.",
    ],
    may_use_package=True,
)
experts.variant(weighted_there)


@experts.variant
def there_and_back(
    worker: CollectiveWorker, x: Tensor, router: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, k: int
) -> Tensor:
    each = len(w_gate)
    weights, chosen = (x @ router).softmax(1).topk(k)
    if k > 1:
        weights = weights / weights.sum(1, keepdim=True)
    places = [(chosen // each == rank).nonzero(as_tuple=True) for rank in range(worker.size)]
    arrived = worker.all_to_all([x[token] for token, _ in places])
    numbers = worker.all_to_all([chosen[place] % each for place in places])
    for rank in range(worker.size):
        for e in range(each):
            here = numbers[rank] == e
            own = arrived[rank][here]
            arrived[rank][here] = (F.silu(own @ w_gate[e]) * (own @ w_value[e])) @ w_down[e]
    results, y = worker.all_to_all(arrived), torch.zeros_like(x)
    for rank, place in enumerate(places):
        y = y.index_add(0, place[0], weights[place][:, None] * results[rank])
    return y


experts.slips(
    there_and_back,
    {
        "worker.all_to_all(arrived) → arrived": "The results never come back: you add those that this worker computed "
        "for others. A third all-to-all takes each result to the worker of its token.",
        "worker.all_to_all([x[token] for token, _ in places]) → [x[token] for token, _ in places] ;; "
        "worker.all_to_all([chosen[place] % each for place in places]) → [chosen[place] % each for place in places] ;; "
        "worker.all_to_all(arrived) → arrived": "No token leaves your worker: each is computed by whatever expert has "
        "its number here. Send it to the worker of its expert.",
        "x[token] for token, _ in places → weights[place][:, None] * x[place[0]] for place in places": "You multiply "
        "with the weights twice, the tokens and then the results. An expert sees the token as it is.",
        "x[token] for token, _ in places → weights[place][:, None] * x[place[0]] for place in places ;; "
        "weights[place][:, None] * results[rank] → results[rank]": "You multiply the tokens with the weights before "
        "the experts. An expert is not linear: weight its result.",
        "weights[place][:, None] * results[rank] → results[rank]": "You add the experts' results without their "
        "weights.",
        "    if k > 1:\n        weights = weights / weights.sum(1, keepdim=True)\n → ": "For k > 1 the k weights are "
        "divided by their sum.",
        "if k > 1: → if k:": "For k = 1 your weight is always 1: you divide it by itself, or take the softmax of the "
        "chosen scores only. The weight is p then.",
        "weights, chosen = (x @ router).softmax(1).topk(k) → weights, chosen = (x @ router).topk(k)": "Your weights "
        "are the router's scores. Take their softmax.",
        "softmax(1) → softmax(0)": "Your softmax runs over the tokens. Each token has its own, over the experts.",
        "chosen[place] % each → chosen[place]": "You send an expert's number among *all* experts, and compare it with "
        "its number on the worker. There it is number e % len(w_gate).",
        "for e in range(each):\n            here = numbers[rank] == e → for e in [each - 1]:\n            here = "
        "numbers[rank] >= 0": "Every token goes through the last expert of its worker. Send the numbers of the "
        "experts, too, and compute each expert's own tokens.",
        "for e in range(each):\n            here = numbers[rank] == e → for e in [0]:\n            here = "
        "numbers[rank] >= 0": "Every token goes through the first expert of its worker. Send the numbers of the "
        "experts, too, and compute each expert's own tokens.",
        "chosen // each == rank → chosen % worker.size == rank ;; chosen[place] % each → chosen[place] // "
        "worker.size": "You deal the experts out one by one. Worker r has experts r·E/N to (r + 1)·E/N − 1, that is e "
        "// len(w_gate) = r.",
        "y = y.index_add(0, place[0], weights[place][:, None] * results[rank]) → y[place[0]] = weights[place][:, None] "
        "* results[rank]": "You overwrite a token's result with that of its next expert. Add the k results.",
        "y = y.index_add(0, place[0], weights[place][:, None] * results[rank]) → y[place[0]] += weights[place][:, "
        "None] * results[rank]": "`y[rows] += …` counts a token once if it occurs twice among the rows, as it does if "
        "two of its experts are on one worker. `index_add` adds both.",
        "place[0], weights → torch.arange(len(results[rank])), weights": "You add results in the order in which they "
        "come back. Row i belongs to the i-th token that you sent to this worker.",
        "F.silu(own @ w_gate[e]) * (own @ w_value[e]) → (own @ w_gate[e]) * F.silu(own @ w_value[e])": "SiLU belongs "
        "to the gate: SiLU(x·gate) · (x·value).",
        "F.silu(own @ w_gate[e]) → (own @ w_gate[e])": "Your experts have no SiLU at the gate.",
        "each = len(w_gate) → each = len(w_gate)\n    if worker.size > 1:\n        whole = [worker.all_gather(w) for w "
        "in (w_gate, w_value, w_down)]\n        bare = type('Alone', (), {'size': 1, 'all_to_all': list})()\n        "
        "return there_and_back(bare, x, router, *whole, k)": "The result is right, but you gather all experts on every "
        "worker. Let the tokens travel: a token needs k of them.",
        "each = len(w_gate) → each = len(w_gate)\n    if worker.size > 1:\n        bare = type('Alone', (), {'size': "
        "1, 'all_to_all': list})()\n        before, after = worker.rank, worker.size - 1 - worker.rank\n        whole "
        "= [torch.cat([0 * w] * before + [w] + [0 * w] * after) for w in (w_gate, w_value, w_down)]\n        return "
        "worker.reduce_scatter(there_and_back(bare, worker.all_gather(x), router, *whole, k))": "The result is right, "
        "but every worker gets all tokens. Send a token to the workers of its k experts only.",
    },
)
