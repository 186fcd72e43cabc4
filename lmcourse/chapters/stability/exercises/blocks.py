"""The exercise on how many norms there are in a block."""

from __future__ import annotations

import torch

from lmcourse.exercises.exercise import value_exercise
from lmcourse.models.zoo import find_model
from lmcourse.nn.block import build_block
from lmcourse.nn.norm import Norm

NORMS = {"gpt-2": 2, "llama-7b": 2, "gemma-2-9b": 4, "olmo-2-7b": 4, "gemma-3-4b": 6}
"""What is counted when an answer is checked, and not here: to build blocks without memory loads torch's compiler, for a
second. That the two are the same is proved with the variants, one of which is made of these."""


def _count(name: str) -> int:
    """Norms in the first block of a model, built without memory and counted."""
    config = find_model(name).decoder
    with torch.device("meta"):
        block = build_block(config.layers[0], config.block, config.d_model, 0)
    return sum(isinstance(module, Norm) for module in block.modules())


def _counts() -> dict[str, int]:
    return {name: _count(name) for name in NORMS}


def _but(**changes: int) -> dict[str, int]:
    return NORMS | {name.replace("_", "-"): count for name, count in changes.items()}


norms_per_block = value_exercise(
    "norms_per_block",
    points=1,
    minutes=4,
    difficulty=1,
    reference=_counts,
    hints=[
        "Two branches a block, attention and feed-forward. Pre-norm has one norm before each.",
        "Gemma 2 and 3 have one before and one after each branch; OLMo 2 only after.",
        "Who normalises queries and keys has two more.",
    ],
)
norms_per_block.wrong_value(
    _but(gemma_2_9b=6),
    "You gave Gemma 2 norms on queries and keys, as a lecture did. It caps its scores instead; Gemma 3 has the norms.",
)
norms_per_block.wrong_value(
    _but(olmo_2_7b=2), "OLMo 2 normalises queries and keys too: two more than the norms after its branches."
)
norms_per_block.wrong_value(
    _but(gemma_3_4b=4), "Gemma 3 has norms on queries and keys as well, in the place of Gemma 2's caps."
)
norms_per_block.wrong_value(
    _but(olmo_2_7b=6), "OLMo 2 has norms after its branches only, not before them; and those on queries and keys."
)
norms_per_block.wrong_value(
    _but(gpt_2=1, llama_7b=1), "A block has two branches, and pre-norm puts a norm before each of them."
)
norms_per_block.right_value(
    f"dict(zip({[*NORMS]}, {[*NORMS.values()]}))",
    "{'gemma-3-4b': 2 + 2 + 2, 'olmo-2-7b': 2 + 2, 'gemma-2-9b': 2 * 2, 'llama-7b': 2.0, 'gpt-2': 2}",
    "{name: torch.tensor(2 * n) for name, n in "
    "{'gpt-2': 1, 'llama-7b': 1, 'gemma-2-9b': 2, 'olmo-2-7b': 2, 'gemma-3-4b': 3}.items()}",
)
