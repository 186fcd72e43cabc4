"""The exercise on terms whose mean is the Kullback-Leibler divergence from a reference."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

LogP = Float[Tensor, "*shape"]


def _reference(log_p: LogP, log_q: LogP) -> LogP:
    """Use the ratio of the probabilities: q / p − ln(q / p) − 1."""
    ratio = (log_q.double() - log_p.double()).exp()
    return (ratio - ratio.log() - 1).to(log_p.dtype)


def _hidden(random: Random) -> list[Case]:
    def drawn(*shape: int) -> tuple[Tensor, Tensor]:
        return -normal(random, *shape).abs(), -normal(random, *shape).abs()

    return [
        case("the same model", torch.tensor([-1.0, -0.5]), torch.tensor([-1.0, -0.5])),
        case("fp64", torch.tensor([-1.0, -4.0]).double(), torch.tensor([-3.0, -0.5]).double()),
        case("one token", torch.tensor(-2.0), torch.tensor(-1.0)),
        *(case("other tokens", *drawn(*shape)) for shape in ((5,), (3, 4), (2, 8))),
    ]


kl_terms = Exercise(
    "kl_terms",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_reference,
    differentiable=True,
    tolerance=Tolerance(1e-4, 1e-6),
    cases=[
        case("likelier than before", torch.tensor([-0.5]), torch.tensor([-2.5])),
        case("less likely than before", torch.tensor([-2.5]), torch.tensor([-0.5])),
        case(
            "two answers of three tokens",
            torch.tensor([[-0.1, -2.0, -1.0], [-3.0, -0.2, 0.0]]),
            torch.tensor([[-1.1, -2.0, -0.5], [-1.0, -0.4, -0.7]]),
        ),
        case("as likely as before", torch.tensor([0.0, -1.0, -2.0]), torch.tensor([0.0, -1.0, -1.0])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with d, one number per token: by how much likelier was the token for the reference?",
        "Compute d once, and then three terms of it.",
        "d = log_q - log_p; d is below 0 where the model now likes a token better.",
    ],
)

TURNED = "d is turned round. With samples from p, d = log q − log p gives the mean KL(p‖q); yours does not."
PLAIN = "Your terms have the right mean, but many of them are below 0. The ones of the text never are."
DIVIDED = "You divide the logarithms. The ratio is that of the probabilities: e to the power of the difference."
SQUARE = "You take ½ d². That is near for small d only."


@kl_terms.variant
def of_the_difference(log_p: Tensor, log_q: Tensor) -> Tensor:
    d = log_q - log_p
    return d.exp() - d - 1


kl_terms.slips(
    of_the_difference,
    {
        "d = log_q - log_p → d = log_p - log_q": TURNED,
        "d.exp() - d - 1 → -d": PLAIN,
        "d.exp() - d - 1 → d": "That is log q − log p: its mean is −KL(p‖q).",
        "d.exp() - d - 1 → 0.5 * d**2": SQUARE,
        "d.exp() - d - 1 → d.exp() - 1": "Without − d the mean over samples of p is 0, whatever q is.",
        "d.exp() - d - 1 → d.exp() - d": "The 1 is missing: your terms are 1 too large, and not 0 for equal models.",
        "d.exp() - d - 1 → d.exp() + d - 1": "Subtract d: your terms are below 0 wherever d is.",
        "d.exp() - d - 1 → (d.exp() - d - 1).mean() || d.exp() - d - 1 → (d.exp() - d - 1).sum()": "You return one "
        "number. Return a term for each token: they are masked and added up later.",
        "d.exp() - d - 1 → (d - 1).exp() - d": "The 1 stands in your exponent. Subtract it from the power.",
        "d.exp() - d - 1 → d.abs() || d.exp() - d - 1 → (-d).clamp(min=0)": "Your terms are not below 0, but their "
        "mean is too large: what is below 0 belongs to the mean of −d.",
        "log_q - log_p → log_q / log_p": DIVIDED,
        "d.exp() - d - 1 → log_p.exp() * -d": "You weight by p. Samples already come as often as p says.",
    },
)


@kl_terms.variant
def of_the_ratio(log_p: Tensor, log_q: Tensor) -> Tensor:
    ratio = log_q.exp() / log_p.exp()
    return ratio - 1 - ratio.log()


kl_terms.slips(
    of_the_ratio,
    {
        "log_q.exp() / log_p.exp() → log_p.exp() / log_q.exp()": TURNED,
        "log_q.exp() / log_p.exp() → log_q / log_p": DIVIDED,
    },
)
