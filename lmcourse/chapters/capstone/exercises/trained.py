"""The trained model: its weights, and its reported loss, which is measured again on hidden stories."""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file
from torch import Tensor

from lmcourse.chapters.capstone.recipe import FRESH_BYTES, Design, loss_on, stories
from lmcourse.chapters.capstone.sealed import SEAL, TRAINED, Numbers, design_of, digest_of, plan_of, problem_of
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain
from lmcourse.models.transformer import Transformer
from lmcourse.report import handed_in

EXAMPLE = Path(__file__).with_name(TRAINED.name)
"""The weights of the 2 × 24 model, trained with Muon and seed 0, in the form that `hand_over` writes."""

NUMBERS = ("plan", "seal", "sealings", "reported")

SEED, BYTES = 20_000, 262_144
"""Seed and length of the stories for the grade. On four such texts the 2 × 24 model had losses from 0.3217 to 0.3224.
Each is 0.019 to 0.020 below the loss of `BEST_GIVEN`'s model on the same text."""

REPRODUCED = 0.01
"""Largest error of the reported loss, in nats per byte."""

NEAR = 0.02
"""Largest error of the forecast loss, in nats per byte."""

BEST_GIVEN = 0.3404
"""Loss of the given recipe's best run (4 × 24, seed 0, `given.safetensors`) on the stories that the grade uses."""

BEST_GIVEN_KNOWN = 0.3385
"""Loss of the same run on the notebook's fresh text."""

SLACK = 0.005
"""Largest difference by which a run may be worse than the given recipe's best, in nats per byte. Two seeds differ by
less."""

GAINS = (0.004, 0.010)
"""Improvements over the given recipe's best run that the grade asks for, in nats per byte."""

PUBLIC = "the weights give the reported loss"
REPORTED = f"the reported loss, on other stories, to {REPRODUCED}"
FORECAST = f"the forecast of the loss, to {NEAR}"
LIMITS = {f"the run: at most {SLACK} above the best of the given recipe": SLACK} | {
    f"the run: {gain} below it": -gain for gain in GAINS
}

RIGHT = {PUBLIC: "they do", REPORTED: f"within {REPRODUCED}", FORECAST: f"within {NEAR}"}
RIGHT |= dict.fromkeys(LIMITS, "reached")
"""For each case what `_view` says about a right answer."""


_stories = cache(stories)


@lru_cache(maxsize=16)
def _loss(layers: int, d_model: int, weights: bytes, known: bool) -> float:
    """The loss of these weights in nats per byte, on the notebook's fresh bytes or on the stories for the grade."""
    design = Design(layers, d_model)
    model = Transformer(design.config)
    tensors, start = {}, 0
    numbers = torch.frombuffer(bytearray(weights), dtype=torch.float32)
    for name, value in model.state_dict().items():
        tensors[name] = numbers[start : start + value.numel()].view(value.shape)
        start += value.numel()
    model.load_state_dict(tensors)
    return loss_on(model, _stories(1, FRESH_BYTES) if known else _stories(SEED, BYTES))


def _number(value: Plain) -> float:
    """Return a finite number, alone or in a tensor; NaN for anything else."""
    if isinstance(value, Tensor):
        value = value.item() if value.numel() == 1 and not value.is_complex() else None
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and math.isfinite(value) else math.nan


@cache
def _shapes(design: Design) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of a design by name, in the order of the model."""
    with torch.device("meta"):
        return {name: tuple(each.shape) for name, each in Transformer(design.config).state_dict().items()}


def _text(value: Plain) -> str:
    """Return a short ASCII text from its bytes in a tensor; empty for anything else."""
    short = isinstance(value, Tensor) and not value.is_complex() and value.ndim == 1 and len(value) < 2000
    return "".join(chr(int(byte)) for byte in value.tolist() if 0 <= byte < 128) if short else ""


def _plan(value: dict[str, Plain]) -> Numbers | str:
    """Return the plan in a file as it was sealed, or a few words on what it is instead."""
    try:
        read = json.loads(_text(value["plan"]))
        seed = read.pop("seed")
    except (ValueError, AttributeError, KeyError, RecursionError):
        return "plan is no commitment as `hand_over` writes it"
    plan = plan_of(read)
    return plan if isinstance(plan, str) else problem_of(plan) or plan | {"seed": seed}


def _broken_seal(value: dict[str, Plain]) -> str:
    """Return what shows that the plan in a file is not the sealed one, or an empty text."""
    own, written = digest_of(_text(value["plan"])), _text(value["seal"])
    saved = handed_in.SEAL.get()
    if saved is None and SEAL.exists():  # in the learner's notebook
        saved = str(json.loads(SEAL.read_text())["seal"])
    if saved == "":
        return "no seal in the notebook: run the cell that seals, and save the outputs"
    last = written if saved is None else saved
    return f"sealed {last}, this plan is {own}" if {own, written} != {last} else ""


def _problem(value: Plain) -> str:
    """Describe the error in a file; an empty text if there is none."""
    if not isinstance(value, dict) or not set(NUMBERS) <= set(value):
        return f"no dict with the weights by name and {', '.join(NUMBERS)}"
    plan = _plan(value)
    if isinstance(plan, str):
        return plan
    if math.isnan(_number(value["reported"])):
        return "reported is no finite number"
    design = design_of(plan)
    shapes = _shapes(design)
    given = {name: each for name, each in value.items() if name not in NUMBERS}
    if wrong := sorted(set(shapes) ^ set(given)):
        missing = "is missing" if wrong[0] in shapes else "is unknown"
        return f"{wrong[0]} {missing} in {design.layers} × {design.d_model}"
    for name, shape in shapes.items():
        tensor = given[name]
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            return f"{name} is no tensor of real numbers"
        if tuple(tensor.shape) != shape:
            return f"{name} has shape {tuple(tensor.shape)}, not {shape}"
        if not tensor.isfinite().all():
            return f"{name} holds numbers that are not finite"
    return ""


def measured(value: dict[str, Plain], *, known: bool) -> float:
    """Return the loss of a file without problems, in nats per byte."""
    plan = _plan(value)
    assert not isinstance(plan, str)
    design = design_of(plan)
    weights = torch.cat([value[name].float().flatten() for name in _shapes(design)]).numpy().tobytes()
    return _loss(design.layers, design.d_model, weights, known)


def _forecast(value: dict[str, Plain]) -> float:
    plan = _plan(value)
    return math.nan if isinstance(plan, str) else float(plan["loss"])


def _view(asked: Case, value: Plain) -> str:
    """Describe one property of the file that was handed in."""
    if problem := _problem(value):
        return problem
    forecast, reported = _forecast(value), _number(value["reported"])
    wrong = f"they do not: reported {reported:.3f}, "
    seen = measured(value, known=True)
    if not abs(reported - seen) <= REPRODUCED:
        bits = " (yours is in bits)" if abs(reported * math.log(2) - seen) <= REPRODUCED else ""
        return f"{wrong}the weights give {seen:.3f}{bits}"
    right = RIGHT[asked.name]
    if asked.name == PUBLIC:
        return right
    loss = measured(value, known=False)
    if asked.name == REPORTED:
        off = reported - loss
        return right if abs(off) <= REPRODUCED else f"{off:+.3f}: the weights give {loss:.3f}"
    if asked.name == FORECAST:
        off = forecast - loss
        if broken := _broken_seal(value):
            return broken
        return right if abs(off) <= NEAR else f"{off:+.3f}: forecast {forecast:.3f}, measured {loss:.3f}"
    worse = loss - BEST_GIVEN
    return right if worse <= LIMITS[asked.name] else f"{worse:+.4f} nats from the best run of the given recipe"


def _preview(value: Plain) -> tuple[float, str]:
    """Return the points that the grade would give if its stories were the notebook's fresh text."""
    assert isinstance(value, dict)  # it passed the public case
    loss = measured(value, known=True)
    off, worse, broken = _forecast(value) - loss, loss - BEST_GIVEN_KNOWN, _broken_seal(value)
    points = 2 + (abs(off) <= NEAR and not broken) + sum(worse <= limit for limit in LIMITS.values())
    said = f"By this notebook's fresh text, the grade would be {points} of {trained.points} points. "
    if points < trained.points:
        said += f"Your forecast does not count ({broken}). " if broken else ""
        said += f"The loss is {loss:.4f}, your forecast is {off:+.3f} from it, "
        said += f"and the best of the given recipe has {BEST_GIVEN_KNOWN}. "
    return points, f"{said}The points are final only after grading, on stories that the notebook does not have."


def _remark(asked: Case, value: Plain) -> str:
    """Say in the graded report how many plans were sealed, if there were several."""
    count = _number(value.get("sealings")) if isinstance(value, dict) else 1
    return f"{count:.0f} plans were sealed in this folder." if asked.name == FORECAST and count > 1 else ""


def _example() -> dict[str, Tensor]:
    return dict(load_file(EXAMPLE))


def _foretold(loss: float, *, again: bool = True) -> dict[str, Tensor]:
    """The example with another forecast in its plan, and sealed again."""
    made = _example()
    plan = _text(made["plan"]).replace("0.325", str(loss))
    texts = {"plan": plan, "seal": digest_of(plan) if again else _text(made["seal"])}
    return made | {name: torch.tensor([*text.encode()], dtype=torch.uint8) for name, text in texts.items()}


trained = Exercise(
    "trained",
    points=6,
    minutes=2,
    difficulty=1,
    reference=_example,
    cases=[case(PUBLIC)],
    hidden_cases=lambda _: [case(name) for name in (REPORTED, FORECAST, *LIMITS)],
    hints=[
        "`load_file` of `safetensors.torch` reads a file into a dict from names to tensors.",
        f'Return `load_file("{TRAINED.name}")` as it is: `hand_over` has already put everything you need into it.',
    ],
    view=_view,
    right=RIGHT,
    preview=_preview,
    remark=_remark,
    file=EXAMPLE,
    seconds=20.0,
)


@trained.variant
def from_bytes() -> dict[str, Tensor]:
    file = Path("trained.safetensors")
    return load(file.read_bytes())


trained.slips(
    from_bytes,
    {
        "return load(file.read_bytes()) → torch.manual_seed(0)\n    model = Transformer(Design(2, 24).config)\n    "
        "return _example() | {name: value.half() for name, value in model.state_dict().items()}": "You hand in the "
        "weights from before training: they have learned nothing from the stories.",
        'load(file.read_bytes()) → _example() | {"reported": _example()["reported"] / math.log(2)}': "The loss that "
        "you report is in bits. The course uses nats: multiply by ln 2.",
        'load(file.read_bytes()) → _example() | {"reported": torch.tensor(0.2221, dtype=torch.float64)}': "You report "
        "the entropy of the text, which no model reaches, not what your model has.",
        "load(file.read_bytes()) → _example() | {name: value[:16] for name, value in _example().items() if value.ndim "
        "== 2}": "The weights in the file belong to a different design from the one it names.",
        "load(file.read_bytes()) → _foretold(0.2221)": "Your forecast is the entropy of the text, which a "
        "perfect model would reach.",
        "load(file.read_bytes()) → _foretold(0.42)": "You forecast a loss that a small run reached. The order allows "
        "more than three times the FLOPs of those runs.",
        "load(file.read_bytes()) → _foretold(0.322, again=False)": "You changed the forecast after it was sealed. "
        "Return the file as `hand_over` wrote it.",
        'load(file.read_bytes()) → _example() | {"forecast": torch.tensor(0.32)}': "You add a forecast after the "
        "training. The one that counts is in the sealed plan.",
        "load(file.read_bytes()) → {name: value for name, value in _example().items() if name not in NUMBERS}": "You "
        "return only the weights. Return the design, the forecast and the reported loss with them.",
    },
)


@trained.variant
def one_by_one() -> dict[str, Tensor]:
    with safe_open("trained.safetensors", framework="pt") as file:
        return {name: file.get_tensor(name).double() for name in file.keys()}  # noqa: SIM118 - it is no dict
