"""The references of notebook 16 against torch's clipping and scaler, Hugging Face's norms, and plain search."""

from __future__ import annotations

import math
import random

import pytest
import torch
from torch import Tensor, nn

from lmcourse.chapters.stability import exercises
from lmcourse.models.loss import next_token_loss
from lmcourse.training.spike_detector import MIN_NORMS, WINDOW, SpikeDetector


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.3])
def test_the_z_loss_is_that_of_the_trainer(alpha: float) -> None:
    logits, targets = torch.randn(5, 7), torch.randint(7, (5,))
    loss, _ = exercises.z_loss.reference(logits, targets, alpha)
    torch.testing.assert_close(loss, next_token_loss(logits, targets, z_loss=alpha))


def test_the_gradient_of_the_z_loss_is_that_of_finite_differences() -> None:
    logits, targets = torch.randn(3, 4, dtype=torch.float64), torch.tensor([1, 0, 3])
    _, gradient = exercises.z_loss.reference(logits, targets, 0.2)
    step = 1e-6
    for place in range(12):
        moved = torch.zeros(12, dtype=torch.float64)
        moved[place] = step
        up, down = (exercises.z_loss.reference(logits + sign * moved.view(3, 4), targets, 0.2)[0] for sign in (1, -1))
        assert (up - down).item() / (2 * step) == pytest.approx(gradient.flatten()[place].item(), abs=1e-8)


def test_a_step_down_the_right_loss_lowers_log_z_and_down_the_printed_one_raises_it() -> None:
    assert exercises.log_z_after.reference() == pytest.approx(5.210, abs=5e-4)
    printed = exercises.log_z_after.misconceptions[0].answer()
    assert printed == pytest.approx(5.607, abs=5e-4)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_normalised_scores_are_those_of_hugging_faces_norm(size: float) -> None:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    q, k = size * torch.randn(2, 3, 4, 8), size * torch.randn(2, 3, 5, 8)
    norms = [Qwen3RMSNorm(8, eps=1e-6) for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
    expected = norms[0](q) @ norms[1](k).transpose(-1, -2) / math.sqrt(8)
    found = exercises.qk_norm.reference(q, k, norms[0].weight, norms[1].weight)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("d", [2, 5, 16])
def test_no_search_finds_a_score_above_the_bound_and_a_good_one_comes_near(d: int) -> None:
    gamma_q, gamma_k = torch.randn(2, d)
    bound = exercises.max_logit_bound.reference(gamma_q, gamma_k)
    q, k = nn.Parameter(torch.randn(64, d)), nn.Parameter(torch.randn(64, d))
    optimizer = torch.optim.Adam([q, k], 0.1)
    for _ in range(400):
        scores = (_unit(q) * gamma_q * _unit(k) * gamma_k).sum(-1).abs() / math.sqrt(d)
        optimizer.zero_grad()
        (-scores.sum()).backward()
        optimizer.step()
    assert scores.max().item() <= bound * (1 + 1e-5)
    assert scores.max().item() > 0.98 * bound


def _unit(x: Tensor) -> Tensor:
    return x * x.square().mean(-1, keepdim=True).rsqrt()


def test_norms_are_counted_as_hugging_face_has_them() -> None:
    from transformers import Gemma2Config, Gemma3TextConfig, GPT2Config, LlamaConfig, Olmo2Config, PreTrainedConfig
    from transformers.models.gemma2.modeling_gemma2 import Gemma2DecoderLayer, Gemma2RMSNorm
    from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer, Gemma3RMSNorm
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm
    from transformers.models.olmo2.modeling_olmo2 import Olmo2DecoderLayer, Olmo2RMSNorm

    small = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
    small |= {"intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 32}
    layers: dict[str, tuple[type[nn.Module], PreTrainedConfig, type[nn.Module]]] = {
        "gpt-2": (GPT2Block, GPT2Config(n_embd=32, n_head=2), nn.LayerNorm),
        "llama-7b": (LlamaDecoderLayer, LlamaConfig(**small), LlamaRMSNorm),
        "gemma-2-9b": (Gemma2DecoderLayer, Gemma2Config(**small), Gemma2RMSNorm),
        "olmo-2-7b": (Olmo2DecoderLayer, Olmo2Config(**small), Olmo2RMSNorm),
        "gemma-3-4b": (Gemma3DecoderLayer, Gemma3TextConfig(**small), Gemma3RMSNorm),
    }
    counted = {}
    for name, (layer, config, norm) in layers.items():
        counted[name] = sum(isinstance(module, norm) for module in layer(config, 0).modules())
    assert exercises.norms_per_block.reference() == counted


def test_gemma_2_caps_where_the_exercise_does() -> None:
    from transformers import Gemma2Config

    assert Gemma2Config().attn_logit_softcapping == 50.0
    assert Gemma2Config().final_logit_softcapping == 30.0
    value, slope = exercises.soft_cap.reference(torch.tensor([10.0, 100.0], dtype=torch.float64), 50.0)
    assert [round(number, 2) for number in value.tolist()] == [9.87, 48.2]
    assert round(slope[1].item(), 3) == 0.071


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e3])
def test_clipping_is_torchs_up_to_its_epsilon(limit: float) -> None:
    parameters = [nn.Parameter(torch.zeros(3, 2)), nn.Parameter(torch.zeros(5))]
    for parameter in parameters:
        parameter.grad = 4 * torch.randn_like(parameter)
    gradients = [parameter.grad.clone() for parameter in parameters if parameter.grad is not None]
    clipped, norm = exercises.clip_by_global_norm.reference(gradients, limit)
    theirs = nn.utils.clip_grad_norm_(parameters, limit)
    assert norm == pytest.approx(theirs.item())
    for mine, parameter in zip(clipped, parameters, strict=True):
        torch.testing.assert_close(mine, parameter.grad)


def test_spikes_are_those_of_the_trainer() -> None:
    source = random.Random(0)
    norms = [source.lognormvariate(0, 0.3) * (30 if source.random() < 0.04 else 1) for _ in range(400)]
    watch = SpikeDetector(5.0)
    theirs = [step for step, norm in enumerate(norms) if watch.observe(norm) is not None]
    assert exercises.spike_detector.reference(norms, 5.0, WINDOW, MIN_NORMS) == theirs
    assert len(theirs) > 5


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_scale_is_that_of_torchs_scaler(seed: int) -> None:
    source = random.Random(seed)
    weight = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weight], 1.0)
    theirs = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    ours = exercises.LossScaler.reference(1024.0, interval=3)
    theirs.scale(torch.zeros(()))
    for _ in range(60):
        raw = torch.tensor([source.gauss(0, 9), math.inf if source.random() < 0.2 else 1.0])
        before = weight.detach().clone()
        weight.grad = raw.clone()
        theirs.unscale_(optimizer)
        theirs.step(optimizer)
        theirs.update()
        found = ours.unscale([raw])
        step = before - weight.detach()
        if found is None:
            assert not step.any()
        else:
            torch.testing.assert_close(step, found[0], atol=1e-5, rtol=1e-4)
        assert ours.scale == theirs.get_scale()


def test_the_slope_of_the_cap_is_torchs() -> None:
    logits = torch.randn(9, dtype=torch.float64, requires_grad=True)
    (4.0 * torch.tanh(logits / 4.0)).sum().backward()
    torch.testing.assert_close(exercises.soft_cap.reference(logits, 4.0)[1], logits.grad)
    with pytest.raises(ValueError, match="positive"):
        exercises.soft_cap.reference(logits, 0.0)
