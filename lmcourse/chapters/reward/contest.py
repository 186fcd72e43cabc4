"""The open task of notebook 22: an imitator improved with 1,024 sampled answers.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.training.number_dialogues import LARGER, NUMBERS, PLUS, WORDS, chances, is_right, new_model, sample

Improve = Callable[..., Any]

BUDGET = 1024
"""The number of answers that may be sampled."""

FOUR = "`improve` takes four arguments: a model, `ask`, `check` and a budget."
SPENT = "You ask for {:,} answers in all. The budget is 1,024."
STRANGE = "You check a dialogue that `ask` has not handed out: `check` judges sampled answers only."
SHAPE = (
    "`ask` takes questions of shape (n, 3), rows of (kind, a, b), such as `questions(PLUS)`. Yours have the shape {}."
)
NO_MODEL = "`improve` must return a model that turns tokens (n, s) into logits (n, s, 16)."


class Contest:
    """An imitator of people with shared wrong beliefs, whose numbers have new names, and the count of its answers.

    Args:
        seed: its parity chooses one of two imitators; the names and the sampled answers depend on all of it.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(1000 + seed)
        numbers = torch.randperm(NUMBERS, generator=self.generator)
        self.tokens = torch.cat([numbers, torch.arange(NUMBERS, len(WORDS))])
        self.words = self.tokens.argsort()
        self.clock = clock_of(seed % 2)
        self.model = _renamed_imitator(seed % 2, self.words)
        self.used, self._handed_out = 0, set[tuple[int, ...]]()

    def ask(self, questions: Int[Tensor, "n 3"], times: int = 1) -> Int[Tensor, "n*times 9"]:
        """Sample answers from the model as it is now; raise Unfit if that would exceed the budget."""
        if questions.dim() != 2 or questions.shape[1] != 3:
            raise Unfit(SHAPE.format(tuple(questions.shape)))
        if self.used + len(questions) * times > BUDGET:
            raise Unfit(SPENT.format(self.used + len(questions) * times))
        self.used += len(questions) * times
        dialogues = sample(self.model, questions, times, self.generator)
        self._handed_out.update(map(tuple, dialogues.tolist()))
        return dialogues

    def check(self, dialogues: Int[Tensor, "n 9"]) -> Float[Tensor, " n"]:
        """Return 1 for each right answer, else 0; raise Unfit if `ask` has not handed out one of the dialogues."""
        if not self._handed_out.issuperset(map(tuple, dialogues.tolist())):
            raise Unfit(STRANGE)
        return is_right(self.words[dialogues], self.clock)

    def result(self, improved: nn.Module) -> dict[str, float]:
        """Return the mean chance of a right answer to both kinds of questions, and the number of answers used."""
        found = {name: float(chances(improved, kind, self.tokens, self.clock).mean()) for name, kind in KINDS.items()}
        return {**found, "answers": self.used}


KINDS = {"sums": PLUS, "larger": LARGER}


class _AskedError(BaseException):
    """Ends an inspection; no Exception, so that an answer does not catch it."""


def inspect_improve(improve: Improve) -> None:
    """Run a function until it asks; raise Unfit if it takes other arguments, or returns no model."""
    try:
        inspect.signature(improve).bind(None, None, None, BUDGET)
    except TypeError:
        raise Unfit(FOUR) from None

    def ask(*_: Any, **__: Any) -> None:
        raise _AskedError

    try:
        improved = improve(Contest(0).model, ask, ask, BUDGET)
    except _AskedError:
        return
    _check_model(improved)


def _check_model(improved: object) -> None:
    if not isinstance(improved, nn.Module):
        raise Unfit(NO_MODEL)


@one_thread()
def measure_improve(improve: Improve, seed: int) -> dict[str, float]:
    """Let a function improve an imitator; return the numbers of the table."""
    contest = Contest(seed)
    torch.manual_seed(seed)
    improved = improve(contest.model, contest.ask, contest.check, BUDGET)
    _check_model(improved)
    return contest.result(improved.eval())


def clock_of(number: int) -> Int[Tensor, " 11"]:
    """Return an imitator's clock. It is not in the order of the numbers: the larger of two must not give it away."""
    return torch.randperm(NUMBERS, generator=torch.Generator().manual_seed(200 + number))


def _renamed_imitator(number: int, words: Tensor) -> nn.Module:
    """Return a stored imitator in which token t means the word `words[t]`."""
    stored = load_file(Path(__file__).with_name("imitators.safetensors"))
    model = new_model()
    own = {name: stored[f"{number}.{name}"].float() for name in model.state_dict()}
    model.load_state_dict({name: value[words] if len(value) == len(WORDS) else value for name, value in own.items()})
    return model
