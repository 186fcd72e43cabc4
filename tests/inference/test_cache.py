"""A cache changes only the time: logits with and without it are the same for every kind of model."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.inference.cache import Cache
from lmcourse.inference.decoding_session import DecodingSession
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern
from tests.inference.variants import (
    CHUNK,
    CONFIGS,
    CORNERS,
    WINDOW,
    attention,
    build,
    encoder_decoder,
    random_tokens,
    tiny,
)

every_kind = pytest.mark.parametrize("name", CONFIGS)
corners = pytest.mark.parametrize("name", CORNERS)
LENGTH = 19  # texts are longer than several windows and chunks


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.inference_mode():
        yield


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=2e-5, rtol=0)


def read_in_parts(model: Transformer, tokens: Tensor, sizes: list[int], capacity: int | None = None) -> Tensor:
    cache = Cache(model.config, capacity)
    return torch.cat([model(part, kv_cache=cache) for part in tokens.split(sizes, dim=1)], dim=1)


@every_kind
def test_cached_logits_equal_uncached_logits(name: str) -> None:
    model, tokens = build(CONFIGS[name]), random_tokens(2, LENGTH)
    expected = model(tokens)
    for sizes, capacity in (([1] * LENGTH, None), ([7] + [1] * 12, LENGTH), ([2, 3, 1, 8, 5], None)):
        close(read_in_parts(model, tokens, sizes, capacity), expected)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9), name=st.sampled_from(["two windows", "3:1 with nope"])
)
def test_reading_a_text_in_any_pieces_gives_the_same_logits(sizes: list[int], name: str) -> None:
    model, tokens = build(CONFIGS[name]), random_tokens(1, sum(sizes))
    close(read_in_parts(model, tokens, sizes), model(tokens))


def padded(texts: list[Tensor], side: str, start: list[int]) -> tuple[Tensor, Tensor]:
    """Return texts as one tensor, with positions that continue from `start`."""
    longest = max(map(len, texts))
    tokens = torch.full((len(texts), longest), 3)  # a real token, which only its position marks as padding
    positions = torch.full((len(texts), longest), PADDING_POSITION)
    for row, (text, first) in enumerate(zip(texts, start, strict=True)):
        place = slice(longest - len(text), None) if side == "left" else slice(0, len(text))
        tokens[row, place] = text
        positions[row, place] = torch.arange(first, first + len(text))
    return tokens, positions


@pytest.mark.parametrize(
    ("name", "side"), [*((name, "left") for name in CONFIGS), *((name, "right") for name in CORNERS)]
)
def test_texts_of_different_lengths_continue_as_if_alone(name: str, side: str) -> None:
    model, cache = build(CONFIGS[name]), Cache(CONFIGS[name])
    lengths, more, second = [11, 4, 1], 7, [2, 6, 3]
    texts = [random_tokens(a + more + b, seed=a) for a, b in zip(lengths, second, strict=True)]
    alone = [model(text[None])[0] for text in texts]

    tokens, positions = padded([t[:n] for t, n in zip(texts, lengths, strict=True)], side, [0, 0, 0])
    prefill = model(tokens, positions, kv_cache=cache)
    for row, n in enumerate(lengths):
        close(prefill[row][positions[row] != PADDING_POSITION], alone[row][:n])
    for step in range(more):
        token = torch.stack([t[n + step] for t, n in zip(texts, lengths, strict=True)])
        logits = model(token[:, None], kv_cache=cache)[:, 0]
        close(logits, torch.stack([a[n + step] for a, n in zip(alone, lengths, strict=True)]))
    starts = [n + more for n in lengths]
    tokens, positions = padded([t[n:] for t, n in zip(texts, starts, strict=True)], side, starts)
    again = model(tokens, positions, kv_cache=cache)
    for row, n in enumerate(starts):
        close(again[row][positions[row] != PADDING_POSITION], alone[row][n:])


def test_a_cache_works_with_an_encoder_decoder() -> None:
    model = encoder_decoder()
    source, target = random_tokens(2, 9), random_tokens(2, LENGTH, seed=2)
    source_positions = torch.arange(9).expand(2, 9).clone()
    source_positions[1, 6:] = PADDING_POSITION
    memory, cache = model.encode(source, source_positions), Cache(model.config.decoder)
    parts = [model.decode(part, memory, kv_cache=cache) for part in target.split([4, 1, 1, 6, 7], dim=1)]
    close(torch.cat(parts, dim=1), model(source, target, source_positions))


def test_the_work_of_a_step_does_not_grow_with_masks() -> None:
    """Without padding a single token needs no mask; building masks for every token would cost more than attention."""
    model = build(tiny(attention(), attention(pattern=WINDOW), attention(pattern=CHUNK)))
    asked: list[int] = []
    see = AttentionPattern.visible
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AttentionPattern, "visible", lambda self, *args: (asked.append(1), see(self, *args))[1])
        read_in_parts(model, random_tokens(1, LENGTH), [3] + [1] * 16)
    assert asked == []


def formula(config, texts: int, tokens: int, width: int) -> int:
    total = 0
    for layer in config.layers:
        a = layer.attention
        kept = tokens if a.pattern.span is None else min(tokens, a.pattern.span)
        total += 2 * a.key_heads * a.head_width(config.d_model) * texts * kept * width
    return total


@pytest.mark.parametrize(("dtype", "tokens"), [(torch.float32, LENGTH), (torch.bfloat16, 3)])
def test_bytes_match_the_formula(dtype: torch.dtype, tokens: int) -> None:
    found, expected = {}, {}
    for name, config in CONFIGS.items():
        model, cache = build(config).to(dtype), Cache(config, capacity=tokens)
        assert cache.bytes == 0
        model(random_tokens(2, tokens), kv_cache=cache)
        found[name], expected[name] = cache.bytes, formula(config, 2, tokens, dtype.itemsize)
    assert found == expected


def test_memory_with_a_capacity_never_moves() -> None:
    model, cache = build(CONFIGS["two windows"]), Cache(CONFIGS["two windows"], capacity=LENGTH)
    places = set()
    for token in random_tokens(1, LENGTH).split(1, dim=1):
        model(token, kv_cache=cache)
        places.add(tuple(part.data_ptr() for pair in cache._memory for part in pair))
    assert len(places) == 1


def test_growing_memory_is_at_most_twice_the_need() -> None:
    model, cache = build(CONFIGS["mha"]), Cache(CONFIGS["mha"])
    model(random_tokens(1, 200), kv_cache=cache)
    assert formula(model.config, 1, 200, 4) <= cache.bytes <= 2 * formula(model.config, 1, 200, 4)
    tokens = random_tokens(1, 150)
    close(read_in_parts(model, tokens, [60, 1, 1, 1, 1, 1, 70, 15]), model(tokens))


@corners
@pytest.mark.parametrize("padding", [False, True])
def test_select_reorders_drops_and_repeats_rows(name: str, padding: bool) -> None:
    model, tokens = build(CONFIGS[name]), random_tokens(3, LENGTH)
    rows = torch.tensor([2, 0, 0, 2])
    positions = torch.arange(8).expand(3, 8) - torch.tensor([[0], [2], [3]])
    cache = Cache(model.config)
    model(tokens[:, :8], positions.clamp(min=PADDING_POSITION) if padding else None, kv_cache=cache)
    cache.select(rows)
    # Padding is on the left, so without it a row's text is the uncached text.
    skip = [3, 0, 0, 3] if padding else [0, 0, 0, 0]
    expected = [model(tokens[row : row + 1, s:])[0, 8 - s :] for row, s in zip(rows.tolist(), skip, strict=True)]
    close(
        torch.cat([model(part, kv_cache=cache) for part in tokens[rows, 8:].split([1, 1, 4, 5], 1)], 1),
        torch.stack(expected),
    )


def test_no_gradient_flows_into_the_cache() -> None:
    with torch.inference_mode(False):
        model, cache = build(CONFIGS["two windows"]), Cache(CONFIGS["two windows"])
        model(random_tokens(1, 4), kv_cache=cache)
        logits = model(random_tokens(1, 1), kv_cache=cache)
        assert not any(part.requires_grad for pair in cache._memory for part in pair)
        assert logits.requires_grad


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Cache(CONFIGS["mha"], 0), "a capacity of at least 1 token"),
        (
            lambda: Cache(tiny(attention(), attention(pattern=AttentionPattern(causal=False)))),
            "layer 1 sees later tokens",
        ),
    ],
)
def test_an_impossible_cache_is_rejected(act, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act()


def test_too_many_tokens_are_rejected_and_nothing_changes() -> None:
    model, cache, tokens = build(CONFIGS["mha"]), Cache(CONFIGS["mha"], 5), random_tokens(1, 5)
    first = model(tokens[:, :4], kv_cache=cache)
    with pytest.raises(ValueError, match="has 4 of 5 tokens, so 2 more do not fit"):
        model(random_tokens(1, 2), kv_cache=cache)
    close(torch.cat([first, model(tokens[:, 4:], kv_cache=cache)], dim=1), model(tokens))


def test_a_changed_number_of_texts_is_rejected() -> None:
    model, cache = build(CONFIGS["mha"]), Cache(CONFIGS["mha"])
    model(random_tokens(2, 3), kv_cache=cache)
    with pytest.raises(ValueError, match="holds 2 texts, but got 3"):
        model(random_tokens(3, 1), kv_cache=cache)


def test_decoding_switches_off_cudnns_attention_and_restores_the_setting() -> None:
    """cuDNN plans a kernel for every length of the cache, which takes longer than the rest of a step."""
    model, allowed = build(CONFIGS[CORNERS[0]]), list[bool]()
    model.head.register_forward_pre_hook(lambda *_: allowed.append(torch.backends.cuda.cudnn_sdp_enabled()))
    before = torch.backends.cuda.cudnn_sdp_enabled()
    DecodingSession(model, LENGTH).next_logits(random_tokens(2, 5))
    assert set(allowed) == {False}
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
