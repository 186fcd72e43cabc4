"""The exercise on turning LayerNorms into RMSNorms, by centring all weights that write into the residual stream."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal

Weights = dict[str, Tensor]

ROWS = ("embedding", "positions")
"""Tables whose rows are written into the stream."""


def _projected(weights: Weights) -> Weights:
    """Multiply every tensor that writes into the stream by I − 11ᵀ/d, in float64."""
    changed = {}
    for name, weight in weights.items():
        kind = name.split(".")[0]
        d = weight.shape[-1] if kind in ROWS else weight.shape[0]
        projector = torch.eye(d, dtype=torch.float64) - torch.full((d, d), 1 / d, dtype=torch.float64)
        if kind in ROWS:
            changed[name] = (weight.double() @ projector).to(weight.dtype)
        elif kind in ("out", "down", "out_bias", "down_bias"):
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
        edge(case("in fp64", _model(lambda *shape: normal(Random(8), *shape, dtype=torch.float64), 3, 5, 1, 4, 2))),
        case("twelve blocks", _model(_whole(_FIXED), 2, 3, 12, 3, 2, biases=False)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Sort the kinds of tensors into those that *write to* the stream and those that read it. Only one group has to "
        "change, and name.split('.')[0] is the kind.",
        "`out` computes out @ h. When does out @ h have mean 0 for every h? When each column of `out` has.",
        "A row of embedding or positions is written as it is, so subtract its mean. A bias is written as it is, too. "
        "Do to each column of `out` and `down` what you do to a row of the tables, and copy the rest unchanged.",
    ],
)


centre_writers.equivalent_mutant(
    "weight = weight - weight.mean(dim=-1, keepdim=True) → weight = weight - weight.mean(dim=1, keepdim=True)",
    "tables have two axes: the last one is axis 1",
)


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


@centre_writers.variant
def kind_by_kind(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    centred = {}
    for name, weight in weights.items():
        kind = name.split(".")[0]
        if kind in ("embedding", "positions"):
            weight = weight - weight.mean(dim=-1, keepdim=True)
        elif kind in ("out", "down", "out_bias", "down_bias"):
            weight = weight - weight.mean(dim=0)
        centred[name] = weight
    return centred


centre_writers.slips(
    kind_by_kind,
    {
        "weight.mean(dim=0) → weight.mean(dim=-1, keepdim=True)": "You centre `out` and `down` along their inputs. "
        "What the matrix *writes* must have mean 0: centre each column, over its outputs.",
        '"positions" → "positions", "qkv", "up"': "You change qkv and up. They read the stream: leave them as they "
        "are.",
        '"positions" → "positions", "qkv", "up", "head"': "You centre everything. qkv, up and head read the stream: "
        "leave them as they are, and change only what writes.",
        '"down_bias" → "down_bias", "qkv", "qkv_bias", "up", "up_bias"': "You subtract the mean of each column from "
        "qkv and up as well. They read the stream: leave them as they are.",
        'kind in ("embedding", "positions") → True': "You subtract from every tensor the means of its rows. Which "
        "tensors write into the stream, and along which axis?",
        '("embedding", "positions") → ("qkv", "up", "head") ;; ("out", "down", "out_bias", "down_bias") → ()': "You "
        "centre the tensors that *read* the stream. Centre the tensors that write into it.",
        '"positions" →  ;; , "out_bias", "down_bias" → ': "You leave out positions and the biases of out and down. "
        "They are added to the stream, too.",
        '("out", "down", "out_bias", "down_bias") → ()': "You centre the tables only. Every block adds to the stream, "
        "with `out` and `down`.",
        '("embedding", "positions") → ()': "You centre `out` and `down` only. The embedding starts the stream, with "
        "its mean.",
        'name.split(".")[0] → name[:-2] if "." in name else name': "From block 10 on nothing is changed: a block's "
        "number may have two digits. `name.split('.')[0]` is the kind.",
        '"positions" → "positions", "head"': "You change the head. It reads the stream: leave it as it is.",
        ', "out_bias", "down_bias" → ': "You leave out the biases of out and down. They are added to the stream as "
        "well.",
        '"positions" → ': "You leave out the positions. They are added to the stream as well: their rows need mean 0.",
        '"embedding", "positions" → "positions",': "You leave out the embedding. It starts the stream: its rows need "
        "mean 0, too.",
        '"down", →  ;; , "down_bias" → ': "You leave out `down`. With it the feed-forward layer writes into the stream "
        "as well.",
        "dim=-1, keepdim=True → dim=0": "You centre the columns of the tables. A token's vector is a row: subtract the "
        "mean of each row.",
        "dim=-1, keepdim=True →  ;; dim=0 → ": "You subtract one mean of the whole matrix. Each vector that is written "
        "has its own mean.",
        "dim=-1, keepdim=True → ": "You subtract one mean of the whole table. Each vector that is written has its own "
        "mean.",
        "centred[name] = weight → centred[name] = weight if weight is weights[name] else weight / "
        "(weight.square().mean().sqrt() + 1e-9)": "You change the lengths. Only subtract the mean: RMSNorm removes the "
        "length.",
        'elif kind → elif name.endswith(".0") and kind': "Only the first block is changed. Every block writes into the "
        "same stream.",
        "centred[name] = weight → if weight is not weights[name]:\n            centred[name] = weight": "You return "
        "only the changed weights. Return all weights.",
        "weight - weight.mean(dim=-1, keepdim=True) → weight.sub_(weight.mean(dim=-1, keepdim=True)) ;; "
        "weight - weight.mean(dim=0) → weight.sub_(weight.mean(dim=0)) ;; return centred → return weights": "You "
        "change the weights that you were given. Return new weights: the old model is still needed.",
    },
)
