"""The open task of notebook 19: a training step that is right, and slow. Its operations are counted, without a clock.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import count as numbers
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import record_function
from torch.utils._pytree import tree_leaves

from lmcourse.exercises.measured import measured_call, one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.exercises.rules import WithoutCompiler
from lmcourse.exercises.slips import slipped

State = dict[str, Any]
Step = Callable[[State, State, Tensor, int], Any]
"""Takes weights and moments by name, texts, and the number of the step from 1 on; returns the loss."""

LABELS = ("positions", "mask", "attention", "norm", "gelu", "backward", "optimizer")
"""The parts of the given step that a profile shows by name."""

_SHAPES = 2 * [(128, 384), (128, 128), (128, 512), (512, 128)] + [(128, 256)]
PRODUCTS = 3 * [[2 * 1024 * m * n, 4 * (1024 * m + m * n + 1024 * n)] for m, n in _SHAPES]
"""FLOPs and bytes of the products of 1,024 tokens with the weights: forward, and twice in the backward pass."""

OPERATIONS, MEGABYTES, DOUBLE, WAITS = "operations", "MB", "in fp64", "waits"
NEAR = 1e-4
FLOPS = 7_850_000_000
"""The FLOPs of the products with weights in three steps."""

LOSS = "The loss of your first step is {yours:.4f}, and should be {right:.4f}: the mean of all texts, in fp32."
WEIGHTS = (
    "The loss of your first step is right, but the weights after it differ by up to {by:.1g}. Are the gradient and the "
    "optimizer the given ones, in fp32?"
)
LATER = (
    "Your first step is right, and step {step} is not: its {what} differ by {by:.1g}. What has to last from one step "
    "to the next, and what must not?"
)
FORM = "Return the loss: one number."
LARGE = "At the full size the loss or weights after your step {step} differ by {by:.1g} from the given ones."
UNSEEN = "Of the work that a step needs, only {part:.0%} was seen. Compute where you are called, in every step."


def slow_step(weights: dict[str, Any], moments: dict[str, list[Any]], texts: Any, t: int) -> Any:
    """Train on the texts: change the weights and their two moments, and return the loss."""
    T, D, heads = texts.shape[1] - 1, 128, 4

    @record_function("positions")
    def positions() -> Tensor:
        table = torch.zeros(T, D, dtype=torch.float64, device=texts.device)
        for p in range(T):
            angles = p / 10000 ** (torch.arange(0, D, 2, dtype=torch.float64, device=texts.device) / D)
            table[p, 0::2], table[p, 1::2] = angles.sin(), angles.cos()
        return table.float()

    @record_function("mask")
    def mask() -> Tensor:
        table = torch.full((T, T), -math.inf, dtype=torch.float64, device=texts.device)
        for row in range(T):
            table[row, : row + 1] = 0
        return table

    @record_function("norm")
    def norm(x: Tensor, scale: Tensor) -> Tensor:
        mean = (x * x).sum(-1, keepdim=True) / D
        return x * (1 / torch.sqrt(mean + 1e-6)) * scale

    @record_function("gelu")
    def gelu(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    @record_function("attention")
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / math.sqrt(D / heads) + mask()
        return (scores.softmax(-1) @ v.double()).float()

    def loss_of(some: Tensor) -> Tensor:
        h = weights["embed"][some[:, :-1]] + positions()
        for layer in "01":
            qkv = norm(h, weights["norm1" + layer]) @ weights["qkv" + layer].T
            mixed = attention(*qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4))
            h = h + mixed.transpose(1, 2).flatten(2) @ weights["out" + layer].T
            h = h + gelu(norm(h, weights["norm2" + layer]) @ weights["up" + layer].T) @ weights["down" + layer].T
        return F.cross_entropy((h @ weights["head"].T).flatten(0, 1), some[:, 1:].flatten())

    loss = 0.0
    for w in weights.values():
        w.grad = None
    for text in texts.split(1):
        part = loss_of(text) / len(texts)
        with record_function("backward"):
            part.backward()  # type: ignore[no-untyped-call]
        loss += part.item()
    length = math.sqrt(sum(w.grad.norm().item() ** 2 for w in weights.values()))
    scale = 1.0 / max(1.0, length)  # the gradient is at most 1 long
    with torch.no_grad(), record_function("optimizer"):  # AdamW without decay
        for name, w in weights.items():
            gradient = w.grad * scale
            mean = moments[name][0] = 0.9 * moments[name][0] + 0.1 * gradient
            square = moments[name][1] = 0.99 * moments[name][1] + 0.01 * gradient * gradient
            w -= 0.001 * (mean / (1 - 0.9**t)) / ((square / (1 - 0.99**t)).sqrt() + 1e-8)
    return loss


_TANH = "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))"
_LOOP = """for name, w in weights.items():
            gradient = w.grad * scale
            mean = moments[name][0] = 0.9 * moments[name][0] + 0.1 * gradient
            square = moments[name][1] = 0.99 * moments[name][1] + 0.01 * gradient * gradient
            w -= 0.001 * (mean / (1 - 0.9**t)) / ((square / (1 - 0.99**t)).sqrt() + 1e-8)"""
_KERNEL = """gradients, steps = [w.grad for w in weights.values()], [torch.full((), float(t)) for _ in weights]
        torch._foreach_mul_(gradients, scale)
        settings = dict(lr=0.001, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
        both = ([moments[name][i] for name in weights] for i in (0, 1))
        torch._fused_adam_([*weights.values()], gradients, *both, [], steps, **settings)"""

MENDS = {
    "tables": '@record_function("positions") → @cache ;; @record_function("mask") → @cache ;; torch.zeros(T, D, '
    "dtype=torch.float64, → torch.zeros(T, D, ;; for p in range(T) → for p in [torch.arange(T, device=texts.device)[:, "
    "None]] ;; (torch.arange(0, D, 2, dtype=torch.float64, → (torch.arange(0, D, 2, ;; table[p, 0::2], table[p, 1::2] "
    "→ table[:, 0::2], table[:, 1::2] ;; for row in range(T):\n            table[row, : row + 1] = 0\n        return "
    "table → return table.triu(1)",
    "texts": "texts.split(1) → [texts] ;; loss_of(text) / len(texts) → loss_of(text)",
    "attention": "scores = q @ k.mT / math.sqrt(D / heads) + mask()\n        return (scores.softmax(-1) @ "
    "v.double()).float() → return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "norm": "mean = (x * x).sum(-1, keepdim=True) / D\n        return x * (1 / torch.sqrt(mean + 1e-6)) * scale → "
    "return F.rms_norm(x, (D,), scale, 1e-6)",
    "gelu": f'{_TANH} → F.gelu(x, approximate="tanh")',
    "waits": "part.item() → part.detach() ;; math.sqrt(sum(w.grad.norm().item() ** 2 for w in weights.values())) → "
    "torch.stack([w.grad.norm() for w in weights.values()]).norm() ;; max(1.0, length) → "
    "length.clamp(min=1.0)",
    "optimizer": f"{_LOOP} → {_KERNEL}",
}
"""Edits of `slow_step`, each of which mends one thing."""

_SUM = "Your loss is the sum over the texts. The given one is their mean."
_TWICE = "Your loss is divided by the number of texts twice: over several texts `cross_entropy` is the mean already."

MISTAKES = {
    "+ mask() → + mask().clamp(min=0)": "Your attention reads later tokens: the mask is gone.",
    "+ mask() → + mask().T": "Your mask is the wrong way round: each token reads only itself and later ones.",
    "/ math.sqrt(D / heads) → ": "Your scores are not divided by √32, the root of a head's width.",
    f"{_TANH} → F.gelu(x)": 'This model has the GELU with tanh. `F.gelu` has another by default: `approximate="tanh"`.',
    "loss_of(text) / len(texts) → loss_of(text)": _SUM,
    "part.item() → part.item() * len(texts)": _SUM,
    "/ len(texts) → / len(texts) ** 2": _TWICE,
    "part.item() → part.item() / len(texts)": _TWICE,
    "loss += part.item() → loss = part.item()": "You return the loss of the last text only.",
    "T, D, heads = → texts = texts[:1]\n    T, D, heads =": "Your step reads the first text only.",
    "T, D, heads = → texts = texts[-1:]\n    T, D, heads =": "Your step reads the last text only.",
    "table[p, 0::2], table[p, 1::2] → table[p, : D // 2], table[p, D // 2 :]": "Your table of positions has all sines "
    "before all cosines. In the given one they alternate.",
    " + positions() → ": "Your step does not add the positions.",
    "    for w in weights.values():\n        w.grad = None\n → ": "The gradients of one step are added to those of "
    "the next: nothing clears them before `backward`.",
    "w.grad * scale → w.grad / max(1.0, w.grad.norm().item())": "You shorten the gradient of each tensor by itself. "
    "The given step makes the whole gradient 1 long, with one factor for all tensors.",
    "w.grad * scale → w.grad": "You do not shorten the gradient. Where it is longer than 1, the given step makes it 1 "
    "long.",
    "max(1.0, length) → length": "You make every gradient 1 long. Only longer ones are shortened.",
    "math.sqrt(sum(w.grad.norm().item() ** 2 for → (sum(w.grad.norm().item() for": "You add up the lengths of the "
    "tensors. The length of the whole gradient is the root of the sum of their squares.",
    "mean = moments[name][0] = → mean = ;; square = moments[name][1] = → square =": "The moments are the old ones "
    "after your step. Change them in place, or store the new ones in `moments`.",
    "0.9 * moments[name][0] + →  ;; 0.99 * moments[name][1] + →  ;; 0.9**t → 0.9 ;; 0.99**t → 0.99": "Each of your "
    "steps begins with moments of zero, as a new optimizer does.",
    " / (1 - 0.9**t) →  ;;  / (1 - 0.99**t) → ": "You do not divide the moments by 1 − 0.9ᵗ and 1 − 0.99ᵗ, which "
    "corrects them in the first steps.",
    "0.9**t → 0.9 ** (t + 1) ;; 0.99**t → 0.99 ** (t + 1)": "You correct the moments for step t + 1, one too far: "
    "some of torch's optimizers add 1 to the step that they are given.",
    "sqrt() + 1e-8 → add(1e-8).sqrt()": "You add 1e-8 below the root. The given step adds it to the root.",
    "w -= 0.001 → w *= 1 - 0.001 * 0.01\n            w -= 0.001": "Your weights decay by 0.01, the default of torch's "
    "AdamW. The given step has no decay.",
    "0.99 * moments → 0.999 * moments ;; 0.01 * gradient → 0.001 * gradient ;; 0.99**t → 0.999**t": "Your second "
    "moment decays by 0.999, torch's default. The given step has 0.99.",
}
"""Edits of `slow_step` with other weights or losses, and what to say of an answer that computes the same."""


class _Count(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Counts the operators of a step, the bytes that they read and write, those in fp64, and the waits for a number."""

    def __init__(self) -> None:
        super().__init__()
        self.row = dict.fromkeys((OPERATIONS, MEGABYTES, DOUBLE, WAITS), 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace == "profiler":
            return result
        tensors = [one for one in tree_leaves((args, kwargs, result)) if isinstance(one, Tensor)]
        self.row[OPERATIONS] += 1
        self.row[MEGABYTES] += 0 if func.is_view or "view" in func.name() else sum(one.nbytes for one in tensors)
        self.row[DOUBLE] += any(one.dtype == torch.float64 for one in tensors)
        self.row[WAITS] += "_local_scalar_dense" in func.name()
        return result


def make(
    seed: int, texts: int = 8, length: int = 128, scale: float = 1.0, device: torch.device | str = "cpu"
) -> tuple[State, State, Tensor]:
    """Draw weights, all matrices times `scale`, zeros for their moments, and batches of texts for three steps."""
    random = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, ...]] = {"embed": (256, 128), "head": (256, 128)}
    for layer in "01":
        shapes |= {"qkv" + layer: (384, 128), "out" + layer: (128, 128), "up" + layer: (512, 128)}
        shapes |= {"down" + layer: (128, 512), "norm1" + layer: (128,), "norm2" + layer: (128,)}
    weights = {}
    for name, shape in shapes.items():
        w = torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=random) * scale * shape[1] ** -0.5
        weights[name] = w.to(device).requires_grad_()
    moments = {name: [torch.zeros_like(w), torch.zeros_like(w)] for name, w in weights.items()}
    return weights, moments, torch.randint(256, (3, texts, length + 1), generator=random).to(device)


def running(step: Step, device: torch.device | str = "cpu") -> Callable[[], object]:
    """Return a function that does the next step of a training run."""
    weights, moments, batches = make(0, device=device)
    steps = numbers(1)
    return lambda: step(weights, moments, batches[0], next(steps))


def counted(step: Step) -> dict[str, int]:
    """Count the second step: what the first one keeps is not made again."""
    return _train(step, *make(0))[1][2]


def mended(*mends: str) -> Step:
    """Return the given step with some of its faults mended."""
    return slipped("fast_step", slow_step, " ;; ".join(MENDS[mend] for mend in mends)) if mends else slow_step


def all_but(*faults: str) -> Step:
    """Return the given step with all its faults mended but these."""
    return mended(*(mend for mend in MENDS if mend not in faults))


Record = tuple[float, Tensor, dict[str, int]]
Records = list[Record]
"""After each step: its loss, all weights, and what it counted."""


def _train(step: Step, weights: State, moments: State, batches: Tensor, count: bool = True) -> Records:
    records = []
    for t, texts in enumerate(batches, start=1):
        counts = _Count()
        with counts if count else nullcontext():
            loss = step(weights, moments, texts, t)
        if not isinstance(loss, float) and not (isinstance(loss, Tensor) and loss.numel() == 1):
            raise Unfit(FORM)
        flat = torch.cat([w.detach().flatten().double() for w in weights.values()])
        records.append((float(loss), flat, {**counts.row, MEGABYTES: round(counts.row[MEGABYTES] / 1e6)}))
    return records


def _differences(yours: Records, right: Records) -> list[tuple[float, float]]:
    """How far losses and weights differ, step by step."""
    pairs = zip(yours, right, strict=True)
    return [(abs(one[0] - other[0]), (one[1] - other[1]).abs().max().item()) for one, other in pairs]


def _tiny(step: Step) -> list[Records]:
    """Train on short texts: with gradients longer than 1, and with shorter ones but in the second step."""
    records = []
    for scale in (1.0, 0.3):
        weights, moments, batches = make(0, texts=6, length=16, scale=scale)
        batches[1] = 7
        records.append(_train(step, weights, moments, batches, count=False))
    return records


@cache
def _expected(edits: str) -> list[Records]:
    return _tiny(slipped("fast_step", slow_step, edits) if edits else slow_step)


def _check(yours: Sequence[Records], right: Sequence[Records]) -> None:
    """Raise Unfit with the first loss or weights that differ."""
    for one, other in zip(yours, right, strict=True):
        for step, (loss, weights) in enumerate(_differences(one, other), start=1):
            if not loss <= NEAR and step == 1:
                raise Unfit(LOSS.format(yours=one[0][0], right=other[0][0]))
            if not max(loss, weights) <= NEAR:
                what, by = ("losses", loss) if not loss <= NEAR else ("weights", weights)
                raise Unfit(WEIGHTS.format(by=by) if step == 1 else LATER.format(step=step, what=what, by=by))


@one_thread()
def inspect_step(step: Step) -> None:
    """Compare a step with the given one on short texts; raise Unfit if losses or weights differ."""
    yours = _tiny(step)
    try:
        _check(yours, _expected(""))
    except Unfit:
        for edits, sentence in MISTAKES.items():
            pairs = zip(yours, _expected(edits), strict=True)
            if all(max(by) <= NEAR for pair in pairs for by in _differences(*pair)):
                raise Unfit(sentence) from None
        raise


@cache
def _at_full_size(seed: int) -> Records:
    return _train(slow_step, *make(seed))


@one_thread()
def measure_step(step: Step, seed: int) -> dict[str, float]:
    """Return what a step costs after the first one; check losses and weights of the same run."""
    found: Records = []
    call = measured_call(lambda: found.extend(_train(step, *make(seed))))
    for number, (loss, weights) in enumerate(_differences(found, _at_full_size(seed)), start=1):
        if not max(loss, weights) <= NEAR:
            raise Unfit(LARGE.format(step=number, by=max(loss, weights)))
    rows = [row for *_, row in found[1:]]
    seen = min(call.flops / FLOPS, *(row[MEGABYTES] / 150 for row in rows), *(row[OPERATIONS] / 100 for row in rows))
    if seen < 1:
        raise Unfit(UNSEEN.format(part=seen))
    return {name: max(row[name] for row in rows) for name in rows[0]}
