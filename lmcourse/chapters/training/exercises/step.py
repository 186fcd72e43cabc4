"""The exercise on one step of training, with autocast, a loss scaler and clipping."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BEGIN = """\
import torch
first, last = torch.nn.Embedding.from_pretrained(e.clone(), freeze=False), torch.nn.Linear(2, 3, bias=False)
model = torch.nn.Sequential(first, last)
last.weight.data.copy_(w)
"""
SGD = BEGIN + "optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
ADAM = BEGIN + "optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)\n"
SCALED = "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0, growth_interval=1)\n"
PLAIN = "scaler = torch.amp.GradScaler('cpu', enabled=False)\n"
HUGE = "scaler = torch.amp.GradScaler('cpu', init_scale=2.0**126)\n"
CALL = "train_step(model, x, y, optimizer, scaler, {limit})\n"
HALF = """\
seen = []
model.register_forward_hook(lambda module, given, output: seen.append(str(output.dtype)))
last.weight.register_hook(lambda gradient: seen.append(torch.is_autocast_enabled("cpu")))
train_step(model, x, y, optimizer, scaler, {limit}, torch.DTYPE)
[*seen, str(getattr(last.weight.grad, 'dtype', torch.float32))]
"""
"""Script that takes a step in 16 bits: the loss, the dtype of the logits, whether the backward pass runs under
autocast, and the dtype of a gradient, if one is left."""
BF16, FP16 = HALF.replace("DTYPE", "bfloat16"), HALF.replace("DTYPE", "float16")
LOOK = "first.weight\nlast.weight"


def _weights(random: Random) -> dict[str, Any]:
    return {"e": normal(random, 3, 2), "w": normal(random, 3, 2)}


X, Y = torch.tensor([[0, 1, 2]]), torch.tensor([[1, 2, 0]])
GIVEN: dict[str, Any] = {
    "e": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]),
    "w": torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.5, 1]]),
}


def _ask(name: str, lines: str, *, limit: float = 100.0, **inputs: Tensor) -> Case:
    return script(name, lines.replace("{limit}", f"{limit}") + LOOK, **{**GIVEN, "x": X, "y": Y, **inputs})


STEEP: dict[str, Any] = {"e": 18 * GIVEN["e"], "w": -18 * GIVEN["w"]}
"""Weights for which the largest gradient entry is 6: times 2¹²⁶ it overflows in fp32, but not times 2¹²⁵."""

STALE = "last.weight.grad = 3 * torch.ones(3, 2)\n"
OVERFLOW = SGD + HUGE + CALL + "scaler.get_scale() < 2.0**126\n"


def _hidden(random: Random) -> list[Case]:
    one: dict[str, Any] = {"x": torch.tensor([[2]]), "y": torch.tensor([[2]])}
    two: dict[str, Any] = {"x": torch.tensor([[0, 1], [2, 2]]), "y": torch.tensor([[1, 1], [0, 2]])}
    return [
        _ask("a limit that binds", SGD + SCALED + CALL + CALL, limit=0.3, **two),
        _ask("a limit that binds", SGD + PLAIN + CALL, limit=0.05, **one),
        _ask("gradients from before", SGD + SCALED + STALE + CALL, limit=0.5),
        _ask("gradients from before", ADAM + PLAIN + STALE + CALL + CALL),
        _ask("Adam", ADAM + SCALED + CALL + CALL + CALL, limit=0.2, **two),
        _ask("an overflow", OVERFLOW, **STEEP, **two),
        _ask("an overflow, then a good step", OVERFLOW + 3 * CALL, limit=0.4, **STEEP),
        _ask("the scale after a good step", SGD + SCALED + CALL + "scaler.get_scale()\n"),
        _ask("the mode of the model", SGD + SCALED + CALL + "model.training\n"),
        _ask("bf16", ADAM + PLAIN + BF16 + BF16, limit=0.3, **two),
        _ask("fp16 with a scaler", SGD + SCALED + FP16, limit=0.2, **two),
        _ask("fp16 with a scaler", SGD + SCALED + FP16 + CALL, **one),
        _ask("an infinite limit", SGD + SCALED + CALL, limit=1e30, **STEEP),
        *(
            _ask(
                "other steps",
                SGD + SCALED + CALL + CALL,
                limit=random.uniform(0.01, 0.04),
                x=torch.tensor([[random.randrange(3) for _ in range(4)]]),
                y=torch.tensor([random.sample([0, 1, 2, 2], 4)]),
                **_weights(random),
            )
            for _ in range(2)
        ),
    ]


def _reference(
    model: Any, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype, enabled=dtype is not None):
        logits = model(inputs)
    loss = -logits.float().log_softmax(-1).gather(-1, targets[..., None]).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


train_step = Exercise(
    "train_step",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_reference,
    cases=[
        _ask("fp32, nothing to clip", SGD + PLAIN + CALL),
        _ask("a scaled loss", SGD + SCALED + CALL),
        _ask("a limit that binds", SGD + SCALED + CALL, limit=0.1),
        _ask(
            "two texts of two tokens",
            SGD + PLAIN + CALL,
            x=torch.tensor([[0, 1], [2, 2]]),
            y=torch.tensor([[1, 1], [0, 2]]),
        ),
        _ask("two steps", SGD + SCALED + CALL + CALL, limit=0.5),
        _ask("the scale after a good step", SGD + SCALED + CALL + "scaler.get_scale()\n"),
        _ask("a gradient from before", SGD + PLAIN + STALE + CALL),
        _ask("an overflow", OVERFLOW, **STEEP),
        _ask("in bf16", SGD + PLAIN + BF16),
        _ask("in fp16, with a scaler", SGD + SCALED + FP16, limit=0.2),
        _ask("the loss keeps no graph", SGD + PLAIN + "getattr(" + CALL.strip() + ", 'requires_grad', False)\n"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Seven things happen, one per line. Which of them need a gradient? Which of those need the unscaled one?",
        "torch.autocast(inputs.device.type, dtype, enabled=dtype is not None) is for the forward pass and the loss. "
        "F.cross_entropy converts 16-bit logits to fp32 in it.",
        "The limit is meant for the true gradient: scaler.unscale_(optimizer) comes before clip_grad_norm_.",
    ],
    tolerance=Tolerance(1e-5, 1e-6),  # torch adds 1e-6 to the norm that it divides by
    seconds=30.0,  # the first optimizer of a process makes torch import its compiler
)


@train_step.variant
def line_by_line(
    model: nn.Module, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype, enabled=dtype is not None):
        logits = model(inputs)
    loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


train_step.slips(
    line_by_line,
    {
        ", enabled=dtype is not None → ": "With dtype None your autocast is still on: it then takes bf16. Switch it "
        "off with `enabled=dtype is not None`.",
        "scaler.unscale_(optimizer) → nn.utils.clip_grad_norm_(model.parameters(), limit) ;; "
        "nn.utils.clip_grad_norm_(model.parameters(), limit) → scaler.unscale_(optimizer)": "You clip the *scaled* "
        "gradient: the limit then means something else at every scale.",
        "    optimizer.zero_grad()\n → ": "You never clear the gradients. `backward` adds to them, so every step "
        "includes all earlier ones.",
        "    optimizer.zero_grad()\n →  ;; scaler.update() → scaler.update()\n    optimizer.zero_grad()": "You clear "
        "the gradients after the step only. Gradients from before the first step still count: clear them first.",
        "scaler.scale(loss).backward() → scaler.scale(loss).backward()\n    "
        "optimizer.zero_grad(set_to_none=False)": "You set the gradients to zero between the backward pass and the "
        "step, so the step moves nothing.",
        "scaler.scale(loss).backward() → scaler.scale(loss).backward()\n    optimizer.zero_grad()": "You remove the "
        "gradients between the backward pass and the step, so the optimizer and the scaler see none.",
        "    nn.utils.clip_grad_norm_(model.parameters(), limit)\n → ": "The limit has no effect. Before the step, "
        "scale a gradient whose norm is above the limit down to the limit.",
        "clip_grad_norm_ → clip_grad_value_": "You clip each entry separately, which turns the gradient. Scale it down "
        "as a whole: clip_grad_norm_.",
        "nn.utils.clip_grad_norm_(model.parameters(), limit) → for p in model.parameters():\n        "
        "nn.utils.clip_grad_norm_([p], limit)": "You clip each parameter separately. The limit is for the norm of all "
        "gradients together.",
        'parameters(), limit → parameters(), limit, float("inf")': "You limit the largest entry. The limit is for the "
        "norm: the root of the sum of squares.",
        "parameters(), limit → parameters(), 1.0": "You always clip at 1.0. Use `limit`.",
        "    scaler.unscale_(optimizer)\n →  ;; parameters(), limit → parameters(), limit * scaler.get_scale() ;; "
        "scaler.step(optimizer)\n    scaler.update() → optimizer.step()": "You step along the scaled gradient. "
        "`scaler.unscale_` or `scaler.step` divides it by the scale.",
        "scaler.step(optimizer) → optimizer.step()": "After an overflow you still step. `scaler.step(optimizer)` would "
        "skip that step.",
        "scaler.step(optimizer) → scaler.update() ;; scaler.update() → scaler.step(optimizer)": "You update the scaler "
        "before the step. The scaler then no longer knows that it has divided, and `scaler.step` divides again.",
        "    scaler.update()\n → ": "You never update the scaler: after an overflow the scale stays too large forever.",
        "scaler.scale(loss).backward() → scaled = scaler.scale(loss)\n    scaled.backward() ;; loss.item() → "
        "scaled.item()": "You return the scaled loss. A plot needs the loss itself.",
        "loss.item() → loss": "The loss that you return has its graph: a list of such losses keeps the activations of "
        "every step. Take `.item()`.",
        'targets.flatten() → targets.flatten(), reduction="sum"': "You sum over the targets: the rate would have to "
        "change with the batch size. Take the mean.",
        "logits.float().flatten(0, 1), targets.flatten() → logits.float().reshape(len(logits), -1, logits.shape[1]), "
        "targets": "You reshape the logits to (b, v, s), which mixes positions with tokens. Swap the two axes, or "
        "flatten b and s.",
        "logits.float().flatten(0, 1), targets.flatten() → logits[:, -1].float(), targets[:, -1]": "You use the last "
        "position of each text only. Every position has a target.",
        "loss = F → n = max(1, targets.shape[1] - 1)\n    loss = F ;; logits.float() → logits[:, :n].float() ;; "
        "targets.flatten() → targets[:, -n:].flatten()": "You shift the targets. `targets` already holds the next "
        "token of each position.",
        "enabled=dtype is not None → enabled=False": "You ignore `dtype`: with bf16 or fp16, run the forward pass "
        "under `torch.autocast`.",
        "enabled=dtype is not None → enabled=False ;; model(inputs) → model(inputs).to(dtype or torch.float32)": "You "
        "convert the logits when they are done. Run the forward pass itself under `torch.autocast`.",
        "device.type, dtype → device.type, torch.bfloat16": "You use the same 16-bit format for every `dtype`.",
        "enabled=dtype is not None → enabled=False ;; model(inputs) → model.to(dtype or torch.float32)(inputs)": "You "
        "convert the weights to 16 bits. Autocast leaves them in fp32, so that small updates are not lost.",
        ".float() → ": "You compute the loss in 16 bits. Compute it in fp32: under autocast, or from `logits.float()`.",
        "scaler.scale(loss).backward() → with torch.autocast(inputs.device.type, dtype, enabled=dtype is not "
        "None):\n        scaler.scale(loss).backward()": "Your backward pass runs under autocast. End the `with` "
        "block before it: autocast is for the forward pass and the loss.",
        "loss.item() → scaler.scale(loss).item()": "You return the scaled loss. A plot needs the loss itself.",
        "scaler.scale(loss).backward() → loss.backward()": "You do not scale the loss before the backward pass. The "
        "scaler notices it: call scaler.scale(loss).backward().",
        "scaler.scale(loss).backward()\n    scaler.unscale_(optimizer) → loss.backward() ;; scaler.step(optimizer)\n "
        "   scaler.update() → optimizer.step()": "You do not use the scaler. In fp16 small gradients become 0 "
        "without it, and no step is skipped after an overflow.",
        "scaler.unscale_(optimizer) → nn.utils.clip_grad_norm_(model.parameters(), limit) ;; "
        "nn.utils.clip_grad_norm_(model.parameters(), limit) → scaler.unscale_(optimizer) ;; loss.item() → "
        "loss": "You clip the *scaled* gradient: the limit then means something else at every scale.\nThe loss that "
        "you return has its graph: a list of such losses keeps the activations of every step. Take `.item()`.",
    },
)
