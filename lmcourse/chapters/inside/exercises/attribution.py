"""The exercise on what each part writes into the odds."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64

Parts = dict[str, Tensor]


def _attribution(
    parts: Parts, norm_weight: Tensor, unembedding: Tensor, right: Tensor, wrong: Tensor
) -> dict[str, float]:
    """Let torch norm the whole stream and differentiate: the norm is linear in a part once its root is fixed."""
    stream = torch.stack([*parts.values()]).sum(dim=0)
    root = (stream / F.rms_norm(stream, stream.shape[-1:], eps=1e-5)).nan_to_num(1e-5**0.5)
    apart = F.embedding(right, unembedding) - F.embedding(wrong, unembedding)
    return {
        name: torch.einsum("bd,bd,bd,d->b", part, apart, 1 / root, norm_weight).mean().item()
        for name, part in parts.items()
    }


def _drawn(name: str, random: Random, count: int, b: int, d: int, v: int, size: float = 1.0) -> Case:
    names = ("embedding", "head 0", "head 1", "units", "more units")[:count]
    parts = {one: normal64(random, b, d, scale=size) for one in names}
    weight, unembedding = 1 + normal64(random, d, scale=0.4), normal64(random, v, d)
    pairs = torch.tensor([random.sample(range(v), 2) for _ in range(b)])
    return case(name, parts, weight, unembedding, pairs[:, 0], pairs[:, 1])


def _tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


_PARTS = {"embedding": _tensor([3.0, 0.0]), "head 0": _tensor([0.0, 4.0])}
_WORDS = _tensor([1.0, 0.0], [0.0, 1.0], [2.0, -1.0])
_ONES = torch.ones(2, dtype=torch.float64)


def _hidden(random: Random) -> list[Case]:
    stays = "attribution(parts, weight, words, right, wrong)\nparts"
    right, wrong = torch.tensor([2]), torch.tensor([0])
    return [
        _drawn("other shapes", random, 4, 3, 2, 5),
        _drawn("other shapes", random, 2, 1, 5, 5),
        _drawn("other shapes", random, 3, 4, 4, 4),
        _drawn("tiny parts", random, 3, 2, 3, 4, size=2e-3),
        _drawn("large parts", random, 3, 2, 3, 4, size=1e3),
        _drawn("one part", random, 1, 2, 3, 4),
        script("the parts stay as they are", stays, parts=_PARTS, weight=_ONES, words=_WORDS, right=right, wrong=wrong),
    ]


attribution = Exercise(
    "attribution",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_attribution,
    cases=[
        case("by hand", _PARTS, _ONES, _WORDS, torch.tensor([0]), torch.tensor([1])),
        case("a weight of the norm", _PARTS, _tensor([2.0, 0.5])[0], _WORDS, torch.tensor([2]), torch.tensor([1])),
        _drawn("three texts, three parts", Random(1), 3, 3, 2, 4),
        _drawn("as many words as features", Random(2), 3, 2, 3, 3),
        _drawn("parts as small as ε", Random(3), 2, 2, 2, 4, size=2e-3),
        _drawn("one part", Random(4), 1, 2, 2, 3),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-4, 1e-6),  # single precision is enough
    hints=[
        "The last norm divides the whole stream by one number for each text. So first add up all parts, and compute "
        "this number, (b, 1), from the sum.",
        "The direction that counts in a text is unembedding[right] − unembedding[wrong], (b, d): logits are products "
        "with these rows.",
        "For each part: (part / root * norm_weight * direction).sum(dim=1).mean().item(), with "
        "root = (whole.square().mean(dim=1, keepdim=True) + 1e-5).sqrt().",
    ],
)


@attribution.variant
def part_by_part(
    parts: dict[str, Tensor], norm_weight: Tensor, unembedding: Tensor, right: Tensor, wrong: Tensor
) -> dict[str, float]:
    whole: Tensor = sum(parts.values())  # type: ignore[assignment]
    root = (whole.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    direction = unembedding[right] - unembedding[wrong]
    found = {}
    for name, part in parts.items():
        normed = part / root * norm_weight
        found[name] = (normed * direction).sum(dim=1).mean().item()
    return found


@attribution.variant
def from_logits_of_all_words(
    parts: dict[str, Tensor], norm_weight: Tensor, unembedding: Tensor, right: Tensor, wrong: Tensor
) -> dict[str, float]:
    stack = torch.stack(list(parts.values())).float()
    scale = torch.rsqrt(stack.sum(0).pow(2).mean(-1) + 1e-5)
    logits = (stack * scale[:, None] * norm_weight.float()) @ unembedding.float().T
    rows = torch.arange(len(right))
    odds = logits[:, rows, right] - logits[:, rows, wrong]
    return dict(zip(parts, odds.mean(1).tolist(), strict=True))


attribution.slips(
    part_by_part,
    {
        "    for name, part in parts.items():\n →     for name, part in parts.items():\n        root = "
        "(part.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()\n": "You norm each part by itself. Then the parts no "
        "longer add up to the odds: there is one root, that of the whole stream.",
        "part / root * norm_weight → part / root": "The weight of the last norm is missing.",
        "part / root * norm_weight → part * norm_weight": "The root is missing: the last norm divides by the root mean "
        "square of the whole stream.",
        "unembedding[right] - unembedding[wrong] → unembedding[wrong] - unembedding[right]": "Every sign is turned. "
        "The odds are the logit of the right hero − the logit of the other one.",
        "unembedding[right] - unembedding[wrong] → unembedding[right]": "You return the logit of the right hero alone. "
        "The odds subtract the logit of the other one.",
        "unembedding[right] - unembedding[wrong] → unembedding.T[right] - unembedding.T[wrong]": "You take columns of "
        "`unembedding`. It is (v, d): a row for each word.",
        "square().mean(dim=1, keepdim=True) → square().sum(dim=1, keepdim=True)": "You divide by the length of the "
        "stream. The norm divides by the root of the *mean* square.",
        " + 1e-5).sqrt() →  + 1e-5)": "You divide by the mean square. The norm divides by its root.",
        " + 1e-5).sqrt() → ).sqrt()": "Your norm has no ε. The 1e-5 matters where the stream is small.",
        " + 1e-5).sqrt() → ).sqrt() + 1e-5": "You add ε outside the root. Add it to the mean square, inside.",
        "mean(dim=1, keepdim=True) → mean()": "You use one root for all texts together. Each text has its own.",
        "mean(dim=1, keepdim=True) → mean(dim=0)": "Your root averages over the texts. It is the mean over the "
        "features of a text: a number for each text.",
        ".sum(dim=1).mean().item() → .sum().item()": "You add up over the texts. Return the mean over the texts.",
        ".sum(dim=1).mean().item() → .mean().item()": "You average over the features, too. A logit is a sum over the "
        "features; the mean is taken over the texts.",
        ".sum(dim=1).mean().item() → .sum(dim=1).abs().mean().item()": "You drop the signs. A part may write for the "
        "other hero: its number is negative.",
        "        found[name] = (normed * direction).sum(dim=1).mean().item()\n    return found →         found[name] = "
        "(normed * direction).sum(dim=1).mean().item()\n    total = sum(found.values())\n    return {name: one / total "
        "for name, one in found.items()}": "You divide by the odds. Return the parts themselves, which add up to the "
        "odds.",
        "parts.items(): → parts.items():\n        part = part - part.mean(dim=1, keepdim=True)": "You subtract the "
        "mean of the features, as LayerNorm does. This norm only divides.",
        "sum(dim=1).mean().item() → sum(dim=1)[0].item()": "You return the number of the first text. Return the mean "
        "over the texts.",
        "        found[name] = (normed * direction).sum(dim=1).mean().item() →         found[name] = (normed.mean(0) * "
        "direction.mean(0)).sum().item()": "You average the parts and the directions over the texts, and multiply "
        "then. Each text has its own pair of heroes: multiply first.",
        "= sum(parts.values()) → = [*parts.values()][-1]": "Your root is that of the last part alone. The last norm "
        "sees the sum of all parts.",
    },
)
