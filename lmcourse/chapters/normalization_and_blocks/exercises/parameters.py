"""The exercise on the parameters of all norms of a model."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import LAYER_NORM, RMS, llama_like
from lmcourse.nn.block import build_block
from lmcourse.nn.norm import Norm

PLACEMENTS = ("pre", "post", "double", "output")


def _by_building(layers: int, d_model: int, kind: str, placement: str) -> int:
    """Count on a model with one block and on a single block, both without memory."""
    norm = {"layer": LAYER_NORM, "rms": RMS}.get(kind)
    if norm is None or placement not in PLACEMENTS:
        raise ValueError(f"there is no norm {kind!r} with placement {placement!r}")

    width = 2 * d_model  # rotary embeddings need an even width
    config = llama_like(1, width, 1, 2, vocab_size=2, context=2, norm=norm, block={"placement": placement})
    with torch.device("meta"):
        whole = Transformer(config.with_(final_norm=None if placement == "post" else norm))
        alone = build_block(config.layers[0], config.block, width, 0)
    first, further = (
        sum(p.numel() for m in model.modules() if isinstance(m, Norm) for p in m.parameters()) // 2
        for model in (whole, alone)
    )
    return first + (layers - 1) * further


def _hidden(random: Random) -> list[Case]:
    layers = random.sample(range(20, 99), 6)
    kinds = ("rms", "layer")
    return [
        case("one block", 1, 8, "rms", "double"),
        case("no block", 0, 8, "layer", "pre"),
        case("no block", 0, 8, "rms", "double"),
        case("no block", 0, 8, "layer", "post"),
        case("one feature", 3, 1, "layer", "post"),
        case("other placements", 5, 16, "layer", "double"),
        case("other placements", 5, 32, "rms", "output"),
        case("other placements", 6, 16, "rms", "post"),
        case("unknown names", 2, 8, "batch", "pre"),
        case("unknown names", 2, 8, "rms", "before"),
        case("unknown names", 2, 8, "RMS", "post"),
        *(
            case("other sizes", n, random.randint(2, 40) * 64, kinds[index % 2], PLACEMENTS[index % 4])
            for index, n in enumerate(layers)
        ),
    ]


norm_parameters = Exercise(
    "norm_parameters",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_by_building,
    cases=[
        case("one block of width 8", 1, 8, "layer", "pre"),
        case("GPT-3", 96, 12_288, "layer", "pre"),
        case("Llama 3.1 405B", 126, 16_384, "rms", "pre"),
        case("Gemma 2 9B", 42, 3_584, "rms", "double"),
        case("OLMo 2 7B, without its QK-norms", 32, 4_096, "rms", "output"),
        case("the original encoder", 6, 512, "layer", "post"),
        case("no block at all", 0, 8, "rms", "pre"),
        case("an unknown norm", 2, 8, "group", "pre"),
        case("an unknown placement", 2, 8, "layer", "both"),
    ],
    hidden_cases=_hidden,
    hints=[
        "How many numbers does one norm have? How many norms does a block have? Is there one more at the end?",
        "A LayerNorm has 2 · d_model numbers, an RMSNorm d_model.",
        "Two norms a block, four with “double”. If the stream itself is never normalised, add one more before the "
        "head.",
    ],
)


@norm_parameters.variant
def with_tables(layers: int, d_model: int, kind: str, placement: str) -> int:
    try:
        per_norm = {"layer": 2, "rms": 1}[kind] * d_model
        per_block, final = {"pre": (2, 1), "output": (2, 1), "double": (4, 1), "post": (2, 0)}[placement]
    except KeyError as error:
        raise ValueError(str(error)) from error
    return (layers * per_block + final) * per_norm


@norm_parameters.variant
def block_by_block(layers: int, d_model: int, kind: str, placement: str) -> int:
    if kind not in ("layer", "rms") or placement not in ("pre", "post", "double", "output"):
        raise ValueError("unknown")
    total = 0
    for _ in range(layers):
        for _branch in ("attention", "feed-forward"):
            for _norm in range(2 if placement == "double" else 1):
                total += d_model
                if kind == "layer":
                    total += d_model
    if placement != "post":
        total += 2 * d_model if kind == "layer" else d_model
    return total


@norm_parameters.variant
def with_shapes(layers: int, d_model: int, kind: str, placement: str) -> int:
    norms = 2 * layers
    match placement:
        case "double":
            norms = 2 * norms + 1
        case "pre" | "output":
            norms += 1
        case "post":
            pass
        case _:
            raise ValueError(placement)
    if kind == "layer":
        return torch.empty(norms, 2, d_model, device="meta").numel()
    if kind == "rms":
        return torch.empty(norms, d_model, device="meta").numel()
    raise ValueError(kind)


def _count(
    layers: int,
    d_model: int,
    kind: str,
    placement: str,
    *,
    per_layer: int = 2,
    per_rms: int = 1,
    double: int = 4,
    single: int = 2,
    final: int = 1,
    post_final: int = 0,
    output: int = 2,
) -> int:
    if kind not in ("layer", "rms") or placement not in PLACEMENTS:
        raise ValueError
    last = post_final if placement == "post" else final
    norms = layers * {"double": double, "output": output}.get(placement, single) + last
    return norms * d_model * (per_layer if kind == "layer" else per_rms)


@norm_parameters.misconception("A LayerNorm has a scale *and* a shift: 2 · d_model numbers. Yours has d_model.")
def layer_norm_without_shift(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, per_layer=1)


@norm_parameters.misconception("The norm before the head is missing.")
def final_forgotten(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, final=0)


@norm_parameters.misconception("You count a shift in RMSNorm. It has only a scale.")
def rms_with_shift(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, per_rms=2)


@norm_parameters.misconception(
    "You count the norms of a block even if there is none. With 0 layers only the norm before the head is left."
)
def a_block_at_least(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(max(layers, 1), d_model, kind, placement)


@norm_parameters.misconception(
    "You leave out the norm before the head if there are no blocks. It is there, except in “post”."
)
def nothing_without_blocks(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement) if layers else _count(0, d_model, kind, "post")


@norm_parameters.misconception("“double” has a norm before and after each of two branches: four a block.")
def double_counts_two(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, double=2)


@norm_parameters.misconception("“double” has four norms a block. Yours has three, as if only one branch had two.")
def double_counts_three(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, double=3)


@norm_parameters.misconception(
    "You count a norm before the head of a post-norm model. Its last block already ends with a norm."
)
def post_has_a_final_norm(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, post_final=1)


@norm_parameters.misconception("A block has two branches, each with its own norm. You count one branch.")
def one_a_block(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, single=1, output=1, double=2)


@norm_parameters.misconception("You count two norms per branch in “output”. There is one, after the branch.")
def output_counts_four(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, output=4)


@norm_parameters.misconception(
    "Your norm before the head has only a scale. In a model with LayerNorms it is a LayerNorm, too."
)
def final_without_shift(layers: int, d_model: int, kind: str, placement: str) -> int:
    right = _count(layers, d_model, kind, placement)
    return right - d_model * (kind == "layer" and placement != "post")


@norm_parameters.misconception(
    "You count the norm before the head for “pre” only. With “double” and “output” it is there as well."
)
def final_for_pre_only(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, final=int(placement == "pre"))


@norm_parameters.misconception("You count norms. Count parameters: a norm has one or two per feature.")
def norms_counted(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, 1, kind, placement)


@norm_parameters.misconception("You return a result for an unknown kind or placement. Raise ValueError.")
def any_name(layers: int, d_model: int, kind: str, placement: str) -> int:
    known = placement if placement in PLACEMENTS else "pre"
    return _count(layers, d_model, kind if kind == "layer" else "rms", known)


@norm_parameters.misconception(
    "You count two norms before the head in “double”. There is one in every model but “post”."
)
def double_has_two_final_norms(layers: int, d_model: int, kind: str, placement: str) -> int:
    return _count(layers, d_model, kind, placement, final=2 if placement == "double" else 1)
