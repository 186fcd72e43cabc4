"""The exercise on a small model trained on too little text."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.language_models.kinds import kinds_source, write
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def pair_by_pair(text: Tensor, v: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    first, second = text[:-1], text[1:]
    cut = len(first) - len(first) // 10
    E, F, b = 0.1 * torch.randn(v, 4, generator=generator), torch.zeros(4, v), torch.zeros(v)
    optimizer = torch.optim.Adam([weight.requires_grad_() for weight in (E, F, b)], lr=0.03)
    best: dict[str, Any] = {"held_out": math.inf}
    for _ in range(100):
        log_p = (E @ F + b).log_softmax(dim=1)
        losses = -log_p[first, second]
        train, held_out = losses[:cut].mean(), losses[cut:].mean()
        if held_out < best["held_out"]:
            best = {"log_p": log_p.detach(), "train": train.item(), "held_out": held_out.item()}
        optimizer.zero_grad()
        train.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return best


WORDS = 80
_IMPORT = "from lmcourse.chapters.language_models.judged import"


def _of_source(seed: int) -> dict[str, Tensor]:
    P = kinds_source(WORDS, 6, seed)
    return {"text": write(P, 30 * WORDS + 1, 100 + seed), "P": P}


FIRST = _of_source(1)


def _cases(first: dict[str, Tensor], second: dict[str, Tensor]) -> list[Case]:
    """Return one case for each point that the exercise is worth."""
    text, call = {"text": first["text"]}, f"learn(text, {WORDS})"
    return [
        script("log_p holds distributions", f"{_IMPORT} rows\nrows({call}, {WORDS})", **text),
        script(
            "cheaper than without the word before",
            f"{_IMPORT} against_single_words\nagainst_single_words({call}, text, P)",
            **second,
        ),
        script(
            "train and held_out",
            f"{_IMPORT} fresh, told\nfound = {call}\ntold(found, text, {WORDS})\nfresh(found, text, P)",
            **first,
        ),
        script(
            "much cheaper than counting", f"{_IMPORT} against_counting\nagainst_counting({call}, text, P)", **second
        ),
    ]


learn = Exercise(
    "learn",
    points=4,
    minutes=20,
    difficulty=3,
    reference=pair_by_pair,
    cases=_cases(FIRST, FIRST),
    hidden_cases=lambda _: _cases(_of_source(6), _of_source(8)),
    hints=[
        "E @ F + b are the logits of all rows at once. With their log_softmax, −log_p[text[:-1], text[1:]] are the "
        "losses of all pairs. Start with random numbers in E.",
        "Look at both losses while it trains. The one on the last tenth falls, and then it rises again: keep the table "
        "of the step where it is lowest.",
        "Still too large? Then the table has too many free numbers. Try a rank of 2 to 4, and 100 steps of Adam with a "
        "learning rate of 0.05.",
    ],
)


_ADAM = "optimizer = torch.optim.Adam(model.parameters(), lr="
for _rate in (0.025, 0.1):
    learn.equivalent_mutant(f"{_ADAM}0.05) → {_ADAM}{_rate})", "The learning rate is the learner's choice.")
for _steps in ("list(range(200))[1:]", "list(range(200))[:-1]", "range(201)", "range(199)"):
    learn.equivalent_mutant(f"for _ in range(200): → for _ in {_steps}:", "The best is long past.")
learn.equivalent_mutant(
    "if held_out < best['held_out']: → if held_out <= best['held_out']:", "Two steps do not cost exactly the same."
)


learn.variant(pair_by_pair)
learn.slips(
    pair_by_pair,
    {
        "log_p.detach() → log_p.detach() + 1": "The exponentials of your table do not sum to one in each row. If it "
        "holds logits, take log_softmax over the last axis.",
        "log_p.detach() → log_p.detach().exp()": "Your table holds probabilities. It should hold their logarithms.",
        "log_p.detach() → log_p.detach().T": "In your table the columns are distributions. Row i must be the "
        "distribution of the word after word i.",
        "dim=1 → dim=0 || dim=1 → dim=0 ;; range(100) → range(40)": "Your softmax runs over the words *before*: in "
        "your table each column is a distribution. It should run along the rows.",
        "text[:-1], text[1:] → text[1:], text[:-1]": "You predict the word *before* from the word after. Row i is for "
        "the known word, i.",
        "train.backward() → losses.mean().backward() ;; range(100) → range(300)": "You train on the last tenth, too. "
        "Then its loss no longer shows the cost of new text, and you stop too late.",
        "train.backward() → losses.mean().backward() ;; range(100) → range(200) ;; randn(v, 4 → randn(v, 2 ;; zeros(4, "
        "v) → zeros(2, v)": "You train on the last tenth, too. Then its loss no longer shows the cost of new text.",
        'held_out < best["held_out"] → True ;; range(100) → range(250)': "On its training text your table costs less "
        "than the source itself: it has memorised the text. Keep the table of the step at which the last tenth is "
        "cheapest, or take a smaller rank.",
        'held_out < best["held_out"] → True ;; range(100) → range(300) ;; randn(v, 4 → randn(v, 8 ;; zeros(4, v) → '
        "zeros(8, v)": "Your table has memorised its training text, and new text costs more than a prediction that "
        "ignores the previous word. Keep the table of the step at which the last tenth is cheapest.",
        "range(100) → range(4)": "Even on its training text your table costs more than the source itself. It has not "
        "learned enough: take more or larger steps, or a larger rank.",
        "0.1 * torch.randn(v, 4, generator=generator), torch.zeros(4, v) → torch.eye(v), torch.zeros(v, v) ;; (E, F, "
        "b) → (F,) ;; range(100) → range(150)": "Your table has a high rank, as if all v² logits were trained "
        "separately: words share little of what is learned. Use E @ F + b with a small rank.",
        "E @ F → E @ E.T": "Your logits are symmetric, as E @ E.T makes them: a pair of words gets the same in both "
        "orders. Use two tables, E and F.",
        "(E, F, b) → (b,)": "New text costs as much as without the previous word: your rows are nearly the same.",
        "cut = → order = torch.randperm(len(first), generator=generator)\n    first, second = first[order], "
        'second[order]\n    cut = ;; held_out < best["held_out"] → True': "Your `train` and `held_out` are those of "
        "other pairs, and you train on most of the last tenth: it seems that you shuffle first. Cut off the last tenth "
        "in the order of the text.",
        "log_p = (E @ F + b).log_softmax(dim=1) → counts = torch.ones(v, v).index_put((first[:cut], second[:cut]), "
        "torch.ones(cut), accumulate=True)\n        log_p = (counts / counts.sum(dim=1, "
        "keepdim=True)).log().requires_grad_()": "Your table has a high rank, as with smoothed counts, where each row "
        "knows only what followed its own word. Let words share what is learned: E @ F + b with a small rank.",
        "train.item() → train.item() / math.log(2) ;; held_out.item() → held_out.item() / math.log(2)": "Your `train` "
        "and `held_out` are in bits. Return nats.",
        "losses[:cut].mean(), losses[cut:].mean() → losses[:cut].sum(), losses[cut:].sum()": "Your `train` and "
        "`held_out` are sums over words. Take the means.",
    },
)
