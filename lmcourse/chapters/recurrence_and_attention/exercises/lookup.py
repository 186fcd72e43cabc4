"""The exercise on a table that answers with a blend."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal, normal64


def _exactly(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    """Number by number in double precision: the weights first, then the average."""
    scores = [math.fsum(a * b for a, b in zip(key, query.tolist(), strict=True)) for key in keys.tolist()]
    top = max(scores)
    if temperature == 0:
        raised = [float(score == top) for score in scores]
    else:
        raised = [math.exp((score - top) / temperature) for score in scores]
    columns = values.double().T.tolist()
    blended = [math.fsum(a * b for a, b in zip(raised, column, strict=True)) / math.fsum(raised) for column in columns]
    return torch.tensor(blended, dtype=values.dtype)


def _table(random: Random, n: int, d: int, v: int) -> tuple[Tensor, Tensor, Tensor]:
    return normal64(random, d), normal64(random, n, d), normal64(random, n, v, scale=3.0)


_NEAR = torch.tensor([[1.0], [1.0 + 2.0**-20]], dtype=torch.float64)
_NEARER = torch.tensor([[1.0], [1.0 + 2.0**-35]], dtype=torch.float64)
"""Two keys that differ by an exact, tiny number; these by less than any temperature one might put in place of 0."""


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    query, keys, values = _table(seen, 4, 3, 2)
    whole = torch.tensor([2.0, -1.0, 1.0, 3.0])[:, None]
    equal = torch.tensor([[1.0, 2.0]]).expand(3, 2).contiguous()
    cases = [
        case("other sizes", *_table(seen, 5, 3, 2), 1.1),
        case("other sizes", *_table(seen, 2, 2, 4), 0.3),
        case("other sizes", *_table(seen, 3, 3, 3), 1.7),
        case("other sizes", *_table(seen, 3, 1, 1), 3.0),
        case("one entry", *_table(seen, 1, 3, 2), 0.7),
        case("one entry", *_table(seen, 1, 2, 2), 0.0),
        case("temperature 0", query, keys, values, 0.0),
        case("temperature 0", -query, keys, values, 0.0),
        case("temperature 0", torch.tensor([1.0, 1.0]), torch.eye(2).repeat(2, 1), whole, 0),
        case("temperature 0", torch.zeros(2), torch.eye(2).repeat(2, 1), whole, 0.0),
        case("temperature 0", torch.tensor([-1.0]), torch.tensor([[1.0], [3.0], [2.0]]), whole[:3], 0.0),
        case("equal keys", torch.tensor([3.0, -1.0]), equal, whole[:3], 0.3),
        case("equal keys", torch.tensor([3.0, -1.0]), equal, whole[:3], 0.0),
        case("almost 0", query, keys, values, 1e-30),
        case("almost 0", -query, keys, values, 1e-12),
        case("a near match, almost 0", torch.tensor([1.0]), torch.tensor([[1.0], [1.01]]), whole[:2], 0.01),
        case("a near match, almost 0", torch.tensor([1.0]).double(), _NEAR, whole[:2].double(), 2.0**-20),
        case("temperature 0", torch.tensor([1.0]).double(), _NEAR, whole[:2].double(), 0.0),
        case("temperature 0", torch.tensor([1.0]).double(), _NEARER, whole[:2].double(), 0.0),
        case("very hot", query, keys, values, 1e12),
        case("very hot", query, keys, values, 1e5),
        case("scores far below zero", torch.tensor([-100.0]), torch.tensor([[9.0], [8.0], [10.0]]), whole[:3], 100.0),
        case(
            "scores far below zero",
            torch.tensor([-128.0]),
            torch.tensor([[9.0], [9 - 2.0**-7], [10.0]]),
            whole[:3],
            1.0,
        ),
        case("single precision", *(each.float() for each in _table(seen, 4, 3, 2)), 1.5),
    ]
    for temperature in (8.0, 16.0, 32.0):  # nobody is right or wrong here by a digit: the colder ones stand above
        n, d, v = random.sample(range(2, 7), 3)
        cases.append(case("other sizes", *_table(random, n, d, v), temperature))
    return cases


_QUERY = torch.tensor([2.0, 0.0])
_KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
_VALUES = torch.tensor([[10.0], [20.0], [30.0]])
_FIXED = Random(3)

soft_lookup = Exercise(
    "soft_lookup",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_exactly,
    cases=[
        case("three keys", _QUERY, _KEYS, _VALUES, 1.0),
        case("colder", _QUERY, _KEYS, _VALUES, 0.5),
        case("very hot", _QUERY, _KEYS, _VALUES, 1e6),
        case("temperature 0", _QUERY, _KEYS, _VALUES, 0.0),
        case("two equal matches at 0", torch.tensor([1.0, 1.0]), _KEYS, _VALUES, 0.0),
        case("almost 0", _QUERY, _KEYS, _VALUES, 1e-4),
        case("values of three numbers", *(normal(_FIXED, *shape) for shape in ((2,), (4, 2), (4, 3))), 0.8),
    ],
    hidden_cases=_hidden,
    hints=[
        "How well does each key match? keys @ query gives n scores. Divide them by the temperature, then softmax.",
        "The answer is weights @ values: an average of the rows. Zero needs a branch of its own.",
        "At zero: best = scores == scores.max() marks all the best matches; values[best].mean(dim=0).",
    ],
)


def _scores(query: Tensor, keys: Tensor) -> Tensor:
    return keys @ query


def _hard(scores: Tensor, values: Tensor) -> Tensor:
    return values[scores == scores.max()].mean(dim=0)


def _soft(scores: Tensor, values: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return _hard(scores, values)
    return (scores / temperature).softmax(dim=0) @ values


@soft_lookup.misconception("You multiply by the temperature. Hot should mean undecided: divide the scores by it.")
def multiplied(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = _scores(query, keys)
    return (scores * temperature).softmax(dim=0) @ values if temperature else _hard(scores, values)


@soft_lookup.misconception("You always take the best match. That has no slope to learn from.")
def always_hard(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return _hard(_scores(query, keys), values)


@soft_lookup.misconception("At temperature 0 equal matches share equally. You take the first of them.")
def first_of_equals(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = _scores(query, keys)
    return values[scores.argmax()] if temperature == 0 else _soft(scores, values, temperature)


@soft_lookup.misconception("Dividing by a temperature of 0 gives NaN. It needs an answer of its own: the best match.")
def divided_by_zero(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return (_scores(query, keys) / temperature).softmax(dim=0) @ values


@soft_lookup.misconception("Zero is turned into a tiny number where something is added, and that changes every answer.")
def something_added(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return (_scores(query, keys) / (temperature + 1e-2)).softmax(dim=0) @ values


@soft_lookup.misconception("A score over a tiny temperature overflows in the exponential: subtract the largest first.")
def overflows(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = _scores(query, keys)
    if temperature == 0:
        return _hard(scores, values)
    raised = (scores / temperature).exp()
    return raised / raised.sum() @ values


@soft_lookup.misconception("Your weights do not sum to one: the scores themselves are no weights. Softmax them.")
def not_normalised(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = _scores(query, keys)
    return _hard(scores, values) if temperature == 0 else scores / temperature @ values


@soft_lookup.misconception("You bring query and keys to length 1. Their length says how sure a match is: keep it.")
def cosine(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return _soft(_scores(query / query.norm(), keys / keys.norm(dim=1, keepdim=True)), values, temperature)


@soft_lookup.misconception("You divide by √d too. That comes in notebook 08; here the temperature is all there is.")
def scaled_too(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return _soft(_scores(query, keys) / len(query) ** 0.5, values, temperature)


@soft_lookup.misconception("You blend the keys. They are the labels of the entries; the values are what is wanted.")
def keys_returned(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return _soft(_scores(query, keys), keys, temperature)


@soft_lookup.misconception("You measure distances. The score is the dot product: a long key matches more.")
def by_distance(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return _soft(-(keys - query).square().sum(dim=1), values, temperature)


soft_lookup.equivalent_mutant(
    "return (scores / temperature).softmax(dim=0) @ values → return (scores / temperature).softmax(dim=-1) @ values",
    "The scores have one axis: it is the first and the last.",
)


@soft_lookup.variant
def weight_by_weight(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = [torch.dot(key, query).item() for key in keys]
    top = max(scores)
    if temperature == 0:
        weights = [1.0 if score == top else 0.0 for score in scores]
    else:
        weights = [math.exp((score - top) / temperature) for score in scores]
    rows = [weight / sum(weights) * row for weight, row in zip(weights, values, strict=True)]
    return torch.stack(rows).sum(dim=0)


@soft_lookup.variant
def shifted_before_dividing(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    behind = torch.einsum("d,nd->n", query, keys)
    behind = behind - behind.amax()
    raised = torch.exp(behind / temperature) if temperature > 0 else (behind == 0).to(values.dtype)
    return torch.einsum("n,nv->v", raised, values) / raised.sum()


@soft_lookup.variant
def by_numpy(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = keys.double().numpy() @ query.double().numpy()
    if not temperature:
        best = np.flatnonzero(scores == scores.max())
        return values[torch.from_numpy(best)].mean(dim=0)
    raised = np.exp((scores - scores.max()) / temperature)
    return torch.from_numpy(np.average(values.double().numpy(), axis=0, weights=raised)).to(values.dtype)


@soft_lookup.variant
def with_logsumexp(query: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    scores = (query[None] @ keys.mT).flatten()
    if temperature == 0:
        chosen = torch.isclose(scores, scores.max(), rtol=0.0, atol=0.0).to(values.dtype)
        return values.mT @ (chosen / chosen.sum())
    logits = scores.div(temperature)
    return values.mT @ torch.exp(logits - torch.logsumexp(logits, dim=0))
