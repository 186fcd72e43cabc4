"""Checks of a generation request: prompts and lengths that the model can read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torch import nn

from lmcourse.inference.decoding_session import Model, decoder_config
from lmcourse.models.config import TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.nn.checks import check_type


def check_request(
    model: Model,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    stop: Collection[int],
    sources: Sequence[Sequence[int]] | None,
) -> None:
    """Check that the model can continue these prompts.

    Raises:
        TypeError: the model is no model, or a prompt is no list of token ids.
        ValueError: a prompt or source is empty or missing, a token is not in the vocabulary, or a text would become
            longer than the model can read.
    """
    check_type("model", model, nn.Module, "such as Transformer(config) or load_pretrained().model")
    for name, texts in (("prompts", prompts), ("sources", sources)):
        _check_lists(name, texts)
    if not prompts:
        raise ValueError("there is no prompt")
    if new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, not {new_tokens}")
    config = decoder_config(model)
    for index, prompt in enumerate(prompts):
        _check_text(config, prompt, f"prompt {index}", new_tokens)
    _check_tokens(config, stop, "stop")
    _check_sources(model, sources, len(prompts))


def _check_lists(name: str, texts: Sequence[Sequence[int]] | None) -> None:
    """Check that these are lists of token ids, not text, a single list or a tensor."""
    lists = isinstance(texts, list | tuple) and all(isinstance(text, list | tuple) for text in texts)
    if texts is not None and not lists:
        raise TypeError(f"{name} must be a list of lists of token ids, such as [tokenizer.encode(text)]")


def max_seq_len(config: TransformerConfig) -> int | None:
    """How many tokens a model can read, or None if nothing limits it."""
    limits = [limit for limit in (config.context, config.embedding.max_positions) if limit is not None]
    return min(limits, default=None)


def _check_sources(model: Model, sources: Sequence[Sequence[int]] | None, prompts: int) -> None:
    if not isinstance(model, EncoderDecoder):
        if sources is not None:
            raise ValueError("sources are for an encoder–decoder: this model has only prompts")
        return
    if sources is None:
        raise ValueError("an encoder–decoder answers a source text: give sources")
    if len(sources) != prompts:
        raise ValueError(f"{prompts} prompts and {len(sources)} sources: every prompt needs its own")
    for index, source in enumerate(sources):
        _check_text(model.config.encoder, source, f"source {index}")


def _check_text(config: TransformerConfig, text: Sequence[int], name: str, more: int = 0) -> None:
    if not text:
        raise ValueError(f"{name} is empty: give at least one token, such as the one that starts a text")
    _check_tokens(config, text, name)
    limit = max_seq_len(config)
    if limit is not None and len(text) + more > limit:
        also = f"; with {more} new ones it" if more else ", which"
        raise ValueError(f"{name} has {len(text)} tokens{also} is longer than the model's context of {limit}")


def _check_tokens(config: TransformerConfig, tokens: Collection[int], name: str) -> None:
    for token in tokens:
        if not 0 <= token < config.vocab_size:
            raise ValueError(f"{name}: there is no token {token} in a vocabulary of {config.vocab_size}")
