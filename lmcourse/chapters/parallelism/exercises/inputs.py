"""Cases in which several simulated workers run the answer."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.inputs import integers
from lmcourse.exercises.values import Plain

_IMPORT = "from lmcourse.chapters.parallelism.simulated import simulate  # in the notebook\n"


def ask(name: str, call: str, *expressions: str, **inputs: Plain) -> Case:
    """A case that simulates `run = simulate(call)`, and returns the values of the expressions."""
    return script(name, "\n".join([f"{_IMPORT}run = simulate({call})", *expressions]), **inputs)


def whole_numbers(random: Random, workers: int, *shape: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """A tensor for each worker with whole numbers from -9 to 9, whose sums are exact in any order."""
    return [integers(random, *shape, low=-9, high=9, dtype=dtype) for _ in range(workers)]
