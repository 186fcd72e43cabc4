"""The exercise on the z-loss and its gradient."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal, normal64


def _by_autograd(logits: Tensor, targets: Tensor, alpha: float) -> list[Tensor]:
    wide = logits.double().requires_grad_()
    loss = F.cross_entropy(wide, targets) + alpha * wide.logsumexp(dim=-1).square().mean()
    return [part.to(logits.dtype) for part in (loss, torch.autograd.grad(loss, wide)[0])]


def _parts(name: str, logits: Tensor, targets: list[int], alpha: float) -> list[Case]:
    """Return a case for the loss and one for the gradient, so that each of the two earns points by itself."""
    inputs = {"logits": logits, "targets": torch.tensor(targets), "alpha": alpha}
    return [
        script(f"{name}: the {part}", f"z_loss(logits, targets, alpha)[{place}]", **inputs)
        for place, part in enumerate(("loss", "gradient"))
    ]


def _ask(name: str, random: Random, n: int, v: int, alpha: float, dtype: torch.dtype = torch.float64) -> list[Case]:
    targets = [random.randrange(v) for _ in range(n)]
    return _parts(name, 2 * normal(random, n, v, dtype=dtype), targets, alpha)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(16)
    far = 900 * torch.tensor([[1.0], [-1.0]], dtype=torch.float64) + normal64(fixed, 2, 4)
    return [
        *_parts("extreme logits", far, [0, 3], 0.01),
        *_parts("extreme logits", far[:1], [2], 1e-4),
        *_parts("an impossible token", torch.tensor([[200.0, 0.0]]), [1], 0.001),
        *_parts("one token", torch.tensor([[0.5], [-2.0]], dtype=torch.float64), [0, 0], 0.1),
        *_ask("a square", fixed, 3, 3, 0.2),
        *_ask("PaLM's factor", fixed, 4, 6, 1e-4),
        *_ask("float32", random, 3, 5, 0.2, torch.float32),
        *_ask("other shapes", random, 5, 3, random.uniform(0.01, 0.5)),
        *_ask("other shapes", random, 2, 9, random.uniform(0.01, 0.5)),
    ]


_LOGITS = torch.tensor([[5.0, 4.0, 3.0]], dtype=torch.float64)
_CENTRED = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64).log()

z_loss = Exercise(
    "z_loss",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_by_autograd,
    cases=[
        *_parts("three logits", _LOGITS, [0], 0.1),
        *_parts("the same without z-loss", _LOGITS, [0], 0.0),
        *_parts("Z is 1 already", _CENTRED, [1], 0.1),
        *_parts("two tokens", torch.tensor([[2.0, 0.0], [-1.0, 3.0]], dtype=torch.float64), [0, 0], 0.1),
        *_parts("targets 0 and 2", torch.cat([_LOGITS, 1 - _LOGITS]), [0, 2], 0.1),
        *_parts("logits of 200", torch.tensor([[200.0, 100.0]]), [1], 0.001),
    ],
    hidden_cases=_hidden,
    hints=[
        "logits.logsumexp(dim=-1) is log Z of every row, safely. Then −log P of the target is log Z minus its logit.",
        "d log Z / d logit_j is p_j. The chain rule gives 2 α log Z · p_j for the square.",
        "−log P is log Z less the right logit, so its slope is p, and 1 less at the target. Add both slopes. The mean "
        "divides everything by the number of rows.",
    ],
    forbid=[".backward", "torch.autograd", "torch.func"],
)


@z_loss.variant
def by_the_formulas(logits: Tensor, targets: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    log_z = logits.logsumexp(dim=-1, keepdim=True)
    p = (logits - log_z).exp()
    hit = F.one_hot(targets, logits.shape[-1])
    own = (log_z - logits)[hit.bool()]
    loss = own.mean() + alpha * log_z.square().mean()
    gradient = (p - hit + 2 * alpha * log_z * p) / len(targets)
    return loss, gradient


z_loss.slips(
    by_the_formulas,
    {
        "own.mean() + → own.mean() - ;; hit + → hit -": "You subtract α log²Z from the loss. Descent would then make "
        "log Z larger without limit: add it.",
        "own.mean() + → own.mean() -": "In the loss you subtract α log²Z: add it.",
        "hit + → hit -": "In the gradient you subtract the part of the z-loss: add it.",
        "p - hit → p - hit.amax(dim=0, keepdim=True)": "You subtract 1 for every token in the columns of all targets. "
        "Each row has its own target.",
        "p - hit → p": "Your gradient of −log P lacks the 1 that the right token's logit loses: x_right is part of "
        "−log P, too.",
        "p - hit → p * (hit - p)": "You multiply by p, as in the slope of a sigmoid. The slope of −log P has no "
        "such factor.",
        "p - hit → hit - p": "Your gradient of −log P has the wrong sign: the part of log P is not negated.",
        "log_z.square() → log_z": "In the loss you add α log Z: its square is missing.",
        "alpha * log_z.square() → (alpha * log_z).square()": "In the loss you square α, too.",
        "log_z.square() → own.square()": "In the loss you square −log P. The penalty is the square of log Z.",
        "own.mean() → own.sum() ;; square().mean() → square().sum()": "Your gradient is that of the mean, and right. "
        "Your loss is a sum over the tokens.",
        "2 * alpha * log_z * p → 2 * alpha * p": "Your gradient of log²Z lacks log Z: the derivative of y² is 2y, not "
        "2.",
        "2 * alpha → 2": "Your gradient of the z-loss lacks its factor α.",
        "log_z * p → log_z.exp() * p": "In the gradient you take Z where log Z belongs.",
        "log_z * p → log_z.mean() * p": "In the gradient you take the mean of log Z. Each token has its own.",
        "p = (logits - log_z).exp() → p = logits.softmax(dim=0)": "For the gradient you take a "
        "softmax over the tokens: it runs over the vocabulary, dim=-1.",
        "return loss, gradient → return -loss, -gradient": "You return log P − α log²Z. Return its negative: descent "
        "on yours makes the right token less likely.",
        "log_z.square().mean() → log_z.mean() ** 2 ;; log_z * p → log_z.mean() * p": "You square the mean of log Z. "
        "The penalty is a mean of squares: square first, then average.",
        "log_z.square().mean() → log_z.mean() ** 2": "You square the mean of log Z in the loss. It needs "
        "the mean of the squares.",
        "2 * alpha → alpha": "Your gradient of log²Z has no factor 2: the derivative of y² is 2y.",
        "log_z * p → log_z": "Your z-loss pulls all logits down equally. Each is pulled in proportion to its "
        "probability: d log Z / d logit = p.",
        "own.mean() + →  ;; p - hit + → ": "You return the z-loss alone. Add it to the cross-entropy.",
        "log_z.square() → log_z ;; 2 * alpha * log_z * p → alpha * p": "You add α log Z without the square. It has no "
        "minimum at Z = 1: it keeps pulling Z down to 0.",
        "log_z.square() → (2 * log_z) ;; alpha * log_z * p → alpha * p": "log²Z means (log Z)². You took log(Z²), "
        "which is 2 log Z.",
        "log_z = → logits = logits - logits.amax(dim=-1, keepdim=True)\n    log_z =": "You take log Z of logits from "
        "which the maximum is already subtracted. The cross-entropy does not change by that, but the penalty does: add "
        "the maximum to log Z again.",
        "own.mean() → own.sum() ;; square().mean() → square().sum() ;;  / len(targets) → ": "You add up over the "
        "tokens. Take the mean, or the loss grows with the batch.",
        " / len(targets) → ": "The loss is a mean, so each row's gradient is divided by the number of rows. Yours is "
        "not.",
        "log_z = logits.logsumexp(dim=-1, keepdim=True) → z = logits.exp().sum(dim=-1, keepdim=True)\n    log_z = "
        "z.log() ;; (logits - log_z).exp() → logits.exp() / z ;; (log_z - logits)[ → -p.log()[": "Your exp overflows "
        "for large logits, and Z with it. `logsumexp` subtracts the maximum first.",
        "logits.logsumexp(dim=-1, keepdim=True) → logits.exp().sum(dim=-1, keepdim=True).log() ;; (logits - "
        "log_z).exp() → logits.softmax(dim=-1)": "Your exp overflows for large logits, and Z with it. `logsumexp` "
        "subtracts the maximum first.",
        "p - hit + 2 * alpha * log_z * p → (p - hit) * (1 + 2 * alpha * log_z)": "You multiply the whole gradient of "
        "−log P by 1 + 2 α log Z. Only p has that factor, not the 1.",
        " + 2 * alpha * log_z * p → ": "Your gradient is that of −log P alone: the part of the z-loss is missing.",
        "log_z.square() → logits.logsumexp(0).square() ;; log_z * p → logits.logsumexp(0) * p": "You add up exp over "
        "the tokens. Z belongs to one token: add up over the vocabulary, dim=-1.",
        "len(targets) → logits.numel()": "You divide the gradient by the number of all logits. The mean runs over the "
        "n tokens: divide by n.",
    },
)


@z_loss.variant
def with_cross_entropy(logits: Tensor, targets: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    log_z, p = torch.logsumexp(logits, -1), torch.softmax(logits, -1)
    loss = F.cross_entropy(logits, targets) + alpha * (log_z**2).mean()
    return loss, (p - F.one_hot(targets, logits.shape[1]) + 2 * alpha * log_z[:, None] * p) / logits.shape[0]
