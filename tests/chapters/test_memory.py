"""Notebook 14: references against independent sources, and what its figures show."""

from __future__ import annotations

import inspect
import re
import threading
from itertools import accumulate
from typing import Any

import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lmcourse import plots
from lmcourse.accounting.live import memory_events
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.saved import saved_tensors
from lmcourse.base.units import GIB, MIB
from lmcourse.chapters.memory import exercises, figures
from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.chapters.memory.exercises.parameters import gpt, llama
from lmcourse.chapters.memory.gpt3 import gpt_3_parameters
from lmcourse.chapters.memory.out_of_memory import (
    FLOPS,
    Recording,
    _first_results,
    leaky_training,
    measure_training,
    record,
)
from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.measured import measured_call
from lmcourse.exercises.open_task import Unfit
from tests.accounting.test_activation_rules import MaskedBlock
from tests.course.chapters import code

BY_NAME = {exercise.name: exercise for exercise in exercises.EXERCISES}


def reference(name: str, *args: Any, **kwargs: Any) -> Any:
    return BY_NAME[name].reference(*args, **kwargs)


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.prove
def test_parameters_match_hugging_faces_gpt2() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        theirs = GPT2LMHeadModel(GPT2Config(vocab_size=90, n_positions=30, n_embd=24, n_layer=3, n_head=4))
    assert reference("parameter_count", gpt(3, 24, 4, 90, 30)) == parameters_of(theirs)


@pytest.mark.prove
@pytest.mark.parametrize(("kv_heads", "tied"), [(1, False), (4, True)])
def test_parameters_match_hugging_faces_llama(kv_heads: int, tied: bool) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": kv_heads}
    config = LlamaConfig(vocab_size=90, intermediate_size=50, tie_word_embeddings=tied, **sizes)
    with torch.device("meta"):
        theirs = LlamaForCausalLM(config)
    ours = llama(3, 24, 4, kv_heads, 50, 90) | {"tied": tied}
    assert reference("parameter_count", ours) == parameters_of(theirs)


def test_states_in_fp32_are_the_tensors_of_adam() -> None:
    weight = nn.Parameter(torch.ones(30, 7))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    assert weight.grad is not None
    moments = sum(t.nbytes for t in optimizer.state[weight].values() if t.shape == weight.shape)
    measured = {"weights": weight.nbytes, "gradients": weight.grad.nbytes, "optimizer": moments}
    assert reference("state_bytes", 210, "fp32") == measured


def test_states_in_mixed_precision_are_the_tensors_of_torch() -> None:
    master = nn.Parameter(torch.ones(30, 7))
    weights, optimizer = master.detach().bfloat16(), torch.optim.AdamW([master])
    master.grad = torch.ones(30, 7)
    optimizer.step()
    moments = sum(t.nbytes for t in optimizer.state[master].values() if t.shape == master.shape)
    measured = {"weights": weights.nbytes, "gradients": master.grad.nbytes, "optimizer": master.nbytes + moments}
    assert reference("state_bytes", 210, "mixed") == measured


def is_statistic(shape: tuple[int, ...]) -> bool:
    return shape[-1] == 1


def kept_of(function: Any, module: nn.Module) -> int:
    """Bytes that autograd keeps, without the statistics of norms."""
    return sum(tensor.size for tensor in saved_tensors(function, module) if not is_statistic(tensor.shape))


@pytest.mark.parametrize(("dtype", "p"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_a_real_block_keeps_the_bytes_of_the_references(dtype: torch.dtype, p: int) -> None:
    B, S, D, A = 2, 6, 12, 3
    block = MaskedBlock(D, A).to(dtype)
    x = torch.randn(B, S, D, dtype=dtype, requires_grad=True)
    whole = kept_of(lambda: block(x), block)
    assert whole == by_parts(B, S, D, A, p)


def by_parts(B: int, S: int, D: int, A: int, p: int) -> int:
    halves = reference("attention_activations", B, S, D, A, p) + reference("mlp_activations", B, S, D, 4 * D, p)
    return int(halves) + 2 * p * B * S * D


class Gated(nn.Module):
    """SwiGLU with a dropout mask of one byte per number."""

    def __init__(self, d: int, d_ff: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, d_ff), nn.Linear(d, d_ff), nn.Linear(d_ff, d)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return y * (torch.rand(y.shape) > 0.1) / 0.9


def test_a_real_gated_layer_keeps_four_hidden_tensors() -> None:
    dtype, p = torch.bfloat16, 2
    layer = Gated(10, 23).to(dtype)
    x = torch.randn(2, 7, 10, dtype=dtype, requires_grad=True)
    kept = tensors_saved_by_block(2, 7, 10, 1, 23, p, gated=True)
    assert kept_of(lambda: layer(x), layer) == sum(tensor.size for tensor in kept if tensor.part == "feed-forward")


@pytest.mark.parametrize("T", [1, 3])
def test_each_device_keeps_its_heads_and_whole_streams(T: int) -> None:
    """Divided by T: q, k, v, the output's input, hidden tensors and scores; all other tensors are whole."""
    N, L, B, S, D, A = 1000, 2, 3, 7, 24, 6
    cut = ("queries", "keys", "values", "softmax", "weights", "input of the output", "result of up", "input of down")
    kept = tensors_saved_by_block(B, S, D, A, 4 * D, 2)
    shared = [t.size for t in kept if t.name.startswith(cut) or t.name == "mask of the weights"]
    whole = sum(t.size for t in kept) - sum(shared)
    found = reference("tensor_parallel_bytes", T, N, L, B, S, D, A)
    assert found == {"states": 18 * N / T, "activations": pytest.approx(L * (whole + sum(shared) / T), rel=1e-12)}


def test_gpt3s_memory_matches_the_corrected_notes() -> None:
    N = gpt_3_parameters()
    states = reference("state_bytes", N, "mixed")
    assert [round(states[part] / GIB, 1) for part in ("weights", "gradients", "optimizer")] == [325.2, 650.4, 1951.2]
    one, eight = (reference("tensor_parallel_bytes", T, N, 96, 1, 2048, 12_288, 96) for T in (1, 8))
    assert round(one["activations"] / GIB, 1) == 256.5
    assert eight["states"] / GIB == pytest.approx(365.85, abs=5e-3)
    assert eight["activations"] / GIB == pytest.approx(1.428e-2 * 2048 + 5.364e-6 * 2048**2, rel=1e-3)


def widths(axes: Axes) -> list[float]:
    return [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]


def test_the_tensors_of_a_layer_add_up_to_the_exercises_total() -> None:
    number, p = "32 bits", 4
    sizes = widths(figures.memory_saved_tensors(1024, number).axes[0])
    assert sum(sizes) * 2**20 == by_parts(1, 1024, 12_288, 96, p)


@pytest.mark.parametrize(
    ("precision", "optimizer", "recipe"),
    [
        ("mixed", "adamw", "mixed"),
        ("mixed-16-bit-gradients", "adamw", "mixed-16-bit-gradients"),
        ("fp32", "sgd", "sgd"),
        ("inference", "adamw", "inference"),
    ],
)
def test_states_of_a_trainer_add_up_to_its_recipe(precision: str, optimizer: str, recipe: str) -> None:
    assert sum(reference("state_bytes", 1, precision, optimizer).values()) == find_recipe(recipe).per_parameter


class Head(nn.Module):
    """The notebook's model with one block and a head."""

    def __init__(self, D: int, A: int, V: int) -> None:
        super().__init__()
        self.block, self.head = MaskedBlock(D, A), nn.Linear(D, V, bias=False)


@pytest.mark.parametrize(
    ("V", "recompute", "keep"), [(2048, False, False), (2048, True, True), (64, True, False), (64, True, True)]
)
def test_the_predicted_step_peak_matches_the_profiler(V: int, recompute: bool, keep: bool) -> None:
    S, D, A = 128, 32, 4
    model, x, y = Head(D, A, V), torch.randn(1, S, D), torch.randint(V, (S,))
    held: dict[str, Tensor] = {}

    def forward() -> None:
        again = x.clone().requires_grad_()
        held["h"] = checkpoint(model.block, again, use_reentrant=False) if recompute else model.block(again)

    def rest() -> None:
        logits = model.head(held.pop("h")).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, y)
        if not keep:
            del logits
        loss.backward()

    def alone() -> None:
        model.block(x.clone().requires_grad_()).sum().backward()

    for step in (alone, forward, rest):
        step()  # the first runs create the gradients
    block, before = max(accumulate(memory_events(alone))), memory_events(forward)
    peak, _ = reference("peak_and_moment", before + memory_events(rest))
    assert reference("step_peak", sum(before), 1, S, V, block, recompute, keep) == pytest.approx(peak, rel=0.02)


@pytest.mark.parametrize(("layers", "every"), [(10, 3), (5, 1), (5, 5)])
def test_calls_of_checkpointed_layers_match_the_exercise(layers: int, every: int) -> None:
    """All segments but the last are torch checkpoints; the test counts the calls of the layers."""
    calls = []

    def segment(x: Tensor, length: int) -> Tensor:
        for _ in range(length):
            calls.append(1)
            x = x.tanh()
        return x

    x = torch.ones(3, requires_grad=True)
    lengths = [min(every, layers - at) for at in range(0, layers, every)]
    for length in lengths[:-1]:
        x = checkpoint(segment, x, length, use_reentrant=False)
    segment(x, lengths[-1]).sum().backward()  # type: ignore[no-untyped-call]
    assert len(calls) == layers + reference("compute_twice", layers, every)[1]


def test_a_budget_fits_up_to_its_largest_batch_and_no_further() -> None:
    arguments: dict[str, Any] = {"model": "llama-3.2-1b", "card": "a100-sxm-40gb", "length": 1024, "devices": 1}
    caption = figures.memory_budget(**arguments)._supxlabel.get_text()
    found = re.search(r"largest batch that fits: (\d+)", caption)
    assert found is not None
    most = int(found[1])
    assert plots.alt_text(figures.memory_budget(**arguments, batch=most)).count(", fits") == 1
    assert plots.alt_text(figures.memory_budget(**arguments, batch=most + 1)).count("does not fit") == 1


def test_the_given_script_does_the_work_that_the_task_states() -> None:
    def once(training: Any) -> int:
        return measured_call(lambda: record(training)).flops

    assert once(leaky_training) == FLOPS


def test_the_script_in_the_notebook_is_the_one_that_is_recorded() -> None:
    text = code(find_chapter("14-memory"))
    given = text[text.index("    # The script that you are given:\n") :]
    body = (
        inspect.getsource(leaky_training)
        .replace("  # type: ignore[no-untyped-call]", "")
        .partition('accuracies."""\n')[2]
    )
    assert given.partition("\n")[2].startswith(body)


def test_a_mark_begins_a_phase_of_the_recording() -> None:
    found = Recording([8, 1009, -1009, 4, 1009, 20, -20, -1009, 1009, -4], steps=[1, 0, 2])
    assert [step for step, _ in found.phases()] == [1] * 4 + [0] * 4 + [2] * 2
    assert found.peak(validation=True) * MIB == 8 + 4 + 1009 + 20
    assert found.peak(validation=False) * MIB == found.begins(2) * MIB == 8 + 4 + 1009


def in_a_thread(*inputs: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(leaky_training(*inputs)))
    thread.start()
    thread.join()
    return found[0]


def without_the_embedding(model: Any, *inputs: Any) -> Any:
    model.features = lambda x: model.blocks[0](nn.functional.embedding(x, model.embed.weight))
    return leaky_training(model, *inputs)


def numbers_of_an_earlier_run(*_: Any) -> Any:
    return _first_results(0)


@pytest.mark.parametrize(
    ("training", "said"),
    [(in_a_thread, "thread"), (numbers_of_an_earlier_run, "were seen"), (without_the_embedding, "differ from")],
)
def test_a_run_that_evades_the_measurement_is_refused(training: Any, said: str) -> None:
    with pytest.raises(Unfit, match=said):
        measure_training(training, 0)
