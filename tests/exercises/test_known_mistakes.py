"""Known mistakes in learners' versions are recognised, even if edge cases differ from the registered answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.chapters.inference.exercises import filter_logits
from lmcourse.chapters.language_models.exercises import next_token_loss
from lmcourse.chapters.tensors.exercises import shares_storage
from lmcourse.exercises import Exercise, case, check_exercise


def filters(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    logits = logits.clone()
    if top_k is not None:
        logits[logits < logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]] = -math.inf
    if top_p is not None:
        ordered, order = logits.sort(-1, descending=True)
        ordered[ordered.softmax(-1).cumsum(-1) > top_p] = -math.inf
        logits = torch.empty_like(logits).scatter(-1, order, ordered)
    if min_p is not None:
        p = logits.softmax(-1)
        logits[p < min_p * p.amax(-1, keepdim=True)] = -math.inf
    return logits


def same_pointer(a: Tensor, b: Tensor) -> bool:
    return a.data_ptr() == b.data_ptr()


def not_shifted(logits: Tensor, tokens: Tensor) -> Tensor:
    return -logits.float().log_softmax(-1).gather(-1, tokens[..., None]).mean()


@pytest.mark.parametrize("hidden", [False, True], ids=["notebook", "grade"])
@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        (filter_logits, filters, "You drop the token that crosses `top_p`."),
        (shares_storage, same_pointer, "You compare where the tensors start."),
        (next_token_loss, not_shifted, "You compare the logits at a token with that token."),
    ],
)
def test_a_likely_mistake_is_named(exercise: Exercise, answer: Callable[..., Any], said: str, hidden: bool) -> None:
    assert said in check_exercise(exercise, answer, hidden=hidden).mistake


def test_a_mistake_is_not_named_if_only_its_dtype_is_shared() -> None:
    """A wrong eighth digit is like float32, but this answer is right where the mistake divides by 0."""

    def mean(counts: list[float]) -> Tensor:
        return torch.tensor(sum(counts) / len(counts), dtype=torch.float64)

    cases = [case(f"{each}", each) for each in ([1.0, 3.0, 3.0], [2.0, 5.0, 3.0], [0.0, 4.0, 1.0], [1.0, 0.0, 3.0])]
    exercise = Exercise("mean", 1, 1, 1, reference=mean, cases=cases)
    exercise.misconception("0 is no count.")(lambda counts: mean(counts).float() / (0 if 0 in counts else 1))
    assert check_exercise(exercise, lambda counts: mean(counts) + (0 if 0 in counts else 1e-8)).mistake == ""


def mean_of(parts: list[float], counts: list[float]) -> float:
    return sum(part * count for part, count in zip(parts, counts, strict=True) if count) / max(sum(counts), 1)


def unguarded(parts: list[float], counts: list[float]) -> float:
    return math.nan if 0 in counts else mean_of(parts, counts)


def guarded_once(parts: list[float], counts: list[float]) -> float:
    return math.nan if 0 in counts and sum(counts) > 2 else mean_of(parts, counts)


def test_a_missing_guard_is_not_named_where_the_answer_has_it() -> None:
    """The mistake is about the cases in which it breaks down, and the answer is right in one of these."""
    counts = ([1.0, 3.0], [2.0, 5.0], [0.0, 4.0], [1.0, 0.0], [4.0, 2.0, 1.0])
    cases = [case(f"{each}", [2.0, 6.0, 1.0][: len(each)], each) for each in counts]
    exercise = Exercise("mean_of", 1, 1, 1, reference=mean_of, cases=cases)
    exercise.misconception("It is.")(unguarded)
    assert check_exercise(exercise, unguarded).mistake == "It is."
    assert check_exercise(exercise, guarded_once).mistake == ""
