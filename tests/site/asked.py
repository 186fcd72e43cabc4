"""Sentences in which notebooks ask readers to move a figure's controls, each with the settings that it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

ALL = "all of its values, one after the other"

Settings = tuple[dict[str, Any], ...]
"""Settings that a sentence asks for, in order. The controls of a setting are changed in this order and keep their
values."""

ASKED: dict[str, list[tuple[str, str, Settings]]] = {
    "01": [
        ("quantisation_error", "Move the scale", ({"scale": ALL},)),
        ("running_sums", "Move the increment", ({"increment": ALL},)),
        ("softmax_bars", "which of the two sliders moves the bars?", ({"temperature": ALL}, {"shift": ALL})),
    ],
    "02": [
        ("stride_map", "Choose a view", ({"view": "x[:, ::2]", "row": 2, "column": 1}, {"view": ALL})),
        ("memory_timeline", "choose it in the figure", ({"line": "GELU, written out"}, {"line": "GELU, fused"})),
        ("picked_cells", "Choose a line", ({"line": ALL},)),
    ],
    "03": [
        ("gaussian_loss", "Move the slider until both slopes agree", ({"sigma": 0.71},)),
        ("computation_graph", "tick `gradients`", ({"gradients": True, "graph": "two-word softmax"},)),
        ("layernorm_gradient", "Drag the offset", ({"offset": ALL},)),
        ("layernorm_gradient", "Drag the spread", ({"spread": ALL},)),
    ],
    "04": [
        ("chord_and_parabola", "Move the point, and lower $L$", ({"at": ALL, "L": ALL},)),
        ("chord_and_parabola 2", "Lengthen the step", ({"step": ALL},)),
        (
            "descent_path",
            "which of them mind the size of the valley, which its rotation?",
            ({"kappa": 1000.0, "method": ALL}, {"rotation": 90.0, "method": ALL}),
        ),
    ],
    "05": [
        ("cross_entropy_bars", "can you make the orange part vanish?", ({"books": 0.6, "laptops": 0.3},)),
        ("work_grid", "Tick `reuse`", ({"reuse": True},)),
    ],
    "07": [
        ("merge_steps", "Move the step", ({"step": ALL},)),
        ("prefetch_timeline", "Choose the loop in the picture", ({"loop": ALL},)),
        (
            "prefetch_timeline",
            "Then change the times until the *copy* decides",
            ({"loop": ALL, "copy": 20.0, "compute": 5.0},),
        ),
        (
            "prefetch_timeline",
            "take the current stream or pageable memory",
            ({"stream": "current stream", "loop": ALL}, {"memory": "pageable", "loop": ALL}),
        ),
    ],
    "08": [
        (
            "head_by_hand",
            'can you make "he" look at Susan?',
            ({"token": ALL}, {"token": "he", "start_with": "no query asks"}),
        ),
        (
            "shared_keys",
            "Slide from MHA over GQA to MQA, and make the text longer",
            ({"kv_heads": 32}, {"kv_heads": 8}, {"kv_heads": 1, "context": ALL}),
        ),
        ("mask_zoo", 'see under "chunk"', ({"kind": "chunk", "query": ALL},)),
        ("receptive_field", 'Switch "full layers" to "every 4th"', ({"full_layers": "every 4th", "layers": ALL},)),
    ],
    "09": [
        ("wavelengths", "Pick a pair", ({"pair": ALL},)),
        (
            "rotating_pair",
            "Choose *only know* and move the first slider",
            ({"turned": "only know", "words_before": ALL},),
        ),
        ("position_scores", "Shift the text", ({"scheme": "T5", "shift": ALL}, {"scheme": "learned", "shift": ALL})),
    ],
    "10": [("norm_circle", "Try `layer`, too", ({"kind": "layer", "eps": ALL},))],
    "11": [
        ("universal_fit", "Try one unit, then eight, then 64", ({"width": 1}, {"width": 8}, {"width": 64})),
        ("universal_fit", "Then take the activation away", ({"activation": "identity", "width": ALL},)),
        (
            "activation_explorer",
            "Move $\\beta$, the sharpness, up",
            ({"activation": "silu", "sharpness": 20.0}, {"sharpness": 0.1}),
        ),
        ("gate_surface", "Move the two sliders", ({"layer": "Bilinear", "gate": ALL, "value": ALL},)),
        ("hidden_unit", "Begin with unit 225 of layer 1", ({"layer": 1, "unit": 225},)),
        (
            "hidden_unit",
            "Try 286 of layer 0",
            ({"layer": 0, "unit": 286}, {"layer": 1, "unit": 276}, {"layer": 3, "unit": 57}),
        ),
    ],
    "12": [("pipeline", "Then make the text longer", ({"length": ALL},))],
    "13": [("truncated_normal", "Move the limit", ({"limit": ALL},))],
    "14": [
        ("memory_saved_tensors", "Move the length", ({"length": ALL},)),
        ("memory_tensor_parallel", "Tick *sequence parallel*", ({"sequence_parallel": True, "length": ALL},)),
        ("memory_halving", "Start at 128 tokens, and go up", ({"length": 128}, {"length": ALL})),
        ("memory_timeline", "tick *accumulated*", ({"accumulated": True, "recompute_blocks": True},)),
        (
            "memory_budget",
            "Find at least three single changes",
            ({"recompute_blocks": True}, {"devices": 4}, {"card": "h200"}, {"length": 2048}, {"precision": ALL}),
        ),
        (
            "memory_budget",
            "how many B200s does Llama 3.1 405B need",
            ({"model": "llama-3.1-405b", "card": "b200", "devices": ALL},),
        ),
    ],
    "15": [
        ("matmul_cube", "Move the sizes", ({"m": ALL, "k": ALL, "n": ALL},)),
        ("flops_by_part", "Slide the length", ({"length": ALL},)),
        ("six_n_gap", "try all three", ({"N": ALL},)),
        ("training_budget", "ten times the tokens, or half the MFU?", ({"mfu": 0.2, "tokens_in_billions": ALL},)),
        ("training_budget", "How many GPUs do you need", ({"gpus": ALL},)),
        ("training_budget", "slide to yours", ({"dollars_per_gpu_hour": ALL},)),
        ("generation_cost", "Slide the length", ({"tokens": ALL},)),
        ("products_on_the_roof", "move `faster`", ({"faster": ALL},)),
    ],
    "16": [
        ("gradient_spikes", "how many steps would be clipped at a norm of 0.5?", ({"clip": 0.5, "factor": ALL},)),
        (
            "softmax_of_growing_logits",
            "With logits 20 times as large",
            ({"scale": 20.0, "precision": ALL, "cap": "10"},),
        ),
        ("lost_updates", "it would take $\\lambda = 2$", ({"rate": 0.001, "decay": 2.0},)),
    ],
    "17": [
        ("next_token", "Try both beginnings", ({"beginning": ALL, "top_k": ALL},)),
        (
            "next_token",
            "Then set the temperature to 2, and try to save the text with each of the three rules alone",
            tuple({"temperature": 2.0, rule: ALL, "beginning": ALL} for rule in ("top_k", "top_p", "min_p")),
        ),
        ("decode_step", "Then make the texts four times as long", ({"context": 2048, "batch": ALL},)),
    ],
    "18": [
        (
            "bucket_timeline",
            "Then choose a bucket that is too small",
            ({"tokens": ALL}, {"bucket": "1 MB"}, {"bucket": "16,060 MB"}),
        ),
        (
            "pipeline_schedule",
            "Choose `micro`, and switch between the two schedules",
            ({"micro": 32, "schedule": ALL}, {"micro": 8, "schedule": ALL}),
        ),
        ("layout_explorer", "Double the pipeline", ({"pipeline": 8},)),
        (
            "layout_explorer",
            "Then find a layout for 256 devices",
            ({"cluster": "256 devices, 512 texts", "zero": 0, "tensor": 4, "pipeline": 16}, {"zero": 2, "pipeline": 2}),
        ),
    ],
    "19": [("product_intensity", "Make the matrix narrow", ({"width": 256, "tokens": ALL},))],
    "21": [("s_curve", "Try to catch the red ticks", ({"bands": 16, "rows": 4},))],
}
"""For each chapter: the figure (its function and, if it has several calls, the call's number), words of the text,
settings."""

OTHER = (
    "move each parameter a little against its gradient",
    "**You will be able to**",
    "choose $\\gamma < 2/L$",
    "Move the step.",
    "Try to find it before you read on",
    "Switch all of `units` off at once",
    "Switch eight units off",
    "Switch it off, and see what the text loses",
    "Try it",
    "and pick the right one for each key",
    "Now try the simplest $f$",
    "Now choose a shape yourself",
    "*Switch Transformers*",
    "Try one run yourself",
    "Try your own",
    "choose a row and run it",
    "Try both, with *your* cache",
    "Try several, and take the best",
    "try a lower rate from that checkpoint on",
    "Try $T = 8$, and layers or copies across the machines",
)
"""Sentences with a similar verb that are not about a figure of the site."""

_VERB = re.compile(
    r"(?:^|[(>*\"“]\s*|\bthen |\band |, |: |\bnow )"
    r"(?:drag|slide|switch|tick|move|choose|pick|lengthen|shift the|try)\b",
    re.IGNORECASE,
)


def told_to_move(text: str) -> Iterator[str]:
    """Yield the sentences of a text that tell the reader to move something."""
    without_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for sentence in re.split(r"(?<=[.?!:])[*)\"”]*\s+", without_code.replace("\n", " ")):
        if _VERB.search(sentence):
            yield sentence
