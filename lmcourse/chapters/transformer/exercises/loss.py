"""The exercise on the loss of the next token."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal

LN2 = math.log(2)
NOT_COUNTED = -100


def _by_torch(logits: Tensor, tokens: Tensor, ignored: int = NOT_COUNTED) -> Tensor:
    """Torch's cross-entropy in float64, over the predictions that count."""
    counts = tokens[:, 1:] != ignored
    if not counts.any():
        return logits[:0].to(torch.promote_types(logits.dtype, torch.float32)).sum()
    loss = F.cross_entropy(logits[:, :-1][counts].double(), tokens[:, 1:][counts])
    return loss.to(torch.promote_types(logits.dtype, torch.float32))


TEXT = torch.tensor([[[0.0, 0.0, 0.0, 0.0], [LN2, 0.0, 0.0, 0.0], [5.0, 1.0, 2.0, 3.0]]])
UNEVEN = torch.tensor([[0, 2, 1, 0, 2], [1, 2, NOT_COUNTED, NOT_COUNTED, NOT_COUNTED]])
NOTHING = torch.tensor([[1, NOT_COUNTED, NOT_COUNTED]] * 2)
NEAR_1000 = (1000 + normal(Random(4), 2, 6, 5, scale=4.0)).bfloat16()
"""Logits near 1000, where bf16 has steps of 4: computed in 16 bits, the loss has more than a rounding error."""
STEP = "x = logits.clone().requires_grad_()\ncausal_lm_loss(x, tokens).backward()\nx.grad"


def _drawn(name: str, random: Random, b: int, s: int, v: int, scale: float = 2.0, dtype: str = "float32") -> Case:
    logits = normal(random, b, s, v, scale=scale, dtype=getattr(torch, dtype))
    return case(name, logits, integers(random, b, s, low=0, high=v - 1, dtype=torch.int64))


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    padded = integers(fixed, 3, 6, low=0, high=4, dtype=torch.int64)
    padded[0, 3:], padded[1, :2], padded[2, 1:] = NOT_COUNTED, NOT_COUNTED, NOT_COUNTED
    return [
        _drawn("other shapes", fixed, 3, 5, 7),
        _drawn("other shapes", fixed, 1, 2, 3),
        _drawn("other shapes", fixed, 3, 2, 4),
        _drawn("one token in the vocabulary", fixed, 2, 3, 1),
        case("one token in the vocabulary", normal(fixed, 1, 3, 1), torch.tensor([[0, NOT_COUNTED, 0]])),
        _drawn("large logits", fixed, 2, 4, 5, scale=300.0),
        _drawn("large logits", fixed, 2, 4, 5, scale=3e4),
        _drawn("other formats", fixed, 2, 40, 9, dtype="float16"),
        _drawn("other formats", fixed, 2, 40, 9, dtype="bfloat16"),
        _drawn("other formats", fixed, 2, 4, 5, dtype="float64"),
        case("ignored targets", normal(fixed, 3, 6, 5), padded),
        case("ignored targets", normal(fixed, 3, 6, 5), padded.clamp(min=0), 2),
        edge(case("ignored targets", normal(fixed, 3, 6, 5), torch.where(padded == NOT_COUNTED, 77, padded), 77)),
        case("nothing counts", normal(fixed, 2, 3, 4), torch.full((2, 3), NOT_COUNTED)),
        case("nothing counts", normal(fixed, 3, 1, 4), torch.tensor([[1], [2], [3]])),
        case("nothing counts", normal(fixed, 2, 3, 4).double(), torch.full((2, 3), NOT_COUNTED)),
        script("nothing counts", STEP, logits=normal(fixed, 2, 1, 5).double(), tokens=torch.tensor([[3], [1]])),
        case("a run that has diverged", math.nan * normal(fixed, 2, 3, 4), integers(fixed, 2, 3, low=0, high=3).long()),
        script("the gradient", STEP, logits=normal(fixed, 3, 6, 5), tokens=padded),
        script("tokens stay", "causal_lm_loss(logits, tokens)\ntokens", logits=normal(fixed, 3, 6, 5), tokens=padded),
        *(_drawn("other shapes", random, random.randint(1, 4), v // 3, v) for v in random.sample(range(9, 30), 3)),
    ]


causal_lm_loss = Exercise(
    "causal_lm_loss",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("by hand", TEXT, torch.tensor([[1, 2, 0]])),
        case("five tokens, and two with padding", normal(Random(1), 2, 5, 3), UNEVEN),
        case("another id is ignored", normal(Random(2), 2, 4, 3), torch.tensor([[1, 0, 2, 0], [0, 1, 2, 2]]), 0),
        edge(case("77 is ignored, which is no token", normal(Random(7), 1, 4, 3), torch.tensor([[1, 77, 2, 0]]), 77)),
        case("logits of 300", 100 * TEXT.clamp(max=3).flip(1), torch.tensor([[2, 1, 2]])),
        case("nothing counts", TEXT.repeat(2, 1, 1), NOTHING),
        _drawn("one text of two tokens", Random(9), 1, 2, 3),
        _drawn("three texts of two tokens", Random(8), 3, 2, 3),
        edge(case("a vocabulary of one", torch.ones(1, 3, 1), torch.tensor([[0, NOT_COUNTED, 0]]))),
        edge(case("nothing counts, in fp64", TEXT.double().repeat(2, 1, 1), NOTHING)),
        edge(case("one token: nothing to predict", TEXT[:, :1], torch.tensor([[2]]))),
        case("fp16, logits of 60", 12 * TEXT.half().flip(1), torch.tensor([[3, 1, 2]])),
        case("bf16, logits near 1,000", NEAR_1000, integers(Random(5), 2, 6, low=0, high=4, dtype=torch.int64)),
        script("a step in which nothing counts", STEP, logits=TEXT, tokens=torch.full((1, 3), NOT_COUNTED)),
        case("fp64", normal(Random(6), 2, 4, 5).double(), torch.tensor([[1, 0, 4, 2], [3, 1, 2, 0]])),
        case("a NaN stays a NaN", math.nan * TEXT, torch.tensor([[1, 2, 0]])),
        script("its gradient", STEP, logits=normal(Random(3), 2, 5, 3), tokens=UNEVEN),
    ],
    hidden_cases=_hidden,
    hints=[
        "Two slices: the predictions are `logits[:, :-1]`, and their targets are `tokens[:, 1:]`.",
        "−ln softmax(z)[y] = logsumexp(z) − z[y]. `gather` picks z[y], but not at an index of −100: put any valid "
        "index there first, and leave out those places afterwards.",
        "Divide the sum over all predictions that count by their number, or by 1 if there is none.",
    ],
    forbid=[".cross_entropy", ".nll_loss", "torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss"],
)


@causal_lm_loss.variant
def targets_that_count(logits: Tensor, tokens: Tensor, ignored: int = -100) -> Tensor:
    counts = tokens[:, 1:] != ignored
    wide = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))
    targets = tokens[:, 1:].masked_fill(~counts, 0)
    losses = wide.logsumexp(-1) - wide.gather(-1, targets[..., None])[..., 0]
    chosen = losses[counts]
    return chosen.mean() if len(chosen) else chosen.sum()


causal_lm_loss.slips(
    targets_that_count,
    {
        "counts = tokens[:, 1:] → counts = tokens ;; logits[:, :-1] → logits ;; targets = tokens[:, 1:] → targets = "
        "tokens": "Your loss asks every position for the token that it has just read: a model gets your loss to 0 by "
        "copying.",
        "counts = tokens[:, 1:] → counts = tokens[:, :-1] ;; logits[:, :-1] → logits[:, 1:] ;; targets = tokens[:, 1:] "
        "→ targets = tokens[:, :-1]": "Your position t predicts the token *before* it, which it has already read.",
        "chosen.mean() → -chosen.mean()": "The sign is missing. A model that minimises your loss makes the text *less* "
        "likely.",
        "chosen = losses[counts] → chosen = -losses[counts].neg().exp()": "The logarithm is missing: a mean of "
        "probabilities is not a likelihood.",
        "chosen.mean() if len(chosen) else chosen.sum() → ((losses * counts).sum(1) / "
        "counts.sum(1).clamp(min=1)).mean()": "Your short texts count as much as long ones. Average over all "
        "predictions at once.",
        "chosen.mean() → chosen.sum() / counts.numel()": "You count ignored targets in the mean: you divide by their "
        "number, too.",
        "!= ignored → != -100": "You do not use `ignored`: you always leave out −100.",
        "wide.logsumexp(-1) - wide.gather → -wide.log_softmax(1).gather": "Your softmax is over the positions. Each "
        "position distributes its probability over the vocabulary.",
        "chosen.mean() → chosen.mean().item() ;; chosen.sum() → chosen.sum().item()": "You return a Python number. "
        "Return the tensor itself: `backward()` needs its graph.",
        "chosen.mean() → chosen.sum()": "You return a sum, which grows with the batch. Take the mean.",
        "wide.logsumexp(-1) - wide.gather → -(wide.exp() / wide.exp().sum(-1, keepdim=True)).gather ;; [..., 0] → "
        "[..., 0].log() || wide.logsumexp(-1) → wide.exp().sum(-1).log()": "Your exponentials leave the range of fp32: "
        "e²⁰⁰ is infinite there, and e⁻²⁰⁰ is 0. Subtract the largest logit of the *same position* first; logsumexp "
        "does.",
        "wide.logsumexp(-1) - wide.gather → -wide.softmax(-1).gather ;; [..., 0] → [..., 0].log()": "You take the "
        "logarithm of a softmax. For an unlikely token the softmax is 0 in fp32, and its logarithm −∞: use "
        "log_softmax, or logsumexp.",
        "counts = tokens[:, 1:] → counts = tokens[:, :-1] ;; masked_fill(~counts, 0) → clamp(min=0)": "You leave out "
        "predictions after an ignored token. `ignored` is about *targets*: compare tokens[:, 1:] with it.",
        " if len(chosen) else chosen.sum() → ": "If no target counts, you divide 0 by 0. Return 0, computed from the "
        "logits so that `backward()` works.",
        "chosen.mean() → chosen.mean() / math.log(2)": "That is in bits. In nats the logarithm is the natural one.",
        ".to(torch.promote_types(logits.dtype, torch.float32)) →  ;; chosen.mean() → "
        "chosen.mean().to(torch.promote_types(logits.dtype, torch.float32))": "You compute in 16 bits. Convert the "
        "logits to fp32 first.",
        "logits[:, :-1] → logits.detach()[:, :-1]": "Your loss has no graph: after `.item()`, `float()` or `detach()`, "
        "a model cannot be trained with it.",
        "chosen.sum() → chosen.sum().detach()": "If no target counts, your 0 is not computed from the logits, so "
        "`backward()` raises an error.",
        "chosen.mean() → chosen.mean().nan_to_num()": "You replace NaN by a number: a diverged run would look perfect.",
        "chosen.mean() → chosen.mean().to(logits.dtype)": "You round the loss back to the format of the logits. Return "
        "it in the format you compute in: fp32 for fp16 logits.",
        "chosen.mean() → chosen.sum() / (tokens != ignored).sum()": "Your divisor includes the first token of each "
        "text. No position predicts it.",
        "counts = tokens[:, 1:] → counts = tokens[:, :-1] ;; targets = tokens[:, 1:] → targets = tokens[:, "
        ":-1]": "You cut both at the end, so each position is asked for the token that it has just read. The targets "
        "are tokens[:, 1:].",
        "wide = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32)) → wide = logits[:, "
        ":-1].to(torch.promote_types(logits.dtype, torch.float32)); top = wide.max() if wide.numel() else 0 ;; "
        "wide.logsumexp(-1) → ((wide - top).exp().sum(-1).log() + top)": "You subtract the largest logit of the "
        "whole batch. Subtract the largest of the *same position*: elsewhere all exponentials may be 0.",
        "chosen.mean() → chosen.sum() / len(tokens)": "You divide by the number of texts. Divide by the number of "
        "targets that count.",
        "counts = tokens[:, 1:] != ignored → counts = (tokens[:, 1:] != ignored) & (tokens[:, :-1] != "
        "ignored)": "You also leave out the predictions *after* an ignored token. `ignored` is about targets only.",
        "torch.promote_types(logits.dtype, torch.float32) → torch.float32": "You compute in fp32 even if the logits "
        "are fp64. Keep fp64, and convert only 16-bit logits.",
        "wide.logsumexp(-1) - wide.gather → -(wide.softmax(-1) + 1e-9).log().gather": "You add a small number inside "
        "the logarithm, which limits the loss of an unlikely token: use log_softmax, or logsumexp.",
        "wide.logsumexp(-1) - wide.gather → -wide.gather": "Your loss is the logit alone. Its logsumexp is missing: "
        "a probability compares a logit with all the others.",
        "chosen.sum() → torch.zeros((), dtype=wide.dtype, requires_grad=True)": "If no target counts, your 0 is a "
        "new tensor: the logits get no gradient from it. Compute it from the logits.",
        ".masked_fill(~counts, 0) → .clamp(min=0)": "You make only negative targets valid. `ignored` may also be "
        "larger than any token.",
        ".masked_fill(~counts, 0) → ": "You look up the logit of an ignored target, and −100 is no index. Put a "
        "valid one there, and leave the place out afterwards.",
    },
)


causal_lm_loss.equivalent_mutant(
    "predicted = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32)) → "
    "predicted = logits[:, :-1].to(torch.promote_types(torch.float32, logits.dtype))",
    "the wider of two formats is the same in either order",
)
