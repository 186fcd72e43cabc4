"""The exercise on a cross-entropy with a divided vocabulary."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BYTES_PER_TOKEN = 48
"""Largest number of bytes per token that a worker may send: six numbers of 64 bits."""


def with_a_mask(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.to(torch.float64)
    ids = torch.arange(z.shape[1]) + worker.rank * z.shape[1]
    gold = torch.where(ids == targets[:, None], z, torch.zeros_like(z)).sum(1)
    tops = worker.all_gather(torch.logsumexp(z, 1)[None])
    return (torch.logsumexp(tops, 0).mean() - worker.all_reduce(gold).mean()).item()


def _ask(name: str, logits: Tensor, targets: list[int], workers: int, *also: str) -> Case:
    """A case whose `logits` (t, V) of the whole vocabulary are divided among the workers."""
    limit = BYTES_PER_TOKEN * len(targets)
    call = "vocabulary_parallel_loss, parts, [targets] * len(parts), collectives=True"
    looked_at = ("run.results", f"max(run.sent) <= {limit}", *also)
    parts = list(logits.chunk(workers, dim=1))
    return ask(name, call, *looked_at, parts=parts, targets=torch.tensor(targets))


def errata_logits() -> tuple[Tensor, list[int]]:
    """Logits of six tokens over a vocabulary of ten, and targets on both workers."""
    return normal(Random(0), 6, 10), [0, 7, 4, 5, 9, 2]


def _bordered(random: Random, t: int, vocab: int) -> Tensor:
    """Logits of two workers, each of which has −∞ for its first and its last token."""
    return normal(random, t, vocab).index_fill(1, torch.tensor([0, vocab // 2 - 1, vocab // 2, vocab - 1]), -torch.inf)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    far = normal(fixed, 3, 8)
    far[:, 4:] += 300
    return [
        _ask("one worker", normal(fixed, 3, 5), [4, 0, 2], 1),
        _ask("more workers", normal(fixed, 4, 60), [0, 59, 21, 12], 3),
        _ask("more workers", normal(fixed, 2, 80), [37, 44], 4),
        _ask("all targets on one worker", normal(fixed, 3, 40), [24, 25, 37], 2),
        _ask("all targets on one worker", normal(fixed, 3, 40), [0, 13, 19], 2),
        _ask("logits far apart", far, [0, 4, 7], 2),
        _ask("logits far apart", -far, [0, 4, 7], 2),
        _ask("negative logits", normal(fixed, 3, 36) - 200, [5, 0, 33], 2),
        _ask("tokens of different sizes", normal(fixed, 3, 36) + torch.tensor([[900.0], [0], [-900]]), [5, 0, 33], 2),
        _ask("huge logits", 1000 + normal(fixed, 3, 36), [5, 0, 33], 2),
        _ask("huge logits", normal(fixed, 3, 36) - 1000, [5, 0, 33], 2),
        _ask("a logit of −∞", normal(fixed, 2, 6).index_fill(1, torch.tensor([2, 3]), -torch.inf), [0, 5], 2),
        _ask("half precision", (8 * normal(fixed, 3, 8)).half(), [1, 6, 4], 2),
        _ask("half precision", (8 * normal(fixed, 3, 8)).bfloat16(), [1, 6, 4], 2),
        _ask("one token each", normal(fixed, 2, 3), [2, 0], 3, "run.changed"),
        _ask("other logits", normal(random, 4, 36), random.sample([0, 17, 18, 35], 4), 2),
    ]


vocabulary_parallel_loss = Exercise(
    "vocabulary_parallel_loss",
    points=4,
    minutes=12,
    difficulty=3,
    reference=with_a_mask,
    cases=[
        _ask("two workers, six tokens, a vocabulary of ten", *errata_logits(), 2),
        _ask("logits around 200", 200 + normal(Random(1), 3, 8), [1, 6, 3], 2),
        _ask("a vocabulary of 32", normal(Random(2), 2, 32), [3, 30], 2),
        _ask("the largest logit is the other worker's", torch.tensor([[0.0, 1.0, 5.0, 95.0]]), [1], 2),
        _ask("one token's logits are far larger", normal(Random(4), 2, 6) + torch.tensor([[0.0], [900.0]]), [1, 4], 2),
        edge(_ask("two workers with one token each", normal(Random(7), 2, 2), [1, 0], 2)),
        _ask("three workers", normal(Random(3), 3, 48), [47, 0, 24], 3, "run.changed"),
        _ask("logits in half precision", (8 * normal(Random(5), 3, 8)).half(), [1, 6, 4], 2),
        _ask("some logits are −∞", _bordered(Random(6), 2, 8), [1, 6], 2),
        _ask("a worker with nothing but −∞", torch.tensor([[-torch.inf, -torch.inf, 1.0, 2.0]]), [3], 2),
    ],
    hidden_cases=_hidden,
    hints=[
        "The loss of a token is log Σ exp(logit) − logit of its target. Which workers are needed for each of the two "
        "terms?",
        "Subtract the same maximum on every worker: all_reduce(local maximum, op='max'). Then Σ exp can be added up "
        "over the workers.",
        "Exactly one worker has a token's target. It contributes that logit, the others 0, and an all_reduce (sum) "
        "gives it to all.",
        "local = targets − rank · v; here = (0 ≤ local) & (local < v); clamp before you index, and take "
        "torch.where(here, …, 0).",
    ],
    may_use_package=True,
    tolerance=Tolerance(1e-5, 1e-4),  # fp32 around 1000 has steps of 6e-5
)
vocabulary_parallel_loss.variant(with_a_mask)


vocabulary_parallel_loss.equivalent_mutant(
    "gold = wide.gather(1, local.where(here, 0)[:, None])[:, 0].where(here, 0) → "
    "gold = wide.gather(1, local.where(here, 0)[:, None])[:, -1].where(here, 0)",
    "What `gather` returns has one column: the first is the last.",
)


@vocabulary_parallel_loss.variant
def term_by_term(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    v = z.shape[1]
    top = worker.all_reduce(z.amax(1), "max")
    local = targets - worker.rank * v
    here = (local >= 0) & (local < v)
    gold = z.gather(1, local.clamp(0, v - 1)[:, None])[:, 0]
    sums = worker.all_reduce((z - top[:, None]).exp().sum(1))
    gold = worker.all_reduce(torch.where(here, gold, 0.0))
    return (top + sums.log() - gold).mean().item()


@vocabulary_parallel_loss.variant
def three_numbers(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.float()
    v = z.shape[1]
    top = worker.all_reduce(z.max(dim=1).values, op="max")
    local = targets - worker.rank * v
    here = (local >= 0) & (local < v)
    gold = torch.where(here, z[torch.arange(len(z)), local.clamp(0, v - 1)], 0.0)
    sums, gold = worker.all_reduce(torch.stack([(z - top[:, None]).exp().sum(1), gold]))
    return (top + sums.log() - gold).mean().item()


vocabulary_parallel_loss.slips(
    term_by_term,
    {
        "worker.all_reduce(torch.where(here, gold, 0.0)) → worker.all_reduce(torch.where(here, z.logsumexp(1) - gold, "
        "0.0)) ;; (top + sums.log() - gold) → gold": "Your softmax divides by one worker's part of the vocabulary "
        "only. Add up Σ exp over all workers.",
        "z - top[:, None] → z - z.amax(1, keepdim=True)": "You add exponentials that were shifted by different "
        "maxima. Subtract the same maximum on all workers.",
        "(z - top[:, None]).exp().sum(1) → (z - z.amax(1, keepdim=True)).exp().sum(1) * (z.amax(1) - top).exp()": "A "
        "worker whose logits are all −∞ subtracts its own maximum: −∞ − (−∞) is NaN. Subtract the maximum over all "
        "workers.",
        "z.amax(1) → z.max() ;; top[:, None] → top": "You subtract the same maximum from all tokens. For a token "
        "whose logits are far below it, Σ exp is 0: use each token's own maximum.",
        'worker.all_reduce(z.amax(1), "max") → z.amax(1) ;; here, gold, 0.0 → here, gold - top, 0.0 ;; top + sums → '
        "sums": "You subtract each worker's own maximum, from its target's logit as well. Sums of exponentials with "
        "different maxima cannot be added: subtract the maximum of all workers, all_reduce(…, op='max').",
        'logits.double() → logits.float() ;; worker.all_reduce(z.amax(1), "max") → torch.zeros(len(z))': "You do not "
        "subtract the maximum, and exp(200) is infinite in fp32.",
        'worker.all_reduce(z.amax(1), "max") → torch.zeros(len(z))': "You do not subtract the maximum. In fp64 exp "
        "overflows at 710 instead of 89, and logits may be 1000.",
        "torch.where(here, gold, 0.0) → gold * here": "A worker without the target multiplies a logit by 0. If that "
        "logit is −∞ the product is NaN: take 0 with torch.where.",
        "top = → return torch.nn.functional.cross_entropy(worker.all_gather(z, 1), targets).item()\n    top =": "The "
        "loss is right, but you send all logits: as many numbers per token as the vocabulary has. Three are enough.",
        "local.clamp(0, v - 1) → (targets % v) ;; torch.where(here, gold, 0.0) → gold": "Every worker adds its logit "
        "at `target % v`, and only one of them has the target. A worker that does not have it adds 0.",
        "here, gold, 0.0)) → here, gold, 0.0)) / worker.size": "You divide the target's logit by the number of "
        "workers. One worker has it and the others add 0, so take the sum.",
        "gold = worker.all_reduce(torch.where(here, gold, 0.0)) → own = torch.where(here, top + sums.log() - gold, "
        "0.0).sum() / here.sum().clamp(min=1) ;; (top + sums.log() - gold).mean() → worker.all_reduce(own / "
        "worker.size)": "Each worker of yours takes the mean over the targets it has, and you average these means. "
        "Average over all tokens.",
        ".mean() → .sum()": "You return the sum over the tokens. The task asks for their mean.",
        "torch.where(here, gold, 0.0) → gold": "A worker without the target adds the logit of another token. It must "
        "add 0.",
        "worker.all_reduce(torch.where(here, gold, 0.0)) → torch.where(here, gold, 0.0)": "Only the worker that has a "
        "target uses its logit. Send it, so that all workers return the loss.",
        ".mean().item() → ": "You return the loss of each token. The task asks for their mean, one number.",
        "logits.double() → logits": "You compute in the dtype of the logits. 16 bits round the sums of exponentials: "
        "convert to fp32 or fp64 first.",
        ', "max" → ': "You add up the workers' maxima. All must subtract the largest of them: `all_reduce(..., "
        'op="max")`.',
        "top + sums → sums": "You subtract the maximum before exp and do not add it again: log Σ exp is the maximum "
        "plus the log of your sum.",
        "here, gold, 0.0 → here, gold - top, 0.0": "You subtract the maximum from the target's logit, and add it to "
        "log Σ exp: subtract it from both, or from neither.",
        "(z - top[:, None]).exp().sum(1) → z.logsumexp(1) ;; top + sums.log() → sums": "You add up the workers' log Σ "
        "exp. The logarithm comes last: add up the sums of exponentials.",
        '(z - top[:, None]).exp().sum(1) → z.logsumexp(1), "max" ;; top + sums.log() → sums': "You take the largest "
        "of the workers' log Σ exp. The softmax divides by the sum over all workers.",
        'here, gold, 0.0) → here, gold, 0.0), "max"': "You take the larger of the target's logit and the 0 of the "
        "other workers. A logit may be negative: add them up.",
        "- gold).mean() → - gold)[here].mean()": "Each worker returns the mean over the targets that it has itself. "
        "All return the mean over all tokens.",
        "local < v → local <= v": "Token (r + 1)·v belongs to the next worker, and you count it on two. A worker has "
        "v tokens: local < v.",
        "local >= 0 → local > 0": "You leave out a worker's first token: its local number is 0, and it belongs to the "
        "worker. Test local >= 0.",
        "local.clamp(0, v - 1) → local": "You look up a target that this worker does not have: its local number is "
        "negative, or beyond the last logit. Clamp it, or replace it by 0, before you index.",
        ".item() → .item() if worker.rank == 0 else None": "Only rank 0 returns the loss. Every worker must return it.",
        'worker.all_reduce(z.amax(1), "max") → z.amax(1)': "Each worker subtracts its own maximum and adds it again. "
        "Sums of exponentials with different maxima cannot be added: subtract the maximum of all workers, "
        "all_reduce(…, op='max').",
        "& (local < v) →  ;; local.clamp(0, v - 1) → local.where(here, 0)": "You test only that a target is not below "
        "a worker's tokens. It may be above them, too: local < v.",
        "(local >= 0) & (local < v) → local < v ;; local.clamp(0, v - 1) → local.where(here, 0)": "You test only that "
        "a target is not above a worker's tokens. It may be below them, too: local >= 0.",
        "sums.log() → sums": "You leave out the logarithm of Σ exp.",
        "sums.log() → sums.log2()": "You take the logarithm to base 2. The loss is in nats: the natural logarithm.",
        "worker.all_reduce((z - top[:, None]).exp().sum(1)) → (z - top[:, None]).exp().sum(1)": "Your Σ exp has only "
        "this worker's part of the vocabulary. Add the parts up over the workers.",
        "(top + sums.log() - gold).mean() → -(gold - top - sums.log()).exp().mean()": "You average the probabilities "
        "of the targets. The loss is the mean of −ln p.",
    },
)
