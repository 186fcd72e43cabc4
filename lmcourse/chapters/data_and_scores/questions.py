"""Questions with four answers that the shipped model scores: which of four continuations is the text's own?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file
from torch import Tensor

from lmcourse.data.help_texts import help_texts
from lmcourse.exercises.measured import one_thread
from lmcourse.pretrained import load_pretrained

CONTEXT, ANSWERS, SHORTEST = 48, 4, 3
SCORED = {(seed, longest): 200 for longest in (4, 8, 16) for seed in (0, 1)}
"""Questions whose log-probabilities are stored, by seed and by the tokens of the longest answer."""

COMPARED, CONTEXTS, LONGEST = (10, 11, 12), (48, 32, 16, 8), 8
"""Seeds of 300 questions each, the tokens of context that a model may read, and the tokens of the longest answer."""

STORED = Path(__file__).with_name("scores.safetensors")
_TAIL = 300
"""Questions begin at least this many tokens before the end of the text."""


@dataclass(frozen=True)
class Questions:
    """Contexts, four answers each and their lengths; the first answer is the text's own. Padding is token 0."""

    contexts: Int[Tensor, "n 48"]
    answers: Int[Tensor, "n 4 longest"]
    lengths: Int[Tensor, "n 4"]


def draw_questions(count: int, longest: int, seed: int) -> Questions:
    """Draw questions from the held-out help texts. Wrong answers come from other places, cut to a random length."""
    text, generator = help_texts()[1], torch.Generator().manual_seed(seed)

    def places(each: int) -> Int[Tensor, "n each 1"]:
        return torch.randint(0, len(text) - _TAIL, (count, each, 1), generator=generator)

    own = places(1)
    starts = torch.cat([own + CONTEXT, places(ANSWERS - 1)], dim=1)
    lengths = torch.randint(SHORTEST, longest + 1, (count, ANSWERS), generator=generator)
    lengths[:, 0] = longest
    answers = text[starts + torch.arange(longest)]
    inside = torch.arange(longest) < lengths[:, :, None]
    return Questions(text[own[:, 0] + torch.arange(CONTEXT)], answers.where(inside, 0), lengths)


@one_thread()
@torch.no_grad()
def log_probabilities(questions: Questions, context: int = CONTEXT) -> Float[Tensor, "n 4 longest"]:
    """Return the shipped model's log-probability of each token of the answers after the last `context` tokens.

    Entries of padding hold what the model says of token 0.
    """
    model: Any = load_pretrained().model.float().eval()
    n, answers, longest = questions.answers.shape
    before = questions.contexts[:, None, -context:].expand(-1, answers, -1)
    tokens = torch.cat([before, questions.answers], dim=2).flatten(0, 1)
    found = []
    for part in torch.split(tokens, 200):
        logits = model(part[:, :-1])[:, context - 1 :]
        found.append(-F.cross_entropy(logits.mT, part[:, context:], reduction="none"))
    return torch.cat(found).view(n, answers, longest)


def is_right(questions: Questions, context: int) -> Bool[Tensor, " n"]:
    """Return True for each question whose own answer has the largest log-probability per token."""
    log_p = log_probabilities(questions, context)
    inside = torch.arange(log_p.shape[2]) < questions.lengths[:, :, None]
    return (log_p.where(inside, 0).sum(2) / questions.lengths).argmax(1) == 0


def store() -> dict[str, Tensor]:
    """Compute all that `scores.safetensors` holds: half a minute."""
    stored = {}
    for (seed, longest), count in SCORED.items():
        questions = draw_questions(count, longest, seed)
        stored[f"log_p {seed} {longest}"] = log_probabilities(questions).half()
    for seed in COMPARED:
        questions = draw_questions(300, LONGEST, seed)
        stored |= {f"right {seed} {context}": is_right(questions, context) for context in CONTEXTS}
    return stored


@cache
def _stored() -> dict[str, Tensor]:
    return load_file(STORED)


def stored_scores(seed: int, longest: int) -> tuple[Float[Tensor, "n 4 longest"], Int[Tensor, "n 4"]]:
    """Return stored log-probabilities of 200 questions, and the lengths of their answers."""
    lengths = draw_questions(SCORED[seed, longest], longest, seed).lengths
    return _stored()[f"log_p {seed} {longest}"].float(), lengths


def stored_rights(seed: int, context: int) -> list[int]:
    """Return 1 for each of 300 questions that the model answers right with so much context, else 0."""
    return [int(each) for each in _stored()[f"right {seed} {context}"]]
