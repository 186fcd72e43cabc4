"""Scores of every scheme of the notebook, for the exercise that asks whether they are relative."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.alibi import alibi_bias
from lmcourse.chapters.positions.exercises.buckets import t5_bucket
from lmcourse.chapters.positions.exercises.rotary import rope
from lmcourse.chapters.positions.exercises.shaw import shaw_scores as shaw
from lmcourse.chapters.positions.exercises.sines import sinusoidal
from lmcourse.exercises.inputs import normal


def _vectors(random: Random, d: int) -> tuple[Tensor, Tensor]:
    """One query and one key, the same at every position."""
    return normal(random, 1, d), normal(random, 1, d)


def added_scores(random: Random, table: Tensor) -> Tensor:
    """Scores when a row of the table is added to the token at its position."""
    q, k = _vectors(random, table.shape[1])
    return (q + table) @ (k + table).T


def rotated_scores(random: Random, length: int, d: int, first: int = 0) -> Tensor:
    q, k = _vectors(random, d)
    positions = torch.arange(first, first + length)
    return rope.reference(q.expand(length, d), positions) @ rope.reference(k.expand(length, d), positions).T


def shaw_scores(random: Random, length: int, d: int, clip: int) -> Tensor:
    q, k = (each.expand(2, length, d) for each in _vectors(random, d))
    return shaw.reference(q, k, normal(random, 2 * clip + 1, d))


def alibi_scores(length: int, slopes: Tensor) -> Tensor:
    return alibi_bias.reference(slopes, length, length)


def t5_scores(random: Random, length: int, bidirectional: bool) -> Tensor:
    offset = torch.arange(length) - torch.arange(length)[:, None]
    return normal(random, 32)[t5_bucket.reference(offset, bidirectional)]


def wave_table(length: int, d: int) -> Tensor:
    return sinusoidal.reference(torch.arange(length), d)


def only_key_scores(random: Random, length: int) -> Tensor:
    return normal(random, 1, length).expand(length, length)
