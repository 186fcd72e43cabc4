"""The exercise on the parameters that weight decay applies to."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Shapes = dict[str, list[int]]
Groups = tuple[list[str], list[str]]

NANO: Shapes = {
    "embedding.tokens.weight": [512, 64],
    "blocks.0.input_norm.weight": [64],
    "blocks.0.attention.qkv.weight": [192, 64],
    "blocks.0.attention.out.weight": [64, 64],
    "final_norm.weight": [64],
}
BIASED: Shapes = {"up.weight": [256, 64], "up.bias": [256], "norm.weight": [64], "norm.bias": [64]}
PER_HEAD: Shapes = {"k_norm.weight": [4, 16], "qkv.weight": [192, 64], "q_norm.weight": [4, 16]}


def _reference(shapes: Shapes, norms: list[str]) -> Groups:
    groups: tuple[list[str], list[str]] = ([], [])
    for name in sorted(shapes):
        groups[name in norms or len(shapes[name]) < 2].append(name)
    return groups


def _hidden(random: Random) -> list[Case]:
    fixed = [
        case("many axes", {"stem.weight": [64, 3, 16], "norm.scale": [3, 1, 1]}, ["norm.scale"]),
        case("many axes", {"video.weight": [8, 3, 2, 4, 4], "patches.weight": [8, 3, 4, 4]}, []),
        case("a bias of two axes less", {"z.bias": [7], "a.weight": [7, 5], "temperature": []}, []),
        case("nothing that decays", {"b.weight": [8], "a.bias": [8]}, ["b.weight"]),
        case("nothing but matrices", {"z": [2, 3], "a": [3, 2]}, []),
        case("no parameters", {}, []),
        case("a matrix called norm", {"norm_head.weight": [9, 4], "head_norm.weight": [4]}, ["head_norm.weight"]),
        case("a matrix with one row", {"gate.weight": [1, 64], "shift": [64], "one": [1]}, ["one"]),
        case("a bias table", {"attention.bias": [32, 4], "mlp.weight": [4], "proj.bias": [4]}, ["mlp.weight"]),
        case("a name in another name", {"head": [4, 4], "head_norm": [4], "norm": [4, 2]}, ["head_norm"]),
        case("a name in another name", {"norm": [4], "norm_mixer": [4, 4], "out_norm": [4, 2]}, ["norm"]),
        case("more than ten blocks", {f"blocks.{n}.{kind}": [4] * n for n in (2, 10, 1) for kind in "ba"}, []),
        case("all norms", {"n.1": [4, 4], "n.0": [4]}, ["n.0", "n.1"]),
        case("an embedding", {"embedding.positions": [128, 64], "embedding.norm": [64]}, ["embedding.norm"]),
    ]
    drawn = []
    for _ in range(2):
        # the names are never in alphabetical order
        letters = sorted(random.sample("abcdefghijklmnopqrstuvwxyz", 6), reverse=True)
        shapes = {letter: [8] * axes for letter, axes in zip(letters, (1, 2, 2, 3, 2, 1), strict=True)}
        drawn.append(case("other models", shapes, [letters[0], letters[4]]))
    return [*fixed, *drawn]


decay_groups = Exercise(
    "decay_groups",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_reference,
    cases=[
        case("a block of nano", NANO, ["blocks.0.input_norm.weight", "final_norm.weight"]),
        case("biases", BIASED, ["norm.weight", "norm.bias"]),
        case("a scale for each head", PER_HEAD, ["q_norm.weight", "k_norm.weight"]),
        case("a single number", {"temperature": [], "head.weight": [8, 4]}, []),
        case("biases with other names", {"w": [8, 8], "shift": [8], "a": [3, 8], "gain": [8]}, []),
        case("a convolution", {"stem.weight": [64, 3, 16], "stem.bias": [64]}, []),
        case("names that mislead", {"norm": [4], "norm_mixer": [4, 4], "out": [4, 2]}, ["norm", "out"]),
    ],
    hidden_cases=_hidden,
    hints=[
        "Look at the shape, not at the name: how many axes does a matrix have at least?",
        "len(shape) >= 2, and the name is not among `norms`. Everything else goes into the second list.",
        "Go through sorted(shapes), and both lists are sorted by themselves.",
    ],
)


def _by(decays: list[str], shapes: Shapes) -> Groups:
    return sorted(decays), sorted(set(shapes) - set(decays))


@decay_groups.misconception(
    "You let biases and scales decay. Only matrices do: pull a norm's scale to 0, and the next matrix grows to undo it."
)
def everything(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([*shapes], shapes)


@decay_groups.misconception("Biases decay in your answer. They have one axis, like scales: second list.")
def all_but_norms(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name in shapes if name not in norms], shapes)


@decay_groups.misconception("Embeddings decay here: they are matrices like any other. OLMo 2 leaves them out.")
def embeddings_out(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([n for n in _reference(shapes, norms)[0] if not n.startswith("embedding")], shapes)


@decay_groups.misconception(
    "In your answer a norm with two axes decays, one that has a scale for each head. No norm decays: see `norms`."
)
def head_norms_decay(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name, shape in shapes.items() if len(shape) >= 2], shapes)


@decay_groups.misconception(
    "You select parameters by the name `weight`. Norms have one too, and not every matrix has that name."
)
def by_name(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name in shapes if name.endswith("weight")], shapes)


@decay_groups.misconception(
    "You find biases by their name. A parameter with fewer than two axes never decays, whatever its name."
)
def biases_by_name(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name in shapes if name not in norms and "bias" not in name], shapes)


@decay_groups.misconception("You recognise norms by the word `norm`. The list `norms` has their names.")
def norms_by_name(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name, shape in shapes.items() if len(shape) >= 2 and "norm" not in name], shapes)


@decay_groups.misconception(
    "A matrix does not decay in your answer if its name only contains a norm's name, or the word `norm`. A norm's "
    "parameter is one whose whole name is in `norms`."
)
def names_within_names(shapes: Shapes, norms: list[str]) -> Groups:
    matrices = [name for name, shape in shapes.items() if len(shape) >= 2]
    return _by([name for name in matrices if not any(norm in name for norm in norms)], shapes)


@decay_groups.misconception("The two lists are swapped: the first one decays.")
def swapped(shapes: Shapes, norms: list[str]) -> Groups:
    return _reference(shapes, norms)[::-1]


@decay_groups.misconception(
    "Some parameters are in neither list, so no optimizer would ever update them. Norms belong to the second list."
)
def norms_lost(shapes: Shapes, norms: list[str]) -> Groups:
    first, second = _reference(shapes, norms)
    return first, [name for name in second if name not in norms]


@decay_groups.misconception("Norms are in your second list twice: once for their name, and once for their shape.")
def norms_twice(shapes: Shapes, norms: list[str]) -> Groups:
    first, second = _reference(shapes, norms)
    return first, sorted([*second, *(name for name in norms if len(shapes[name]) < 2)])


@decay_groups.misconception("Both lists should be sorted by name. Yours are in the order of the model.")
def unsorted(shapes: Shapes, norms: list[str]) -> Groups:
    first = [name for name, shape in shapes.items() if len(shape) >= 2 and name not in norms]
    return first, [name for name in shapes if name not in first]


@decay_groups.misconception("Your first list is sorted, your second one is not.")
def second_unsorted(shapes: Shapes, norms: list[str]) -> Groups:
    first = _reference(shapes, norms)[0]
    return first, [name for name in shapes if name not in first]


@decay_groups.misconception(
    "Your weights with three axes or more, of a convolution for instance, do not decay. They are matrices here too."
)
def only_two_axes(shapes: Shapes, norms: list[str]) -> Groups:
    return _by([name for name, shape in shapes.items() if len(shape) == 2 and name not in norms], shapes)


@decay_groups.variant
def with_sets(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], list[str]]:
    decay = {name for name, shape in shapes.items() if len(shape) > 1} - set(norms)
    return sorted(decay), sorted(shapes.keys() - decay)


@decay_groups.variant
def in_a_loop(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], list[str]]:
    matrices, others = [], []
    for name, shape in sorted(shapes.items()):
        if name in norms:
            others.append(name)
        elif len(shape) >= 2:
            matrices.append(name)
        else:
            others.append(name)
    return matrices, others


@decay_groups.variant
def with_filter(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], ...]:
    def decays(name: str) -> bool:
        return not (name in norms or shapes[name][1:] == [])

    return tuple([name for name in sorted(shapes) if decays(name) is wanted] for wanted in (True, False))
