"""The open task of notebook 12: the trained model in files with a stranger's habits, and a text to hear them by.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from lmcourse.data.help_texts import help_texts
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Remark, Unfit
from lmcourse.models.parity.parts import COURSE_PARTS, decoder, decoder_sizes, decoder_weights
from lmcourse.pretrained import load_pretrained

Weights = dict[str, Any]
Loss = Callable[[Weights], float]
Decipher = Callable[[Weights, dict[str, Any], Loss], Weights]

SPEAK, CALLS = "files that speak", "calls of loss per file"
FILES = (4, 7, 10, 15, 17, 20, 25, 26)
HIDDEN_FILES = (3, 5, 12, 13, 16, 22, 29, 30)
"""The files of the check and of grading: bit 0 says whether a file has the first habit, and four of eight have each, so
that no order of all 32 readings is better than another."""
TEXT = slice(2048, 2176)
"""The place of the text in the help texts that are held out."""
MOST_CALLS = 200
SAME = 1e-5
"""Largest difference of a returned weight from the right one."""

NO_WEIGHTS = "Return the weights: a dictionary with the names and shapes of `file`. Yours {what}."
CHANGED = "Your search changes `file`. Make new dictionaries and tensors, or the next reading starts from a wrong file."
TOO_MANY = f"Your search calls `loss` more than {MOST_CALLS} times for one file. There are 32 ways to read it."
UNKNOWN = "your weights have no set of the habits: a reader is wrong, or two changed places"
ENDED = "Of some file, you return a reading whose loss is above 3.5. That reading is wrong: search on."
ALL_TRIED = "You try all readings of each file. The right one is the only one below 3.5: stop as soon as you have it."
UNREADABLE = "You call `loss` with weights that `decoder` cannot read: {what}."


def _in_halves(layer: Weights, sizes: dict[str, int]) -> Weights:
    last = sizes["kv_heads"] * sizes["d_head"]
    rotated, values = layer["qkv"][:-last], layer["qkv"][-last:]
    halves = rearrange(rotated, "(head pair two) d -> (head two pair) d", pair=sizes["d_head"] // 2, two=2)
    return layer | {"qkv": torch.cat([halves, values])}


def _by_group(layer: Weights, sizes: dict[str, int]) -> Weights:
    parts = layer["qkv"].split([sizes[name] * sizes["d_head"] for name in ("heads", "kv_heads", "kv_heads")])
    return layer | {"qkv": torch.cat([part.unflatten(0, (sizes["kv_heads"], -1)) for part in parts], 1).flatten(0, 1)}


def _scales_minus_1(part: Weights) -> Weights:
    return part | {name: part[name] - 1 for name in ("norm_1", "norm_2", "norm") if name in part}


HABITS: dict[str, Callable[[Weights, dict[str, int]], Weights]] = {
    "halves": _in_halves,
    "group by group": _by_group,
    "out transposed": lambda layer, sizes: layer | {"out": layer["out"].T.contiguous()},
    "gate and up swapped": lambda layer, sizes: layer | {"gate": layer["up"], "up": layer["gate"]},
    "scales minus 1": lambda layer, sizes: _scales_minus_1(layer),
}
"""The changes that a file may make to each block, by name, in this order."""


class Stranger:
    """A file with some of the habits, and what only the course knows of it: the right weights, and a text.

    The features of the stream and the rows of the embedding are in an order of this file's own, so nobody can return
    weights that were known before.
    """

    def __init__(self, number: int, decode: Callable[..., Tensor] = decoder, length: int = 128) -> None:
        model = load_pretrained().model
        self.number, self.sizes, self._decode = number, decoder_sizes(model), decode
        chance = torch.Generator().manual_seed(1000 + number)
        features = torch.randperm(model.config.d_model, generator=chance)
        rows = torch.randperm(model.config.vocab_size, generator=chance)
        self.right = _reordered(decoder_weights(model), features)
        self.right["embedding"] = self.right["embedding"][rows]
        self._tokens = rows.argsort()[help_texts()[1][TEXT][:length]][None]
        self.habits = [name for place, name in enumerate(HABITS) if number >> place & 1]
        self.calls = 0

    @property
    def file(self) -> Weights:
        """A new copy of the file."""
        return self._written(self.habits)

    def _written(self, habits: Sequence[str], weights: Weights | None = None) -> Weights:
        """Return the right weights, or others, with these habits."""
        file = deepcopy(weights or self.right)
        for name in habits:
            file["blocks"] = [HABITS[name](layer, self.sizes) for layer in file["blocks"]]
        return _scales_minus_1(file) if "scales minus 1" in habits else file

    @torch.no_grad()
    def loss(self, weights: Weights) -> float:
        """Return the loss of a decoder with these weights on a text, in nats a token."""
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise Unfit(TOO_MANY)
        try:
            logits = self._decode(self._tokens[:, :-1], weights, self.sizes, COURSE_PARTS)
        except Exception as error:
            raise Unfit(UNREADABLE.format(what=type(error).__name__)) from error
        return F.cross_entropy(logits[0], self._tokens[0, 1:]).item()

    def speaks(self, weights: Weights) -> bool:
        """Return True if these are the right weights."""
        return self._same(self.right, weights)

    def told(self, weights: Weights) -> str:
        """Return what an answer made of the file: it speaks, or the habits that it left in the weights."""
        if self.speaks(weights):
            return f"speaks, it had: {', '.join(self.habits)}"
        some = [[name for place, name in enumerate(HABITS) if bits >> place & 1] for bits in range(1 << len(HABITS))]
        undone = next((each for each in some if self._same(self.file, self._written(each, weights))), [])
        if more := [name for name in undone if name not in self.habits]:
            return f"noise, you undid what it did not have: {', '.join(more)}"
        left = [name for name in self.habits if name not in undone] if undone else []
        left = left or next((each for each in some if self._same(self._written(each), weights)), [])
        return f"noise, your weights still have: {', '.join(left)}" if left else f"noise, {UNKNOWN}"

    @staticmethod
    def _same(right: Weights, weights: Weights) -> bool:
        pairs = zip(_tensors(right), _tensors(weights), strict=True)
        return all(one.shape == other.shape and bool(((one - other).abs() <= SAME).all()) for one, other in pairs)


def _reordered(weights: Weights, features: Tensor) -> Weights:
    """Return the weights of the same model with the features of its stream in another order."""
    rows = ("norm_1", "norm_2", "norm", "out", "down")

    def moved(name: str, each: Tensor) -> Tensor:
        return each[features] if name in rows else each[:, features]

    ends = {name: moved(name, each) for name, each in weights.items() if name != "blocks"}
    return ends | {"blocks": [{name: moved(name, each) for name, each in layer.items()} for layer in weights["blocks"]]}


def _tensors(weights: Weights) -> Iterator[Tensor]:
    for name in ("embedding", "norm"):
        yield weights[name]
    for layer in weights["blocks"]:
        yield from (layer[name] for name in sorted(layer))


def read_by(decipher: Decipher, stranger: Stranger) -> Weights:
    """Return the weights that an answer reads from a file; raise Unfit if it breaks a rule of the task."""
    file = stranger.file
    weights = decipher(file, dict(stranger.sizes), lambda read: stranger.loss(read))
    if not all(torch.equal(one, other) for one, other in zip(_tensors(file), _tensors(stranger.file), strict=True)):
        raise Unfit(CHANGED)
    if not isinstance(weights, dict):
        raise Unfit(NO_WEIGHTS.format(what=f"is of the type {type(weights).__name__}"))
    try:
        same = [one.shape for one in _tensors(stranger.right)] == [one.shape for one in _tensors(weights)]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Unfit(NO_WEIGHTS.format(what="has other names")) from None
    if not same:
        raise Unfit(NO_WEIGHTS.format(what="has other shapes"))
    return weights


@one_thread()
def inspect_decipher(decipher: Decipher) -> None:
    """Raise Unfit if an answer breaks a rule of the task with one file and a short text."""
    read_by(decipher, Stranger(31, length=16))


@one_thread()
def measure_decipher(decipher: Decipher, files: Sequence[int]) -> dict[str, float]:
    """Count the files whose right weights an answer returns, and its calls of `loss`."""
    strangers = [Stranger(number) for number in files]
    read = [read_by(decipher, stranger) for stranger in strangers]
    calls = sum(stranger.calls for stranger in strangers) / len(files)
    wrong = [(one, weights) for one, weights in zip(strangers, read, strict=True) if not one.speaks(weights)]
    if any(one.told(weights).endswith(UNKNOWN) for one, weights in wrong):
        warnings.warn(f"Of some file, {UNKNOWN}.", Remark, stacklevel=1)
    elif wrong or calls >= 1 << len(HABITS):
        warnings.warn(ENDED if wrong else ALL_TRIED, Remark, stacklevel=1)
    return {SPEAK: len(files) - len(wrong), CALLS: calls}
