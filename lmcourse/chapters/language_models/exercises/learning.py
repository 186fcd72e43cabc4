"""The exercise on a small model trained on too little text."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.language_models.judged import Found, pairs_of
from lmcourse.chapters.language_models.kinds import kinds_source, write
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def _train(
    text: Tensor,
    v: int,
    rank: int = 4,
    *,
    steps: int = 100,
    lr: float = 0.03,
    stop: bool = True,
    trains_on_all: bool = False,
    backwards: bool = False,
    shuffled: bool = False,
    dim: int = 1,
) -> Found:
    """Train with Adam on the counts of pairs, all at once; return the table with the lowest held-out loss.

    A rank of 0 trains the whole table of logits.
    """
    generator = torch.Generator().manual_seed(1)
    first, second = (text[1:], text[:-1]) if backwards else (text[:-1], text[1:])
    if shuffled:
        order = torch.randperm(len(first), generator=generator)
        first, second = first[order], second[order]
    cut = len(first) - len(first) // 10
    seen, kept = (
        torch.zeros(v, v).index_put((a, b), torch.ones(len(a)), accumulate=True) / len(a)
        for a, b in ((first[:cut], second[:cut]), (first[cut:], second[cut:]))
    )
    used = 0.9 * seen + 0.1 * kept if trains_on_all else seen
    E = 0.1 * torch.randn(v, rank, generator=generator) if rank else torch.eye(v)
    F, b = torch.zeros(rank or v, v), torch.zeros(v)
    weights = [weight.requires_grad_() for weight in ((E, F, b) if rank else (F,))]
    optimizer = torch.optim.Adam(weights, lr=lr, foreach=False)
    best: Found = {"held_out": math.inf}
    for _ in range(steps):
        log_p = (E @ F + b).log_softmax(dim=dim)
        held_out = -(kept * log_p).sum().item()
        if held_out < best["held_out"] or not stop:
            best = {"log_p": log_p.detach(), "train": -(seen * log_p).sum().item(), "held_out": held_out}
        optimizer.zero_grad()
        (-(used * log_p).sum()).backward()  # type: ignore[no-untyped-call]
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


def _hidden(_: Random) -> list[Case]:
    return _cases(_of_source(6), _of_source(8))


learn = Exercise(
    "learn",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_train,
    cases=_cases(FIRST, FIRST),
    hidden_cases=_hidden,
    hints=[
        "E @ F + b are the logits of all rows at once. With their log_softmax, −log_p[text[:-1], text[1:]] are the "
        "losses of all pairs. Start with random numbers in E.",
        "Look at both losses while it trains. The one on the last tenth falls, and then it rises again: keep the table "
        "of the step where it is lowest.",
        "Still too large? Then the table has too many free numbers. Try a rank of 2 to 4, and 100 steps of Adam with a "
        "learning rate of 0.05.",
    ],
)


for _change, _why in (
    (
        "optimizer = torch.optim.Adam(model.parameters(), lr=0.1) → optimizer = torch.optim.Adam(model.parameters(), "
        "lr=0.05)",
        "The learning rate is the learner's choice.",
    ),
    *(
        (f"for _ in range(100): → for _ in {steps}:", "A step more or less: the best is long past.")
        for steps in ("list(range(100))[1:]", "list(range(100))[:-1]", "range(101)", "range(99)")
    ),
    (
        "if held_out < best['held_out']: → if held_out <= best['held_out']:",
        "Two steps do not cost exactly the same.",
    ),
):
    learn.equivalent_mutant(_change, _why)


@learn.misconception(
    "The exponentials of your table do not sum to one in each row. If it holds logits, take log_softmax over the last "
    "axis."
)
def logits_returned(text: Tensor, v: int) -> Found:
    found = _train(text, v)
    return found | {"log_p": found["log_p"] + 1}


@learn.misconception("Your table holds probabilities. It should hold their logarithms.")
def probabilities(text: Tensor, v: int) -> Found:
    found = _train(text, v)
    return found | {"log_p": found["log_p"].exp()}


@learn.misconception(
    "In your table the columns are distributions. Row i must be the distribution of the word after word i."
)
def transposed(text: Tensor, v: int) -> Found:
    found = _train(text, v)
    return found | {"log_p": found["log_p"].T}


@learn.misconception(
    "Your softmax runs over the words *before*: in your table each column is a distribution. It should run along the "
    "rows."
)
def over_the_words_before(text: Tensor, v: int) -> Found:
    return _train(text, v, dim=0)


@learn.misconception("You predict the word *before* from the word after. Row i is for the known word, i.")
def backwards(text: Tensor, v: int) -> Found:
    return _train(text, v, backwards=True)


@learn.misconception(
    "You train on the last tenth, too. Then its loss no longer shows the cost of new text, and you stop too late."
)
def tenth_trained_on(text: Tensor, v: int) -> Found:
    return _train(text, v, 4, steps=300, trains_on_all=True)


@learn.misconception("You train on the last tenth, too. Then its loss no longer shows the cost of new text.")
def tenth_trained_on_low_rank(text: Tensor, v: int) -> Found:
    return _train(text, v, 2, steps=200, trains_on_all=True)


@learn.misconception(
    "On its training text your table costs less than the source itself: it has memorised the text. Keep the table of "
    "the step at which the last tenth is cheapest, or take a smaller rank."
)
def last_step(text: Tensor, v: int) -> Found:
    return _train(text, v, 4, steps=250, stop=False)


@learn.misconception(
    "Your table has memorised its training text, and new text costs more than a prediction that ignores the previous "
    "word. Keep the table of the step at which the last tenth is cheapest."
)
def last_step_of_many(text: Tensor, v: int) -> Found:
    return _train(text, v, 8, steps=300, stop=False)


@learn.misconception(
    "Even on its training text your table costs more than the source itself. It has not learned enough: take more or "
    "larger steps, or a larger rank."
)
def too_few_steps(text: Tensor, v: int) -> Found:
    return _train(text, v, steps=4)


@learn.misconception(
    "Your table has a high rank, as if all v² logits were trained separately: words share little of what is learned. "
    "Use E @ F + b with a small rank."
)
def full_table(text: Tensor, v: int) -> Found:
    return _train(text, v, 0, steps=150)


@learn.misconception("New text costs as much as without the previous word: your rows are nearly the same.")
def single_words(text: Tensor, v: int) -> Found:
    counts = torch.bincount(text[: -len(text) // 10], minlength=v).double() + 0.1
    log_p = (counts / counts.sum()).log().expand(v, v)
    first, second, kept = pairs_of(text)
    prices = -log_p[first, second]
    return {"log_p": log_p, "train": prices[:-kept].mean(), "held_out": prices[-kept:].mean()}


@learn.misconception(
    "Your `train` and `held_out` are those of other pairs, and you train on most of the last tenth: it seems that you "
    "shuffle first. Cut off the last tenth in the order of the text."
)
def shuffled_pairs(text: Tensor, v: int) -> Found:
    return _train(text, v, stop=False, shuffled=True)


@learn.misconception(
    "Your table has a high rank, as with smoothed counts, where each row knows only what followed its own word. Let "
    "words share what is learned: E @ F + b with a small rank."
)
def smoothed_counts(text: Tensor, v: int) -> Found:
    first, second, kept = pairs_of(text)
    places = (first[:-kept], second[:-kept])
    counts = torch.ones(v, v).index_put(places, torch.ones(len(places[0])), accumulate=True)
    log_p = (counts / counts.sum(dim=1, keepdim=True)).log()
    prices = -log_p[first, second]
    return {"log_p": log_p, "train": prices[:-kept].mean(), "held_out": prices[-kept:].mean()}


@learn.misconception("Your `train` and `held_out` are in bits. Return nats.")
def in_bits(text: Tensor, v: int) -> Found:
    found = _train(text, v)
    return found | {name: found[name] / math.log(2) for name in ("train", "held_out")}


@learn.misconception("Your `train` and `held_out` are sums over words. Take the means.")
def summed(text: Tensor, v: int) -> Found:
    found = _train(text, v)
    kept = (len(text) - 1) // 10
    return found | {"train": found["train"] * 9 * kept, "held_out": found["held_out"] * kept}


@learn.variant
def on_counts(text: Tensor, v: int) -> dict[str, Any]:
    cut = 9 * (len(text) - 1) // 10
    counts = [torch.zeros(v, v), torch.zeros(v, v)]
    for place, (before, after) in enumerate(zip(text.tolist(), text.tolist()[1:], strict=False)):
        counts[place >= cut][before, after] += 1
    train, held = (c / c.sum() for c in counts)
    E, F, b = (
        (0.1 * torch.randn(v, 2)).requires_grad_(),
        torch.zeros(2, v).requires_grad_(),
        torch.zeros(v).requires_grad_(),
    )
    optimizer = torch.optim.Adam([E, F, b], lr=0.05)
    best: tuple[float, dict[str, Any]] = (9.0, {})
    for _ in range(120):
        log_p = (E @ F + b).log_softmax(-1)
        loss = -(train * log_p).sum()
        held_out = -(held * log_p).sum()
        if held_out.item() < best[0]:
            best = held_out.item(), {"log_p": log_p.detach().clone(), "train": loss.item(), "held_out": held_out.item()}
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return best[1]


@learn.variant
def as_a_module(text: Tensor, v: int) -> dict[str, Any]:
    table = torch.nn.Sequential(torch.nn.Embedding(v, 3), torch.nn.Linear(3, v))
    torch.nn.init.normal_(table[0].weight, std=0.1)  # type: ignore[arg-type]
    pairs = torch.stack([text[:-1], text[1:]], dim=1)
    cut = len(pairs) - len(pairs) // 10
    parts = {"train": pairs[:cut], "held_out": pairs[cut:]}
    optimizer = torch.optim.Adam(table.parameters(), lr=0.03)
    best: dict[str, Any] = {}
    for _ in range(150):
        log_p = table(torch.arange(v)).log_softmax(1)
        loss = {name: -log_p[part[:, 0], part[:, 1]].mean() for name, part in parts.items()}
        if not best or loss["held_out"] < best["held_out"]:
            best = {"log_p": log_p.detach(), **{name: price.item() for name, price in loss.items()}}
        optimizer.zero_grad()
        loss["train"].backward()
        optimizer.step()
    return best


@learn.variant
def with_patience_and_a_large_rank(text: Tensor, v: int) -> dict[str, Any]:
    known, after = text[:-1], text[1:]
    cut = len(known) - len(known) // 10
    E, F = (0.1 * torch.randn(v, 20)).requires_grad_(), (0.1 * torch.randn(20, v)).requires_grad_()
    optimizer = torch.optim.AdamW([E, F], lr=0.03, weight_decay=0.1)
    best: dict[str, Any] = {"held_out": torch.tensor(9.0)}
    waited = 0
    while waited < 10:
        log_p = torch.log_softmax(E @ F, dim=1)
        price = torch.nn.functional.nll_loss(log_p[known[:cut]], after[:cut])
        held = torch.nn.functional.nll_loss(log_p[known[cut:]], after[cut:])
        waited += 1
        if held < best["held_out"]:
            waited = 0
            best = {"log_p": log_p, "train": price, "held_out": held}
        optimizer.zero_grad()
        price.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        optimizer.step()
    return {name: value.detach() for name, value in best.items()}
