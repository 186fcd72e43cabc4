"""Every generator can be seeded, and put back."""

from __future__ import annotations

import random

import numpy as np
import torch

from lmcourse.training.generators import generator_states, load_generator_states, seed_all


def test_all_generators_go_back_to_where_they_were() -> None:
    def draw() -> list[float]:
        return [random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(()).item()]

    before = generator_states()
    seed_all(7)
    first = draw()
    states = generator_states()
    second = draw()
    load_generator_states(states)
    assert draw() == second != first
    seed_all(7)
    assert draw() == first
    load_generator_states(before)
