"""The exercise on dynamic loss scaling."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

WAYS = "s = LossScaler(1024.0, interval=2)\n"


class CountsUp:
    def __init__(self, scale: float = 65536.0, interval: int = 2000) -> None:
        self.scale, self.interval, self.good = scale, interval, 0

    def unscale(self, gradients: list[Tensor]) -> list[Tensor] | None:
        if not all(gradient.isfinite().all() for gradient in gradients):
            self.scale /= 2
            self.good = 0
            return None
        result = [gradient.float() / self.scale for gradient in gradients]
        self.good += 1
        if self.good >= self.interval:
            self.scale *= 2
            self.good = 0
        return result


def _half(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float16)


def _walk(random: Random, scale: float, interval: int) -> Case:
    """A run of steps, some of which overflow; every result and every scale is compared.

    The first steps let the scale grow, overflow just before it would grow again, and then let it grow twice.
    """
    first = [False] * (2 * interval - 1) + [True] + [False] * 2 * interval
    steps = first + [random.random() < 0.3 for _ in range(8)]
    told = "\n".join(f"s.unscale([{'bad' if bad else 'good'}])\ns.scale" for bad in steps)
    good = _half(random.randint(1, 60), -random.randint(1, 60))  # multiples that fp16 can divide exactly, too
    lines = f"s = LossScaler({scale}, interval={interval})\n{told}"
    return script("other runs", lines, good=good, bad=_half(1.0, random.choice([torch.inf, -torch.inf])))


def _bad_tensor(place: int, bad: float) -> Case:
    """A case with three tensors, one of which contains an infinity or NaN."""
    names = ["good", "good", "good"]
    names[place] = "bad"
    lines = f"{WAYS}s.unscale([{', '.join(names)}])\ns.scale"
    return script("one bad tensor of three", lines, good=_half(2.0, 3.0), bad=_half(1.0, bad, 1.0))


DEFAULTS = "s = LossScaler()\nfor _ in range(1999):\n    s.unscale([g])\ns.scale\ns.unscale([g])\ns.scale"
TWO_SCALERS = (
    "a = LossScaler(8.0, interval=2)\nb = LossScaler(4.0, interval=3)\n"
    "a.unscale([g])\nb.unscale([g])\na.scale\na.unscale([g])\nb.unscale([g])\n(a.scale, b.scale)"
)


def _hidden(random: Random) -> list[Case]:
    calm = "\n".join(["s.unscale([g])\ns.scale"] * 3)
    return [
        *(_bad_tensor(place, bad) for place, bad in enumerate((torch.nan, torch.inf, -torch.inf))),
        script("two bad tensors", WAYS + "s.unscale([bad, bad])\ns.scale", bad=_half(torch.inf)),
        script("a scale of one", "s = LossScaler(1.0)\ns.unscale([bad])\ns.scale", bad=_half(torch.inf)),
        script("several tensors", WAYS + "s.unscale([a, b])", a=_half(2.0, -4.0), b=_half(6.0).reshape(1, 1)),
        script("the top of fp16", WAYS + "s.unscale([g, g])\ns.scale", g=_half(65504.0, 65504.0)),
        script("the bottom of fp16", "s = LossScaler(2.0**15)\ns.unscale([g])", g=_half(6e-8, -3e-7)),
        script("an interval of one", f"s = LossScaler(8.0, interval=1)\n{calm}", g=_half(3.0)),
        script("two scalers", TWO_SCALERS, g=_half(2.0)),
        *(_walk(random, 2.0 ** random.randint(4, 14), interval) for interval in (2, 3, 4)),
    ]


LossScaler = Exercise(
    "LossScaler",
    points=4,
    minutes=10,
    difficulty=3,
    reference=CountsUp,
    cases=[
        script(
            "divides by the scale",
            WAYS + "s.unscale([a, b])\ns.scale",
            a=_half(1024.0, -512.0),
            b=_half(256.0).reshape(1, 1),
        ),
        script("an overflow in both tensors", WAYS + "s.unscale([g, g])\ns.scale", g=_half(1.0, torch.inf)),
        script("NaN, and a scale of 1", "s = LossScaler(1.0, interval=2)\ns.unscale([g])\ns.scale", g=_half(torch.nan)),
        script("grows after two good steps", WAYS + "s.unscale([g])\ns.scale\ns.unscale([g])\ns.scale", g=_half(4.0)),
        script(
            "good, bad, good, good: two in a row at last",
            WAYS + "s.unscale([g])\ns.unscale([bad])\ns.unscale([g])\ns.scale\ns.unscale([g])\ns.scale",
            g=_half(4.0),
            bad=_half(torch.inf),
        ),
        script(
            "counts from 0 after growing",
            "s = LossScaler(1024.0, interval=3)\nfor _ in range(4):\n    s.unscale([g])\ns.scale\n"
            "s.unscale([g])\ns.unscale([g])\ns.scale",
            g=_half(4.0),
        ),
        edge(script("2000 good steps, as the defaults say", DEFAULTS, g=_half(2.0))),
        script("tiny in the end", "s = LossScaler()\ns.unscale([g])", g=_half(0.001)),
        script("finite, though the sum is not", WAYS + "s.unscale([g])\ns.scale", g=_half(60000.0, 60000.0)),
        edge(
            script("a step without gradients", WAYS + "s.unscale([])\ns.scale\ns.unscale([g])\ns.scale", g=_half(4.0))
        ),
        script(
            "two tensors, the second one bad",
            WAYS + "s.unscale([g, bad])\ns.scale",
            g=_half(1.0),
            bad=_half(-torch.inf, 1.0),
        ),
        script(
            "two tensors, the first one bad", WAYS + "s.unscale([bad, g])\ns.scale", g=_half(1.0), bad=_half(torch.inf)
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep two things: the scale, and the number of good steps in a row.",
        "gradient.isfinite().all() must hold for every tensor. If not: halve the scale, count from 0, return None.",
        "If so: divide gradient.float() by the scale *as it was*, count, and at `interval` double it and count from 0.",
    ],
    forbid=["torch.amp", "torch.cuda.amp"],
    tolerance=Tolerance(3e-7),  # a division in float32, or a product with a reciprocal
)


LossScaler.variant(CountsUp)
LossScaler.slips(
    CountsUp,
    {
        "if not all( → if not gradients or not all(": "You treat a step without gradients as an overflow. Return an "
        "empty list and count it as a good step.",
        "gradient.isfinite().all() → gradient.sum().isfinite()": "You look at the sum of a tensor, which overflows "
        "fp16 although all its numbers are finite. Look at every number.",
        "gradient.float() / self.scale → (gradient / self.scale).float()": "You divide in fp16. Small gradients become "
        "0 again, which the scale was meant to prevent: convert to float32 first.",
        "not all(gradient.isfinite().all() → any(gradient.isnan().any()": "You check for NaN but not for infinity. An "
        "fp16 overflow gives infinity.",
        "not all(gradient.isfinite().all() → any(gradient.isinf().any()": "You check for infinity but not for NaN. ∞ − "
        "∞ in a backward pass gives NaN.",
        "if not all( → if not gradients:\n            return None\n        if not all(": "You return None for a step "
        "without gradients. It is a good step: return an empty list, and count it.",
        "gradient.isfinite().all() → gradient.isfinite().any()": "You accept a tensor if *one* of its numbers is "
        "finite. All of them must be.",
        "return None → return [torch.zeros_like(gradient).float() for gradient in gradients]": "After an overflow you "
        "return zeros. Momentum and decay would still move the weights: return None, skip the step.",
        "return None → return [gradient.float() / self.scale / 2 for gradient in gradients if "
        "gradient.isfinite().all()]": "After an overflow you return the tensors that are finite. Return None: the "
        "whole step is skipped.",
        "return None → return [torch.nan_to_num(gradient.float() / self.scale / 2, 0, 0, 0) for gradient in "
        "gradients]": "After an overflow you replace the bad numbers by 0 and return the rest. Return None: the whole "
        "step is skipped.",
        "return None → return [gradient.float() / self.scale / 2 for gradient in gradients]": "After an overflow you "
        "still return gradients. One infinite update can ruin all weights: return None, skip the step.",
        "            self.scale /= 2\n → ": "After an overflow you leave the scale as it is. The next step may "
        "overflow, too: halve it.",
        "self.scale /= 2 → self.scale = max(1.0, self.scale / 2)": "Your scale stops at 1. After an overflow it "
        "halves, whatever it is.",
        "self.scale /= 2 → self.scale //= 2": "You halve with `//`, so half of 1 is 0. Divide with `/`.",
        "self.scale /= 2 → self.scale /= 2 ** sum(not gradient.isfinite().all() for gradient in gradients)": "You "
        "halve once for each bad tensor. One step with an overflow halves the scale once.",
        "            self.scale *= 2\n → ": "Your scale never grows. After one early overflow, small gradients would "
        "be lost for the rest of the run.",
        "            self.good = 0\n            return →             return": "You count good steps across an "
        "overflow. They must come in a row: start from 0 after each.",
        "            self.good = 0\n        return →         return": "After growing once, your scale grows at every "
        "step. Start counting from 0 after growing.",
        "for gradient in gradients):\n            self.scale /= 2 → for gradient in gradients[:1]):\n            "
        "self.scale /= 2": "Only the first tensor decides whether there was an overflow. One bad number in any of them "
        "spoils the step.",
        "for gradient in gradients):\n            self.scale /= 2 → for gradient in gradients[-1:]):\n            "
        "self.scale /= 2": "Only the last tensor decides whether there was an overflow. One bad number in any of them "
        "spoils the step.",
        "all(gradient.isfinite().all() for gradient in gradients) → gradients[-1].isfinite().all()": "Only the last "
        "tensor decides whether there was an overflow. One bad number in any of them spoils the step.",
        "        result = [gradient.float() / self.scale for gradient in gradients]\n →  ;; return result → return "
        "[gradient.float() / self.scale for gradient in gradients]": "After growing you divide by the new scale. These "
        "gradients were made with the old one.",
        ">= self.interval → > self.interval": "Your scale grows one good step too late. After `interval` good steps in "
        "a row it doubles.",
        ">= self.interval → >= self.interval - 1": "Your scale grows one good step too early. After `interval` good "
        "steps in a row it doubles.",
        "self.good >= self.interval → self.good": "Your scale doubles after every good step. It takes `interval` good "
        "steps in a row.",
        "gradient.float() / self.scale → gradient.float()": "You return the gradients of the scaled loss. Divide them "
        "by the scale.",
        "gradient.float() / → gradient /": "You divide in fp16 and return it. Convert to float32 first.",
        "gradient.float() / → gradient.float() *": "You multiply the gradients by the scale. The loss was multiplied "
        "already: divide them.",
        "self.good += 1 → self.good += len(gradients)": "You count the tensors. A step counts once, with two tensors "
        "or with none.",
        "self.good += 1 → self.good += bool(gradients)": "You do not count a step without gradients. It is a good step "
        "like any other.",
    },
)
