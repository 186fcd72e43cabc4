"""Exercises on the peak memory of a training step: found in a record of allocations, and predicted."""

from __future__ import annotations

from itertools import accumulate, chain
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise

Peak = tuple[int, int]

# peak_and_moment -------------------------------------------------------------------------------------------------


def _peak(events: list[int]) -> Peak:
    in_use = np.cumsum(events)
    return int(in_use.max()), int(in_use.argmax())


def _both(name: str, events: list[int]) -> list[Case]:
    """A case for the peak and one for its moment, so that one mistake does not cost the points of both."""
    return [
        script(f"{each}: {name}", f"peak_and_moment({events})[{place}]")
        for place, each in enumerate(("the peak", "its moment"))
    ]


def _peak_cases(random: Random) -> list[Case]:
    def events(older: int = 0) -> list[int]:
        """Return a record of allocations and releases of tensors, and of releases of memory that was in use before."""
        alive: list[int] = []
        found = [random.randint(50, 99)]
        for _ in range(random.randint(20, 40)):
            if alive and random.random() < 0.45:
                found.append(-alive.pop(random.randrange(len(alive))))
            elif older and random.random() < 0.2:
                found.append(-random.randint(1, older))
            else:
                alive.append(random.randint(1, 40))
                found.append(alive[-1])
        return found

    return [
        *chain(*(_both("other steps", events()) for _ in range(3))),
        *chain(*(_both("other steps", events(older=40)) for _ in range(2))),
        *_both("at the start", [50, -20, 10, -5, 14, -49]),
        *_both("at the end", [1, 1, 1, 1]),
        *_both("reached more than once", [6, -2, 2, -6, 6, -1]),
    ]


peak_and_moment = Exercise(
    "peak_and_moment",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_peak,
    cases=[
        *_both("a tensor comes and goes", [9, -9]),
        *_both("two at once", [8, 4, -8, -4]),
        *_both("the largest tensor is not at the peak", [100, -100, 60, 50, 20, -50, -20]),
        *_both("releases in between", [5, 3, -2, 6, -1, 2, -13]),
        *_both("reached twice", [4, 4, -4, 4, -8]),
        *_both("memory from before the step is released", [4, -10, 12, -1]),
        *_both("reached at the end", [3, -1, 4, -2, 11]),
        *_both("gigabytes, and then a few bytes", [30_000_000_000, 7, -3, 2, -6]),
    ],
    hidden_cases=_peak_cases,
    hints=[
        "How much is in use after each event? That is a running sum.",
        "itertools.accumulate(events) gives the running sums. You want their maximum, and where it comes first.",
        "in_use = list(accumulate(events)); then max(in_use) and in_use.index(max(in_use)).",
    ],
)


@peak_and_moment.variant
def sums_and_their_index(events: list[int]) -> tuple[int, int]:
    in_use = list(accumulate(events))
    peak = max(in_use)
    return peak, in_use.index(peak)


peak_and_moment.slips(
    sums_and_their_index,
    {
        "list(accumulate(events)) → events": "You return the largest tensor. The peak is a sum over everything in use "
        "at the same time.",
        "accumulate(events) → accumulate(max(size, 0) for size in events)": "You add up all allocations. What was "
        "released before does not count: its memory is free again.",
        "peak, in_use.index(peak) → in_use[-1], len(in_use) - 1": "You return the memory in use at the end of the "
        "step. Look at all moments in between.",
        "in_use.index(peak) → in_use.index(peak) + 1": "Your moment is one too late: event number 0 is the first.",
        "in_use.index(peak) → len(in_use) - 1 - in_use[::-1].index(peak)": "The peak is right. If it is reached more "
        "than once, return the first moment.",
        "in_use.index(peak) → events.index(max(events))": "The peak is right, but you give the moment of the largest "
        "tensor.",
        "accumulate(events) → accumulate(events, lambda in_use, size: max(in_use + size, 0))": "Your sum never falls "
        "below 0. It may: when memory from before the step is released, less is in use.",
        "return peak, → return peak - min(in_use),": "You subtract the least that was in use. Return the most: a "
        "record may fall below 0.",
        "accumulate(events) → accumulate(events[: next(i for i, size in enumerate(events) if size < 0)])": "You stop "
        "at the first release. More may be allocated after it.",
        "in_use.index(peak) → sum(size > 0 for size in events[: in_use.index(peak)])": "The peak is right. For its "
        "moment you count allocations only: releases are events, too.",
        "accumulate(events) → accumulate(map(abs, events))": "You add the releases as if they were allocations. A "
        "minus frees memory.",
        "peak, in_use.index(peak) → in_use.index(peak), peak": "You return the moment first. Return the peak first, "
        "then the moment.",
        "accumulate(events) → accumulate(size for size in events if size > 0)": "You add up allocations and leave out "
        "the releases. A minus frees memory.",
        "in_use.index(peak) → in_use.index(peak) - 1": "Your moment is one too early. Event 0 is the first: "
        "return the index of the event that reaches the peak.",
        "accumulate(events) → accumulate(events[:-1] or events)": "You leave out the last event. It can reach the "
        "peak.",
    },
)


@peak_and_moment.variant
def running_sums_in_torch(events: list[int]) -> list[torch.Tensor]:
    return list(torch.tensor(events).cumsum(0).max(0))


peak_and_moment.slips(
    running_sums_in_torch,
    {
        "(events) → (events, dtype=torch.float32)": "You add in fp32, which has no room for the last digits of "
        "gigabytes. Add integers.",
    },
)


# step_peak -------------------------------------------------------------------------------------------------------


def _step(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    moments = [3 * logits, block * recompute]
    return activations + max(moments) + logits * keep_logits


def _step_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int, int, int]:
        return random.randint(10**3, 10**6), random.randint(2, 9), random.randint(5, 99), random.randint(100, 999)

    def block(sizes: tuple[int, int, int, int], copies: float) -> int:
        """The size of this many copies of the logits."""
        return int(4 * sizes[1] * sizes[2] * sizes[3] * copies)

    some = [sizes() for _ in range(6)]
    return [
        case("other sizes", *some[0], block(some[0], 0.3)),
        case("other sizes", *some[1], block(some[1], 5.5)),
        case("recomputed blocks", *some[2], block(some[2], 2.5), recompute=True),
        case("recomputed blocks", *some[3], block(some[3], 3.4), recompute=True),
        case("logits in a variable", *some[4], block(some[4], 3.5), recompute=True, keep_logits=True),
        case("logits in a variable", *some[5], block(some[5], 0.5), recompute=True, keep_logits=True),
        case("logits in a variable", *some[2], block(some[2], 6.0), keep_logits=True),
        case("Llama 3, recomputed", 2**31, 1, 8192, 128_256, 1_800_000_000, recompute=True),
    ]


step_peak = Exercise(
    "step_peak",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_step,
    cases=[
        case("one text of 5 tokens, 7 words", 100, 1, 5, 7, 30),
        case("two texts", 100, 2, 5, 7, 30),
        case("recomputed blocks, smaller than the loss", 100, 1, 5, 7, 30, recompute=True),
        case("recomputed blocks, larger than the loss", 100, 1, 5, 7, 999, recompute=True),
        case("nothing recomputed", 100, 1, 5, 7, 999),
        case("nothing recomputed, two texts", 100, 2, 5, 7, 1500),
        case("the logits in a variable", 100, 1, 5, 7, 30, keep_logits=True),
        case("both, a block of 30 bytes", 100, 1, 6, 7, 30, recompute=True, keep_logits=True),
        case("both, a block of 500 bytes", 100, 1, 5, 7, 500, recompute=True, keep_logits=True),
        case("both, a block of 900 bytes", 100, 1, 5, 7, 900, recompute=True, keep_logits=True),
    ],
    hidden_cases=_step_cases,
    hints=[
        "List the moments that can be the peak. What is in use at each of them? Then take the largest.",
        "At the loss: the activations of all layers and three copies of 4·B·S·V. Later, with recomputation: the "
        "activations and one block. The three copies are gone by then.",
        "A variable keeps its tensor until the end of the step, so it counts at both moments: "
        "activations + max(…, …) + one copy if keep_logits.",
    ],
)


step_peak.equivalent_mutant(
    "worst = max(3 * logits, block) if recompute else 3 * logits → "
    "worst = max(block, 3 * logits) if recompute else 3 * logits",
    "The larger of two numbers does not depend on their order.",
)


@step_peak.variant
def loss_or_block(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    loss = 3 * logits
    later = block if recompute else 0
    variable = logits if keep_logits else 0
    return activations + max(loss, later) + variable


step_peak.slips(
    loss_or_block,
    {
        "3 * logits → logits": "You count one copy of the logits, the one that autograd keeps. In the backward pass "
        "of the loss there are more.",
        "3 * logits → 2 * logits": "You count two copies of the logits. There is a third in the backward pass of the "
        "loss.",
        "3 * logits → 4 * logits": "You count four copies even if no variable holds the logits. The copy that "
        "autograd keeps is one of the three that you measured.",
        "max(loss, later) → loss + later": "You add the recomputed block to all copies of the logits. Those of the "
        "loss are gone by then: take the larger moment. Only the copy that a variable holds stays.",
        "block if recompute else 0 → block": "You count `block` although nothing is recomputed. The activations "
        "already include what the blocks keep.",
        "max(loss, later) + variable → max(loss + variable, later)": "You count the logits in a variable only at the "
        "loss. The variable still holds them when the blocks are recomputed.",
        " + variable → ": "You ignore `keep_logits`. The variable holds one more copy.",
        "max(loss, later) → loss": "You ignore `recompute`. A large recomputed block can be the peak.",
        "activations + max(loss, later) → (max(loss, activations + later) if recompute else activations "
        "+ loss)": "With `recompute` you leave out the activations at the loss. The inputs of the blocks are kept "
        "then, too.",
        "block if → 2 * block if": "You count the recomputed block twice. `block` is forward *and* backward.",
        "4 * B * S → 4 * B * (S - 1)": "You leave out a token of each text. All S have logits.",
        "4 * B → B": "You count numbers, not bytes. A logit takes 4 bytes in fp32.",
        "4 * B → 2 * B": "Your logits take 2 bytes each. The loss works in fp32, with 4.",
        "4 * B → 4": "You count the logits of one text. Every text of the batch has its own.",
        "activations + max(loss, later) → max(activations + loss, later)": "You leave out the activations while a "
        "block is recomputed. The inputs of the blocks below it are still kept then.",
        "max(loss, later) → (later if recompute else loss)": "With `recompute` you leave out the copies of the "
        "logits. They exist earlier, at the loss.",
        "activations + max(loss, later) → max(loss, activations + later)": "You leave out the activations at the "
        "loss. None of them has been released yet.",
        "activations + max(loss, later) + variable → max(loss + variable, activations + later) if recompute else "
        "activations + loss + variable": "With `recompute` you leave out the activations at the loss, and the "
        "variable at the block. List everything in memory at each moment.",
        "activations + max(loss, later) + variable → max(activations, loss + variable, later)": "You never add the "
        "activations. At each of the moments they are in memory as well.",
        "activations + max(loss, later) → (later if recompute else activations) + loss": "With `recompute` you put "
        "the block in place of the activations. Both are needed, and the copies of the logits are gone by then.",
        "later = block if → later = block + logits if": "You count a copy of the logits beside the recomputed block, "
        "even if no variable holds it. It is gone by then.",
        "max(loss, later) → (min(loss, later) if recompute else loss)": "You take the smaller of the two moments. The "
        "peak is the larger.",
        "logits if keep_logits else 0 → 0 if keep_logits else logits": "You inverted `keep_logits`.",
        "logits if keep_logits else 0 → logits": "You always count the copy of a variable. Without `keep_logits` no "
        "variable holds the logits.",
        "block if recompute else 0 → 0 if recompute else block": "You inverted `recompute`.",
        "activations + max → (0 if recompute else activations) + max": "With `recompute` you leave out the "
        "activations. The inputs of the blocks are in memory.",
        "4 * B * S → 4 * B": "You count the logits of one token per text. Every token has its own.",
        "logits if keep_logits → 2 * logits if keep_logits": "You add two copies for the variable. It holds one.",
        "logits if keep_logits → logits // 4 if keep_logits": "You add the numbers that the variable holds, not their "
        "bytes. They take 4 each.",
        "if keep_logits else → if keep_logits and not recompute else": "With `recompute` you leave out the variable. "
        "It holds the logits there, too.",
        "if keep_logits else → if keep_logits and recompute else": "Without `recompute` you leave out the variable. "
        "It holds the logits there, too.",
        "max(loss, later) + variable → max(loss, later + variable)": "You count the logits in a variable only at the "
        "recomputed block. The variable holds them at the loss, too.",
        "activations + max → max": "You never add the activations. At each of the moments they are in memory as well.",
        "logits if keep_logits → logits // 2 if keep_logits": "Your variable takes 2 bytes for each logit. The step "
        "is in fp32, so a logit takes 4.",
        "max(loss, later) + variable → max(loss + variable, later + (logits if recompute else 0))": "You count a copy "
        "of the logits beside the recomputed block, even if no variable holds it. Without a variable it is gone by "
        "then.",
    },
)


@step_peak.variant
def with_numpy(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> np.int64:
    logits = np.prod([4, B, S, V], dtype=np.int64)
    loss, later = activations + 3 * logits, activations + (block if recompute else 0)
    return np.int64(np.maximum(loss, later) + keep_logits * logits)
