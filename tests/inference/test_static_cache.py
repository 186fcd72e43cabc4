"""Compare the static cache and the compiled step with the growing cache and the ordinary step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from lmcourse.inference.cache import Cache
from lmcourse.inference.compiled import CompiledStep, compiled_capacity
from lmcourse.inference.decoding_session import DecodingSession, Model, left_pad, next_logits
from lmcourse.inference.generate import generate, stream
from tests.inference.variants import CONFIGS, build, encoder_decoder

PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [5], [7, 7, 2]]
STEPS = 12


def read_on(model: Model, prompts: Sequence[Sequence[int]], capacity: int, sources=None) -> tuple[Tensor, Tensor]:
    """Return the logits of the same steps with the growing and with the static cache."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(13, (STEPS, len(prompts), 1), generator=generator)
    grown, fixed = [], []
    one, two = DecodingSession(model, capacity, sources), DecodingSession(model, capacity, sources)
    for session in (one, two):
        session.next_logits(*left_pad(prompts, session.device))
    with torch.inference_mode():
        static = two.cache.to_static()
        for token in tokens:
            grown.append(one.next_logits(token))
            fixed.append(next_logits(model, token, None, static, two.memory))
    return torch.stack(grown), torch.stack(fixed)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_static_cache_gives_the_same_logits(name: str) -> None:
    model = build(CONFIGS[name])
    for prompts, capacity in ((PROMPTS, 21), ([[1, 2, 3], [4, 5, 6]], 64)):
        grown, fixed = read_on(model, prompts, capacity)
        torch.testing.assert_close(fixed, grown, rtol=1e-5, atol=2e-6)


def test_an_encoder_decoder_gives_the_same_results() -> None:
    grown, fixed = read_on(encoder_decoder(), [[1], [1, 2, 3]], 20, [[3, 1, 4, 1, 5, 9], [2, 6]])
    torch.testing.assert_close(fixed, grown, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("capacity", "read", "message"), [(None, True, "capacity"), (8, False, "read a prompt")])
def test_a_cache_that_cannot_become_static_is_reported(capacity: int | None, read: bool, message: str) -> None:
    model = build(CONFIGS["mha"])
    cache = Cache(model.config, capacity)
    if read:
        model(torch.tensor([[1, 2]]), kv_cache=cache)
    with pytest.raises(ValueError, match=message):
        cache.to_static()


def test_a_static_cache_takes_one_token_at_a_time() -> None:
    model = build(CONFIGS["mha"])
    cache = Cache(model.config, 8)
    model(torch.tensor([[1, 2]]), kv_cache=cache)
    with pytest.raises(ValueError, match="one token at a time"):
        model(torch.tensor([[1, 2]]), kv_cache=cache.to_static())


def test_a_compiled_step_rejects_another_model() -> None:
    step = CompiledStep(build(CONFIGS["mha"]))
    with pytest.raises(ValueError, match="another model"):
        generate(build(CONFIGS["mha"]), PROMPTS, 3, compiled=step)


@pytest.mark.parametrize(("tokens", "expected"), [(1, 256), (256, 256), (257, 512), (1000, 1024), (1024, 1024)])
def test_texts_of_similar_lengths_share_a_program(tokens: int, expected: int) -> None:
    assert compiled_capacity(tokens) == expected


@pytest.mark.prove
def test_the_compiler_is_loaded_only_for_compile() -> None:
    program = "import sys, lmcourse.inference.generate; print('torch._dynamo' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "False"


@pytest.mark.prove
@pytest.mark.usefixtures("cpp_compiler")
def test_the_compiled_step_writes_the_same_text() -> None:
    """The model has one layer, because each kernel needs a run of the C++ compiler."""
    config = CONFIGS["thetas"]
    model = build(replace(config, layers=config.layers[:1]))
    step = CompiledStep(model)
    assert generate(model, PROMPTS, STEPS, compiled=step) == generate(model, PROMPTS, STEPS)


@pytest.mark.prove
def test_only_the_batch_size_needs_another_compiled_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are counted before compilation, so they run uncompiled."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model = build(CONFIGS["thetas"])
    step = CompiledStep(model)
    stats = torch._dynamo.utils.counters["stats"]
    before = stats["unique_graphs"]
    for prompts, steps, programs in ((PROMPTS, STEPS, 1), ([[1, 2]], 5, 2), (PROMPTS[:1] * 3, 2 * STEPS, 2)):
        assert generate(model, prompts, steps, compiled=step) == generate(model, prompts, steps)
        assert stats["unique_graphs"] == before + programs
    assert list(stream(model, [1, 2], 5, compiled=step)) == list(stream(model, [1, 2], 5))
    assert stats["unique_graphs"] == before + 2


@pytest.mark.prove
def test_sources_and_threads_have_separate_compiled_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs differ only in what they were compiled for."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    model = encoder_decoder()
    step = CompiledStep(model)
    stats = torch._dynamo.utils.counters["stats"]
    before = stats["unique_graphs"]
    long, short = [[1, 2, 3, 4, 5]], [[6, 7]]
    for sources, programs in ((long, 1), (short, 2), (long, 2)):
        assert generate(model, [[1]], 5, sources=sources, compiled=step) == generate(model, [[1]], 5, sources=sources)
        assert stats["unique_graphs"] == before + programs
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    generate(model, [[1]], 5, sources=long, compiled=step)
    assert stats["unique_graphs"] == before + 3
