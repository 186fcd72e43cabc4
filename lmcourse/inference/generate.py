"""Text generation: read the prompt in one pass (prefill), then token after token (decode)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch

from lmcourse.inference.compiled import CompiledStep, compiled_capacity
from lmcourse.inference.decoding_session import DecodingSession, Model, check_request, left_pad
from lmcourse.inference.sampling import Sampler, greedy


def generate(
    model: Model,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    sampler: Sampler = greedy,
    stop: Collection[int] = (),
    generator: torch.Generator | None = None,
    *,
    sources: Sequence[Sequence[int]] | None = None,
    compiled: CompiledStep | None = None,
) -> list[list[int]]:
    """Continue every prompt.

    Args:
        model: a decoder, or an encoder–decoder. It is in evaluation mode while it writes.
        prompts: token ids, of any lengths. For an encoder–decoder, how each answer begins.
        max_new_tokens: how many tokens a text gets at most.
        sampler: picks the next tokens from their logits (see `sampling`).
        stop: a text ends with the first of these tokens that it writes; that token is part of the result.
        generator: the source of chance, for results that can be repeated.
        sources: for an encoder–decoder, the texts that it answers.
        compiled: the model's decoding step, if it is worth compiling (see `compiled`).

    Returns:
        per prompt the new tokens, without the prompt.

    Raises:
        TypeError: a model, prompts or sampler of another kind.
        ValueError: an empty prompt, a token outside the vocabulary, or more tokens than the model's context.
    """
    check_request(model, prompts, max_new_tokens, stop, sources, sampler)
    written: list[list[int]] = [[] for _ in prompts]
    for tokens in _write(model, prompts, max_new_tokens, sampler, stop, generator, sources, compiled):
        for text, token in zip(written, tokens, strict=True):
            if token is not None:
                text.append(token)
    return written


def stream(
    model: Model,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampler: Sampler = greedy,
    stop: Collection[int] = (),
    generator: torch.Generator | None = None,
    *,
    source: Sequence[int] | None = None,
    compiled: CompiledStep | None = None,
) -> Iterator[int]:
    """Yield the new tokens of one text, each as soon as it is sampled. Arguments as in `generate`."""
    sources = None if source is None else [source]
    # Checked here and not in the generator below, which runs only when the first token is asked for.
    check_request(model, [prompt], max_new_tokens, stop, sources, sampler)
    steps = _write(model, [prompt], max_new_tokens, sampler, stop, generator, sources, compiled)
    return (token for (token,) in steps if token is not None)


def _write(
    model: Model,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    sampler: Sampler,
    stop: Collection[int],
    generator: torch.Generator | None,
    sources: Sequence[Sequence[int]] | None,
    compiled: CompiledStep | None,
) -> Iterator[list[int | None]]:
    """Yield every step's tokens, one per text; None for a text that has ended."""
    was_training = model.training
    model.eval()
    try:
        longest = max(map(len, prompts)) + max_new_tokens
        session = DecodingSession(model, compiled_capacity(longest) if compiled else longest, sources)
        logits = session.next_logits(*left_pad(prompts, session.device))
        decode = compiled.bind(session) if compiled else session.next_logits
        ended = [False] * len(prompts)
        for step in range(max_new_tokens):
            chosen = sampler(logits, generator)
            tokens = chosen.tolist()
            yield [None if done else token for done, token in zip(ended, tokens, strict=True)]
            # A text that has ended is written on, unseen, until all have: that is cheaper than to take its row out.
            ended = [done or token in stop for done, token in zip(ended, tokens, strict=True)]
            if all(ended) or step + 1 == max_new_tokens:
                return
            logits = decode(chosen[:, None])
    finally:
        model.train(was_training)
