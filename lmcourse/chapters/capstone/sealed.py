"""The commitment: what the order allows, and a seal on it that shows every later change."""

from __future__ import annotations

import hashlib
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save
from torch import Tensor

from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.saved import saved_tensors
from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.chapters.capstone.measured import ENTROPY
from lmcourse.chapters.capstone.recipe import (
    DEPTHS,
    LENGTH,
    ORDER,
    VOCABULARY,
    WIDTHS,
    Design,
    Recipe,
    known_words,
    texts,
    train,
    write,
)
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.report.handed_in import hand_in, show_seal

Numbers = dict[str, float | str]

LEAST_SHARE = 0.9
RATES = (0.1, 10.0)
CHOICES: dict[str, Sequence[object]] = {
    "layers": DEPTHS,
    "d_model": WIDTHS,
    "optimizer": ("adamw", "muon"),
    "batch": range(4, 33),
}
COUNTED = ("parameters", "flops", "states")
KEYS = (*CHOICES, "rate", "warm_up", "steps", *COUNTED, "loss")

TRAINED = Path("trained.safetensors")
"""The file in the working folder with the weights that a learner hands in."""

SEAL = Path("sealed.json")
"""The file in the working folder with the sealed commitment, its digest, the time, and how often was sealed."""


def plan_of(value: Any) -> Numbers | str:
    """Return a commitment as plain numbers and a name, or a few words on why it is none."""
    if not isinstance(value, Mapping):
        return "no dict with your choice and your forecasts"
    missing, unknown = [key for key in KEYS if key not in value], [key for key in value if key not in KEYS]
    if missing or unknown:
        return f"the dict has no {missing[0]}" if missing else f"{unknown[0]} is not asked for"
    single = {key for key, each in value.items() if math.prod(getattr(each, "shape", [2])) == 1}
    items = {key: each.item() if key in single else each for key, each in value.items()}
    numbers = [items[key] for key in KEYS if key != "optimizer"]
    if not all(
        isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each) for each in numbers
    ):
        return "every value but the optimizer must be one finite number"
    return {key: int(each) if isinstance(each, float) and each == int(each) else each for key, each in items.items()}


def problem_of(plan: Numbers) -> str:
    """Return why a commitment is not possible: a loss that no model has, or a limit of the order; or an empty text."""
    loss = float(plan["loss"])
    if loss < ENTROPY:
        return f"a loss of {loss:.4g}: no model of these bytes can have a smaller loss than {ENTROPY}"
    if loss > math.log(VOCABULARY):
        return f"a loss of {loss:.4g}: a model that has learned nothing has ln {VOCABULARY}"
    broken = _broken(plan)
    return f"it breaks the order: {broken}" if broken else ""


def _broken(plan: Numbers) -> str:
    for name, choices in CHOICES.items():
        if plan[name] not in choices:
            allowed = f"one of {', '.join(map(str, choices))}" if name != "batch" else "a whole number from 4 to 32"
            return f"{name} must be {allowed}"
    design, steps, warm_up, batch = design_of(plan), float(plan["steps"]), float(plan["warm_up"]), int(plan["batch"])
    if steps < 1 or steps != int(steps):
        return "steps must be a whole number, at least 1"
    if not 0 <= warm_up <= steps / 2 or warm_up != int(warm_up):
        return "warm_up must be a whole number from 0 to half of steps"
    if not RATES[0] <= float(plan["rate"]) <= RATES[1]:
        return f"rate must be from {RATES[0]} to {RATES[1]:g}"
    if design.parameters > ORDER["parameters"]:
        return f"{design.parameters:,} parameters"
    if design.memory(batch) > ORDER["memory"]:
        return f"{design.memory(batch) / 2**20:.2f} MiB of memory"
    spent = steps * design.flops_of_step(batch)
    if (over := spent - ORDER["flops"]) > 0:
        pairs = int(ORDER["flops"] / (6 * design.parameters * batch * LENGTH)) == steps
        return f"{over:,.0f} FLOPs too many" + "; 6ND leaves out the scores" * pairs
    return f"only {spent / ORDER['flops']:.1%} of the FLOPs are used" if spent < LEAST_SHARE * ORDER["flops"] else ""


def design_of(plan: Mapping[str, Any]) -> Design:
    """Return the design of a commitment."""
    return Design(int(plan["layers"]), int(plan["d_model"]))


def digest_of(plan: str) -> str:
    """Return the first 12 hex digits of the SHA-256 of a plan in sorted JSON."""
    return hashlib.sha256(plan.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Sealed:
    """A sealed commitment: its numbers with the seed, its digest, and how often a changed plan was sealed."""

    plan: Numbers
    digest: str
    sealings: int

    @property
    def design(self) -> Design:
        """The model that was sealed."""
        return design_of(self.plan)

    @property
    def recipe(self) -> Recipe:
        """The recipe that was sealed."""
        optimizer: Any = self.plan["optimizer"]
        return Recipe(int(self.plan["batch"]), float(self.plan["rate"]), optimizer, int(self.plan["warm_up"]))

    def train(self, prompt: str) -> tuple[Transformer, float, str]:
        """Train what was sealed, with a live plot; return the model, its loss, and what it wrote at four times."""
        from lmcourse.widgets.training import LivePlot  # imported here because grading does not draw

        steps, written = int(self.plan["steps"]), ""
        stages = {min(30, steps), steps // 8, steps // 3, steps}

        def write_at_stages(model: Transformer, step: int) -> None:
            nonlocal written
            if step in stages:
                text = write(model, prompt, 160)
                known = f"after {step:,} steps, {known_words(text):.0%} of its words are words of the stories:"
                written += f"{known}\n{textwrap.indent(textwrap.fill(prompt + text, 84), '    ')}\n"

        seed = int(self.plan["seed"])
        with LivePlot(entropy=ENTROPY) as plot:
            model, loss = train(self.design, steps, seed, [plot], self.recipe, write_at_stages)
        return model, loss, written

    def speaks(self, handed_in: Mapping[str, Tensor], prompt: str) -> str:
        """Return what the weights in a handed-in file write after a prompt."""
        model = Transformer(self.design.config)
        model.load_state_dict({name: handed_in[name] for name in model.state_dict()})
        return textwrap.fill(prompt + write(model, prompt, 250, seed=1), 88)

    def compared(self, account: Callable[..., Mapping[str, int]], model: Transformer) -> str:
        """Return the sealed numbers beside those of `account` and those measured, as a table."""
        steps, found = int(self.plan["steps"]), self.measured(model)
        costs = account(*self.design.sizes, self.recipe.batch, LENGTH)
        counted = {"parameters": costs["parameters"], "flops": steps * costs["flops"], "states": costs["states"]}
        lines = [f"{'':10} {'sealed':>15} {'by `account_of`':>17} {'measured':>15}"]
        lines += [f"{name:10} {self.plan[name]:15,} {counted[name]:17,} {found[name]:15,}" for name in COUNTED]
        return "\n".join([*lines, f"memory, with what autograd keeps: {found['memory'] / 2**20:.2f} MiB"])

    def measured(self, model: Transformer) -> dict[str, float]:
        """Measure a trained model: tensors, torch's counter, a real optimizer, and what autograd keeps."""
        batch = self.recipe.batch
        inputs = texts()[0][: batch * LENGTH].view(batch, LENGTH)
        kept = saved_tensors(lambda: next_token_loss(model(inputs), inputs), model, without=[inputs]).total
        copy = Transformer(self.design.config)
        optimizer = torch.optim.AdamW(copy.parameters())
        next_token_loss(copy(inputs), inputs).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        size = sum(weight.nbytes + cast(Tensor, weight.grad).nbytes for weight in copy.parameters())
        size += sum(state[name].nbytes for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq"))
        return {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "flops": int(self.plan["steps"]) * counted_flops(self.design.config, batch, LENGTH, backward=True).total,
            "states": size,
            "memory": size + kept,
        }


def seal(commitment: Callable[[], Any], seed: int = 0) -> Sealed | None:
    """Seal a commitment and the seed of its training: print its digest, and write it into `sealed.json`.

    Returns None, and prints why, if there is no commitment yet or if the order does not allow it.
    """
    try:
        plan = plan_of(commitment())
    except NotImplementedError:
        plan = "`commitment` is not written yet, and the cells below need it"
    if isinstance(plan, str) or (why := problem_of(plan)):
        print(f"Not sealed: {plan if isinstance(plan, str) else why}.")
        return None
    plan |= {"seed": seed}
    digest = digest_of(json.dumps(plan, sort_keys=True))
    before: dict[str, Any] = json.loads(SEAL.read_text()) if SEAL.exists() else {"seal": "", "sealings": 0}
    count = before["sealings"] + (before["seal"] != digest)
    made = {"seal": digest, "sealings": count, "time": datetime.now(UTC).isoformat(timespec="seconds"), "plan": plan}
    write_all({SEAL: json.dumps(made, indent=1).encode()})
    show_seal(digest, f"sealed {digest}; plans sealed in this folder so far: {count}")
    return Sealed(plan, digest, count)


def hand_over(sealed: Sealed, model: Transformer, loss: float) -> None:
    """Write `trained.safetensors`, the sealed plan with the weights in fp16, and put it into the notebook.

    Raises CourseError if the plan or the model is not what was sealed last.
    """
    plan = json.dumps(sealed.plan, sort_keys=True)
    last = json.loads(SEAL.read_text())["seal"] if SEAL.exists() else "nothing"
    if last != digest_of(plan):
        raise CourseError(
            f"Sealed {last}, this plan is {digest_of(plan)}: train what you sealed, or seal again and say so in your "
            "defence."
        )
    tensors: dict[str, Tensor] = {name: value.half() for name, value in model.state_dict().items()}
    if sum(value.numel() for value in tensors.values()) != sealed.design.parameters:
        raise CourseError("This model is not of the design that you sealed.")
    tensors |= {"plan": _bytes(plan), "seal": _bytes(sealed.digest)}
    tensors |= {"reported": torch.tensor(loss, dtype=torch.float64), "sealings": torch.tensor(sealed.sealings)}
    write_all({TRAINED: save(tensors)})
    hand_in(TRAINED)


def _bytes(text: str) -> Tensor:
    return torch.tensor([*text.encode()], dtype=torch.uint8)
