"""The exercise on separate generators of random numbers."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def _numbers(name: str, seed: int, count: int) -> Case:
    return script(name, f"own_numbers({seed}, {count})")


def _between(name: str, seed: int, count: int) -> Case:
    """A case that compares random numbers of torch, NumPy and random after the call; all are seeded before it."""
    lines = (
        "import random, numpy, torch\n_ = torch.manual_seed(5), numpy.random.seed(5), random.seed(5)\n"
        "_ = torch.rand(1)\n"
        f"_ = own_numbers({seed}, {count})\ntorch.rand(2), numpy.random.rand(2), random.random()"
    )
    return script(name, lines)


def state_put_back(seed: int, count: int) -> Tensor:
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    numbers = torch.rand(count)
    torch.set_rng_state(state)
    return numbers


def _hidden(random: Random) -> list[Case]:
    cases = [
        *(_numbers("other seeds", *each) for each in ((0, 5), (2**40 + 1, 4))),
        _numbers("no numbers", 3, 0),
        _numbers("many numbers", 11, 100),
        script("calls that alternate", "own_numbers(1, 2)\nown_numbers(2, 2)\nown_numbers(1, 4)\nown_numbers(2, 1)"),
        *(_between("others draw as before", *each) for each in ((8, 3), (5, 0))),
    ]
    return [*cases, *(_numbers("other seeds", random.randrange(10**6), random.randint(3, 6)) for _ in range(3))]


own_numbers = Exercise(
    "own_numbers",
    points=2,
    minutes=5,
    difficulty=1,
    reference=state_put_back,
    cases=[
        _numbers("three numbers", 7, 3),
        script("the same seed twice", "own_numbers(7, 2)\nown_numbers(7, 2)"),
        _numbers("another seed", 8, 3),
        _between("other generators", 7, 3),
        script("after other draws", "import torch\n_ = torch.rand(9)\nown_numbers(9, 2)"),
        _numbers("no numbers", 7, 0),
    ],
    hidden_cases=_hidden,
    hints=[
        "torch.manual_seed seeds the generator that all code shares. You can make another one.",
        "torch.Generator().manual_seed(seed) makes one and returns it; torch.rand takes it as generator=.",
    ],
)


@own_numbers.variant
def seeded_afterwards(seed: int, count: int) -> Float[Tensor, " n"]:
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.rand((count,), generator=generator)


own_numbers.slips(
    seeded_afterwards,
    {
        "generator.manual_seed(seed) → import random\n    random.seed(seed) ;; , generator=generator → ": "You seed "
        "Python's generator. torch does not use it.",
        "generator.manual_seed(seed) → import numpy\n    numpy.random.seed(seed % 2**32) "
        ";; , generator=generator → ": "You seed NumPy's generator. torch does not use it.",
        ", generator=generator → ": "Your numbers depend on what was drawn before. Draw from the generator that you "
        "seed: `generator=`.",
        "rand( → randn(": "You draw normal numbers. Draw uniform numbers between 0 and 1.",
        "return torch.rand((count,), generator=generator) → import numpy\n    return "
        'torch.from_numpy(numpy.random.default_rng(seed).random(count, dtype="float32"))': "Your numbers come from "
        "NumPy's generator. torch.rand gives different numbers for this seed.",
        "    generator.manual_seed(seed)\n → ": "You make a generator and do not seed it. Every seed gives the same "
        "numbers.",
        "generator = → import random, numpy\n    random.seed(seed), numpy.random.seed(seed "
        "% 2**32)\n    generator =": "You seed NumPy's or Python's generator, too. After your call, other code draws "
        "different numbers.",
    },
)


own_numbers.variant(state_put_back)
own_numbers.slips(
    state_put_back,
    {
        "    torch.set_rng_state(state)\n → ": "You seed the generator that all code shares. After your call, other "
        "code draws different numbers.",
        "state = torch.get_rng_state()\n    torch.manual_seed(seed) → torch.manual_seed(seed)\n    state = "
        "torch.get_rng_state()": "You save the state of the shared generator after you have seeded it. Save it before, "
        "or make a separate generator.",
        "state = torch.get_rng_state() → import random, numpy\n    random.seed(seed), numpy.random.seed(seed % 2**32) "
        ";;     torch.set_rng_state(state)\n → ": "You seed the generators of torch, NumPy and Python that all code "
        "shares. Seed only a separate generator.",
        "torch.get_rng_state() → torch.initial_seed() ;; torch.set_rng_state(state) → torch.manual_seed(state)": "You "
        "restore the seed of the shared generator, but not its *place* in its sequence.",
    },
)
