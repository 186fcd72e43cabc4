"""The exercise on turning LayerNorms into RMSNorms, by centring all weights that write into the residual stream."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal

Weights = dict[str, Tensor]

ROWS = ("embedding", "positions")
"""Tables whose rows are written into the stream."""

COLUMNS = ("out", "down", "out_bias", "down_bias")
"""Tensors that write into the stream: matrices (out, in), and biases."""


def _kind(name: str) -> str:
    return name.split(".")[0]


def _projected(weights: Weights) -> Weights:
    """Multiply every tensor that writes into the stream by I − 11ᵀ/d, in float64."""
    changed = {}
    for name, weight in weights.items():
        d = weight.shape[-1] if _kind(name) in ROWS else weight.shape[0]
        projector = torch.eye(d, dtype=torch.float64) - torch.full((d, d), 1 / d, dtype=torch.float64)
        if _kind(name) in ROWS:
            changed[name] = (weight.double() @ projector).to(weight.dtype)
        elif _kind(name) in COLUMNS:
            changed[name] = (projector @ weight.double()).to(weight.dtype)
        else:
            changed[name] = weight
    return changed


Make = Callable[..., Tensor]


def _model(make: Make, d: int, f: int, blocks: int, vocabulary: int, context: int, *, biases: bool = True) -> Weights:
    """All weights of a model, in the order of the forward pass."""
    weights = {"embedding": make(vocabulary, d)}
    if context:
        weights["positions"] = make(context, d)
    for index in range(blocks):
        shapes = {"qkv": (3 * d, d), "out": (d, d), "up": (f, d), "down": (d, f)}
        for name, shape in shapes.items():
            weights[f"{name}.{index}"] = make(*shape)
            if biases:
                weights[f"{name}_bias.{index}"] = make(shape[0])
    return weights | {"head": make(vocabulary, d)}


def _whole(random: Random) -> Make:
    return lambda *shape: integers(random, *shape, low=-4, high=4)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    centred = _projected(_model(_whole(fixed), 4, 8, 1, 5, 3))
    double = _model(lambda *shape: normal(fixed, *shape, dtype=torch.float64), 3, 5, 1, 4, 2)
    sizes = (random.randint(2, 6), random.randint(2, 9), random.randint(2, 3), random.randint(2, 7), 3)
    return [
        case("no positions, no biases", _model(_whole(fixed), 4, 8, 2, 5, 0, biases=False)),
        case("many blocks", _model(_whole(fixed), 2, 3, 40, 3, 2)),
        case("as wide inside as outside", _model(_whole(fixed), 4, 4, 1, 4, 4)),
        case("centred already", centred),
        case("one feature", _model(_whole(fixed), 1, 2, 1, 3, 2)),
        case("double precision", double),
        case("means far from zero", {name: w + 100 for name, w in _model(_whole(fixed), 4, 2, 1, 3, 2).items()}),
        case("other models", _model(_whole(random), *sizes)),
        case("other models", _model(lambda *shape: normal(random, *shape), *sizes)),
    ]


_FIXED = Random(3)

centre_writers = Exercise(
    "centre_writers",
    points=3,
    minutes=10,
    difficulty=3,
    reference=_projected,
    new=True,
    cases=[
        case("two by two", {"embedding": torch.tensor([[1.0, -1.0]]), "out.0": torch.tensor([[1.0, 2.0], [3.0, 4.0]])}),
        case("an embedding", {"embedding": torch.tensor([[1.0, 2.0], [0.0, 4.0], [-3.0, 0.0]])}),
        case(
            "a layer with a bias",
            {
                "embedding": torch.tensor([[1.0, 0.0, -1.0]]),
                "down.0": torch.eye(3),
                "down_bias.0": torch.tensor([3.0, 0.0, 0.0]),
            },
        ),
        case("a whole model", _model(_whole(_FIXED), 3, 4, 2, 5, 4)),
        case("twelve blocks", _model(_whole(_FIXED), 2, 3, 12, 3, 2, biases=False)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Sort the kinds of tensors into those that *write to* the stream and those that read it. Only one group has to "
        "change, and name.split('.')[0] is the kind.",
        "`out` computes out @ h. When does out @ h have mean 0 for every h? When each column of `out` has.",
        "Rows of embedding and positions: subtract the mean over the last axis. Matrices and biases of out and down: "
        "over the first. Copy everything else unchanged into the new dictionary.",
    ],
)


centre_writers.equivalent_mutant(
    "weight = weight - weight.mean(dim=-1, keepdim=True) → weight = weight - weight.mean(dim=1, keepdim=True)",
    "tables have two axes: the last one is axis 1",
)


@centre_writers.variant
def in_a_loop(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    result = dict(weights)
    for name in weights:
        if name.startswith(("out", "down")):
            result[name] = weights[name] - weights[name].mean(dim=0)
        elif name == "embedding" or name == "positions":
            result[name] = weights[name] - weights[name].mean(dim=1, keepdim=True)
    return result


@centre_writers.variant
def with_a_projector(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    def writes(kind: str) -> bool:
        return kind not in ("qkv", "qkv_bias", "up", "up_bias", "head")

    result = {}
    for name, w in weights.items():
        kind = name.partition(".")[0]
        if not writes(kind):
            result[name] = w.clone()
            continue
        by_row = kind in ("embedding", "positions")
        columns = w.T if by_row else w
        d = len(columns)
        centred = (torch.eye(d, dtype=w.dtype) - 1 / d) @ columns
        result[name] = centred.T if by_row else centred
    return result


@centre_writers.variant
def number_by_number(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    def centred(w: Tensor) -> Tensor:
        vectors = w if w.ndim == 2 else w[None]
        rows = [[n - sum(row) / len(row) for n in row] for row in vectors.double().tolist()]
        return torch.tensor(rows, dtype=torch.float64).reshape(w.shape).to(w.dtype)

    result: dict[str, Tensor] = {}
    for name, w in weights.items():
        if name.split(".")[0] in ("embedding", "positions", "out_bias", "down_bias"):
            result[name] = centred(w)
        elif name.split(".")[0] in ("out", "down"):
            result[name] = centred(w.t().contiguous()).t()
        else:
            result[name] = w
    return result


def _except(*kinds: str) -> Callable[[Weights], Weights]:
    """Return a right answer, except that tensors of these kinds stay as they are."""
    return lambda weights: {
        name: weights[name] if _kind(name) in kinds else right for name, right in _projected(weights).items()
    }


def _rows_centred(weights: Weights, *kinds: str) -> Weights:
    """The right answer, except that the rows of these kinds are centred."""
    right = _projected(weights)
    rows = {name: w - w.mean(-1, keepdim=True) for name, w in weights.items() if _kind(name) in kinds}
    return right | rows


@centre_writers.misconception(
    "You centre `out` and `down` along their inputs. What the matrix *writes* must have mean 0: centre each column, "
    "over its outputs."
)
def inputs_centred(weights: Weights) -> Weights:
    return _rows_centred(weights, "out", "down")


@centre_writers.misconception("You change qkv and up. They read the stream: leave them as they are.")
def readers_centred(weights: Weights) -> Weights:
    return _rows_centred(weights, "qkv", "up")


@centre_writers.misconception(
    "You centre everything. qkv, up and head read the stream: leave them as they are, and change only what writes."
)
def everything_centred(weights: Weights) -> Weights:
    return _rows_centred(weights, "qkv", "up", "head")


@centre_writers.misconception(
    "You subtract the mean of each column from qkv and up as well. They read the stream: leave them as they are."
)
def columns_of_readers(weights: Weights) -> Weights:
    kinds = ("qkv", "qkv_bias", "up", "up_bias")
    return _projected(weights) | {name: w - w.mean(0) for name, w in weights.items() if _kind(name) in kinds}


@centre_writers.misconception(
    "You subtract from every tensor the means of its rows. Which tensors write into the stream, and along which axis?"
)
def all_rows(weights: Weights) -> Weights:
    return {name: w - w.mean(-1, keepdim=True) for name, w in weights.items()}


@centre_writers.misconception("You centre the tensors that *read* the stream. Centre the tensors that write into it.")
def readers_in_place_of_writers(weights: Weights) -> Weights:
    kinds = ("qkv", "up", "head")
    return {name: w - w.mean(-1, keepdim=True) if _kind(name) in kinds else w for name, w in weights.items()}


@centre_writers.misconception(
    "You leave out positions and the biases of out and down. They are added to the stream, too."
)
def positions_and_biases_forgotten(weights: Weights) -> Weights:
    return _except("positions", "out_bias", "down_bias")(weights)


@centre_writers.misconception("You centre the tables only. Every block adds to the stream, with `out` and `down`.")
def tables_only(weights: Weights) -> Weights:
    return _except(*COLUMNS)(weights)


@centre_writers.misconception("You centre `out` and `down` only. The embedding starts the stream, with its mean.")
def blocks_only(weights: Weights) -> Weights:
    return _except(*ROWS)(weights)


@centre_writers.misconception(
    "From block 10 on nothing is changed: a block's number may have two digits. `name.split('.')[0]` is the kind."
)
def one_digit(weights: Weights) -> Weights:
    right = _projected(weights)
    return {name: w if len(name.partition(".")[2]) > 1 else right[name] for name, w in weights.items()}


@centre_writers.misconception("You change the head. It reads the stream: leave it as it is.")
def head_centred(weights: Weights) -> Weights:
    return _rows_centred(weights, "head")


@centre_writers.misconception("You leave out the biases of out and down. They are added to the stream as well.")
def biases_forgotten(weights: Weights) -> Weights:
    return _except("out_bias", "down_bias")(weights)


@centre_writers.misconception(
    "You leave out the positions. They are added to the stream as well: their rows need mean 0."
)
def positions_forgotten(weights: Weights) -> Weights:
    return _except("positions")(weights)


@centre_writers.misconception("You leave out the embedding. It starts the stream: its rows need mean 0, too.")
def embedding_forgotten(weights: Weights) -> Weights:
    return _except("embedding")(weights)


@centre_writers.misconception("You leave out `down`. With it the feed-forward layer writes into the stream as well.")
def down_forgotten(weights: Weights) -> Weights:
    return _except("down", "down_bias")(weights)


@centre_writers.misconception(
    "You centre the columns of the tables. A token's vector is a row: subtract the mean of each row."
)
def over_the_vocabulary(weights: Weights) -> Weights:
    tables = {name: w - w.mean(0, keepdim=True) for name, w in weights.items() if _kind(name) in ROWS}
    return _projected(weights) | tables


@centre_writers.misconception(
    "You subtract one mean of the whole matrix. Each vector that is written has its own mean."
)
def global_mean(weights: Weights) -> Weights:
    return {name: w - w.mean() if _kind(name) in (*ROWS, *COLUMNS) else w for name, w in weights.items()}


@centre_writers.misconception("You subtract one mean of the whole table. Each vector that is written has its own mean.")
def a_mean_of_the_table(weights: Weights) -> Weights:
    tables = {name: w - w.mean() for name, w in weights.items() if _kind(name) in ROWS}
    return _projected(weights) | tables


@centre_writers.misconception("You change the lengths. Only subtract the mean: RMSNorm removes the length.")
def divided_too(weights: Weights) -> Weights:
    right = _projected(weights)
    return {
        name: w / (w.square().mean().sqrt() + 1e-9) if _kind(name) in (*ROWS, *COLUMNS) else w
        for name, w in right.items()
    }


@centre_writers.misconception("Only the first block is changed. Every block writes into the same stream.")
def first_block_only(weights: Weights) -> Weights:
    right = _projected(weights)
    return {name: right[name] if name.endswith(".0") or "." not in name else w for name, w in weights.items()}


@centre_writers.misconception("You return only the changed weights. Return all weights.")
def readers_left_out(weights: Weights) -> Weights:
    return {name: w for name, w in _projected(weights).items() if _kind(name) in (*ROWS, *COLUMNS)}


@centre_writers.misconception(
    "You change the weights that you were given. Return new weights: the old model is still needed."
)
def in_place(weights: Weights) -> Weights:
    for name, right in _projected(weights).items():
        weights[name].copy_(right)
    return weights
