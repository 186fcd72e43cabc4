"""The open task: the MFU of one's own run, and settings with which it computes more and learns more."""

from __future__ import annotations

from random import Random
from typing import Any

from lmcourse.chapters.flops.exercises.forward import forward_flops as _forward_flops
from lmcourse.chapters.flops.own_run import (
    CHANGED,
    FORM,
    GIVEN,
    LONG,
    MANY,
    NUMBERS,
    WIDTH,
    inspect_settings,
    measure_settings,
    step_flops,
)
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER
from lmcourse.exercises.open_task import Band, OpenTask

# my_mfu ----------------------------------------------------------------------------------------------------------

forward_flops = _forward_flops.reference  # in a notebook, the learner's own


def _mfu(settings: dict[str, Any], steps: int, seconds: float, peak: float) -> float:
    """Divide the package's own count of model FLOPs by what the processor could have done."""
    return step_flops(settings) * steps / (seconds * peak)


def _ask(name: str, steps: int, seconds: float, peak: float, **changes: Any) -> Case:
    return case(name, {**GIVEN, **changes}, steps, seconds, peak)


def _cases(random: Random) -> list[Case]:
    def run() -> Case:
        shape = (random.randint(1, 6), 32 * random.randint(1, 9), random.randint(50, 900))
        sizes = {"batch": random.randint(2, 30), "length": random.randint(10, 300), "shape": shape}
        return _ask("other runs", random.randint(50, 900), random.uniform(1, 9), random.uniform(1e11, 9e11), **sizes)

    return [
        _ask("one text of one byte", 10, 0.5, 1e9, length=1),
        _ask("another learning rate", 300, 2.0, 1e11, rate=0.01),
        *(run() for _ in range(5)),
    ]


my_mfu = Exercise(
    "my_mfu",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_mfu,
    cases=[
        _ask("the given settings", 500, 3.0, 150e9),
        _ask("four texts, one layer of 128", 430, 3.0, 160e9, batch=4, shape=(1, 128, 256)),
        _ask("a text of 256 bytes", 240, 3.2, 120e9, length=256),
        _ask("a wide feed-forward layer", 300, 2.5, 200e9, batch=2, shape=(2, 64, 1024)),
        _ask("a single step in half a second", 1, 0.5, 2e9),
    ],
    hidden_cases=_cases,
    hints=[
        "How many FLOPs does a forward pass of one step take? Your forward_flops knows, if it gets V and the gate.",
        "A step is a forward and a backward pass. And how many FLOPs could the processor have done in `seconds`?",
        'Model FLOPs of all steps, divided by seconds · peak. `*settings["shape"]` passes the three numbers of the '
        "shape one after the other.",
    ],
    forbid=NO_COUNTER,
    uses=["forward_flops"],
)


@my_mfu.variant
def three_forward_passes(settings: dict[str, Any], steps: int, seconds: float, peak: float) -> float:
    batch, length = settings["batch"], settings["length"]
    layers, d_model, d_ff = settings["shape"]
    parts = forward_flops(batch, length, layers, d_model, d_ff, 128, gated=True)
    step = 3 * sum(parts.values())
    return step * steps / (seconds * peak)


my_mfu.slips(
    three_forward_passes,
    {
        "3 * sum → sum": "You count the forward pass only, a third. Training goes back, too, and that takes twice as "
        "much.",
        "3 * sum → 2 * sum": "You count as much for the backward pass as for the forward pass. It takes twice as much.",
        "3 * sum → 4 * sum": "You count the forward pass twice. Nothing is computed a second time in this run.",
        ", gated=True → ": "Your feed-forward layers have no gate. These have one: a third matrix.",
        "step = 3 * sum(parts.values()) → step = 3 * batch * sum(parts.values())": "You multiply by the batch twice: "
        "forward_flops already counts all texts.",
        "forward_flops(batch, length → forward_flops(batch * length, length": "You pass the number of tokens as the "
        "number of texts. forward_flops wants texts, and their length.",
        "forward_flops(batch, → forward_flops(1,": "You count one text. A step has `batch` of them.",
        "step * steps → step": "You count one step. The run made `steps` of them in its seconds.",
        "(seconds * peak) → seconds": "That is the rate of useful FLOPs. Divide it by the rate of products.",
        "(seconds * peak) → peak": "You leave out the seconds: FLOPs over FLOP/s are seconds, not a share.",
        "(seconds * peak) → seconds * peak": "You multiply by the peak. Dividing by a product needs brackets around "
        "it.",
        "(seconds * peak) → (seconds * 989.4e12)": "You take the peak of a data sheet, an H100's. Divide by the `rate` "
        "that was measured.",
        "(seconds * peak) → (seconds * settings['rate'])": "You divide by the learning rate. Divide by `peak`: what "
        "products alone reach.",
        "step * steps → step * steps / batch / length": "You count the FLOPs of a token. A step has batch · length of "
        "them.",
        "d_model, d_ff, 128 → d_ff, d_model, 128": "You swap the width and that of the feed-forward layers: the shape "
        "is L, D and F.",
        'length = settings["batch"], settings["length"] → length = settings["batch"], settings["length"] - 1': "Your "
        "texts are one byte too short. The model reads `length` bytes of each.",
        "gated=True → d_kv=d_model // 2, gated=True": "You share keys among heads. Here every head has its own.",
        "return step → return 100 * step": "You return a percentage. A share is between 0 and 1.",
        "return step * steps / (seconds * peak) → return seconds * peak / (step * steps)": "You return the inverse: "
        "possible FLOPs over useful ones.",
        "sum(parts.values()) → (sum(parts.values()) - parts['head'])": "You leave out the head. It is trained, too.",
        "sum(parts.values()) → (sum(parts.values()) - parts['scores'] - parts['values'])": "You leave out scores and "
        "values. Count all pairs.",
        "sum(parts.values()) → (sum(parts.values()) - parts['scores'])": "You halve scores and values, as if only "
        "causal pairs counted. Count all pairs.",
        "d_ff, 128 → d_ff, 256": "Your vocabulary has 256 entries. This model's V is 128.",
    },
)


@my_mfu.variant
def part_by_part(settings: dict[str, Any], steps: int, seconds: float, peak: float) -> float:
    B, S, (L, D, F) = settings["batch"], settings["length"], settings["shape"]
    matrices = L * (4 * D * D + 3 * D * F) + 128 * D
    per_token = 6 * matrices + 12 * L * S * D
    return per_token * B * S * steps / seconds / peak


# my_settings -----------------------------------------------------------------------------------------------------


def four_texts_and_two_layers() -> Any:
    return {**GIVEN, "batch": 4, "shape": (2, 128, 256)}


my_settings = Exercise(
    "my_settings",
    points=3,
    minutes=6,
    difficulty=3,
    reference=four_texts_and_two_layers,
    seconds=90.0,
    may_use_package=True,
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "What does a step do besides products, and how often does it do that? Which settings make the products larger "
        "without more of the rest?",
        "A larger batch means fewer steps in the same time. Look at steps and loss of your tries: from which batch on "
        "do the steps run out?",
        "A change of the batch leaves you a second one: the shape, or the rate.",
    ],
    task=OpenTask(
        inspect=inspect_settings,
        measure=measure_settings,
        baseline={"given": {"FLOP/s": 1.0, "loss": 1.13}, "a batch of 64": {"FLOP/s": 3.4, "loss": 3.1}},
        finish={"FLOP/s": 2.5, "loss": 0.9},
        bands=[
            Band(1, "at least 1.3 times the FLOP/s of the given run", at_least={"FLOP/s": 1.3}),
            Band(1, at_least={"FLOP/s": 1.6}, at_most={"loss": 1.1}),
            Band(1, at_least={"FLOP/s": 2.5}, at_most={"loss": 0.9}),
        ],
    ),
)

my_settings.idea(3)(four_texts_and_two_layers)
my_settings.edited_ideas(
    four_texts_and_two_layers,
    {
        "a batch of 64": (1, '4, "shape": (2, 128, 256) → 64'),
        "a batch of four": (2, ', "shape": (2, 128, 256) → '),
        "one wider layer": (3, "(2, 128, 256) → (1, 192, 384)"),
    },
)
my_settings.slips(
    four_texts_and_two_layers,
    {
        "**GIVEN, → ": FORM,
        '"batch": 4 → "batch": 4, "rate": 0.002': CHANGED.format(3, "batch, shape, rate"),
        "(2, 128, 256) → (2, 100, 200)": WIDTH.format(100),
        "(2, 128, 256) → (2, 128)": NUMBERS,
        "(2, 128, 256) → (1, 4096, 8192)": MANY.format(168_820_736),
        '"batch": 4 → "batch": 4096': LONG.format(5.9e11),
    },
)
