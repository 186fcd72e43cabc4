"""The references of notebook 14 against Hugging Face's models, torch's optimisers, and what autograd really keeps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lmcourse.accounting.activation_rules import activation_bytes_by_layer_kind
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.memory import exercises
from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.chapters.memory.exercises.parameters import gpt, llama
from lmcourse.models.zoo import find_model
from tests.accounting.test_activation_rules import MaskedBlock

BY_NAME = {exercise.name: exercise for exercise in exercises.EXERCISES}


def reference(name: str, *args: Any, **kwargs: Any) -> Any:
    return BY_NAME[name].reference(*args, **kwargs)


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameters_are_those_of_hugging_faces_gpt2() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        theirs = GPT2LMHeadModel(GPT2Config(vocab_size=90, n_positions=30, n_embd=24, n_layer=3, n_head=4))
    assert reference("parameter_count", gpt(3, 24, 4, 90, 30)) == parameters_of(theirs)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_parameters_are_those_of_hugging_faces_llama(kv_heads: int, tied: bool) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": kv_heads}
    config = LlamaConfig(vocab_size=90, intermediate_size=50, tie_word_embeddings=tied, **sizes)
    with torch.device("meta"):
        theirs = LlamaForCausalLM(config)
    ours = llama(3, 24, 4, kv_heads, 50, 90) | {"tied": tied}
    assert reference("parameter_count", ours) == parameters_of(theirs)


def test_published_totals() -> None:
    assert reference("parameter_count", gpt(12, 768, 12, 50_257, 1024)) == 124_439_808
    assert reference("parameter_count", llama(32, 4096, 32, 8, 14_336, 128_256)) == 8_030_261_248
    assert reference("parameter_count", llama(126, 16_384, 128, 8, 53_248, 128_256)) == 405_853_388_800


def test_states_in_fp32_are_the_tensors_of_adam() -> None:
    weight = nn.Parameter(torch.ones(30, 7))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    assert weight.grad is not None
    moments = sum(t.nbytes for t in optimizer.state[weight].values() if t.shape == weight.shape)
    measured = {"weights": weight.nbytes, "gradients": weight.grad.nbytes, "optimiser": moments}
    assert reference("state_bytes", 210, "fp32") == measured


def test_states_in_mixed_precision_are_two_copies_a_gradient_and_adam_on_the_second() -> None:
    master = nn.Parameter(torch.ones(30, 7))
    weights, optimizer = master.detach().bfloat16(), torch.optim.AdamW([master])
    master.grad = torch.ones(30, 7)
    optimizer.step()
    moments = sum(t.nbytes for t in optimizer.state[master].values() if t.shape == master.shape)
    measured = {"weights": weights.nbytes, "gradients": master.grad.nbytes, "optimiser": master.nbytes + moments}
    assert reference("state_bytes", 210, "mixed") == measured


def test_the_largest_model_is_the_last_whose_states_fit() -> None:
    for precision in ("fp32", "mixed", "inference"):
        largest = reference("largest_model", 80, 3, precision)
        needed = [sum(reference("state_bytes", largest + more, precision).values()) for more in (0, 1)]
        assert needed[0] <= 3 * 80_000_000_000 < needed[1]


def is_statistic(shape: tuple[int, ...]) -> bool:
    return shape[-1] == 1


def kept_of(function: Any, module: nn.Module) -> int:
    """Bytes that autograd keeps, without the statistics of norms."""
    return sum(tensor.size for tensor in saved_tensors(function, module) if not is_statistic(tensor.shape))


@pytest.mark.parametrize(("dtype", "p"), [(torch.float64, 8), (torch.float32, 4), (torch.bfloat16, 2)])
@pytest.mark.parametrize(("B", "S", "D", "A"), [(2, 6, 12, 3), (1, 9, 8, 2), (3, 5, 20, 5)])
def test_a_real_block_keeps_what_the_references_say(dtype: torch.dtype, p: int, B: int, S: int, D: int, A: int) -> None:
    block = MaskedBlock(D, A).to(dtype)
    x = torch.randn(B, S, D, dtype=dtype, requires_grad=True)
    whole = kept_of(lambda: block(x), block)
    assert whole == reference("total_activations", 1, B, S, D, A, p=p)
    assert whole == by_parts(B, S, D, A, p)


def by_parts(B: int, S: int, D: int, A: int, p: int) -> int:
    halves = reference("attention_activations", B, S, D, A, p) + reference("mlp_activations", B, S, D, 4 * D, p)
    return int(halves) + 2 * p * B * S * D


class Gated(nn.Module):
    """SwiGLU and a mask of one byte."""

    def __init__(self, d: int, d_ff: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, d_ff), nn.Linear(d, d_ff), nn.Linear(d_ff, d)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return y * (torch.rand(y.shape) > 0.1) / 0.9


@pytest.mark.parametrize(("dtype", "p"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_a_real_gated_layer_keeps_four_hidden_tensors(dtype: torch.dtype, p: int) -> None:
    layer = Gated(10, 23).to(dtype)
    x = torch.randn(2, 7, 10, dtype=dtype, requires_grad=True)
    assert kept_of(lambda: layer(x), layer) == reference("mlp_activations", 2, 7, 10, 23, p, gated=True)


@pytest.mark.parametrize("p", [2, 4])
def test_the_tensors_of_a_block_add_up_to_the_accounts_parts(p: int) -> None:
    config = find_model("gpt-3").decoder
    parts = activation_bytes_by_layer_kind(config, 3, 100, width=p)
    for part in ("norms", "attention", "feed-forward"):
        kept = [tensor.size for tensor in tensors_saved_by_block(3, 100, 12_288, 96, 49_152, p) if tensor.part == part]
        assert 96 * sum(kept) == parts[part]


def test_measured_block_of_the_notes() -> None:
    found = reference("measured_activations", MaskedBlock(64, 4), torch.randn(2, 48, 64, requires_grad=True))
    masks = 4 * 2 * 48 * 48 + 2 * 2 * 48 * 64
    assert found == {"torch.float32": 571_392 + 1536 - masks, "torch.bool": masks}


@pytest.mark.parametrize(("D", "A", "S", "E"), [(6144, 64, 2048, 4), (12_288, 96, 2048, 4), (24, 3, 50, 2)])
def test_at_the_break_even_batch_both_precisions_take_the_same(D: int, A: int, S: int, E: int) -> None:
    batch = reference("min_batch_for_mixed", D, A, S, E)
    parameters = (4 + 2 * E) * D**2
    fp32, mixed = (reference("total_activations", 1, 1, S, D, A, E, p) for p in (4, 2))
    assert 16 * parameters + batch * fp32 == pytest.approx(18 * parameters + batch * mixed, rel=1e-12)


def test_published_break_even_batches() -> None:
    assert reference("min_batch_for_mixed", 6144, 64, 2048) == pytest.approx(0.6136, abs=5e-5)
    assert reference("min_batch_for_mixed", 12_288, 96, 2048) == pytest.approx(1.5, abs=5e-4)


@pytest.mark.parametrize("T", [1, 2, 3, 6])
def test_a_device_keeps_its_heads_and_hidden_numbers_and_all_of_the_rest(T: int) -> None:
    """Cut in T: q, k, v, the output's input, hidden tensors and scores; the others are whole."""
    N, L, B, S, D, A = 1000, 2, 3, 7, 24, 6
    cut = ("queries", "keys", "values", "softmax", "weights", "input of the output", "result of up", "input of down")
    kept = tensors_saved_by_block(B, S, D, A, 4 * D, 2)
    shared = [t.size for t in kept if t.name.startswith(cut) or t.name == "mask of the weights"]
    whole = sum(t.size for t in kept) - sum(shared)
    found = reference("tensor_parallel_bytes", T, N, L, B, S, D, A)
    assert found == {"states": 18 * N / T, "activations": pytest.approx(L * (whole + sum(shared) / T), rel=1e-12)}


def test_gpt3_beside_the_corrected_figures() -> None:
    one, eight = reference("gpt3_case", 1, 2048), reference("gpt3_case", 1, 2048, T=8)
    assert {part: round(size, 1) for part, size in one.items()} == {
        "weights": 325.2,
        "gradients": 650.4,
        "optimiser": 1951.2,
        "activations": 256.5,
    }
    states = sum(size for part, size in eight.items() if part != "activations")
    assert states == pytest.approx(365.85, abs=5e-3)
    assert eight["activations"] == pytest.approx(1.428e-2 * 2048 + 5.364e-6 * 2048**2, rel=1e-3)
