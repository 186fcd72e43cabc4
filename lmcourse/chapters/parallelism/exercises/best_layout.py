"""The exercise on the fastest layout of a training step that fits into memory."""

from __future__ import annotations

from random import Random

from lmcourse.accounting.step_time import Machines, TrainingStep, candidates, step_parts
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise


def with_min(step: TrainingStep, machines: Machines) -> tuple[list[int], float]:
    def seconds(layout: tuple[int, ...]) -> float:
        parts = step_parts(step, machines, *layout)  # type: ignore[arg-type]
        fraction = (layout[2] - 1) / (parts.micro_batches + layout[2] - 1)
        busy = parts.arithmetic + parts.tensor + parts.border
        hidden = min(parts.gradients, 2 * parts.arithmetic / 3)
        return busy / (1 - fraction) + (parts.gradients - hidden)

    def fits(layout: tuple[int, ...]) -> bool:
        parts = step_parts(step, machines, *layout)  # type: ignore[arg-type]
        return parts.state + parts.activations * min(layout[2], parts.micro_batches) <= machines.memory

    best = min(filter(fits, candidates(step, machines)), key=seconds)  # min() raises ValueError for an empty sequence
    return list(best), seconds(best)


def ask(name: str, step: tuple[int, ...], devices: int, **machines: float) -> Case:
    """A case from numbers: parameters, layers, d_model, kv_heads, texts, seq_len; and the devices."""
    options = "".join(f", {key}={value!r}" for key, value in machines.items())
    call = f"best_layout(TrainingStep({', '.join(map(str, step))}), Machines({devices}{options}))"
    return script(name, "from lmcourse.accounting.step_time import Machines, TrainingStep  # in the notebook\n" + call)


LLAMA_8B = (8_030_261_248, 32, 4096, 8)
LLAMA_70B = (70_553_706_496, 80, 8192, 8)
MIDDLE = (13_000_000_000, 40, 5120, 8)
"""Parameters, layers, width and key heads of each model above. This one is made up."""


def _hidden(random: Random) -> list[Case]:
    return [
        ask("one device", (1_200_000_000, 16, 2048, 8, 8, 2048), 1),
        ask("one machine with slow links", (*LLAMA_8B, 16, 4096), 8, inside=20e9),
        ask("few texts", (*LLAMA_8B, 4, 8192), 16),
        ask("few texts", (*MIDDLE, 8, 2048), 32),
        ask("machines of four devices", (*MIDDLE, 64, 4096), 32, per_machine=4),
        ask("a slow network", (*LLAMA_8B, 64, 8192), 64, outside=5e9),
        ask("small memory", (*LLAMA_8B, 64, 2048), 64, memory=16e9),
        ask("small memory", (*MIDDLE, 32, 2048), 32, memory=24e9),
        edge(ask("nothing fits", (*LLAMA_70B, 16, 8192), 8)),
        ask("other numbers of texts", (*MIDDLE, random.choice([128, 256]), 2048), 16),
    ]


best_layout = Exercise(
    "best_layout",
    points=4,
    minutes=18,
    difficulty=3,
    reference=with_min,
    cases=[
        ask("an 8B model on 64 devices", (*LLAMA_8B, 512, 4096), 64),
        ask("70B on a slow network", (*LLAMA_70B, 16, 4096), 32, outside=10e9),
        ask("13B on a slow network", (*MIDDLE, 64, 4096), 32, outside=2e9),
        ask("13B on two machines", (*MIDDLE, 128, 4096), 16, outside=25e9),
        ask("8B with few texts", (*LLAMA_8B, 32, 8192), 64),
        ask("13B on one machine with less memory", (*MIDDLE, 32, 8192), 8, memory=40e9),
        ask("70B with two texts", (*LLAMA_70B, 2, 4096), 32),
        edge(ask("just enough memory", (1_200_000_000, 16, 2048, 8, 1, 2048), 1, memory=21_481_701_376.0)),
        edge(ask("nothing fits", (*LLAMA_70B, 64, 8192), 16)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Three sums for each layout: the seconds in which a device is busy, the seconds of sending gradients that are "
        "not hidden, and the bytes. Keep the best layout that fits so far.",
        "Bubble: a micro-batch keeps a stage busy for (busy seconds) / m, and the pipeline waits for P − 1 of them. "
        "Of *busy and waiting* together the bubble is the fraction (P − 1)/(m + P − 1).",
        "Only the backward pass hides gradients: 4 of 6 FLOPs. And with 1F1B the first stage keeps P micro-batches, "
        "but never more than there are.",
        "seconds = busy · (1 + (P − 1)/m) + max(0, gradients − 2/3 · arithmetic); "
        "bytes = state + activations · min(P, m). Start with best = None.",
    ],
    forbid=["lmcourse.accounting.step_time.step_time", "lmcourse.accounting.step_time.StepTime"],
    may_use_package=True,
)
best_layout.variant(with_min)


EITHER_ORDER = "The smaller, or larger, of two numbers is the same in either order."
best_layout.equivalent_mutant(
    "alive = min(pipeline, parts.micro_batches) → alive = min(parts.micro_batches, pipeline)", EITHER_ORDER
)
best_layout.equivalent_mutant(
    "seconds = busy + bubble + max(0.0, parts.gradients - 2 / 3 * parts.arithmetic) → "
    "seconds = busy + bubble + max(parts.gradients - 2 / 3 * parts.arithmetic, 0.0)",
    EITHER_ORDER,
)


@best_layout.variant
def best_so_far(step: TrainingStep, machines: Machines) -> tuple[list[int], float]:
    best, fastest = None, float("inf")
    for layout in candidates(step, machines):
        parts, pipeline = step_parts(step, machines, *layout), layout[2]
        busy = parts.arithmetic + parts.tensor + parts.border
        bubble = busy * (pipeline - 1) / parts.micro_batches
        exposed = max(0.0, parts.gradients - parts.arithmetic * 2 / 3)
        seconds = busy + bubble + exposed
        alive = min(pipeline, parts.micro_batches)
        memory = parts.state + parts.activations * alive
        if memory <= machines.memory and seconds < fastest:
            best, fastest = list(layout), seconds
    if best is None:
        raise ValueError("no layout fits into memory")
    return best, fastest


best_layout.slips(
    best_so_far,
    {
        "busy + bubble → busy": "Your step has no bubble: each stage of a pipeline waits while the others fill and "
        "empty it.",
        "/ parts.micro_batches → / (parts.micro_batches + pipeline - 1)": "(P − 1)/(m + P − 1) is the bubble's "
        "fraction of the *whole* time. You multiply it by the busy time alone.",
        "bubble = busy → bubble = parts.arithmetic": "Your bubble contains only arithmetic. In each micro-batch, the "
        "traffic of tensor parallelism and between stages takes time as well.",
        "parts.arithmetic + parts.tensor + parts.border → parts.arithmetic": "You leave out the traffic of tensor "
        "parallelism and between stages. A stage is busy with all three: add them.",
        "(pipeline - 1) → pipeline": "Your bubble has P micro-batches. When the first stage starts, the last one "
        "waits for P − 1 others.",
        "max(0.0, parts.gradients - parts.arithmetic * 2 / 3) → parts.gradients": "You add all the seconds for "
        "sending gradients. They are sent during the backward pass: only the excess costs time.",
        "bubble + exposed → bubble": "For you, sending gradients costs nothing. The backward pass can hide only as "
        "many seconds as it takes itself.",
        "arithmetic * 2 / 3 → arithmetic": "You hide gradients behind all the arithmetic. The forward pass, a third "
        "of it, has no gradients to send.",
        "* 2 / 3 → / 2": "You hide gradients behind half of the arithmetic. A backward pass takes twice as long as a "
        "forward pass.",
        "* 2 / 3 → / 3": "You hide gradients behind a third of the arithmetic. The backward pass is the other two "
        "thirds.",
        "parts.arithmetic * 2 / 3 → busy * 2 / 3": "You hide gradients behind the traffic of tensor parallelism and "
        "between stages as well. Only arithmetic hides them.",
        "parts.state + parts.activations * alive → parts.state": "Your layout counts no activations, at least not "
        "where P is 1. The first stage keeps those of min(P, m) micro-batches.",
        "parts.activations * alive → parts.activations": "You keep the activations of one micro-batch. The first "
        "stage of a pipeline has started several before the first one comes back.",
        "min(pipeline, parts.micro_batches) → parts.micro_batches": "You keep the activations of all micro-batches, "
        "as GPipe does. 1F1B frees one before it starts another.",
        "min(pipeline, parts.micro_batches) → pipeline": "You count activations for P micro-batches even where a step "
        "has fewer than P: they do not exist.",
        "memory <= machines.memory and → ": "Your layout does not fit: leave out the layouts that need more than the "
        "memory.",
        "parts.state + → ": "You count only activations. Weights, gradients and optimizer states take memory, too.",
        "max(0.0, parts.gradients - parts.arithmetic * 2 / 3) → parts.gradients - parts.arithmetic * 2 / 3": "You "
        "subtract the backward pass even if it is longer than sending the gradients. Then the rest is 0, not negative.",
        "return best, fastest → return best": "You return the layout alone. Return two things: the layout and its "
        "seconds.",
        "return best, fastest → return fastest": "You return the seconds alone. Return two things: the layout and its "
        "seconds.",
        "seconds < fastest → seconds <= fastest": "You return the last of several equally fast layouts. Return the "
        "first.",
        "seconds < fastest → best is None": "You return the first layout that fits, not the fastest one.",
        "memory <= machines.memory → memory < machines.memory": "You leave out a layout that takes exactly all of the "
        "memory. It fits.",
        "max(0.0, parts.gradients - parts.arithmetic * 2 / 3) → max(parts.gradients, parts.arithmetic * 2 / "
        "3)": "You add the longer of the gradients and the backward pass. The backward pass is part of the arithmetic "
        "already: add only what it does not hide.",
        "(pipeline - 1) / parts.micro_batches → (pipeline - 1)": "Your bubble waits for P − 1 whole steps. `busy` "
        "holds all micro-batches: divide by their number.",
        "parts.arithmetic + parts.tensor + parts.border → parts.arithmetic + parts.border": "You leave out the traffic "
        "of tensor parallelism. A stage is busy with all three: add them.",
        "parts.arithmetic + parts.tensor + parts.border → parts.arithmetic + parts.tensor": "You leave out the traffic "
        "between stages. A stage is busy with all three: add them.",
        "layout[2] → layout[1]": "You take T for the number of stages. A layout is [data, tensor, pipeline, zero, "
        "micro].",
    },
)
