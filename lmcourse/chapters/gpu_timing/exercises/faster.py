"""The open task: a training step that is right, and slow."""

from __future__ import annotations

from lmcourse.chapters.gpu_timing import slow_step as task
from lmcourse.chapters.gpu_timing.slow_step import DOUBLE, MEGABYTES, MENDS, MISTAKES, OPERATIONS, SINS, WAITS
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER, NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask

_ALLOWED = ("torch.profiler", "torch.autograd.profiler")

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
    forbid=[*NOT_MEASURED, *(name for name in NO_COUNTER if name not in _ALLOWED)],
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

fast_step.idea(1)(task.slow_step)
fast_step.edited_ideas(
    task.slow_step,
    {
        "tables once a step": (2, MENDS["tables"]),
        "all texts at once": (2, MENDS["texts"]),
        "no waits": (1, MENDS["no waits"]),
        "attention fused, in fp32": (1, MENDS["attention in fp32"]),
        "norm and GELU fused": (1, MENDS["norm and gelu"]),
    },
)

fast_step.idea(6)(task.mended_step)
_FOREACH = "\n        ".join(
    [
        "torch._foreach_mul_(gradients, scale)",
        "torch._foreach_lerp_(means, gradients, 0.1)",
        "torch._foreach_mul_(squares, 0.99)",
        "torch._foreach_addcmul_(squares, gradients, gradients, 0.01)",
        "roots = torch._foreach_sqrt(squares)",
        "torch._foreach_div_(roots, math.sqrt(1 - 0.99**t))",
        "torch._foreach_add_(roots, 1e-8)",
        "torch._foreach_addcdiv_([*weights.values()], means, roots, -0.001 / (1 - 0.9**t))",
    ]
)
_LOOP = """for w, g, m, v in zip(weights.values(), gradients, means, squares):
            g = g * scale
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.99).add_(0.01 * g * g)
            w -= 0.001 * (m / (1 - 0.9**t)) / ((v / (1 - 0.99**t)).sqrt() + 1e-8)"""
_ONE_KERNEL = """torch._foreach_mul_(gradients, scale)
        steps = [torch.full((), float(t)) for _ in means]
        settings = dict(lr=0.001, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
        torch._fused_adam_([*weights.values()], gradients, means, squares, [], steps, **settings)"""
_FP32 = SINS["attention in fp32"].replace(" @ v.double()).float()", " @ v)").replace("dtype=torch.float64, ", "")

fast_step.edited_ideas(
    task.mended_step,
    {
        "all but the fused attention": (6, _FP32),
        "all but the norms": (6, SINS["norm"]),
        "all but the optimizer": (6, f"{_FOREACH} → {_LOOP}"),
        "torch's Adam in one kernel, one wait for the loss": (
            6,
            f"{_FOREACH} → {_ONE_KERNEL} ;; loss.detach() → loss.item()",
        ),
        "all but the fp64": (3, SINS["attention in fp32"]),
        "all but the GELU": (4, SINS["gelu"]),
        "all but the waits": (5, SINS["no waits"]),
        "attention and optimizer as given, in fp32": (4, f"{_FP32} ;; {_FOREACH} → {_LOOP}"),
    },
)
fast_step.slips(task.mended_step, MISTAKES)
