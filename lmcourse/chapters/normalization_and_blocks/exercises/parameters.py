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
def norms_and_their_size(layers: int, d_model: int, kind: str, placement: str) -> int:
    if kind not in ("layer", "rms") or placement not in ("pre", "post", "double", "output"):
        raise ValueError("unknown")
    per_norm = 2 * d_model if kind == "layer" else d_model
    per_block = 4 if placement == "double" else 2
    final = 0 if placement == "post" else 1
    return (layers * per_block + final) * per_norm


norm_parameters.slips(
    norms_and_their_size,
    {
        '2 * d_model if kind == "layer" else d_model → d_model': "A LayerNorm has a scale *and* a shift: 2 · d_model "
        "numbers. Yours has d_model.",
        '0 if placement == "post" else 1 → 0': "The norm before the head is missing.",
        '2 * d_model if kind == "layer" else d_model → 2 * d_model': "You count a shift in RMSNorm. It has only a "
        "scale.",
        "layers * per_block → max(layers, 1) * per_block": "You count the norms of a block even if there is none. With "
        "0 layers only the norm before the head is left.",
        'placement == "post" → placement == "post" or layers == 0': "You leave out the norm before the head if there "
        "are no blocks. It is there, except in “post”.",
        '4 if placement == "double" else 2 → 2': "“double” has a norm before and after each of two branches: four a "
        "block.",
        "4 if → 3 if": "“double” has four norms a block. Yours has three, as if only one branch had two.",
        '0 if placement == "post" else 1 → 1': "You count a norm before the head of a post-norm model. Its last block "
        "already ends with a norm.",
        '4 if placement == "double" else 2 → 2 if placement == "double" else 1': "A block has two branches, each with "
        "its own norm. You count one branch.",
        'placement == "double" → placement in ("double", "output")': "You count two norms per branch in “output”. "
        "There is one, after the branch.",
        "(layers * per_block + final) * per_norm → layers * per_block * per_norm + final * d_model": "Your norm before "
        "the head has only a scale. In a model with LayerNorms it is a LayerNorm, too.",
        '0 if placement == "post" else 1 → 1 if placement == "pre" else 0': "You count the norm before the head for "
        "“pre” only. With “double” and “output” it is there as well.",
        '2 * d_model if kind == "layer" else d_model → 2 if kind == "layer" else 1': "You count norms. Count "
        "parameters: a norm has one or two per feature.",
        'raise ValueError("unknown") → pass': "You return a result for an unknown kind or placement. Raise ValueError.",
        'else 1 → else 2 if placement == "double" else 1': "You count two norms before the head in “double”. There is "
        "one in every model but “post”.",
    },
)
