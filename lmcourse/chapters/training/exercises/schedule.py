"""The exercise on a schedule that does not depend on the length of the run."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.training.schedules import WarmupStableDecay


def _factor(step: int, steps: int, warmup: int, decay: int, floor: float = 0.0) -> float:
    return WarmupStableDecay(steps, warmup, decay, min_lr_ratio=floor)(step)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("no warm-up", 0, 50, 0, 10),
        case("a warm-up of one step", 0, 50, 1, 10),
        case("no decay", 49, 50, 5, 0, floor=0.2),
        case("no decay, after the end", 50, 50, 5, 0, floor=0.2),
        case("nothing between", 7, 12, 8, 4),
        case("nothing between", 8, 12, 8, 4, floor=0.5),
        case("nothing between", 9, 12, 8, 4),
        case("nothing but decay", 3, 10, 0, 10, floor=0.25),
        case("the last step", 99, 100, 10, 40),
        case("long after the end", 10_000, 100, 10, 40, floor=0.3),
        case("a floor of one", 95, 100, 10, 20, floor=1.0),
        case("a decay of one step", 99, 100, 10, 1),
        case("a decay of one step", 98, 100, 10, 1),
        case("phases that do not fit", 3, 100, 60, 41),
        case("phases that do not fit", 120, 100, 101, 0),
    ]
    for _ in range(3):
        steps = random.randint(100, 2000)
        warmup, decay = random.randint(5, steps // 3), random.randint(7, steps // 3)
        floor = random.uniform(0.1, 0.5)
        cases.append(case("other runs", random.randrange(warmup - 1), steps, warmup, decay, floor=floor))
        late = steps - random.randint(1, decay - 1)
        cases.append(case("other runs", late, steps, warmup, decay, floor=floor))
    return cases


wsd_factor = Exercise(
    "wsd_factor",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_factor,
    cases=[
        case("the first of all steps", 0, 100, 10, 20),
        case("the last of the warm-up", 9, 100, 10, 20),
        case("the second of the warm-up, with a floor of 0.3", 1, 100, 10, 20, floor=0.3),
        case("the first after the warm-up", 10, 100, 10, 20),
        case("no warm-up", 0, 100, 0, 20),
        case("in the long middle", 60, 100, 10, 20),
        case("the first of the decay", 80, 100, 10, 20),
        case("the second of the decay", 81, 100, 10, 20),
        case("half-way down to a floor of 0.1", 90, 100, 10, 20, floor=0.1),
        case("a quarter of the way down to 0.2", 85, 100, 10, 20, floor=0.2),
        case("three quarters of the way down to 0", 95, 100, 10, 20),
        case("the last step", 99, 100, 10, 20, floor=0.1),
        edge(case("a warm-up of one step", 0, 100, 1, 20)),
        edge(case("no decay, the last step", 99, 100, 10, 0, floor=0.2)),
        case("after the end", 150, 100, 10, 20, floor=0.1),
        case("no decay, after the end", 100, 100, 10, 0, floor=0.1),
        case("phases that fill the run", 50, 100, 60, 40),
        edge(case("phases that fill the run, the first of the decay", 60, 100, 60, 40)),
        case("phases that do not fit", 5, 100, 60, 50),
        case("phases that do not fit, after the end", 120, 100, 60, 50),
    ],
    hidden_cases=_hidden,
    hints=[
        "Three phases, which start at 0, warmup and steps - decay.",
        "In the decay: which fraction of its steps is still to come at `step`? It is 1 at the first of them.",
        "A straight line from 1 to the floor: what is the factor if the fraction is 1, 0 and a half?",
    ],
    forbid=["torch.optim.lr_scheduler"],
)


@wsd_factor.variant
def phase_by_phase(step: int, steps: int, warmup: int, decay: int, floor: float = 0.0) -> float:
    if warmup + decay > steps:
        raise ValueError("the phases do not fit into the run")
    if step < warmup:
        return (step + 1) / warmup
    if step >= steps:
        return floor
    left = min(1.0, (steps - step) / decay) if decay else 1.0
    return floor + (1 - floor) * left


wsd_factor.slips(
    phase_by_phase,
    {
        "(step + 1) / warmup → step / warmup || (step + 1) / warmup → step / max(warmup - 1, 1)": "Your first update "
        "has a rate of 0, so it changes nothing. The warm-up is 1/W, 2/W, …, 1.",
        "left = → decay = steps - warmup\n    left =": "Your rate falls right after the warm-up. It should stay at 1 "
        "until the last `decay` steps.",
        "(steps - step) → (steps - 1 - step)": "Your decay begins one step early. Its first step should still have the "
        "whole rate.",
        "(steps - step) / decay → (steps - 1 - step) / max(decay - 1, 1)": "Your decay reaches the floor one step too "
        "early. Only the step *after* the last one has the floor as its rate.",
        "step >= steps → step >= steps and not decay || step >= steps → False": "After the end your rate keeps "
        "falling, below the floor. It should stay at the floor.",
        'if warmup + decay > steps:\n        raise ValueError("the phases do not fit into the run")\n    if step < '
        "warmup:\n        return (step + 1) / warmup → if step < warmup:\n        return (step + 1) / warmup\n    if "
        "warmup + decay > steps:\n        raise ValueError": "Within the warm-up you accept phases that do not fit. "
        "Raise ValueError at any step: ask before you return.",
        "return floor\n → return 0.0\n": "After the end your rate is 0. It should stay at the floor.",
        "floor + (1 - floor) * left → max(floor, left)": "You cut the line off at the floor. It should go from 1 to "
        "the floor over all steps of the decay.",
        "floor + (1 - floor) * left → floor + left if step >= steps - decay else 1.0": "You add the floor on top: the "
        "decay begins above 1.",
        "floor + (1 - floor) * left → floor ** (1 - left)": "Your decay is exponential. Use a straight line.",
        "(1 - floor) * left → (1 - floor) * float(1 - np.cos(np.pi * left)) / 2": "Your decay follows a cosine. Use a "
        "straight line from 1 to the floor.",
        "(step + 1) / warmup → floor + (1 - floor) * (step + 1) / warmup": "Your warm-up starts from the floor. The "
        "floor belongs to the decay alone.",
        "> steps → >= steps": "You reject phases that fill the run exactly. Only phases longer than the run are wrong.",
        '    if warmup + decay > steps:\n        raise ValueError("the phases do not fit into the run")\n → ': "You "
        "accept phases that are together longer than the run. Raise ValueError for them, at any step.",
        "return (step + 1) / warmup → return max(floor, (step + 1) / warmup)": "Your warm-up does not go below the "
        "floor. The floor belongs to the decay alone.",
        "step < warmup → step <= warmup": "Your warm-up has one step too many, with a factor above 1.",
        "(step + 1) / warmup → (step + 1) / (warmup + 1)": "Your warm-up does not reach 1 in its last step: it is "
        "1/W, 2/W, …, 1.",
        "floor + (1 - floor) * left → left": "Your decay goes to 0, whatever `floor` is. It goes from 1 to the floor.",
        "warmup + decay > steps → warmup + decay > steps and step < steps": "After the end you accept phases that do "
        "not fit. Raise ValueError at any step.",
        "floor + (1 - floor) * left → 1.0 if step < steps - decay else floor + (1 - floor) * (1 - left)": "Your decay "
        "goes up. Its first step has the factor 1.",
        "step >= steps → step >= steps and decay": "Without a decay your rate stays at 1 after the end. It should be "
        "at the floor there.",
    },
)
