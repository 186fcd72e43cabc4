"""The exercise on warm-up and cosine."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.training.schedules import Cosine


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("no warm-up", 0, 50, 0),
        case("no warm-up", 20, 50, 0, floor=0.2),
        case("a warm-up of one step", 0, 50, 1),
        case("a warm-up as long as the run", 7, 8, 8),
        case("a warm-up as long as the run", 8, 8, 8, floor=0.3),
        case("a floor of one", 40, 60, 5, floor=1.0),
        case("the first step, with a floor", 0, 100, 10, floor=0.3),
        case("the last step", 99, 100, 10),
        case("the step after the last", 100, 100, 10, floor=0.1),
        case("long after the end", 10_000, 100, 10),
        case("a run of one step", 0, 1, 0),
        case("a run of one step", 0, 1, 1, floor=0.5),
    ]
    for _ in range(3):
        steps = random.randint(50, 5000)
        warmup, floor = random.randint(4, steps // 2), random.uniform(0.1, 0.5)
        cases.append(case("other runs", random.randrange(warmup), steps, warmup, floor=floor))
        middle = random.randint(warmup + (steps - warmup) // 10, warmup + (steps - warmup) // 3)
        cases.append(case("other runs", middle, steps, warmup, floor=floor))
    return cases


rate_factor = Exercise(
    "rate_factor",
    points=2,
    minutes=5,
    difficulty=2,
    reference=lambda step, steps, warmup, floor=0.0: Cosine(steps, warmup, floor)(step),
    cases=[
        case("the first of all steps", 0, 100, 10),
        case("the last of the warm-up", 9, 100, 10),
        edge(case("a warm-up of one step", 0, 100, 1)),
        case("the first of the cosine", 10, 100, 10),
        case("a quarter of the way down", 32, 100, 10),
        case("on the way to a floor of 0.1", 45, 100, 10, floor=0.1),
        edge(case("no warm-up", 0, 100, 0)),
        case("near the end", 90, 100, 10),
        case("after the end", 120, 100, 10, floor=0.1),
        case("in the warm-up, with a floor of 0.5", 1, 100, 10, floor=0.5),
        case("near the end, with a floor of 0.5", 91, 100, 10, floor=0.5),
        case("a warm-up as long as the run, after it", 8, 8, 8, floor=0.3),
    ],
    hidden_cases=_hidden,
    hints=[
        "Three phases: step < warmup, then up to `steps`, then the floor.",
        "In the warm-up: (step + 1) / warmup. For the cosine, first compute the fraction done: 0 at step `warmup`, 1 "
        "at step `steps`.",
        "(1 + cos(π · done)) / 2 goes from 1 to 0. Stretch it so that it goes from 1 to floor.",
    ],
    forbid=["torch.optim.lr_scheduler", "torch.optim.swa_utils"],
)


for _change in ("(warmup - step) / (steps - warmup)", "(step - warmup) / (warmup - steps)"):
    rate_factor.equivalent_mutant(
        f"done = (step - warmup) / (steps - warmup) → done = {_change}", "The cosine does not see the sign of an angle."
    )


@rate_factor.variant
def three_phases(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    if step < warmup:
        return (step + 1) / warmup
    if step >= steps:
        return floor
    done = (step - warmup) / (steps - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


rate_factor.slips(
    three_phases,
    {
        "(step + 1) → step": "Your first update has a rate of 0 and is wasted: begin with 1/warmup.",
        "(step - warmup) / (steps - warmup) → step / steps": "Your cosine begins at step 0: when the warm-up ends, it "
        "has already fallen.",
        "if step < warmup:\n        return (step + 1) / warmup → rise = min(1.0, (step + 1) / max(warmup, 1)) ;; (step "
        "- warmup) / (steps - warmup) → step / steps ;; return floor + ( → return rise * floor + rise * (": "You "
        "multiply warm-up and cosine, so the rate never reaches its peak.",
        "math.pi * done → done": "The cosine takes an angle: π times the fraction of the way, so that it ends at −1.",
        "(1 - floor) * → ": "You add the floor on top: the peak is above 1.",
        "(step + 1) / warmup → max((step + 1) / warmup, floor)": "You raise the warm-up to the floor. It is 1/W, 2/W, "
        "…, 1 for any floor.",
        "(step + 1) / warmup → floor + (1 - floor) * (step + 1) / warmup": "Your warm-up climbs from the floor to 1. "
        "It climbs from 0: 1/W, 2/W, …, 1.",
        "floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2 → max((1 + "
        "math.cos(math.pi * done)) / 2, floor)": "You cut the curve off at the floor. Scale it so that it ends at the "
        "floor.",
        "return floor\n → return 1.0\n ;; math.pi * done → 2 * math.pi * done": "You use a full wave, which comes up "
        "again. Use half a wave.",
        "(1 + math.cos(math.pi * done)) / 2 → math.cos(math.pi / 2 * done)": "You use a quarter of a wave, which is "
        "steep at its end. Use half a wave.",
        "step >= steps → False ;; steps - warmup → max(steps - warmup, 1)": "After the last step your rate rises "
        "again. It should stay at the floor.",
        "step >= steps → False ;; done = (step - warmup) / (steps - warmup) → done = min(1.0, (step - warmup) / max(1, "
        "steps - warmup))": "With a warm-up as long as the run, step number `steps` still has the full rate. From "
        "there on the rate is the floor.",
        "if step < warmup:\n        return (step + 1) / warmup → rise = (step + 1) / warmup\n    if rise <= 1:\n"
        "        return rise": "You divide by `warmup`, which may be 0. Without a warm-up the cosine begins at step 0.",
        "step >= steps → steps == warmup": "After the last step your rate rises again. It should stay at the floor.",
        "step < warmup → step <= warmup": "Your warm-up ends a step late, at a rate above 1.",
        "step < warmup → step <= warmup and warmup > 0": "Your warm-up ends a step late, at a rate above 1.",
        "return floor\n → return 0.0\n": "After the end you return 0. From step `steps` on the rate is the floor.",
        "step >= steps → False ;; done = (step - warmup) / (steps - warmup) → done = min(1.0, (step - warmup) / (steps "
        "- warmup))": "You divide by steps − warmup, which can be 0. From step `steps` on the rate is the floor.",
        "if step < warmup: → floor = 0.0\n    if step < warmup:": "Your rate falls to 0. It should fall to the floor.",
        "step >= steps → step > steps ;; (step - warmup) / → float(step - warmup) /": "You divide by steps − warmup, "
        "which can be 0. From step `steps` on the rate is the floor.",
        "steps - warmup → max(steps - 1 - warmup, 1)": "Your cosine reaches the floor at the last step. It reaches it "
        "one later, at step number `steps`.",
        "(steps - warmup) → steps": "You divide by steps. Only steps − warmup belong to the cosine, so yours ends "
        "above the floor.",
        "(step + 1) / warmup → (step + 1) / (warmup + 1)": "Your warm-up is one step too long: step number warmup − 1 "
        "already has the full rate.",
        "step - warmup → step + 1 - warmup": "Your cosine is a step ahead: step number `warmup` still has the full "
        "rate.",
        "(1 + math.cos(math.pi * done)) / 2 → (1 - done)": "You use a straight line. A cosine is flat at both ends.",
    },
)


@rate_factor.variant
def with_a_square(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    if warmup > step:
        return (1 + step) / warmup
    left = max(0, steps - step)
    if left == 0:
        return floor
    return floor + (1 - floor) * math.sin(math.pi / 2 * left / (steps - warmup)) ** 2
