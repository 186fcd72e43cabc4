"""Notebook 16: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lmcourse import plots
from lmcourse.chapters.stability import exercises, figures
from lmcourse.chapters.stability.figures.map import norms_of
from lmcourse.chapters.stability.figures.softmax import grown_softmax
from lmcourse.chapters.stability.patients import (
    CHANGES,
    MEDICINES,
    RATES,
    WIDTH,
    layers,
    new_model,
    peaks,
    query_gradient,
    train,
    treat,
)
from lmcourse.chapters.stability.stored import measured, shown_signs, stored
from lmcourse.chapters.stability.ward import KEEPS, ask, inspect_doctor, visits
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.zoo import find_model
from lmcourse.training.spike_detector import MIN_NORMS, WINDOW, SpikeDetector


def test_the_gradient_of_the_z_loss_matches_finite_differences() -> None:
    logits, targets = torch.randn(3, 4, dtype=torch.float64), torch.tensor([1, 0, 3])
    _, gradient = exercises.z_loss.reference(logits, targets, 0.2)
    step = 1e-6
    for place in range(12):
        moved = torch.zeros(12, dtype=torch.float64)
        moved[place] = step
        up, down = (exercises.z_loss.reference(logits + sign * moved.view(3, 4), targets, 0.2)[0] for sign in (1, -1))
        assert (up - down).item() / (2 * step) == pytest.approx(gradient.flatten()[place].item(), abs=1e-8)


@pytest.mark.prove
def test_normalised_scores_match_hugging_faces_norm() -> None:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    size = 1e-3
    q, k = size * torch.randn(2, 3, 4, 8), size * torch.randn(2, 3, 5, 8)
    norms = [Qwen3RMSNorm(8, eps=1e-6) for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
    expected = norms[0](q) @ norms[1](k).transpose(-1, -2) / math.sqrt(8)
    found = exercises.qk_norm.reference(q, k, norms[0].weight, norms[1].weight)
    torch.testing.assert_close(found, expected)


def test_search_finds_scores_near_the_bound_but_none_above() -> None:
    d = 5
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


@pytest.mark.prove
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
    assert {name: sum(norms_of(find_model(name).decoder)) for name in layers} == counted


@pytest.mark.parametrize("limit", [0.5, 1e3])
def test_clipping_matches_torchs_up_to_its_epsilon(limit: float) -> None:
    parameters = [nn.Parameter(torch.zeros(3, 2)), nn.Parameter(torch.zeros(5))]
    for parameter in parameters:
        parameter.grad = 4 * torch.randn_like(parameter)
    gradients = [parameter.grad.clone() for parameter in parameters if parameter.grad is not None]
    clipped, norm = exercises.clip_by_global_norm.reference(gradients, limit)
    theirs = nn.utils.clip_grad_norm_(parameters, limit)
    assert norm == pytest.approx(theirs.item())
    for mine, parameter in zip(clipped, parameters, strict=True):
        torch.testing.assert_close(mine, parameter.grad)


def test_spikes_match_the_trainer() -> None:
    source = random.Random(0)
    norms = [source.lognormvariate(0, 0.3) * (30 if source.random() < 0.04 else 1) for _ in range(400)]
    watch = SpikeDetector(5.0)
    theirs = [step for step, norm in enumerate(norms) if watch.observe(norm) is not None]
    assert exercises.spike_detector.reference(norms, 5.0, WINDOW, MIN_NORMS) == theirs
    assert len(theirs) > 5


def test_the_loss_scale_matches_torchs_scaler() -> None:
    source = random.Random(0)
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


@pytest.mark.parametrize(("scale", "cap"), [(3.0, None), (40.0, 10.0)])
def test_weights_and_slopes_match_torchs(scale: float, cap: float | None) -> None:
    logits = scale * torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.5], dtype=torch.float64)

    def weigh(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x if cap is None else cap * torch.tanh(x / cap), dim=0)

    found = grown_softmax(scale, "fp64", cap)
    torch.testing.assert_close(found.weights, weigh(logits))
    torch.testing.assert_close(found.slopes, torch.autograd.functional.jacobian(weigh, logits).diag())


@pytest.mark.parametrize(
    ("precision", "last_fine", "first_broken"), [("fp16", 11.0, 11.2), ("bf16", 88.0, 89.5), ("fp32", 88.5, 89.0)]
)
def test_naive_softmax_breaks_at_the_log_of_the_largest_number(
    precision: str, last_fine: float, first_broken: float
) -> None:
    assert grown_softmax(last_fine / 2, precision, None).naive == "fine"
    assert grown_softmax(first_broken / 2, precision, None).naive == "NaN"


def test_the_soft_cap_matches_known_values_at_50_and_100() -> None:
    alt = plots.alt_text(figures.soft_cap_curve(50.0, 100.0))
    assert alt == "Cap 50: 100 becomes 48.2, and 7% of the gradient comes back"
    lines = {line.get_label(): line for line in figures.soft_cap_curve(30.0).axes[0].lines}
    z = torch.as_tensor(np.asarray(lines["c · tanh(z/c)"].get_xdata())).requires_grad_()
    value = 30 * torch.tanh(z / 30)
    (slope,) = torch.autograd.grad(value.sum(), z)
    np.testing.assert_allclose(lines["c · tanh(z/c)"].get_ydata(), value.detach())
    np.testing.assert_allclose(lines["slope, times c"].get_ydata(), 30 * slope)


def test_the_written_rule_diagnoses_all_runs_and_patient_x() -> None:
    runs = stored()["signs"]
    assert len(runs) == 25
    assert [exercises.diagnose.reference(signs) for _, signs in runs] == [name for name, _ in runs]
    assert exercises.diagnose.reference(stored()["unknown"]) == "scores"


def test_the_doctor_gets_copies_and_must_keep_nothing() -> None:
    signs = shown_signs()["healthy"]
    before = list(signs["loss"])
    assert ask(lambda seen: [seen["loss"].clear(), seen.clear(), None][2], signs, 20) is None
    assert signs["loss"] == before
    calls: list[int] = []
    with pytest.raises(Unfit, match=re.escape(KEEPS)):
        inspect_doctor(lambda seen: [calls.append(1), "decay" if len(calls) % 2 else None][1])
    with pytest.raises(Unfit, match="'prayer'"):
        inspect_doctor(lambda seen: "prayer")


@pytest.mark.prove
def test_a_doctor_who_counts_patients_is_found_out() -> None:
    seen: list[int] = []

    def counting(signs: dict[str, list[float]]) -> str:
        seen.append(1)
        return ("decay", "clipping", "clipping", "rate × 10")[len(seen) % 4]

    with pytest.raises(Unfit, match=re.escape(KEEPS)):
        visits(counting)


def test_a_run_changes_only_after_the_step_of_its_change() -> None:
    untreated = train(0, "adamw", 0.03, steps=8)
    for word in CHANGES:
        run = train(0, "adamw", 0.03, steps=8, change=(4, word))
        same = 5 if word in RATES or word in ("clipping", "decay") else 4
        assert run.losses[:same] == untreated.losses[:same]
        assert (run.losses == untreated.losses) == (word == "QK-clip")


def test_qk_clip_returns_the_largest_score_to_its_limit() -> None:
    run = train(0, "sgd", 0.0, steps=2, grown=20.0)
    clipped = train(0, "sgd", 0.0, steps=2, grown=20.0, qk_clip=2.0)
    assert run.scores[0] == clipped.scores[0] > 20
    assert clipped.scores[1] < 3


def test_scores_of_a_function_replace_those_of_the_model() -> None:
    def scaled(q: Tensor, k: Tensor, gamma_q: Tensor, gamma_k: Tensor) -> Tensor:
        scores: Tensor = (gamma_q * q) @ (gamma_k * k).mT / q.shape[-1] ** 0.5
        return scores

    one, other = train(0, "adamw", 0.003, steps=6), train(0, "adamw", 0.003, steps=6, scores_with=scaled)
    assert one.losses[0] == pytest.approx(other.losses[0], abs=1e-5)
    assert one.scores[0] == pytest.approx(other.scores[0], abs=1e-5)
    assert one.losses[5] != other.losses[5]


def test_peaks_are_rows_of_one_token_and_entropy_falls_with_them() -> None:
    model = new_model(0)
    assert all(share == 0 and 2 < nats < math.log(32) for share, nats in peaks(model))
    for layer in layers(model):
        layer.qkv.weight.data[: 2 * WIDTH] *= 1000
    assert all(share > 0.9 and nats < 0.1 for share, nats in peaks(model))


def test_the_gradient_of_a_doubled_matrix_is_halved_by_the_norm() -> None:
    assert query_gradient(2, "QK-norm") == pytest.approx(query_gradient(1, "QK-norm") / 2, rel=0.01)
    assert query_gradient(2) == pytest.approx(query_gradient(1), rel=0.1)


@pytest.mark.prove
def test_stored_runs_can_be_repeated() -> None:
    run = train(0, **treat("A", "rate ÷ 10"))
    assert run.end == pytest.approx(measured("A", "rate ÷ 10")["loss"][0], abs=0.05)
    assert max(run.scores) == pytest.approx(measured("A", "rate ÷ 10")["score"][0], rel=0.2)
    exploding = train(0, **treat("B"))
    assert exploding.exploded
    assert len(exploding.losses) == pytest.approx(measured("B", "none")["steps"][0], abs=3)


def test_every_treatment_changes_the_run() -> None:
    names = (*(name for name in MEDICINES if name != "QK-clip"), "rate ÷ 10", "biases")
    runs = {name: train(0, **{**treat("A", name), "steps": 3}) for name in names}
    assert len({tuple(run.losses) for run in runs.values()}) == len(runs)
    with pytest.raises(KeyError):
        treat("A", "prayer")
