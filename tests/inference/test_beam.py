"""Compare beam search with an exhaustive list of texts for a tiny vocabulary."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch

from lmcourse.inference.beam import Hypothesis, beam_search, length_penalty
from lmcourse.models.transformer import Transformer
from tests.inference.variants import ROPE, WINDOW, attention, build, encoder_decoder, tiny

TOY, STOP, PROMPT = 4, 0, [1, 2]
MODELS = {
    "rope": tiny(attention(), vocab_size=TOY),
    "window": tiny(attention(pattern=WINDOW, rotary=ROPE), attention(), vocab_size=TOY),
}


@functools.cache
def toy(name: str = "rope", seed: int = 0) -> Transformer:
    model = build(MODELS[name], seed)
    with torch.no_grad():
        model.head.linear.weight *= 1.5  # larger logits, so that beams differ
    return model


@functools.cache
def log_probability(model: Transformer, text: tuple[int, ...]) -> float:
    """Return the log-probability of a text after the prompt, in one pass without a cache."""
    with torch.inference_mode():
        logits = model(torch.tensor([[*PROMPT, *text]]))[0].log_softmax(dim=-1)
    return sum(float(logits[len(PROMPT) - 1 + i, token]) for i, token in enumerate(text))


def all_texts(longest: int) -> list[tuple[int, ...]]:
    """Return all texts that end with the stop token or are cut off at `longest`."""
    others = [token for token in range(TOY) if token != STOP]
    ended = [(*t, STOP) for n in range(longest) for t in itertools.product(others, repeat=n)]
    return ended + list(itertools.product(others, repeat=longest))


def best_texts(model: Transformer, longest: int, alpha: float) -> list[Hypothesis]:
    texts = [(text, log_probability(model, text)) for text in all_texts(longest)]
    scored = [Hypothesis(text, p, p / length_penalty(len(text), alpha)) for text, p in texts]
    return sorted(scored, key=lambda h: -h.score)


def same(model: Transformer, found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """Check that the scores agree at each rank, and that all log-probabilities are right. Texts may differ in ties."""
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)
    assert len({h.tokens for h in found}) == len(found)
    for h in found:
        assert h.log_probability == pytest.approx(log_probability(model, h.tokens), abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("name", MODELS)
def test_enough_beams_search_exhaustively(name: str, alpha: float) -> None:
    model, longest = toy(name, 0), 4
    everything = best_texts(model, longest, alpha)
    found = beam_search(model, PROMPT, longest, len(everything), [STOP], alpha=alpha)
    same(model, found, everything)
    assert {h.tokens for h in found} == {h.tokens for h in everything}


def by_hand(model: Transformer, longest: int, beams: int, alpha: float) -> list[Hypothesis]:
    """Run beam search without a cache, batches or an early stop."""
    live: list[tuple[int, ...]] = [()]
    found: list[tuple[int, ...]] = []
    for _ in range(longest):
        found += [(*text, STOP) for text in live]
        longer = [(*text, token) for text in live for token in range(TOY) if token != STOP]
        live = sorted(longer, key=lambda text: -log_probability(model, text))[:beams]
    pairs = [(text, log_probability(model, text)) for text in found + live]
    scored = [Hypothesis(text, p, p / length_penalty(len(text), alpha)) for text, p in pairs]
    return sorted(scored, key=lambda h: -h.score)[:beams]


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_few_beams_match_a_search_by_hand(name: str, beams: int, alpha: float) -> None:
    for seed in range(3):
        model = toy(name, seed)
        same(model, beam_search(model, PROMPT, 6, beams, [STOP], alpha=alpha), by_hand(model, 6, beams, alpha))


def test_the_length_penalty_grows_from_one() -> None:
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2


def test_beam_search_accepts_several_stop_tokens() -> None:
    model = toy()
    found = beam_search(model, PROMPT, 4, 30, [0, 3])
    assert {h.tokens[-1] for h in found if len(h.tokens) < 4} == {0, 3}
    assert not any({0, 3} & set(h.tokens[:-1]) for h in found)


def test_every_token_may_be_a_stop() -> None:
    found = beam_search(toy(), PROMPT, 4, 9, range(TOY))
    assert sorted(h.tokens for h in found) == [(0,), (1,), (2,), (3,)]


def test_beam_search_works_with_an_encoder_decoder() -> None:
    model = encoder_decoder()
    source, start = [3, 1, 4, 1, 5], [2]
    (best, *_) = beam_search(model, start, 3, 13 * 13, alpha=0.0, source=source)
    with torch.inference_mode():
        memory = model.encode(torch.tensor([source]))
        logits = model.decode(torch.tensor([[*start, *best.tokens]]), memory)[0].log_softmax(dim=-1)
    assert best.log_probability == pytest.approx(
        sum(float(logits[i, token]) for i, token in enumerate(best.tokens)), abs=1e-4
    )
    assert [list(best.tokens)] != [[]]


def test_the_mode_of_the_model_is_restored() -> None:
    model = build(MODELS["rope"]).train()
    beam_search(model, PROMPT, 2)
    assert model.training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beams": 0}, "at least one beam"),
        ({"alpha": -1.0}, "alpha ≥ 0, not 4 and -1"),
        ({"prompt": []}, "prompt 0 is empty"),
        ({"prompt": [9]}, "no token 9 in a vocabulary of 4"),
        ({"stop": [4]}, "stop: there is no token 4"),
        ({"source": [1]}, "sources are for an encoder–decoder"),
    ],
)
def test_mistakes_are_reported_in_one_line(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(toy(), **{"prompt": PROMPT, "max_new_tokens": 2, **changes})
