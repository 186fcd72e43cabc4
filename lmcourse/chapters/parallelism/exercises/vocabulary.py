"""The exercise on a cross-entropy with a divided vocabulary."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.exercises.right_vocabulary import RIGHT_LOSSES
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BYTES_PER_TOKEN = 48
"""Largest number of bytes per token that a worker may send: six numbers of 64 bits."""


def _whole(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    """Gather a log-sum-exp and a logit per token and worker, and compute the loss from them in float64."""
    wide = logits.double()
    local = targets - worker.rank * logits.shape[1]
    here = (local >= 0) & (local < logits.shape[1])
    gold = wide.gather(1, local.clamp(0, logits.shape[1] - 1)[:, None])[:, 0].masked_fill(~here, -torch.inf)
    both = worker.all_gather(torch.stack([wide.logsumexp(1), gold])[None])
    return (both[:, 0].logsumexp(0) - both[:, 1].amax(0)).mean().item()


def _ask(name: str, logits: Tensor, targets: list[int], workers: int) -> Case:
    """A case whose `logits` (t, V) of the whole vocabulary are divided among the workers."""
    limit = BYTES_PER_TOKEN * len(targets)
    call = "vocabulary_parallel_loss, parts, [targets] * len(parts), collectives=True"
    looked_at = ("run.results", f"max(run.sent) <= {limit}", "run.changed")
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
        _ask("one token each", normal(fixed, 2, 3), [2, 0], 3),
        _ask("other logits", normal(random, 4, 36), random.sample([0, 17, 18, 35], 4), 2),
    ]


vocabulary_parallel_loss = Exercise(
    "vocabulary_parallel_loss",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_whole,
    cases=[
        _ask("two workers, six tokens, a vocabulary of ten", *errata_logits(), 2),
        _ask("logits around 200", 200 + normal(Random(1), 3, 8), [1, 6, 3], 2),
        _ask("a vocabulary of 32", normal(Random(2), 2, 32), [3, 30], 2),
        _ask("the largest logit is the other worker's", torch.tensor([[0.0, 1.0, 5.0, 95.0]]), [1], 2),
        _ask("one token's logits are far larger", normal(Random(4), 2, 6) + torch.tensor([[0.0], [900.0]]), [1, 4], 2),
        _ask("three workers", normal(Random(3), 3, 48), [47, 0, 24], 3),
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


vocabulary_parallel_loss.equivalent_mutant(
    "gold = wide.gather(1, local.where(here, 0)[:, None])[:, 0].where(here, 0) → "
    "gold = wide.gather(1, local.where(here, 0)[:, None])[:, -1].where(here, 0)",
    "What `gather` returns has one column: the first is the last.",
)


for right_answer in RIGHT_LOSSES:
    vocabulary_parallel_loss.variant(right_answer)


def _gold(worker: CollectiveWorker, z: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """This worker's logit of each target, or 0, and whether the worker has the target."""
    local = targets - worker.rank * z.shape[1]
    here = (local >= 0) & (local < z.shape[1])
    gold = z.gather(1, local.clamp(0, z.shape[1] - 1)[:, None])[:, 0]
    return torch.where(here, gold, 0.0), here


def _own_maxima(worker: CollectiveWorker, logits: Tensor, targets: Tensor, rescaled: bool) -> float:
    z = logits.double()
    own = z.amax(1)
    top = worker.all_reduce(own, "max")
    sums = (z - own[:, None]).exp().sum(1) * ((own - top).exp() if rescaled else 1.0)
    sums, gold = worker.all_reduce(torch.stack([sums, _gold(worker, z, targets)[0]]))
    return (top + sums.log() - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception(
    "Your softmax divides by one worker's part of the vocabulary only. Add up Σ exp over all workers."
)
def own_loss(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    gold, here = _gold(worker, z, targets)
    losses = torch.where(here, z.logsumexp(1) - gold, 0.0)
    return worker.all_reduce(losses).mean().item()


@vocabulary_parallel_loss.misconception(
    "You add exponentials that were shifted by different maxima. Subtract the same maximum on all workers."
)
def local_maximum(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return _own_maxima(worker, logits, targets, rescaled=False)


@vocabulary_parallel_loss.misconception(
    "A worker whose logits are all −∞ subtracts its own maximum: −∞ − (−∞) is NaN. Subtract the maximum over all "
    "workers."
)
def own_maximum_first(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return _own_maxima(worker, logits, targets, rescaled=True)


@vocabulary_parallel_loss.misconception(
    "You subtract the same maximum from all tokens. For a token whose logits are far below it, Σ exp is 0: use each "
    "token's own maximum."
)
def one_maximum(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    top = worker.all_reduce(z.max(), "max")
    sums = worker.all_reduce((z - top).exp().sum(1))
    return (top + sums.log() - worker.all_reduce(_gold(worker, z, targets)[0])).mean().item()


@vocabulary_parallel_loss.misconception(
    "You subtract each worker's own maximum, from its target's logit as well. Sums of exponentials with different "
    "maxima cannot be added: subtract the maximum of all workers, all_reduce(…, op='max')."
)
def local_maximum_everywhere(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    top = z.amax(1)
    gold, here = _gold(worker, z, targets)
    sums = (z - top[:, None]).exp().sum(1)
    sums, gold = worker.all_reduce(torch.stack([sums, torch.where(here, gold - top, 0.0)]))
    return (sums.log() - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception("You do not subtract the maximum, and exp(200) is infinite in fp32.")
def no_maximum(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.float()
    sums, gold = worker.all_reduce(torch.stack([z.exp().sum(1), _gold(worker, z, targets)[0]]))
    return (sums.log() - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception(
    "You do not subtract the maximum. In fp64 exp overflows at 710 instead of 89, and logits may be 1000."
)
def no_maximum_in_double(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    sums, gold = worker.all_reduce(torch.stack([z.exp().sum(1), _gold(worker, z, targets)[0]]))
    return (sums.log() - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception(
    "A worker without the target multiplies a logit by 0. If that logit is −∞ the product is NaN: take 0 with "
    "torch.where."
)
def multiplied_by_a_mask(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    local = targets - worker.rank * z.shape[1]
    here = (local >= 0) & (local < z.shape[1])
    gold = z.gather(1, local.clamp(0, z.shape[1] - 1)[:, None])[:, 0] * here
    return (rows - worker.all_reduce(gold)).mean().item()


@vocabulary_parallel_loss.misconception(
    "The loss is right, but you send all logits: as many numbers per token as the vocabulary has. Three are enough."
)
def gathers_logits(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return F.cross_entropy(worker.all_gather(logits.double(), 1), targets).item()


@vocabulary_parallel_loss.misconception(
    "Every worker adds its logit at `target % v`, and only one of them has the target. A worker that does not have it "
    "adds 0."
)
def global_ids(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    gold = z.gather(1, (targets % z.shape[1])[:, None])[:, 0]
    return (rows - worker.all_reduce(gold)).mean().item()


@vocabulary_parallel_loss.misconception(
    "You divide the target's logit by the number of workers. One worker has it and the others add 0, so take the sum."
)
def gold_averaged(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    return (rows - worker.all_reduce(_gold(worker, z, targets)[0]) / worker.size).mean().item()


@vocabulary_parallel_loss.misconception(
    "Each worker of yours takes the mean over the targets it has, and you average these means. Average over all tokens."
)
def mean_of_losses(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    gold, here = _gold(worker, z, targets)
    mine = torch.where(here, rows - gold, 0.0).sum() / here.sum().clamp(min=1)
    return (worker.all_reduce(mine) / worker.size).item()


@vocabulary_parallel_loss.misconception("You return the sum over the tokens. The task asks for their mean.")
def sum_of_tokens(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return _whole(worker, logits, targets) * len(targets)


@vocabulary_parallel_loss.misconception("A worker without the target adds the logit of another token. It must add 0.")
def clamped_and_added(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    local = (targets - worker.rank * z.shape[1]).clamp(0, z.shape[1] - 1)
    return (rows - worker.all_reduce(z.gather(1, local[:, None])[:, 0])).mean().item()


@vocabulary_parallel_loss.misconception(
    "Only the worker that has a target uses its logit. Send it, so that all workers return the loss."
)
def gold_stays_at_home(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    return (rows - _gold(worker, z, targets)[0]).mean().item()


@vocabulary_parallel_loss.misconception("You return the loss of each token. The task asks for their mean, one number.")
def loss_of_each(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> Tensor:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    return rows - worker.all_reduce(_gold(worker, z, targets)[0])


def _terms(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Per token over all workers: the largest logit, Σ exp of the logits minus the largest, and the target's logit."""
    z = logits.double()
    top = worker.all_reduce(z.amax(1), "max")
    sums, gold = worker.all_reduce(torch.stack([(z - top[:, None]).exp().sum(1), _gold(worker, z, targets)[0]]))
    return top, sums, gold


@vocabulary_parallel_loss.misconception(
    "You compute in the dtype of the logits. 16 bits round the sums of exponentials: convert to fp32 or fp64 first."
)
def in_the_dtype_of_the_logits(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    top = worker.all_reduce(logits.amax(1), "max")
    gold = worker.all_reduce(_gold(worker, logits, targets)[0].to(logits.dtype))
    sums = worker.all_reduce((logits - top[:, None]).exp().sum(1))
    return (top + sums.log() - gold).mean().item()


@vocabulary_parallel_loss.misconception(
    'You add up the workers\' maxima. All must subtract the largest of them: `all_reduce(..., op="max")`.'
)
def sum_of_maxima(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    top = worker.all_reduce(z.amax(1))
    sums, gold = worker.all_reduce(torch.stack([(z - top[:, None]).exp().sum(1), _gold(worker, z, targets)[0]]))
    return (top + sums.log() - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception(
    "You subtract the maximum before exp and do not add it again: log Σ exp is the maximum plus the log of your sum."
)
def maximum_not_added(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    _, sums, gold = _terms(worker, logits, targets)
    return (sums.log() - gold).mean().item()


@vocabulary_parallel_loss.misconception(
    "You subtract the maximum from the target's logit, and add it to log Σ exp: subtract it from both, or from neither."
)
def only_the_target_shifted(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    top, sums, gold = _terms(worker, logits, targets)
    return (2 * top + sums.log() - gold).mean().item()


@vocabulary_parallel_loss.misconception(
    "You add up the workers' log Σ exp. The logarithm comes last: add up the sums of exponentials."
)
def sum_of_logarithms(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows, gold = worker.all_reduce(torch.stack([z.logsumexp(1), _gold(worker, z, targets)[0]]))
    return (rows - gold).mean().item()  # type: ignore[no-any-return]


@vocabulary_parallel_loss.misconception(
    "You take the largest of the workers' log Σ exp. The softmax divides by the sum over all workers."
)
def largest_logarithm(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_reduce(z.logsumexp(1), "max")
    return (rows - worker.all_reduce(_gold(worker, z, targets)[0])).mean().item()


@vocabulary_parallel_loss.misconception(
    "You take the larger of the target's logit and the 0 of the other workers. A logit may be negative: add them up."
)
def target_by_maximum(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    return (rows - worker.all_reduce(_gold(worker, z, targets)[0], "max")).mean().item()


@vocabulary_parallel_loss.misconception(
    "Each worker returns the mean over the targets that it has itself. All return the mean over all tokens."
)
def own_targets_only(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    top, sums, gold = _terms(worker, logits, targets)
    here = _gold(worker, logits.double(), targets)[1]
    return (top + sums.log() - gold)[here].mean().item()


@vocabulary_parallel_loss.misconception(
    "Token (r + 1)·v belongs to the next worker, and you count it on two. A worker has v tokens: local < v."
)
def one_token_too_many(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    local = targets - worker.rank * z.shape[1]
    gold = z.gather(1, local.clamp(0, z.shape[1] - 1)[:, None])[:, 0]
    return (rows - worker.all_reduce(torch.where((local >= 0) & (local <= z.shape[1]), gold, 0.0))).mean().item()


@vocabulary_parallel_loss.misconception(
    "You leave out a worker's first token: its local number is 0, and it belongs to the worker. Test local >= 0."
)
def first_token_missing(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    top, sums, _ = _terms(worker, logits, targets)
    z = logits.double()
    local = targets - worker.rank * z.shape[1]
    gold = z.gather(1, local.clamp(0, z.shape[1] - 1)[:, None])[:, 0]
    gold = worker.all_reduce(torch.where((local > 0) & (local < z.shape[1]), gold, 0.0))
    return (top + sums.log() - gold).mean().item()


@vocabulary_parallel_loss.misconception("You take the mean of the exponentials. The softmax divides by their sum.")
def mean_of_exponentials(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    top, sums, gold = _terms(worker, logits, targets)
    return (top + (sums / logits.shape[1]).log() - gold).mean().item()


@vocabulary_parallel_loss.misconception(
    "You divide the loss by the number of workers. They share one and the same loss."
)
def divided_by_workers(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return _whole(worker, logits, targets) / worker.size


@vocabulary_parallel_loss.misconception(
    "You look up a target that this worker does not have: its local number is negative, or beyond the last logit. "
    "Clamp it, or replace it by 0, before you index."
)
def no_clamp(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.double()
    rows = worker.all_gather(z.logsumexp(1)[None]).logsumexp(0)
    local = targets - worker.rank * z.shape[1]
    here = (local >= 0) & (local < z.shape[1])
    gold = torch.where(here, z.gather(1, local[:, None])[:, 0], 0.0)
    return (rows - worker.all_reduce(gold)).mean().item()


@vocabulary_parallel_loss.misconception("Only rank 0 returns the loss. Every worker must return it.")
def rank_0_only(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float | None:
    loss = _whole(worker, logits, targets)
    return loss if worker.rank == 0 else None


@vocabulary_parallel_loss.misconception("The sign is wrong: the loss is log Σ exp minus the logit of the target.")
def negative(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    return -_whole(worker, logits, targets)


@vocabulary_parallel_loss.misconception(
    "You change the logits in place: they now hold other numbers. Compute new ones."
)
def in_place(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    loss = _whole(worker, logits, targets)
    logits.sub_(1)
    return loss
