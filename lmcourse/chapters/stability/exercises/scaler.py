"""The exercise on dynamic loss scaling."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

WAYS = "s = LossScaler(1024.0, interval=2)\n"


class _Reference:
    """A dynamic loss scaler, with the mistakes that people make as switches for those who need them."""

    grows_after_overflow = False
    in_half = False
    sees_infinity = True
    skips = True
    halves = True
    grows = 2.0
    counter_stays = False

    def __init__(self, scale: float = 65536.0, interval: int = 2000) -> None:
        self.scale, self.interval, self._good = scale, interval, 0

    def unscale(self, gradients: list[Tensor]) -> list[Tensor] | None:
        finite = all(bool(self._is_finite(gradient).all()) for gradient in gradients)
        wide = [gradient if self.in_half else gradient.float() for gradient in gradients]
        result = [(gradient / self.scale).float() for gradient in wide]
        self._update(finite)
        return result if finite or not self.skips else None

    def _is_finite(self, gradient: Tensor) -> Tensor:
        return gradient.isfinite() if self.sees_infinity else ~gradient.isnan()

    def _update(self, finite: bool) -> None:
        self._good = self._good + 1 if finite else (self._good if self.grows_after_overflow else 0)
        if not finite and self.halves:
            self.scale /= 2
        elif finite and self._good >= self.interval:
            self.scale *= self.grows
            self._good = self._good if self.counter_stays else 0


def _half(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float16)


def _walk(name: str, random: Random, scale: float, interval: int, steps: int) -> Case:
    """Steps of which some overflow; what is asked for is every result and every scale."""
    overflows = [random.random() < 0.3 for _ in range(steps)]
    overflows[random.randrange(steps)] = True
    told = "\n".join(f"s.unscale([{'bad' if bad else 'good'}])\ns.scale" for bad in overflows)
    good = _half(random.uniform(1, 60), -random.uniform(1, 60))
    lines = f"s = LossScaler({scale}, interval={interval})\n{told}"
    return script(name, lines, good=good, bad=_half(1.0, random.choice([torch.inf, -torch.inf, torch.nan])))


def _hidden(random: Random) -> list[Case]:
    calm = "\n".join(["s.unscale([good])"] * 7)
    tiny = _half(random.randint(1, 9) * 6e-8)
    broken = "p = s.unscale([good, bad])\np\ns.scale"
    return [
        *(_walk("other runs", random, 2.0 ** random.randint(4, 14), random.randint(2, 4), 12) for _ in range(3)),
        script("steps without overflow", f"s = LossScaler(8.0, interval=3)\n{calm}\ns.scale", good=_half(3.0)),
        script("gradients near the bottom of fp16", "s = LossScaler(2.0**15)\ns.unscale([g])", g=tiny),
        script("one bad tensor of two", WAYS + broken, good=_half(2.0), bad=_half(torch.nan, random.random())),
    ]


LossScaler = Exercise(
    "LossScaler",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_Reference,
    cases=[
        script("divides by the scale", WAYS + "s.unscale([g])\ns.scale", g=_half(1024.0, -512.0)),
        script("an overflow", WAYS + "s.unscale([g])\ns.scale", g=_half(1.0, torch.inf)),
        script("NaN", WAYS + "s.unscale([g])\ns.scale", g=_half(torch.nan)),
        script("grows after two good steps", WAYS + "s.unscale([g])\ns.scale\ns.unscale([g])\ns.scale", g=_half(4.0)),
        script(
            "good, bad, good: not two in a row",
            WAYS + "s.unscale([g])\ns.unscale([bad])\ns.unscale([g])\ns.scale",
            g=_half(4.0),
            bad=_half(torch.inf),
        ),
        script(
            "counts anew after growing",
            WAYS + "s.unscale([g])\ns.unscale([g])\ns.unscale([g])\ns.scale\ns.unscale([g])\ns.scale",
            g=_half(4.0),
        ),
        script("tiny in the end", "s = LossScaler()\ns.unscale([g])", g=_half(0.001)),
        script(
            "two tensors, one of them bad", WAYS + "s.unscale([g, bad])\ns.scale", g=_half(1.0), bad=_half(-torch.inf)
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep two things: the scale, and how many good steps came in a row.",
        "gradient.isfinite().all() must hold for every tensor. If not: halve the scale, count from 0, return None.",
        "If so: divide gradient.float() by the scale *as it was*, count, and at `interval` double it and count from 0.",
    ],
    forbid=["torch.amp", "torch.cuda"],
    tolerance=Tolerance(1e-6),
)


@LossScaler.misconception(
    "You divide in fp16. Small gradients become 0 again, which is what the scale was to prevent: go to float32 first."
)
class DividesInHalf(_Reference):
    in_half = True


@LossScaler.misconception("You look for NaN only. An overflow in fp16 is infinite, and as useless.")
class InfinityMissed(_Reference):
    sees_infinity = False


@LossScaler.misconception(
    "After an overflow you still return gradients. One infinite update ruins all weights: return None, skip the step."
)
class StepNotSkipped(_Reference):
    skips = False


@LossScaler.misconception("After an overflow the scale stays. The next step will overflow as well: halve it.")
class NeverHalved(_Reference):
    halves = False


@LossScaler.misconception(
    "The scale never grows back. One overflow early in a run would cost small gradients for ever."
)
class NeverGrows(_Reference):
    grows = 1.0


@LossScaler.misconception("You count good steps across an overflow. They must come in a row: start from 0 after each.")
class CountsAcrossOverflows(_Reference):
    grows_after_overflow = True


@LossScaler.misconception("Once grown, it grows at every step. Start counting from 0 after growing.")
class GrowsAtEveryStep(_Reference):
    counter_stays = True
