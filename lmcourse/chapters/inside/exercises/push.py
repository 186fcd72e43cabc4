"""The exercises on directions of the stream: take them away, and add one."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64


def _erase(stream: Tensor, means: Tensor) -> Tensor:
    """Project with a pseudoinverse."""
    centre = means.mean(dim=0)
    apart = means - centre
    return stream - (stream - centre) @ (torch.linalg.pinv(apart) @ apart)


def _erased(name: str, random: Random, b: int, k: int, d: int) -> Case:
    return case(name, normal64(random, b, d, scale=2.0), normal64(random, k, d) + 2.0)


def _numbers(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


erase = Exercise(
    "erase",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_erase,
    cases=[
        case("two classes on an axis", _numbers([5.0, 7.0], [-1.0, 2.0]), _numbers([1.0, 3.0], [3.0, 3.0])),
        case("two classes, slanted", _numbers([2.0, 0.0], [1.0, 5.0]), _numbers([1.0, 1.0], [3.0, 5.0])),
        _erased("three classes in three dimensions", Random(1), 3, 3, 3),
        _erased("three classes in five dimensions", Random(2), 2, 3, 5),
        _erased("as many classes as dimensions", Random(3), 3, 4, 4),
    ],
    hidden_cases=lambda random: [
        _erased("other sizes", random, 3, 2, 6),
        _erased("other sizes", random, 1, 4, 7),
        _erased("other sizes", random, 4, 3, 4),
        _erased("more classes than dimensions", random, 3, 5, 3),
        script(
            "the arguments stay as they are",
            "erase(stream, means)\nstream\nmeans",
            stream=normal64(random, 2, 3),
            means=normal64(random, 2, 3),
        ),
    ],
    tolerance=Tolerance(1e-4, 1e-5),  # single precision is enough
    hints=[
        "Two steps: subtract the centre of the means from means and stream; take away from the stream what lies in "
        "the span of the centred means.",
        "k centred means span at most k − 1 directions. torch.linalg.svd(apart, full_matrices=False)[2][: k - 1] is an "
        "orthonormal basis of them, q; the part of v inside is (v @ q.T) @ q.",
        "stream − ((stream − centre) @ q.T) @ q: what all classes share stays.",
    ],
)


@erase.variant
def with_svd(stream: Tensor, means: Tensor) -> Tensor:
    centre = means.mean(dim=0)
    apart = means - centre
    q = torch.linalg.svd(apart, full_matrices=False)[2][: len(means) - 1]
    return stream - (stream - centre) @ q.T @ q


@erase.variant
def one_direction_after_another(stream: Tensor, means: Tensor) -> Tensor:
    centre, basis = means.mean(0), list[Tensor]()
    result = stream - centre
    for mean in means[1:] - means[:1]:
        for one in basis:
            mean = mean - (mean @ one) * one
        if mean.norm() > 1e-4:
            basis.append(mean / mean.norm())
    for one in basis:
        result = result - (result @ one)[:, None] * one
    return result + centre


@erase.variant
def with_qr(stream: Tensor, means: Tensor) -> Tensor:
    centre = means.mean(dim=0)
    q, _ = torch.linalg.qr((means[1:] - means[0]).T)
    inside = (stream - centre) @ q
    return stream - inside @ q.T


erase.slips(
    with_svd,
    {
        "(stream - centre) @ q.T → stream @ q.T": "You also take away what all classes share, the centre. Remove "
        "differences only.",
        "apart = means - centre → apart = means": "Your span contains the means themselves. Take the span of their "
        "differences from the centre.",
        "[: len(means) - 1] → [: len(means)]": "You remove one direction too many: k centred means span only k − 1.",
        "[: len(means) - 1] → [:1]": "You remove one direction only. k centred means span k − 1.",
        "q = torch.linalg.svd(apart, full_matrices=False)[2][: len(means) - 1] → q = apart / apart.norm(dim=1, "
        "keepdim=True)": "Your directions are not orthogonal, so you remove some of them more than once. Make an "
        "orthonormal basis first.",
        "q = torch.linalg.svd(apart, full_matrices=False)[2][: len(means) - 1] → q = (means[1:] - means[0]) / "
        "(means[1:] - means[0]).norm(dim=1, keepdim=True)": "Your differences are not orthogonal, so you remove some "
        "directions more than once. Make an orthonormal basis first.",
        "(stream - centre) @ q.T → (stream - stream.mean(dim=0)) @ q.T": "You measure from the mean of the stream. "
        "Measure from the centre, the mean of the class means.",
        "stream - (stream - centre) @ q.T @ q → centre + (stream - centre) @ q.T @ q": "You keep what lies within the "
        "span, and lose what lies outside of it. It is the other way round.",
        "(stream - centre) @ q.T @ q → means[torch.cdist(stream, means).argmin(dim=1)] + centre": "You subtract from "
        "each vector the class mean that is nearest. Subtract all of its distance from the centre within the span.",
        "return stream - (stream - centre) @ q.T @ q → return (stream - centre) @ q.T @ q": "You return what should "
        "go. Subtract it from the stream.",
        "return stream - (stream - centre) → return (stream - centre) - (stream - centre)": "The centre is missing "
        "from what you return. Move back what you moved.",
        "centre = means.mean(dim=0) → centre = means.sum(dim=0)": "You add the class means up. The centre is "
        "their mean.",
        "centre = means.mean(dim=0) → centre = stream.mean(dim=0)": "You take the mean of the stream for the centre. "
        "It is the mean of the class means.",
        "return stream - (stream - centre) @ q.T @ q → return centre + 0 * stream": "You put the centre in the place "
        "of the whole stream. What is outside the span stays.",
        "(stream - centre) @ q.T → (stream - means[0]) @ q.T": "You move every text to the first class. They belong to "
        "the centre of all classes.",
    },
)
erase.equivalent_mutant(
    "directions, _ = torch.linalg.qr((means[1:] - means[0]).T) → directions, _ = torch.linalg.qr((means[0] - "
    "means[1:]).T)",
    "The span of a direction is that of its opposite.",
)
erase.slips(
    with_qr,
    {
        "q, _ = torch.linalg.qr((means[1:] - means[0]).T) → q = (means[1:] - means[0]).T": "Your directions have no "
        "length of 1. Make an orthonormal basis first.",
        "q, _ = torch.linalg.qr((means[1:] - means[0]).T) → q, _ = torch.linalg.qr(means[1:].T)": "Your span contains "
        "means themselves. Take the span of their differences.",
        "(means[1:] - means[0]).T → (means - centre).T": "You remove one direction too many: k centred means span only "
        "k − 1.",
        "inside = (stream - centre) @ q\n → inside = stream @ q\n ;; q, _ = torch.linalg.qr((means[1:] - means[0]).T) "
        "→ q, _ = torch.linalg.qr(means.T)": "You remove the means themselves. Remove only what distinguishes them.",
    },
)
erase.slips(
    one_direction_after_another,
    {
        "            mean = mean - (mean @ one) * one\n →             pass\n || means[1:] - means[:1] → means - centre "
        ";;             mean = mean - (mean @ one) * one\n →             pass\n": "Your directions are not orthogonal: "
        "what you remove along one brings some of the others back. Make an orthonormal basis first.",
    },
)


def _steer(stream: Tensor, means: Tensor, hero: Tensor, other: Tensor, a: float, where: Tensor) -> Tensor:
    """Multiply one-hot vectors, +1 for the other hero and −1 for this one, with the means."""
    eye = torch.eye(len(means), dtype=means.dtype)
    push = torch.einsum("bk,kd->bd", eye[other] - eye[hero], means) * a
    return stream + torch.einsum("bs,bd->bsd", where.to(means.dtype), push)


def _steered(name: str, random: Random, a: float, places: list[list[int]], d: int = 2) -> Case:
    b, s = len(places), len(places[0])
    stream, means = integers(random, b, s, d, low=1, high=9), integers(random, 4, d, low=-9, high=9)
    pairs = torch.tensor([random.sample(range(4), 2) for _ in range(b)])
    return case(name, stream, means, pairs[:, 0], pairs[:, 1], a, torch.tensor(places, dtype=torch.bool))


def _left_alone() -> Case:
    inputs = dict(zip(("stream", "means", "hero", "other", "a", "where"), _LAST.args, strict=True))
    lines = "steer(stream, means, hero, other, a, where)\nstream"
    return script("the stream stays as it is", lines, **inputs)


_LAST = _steered("the last word of two texts", Random(1), 2.0, [[0, 0, 1], [0, 0, 1]])

steer = Exercise(
    "steer",
    points=2,
    minutes=3,
    difficulty=1,
    reference=_steer,
    cases=[
        _LAST,
        _steered("another word in each text", Random(2), 1.0, [[0, 1, 0], [1, 0, 0], [0, 0, 1]]),
        _steered("half a step", Random(3), 0.5, [[0, 1], [1, 0]], 3),
        _steered("every word", Random(4), 4.0, [[1, 1, 1], [1, 1, 1]]),
        _left_alone(),
    ],
    hidden_cases=lambda random: [
        _steered("other texts", random, 1.5, [[0, 1, 0, 1], [1, 1, 0, 0]], 3),
        _steered("other texts", random, 3.0, [[1, 0]], 1),
        _steered("away from the other hero", random, -1.0, [[0, 0, 1], [1, 0, 0]]),
        _steered("no push", random, 0.0, [[1, 1], [0, 1]]),
    ],
    hints=[
        "The push of a text is means[other] − means[hero], (b, d), times a.",
        "It is the same for all words of the text: push[:, None], (b, 1, d).",
        "stream + where[..., None] * push[:, None]: False counts as 0.",
    ],
)


@steer.variant
def with_a_mask(stream: Tensor, means: Tensor, hero: Tensor, other: Tensor, a: float, where: Tensor) -> Tensor:
    push = a * (means[other] - means[hero])
    return stream + where[..., None] * push[:, None]


steer.slips(
    with_a_mask,
    {
        "means[other] - means[hero] → means[hero] - means[other]": "You push towards the hero who is there. Subtract "
        "that hero's mean, and add the other's.",
        "a * (means[other] - means[hero]) → means[other] - means[hero]": "The strength `a` is not used.",
        "a * (means[other] - means[hero]) → a * torch.nn.functional.normalize(means[other] - means[hero], dim=1)": "You"
        " give the push the length `a`. Add `a` times the difference as it is.",
        "a * (means[other] - means[hero]) → a * means[other]": "You add the other hero, and do not take this one away: "
        "subtract means[hero].",
        "a * (means[other] - means[hero]) → a * means[other] - means[hero] || a * (means[other] - means[hero]) → "
        "means[other] - a * means[hero]": "`a` multiplies one of the two means only. It multiplies their difference.",
        "stream + where[..., None] * push[:, None] → stream + push[:, None]": "You push every word. Only the words "
        "where `where` is True.",
        "stream + where[..., None] * push[:, None] → stream + ~where[..., None] * push[:, None]": "You push the words "
        "where `where` is False.",
        "stream + where[..., None] * push[:, None] → torch.where(where[..., None], push[:, None], stream)": "You put "
        "the push in the place of the stream. Add it.",
        "a * (means[other] - means[hero]) → a * (means[other] - means.mean(dim=0))": "You start from the centre of all "
        "heroes. Subtract the mean of this text's hero.",
        "stream + where[..., None] * push[:, None] → stream + where[..., None] * push[0]": "You push every text like "
        "the first one. Each has its own pair of heroes.",
        "stream + where[..., None] * push[:, None] → stream.add_(where[..., None] * push[:, None])": "Your argument is "
        "changed: the next measurement starts from a stream that is already pushed.",
        "return stream + where[..., None] * push[:, None] → return stream + where[..., None] * (a * means[other][:, "
        "None] - a * stream)": "You subtract the stream of the text itself. Subtract the mean of its hero.",
    },
)
