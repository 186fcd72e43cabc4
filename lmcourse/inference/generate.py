"""Text generation: read the prompt in one pass (prefill), then generate token by token (decode)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing

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
    """Continue every prompt; return the new tokens of each text, without the prompt.

    Raises TypeError if the model, the prompts or the sampler have the wrong type, and ValueError if a prompt is empty,
    a token is not in the vocabulary, or a text would exceed the model's context.

    Args:
        model: a decoder, or an encoder–decoder. It is in evaluation mode during generation.
        prompts: lists of token ids of any lengths; for an encoder–decoder, the beginnings of the answers.
        max_new_tokens: largest number of new tokens per text.
        sampler: a function that picks the next tokens from the logits (see `sampling`).
        stop: tokens that end a text. The stop token is part of the result.
        generator: the random number generator, for reproducible results.
        sources: for an encoder–decoder, the source texts.
        compiled: the model's compiled decoding step, if it is worth compiling (see `compiled`).

    Example:
        >>> trained = load_pretrained()
        >>> [new] = generate(trained.model, [trained.tokenizer.encode("The ")], 12)
        >>> trained.tokenizer.decode(new)
        'length of "global" and'
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
    """Yield the new tokens of one text as soon as they are sampled. Arguments as in `generate`."""
    sources = None if source is None else [source]
    # Checked here because the generator below does not run before the first token is requested.
    check_request(model, [prompt], max_new_tokens, stop, sources, sampler)
    steps = _write(model, [prompt], max_new_tokens, sampler, stop, generator, sources, compiled)
    return _of_one_text(steps)


def _of_one_text(steps: Generator[list[int | None]]) -> Iterator[int]:
    """Yield the tokens of one text, and close `steps` when this generator is closed."""
    with closing(steps):  # Python 3.12 would close it only when it is freed
        yield from (token for (token,) in steps if token is not None)


def _write(
    model: Model,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    sampler: Sampler,
    stop: Collection[int],
    generator: torch.Generator | None,
    sources: Sequence[Sequence[int]] | None,
    compiled: CompiledStep | None,
) -> Generator[list[int | None]]:
    """Yield the tokens of each step, one per text; None for a text that has ended."""
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
            # Texts that have ended are continued until all have ended, which is cheaper than removing their rows.
            ended = [done or token in stop for done, token in zip(ended, tokens, strict=True)]
            if all(ended) or step + 1 == max_new_tokens:
                return
            logits = decode(chosen[:, None])
    finally:
        model.train(was_training)
