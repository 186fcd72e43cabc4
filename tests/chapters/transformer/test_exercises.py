"""The references of notebook 12 against torch, the package's own models, and what the predictions say."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lmcourse.chapters.transformer import exercises
from lmcourse.chapters.transformer.exercises.llama_405b import RIGHT
from lmcourse.chapters.transformer.figures.models import published
from lmcourse.collect import package_config
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.parity.parts import COURSE_PARTS, decoder_weights
from lmcourse.pretrained import load_pretrained


@pytest.mark.parametrize("tied", [False, True])
def test_the_decoder_is_the_packages_model(tied: bool) -> None:
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 48, 6, 80, vocab_size=70, context=32, kv_heads=2, theta=300.0, tied=tied)).eval()
    tokens = torch.randint(70, (2, 20))
    parts = {**COURSE_PARTS, "self_attention": exercises.self_attention.reference}
    with torch.no_grad():
        found = exercises.decoder.reference(tokens, decoder_weights(model), package_config(model.config), parts)
        torch.testing.assert_close(found, model(tokens), rtol=1e-5, atol=1e-5)


def test_rows_are_reordered_as_the_models_weights_are() -> None:
    model = Transformer(llama_like(1, 48, 6, 80, vocab_size=70, context=32, kv_heads=2))
    attention = model.blocks[0].attention.layer  # type: ignore[union-attr]
    rows = attention.qkv.weight.detach()[: 8 * 8]  # type: ignore[ index,operator,union-attr,unused-ignore]
    assert torch.equal(exercises.pair_neighbours.reference(rows, 8), decoder_weights(model)["blocks"][0]["qkv"][:64])


def test_the_loss_is_that_of_notebook_05_where_everything_counts() -> None:
    from lmcourse.chapters.language_models.exercises import next_token_loss

    logits, tokens = torch.randn(3, 6, 11), torch.randint(11, (3, 6))
    torch.testing.assert_close(
        exercises.causal_lm_loss.reference(logits, tokens), next_token_loss.reference(logits, tokens)
    )


def test_the_last_bar_of_the_lens_is_the_models_loss() -> None:
    model = load_pretrained().model.double()
    tokens = torch.randint(512, (2, 9), generator=torch.Generator().manual_seed(0))
    states: list[torch.Tensor] = []
    model.norm.register_forward_pre_hook(lambda module, given: states.append(given[0]))
    with torch.no_grad():
        logits = model(tokens[:, :-1])
        head = model.head.linear.weight
        found = exercises.logit_lens.reference(states, model.norm.weight, head, tokens[:, 1:])
    assert found[0] == pytest.approx(F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item())


@pytest.mark.parametrize(("vocabulary", "spread"), [(4096, 0.0), (50_000, 0.5), (50_000, 1.5)])
def test_random_logits_have_the_loss_of_the_formula(vocabulary: int, spread: float) -> None:
    logits = spread * torch.randn(200, vocabulary, generator=torch.Generator().manual_seed(0))
    measured = F.cross_entropy(logits, torch.arange(200)).item()
    assert measured == pytest.approx(
        exercises.initial_loss.reference(vocabulary, spread), abs=4 * spread / 200**0.5 + 1e-5
    )


def test_influence_of_the_packages_decoder_is_a_triangle() -> None:
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 16, 2, 32, vocab_size=5, context=8)).double().eval()
    with torch.no_grad():
        found = exercises.influence.reference(model, torch.tensor([3, 1, 4, 1, 0]), 5)
    assert torch.equal(found, torch.ones(5, 5).tril() > 0)


def test_llama_has_the_numbers_that_are_printed() -> None:
    assert exercises.llama_405b.reference() == RIGHT
    assert find_model("llama-3.1-405b").parameters == RIGHT["total"]
    wrong = [each.answer()["total"] for each in exercises.llama_405b.misconceptions]
    assert RIGHT["total"] - 2 * 256 * 16_384 in wrong
    assert RIGHT["total"] + RIGHT["feed_forward"] // 3 in wrong
    assert RIGHT["total"] - RIGHT["embedding"] in wrong
    assert RIGHT["total"] - RIGHT["norms"] in wrong
    assert RIGHT["total"] + 2 * (RIGHT["queries"] - RIGHT["keys"]) in wrong
    assert RIGHT["total"] - RIGHT["feed_forward"] // 3 in wrong


def test_the_models_of_the_lint_cases_are_those_of_the_zoo() -> None:
    names = {"Llama 3 8B": "llama-3-8b", "GPT-2 XL": "gpt-2-xl", "T5 11B": "t5-11b", "Gemma 2 9B": "gemma-2-9b"}
    names |= {"BLOOM": "bloom-176b", "Qwen3 32B": "qwen3-32b"}
    for case in exercises.lint.cases:
        if case.name in names:
            config = find_model(names[case.name]).decoder
            attention, feed_forward = config.layers[0].attention, config.layers[0].feed_forward
            assert case.args[0] == {
                "d_model": config.d_model,
                "layers": len(config.layers),
                "heads": attention.heads,
                "d_head": attention.head_width(config.d_model),
                "d_ff": feed_forward.width,
                "gated": feed_forward.gated,
                "placement": config.block.placement,
                "dropout": config.block.dropout,
            }


def test_what_the_text_says_of_published_models() -> None:
    ratios = {e.name: e.decoder.d_model / len(e.decoder.layers) for e in published()}
    assert round(ratios["bloom-176b"]) == 205
    gemma = find_model("gemma-3-1b").decoder
    assert (gemma.vocab_size, gemma.d_model) == (262_144, 1152)
