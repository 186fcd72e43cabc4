"""The exercise on the logit lens."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64


def state_by_state(states: list[Tensor], scale: Tensor, head: Tensor, targets: Tensor) -> list[float]:
    losses = []
    for state in states:
        root = (state.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        logits = state / root * scale @ head.T
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        losses.append(loss.item())
    return losses


UNIT, ONES = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
EASY = [torch.tensor([[[1.0, 0.0]]], dtype=torch.float64), torch.tensor([[[3.0, 4.0]]], dtype=torch.float64)]
SQUARE = torch.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=torch.float64)


def _drawn(name: str, random: Random, count: int, b: int, s: int, d: int, v: int, size: float = 1.0) -> Case:
    states = [normal64(random, b, s, d, scale=size) for _ in range(count)]
    scale, head = 1 + normal64(random, d, scale=0.3), normal64(random, v, d)
    return case(name, states, scale, head, integers(random, b, s, low=0, high=v - 1, dtype=torch.int64))


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    mixed = [size * normal64(fixed, 1, 3, 4) for size in (1.0, 1e3, 1e-3, 30.0)]
    head, targets = normal64(fixed, 5, 4), integers(fixed, 1, 3, low=0, high=4, dtype=torch.int64)
    stays = "before = [state.clone() for state in states]\nlogit_lens(states, scale, head, targets)\nstates"
    return [
        _drawn("other shapes", fixed, 3, 2, 4, 5, 7),
        _drawn("other shapes", fixed, 2, 3, 1, 4, 2),
        _drawn("a square head", fixed, 2, 2, 3, 6, 6),
        _drawn("one state", fixed, 1, 2, 3, 4, 5),
        _drawn("large states", fixed, 2, 2, 3, 4, 5, size=1e3),
        _drawn("tiny states", fixed, 2, 2, 3, 4, 5, size=3e-3),
        case("states of different lengths", mixed, torch.full((4,), -0.5, dtype=torch.float64), head, targets),
        case("states of different lengths", mixed, torch.full((4,), 9.0, dtype=torch.float64), head, targets),
        case("a silent stream", [torch.zeros(1, 3, 4, dtype=torch.float64)], torch.ones(4).double(), head, targets),
        script("states stay", stays, states=mixed, scale=torch.ones(4).double(), head=head, targets=targets),
        *(_drawn("other shapes", random, random.randint(2, 4), 2, 3, d, d + 3) for d in random.sample(range(2, 12), 3)),
    ]


logit_lens = Exercise(
    "logit_lens",
    points=3,
    minutes=9,
    difficulty=2,
    reference=state_by_state,
    cases=[
        case("by hand", EASY, ONES, UNIT, torch.tensor([[1]])),
        case("a scale", EASY, torch.tensor([2.0, 0.5], dtype=torch.float64), UNIT, torch.tensor([[0]])),
        case("a head that is no mirror image of itself", EASY, ONES, SQUARE, torch.tensor([[1]])),
        _drawn("two texts, five tokens, a wide head", Random(1), 3, 2, 5, 2, 4),
        _drawn("two texts, three tokens, a square head", Random(2), 2, 2, 3, 2, 2),
        case("the same vector ten times as long", [EASY[1], 10 * EASY[1]], ONES, SQUARE, torch.tensor([[0]])),
        case("a vector as small as ε", [0.003 * EASY[1]], ONES, SQUARE, torch.tensor([[0]])),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-5, 1e-7),  # single precision is enough
    hints=[
        "Treat each state as if it were the last: norm, head, loss.",
        "normed = F.rms_norm(state, scale.shape, scale, 1e-5), and the logits are normed @ head.T: (b, s, v).",
        "F.cross_entropy takes (n, v) and (n): flatten b and s together on both.",
    ],
)


logit_lens.variant(state_by_state)
logit_lens.slips(
    state_by_state,
    {
        "state / root → state": "The final norm is missing. Without it, a short state gives logits near 0 and a long "
        "one large logits, whatever they say.",
        "for state in states: → for at in range(len(states)):\n        state = sum(states[: at + 1])": "You add the "
        "states up, as if each were what a part *added*. Each state is the whole stream already: read it alone.",
        "losses = [] → losses, last = [], states[-1] ;; state.square() → last.square()": "You divide every state by "
        "the length of the last one. Normalise each state by its own length.",
        "(state.square().mean(-1, keepdim=True) + 1e-5).sqrt() → state.norm(dim=-1, keepdim=True) + 1e-5 || mean(-1, "
        "keepdim=True) → sum(-1, keepdim=True)": "You give the states length 1. RMSNorm divides by the root of the "
        "*mean* square, which gives them length √d.",
        "head.T → head": "You multiply by `head`, not by its transpose. It is (v, d), a row for each token. If v = d, "
        "both products exist.",
        "in states: → in [states[0], *(after - before for before, after in zip(states, states[1:]))]:": "You read what "
        "each part *added* (notebook 10). The lens reads the whole stream at that point.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) "
        "→ (logits.argmax(-1) == targets).double().mean()": "You return how often the likeliest token is the right "
        "one. Return the loss.",
        "loss.item() → loss.item() / math.log(2)": "That is in bits. In nats the logarithm is the natural one.",
        "logits.flatten → logits.softmax(-1).flatten": "Your probabilities went through a softmax once more, which "
        "flattens them: `cross_entropy` takes logits.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) → -logits.softmax(-1).gather(-1, targets[..., "
        "None]).mean().log()": "You average probabilities and take the logarithm of the mean. Take it at every "
        "position, and average then.",
        " * scale → ": "The scale of the final norm is missing.",
        "root = → state = state - state.mean(-1, keepdim=True)\n        root =": "Your norm subtracts the mean, as "
        "LayerNorm does. The norm before this head only divides.",
        " + 1e-5 → ": "Your norm has no ε. It is added to the mean square, and matters where features are small.",
        "logits.flatten(0, 1), targets.flatten() → logits[:, "
        ":-1].flatten(0, 1), targets[:, 1:].flatten()": "You shift by one position. These targets are already the next "
        "tokens: position t predicts targets[t].",
        "1e-5 → 1e-6": "Your ε is smaller than the 1e-5 of this norm, which matters where features are small.",
        " + 1e-5).sqrt() → ).sqrt() + 1e-5": "You add ε outside the root. Add it to the mean square, inside.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) → -logits.log_softmax(1).gather(-1, targets[..., "
        "None]).mean()": "Your softmax is over the positions. Each position distributes its probability over the "
        "vocabulary.",
        'targets.flatten() → targets.flatten(), reduction="sum"': "You add up the losses of all positions. Take their "
        "mean.",
        "logits.flatten(0, 1), targets.flatten() → "
        "logits.reshape(len(logits), -1, logits.shape[1]), targets": "You reshape the logits to (b, v, s), which mixes "
        "positions with tokens. Swap two axes, or flatten b and s.",
        "logits.flatten(0, 1), targets.flatten() → logits[0], targets[0]": "Only the first text is read. The mean is "
        "over all texts.",
        " + 1e-5).sqrt() →  + 1e-5)": "You divide by the mean square. RMSNorm divides by its root.",
        "mean(-1, keepdim=True) → mean(1, keepdim=True)": "Your norm averages over the positions. Each position has "
        "its own norm, over its features.",
        "mean(-1, keepdim=True) → mean()": "You use one norm for all positions together. Each position has its own, "
        "over its features.",
        " * scale @ head.T →  @ head.T\n        logits = logits / (logits.square().mean(-1, keepdim=True) + "
        "1e-5).sqrt() ;; state / root → state": "You normalise the logits. The norm comes before the head: it "
        "normalises the stream.",
        "root * scale → root * (1 + scale)": "You multiply by 1 + scale, as Gemma does. This norm multiplies by "
        "`scale` itself.",
        "root * scale → root / scale": "You divide by `scale`. The norm multiplies by it.",
        "logits.flatten(0, 1), targets.flatten() → logits[:, -1], targets[:, -1]": "You read the last position of "
        "each text only. The mean is over all positions.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) → -logits.softmax(-1).gather(-1, targets[..., "
        "None]).mean()": "The logarithm is missing: you average probabilities. The loss is the mean of −ln p.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) → -logits.gather(-1, targets[..., "
        "None]).mean()": "You average the logits of the targets. The loss needs their "
        "log-softmax, which compares them with all others.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten()) → -(logits.softmax(-1) * "
        "logits.log_softmax(-1)).sum(-1).mean()": "You return the entropy of the predictions, which does not depend "
        "on `targets`. The loss is −ln p of the target.",
    },
)
