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
    cases = [
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
    for _ in range(2):
        # the names are never in alphabetical order
        letters = sorted(random.sample("abcdefghijklmnopqrstuvwxyz", 6), reverse=True)
        shapes = {letter: [8] * axes for letter, axes in zip(letters, (1, 2, 2, 3, 2, 1), strict=True)}
        cases.append(case("other models", shapes, [letters[0], letters[4]]))
    return cases


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


@decay_groups.variant
def by_the_number_of_axes(shapes: dict[str, list[int]], norms: list[str]) -> tuple[list[str], list[str]]:
    decay = [name for name, shape in shapes.items() if len(shape) >= 2 and name not in norms]
    return sorted(decay), sorted(set(shapes) - set(decay))


decay_groups.slips(
    by_the_number_of_axes,
    {
        " if len(shape) >= 2 and name not in norms → ": "You let biases and scales decay. Only matrices do: pull a "
        "norm's scale to 0, and the next matrix grows to undo it.",
        "len(shape) >= 2 and → ": "Biases decay in your answer. They have one axis, like scales: second list.",
        'name not in norms → name not in norms and not name.startswith("embedding")': "Embeddings decay here: they are "
        "matrices like any other. OLMo 2 leaves them out.",
        " and name not in norms → ": "In your answer a norm with two axes decays, one that has a scale for each head. "
        "No norm decays: see `norms`.",
        'len(shape) >= 2 and name not in norms → name.endswith("weight")': "You select parameters by the name "
        "`weight`. Norms have one too, and not every matrix has that name.",
        'len(shape) >= 2 → "bias" not in name': "You find biases by their name. A parameter with fewer than two axes "
        "never decays, whatever its name.",
        'name not in norms → "norm" not in name': "You recognise norms by the word `norm`. The list `norms` has their "
        "names.",
        "name not in norms → not any(norm in name for norm in norms)": "A matrix does not decay in your answer if its "
        "name only contains a norm's name, or the word `norm`. A norm's parameter is one whose whole name is in "
        "`norms`.",
        "sorted(decay), sorted(set(shapes) - set(decay)) → sorted(set(shapes) - set(decay)), sorted(decay)": "The two "
        "lists are swapped: the first one decays.",
        "- set(decay) → - set(decay) - set(norms)": "Some parameters are in neither list, so no optimizer would ever "
        "update them. Norms belong to the second list.",
        "sorted(set(shapes) - set(decay)) → sorted([*(set(shapes) - set(decay)), *(name for name in norms if "
        "len(shapes[name]) < 2)])": "Norms are in your second list twice: once for their name, and once for their "
        "shape.",
        "sorted(decay), sorted(set(shapes) - set(decay)) → decay, [name for name in shapes if name not in "
        "decay]": "Both lists should be sorted by name. Yours are in the order of the model.",
        "sorted(set(shapes) - set(decay)) → [name for name in shapes if name not in decay]": "Your first list is "
        "sorted, your second one is not.",
        ">= 2 → == 2": "Your weights with three axes or more, of a convolution for instance, do not decay. They are "
        "matrices here too.",
        ">= 2 → > 2": "Your matrices have three axes or more. Two axes are enough.",
        " and name not in norms →  or name not in norms": "In your answer one of the two conditions is enough. A "
        "parameter decays if it has two axes *and* does not belong to a norm.",
        'len(shape) >= 2 → "weight" in name': "You select parameters by the word `weight` in their names. Count the "
        "axes of the shape.",
        "sorted(decay), → decay,": "Your second list is sorted, your first one is not.",
        "sorted(set(shapes) - set(decay)) → sorted(norms)": "Your second list holds the norms alone. Biases and "
        "single numbers belong to it, too.",
    },
)
