"""The exercise on all ways to lay a training run out on a cluster."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Layouts = list[list[int]]


def _by_trying(
    devices: int,
    per_machine: int,
    layers: int,
    kv_heads: int,
    needed: float,
    memory: float,
    *,
    rules: tuple[str, ...] = ("machine", "heads", "layers", "memory"),
) -> Layouts:
    """Every triple of numbers up to `devices`, and which rule forbids it."""
    found = []
    for data in range(1, devices + 1):
        for tensor in range(1, devices // data + 1):
            pipeline, rest = divmod(devices, data * tensor)
            broken = {
                "machine": per_machine % tensor != 0,
                "heads": kv_heads % tensor != 0,
                "layers": pipeline > layers,
                "memory": needed > memory * tensor * pipeline,
            }
            if not rest and not any(broken[rule] for rule in rules):
                found.append([data, tensor, pipeline])
    return found


LLAMA = (32, 8, 128.5, 80.0)
"""Layers and key heads of Llama 3 8B; gigabytes it needs in mixed precision (16 bytes a parameter), and of an H100."""


def _hidden(random: Random) -> list[Case]:
    return [
        case("nothing fits", 4, 4, 32, 8, 1000.0, 80.0),
        case("nothing fits", 1, 8, *LLAMA),
        case("one device", 1, 8, 12, 4, 10.0, 80.0),
        case("just enough memory", 4, 4, 8, 4, 160.0, 40.0),
        case("just enough memory", 2, 2, 8, 4, 160.0, 80.0),
        case("too large by less than one", 8, 8, 8, 8, 100.0, 12.4),
        case("a number of devices that is no power of 2", 12, 6, 4, 6, 100.0, 60.0),
        case("a number of devices that is no power of 2", 7, 7, 32, 8, 30.0, 80.0),
        case("machines of six devices", 24, 6, 32, 8, 128.5, 80.0),
        case("few layers", 16, 8, 2, 8, 100.0, 80.0),
        case("few key heads", 16, 8, 32, 2, 100.0, 80.0),
        case("many devices", 64, 8, *LLAMA),
        case("other machines", 24, 4, 32, 8, 100.0, random.uniform(60, 90)),
    ]


layouts = Exercise(
    "layouts",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_by_trying,
    cases=[
        case("Llama 3 8B on two machines of 8", 16, 8, *LLAMA),
        case("on four machines of 2", 8, 2, *LLAMA),
        case("four layers, two key heads", 8, 8, 4, 2, 100.0, 80.0),
        case("on three devices", 3, 3, 32, 6, 10.0, 80.0),
        case("more than it all", 2, 2, 32, 8, 1000.0, 80.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Choose data and tensor; pipeline is what is left: devices / (data · tensor), if that is a whole number.",
        "Four conditions: per_machine % tensor == 0, kv_heads % tensor == 0, pipeline <= layers, and "
        "needed / (tensor · pipeline) <= memory.",
        "Two loops with the smaller numbers first, and the list is sorted already.",
    ],
)


NONE_IS_LEFT = "{} is more than there are: the division leaves a rest, so nothing is added."
layouts.equivalent_mutant(
    "for data in range(1, devices + 1): → for data in range(1, devices + 2):", NONE_IS_LEFT.format("data = devices + 1")
)
layouts.equivalent_mutant(
    "for tensor in range(1, per_machine + 1): → for tensor in range(1, per_machine + 2):",
    NONE_IS_LEFT.format("tensor = per_machine + 1"),
)


@layouts.variant
def with_a_comprehension(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> list[tuple[int, int, int]]:
    sizes = [n for n in range(1, devices + 1) if devices % n == 0]
    return sorted(
        (data, tensor, pipeline)
        for data in sizes
        for tensor in sizes
        for pipeline in sizes
        if data * tensor * pipeline == devices
        and per_machine % tensor == kv_heads % tensor == 0
        and pipeline <= layers
        and needed / (tensor * pipeline) <= memory
    )


@layouts.variant
def sorted_in_the_end(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> list[list[int]]:
    found = []
    for pipeline in range(min(layers, devices), 0, -1):
        for tensor in range(1, min(per_machine, kv_heads) + 1):
            if kv_heads % tensor or per_machine % tensor or devices % (pipeline * tensor):
                continue
            if needed <= memory * pipeline * tensor:
                found.append([devices // pipeline // tensor, tensor, pipeline])
    found.sort()
    return found


@layouts.variant
def recursively(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> list[list[int]]:
    def factors(number: int, count: int) -> list[list[int]]:
        if count == 1:
            return [[number]]
        return [[n, *rest] for n in range(1, number + 1) if number % n == 0 for rest in factors(number // n, count - 1)]

    def allowed(layout: list[int]) -> bool:
        _, tensor, pipeline = layout
        within = per_machine % tensor == 0 and kv_heads % tensor == 0 and pipeline <= layers
        return within and needed / tensor / pipeline <= memory

    return list(filter(allowed, factors(devices, 3)))


@layouts.misconception(
    "Some groups of tensor parallelism span two machines. They talk twice in every block: keep them inside one."
)
def across_machines(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> Layouts:
    return _by_trying(devices, per_machine, layers, kv_heads, needed, memory, rules=("heads", "layers", "memory"))


@layouts.misconception("Copies of the model save no memory: `needed` is divided by tensor · pipeline only.")
def data_saves(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    return _by_trying(devices, per_machine, layers, kv_heads, needed / devices, memory)


@layouts.misconception(
    "Key heads are shared out as well. With this many devices some would get no whole number of them."
)
def no_heads(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    return _by_trying(devices, per_machine, layers, kv_heads, needed, memory, rules=("machine", "layers", "memory"))


@layouts.misconception("Some stages of yours have no layer.")
def too_many_stages(
    devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float
) -> Layouts:
    return _by_trying(devices, per_machine, layers, kv_heads, needed, memory, rules=("machine", "heads", "memory"))


@layouts.misconception("The model does not fit into all of these: look at the memory.")
def no_memory(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    return _by_trying(devices, per_machine, layers, kv_heads, needed, memory, rules=("machine", "heads", "layers"))


@layouts.misconception("Not all devices are used in each of yours: data · tensor · pipeline is their number.")
def any_product(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    fewer = [_by_trying(n, per_machine, layers, kv_heads, needed, memory) for n in range(1, devices + 1)]
    return sorted(layout for some in fewer for layout in some)


@layouts.misconception("Sort them: by data, then tensor, then pipeline.")
def unsorted(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    return sorted(_by_trying(devices, per_machine, layers, kv_heads, needed, memory), key=lambda one: one[::-1])


@layouts.misconception("The order of the three is data, tensor, pipeline.")
def another_order(devices: int, per_machine: int, layers: int, kv_heads: int, needed: float, memory: float) -> Layouts:
    return [[t, p, d] for d, t, p in _by_trying(devices, per_machine, layers, kv_heads, needed, memory)]
