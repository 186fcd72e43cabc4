"""The open task: a training step that is right, and slow."""

from __future__ import annotations

from lmcourse.chapters.gpu_timing import slow_step as task
from lmcourse.chapters.gpu_timing.slow_step import DOUBLE, MEGABYTES, MENDS, MISTAKES, OPERATIONS, WAITS
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER, NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask

fast_step = Exercise(
    "fast_step",
    points=6,
    minutes=9,
    difficulty=3,
    reference=task.slow_step,
    seconds=60.0,
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "Begin with the label that takes most. Does its result depend on the text, or could every text and every layer "
        "use the same one?",
        "Then count calls: what is done eight times for eight texts, or for every row of a table, and could be one "
        "operation on a larger tensor? And which tensors are in fp64 because one of their inputs is?",
        "Last the bytes: each element-wise operation reads and writes a whole tensor. For which rows of them has "
        "`torch.nn.functional` a single function?",
    ],
    forbid=[*NOT_MEASURED, *(name for name in NO_COUNTER if "profiler" not in name)],
    task=OpenTask(
        inspect=task.inspect_step,
        measure=task.measure_step,
        baseline={"the given step": {OPERATIONS: 25207, MEGABYTES: 739, DOUBLE: 21888, WAITS: 22}},
        finish={OPERATIONS: 650, MEGABYTES: 325, DOUBLE: 0, WAITS: 1},
        bands=[
            Band(1, "the same losses and weights"),
            Band(1, at_most={OPERATIONS: 7000}),
            Band(1, "nothing in fp64, and one wait", at_most={DOUBLE: 0, WAITS: 1}),
            Band(1, at_most={OPERATIONS: 650}),
            Band(2, at_most={OPERATIONS: 650, MEGABYTES: 325}),
        ],
    ),
)

_FP32 = "table = torch.full((T, T), -math.inf, dtype=torch.float64, → table = torch.full((T, T), -math.inf, ;; "
_FP32 += "v.double()).float() → v)"


def _all_but(*faults: str) -> str:
    return " ;; ".join(edits for mend, edits in MENDS.items() if mend not in faults)


fast_step.idea(1)(task.slow_step)
fast_step.edited_ideas(
    task.slow_step,
    {
        "all texts at once": (2, MENDS["texts"]),
        "all mended": (6, _all_but()),
        "all but the fused attention": (6, f"{_all_but('attention')} ;; {_FP32}"),
        "all but the attention in fp64": (3, _all_but("attention")),
        "all but the GELU": (4, _all_but("gelu")),
        "all but the waits": (5, _all_but("waits")),
    },
)
fast_step.slips(task.slow_step, MISTAKES)
