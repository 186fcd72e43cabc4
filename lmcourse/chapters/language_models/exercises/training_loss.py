"""The exercise on the training loss."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Use PyTorch's own function, in double precision."""
    if tokens.shape[1] < 2:
        raise ValueError("a text of one token has no token to predict")
    loss = F.cross_entropy(logits[:, :-1].double().flatten(0, 1), tokens[:, 1:].flatten())
    return loss.to(torch.promote_types(logits.dtype, torch.float32))


def _tokens(random: Random, batch: int, length: int, words: int) -> Tensor:
    return torch.tensor([[random.randrange(words) for _ in range(length)] for _ in range(batch)])


FIXED = Random(7)
TWO, TWO_TOKENS = normal(FIXED, 2, 5, 4), torch.tensor([[0, 1, 2, 3, 3], [2, 2, 0, 1, 3]])
HUGE = torch.tensor([[[10_000.0, 0.0, -5000.0], [3.0, 1.0, 2.0], [0.0, 0.0, 0.0]]])


WIDE, TOKENS = normal(FIXED, 3, 4, 6, scale=2.0), _tokens(FIXED, 3, 4, 6)
STEEP = torch.tensor([[[10_000.0, -10_000.0], [-10_000.0, 10_000.0], [0.0, 0.0]]])
FIXED_CASES = [
    case("two tokens", normal(FIXED, 3, 2, 3), torch.tensor([[0, 1], [1, 1], [2, 0]])),
    case("a vocabulary of two", normal(FIXED, 2, 6, 2), _tokens(FIXED, 2, 6, 2)),
    case("a vocabulary of one", normal(FIXED, 2, 3, 1), torch.zeros(2, 3, dtype=torch.int64)),
    case("one text", WIDE[:1], TOKENS[:1]),
    case("as many words as tokens", normal(FIXED, 4, 4, 4), _tokens(FIXED, 4, 4, 4)),
    *(case("huge logits", logits, torch.tensor([[0, 1, 0]])) for logits in (STEEP, -STEEP - 20_000)),
    *(case("16 bits", logits, TOKENS) for logits in (WIDE.to(torch.float16), (8 * WIDE).to(torch.bfloat16))),
    case("double precision", WIDE.double(), TOKENS),
    case("a single token", WIDE[:, :1], TOKENS[:, :1]),
]


def _hidden(random: Random) -> list[Case]:
    cases = []
    for batch, length, words in ((2, 3, 7), (5, 4, 3), (1, 9, 11)):
        tokens = _tokens(random, batch, length, words)
        tokens[0, 1] = 0  # no luck decides whether token 0 is a target
        cases.append(case("other batches", normal(random, batch, length, words), tokens))
    return [*FIXED_CASES, *cases]


next_token_loss = Exercise(
    "next_token_loss",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_loss,
    differentiable=True,
    cases=[
        case("all words alike: ln 8", torch.zeros(1, 3, 8), torch.tensor([[1, 5, 2]])),
        case("one prediction, by hand", torch.tensor([[[1.0, 0.0, 1.0], [0.0, 5.0, -2.0]]]), torch.tensor([[0, 1]])),
        case("two texts", TWO, TWO_TOKENS),
        case("logits of ten thousand", HUGE, torch.tensor([[1, 0, 2]])),
        case("logits of minus ten thousand", -HUGE.abs(), torch.tensor([[1, 0, 0]])),
        case("16 bits", TWO.to(torch.bfloat16), TWO_TOKENS),
        case("64 bits", TWO.double() / 7, TWO_TOKENS),
        case("one token", torch.zeros(1, 1, 8), torch.tensor([[3]])),
    ],
    hidden_cases=_hidden,
    hints=[
        "logits[:, :-1] are the logits that predict something, and tokens[:, 1:] are their targets.",
        "log_p = logits[:, :-1].log_softmax(dim=-1) holds the logarithms of all probabilities. You need one entry for "
        "each prediction.",
        "log_p.gather(-1, targets[..., None]) picks them. Then take the mean, with a minus. For 16-bit logits, call "
        ".float() first.",
    ],
    forbid=[".cross_entropy", ".nll_loss", "torch.nn"],
)


next_token_loss.equivalent_mutant(
    "log_p = logits[:, :-1].log_softmax(dim=-1) → log_p = logits[:, :].log_softmax(dim=-1)",
    "gather reads as many places as there are targets, from the first on: the last logits are left over.",
)


@next_token_loss.variant
def gathered(logits: Tensor, tokens: Tensor) -> Tensor:
    if tokens.shape[1] < 2:
        raise ValueError("a text of one token has no token to predict")
    wide = logits if logits.dtype == torch.float64 else logits.float()
    log_p = wide[:, :-1].log_softmax(dim=-1)
    targets = tokens[:, 1:]
    return -log_p.gather(-1, targets[..., None]).mean()


next_token_loss.slips(
    gathered,
    {
        "wide[:, :-1] → wide ;; tokens[:, 1:] → tokens || tokens[:, 1:] → tokens[:, :-1]": "You compare the logits at "
        "a token with that token. They predict the token after it.",
        "wide[:, :-1] → wide[:, 1:] ;; tokens[:, 1:] → tokens[:, :-1]": "Your targets are one place *before* the "
        "logits: the model has already read them.",
        "wide[:, :-1] → wide ;; tokens[:, 1:] → tokens.roll(-1, dims=1)": "You keep the last logits, with the first "
        "token as their target. Drop them.",
        "log_softmax → softmax ;; -log_p → log_p": "You average probabilities. Take the logarithm first, and the "
        "minus.",
        "-log_p → log_p": "The minus is missing: a model that minimises this learns to be wrong.",
        "mean() → sum()": "You add up all predictions: twice the batch, twice the loss. Take the mean.",
        "mean() → sum() / len(tokens)": "You add up each text and average over texts, so the loss grows with the "
        "length of the texts. Average over all predictions.",
        "mean() → sum() / tokens.numel()": "You divide by the number of tokens. Each text has one prediction fewer "
        "than tokens.",
        "dim=-1 → dim=1 || wide[:, :-1].log_softmax(dim=-1) → wide.log_softmax(dim=1)": "Your softmax runs over "
        "positions. It should run over the words of each position.",
        "wide[:, :-1] → wide.flatten(0, 1)[:-1] ;; tokens[:, 1:] → tokens.flatten()[1:]": "You join the texts to one "
        "row, so the last token of one predicts the first of the next. Cut each text by itself.",
        "mean() → mean() / logits.shape[-1]": "You also divide by the number of words, as the mean over a one-hot "
        "table does. Divide by the number of predictions.",
        "mean() → mean(dim=1)[:, 0] || mean() → mean(dim=1).squeeze()": "You return a loss for each text. Return one "
        "mean, over all texts and places.",
        "mean() → squeeze(-1)": "You return a loss for each prediction. Return their mean.",
        **{
            f"log_softmax(dim=-1) → softmax(dim=-1).{raised}.log()": "You keep probabilities above a small number, so "
            "an unlikely word costs 20 or 30 nats where it should cost thousands: use log_softmax."
            for raised in ("add(1e-8)", "add(1e-9)", "clamp(1e-8)", "clamp(1e-9)", "clamp(1e-10)", "clamp(1e-12)")
        },
        "logits if logits.dtype == torch.float64 else logits.float() → logits.float() ;; log_softmax(dim=-1) → exp() "
        ";; -log_p → -(log_p / log_p.sum(dim=-1, keepdim=True)) ;; .mean() → .log().mean() || wide[:, "
        ":-1].log_softmax(dim=-1) → wide[:, :-1] - wide[:, :-1].exp().sum(dim=-1, keepdim=True).log()": "e^10000 "
        "overflows: subtract the largest logit first, or use log_softmax.",
        "mean() → mean().item()": "Your result carries no gradient, as after `.item()`, `.detach()` or `.data`: return "
        "a tensor that training can differentiate.",
        "log_softmax(dim=-1) → softmax(dim=-1).log()": "The softmax of an unlikely word underflows to 0, and ln 0 is "
        "−∞: use log_softmax.",
        "wide[:, :-1] → wide[:, 1:]": "You cut logits and tokens in the same way. The logits at s predict token s + 1.",
        "logits if logits.dtype == torch.float64 else logits.float() → logits": "For 16-bit logits you round to 16 "
        "bits on the way, which leaves two or three digits. Convert the logits to float32 first, and return float32.",
        "logits if logits.dtype == torch.float64 else logits.float() → logits.float()": "You convert all logits to "
        "float32. Only 16-bit logits need that: keep float64.",
        "mean() → mean() / math.log(2)": "You return bits. Return nats.",
    },
)
