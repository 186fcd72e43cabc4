"""The exercise on learning rates for a model of a different width."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Shapes = dict[str, list[int]]
Factors = dict[str, float]

SMALL: Shapes = {"embedding": [128, 32], "qkv": [96, 32], "out": [32, 32], "norm": [32], "head": [128, 32]}
WIDE: Shapes = {"embedding": [128, 256], "qkv": [768, 256], "out": [256, 256], "norm": [256], "head": [128, 256]}
MLP: Shapes = {"tokens": [50, 16], "places": [64, 16], "up": [48, 16], "up.bias": [48], "down": [16, 48]}
MLP_WIDE: Shapes = {"tokens": [50, 64], "places": [64, 64], "up": [256, 64], "up.bias": [256], "down": [64, 256]}


def _inputs(name: str, shape: list[int], embeddings: list[str]) -> int:
    """Return the number of terms in the sum for an output of this parameter."""
    return 1 if name in embeddings or len(shape) < 2 else shape[1]


def _reference(shapes: Shapes, base: Shapes, embeddings: list[str]) -> Factors:
    return {
        name: _inputs(name, base[name], embeddings) / _inputs(name, shape, embeddings) for name, shape in shapes.items()
    }


def _hidden(random: Random) -> list[Case]:
    narrow = {"e": [9, 8], "w": [8, 8], "b": [8], "h": [9, 8]}
    cases = [
        case("the base itself", SMALL, SMALL, ["embedding"]),
        case("a narrower model", SMALL, WIDE, ["embedding"]),
        case("a narrower model", narrow, {"e": [9, 24], "w": [24, 24], "b": [24], "h": [9, 24]}, ["e"]),
        case("only the inner width grows", {"up": [96, 8], "down": [8, 96]}, {"up": [32, 8], "down": [8, 32]}, []),
        case("no embedding", {"w": [4, 12], "v": [2, 4]}, {"w": [4, 6], "v": [2, 4]}, []),
        case("a larger vocabulary", {"e": [99, 8], "h": [99, 8]}, {"e": [9, 8], "h": [9, 8]}, ["e"]),
        case("a single number", {"t": [], "w": [3, 6]}, {"t": [], "w": [3, 3]}, []),
        case("no parameters", {}, {}, []),
        case("an output of one", {"w": [1, 40]}, {"w": [1, 8]}, []),
    ]
    for _ in range(2):
        d, m, f, g = (random.randrange(3, 40) for _ in range(4))
        wide = {"e": [7, d], "up": [f, d], "down": [d, f], "s": [d], "head": [7, d]}
        base = {"e": [7, m], "up": [g, m], "down": [m, g], "s": [m], "head": [7, m]}
        cases.append(case("other widths", wide, base, ["e"]))
    return cases


width_factors = Exercise(
    "width_factors",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_reference,
    cases=[
        case("eight times as wide", WIDE, SMALL, ["embedding"]),
        case("an inner width that grows faster", MLP_WIDE, MLP, ["tokens", "places"]),
        case("half as wide", {"w": [8, 8], "v": [4, 8]}, {"w": [16, 16], "v": [4, 16]}, []),
        case("one matrix", {"w": [24, 40]}, {"w": [24, 8]}, []),
        case("norms and biases", {"w": [24, 40], "b": [24], "n": [40]}, {"w": [12, 8], "b": [12], "n": [8]}, []),
        case("a larger vocabulary", {"e": [99, 32], "head": [99, 32]}, {"e": [9, 8], "head": [9, 8]}, ["e"]),
        case("more outputs, not more inputs", {"w": [64, 8], "v": [8, 64]}, {"w": [16, 8], "v": [8, 16]}, []),
    ],
    hidden_cases=_hidden,
    hints=[
        "One output of a linear layer is a sum. How many terms does it have, and by how much does each change if every "
        "weight moves by the rate?",
        "A weight has shape (outputs, inputs). Compare its inputs with those in the base model.",
        "A row of an embedding is looked up, and a norm's scale multiplies one feature: how many terms is that?",
    ],
)


@width_factors.variant
def in_a_loop(shapes: dict[str, list[int]], base: dict[str, list[int]], embeddings: list[str]) -> dict[str, float]:
    factors: dict[str, float] = {}
    for name, shape in shapes.items():
        if name in embeddings or len(shape) < 2:
            factors[name] = 1.0
        else:
            factors[name] = base[name][1] / shape[1]
    return factors


width_factors.slips(
    in_a_loop,
    {
        "base[name][1] / shape[1] → shape[1] / base[name][1]": "Wider models need a smaller rate. Your factor is "
        "upside down.",
        "base[name][1] / shape[1] → (base[name][1] / shape[1]) ** 0.5": "You take the root. That is right for random "
        "signs, but the changes of one update all point in the same direction and add up.",
        "name in embeddings or → ": "You scale the embedding's rate. Its row is looked up: nothing is summed.",
        'name in embeddings → name in [*embeddings, "head", "h"]': "You leave out the head's rate: it sums over the "
        "features like any other matrix.",
        "base[name][1] / shape[1] → base[name][0] / shape[0]": "You compare the numbers of outputs. The sum runs over "
        "the inputs, the second axis.",
        "factors: dict[str, float] = {} → factors, first = {}, None ;; factors[name] = base → factors[name] = first = "
        "first or base": "You use one factor for all matrices. Each needs the factor of its own inputs: not all widths "
        "grow alike.",
        "base[name][1] / shape[1] → min(1.0, base[name][1] / shape[1])": "Your factors are never above 1. A model "
        "narrower than the base takes a larger rate.",
        "len(shape) < 2 → not shape ;; base[name][1] / shape[1] → base[name][-1] / shape[-1]": "You scale norms and "
        "biases as well. Each of their entries acts on one feature only.",
        "name in embeddings or len(shape) < 2 → not shape ;; base[name][1] / shape[1] → base[name][-1] / "
        "shape[-1]": "You scale everything, embeddings and norms included. Only sums over more inputs grow.",
        "base[name][1] / shape[1] → base[name][0] * base[name][1] / (shape[0] * shape[1])": "You compare the numbers "
        "of entries. Only the number of inputs matters.",
        "base[name][1] / → 1 /": "You divide by the inputs alone. The factor is relative to the base model's inputs.",
        "base[name][1] / shape[1] → 1.0": "Your factors are all 1: the matrices' rates must fall as the model gets "
        "wider.",
        "factors[name] = 1.0 → continue": "Only the matrices are in your result. Every parameter needs a factor; some "
        "have 1.",
        'name in embeddings → "emb" in name': "You find embeddings by their name. Use the list `embeddings`.",
        "base[name][1] / shape[1] → (base[name][0] * base[name][1] / (shape[0] * shape[1])) ** 0.5": "You take the "
        "root of the numbers of entries. Only the number of inputs matters.",
        "name in embeddings → any(each in name for each in embeddings)": "You leave out parameters whose names only "
        "contain an embedding's name. Compare whole names.",
        "if name in embeddings or len(shape) < 2 → if name in embeddings:\n            factors[name] = base[name][0] "
        "/ shape[0]\n        elif len(shape) < 2": "You scale the embedding's rate by the vocabulary. Its row is "
        "looked up: nothing is summed.",
        "base[name][1] / shape[1] → base[name][1] // shape[1]": "You divide whole numbers with //, which cuts off "
        "the fraction.",
        "base[name][1] / shape[1] → sum(base[name]) / sum(shape)": "You add inputs and outputs. Only the number of "
        "inputs matters.",
    },
)
