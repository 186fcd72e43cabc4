"""Incremental decoding: a batch of texts with its KV cache reads new tokens and returns the next logits.

Call `check_request` first, to check that the model can continue the prompts.

Decoders and encoder–decoders keep different data between tokens. A `DecodingSession` hides this difference, so that
other code only has to ask for the next logits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.inference.cache import Cache
from lmcourse.inference.sampling import Sampler, greedy
from lmcourse.models.config import TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder, EncoderMemory
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention_pattern import PADDING_POSITION
from lmcourse.nn.checks import check_type
from lmcourse.nn.context import KVCache

Model = Transformer | EncoderDecoder


class DecodingSession:
    """A batch of texts that a model reads and continues, with a KV cache.

    Args:
        model: the model, in evaluation mode.
        capacity: length of the longest text in tokens, prompt and answer together.
        sources: for an encoder–decoder, the source texts, one per row.
    """

    def __init__(
        self, model: Model, capacity: int | None = None, sources: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.model = model
        self.device = next(model.parameters()).device
        self.cache = Cache(decoder_config(model), capacity)
        self.memory: EncoderMemory | None = None
        if isinstance(model, EncoderDecoder) and sources is not None:
            with torch.inference_mode():
                self.memory = model.encode(*left_pad(sources, self.device))

    @torch.inference_mode()
    def next_logits(
        self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b v"]:
        """Read more tokens; return the logits of the token after the last column.

        Args:
            tokens: the next tokens of every text.
            positions: the tokens' positions; by default after the tokens read so far. PADDING_POSITION marks padding.
        """
        with _without_cudnn():
            return next_logits(self.model, tokens, positions, self.cache, self.memory)

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " n"]) -> None:
        """Keep these rows of the batch, in this order."""
        self.cache.select(rows)
        if self.memory is not None:
            self.memory = self.memory.select(rows)


@contextmanager
def _without_cudnn() -> Iterator[None]:
    """Switch off cuDNN's attention kernel, torch's first choice on recent GPUs in 16 bits.

    cuDNN plans a kernel for every new shape, and with a growing cache each token has one: on an H100 that took 65 ms,
    about ten times as long as the rest of a step of a model with 124M weights.
    """
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def next_logits(
    model: Model,
    tokens: Int[Tensor, "b s"],
    positions: Int[Tensor, "b s"] | None,
    kv_cache: KVCache,
    memory: EncoderMemory | None,
) -> Float[Tensor, "b v"]:
    """Return the logits of the token after the last column; an encoder–decoder without memory raises ValueError."""
    if isinstance(model, EncoderDecoder):
        if memory is None:
            raise ValueError("an encoder–decoder reads source texts, but this session has none: pass sources")
        return model.decode(tokens, memory, positions, kv_cache=kv_cache)[:, -1]
    # The head is a model's largest matrix, and only the last token of a prompt needs it.
    last = model.encode(tokens, positions, kv_cache=kv_cache)[:, -1]
    result: Tensor = model.head(last)
    return result


def decoder_config(model: Model) -> TransformerConfig:
    """Return the configuration of the decoder, the part that generates text."""
    return model.config.decoder if isinstance(model, EncoderDecoder) else model.config


def left_pad(
    texts: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"] | None]:
    """Return texts of different lengths as one tensor, and their positions; None for positions without padding.

    Padding is on the left, so that every row's last token is in the last column.
    """
    longest = max(map(len, texts))
    tokens = torch.tensor([[0] * (longest - len(text)) + list(text) for text in texts], device=device)
    if all(len(text) == longest for text in texts):
        return tokens, None
    lengths = torch.tensor([len(text) for text in texts], device=device)
    positions = torch.arange(longest, device=device) - (longest - lengths)[:, None]
    return tokens, positions.clamp(min=PADDING_POSITION)


def check_request(
    model: Model,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    stop: Collection[int],
    sources: Sequence[Sequence[int]] | None,
    sampler: Sampler = greedy,
) -> None:
    """Raise TypeError or ValueError unless the model can continue these prompts.

    Model, prompts and sampler must have the right types, texts must not be empty or missing, tokens must be in the
    vocabulary, and no text may become longer than the model can read.
    """
    check_type("model", model, nn.Module, "such as Transformer(config) or load_pretrained().model")
    for name, texts in (("prompts", prompts), ("sources", sources)):
        _check_lists(name, texts)
    if not callable(sampler):
        raise TypeError(f"sampler must be a function, such as Sampling(temperature=0.8), not {sampler!r}")
    if not prompts:
        raise ValueError("the list of prompts is empty")
    if new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, not {new_tokens}")
    config = decoder_config(model)
    for index, prompt in enumerate(prompts):
        _check_text(config, prompt, f"prompt {index}", new_tokens)
    _check_tokens(config, stop, "stop")
    _check_sources(model, sources, len(prompts))


def _check_lists(name: str, texts: Sequence[Sequence[int]] | None) -> None:
    """Check that these are lists of token ids, not texts, a single list or a tensor."""
    lists = isinstance(texts, list | tuple) and all(isinstance(text, list | tuple) for text in texts)
    if texts is not None and not lists:
        raise TypeError(f"{name} must be a list of lists of token ids, such as [tokenizer.encode(text)]")


def max_seq_len(config: TransformerConfig) -> int | None:
    """Return the largest number of tokens a model can read, or None if it has no limit."""
    limits = [limit for limit in (config.context, config.embedding.max_positions) if limit is not None]
    return min(limits, default=None)


def _check_sources(model: Model, sources: Sequence[Sequence[int]] | None, prompts: int) -> None:
    if not isinstance(model, EncoderDecoder):
        if sources is not None:
            raise ValueError("sources are for an encoder–decoder: this model takes only prompts")
        return
    if sources is None:
        raise ValueError("an encoder–decoder reads source texts: pass sources")
    if len(sources) != prompts:
        raise ValueError(f"{prompts} prompts and {len(sources)} sources: give one for each prompt")
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
