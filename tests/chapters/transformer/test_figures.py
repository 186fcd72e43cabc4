"""The figures of notebook 12: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.transformer import figures
from lmcourse.chapters.transformer.figures.models import CHOICES, MODELS, choices, published
from lmcourse.chapters.transformer.figures.pipeline import shapes
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from tests.plots.figures import check_figure

TABLE = torch.ones(6, 6, dtype=torch.bool)
PARTS = [f"{kind} {number}" for number in range(4) for kind in ("attention", "feed-forward")]
STARTS = {
    "untied, torch's own": [(5.7, 5.7), (11.0, 10.9)],
    "untied, small (gpt2)": [(5.5, 5.5), (9.0, 9.0)],
    "tied, torch's own N(0, 1)": [(45.0, 60.0), (42.0, 61.0)],
    "tied, small (gpt2)": [(5.6, 5.5), (9.0, 9.1)],
}
DRAWINGS: list[Callable[..., Figure]] = [
    *(partial(figures.pipeline, *choice) for choice in ((3, 4, 2), (1, 4, 1), (64, 16, 4), (64, 4, 4))),
    partial(figures.lens, ["embedding", *PARTS], [20.3, 16.2, 3.4, 3.5, 2.9, 2.8, 2.7, 2.5, 2.1], 6.2),
    partial(figures.initial_losses, STARTS),
    partial(figures.readers, {"decoder": TABLE.tril(), "two layers, window 2": TABLE.triu(-2), "leak": TABLE}),
    *(partial(figures.parameters_by_part, model) for model in MODELS),
    figures.aspect_scatter,
    figures.then_and_now,
    *(partial(figures.feature_timeline, choice) for choice in CHOICES),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize(("length", "heads", "kv_heads"), [(3, 4, 2), (7, 8, 1), (1, 16, 16)])
def test_the_shapes_are_those_of_a_model(length: int, heads: int, kv_heads: int) -> None:
    with torch.device("meta"):
        model = Transformer(llama_like(1, 64, heads, 256, vocab_size=1000, context=64, kv_heads=kv_heads))
    seen: dict[str, tuple[int, ...]] = {}
    block = model.blocks[0]
    attention, feed_forward = block.attention.layer, block.feed_forward.layer  # type: ignore[union-attr]
    model.embedding.register_forward_hook(lambda m, i, o: seen.__setitem__("stream", tuple(o.shape)))
    attention.qkv.register_forward_hook(lambda m, i, o: seen.__setitem__("qkv", tuple(o.shape)))  # type: ignore[union-attr]
    feed_forward.down.register_forward_hook(  # type: ignore[union-attr]
        lambda m, i, o: seen.__setitem__("hidden", tuple(i[0].shape))
    )
    logits = model(torch.zeros(2, length, dtype=torch.int64, device="meta"))
    found = shapes(length, heads, kv_heads)
    assert (found["stream"], found["hidden"], found["logits"]) == (seen["stream"], seen["hidden"], tuple(logits.shape))
    width = found["queries"][3]
    assert seen["qkv"][2] == (found["queries"][1] + 2 * found["keys, values"][1]) * width
    assert found["scores"] == (2, heads, length, length)


def test_heads_that_cannot_be_shared_are_refused_and_the_control_falls_back_to_one() -> None:
    with pytest.raises(ValueError, match="neither may be left over"):
        shapes(3, 6, 6)
    with pytest.raises(ValueError, match="neither may be left over"):
        shapes(3, 4, 3)
    assert "keys, values 2 × 1 × 3 × 16" in plots.alt_text(figures.pipeline(3, 4, 3))


def test_the_parts_of_a_model_are_all_of_it() -> None:
    config = find_model("gemma-3-1b").config
    bars = figures.parameters_by_part("gemma-3-1b").axes[0].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(1.0)  # type: ignore[attr-defined]
    assert f"{count_parameters(config).total:,} in all" in plots.alt_text(figures.parameters_by_part("gemma-3-1b"))
    assert "30.20%" in [text.get_text() for text in figures.parameters_by_part("gemma-3-1b").axes[0].texts]


def test_a_token_that_comes_later_is_orange() -> None:
    image = figures.readers({"leak": TABLE}).axes[0].images[0].get_array()
    assert image is not None
    assert tuple(image[0, 1]) != tuple(image[1, 0]) == tuple(image[3, 3])


@pytest.mark.parametrize("choice", CHOICES)
def test_every_published_model_is_in_the_timeline_once(choice: str) -> None:
    assert sum(sum(found.values()) for found in choices(choice).values()) == len(published())


def test_the_timeline_tells_what_the_text_says() -> None:
    early, late = ([*choices(choice).values()] for choice in ("positions", "positions"))
    assert early[0].get("RoPE", 0) == 0
    assert late[-1] == {"RoPE": sum(late[-1].values())}
    assert [*choices("dropout").values()][-1].keys() == {"none"}
    with pytest.raises(ValueError, match="one of norm, placement"):
        choices("colour")


def test_the_blocks_of_then_and_now_name_what_changed() -> None:
    told = plots.alt_text(figures.then_and_now())
    then, now = told.split("; today: ")
    assert "LayerNorm, in the stream" in then
    assert "RMSNorm, in the branch" in now
    assert "SwiGLU" in now
    assert "SwiGLU" not in then


def test_the_survey_is_filtered_sorted_and_judged() -> None:
    table = figures.SurveyTable(lambda entry: ["aspect"] if entry.name == "gpt-2-xl" else [])
    everything = len(published())
    assert repr(table) == f"{everything} of {everything} models, newest first"
    still = table._repr_mimebundle_()["text/html"]
    assert still.count("<tr>") == 1 + 12
    assert f"{everything} of {everything} models, the first 12 of them" in still
    table.controls["breaks"].value = "aspect"
    assert [row.name for row in table.rows()] == ["gpt-2-xl"]
    assert "1 of" in table.table.value
    assert ">aspect</td>" in table.table.value
    table.controls["breaks"].value = "none"
    assert len(table.rows()) == everything - 1
    table.controls["norm"].value = "RMSNorm"
    table.controls["positions"].value = "RoPE"
    assert {row.norm for row in table.rows()} == {"RMSNorm"}
    assert all("RoPE" in row.position for row in table.rows())
    table.controls["order"].value = "deepest"
    aspects = [row.aspect for row in table.rows()]
    assert aspects == sorted(aspects)


def test_a_survey_without_a_judge_has_no_verdicts() -> None:
    table = figures.SurveyTable()
    assert "breaks" not in table.controls
    assert ">breaks</th>" not in table.table.value
    assert {row.name: row.parameters for row in table.rows()}["llama-3.1-405b"] == 405_853_388_800
