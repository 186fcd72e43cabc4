"""Compare generation with a loop without a cache, and with transformers."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
import torch

from lmcourse.inference.decoding_session import DecodingSession
from lmcourse.inference.generate import generate, stream
from lmcourse.inference.sampling import Sampling, greedy
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import BlockConfig
from lmcourse.nn.norm import NormConfig
from tests.inference.variants import CONFIGS, VOCABULARY, build, encoder_decoder

PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [5], [7, 7, 2]]
NEW = 10


def slow(model: Transformer, prompt: list[int], count: int, stop: tuple[int, ...] = ()) -> list[int]:
    """Generate one text greedily, with a pass over the whole text for every token."""
    text = list(prompt)
    while len(text) < len(prompt) + count and not (len(text) > len(prompt) and text[-1] in stop):
        with torch.inference_mode():
            text.append(int(model(torch.tensor([text]))[0, -1].argmax()))
    return text[len(prompt) :]


@pytest.mark.parametrize("name", CONFIGS)
def test_generation_matches_a_loop_without_a_cache(name: str) -> None:
    model = build(CONFIGS[name])
    assert generate(model, PROMPTS, NEW) == [slow(model, prompt, NEW) for prompt in PROMPTS]


def test_generate_works_with_an_encoder_decoder() -> None:
    model = encoder_decoder()
    sources, starts = [[3, 1, 4, 1, 5, 9], [2, 6]], [[1], [1, 2, 3]]
    texts = [list(start) for start in starts]
    for text, source in zip(texts, sources, strict=True):
        for _ in range(NEW):
            with torch.inference_mode():
                text.append(int(model(torch.tensor([source]), torch.tensor([text]))[0, -1].argmax()))
    expected = [text[len(start) :] for text, start in zip(texts, starts, strict=True)]
    assert generate(model, starts, NEW, sources=sources) == expected
    assert list(stream(model, starts[1], NEW, source=sources[1])) == expected[1]


def test_every_text_stops_at_its_own_stop_token() -> None:
    model = build(CONFIGS["mha"])
    free = [slow(model, prompt, NEW) for prompt in PROMPTS]
    stop = (free[0][2], free[1][5])
    expected = [slow(model, prompt, NEW, stop) for prompt in PROMPTS]
    assert len({len(text) for text in expected}) > 1, "this test needs texts that stop at different times"
    assert generate(model, PROMPTS, NEW, stop=stop) == expected


def test_generation_ends_when_all_have_stopped() -> None:
    model = build(CONFIGS["mha"])
    calls: list[int] = []

    def count(logits: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
        calls.append(1)
        return greedy(logits)

    generate(model, PROMPTS, NEW, count, stop=range(VOCABULARY))
    assert len(calls) == 1


def test_the_last_token_is_not_read() -> None:
    """n tokens need n − 1 passes after the prefill, because the logits after the last token are not needed."""
    model, passes = build(CONFIGS["mha"]), []
    model.head.register_forward_hook(lambda *_: passes.append(1))
    generate(model, PROMPTS, NEW)
    assert len(passes) == NEW


def test_the_head_sees_one_token_of_each_prompt() -> None:
    model, shapes = build(CONFIGS["mha"]), []
    model.head.register_forward_hook(lambda _, inputs, __: shapes.append(tuple(inputs[0].shape)))
    generate(model, PROMPTS, 1)
    assert shapes == [(len(PROMPTS), 24)]


def test_a_stream_gives_the_same_tokens_one_by_one() -> None:
    model = build(CONFIGS["3:1 with nope"])
    assert list(stream(model, PROMPTS[0], NEW)) == generate(model, PROMPTS[:1], NEW)[0]
    assert list(islice(stream(model, PROMPTS[0], NEW), 3)) == generate(model, PROMPTS[:1], 3)[0]


def test_a_stream_computes_tokens_on_demand() -> None:
    model, passes = build(CONFIGS["mha"]), []
    model.head.register_forward_hook(lambda *_: passes.append(1))
    tokens = stream(model, PROMPTS[0], NEW)
    assert passes == []
    next(tokens)
    next(tokens)
    assert len(passes) == 2


def test_gradients_are_enabled_between_two_tokens() -> None:
    """A generator paused inside `inference_mode` would leave it on for the code that reads the stream."""
    for _ in stream(build(CONFIGS["mha"]), PROMPTS[0], 3):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_dropout_is_off_during_generation_and_the_mode_is_restored() -> None:
    config = replace(CONFIGS["mha"], block=BlockConfig(NormConfig(), dropout=0.5))
    model = build(config)
    expected = generate(model, PROMPTS, NEW)
    model.train()
    assert generate(model, PROMPTS, NEW) == expected
    assert model.training
    tokens = stream(model, PROMPTS[0], NEW)
    next(tokens)
    tokens.close()
    assert model.training


def test_a_seed_repeats_a_text() -> None:
    model, sampling = build(CONFIGS["mha"]), Sampling(2.0, top_k=8)
    first, again, other = (
        generate(model, PROMPTS, 20, sampling, generator=torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompts": []}, "the list of prompts is empty"),
        ({"prompts": [[1], []]}, "prompt 1 is empty"),
        ({"prompts": [[1, VOCABULARY]]}, "prompt 0: there is no token 13 in a vocabulary of 13"),
        ({"prompts": [[-1]]}, "no token -1"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"max_new_tokens": 60}, "prompt 0 has 9 tokens; with 60 new ones it is longer than the model's context of 64"),
        ({"stop": [99]}, "stop: there is no token 99"),
        ({"sources": [[1]]}, "sources are for an encoder–decoder"),
    ],
)
def test_mistakes_are_reported_in_one_line(changes: dict, message: str) -> None:
    model = build(CONFIGS["learned"])
    with pytest.raises(ValueError, match=message) as caught:
        generate(model, **{"prompts": PROMPTS, "max_new_tokens": NEW, **changes})
    assert "\n" not in str(caught.value)


def test_mistakes_are_reported_before_the_first_token() -> None:
    with pytest.raises(ValueError, match="empty"):
        stream(build(CONFIGS["mha"]), [], 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "pass sources"),
        ({"sources": [[1], [40]]}, "source 1: there is no token 40"),
        ({"sources": [[1], []]}, "source 1 is empty"),
        ({"sources": [[1]]}, "2 prompts and 1 source"),
    ],
)
def test_an_encoder_decoder_needs_a_source_for_every_prompt(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(encoder_decoder(), [[1], [2]], 3, **changes)


def test_the_whole_context_can_be_used() -> None:
    (text,) = generate(build(CONFIGS["learned"]), [[1] * 54], NEW)
    assert len(text) == NEW
    model = build(replace(CONFIGS["mha"], context=12))
    with pytest.raises(ValueError, match="context of 12"):
        generate(model, [[1] * 3], NEW)


def test_select_reorders_an_encoder_decoders_source() -> None:
    model, sources, rows = encoder_decoder(), [[3, 1, 4], [1, 5, 9, 2, 6], [5]], [2, 0, 2, 1]
    session = DecodingSession(model, sources=sources)
    session.next_logits(torch.tensor([[1], [2], [3]]))
    session.select(torch.tensor(rows))
    logits = session.next_logits(torch.tensor([[7], [7], [7], [7]]))
    with torch.inference_mode():
        for got, row in zip(logits, rows, strict=True):
            expected = model(torch.tensor([sources[row]]), torch.tensor([[row + 1, 7]]))[0, -1]
            torch.testing.assert_close(got, expected, atol=2e-5, rtol=0)
