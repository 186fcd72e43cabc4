"""The open task of notebook 10: a deep post-norm model whose branches run the learner's stream.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.normalization_and_blocks.runs import LENGTH, story_bytes, tiny_llama, train
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import Residual
from lmcourse.nn.norm import TensorFunction

Stream = Callable[[Tensor, TensorFunction, TensorFunction, int], Tensor]
Rescue = Callable[[Transformer], Stream]

DEPTHS = (16, 32)
FRESH = 4.5
"""The least loss before the first step, in nats: untrained models have 4.8 to 5.5."""
SILENT = 0.002
"""A branch that changes the stream by less than this fraction after training is silent."""
AT_REST = 0.4
"""Largest difference by which the loss after training may exceed that of the last steps, in nats."""

NO_FUNCTION = "`rescue` must return a function, `stream`, also if it only changes weights."
NO_TENSOR = "Your stream must return a tensor of the shape of x: what `norm` returned."
NO_NORM = "Your stream never calls `norm`. The norm of the sum is the last thing that happens in every branch."
PRE = "This is pre-norm: the norm comes before f, and nothing normalises the sum. Here the norm comes last."
OUTPUT = "Your norm is on the branch, and nothing normalises the sum. Here the norm comes last."
AFTER = "Something happens to the stream after the norm. Return what `norm` returned, unchanged."
NO_BRANCH = "Your stream never calls f: the branch has gone."
NO_STREAM = "The old stream has gone: without the branch, your result does not depend on x."
MEMORY = "Your stream depends on tensors of earlier calls. Only x, f and the number of calls may decide."
FUTURE = "Your stream reads the future: a token's result depends on later tokens."
NOT_ALONE = "Your trained model is much worse without later tokens and earlier calls: its stream has used them."
TRAINED = (
    "Before the first step, your model already knows the text. `rescue` may change weights, but it must not train."
)
CHANGED = "You changed something else in the model than weights. Leave its modules, settings and hooks as they are."
SHAPES = "`rescue` changed the shapes or the number of the weights. Give them other numbers only."
LARGE = "Your new parameters are too many: a branch may have one new number for each feature of the stream, at most."
DEAD = "After training, every fourth branch or more moves the stream by less than 0.2 %: your model is not so deep."


class KnownRun(NamedTuple):
    """A run that was measured before: what is left of the embedding in the untrained model, and the loss at the end."""

    name: str
    blocks: int
    share: float
    loss: float


KNOWN_RUNS = (
    KnownRun("branch times 1", 16, 0.05, 3.10),
    KnownRun("branch times 0.7", 16, 0.13, 3.10),
    KnownRun("branch times 0.5", 16, 0.33, 2.13),
    KnownRun("branch times 0.42", 16, 0.45, 1.69),
    KnownRun("branch times 0.3", 16, 0.65, 1.55),
    KnownRun("branch times 0.21", 16, 0.81, 1.52),
    KnownRun("branch times 0.1", 16, 0.95, 1.64),
    KnownRun("branch times 0.05", 16, 0.99, 1.83),
    KnownRun("branch times 0.02", 16, 1.00, 2.04),
    KnownRun("branch times 1", 32, -0.01, 3.10),
    KnownRun("branch times 0.5", 32, 0.07, 3.10),
    KnownRun("branch times 0.35", 32, 0.26, 3.10),
    KnownRun("branch times 0.3", 32, 0.41, 2.37),
    KnownRun("branch times 0.15", 32, 0.83, 1.54),
    KnownRun("branch times 0.1", 32, 0.92, 1.54),
    KnownRun("branch times 0.05", 32, 0.98, 1.70),
    KnownRun("branch times 0.02", 32, 1.00, 1.97),
    KnownRun("small weights, as in GPT-2", 16, 1.00, 2.00),
    KnownRun("small weights, as in GPT-2", 32, 1.00, 1.96),
)
"""Post-norm models with other rules: seed 0, 60 steps."""


class OwnStream(nn.Module):
    """A post-norm branch that a function of the learner joins to the stream.

    Attributes:
        probing: whether each half of the batch has a separate call, with a call between them in which f returns 0. A
            stream that keeps tensors then mixes up the texts.
        alone: what the call without f returned.
        moved: how far f moved the stream: the length of the difference over the length.
    """

    def __init__(self, branch: Residual, stream: Stream, number: int) -> None:
        super().__init__()
        self.layer, self.post_norm = branch.layer, branch.post_norm
        self.stream, self.number = stream, number
        self.probing = False
        self.alone = torch.empty(0)
        self.moved = 0.0

    def forward(self, x: Float[Tensor, "b s d"], *context: Any) -> Float[Tensor, "b s d"]:
        """Return the stream after this branch."""

        def layer(h: Tensor) -> Tensor:
            added: Tensor = self.layer(h, *context)
            return added

        if not self.probing:
            return self._joined(x, layer)
        first, second = x.chunk(2)
        joined = self._joined(first, layer)
        self.alone = self._joined(first, lambda h: 0 * layer(h))
        self.moved = ((joined - self.alone).norm() / joined.norm()).item()
        return torch.cat([joined, self._joined(second, layer)])

    def _joined(self, x: Tensor, layer: TensorFunction) -> Tensor:
        """Return what the stream's norm returned last; raise Unfit if the stream returns something else."""
        read: list[Tensor] = []
        normed: list[Tensor] = []
        given: list[Tensor] = []

        def f(h: Tensor) -> Tensor:
            read.append(h)
            return layer(h)

        def norm(h: Tensor) -> Tensor:
            normed.append(self.post_norm(h))
            given.append(normed[-1].clone())  # the stream goes on with a tensor that the learner does not have
            return given[-1]

        y = self.stream(x.view_as(x), f, norm, self.number)
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise Unfit(NO_TENSOR)
        if not normed:
            raise Unfit(NO_NORM)
        if not torch.allclose(y, normed[-1], rtol=0, atol=0, equal_nan=True):
            before = any(h is one for h in read for one in given)
            on_branch = torch.allclose(y - normed[-1], x, atol=1e-4)
            raise Unfit(PRE if before else OUTPUT if on_branch else AFTER)
        if not read:
            raise Unfit(NO_BRANCH)
        return normed[-1]


def rescued(rescue: Rescue, blocks: int, seed: int = 0) -> Transformer:
    """Build an untrained post-norm model that `rescue` has changed and whose branches run its stream.

    Raises:
        Unfit: the answer does not keep to the rules.
    """
    model = tiny_llama(blocks, "post", seed)
    settings, shapes = _settings(model), _shapes(model)
    with torch.no_grad():
        stream = rescue(model)
    if not callable(stream):
        raise Unfit(NO_FUNCTION)
    if _settings(model) != settings:
        raise Unfit(CHANGED)
    now = _shapes(model)
    if {name: now.get(name) for name in shapes} != shapes:
        raise Unfit(SHAPES)
    if sum(shape.numel() for name, shape in now.items() if name not in shapes) > 2 * blocks * model.config.d_model:
        raise Unfit(LARGE)
    parts = [(block, part, getattr(block, part)) for block in model.blocks for part in ("attention", "feed_forward")]
    for number, (block, part, branch) in enumerate(parts):
        setattr(block, part, OwnStream(branch, stream, number))
    return model


@one_thread()
def inspect_rescue(rescue: Rescue) -> None:
    """Raise Unfit if an answer breaks a rule of the task in an untrained model."""
    for blocks in DEPTHS:
        _check_untrained(rescued(rescue, blocks))
    texts = _windows(16)[:, :-1]
    middle = LENGTH // 2
    others = torch.cat([texts[:, :middle], texts.flip(0)[:, middle:]], dim=1)
    as_is, changed = (_logits(rescued(rescue, DEPTHS[0]), each)[:, middle - 1] for each in (texts, others))
    if not torch.allclose(as_is, changed, atol=1e-3, equal_nan=True):
        raise Unfit(FUTURE)
    model = rescued(rescue, DEPTHS[0])
    probed = _logits(model, texts, probing=True)[:, middle - 1]
    if any(torch.allclose(branch.alone, branch.alone[:1, :1]) for branch in _branches(model)):
        raise Unfit(NO_STREAM)
    if (probed - as_is).norm() > 0.5 * as_is.norm():  # a factor that grows with the calls changes less
        raise Unfit(MEMORY)


@one_thread()
def measure_rescue(rescue: Rescue, seed: int) -> dict[str, float]:
    """Train models of both depths for 60 steps; return the mean loss of the last ten, in nats per byte, by depth."""
    ends = {}
    for blocks in DEPTHS:
        model = rescued(rescue, blocks, seed)
        _check_untrained(model)
        settings = _settings(model)
        ends[f"{blocks} blocks"] = end = train(model, seed).end
        if _settings(model) != settings:
            raise Unfit(CHANGED)
        _check_trained(model, end)
    return ends


def _check_untrained(model: Transformer) -> None:
    """Raise Unfit if a model predicts the stories better than an untrained one, at any temperature."""
    windows = _windows(8)
    logits = _logits(model, windows[:, :-1])
    if min(next_token_loss(scale * logits, windows[:, 1:]).item() for scale in (1, 3, 10, 30)) < FRESH:
        raise Unfit(TRAINED)


def _check_trained(model: Transformer, end: float) -> None:
    """Raise Unfit if a trained model needs what it must not have: later tokens, tensors of earlier calls, fewer blocks.

    Only the last byte of each window is predicted, which has no future, and each branch is probed. A model that used
    the future, or its memory, is then much worse than at the `end` of its training, whatever its stream does meanwhile.
    """
    windows = _windows(256)
    logits = _logits(model, windows[:, :-1], probing=True)[:, -1:]
    if next_token_loss(logits, windows[:, -1:]).item() > end + AT_REST:
        raise Unfit(NOT_ALONE)
    silent = [branch.moved < SILENT for branch in _branches(model)]
    if 4 * sum(silent) >= len(silent):  # a learned factor may happen to be 0
        raise Unfit(DEAD)


@torch.no_grad()
def _logits(model: Transformer, tokens: Int[Tensor, "b s"], *, probing: bool = False) -> Float[Tensor, "b s v"]:
    """Return the logits; `probing` for all branches (see `OwnStream`)."""
    for branch in _branches(model):
        branch.probing = probing
    torch.manual_seed(0)  # an answer may drop branches at random
    logits: Tensor = model(tokens)
    return logits


def _windows(count: int) -> Int[Tensor, "count length"]:
    """Return parts of the stories, evenly spread: inputs and, one byte later, targets."""
    return story_bytes().unfold(0, LENGTH + 1, 150)[:count]


def _branches(model: Transformer) -> list[OwnStream]:
    return [module for module in model.modules() if isinstance(module, OwnStream)]


def _settings(model: Transformer) -> dict[str, Any]:
    """Return everything but numbers that a model consists of: its modules, with their settings and hooks.

    Lists of parameters are numbers, too: an answer may register some.
    """
    numbers = ("_parameters", "_buffers", "probing", "alone", "moved")
    return {
        name: (type(module), {key: _copied(value) for key, value in vars(module).items() if key not in numbers})
        for name, module in model.named_modules()
        if not isinstance(module, nn.ParameterList)
    }


def _copied(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if not isinstance(one, nn.ParameterList)}


def _shapes(model: Transformer) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}
