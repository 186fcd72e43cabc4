"""The open task of notebook 03: a training step of a small language model without autograd, measured.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import process_time
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.measured import MeasuredCall, measured_call, one_thread
from lmcourse.exercises.open_task import Unfit

Gradients = dict[str, Tensor]
Step = Callable[..., tuple[Any, Gradients]]
"""Takes (table, first, head, ids, y); returns the loss, and the gradients by the names of the parameters."""

NAMES = ("table", "first", "head")
WORDS, VOCABULARY, CONTEXT, WIDTH, HIDDEN = 2048, 8192, 8, 16, 64
MIB = 2**20
PEAK, OPERATORS = "peak, MiB", "operators"

_SMALL: tuple[tuple[int, ...], ...] = ((5, 40), (1, 3), (4, 7, 6), (33, 40), (33, 1030), (64, 9), (301, 70), (512, 9))
"""Sizes at which values are compared: words, vocabulary, and perhaps a width. In the first, ids do not repeat."""

_CLOSE = 1e-5
"""A relative error that rounding to float32 explains, whatever the dtype of the parameters."""

_PART, _SHARED = 0.4, 1.5

FORM = "Return two things: the loss, and a dict with the gradients of `table`, `first` and `head`."
LOSS = "Your loss is {yours:.6g}, and should be {right:.6g}: the mean over all words of −log p of the right one."
FAR = "With scores of ±1,000 your step gives NaN or ∞: exp overflows, or log gets a 0. See logsumexp, row by row."
SHAPE = "The gradient of `{name}` has the shape {yours}. It needs the shape of `{name}`, {right}."
WRONG = (
    "The gradient of `{name}` is wrong, and those of later layers are right. Look at the step between them: its local "
    "derivative, and the place of each number."
)
FIRST = "The gradient of `head` is wrong. Begin with it: it needs only z and the gradient of the scores."
NO_ONE = (
    "The gradient of `head` is that of logsumexp alone: in the gradient of the scores, take off 1 at the right word."
)
WHOLE_ONE = "You divide p by the number of words, and then take off a whole 1. At the right word, divide p − 1."
BLOCKS = " With {few} words or fewer all is right: do all blocks add their part, the last, shorter one too?"
SHARES = " The mean of {words} equal words is {factor:.3g} times that of one: do you divide by the words of a block?"
PARTS = " With a vocabulary of {few} or fewer all is right: how do you put its parts together?"
OVER_WORDS = "Your softmax sums over the words. Each word has its own probabilities: sum over the vocabulary."
ALL = "Every gradient is {factor:.4g} times too large. The mean gives a factor 1/n, with n the number of all words."
GATE = "The gradient of `first` passes the ReLU as if it were not there. Where z is 0, nothing arrives before it."
TWICE = "A word that occurs twice among the ids counts once. Add up the gradients of all its places (`index_add_`)."
HIDDEN_WORK = (
    "Of the products that a step needs, only {part:.0%} were seen. Compute them with torch, where you are called."
)


def new_weights(
    vocabulary: int, seed: int | None = 0, dtype: torch.dtype = torch.float32, width: int = WIDTH
) -> list[Tensor]:
    """Return new parameters: `table`, `first` and `head`; of no fixed seed for None."""
    generator = _generator(seed)
    shapes = ((vocabulary, width), 1), ((CONTEXT * width, HIDDEN), CONTEXT * width), ((vocabulary, HIDDEN), HIDDEN)
    return [torch.randn(shape, generator=generator).to(dtype) / fan_in**0.5 for shape, fan_in in shapes]


def new_words(words: int, vocabulary: int, seed: int | None = 0) -> tuple[Int[Tensor, "n 8"], Int[Tensor, " n"]]:
    """Return random ids of the words before, and the right words."""
    generator = _generator(seed)
    ids = torch.randint(vocabulary, (words, CONTEXT), generator=generator)
    return ids, torch.randint(vocabulary, (words,), generator=generator)


def _generator(seed: int | None) -> torch.Generator:
    generator = torch.Generator()
    generator.manual_seed(generator.seed() if seed is None else seed)
    return generator


@one_thread()
def by_autograd(
    table: Float[Tensor, "v w"],
    first: Float[Tensor, "c_w h"],
    head: Float[Tensor, "v h"],
    ids: Int[Tensor, "n c"],
    y: Int[Tensor, " n"],
    *,
    gate: Callable[[Tensor], Tensor] = torch.relu,
    mean: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
) -> tuple[float, Gradients]:
    """A step as PyTorch does it; the gradients are those of the parameters."""
    with torch.inference_mode(False), torch.enable_grad():
        parameters = [each.detach().requires_grad_() for each in (table, first, head)]
        x = rearrange(parameters[0][ids], "n c w -> n (c w)")
        loss = mean(gate(x @ parameters[1]) @ parameters[2].T, y)
        return loss.item(), dict(zip(NAMES, torch.autograd.grad(loss, parameters), strict=True))


@one_thread()
def inspect_step(step: Step) -> None:
    """Compare a step with autograd's at small sizes; raise Unfit if they differ, or with scores of ±1,000."""
    most_words = most = 0
    for dtype in (torch.float32, torch.float64):
        for words, vocabulary, *width in _SMALL:
            try:
                _compare(step, words, vocabulary, dtype, *width)
            except Unfit as unfit:
                more = ""
                if words > most_words > 1:
                    more = _shares(step, words) or BLOCKS.format(few=most_words)
                elif vocabulary > most > 1:
                    more = PARTS.format(few=most)
                raise Unfit(f"{unfit}{more}") from None
            most_words, most = max(most_words, words), max(most, vocabulary)
    table, first, head = new_weights(9, dtype=torch.float64)
    ids, y = new_words(12, 9)
    # Every other row has scores near 0, far below the largest of all.
    table[:4] /= 1000
    ids[::2] %= 4
    scores = (table[ids].flatten(1) @ first).relu() @ head.T
    _inspect(step, (table, first, head * 1000 / scores.abs().max(), ids, y), FAR)


def _shares(step: Step, words: int) -> str:
    """Return a sentence if the mean of equal words is not that of one, as if each block of them had its own mean."""
    ids, y = new_words(1, 9)
    inputs = (*new_weights(9), ids.repeat(words, 1), y.repeat(words))
    with torch.inference_mode():
        (loss, found), (right_loss, right) = measured_call(step, *inputs).result, by_autograd(*inputs)
    factors = float(loss) / right_loss, (found["head"].norm() / right["head"].norm()).item()
    return SHARES.format(words=words, factor=max(factors)) if max(factors) > _SHARED else ""


def _compare(step: Step, words: int, vocabulary: int, dtype: torch.dtype, width: int = WIDTH) -> None:
    ids, y = new_words(words, vocabulary)
    if words * CONTEXT <= vocabulary:
        ids = torch.randperm(vocabulary, generator=_generator(0))[: ids.numel()].view_as(ids)
    _inspect(step, (*new_weights(vocabulary, dtype=dtype, width=width), ids, y))


def _inspect(step: Step, inputs: tuple[Tensor, ...], not_finite: str = "") -> MeasuredCall:
    """Measure a step on these inputs; raise Unfit if its results are wrong."""
    with torch.inference_mode():
        found = measured_call(step, *inputs)
    match found.result:
        case [loss, {"table": Tensor(), "first": Tensor(), "head": Tensor()} as gradients]:
            loss = float(loss)
        case _:
            raise Unfit(FORM)
    right_loss, right = by_autograd(*inputs)
    for name in NAMES:
        yours, wanted = (f"{tuple(each[name].shape)} and {each[name].dtype}" for each in (gradients, right))
        if yours != wanted:
            raise Unfit(SHAPE.format(name=name, yours=yours, right=wanted))
    if not_finite and not all(bool(torch.as_tensor(each).isfinite().all()) for each in (loss, *gradients.values())):
        raise Unfit(not_finite)
    if not abs(loss - right_loss) <= _CLOSE * max(1.0, abs(right_loss)):
        over_words = by_autograd(*inputs, mean=lambda scores, y: F.nll_loss(scores.log_softmax(0), y))[0]
        raise Unfit(OVER_WORDS if abs(loss - over_words) <= _CLOSE else LOSS.format(yours=loss, right=right_loss))
    wrong = [name for name in reversed(NAMES) if not _near(gradients[name], right[name])]
    if wrong:
        raise Unfit(_reason(wrong[0], gradients, right, inputs))
    return found


def _near(yours: Tensor, right: Tensor) -> bool:
    return bool((yours - right).abs().max() <= _CLOSE * right.abs().max())


def _reason(name: str, gradients: Gradients, right: Gradients, inputs: tuple[Tensor, ...]) -> str:
    """Return a sentence on the first wrong gradient, from the head back to the table."""
    factor = (gradients["head"].norm() / right["head"].norm()).item()
    if all(_near(gradients[each], factor * right[each]) for each in NAMES):
        return ALL.format(factor=factor)
    ungated = by_autograd(*inputs, gate=lambda h: h + (h.relu() - h).detach())[1]["first"]
    if name == "first" and _near(gradients["first"], ungated):
        return GATE
    ids = inputs[3].flatten().tolist()
    if name == "table" and len({*ids}) < len(ids):  # without repeated ids it was right
        return TWICE
    if name != "head":
        return WRONG.format(name=name)
    known = ((sentence, by_autograd(*inputs, mean=mean)[1]["head"]) for sentence, mean in _MEANS.items())
    return next((sentence for sentence, head in known if _near(gradients["head"], head)), FIRST)


def _over_words(scores: Tensor, y: Tensor) -> Tensor:
    sizes = (scores - scores.amax(-1, keepdim=True)).exp()
    return (scores * ((sizes / sizes.sum(0) - F.one_hot(y, len(scores.T))) / len(y)).detach()).sum()


_MEANS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    NO_ONE: lambda scores, y: scores.logsumexp(-1).mean(),
    WHOLE_ONE: lambda scores, y: scores.logsumexp(-1).mean() - scores.gather(-1, y[:, None]).sum(),
    OVER_WORDS: _over_words,
}
"""Losses, or formulas with a wrong gradient, that give the head the same gradient as a known mistake."""


@one_thread()
def measure_step(step: Step, others: list[list[int]]) -> dict[str, float]:
    """Return the peak and the operators of a step with new random numbers; compare values at `others` sizes, too."""
    for words, vocabulary in others:
        _compare(step, words, vocabulary, torch.float32)
    inputs = (*new_weights(VOCABULARY, None), *new_words(WORDS, VOCABULARY, None))
    found = _inspect(step, inputs)
    products = 6 * WORDS * HIDDEN * (CONTEXT * WIDTH + VOCABULARY)
    if found.flops < _PART * products:
        raise Unfit(HIDDEN_WORK.format(part=found.flops / products))
    return {PEAK: found.peak / MIB, OPERATORS: found.operators}


@one_thread()
def print_step(step: Step) -> None:
    """Print a step's name and what it takes at the task's size: its peak, operators, and seconds of the processor."""
    inputs = (*new_weights(VOCABULARY), *new_words(WORDS, VOCABULARY))
    found = measured_call(step, *inputs)
    start = process_time()
    with torch.inference_mode():
        step(*inputs)
    end = f"{found.operators:6,} operators, {process_time() - start:.2f} s"
    print(f"{step.__name__:22} peak {found.peak / MIB:6.2f} MiB, {end}")


@one_thread()
def train(step: Step, steps: int = 300, rate: float = 1.0) -> list[float]:
    """Train on the bytes of stories, 256 places a step; return the losses, in nats per byte."""
    stories, source = story_grammar(), random.Random(0)
    text = torch.tensor(list("".join(stories.generate(source) for _ in range(600)).encode()))
    weights, generator, losses = new_weights(128), _generator(0), []
    for _ in range(steps):
        places = torch.randint(len(text) - CONTEXT, (256,), generator=generator)
        ids = text[places[:, None] + torch.arange(CONTEXT)]
        with torch.no_grad():
            loss, gradients = step(*weights, ids, text[places + CONTEXT])
        losses.append(float(loss))
        weights = [each - rate * gradients[name] for name, each in zip(NAMES, weights, strict=True)]
    return losses
