"""Exercises on the peak memory of a training step: found in a record of allocations, and predicted."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Peak = tuple[int, int]

# peak_and_moment -------------------------------------------------------------------------------------------------


def _peak(events: list[int]) -> Peak:
    in_use = np.cumsum(events)
    return int(in_use.max()), int(in_use.argmax())


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
        *(case("other steps", events()) for _ in range(3)),
        *(case("releases of older memory", events(older=40)) for _ in range(2)),
        case("the peak at the end", [3, -1, 4, -2, 9]),
        case("the peak at the start", [50, -20, 10, -5, 14, -49]),
        case("reached more than once", [6, -2, 2, -6, 6, -1]),
    ]


peak_and_moment = Exercise(
    "peak_and_moment",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_peak,
    cases=[
        case("a tensor comes and goes", [8, -8]),
        case("two at once", [8, 4, -8, -4]),
        case("the largest tensor is not at the peak", [100, -100, 60, 50, 20, -50, -20]),
        case("releases in between", [5, 3, -2, 6, -1, 2, -13]),
        case("reached twice", [4, 4, -4, 4, -8]),
        case("memory from before the step is released", [4, -10, 12, -1]),
    ],
    hidden_cases=_peak_cases,
    hints=[
        "How much is in use after each event? That is a running sum.",
        "itertools.accumulate(events) gives the running sums. You want their maximum, and where it comes first.",
        "in_use = list(accumulate(events)); then max(in_use) and in_use.index(max(in_use)).",
    ],
)


@peak_and_moment.misconception(
    "You return the largest tensor. The peak is a sum over everything in use at the same time."
)
def largest_tensor(events: list[int]) -> Peak:
    return max(events), events.index(max(events))


@peak_and_moment.misconception(
    "You add up all allocations. What was released before does not count: its memory is free again."
)
def all_allocations(events: list[int]) -> Peak:
    return sum(size for size in events if size > 0), max(i for i, size in enumerate(events) if size > 0)


@peak_and_moment.misconception("You return the memory in use at the end of the step. Look at all moments in between.")
def end_of_the_step(events: list[int]) -> Peak:
    return sum(events), len(events) - 1


@peak_and_moment.misconception("Your moment is one too late: event number 0 is the first.")
def counted_from_one(events: list[int]) -> Peak:
    peak, moment = _peak(events)
    return peak, moment + 1


@peak_and_moment.misconception("The peak is right. If it is reached more than once, return the first moment.")
def last_moment(events: list[int]) -> Peak:
    in_use = [*accumulate(events)]
    return max(in_use), len(in_use) - 1 - in_use[::-1].index(max(in_use))


@peak_and_moment.misconception("The peak is right, but you give the moment of the largest tensor.")
def moment_of_the_largest_tensor(events: list[int]) -> Peak:
    return _peak(events)[0], events.index(max(events))


@peak_and_moment.misconception(
    "Your sum never falls below 0. It may: when memory from before the step is released, less is in use."
)
def never_below_zero(events: list[int]) -> Peak:
    in_use, sums = 0, []
    for size in events:
        in_use = max(0, in_use + size)
        sums.append(in_use)
    return max(sums), sums.index(max(sums))


@peak_and_moment.misconception("You add the releases as if they were allocations. A minus frees memory.")
def no_sign(events: list[int]) -> Peak:
    return sum(map(abs, events)), len(events) - 1


@peak_and_moment.misconception("You return the moment first. Return the peak first, then the moment.")
def swapped(events: list[int]) -> Peak:
    peak, moment = _peak(events)
    return moment, peak


@peak_and_moment.misconception("You add up allocations and leave out the releases. A minus frees memory.")
def without_releases(events: list[int]) -> Peak:
    sums = [*accumulate(size for size in events if size > 0)]
    return sums[-1], len(sums) - 1


@peak_and_moment.variant
def one_pass(events: list[int]) -> tuple[int, int]:
    in_use = peak = moment = 0
    for number, size in enumerate(events):
        in_use += size
        if in_use > peak:
            peak, moment = in_use, number
    return peak, moment


@peak_and_moment.variant
def running_sums_in_torch(events: list[int]) -> list[torch.Tensor]:
    return list(torch.tensor(events).cumsum(0).max(0))


@peak_and_moment.variant
def sums_of_all_beginnings(events: list[int]) -> tuple[int, int]:
    sums = [sum(events[: end + 1]) for end in range(len(events))]
    moment = max(range(len(sums)), key=sums.__getitem__)
    return sums[moment], moment


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
    minutes=10,
    difficulty=3,
    reference=_step,
    cases=[
        case("one text of 5 tokens, 7 words", 100, 1, 5, 7, 30),
        case("two texts", 100, 2, 5, 7, 30),
        case("recomputed blocks, smaller than the loss", 100, 1, 5, 7, 30, recompute=True),
        case("recomputed blocks, larger than the loss", 100, 1, 5, 7, 999, recompute=True),
        case("nothing recomputed", 100, 1, 5, 7, 999),
        case("the logits in a variable", 100, 1, 5, 7, 30, keep_logits=True),
        case("both, a block of 500 bytes", 100, 1, 5, 7, 500, recompute=True, keep_logits=True),
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


def _wrong_step(
    activations: int,
    B: int,
    S: int,
    V: int,
    block: int,
    recompute: bool = False,
    keep_logits: bool = False,
    *,
    copies: int = 3,
    width: int = 4,
) -> int:
    logits = width * B * S * V
    return activations + max(copies * logits, block * recompute) + logits * keep_logits


@step_peak.misconception(
    "You count one copy of the logits, the one that autograd keeps. In the backward pass of the loss there are more."
)
def kept_for_peak(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, B, S, V, block, *flags, **named, copies=1)


@step_peak.misconception("You count two copies of the logits. There is a third in the backward pass of the loss.")
def two_copies(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, B, S, V, block, *flags, **named, copies=2)


@step_peak.misconception(
    "You count four copies even if no variable holds the logits. The copy that autograd keeps is one of the three that "
    "you measured."
)
def four_copies(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, B, S, V, block, *flags, **named, copies=4)


@step_peak.misconception(
    "You add the recomputed block to all copies of the logits. Those of the loss are gone by then: take the larger "
    "moment. Only the copy that a variable holds stays."
)
def both_moments(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return activations + 4 * B * S * V * (3 + keep_logits) + block * recompute


@step_peak.misconception(
    "You count `block` although nothing is recomputed. The activations already include what the blocks keep."
)
def block_without_recomputation(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return _step(activations, B, S, V, block, True, keep_logits)


@step_peak.misconception(
    "You count the logits in a variable only at the loss. The variable still holds them when the blocks are recomputed."
)
def variable_until_the_loss(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return activations + max(4 * B * S * V * (3 + keep_logits), block * recompute)


@step_peak.misconception("You ignore `keep_logits`. The variable holds one more copy.")
def variable_ignored(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return _step(activations, B, S, V, block, recompute)


@step_peak.misconception("You ignore `recompute`. A large recomputed block can be the peak.")
def recomputation_ignored(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return _step(activations, B, S, V, block, False, keep_logits)


@step_peak.misconception("You count numbers, not bytes. A logit takes 4 bytes in fp32.")
def numbers_for_bytes(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, B, S, V, block, *flags, **named, width=1)


@step_peak.misconception("Your logits take 2 bytes each. The loss works in fp32, with 4.")
def logits_in_16_bits(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, B, S, V, block, *flags, **named, width=2)


@step_peak.misconception("You count the logits of one text. Every text of the batch has its own.")
def one_text(activations: int, B: int, S: int, V: int, block: int, *flags: bool, **named: bool) -> int:
    return _wrong_step(activations, 1, S, V, block, *flags, **named)


@step_peak.misconception(
    "You leave out the activations while a block is recomputed. The inputs of the blocks below it are still kept then."
)
def block_alone(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return max(activations + 3 * logits, block * recompute) + logits * keep_logits


@step_peak.misconception("With `recompute` you leave out the copies of the logits. They exist earlier, at the loss.")
def no_loss_with_recomputation(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return activations + (block if recompute else 3 * logits) + logits * keep_logits


@step_peak.misconception("You leave out the activations at the loss. None of them has been released yet.")
def activations_missing_at_the_loss(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return max(3 * logits, activations + block * recompute) + logits * keep_logits


@step_peak.misconception(
    "With `recompute` you leave out the activations at the loss, and the variable at the block. List everything in "
    "memory at each moment."
)
def variable_for_activations(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    copies = (3 + keep_logits) * 4 * B * S * V
    return max(copies, activations + block) if recompute else activations + copies


@step_peak.misconception("You never add the activations. At each of the moments they are in memory as well.")
def activations_as_a_moment(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return max(activations, (3 + keep_logits) * logits, block * recompute)


@step_peak.misconception(
    "With `recompute` you put the block in place of the activations. Both are needed, and the copies of the logits are "
    "gone by then."
)
def block_for_activations(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    return (block if recompute else activations) + (3 + keep_logits) * 4 * B * S * V


@step_peak.misconception(
    "You count a copy of the logits beside the recomputed block, even if no variable holds it. It is gone by then."
)
def copy_beside_the_block(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return activations + max(3 * logits, (block + logits) * recompute) + logits * keep_logits


@step_peak.misconception("You take the smaller of the two moments. The peak is the larger.")
def smaller_moment(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    return activations + (min(3 * logits, block) if recompute else 3 * logits) + logits * keep_logits


@step_peak.variant
def list_of_moments(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    copy = B * S * V * 4
    always = activations + (copy if keep_logits else 0)
    moments = {"loss": always + 3 * copy, "block": always + (block if recompute else 0)}
    return max(moments.values())


@step_peak.variant
def by_cases(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> int:
    logits = 4 * B * S * V
    copies = 4 if keep_logits else 3
    if recompute and block > 3 * logits:
        return activations + block + (copies - 3) * logits
    return activations + copies * logits


@step_peak.variant
def with_numpy(
    activations: int, B: int, S: int, V: int, block: int, recompute: bool = False, keep_logits: bool = False
) -> np.int64:
    logits = np.prod([4, B, S, V], dtype=np.int64)
    loss, later = activations + 3 * logits, activations + (block if recompute else 0)
    return np.int64(np.maximum(loss, later) + keep_logits * logits)
