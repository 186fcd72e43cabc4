"""The exercise on the rules that most models keep."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Shape = dict[str, Any]


def _rule_by_rule(model: Shape, *, gated_ff: tuple[Fraction, Fraction] = (Fraction(5, 2), Fraction(4))) -> list[str]:
    """With exact fractions, a rule each."""
    aspect = Fraction(model["d_model"], model["layers"])
    ratio = Fraction(model["d_ff"], model["d_model"])
    allowed = gated_ff if model["gated"] else (Fraction(4), Fraction(4))
    broken = {
        "aspect": not 75 <= aspect <= 160,
        "dropout": model["dropout"] > 0,
        "feed-forward": not allowed[0] <= ratio <= allowed[1],
        "head width": Fraction(model["heads"] * model["d_head"], model["d_model"]) != 1,
        "placement": model["placement"] != "pre",
    }
    return sorted(name for name, is_broken in broken.items() if is_broken)


def _shape(
    d_model: int,
    layers: int,
    heads: int,
    d_head: int,
    d_ff: int,
    gated: bool = True,
    placement: str = "pre",
    dropout: float = 0.0,
) -> Shape:
    return {
        "d_model": d_model,
        "layers": layers,
        "heads": heads,
        "d_head": d_head,
        "d_ff": d_ff,
        "gated": gated,
        "placement": placement,
        "dropout": dropout,
    }


LLAMA = _shape(4096, 32, 32, 128, 14_336)


def _hidden(random: Random) -> list[Case]:
    edges = (
        {"layers": 4, "d_model": 300, "heads": 3, "d_head": 100, "d_ff": 900},  # 75 exactly
        {"layers": 4, "d_model": 640, "heads": 5, "d_head": 128, "d_ff": 1600},  # 160 and 2.5 exactly
        {"layers": 4, "d_model": 642, "heads": 6, "d_head": 107, "d_ff": 1926},  # 160.5
        {"layers": 4, "d_model": 299, "heads": 13, "d_head": 23, "d_ff": 897},  # 74.75
        {"layers": 4, "d_model": 644, "heads": 7, "d_head": 92, "d_ff": 1932},
        {"layers": 8, "d_model": 592, "heads": 8, "d_head": 74, "d_ff": 1776},
        {"d_ff": 4 * 4096},
        {"d_ff": 4 * 4096 + 1},
        {"d_ff": 5 * 2048 - 1},
        {"gated": False, "d_ff": 4 * 4096},
        {"gated": False, "d_ff": 4 * 4096 - 1},
        {"gated": False, "d_ff": 4 * 4096 + 1},
        {"gated": False, "d_ff": 3 * 4096},
        {"dropout": 1e-9},
        {"d_head": 64},
        {"d_head": 129},
        {"heads": 31, "d_head": 132},  # 4092: 4096 // 31 is 132
    )
    kinds = ((100, 5, True), (40, 3, True), (300, 8, False), (100, 2, False), (40, 5, True))
    drawn = []
    for aspect, half_ratio, gated in kinds:  # which rules are broken is not drawn
        heads = random.randint(8, 64)
        layers = 128 * heads // aspect
        drawn.append(_shape(128 * heads, layers, heads, 128, 64 * heads * half_ratio, gated))
    return [
        *(case("edges of the rules", LLAMA | edge) for edge in edges),
        case("other models", _shape(12_288, 96, 96, 128, 49_152, gated=False)),
        case("other models", _shape(768, 12, 12, 64, 3072, gated=False, placement="post", dropout=0.1)),
        case("other models", _shape(3584, 42, 16, 256, 14_336, placement="double")),
        case("other models", _shape(4096, 32, 32, 128, 11_008, placement="output")),
        case("everything is broken", _shape(1000, 100, 3, 128, 9000, True, "output", 0.5)),
        case("everything is broken", _shape(8192, 8, 64, 64, 8192, False, "post", 0.2)),
        *(case("other models", shape) for shape in drawn),
    ]


lint = Exercise(
    "lint",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_rule_by_rule,
    cases=[
        case("Llama 3 8B", LLAMA),
        case("GPT-2 XL", _shape(1600, 48, 25, 64, 6400, gated=False, dropout=0.1)),
        case("T5 11B", _shape(1024, 24, 128, 128, 65_536, gated=False, dropout=0.1)),
        case("Gemma 2 9B", _shape(3584, 42, 16, 256, 14_336, placement="double")),
        case("BLOOM", _shape(14_336, 70, 112, 128, 57_344, gated=False)),
        case("Qwen3 32B", _shape(5120, 64, 64, 128, 25_600)),
        case("original transformer, decoder", _shape(512, 6, 8, 64, 2048, gated=False, placement="post", dropout=0.1)),
        case("as deep as the rule allows", LLAMA | {"d_model": 2400, "heads": 20, "d_head": 120, "d_ff": 6000}),
        case("as wide as the rule allows", LLAMA | {"d_model": 5120, "heads": 40, "d_ff": 20_480}),
    ],
    hidden_cases=_hidden,
    hints=[
        "Five questions, one after the other. Collect the names of those that are broken, and sort them at the end.",
        "Aspect: d_model / layers. Heads: heads · d_head against d_model. Feed-forward: d_ff / d_model.",
        "Edges are fine: 75 <= aspect <= 160, and 2.5 <= ratio <= 4 if gated. Without a gate: exactly 4.",
    ],
)


@lint.variant
def with_a_table(model: dict[str, Any]) -> list[str]:
    d = model["d_model"]
    good_ff = 2.5 * d <= model["d_ff"] <= 4 * d if model["gated"] else model["d_ff"] == 4 * d
    rules = {
        "aspect": 75 * model["layers"] <= d <= 160 * model["layers"],
        "dropout": model["dropout"] == 0,
        "feed-forward": good_ff,
        "head width": model["heads"] * model["d_head"] == d,
        "placement": model["placement"] == "pre",
    }
    return [name for name, kept in rules.items() if not kept]


@lint.variant
def one_by_one(model: dict[str, Any]) -> list[str]:
    found = set()
    if model["placement"] != "pre":
        found.add("placement")
    if model["d_model"] != model["heads"] * model["d_head"]:
        found.add("head width")
    ratio = model["d_ff"] / model["d_model"]
    if (model["gated"] and (ratio < 2.5 or ratio > 4)) or (not model["gated"] and ratio != 4):
        found.add("feed-forward")
    if model["dropout"]:
        found.add("dropout")
    if model["d_model"] / model["layers"] > 160 or model["d_model"] / model["layers"] < 75:
        found.add("aspect")
    return sorted(found)


@lint.variant
def with_a_filter(model: dict[str, Any]) -> list[str]:
    low = 2.5 if model["gated"] else 4.0
    checks = [
        ("aspect", 75 <= model["d_model"] / model["layers"] <= 160),
        ("dropout", not model["dropout"]),
        ("feed-forward", low * model["d_model"] <= model["d_ff"] <= 4 * model["d_model"]),
        ("head width", model["heads"] * model["d_head"] - model["d_model"] == 0),
        ("placement", model["placement"] == "pre"),
    ]
    return [name for name, kept in filter(lambda check: not check[1], checks)]


def _without(model: Shape, name: str) -> list[str]:
    return [rule for rule in _rule_by_rule(model) if rule != name]


@lint.misconception("Width over depth: small is deep, large is wide. A set of notes has it the other way round.")
def depth_over_width(model: Shape) -> list[str]:
    aspect = Fraction(model["layers"], model["d_model"])
    rest = _without(model, "aspect")
    return rest if 75 <= aspect <= 160 else ["aspect", *rest]


@lint.misconception("The width of a head is given. In Gemma and Qwen3 it is not d_model / heads.")
def width_assumed(model: Shape) -> list[str]:
    return _without(model, "head width")


@lint.misconception("A gated layer has three matrices, and may be narrower: from 2.5 to 4 times d_model.")
def four_for_all(model: Shape) -> list[str]:
    return _rule_by_rule(model | {"gated": False})


@lint.misconception("Without a gate it is exactly four times d_model.")
def range_for_all(model: Shape) -> list[str]:
    return _rule_by_rule(model | {"gated": True}) if model["d_ff"] != model["d_model"] else ["feed-forward"]


@lint.misconception("You stop at the first broken rule. There may be more.")
def first_only(model: Shape) -> list[str]:
    return _rule_by_rule(model)[:1]


@lint.misconception("Edges are fine: exactly 4, 75 or 160 breaks no rule.")
def edges_broken(model: Shape) -> list[str]:
    found = set(_rule_by_rule(model))
    if Fraction(model["d_model"], model["layers"]) in (75, 160):
        found.add("aspect")
    if model["gated"] and Fraction(model["d_ff"], model["d_model"]) in (4, Fraction(5, 2)):
        found.add("feed-forward")
    return sorted(found)


@lint.misconception("Sort the names by the alphabet.")
def unsorted(model: Shape) -> list[str]:
    return _rule_by_rule(model)[::-1]


@lint.misconception("The norm of post-norm, double-norm and output-norm models does not stand where most have it: pre.")
def placement_ignored(model: Shape) -> list[str]:
    return _without(model, "placement")


@lint.misconception("Dropout above 0 in pre-training breaks a rule.")
def dropout_ignored(model: Shape) -> list[str]:
    return _without(model, "dropout")


@lint.misconception('"double" and "output" are not "post", but they are not "pre" either.')
def only_post_broken(model: Shape) -> list[str]:
    return _rule_by_rule(model) if model["placement"] == "post" else _without(model, "placement")
