"""Build reference models of `transformers` with random parameters, and compare our models with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.inference.generate import generate
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop.convert import family_of, from_hugging_face
from lmcourse.models.interop.family import Model, Weights
from lmcourse.models.interop.hugging_face import import_transformers
from lmcourse.models.loss import next_token_loss
from tests.interop.samples import SEQ_LEN, VOCAB_SIZE, Sample


def build_reference(sample: Sample, seed: int = 0) -> nn.Module:
    """Build the sample's model in `transformers`, in fp32.

    Norms and biases are random, too: with their usual 1 and 0, a model that forgets them would give the same results.
    """
    transformers = import_transformers()
    config = transformers.AutoConfig.for_model(sample.model_type, **sample.settings)
    seq2seq = sample.model_type == "t5"
    kind = transformers.AutoModelForSeq2SeqLM if seq2seq else transformers.AutoModelForCausalLM
    model: nn.Module = kind.from_config(config, attn_implementation=sample.attention)
    if sample.settings.get("tie_word_embeddings") is False:
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())  # type: ignore[union-attr,operator]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            # Scales of norms start at 1 (or 0 for 1 + w) and biases at 0: change them.
            parameter.copy_(parameter + 0.3 * noise if parameter.ndim == 1 else parameter.shape[-1] ** -0.5 * noise)
    return model.eval()


@dataclass(frozen=True)
class ParityBatch:
    """Texts for the comparison; `source` is for an encoder, and may be longer than the target."""

    tokens: Int[Tensor, "b s"]
    source: Int[Tensor, "b t"]


def batch_for(sample: Sample, seed: int = 1) -> ParityBatch:
    """Make two texts. The ids 0 and 1 do not occur, because some references give padding no gradient."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, VOCAB_SIZE, (2, SEQ_LEN), generator=generator)
    return ParityBatch(tokens, torch.randint(2, VOCAB_SIZE, (2, SEQ_LEN + 5), generator=generator))


def their_logits(model: nn.Module, batch: ParityBatch) -> Float[Tensor, "b s v"]:
    """Return the logits of a model of `transformers`."""
    if getattr(model.config, "is_encoder_decoder", False):
        result: Any = model(input_ids=batch.source, decoder_input_ids=batch.tokens, use_cache=False)
    else:
        result = model(input_ids=batch.tokens, use_cache=False)
    logits: Tensor = result.logits
    return logits


def our_logits(model: Model, batch: ParityBatch) -> Float[Tensor, "b s v"]:
    """Return the logits of one of our models."""
    logits: Tensor = model(batch.source, batch.tokens) if isinstance(model, EncoderDecoder) else model(batch.tokens)
    return logits


def gradients(model: nn.Module, logits: Float[Tensor, "b s v"], batch: ParityBatch) -> Weights:
    """Return the gradients of the next-token loss by parameter name."""
    loss = next_token_loss(logits[:, :-1], batch.tokens[:, 1:])
    named = dict(model.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(named, found, strict=True))


TOLERANCE = 5e-5
"""Largest allowed difference of logits and gradients from the reference in fp32: ten times the rounding error, and less
than the effect of any mistake."""


@dataclass(frozen=True)
class Comparison:
    """The largest absolute differences between our model and the reference, and whether greedy decoding, ours with its
    cache, gives the same tokens. The number of parameters and the largest logit are for comparison.
    """

    parameters: int
    logits: float
    gradients: float
    largest_logit: float
    tokens_equal: bool

    @property
    def agrees(self) -> bool:
        """True if all differences are within the tolerance."""
        return max(self.logits, self.gradients) < TOLERANCE and self.tokens_equal


def compare(sample: Sample, new_tokens: int = 20) -> Comparison:
    """Build the sample's model in `transformers`, convert it and compare the two models."""
    theirs, batch = build_reference(sample), batch_for(sample)
    ours = from_hugging_face(theirs)
    expected, found = their_logits(theirs, batch), our_logits(ours, batch)
    difference, largest = (expected - found).detach().abs().max(), expected.detach().abs().max()
    family = family_of({"model_type": sample.model_type})
    their_gradients = family.to_ours(ours, gradients(theirs, expected, batch))
    our_gradients = gradients(ours, found, batch)
    return Comparison(
        parameters=sum(parameter.numel() for parameter in ours.parameters()),
        logits=float(difference),
        gradients=max(float((their_gradients[name] - g).abs().max()) for name, g in our_gradients.items()),
        largest_logit=float(largest),
        tokens_equal=their_greedy(theirs, batch, new_tokens) == our_greedy(ours, batch, new_tokens),
    )


PROMPTS = (17, 9)
"""Lengths of the two prompts in tokens. One is longer than the samples' windows, and the other becomes longer during
generation."""


@torch.no_grad()
def their_greedy(model: nn.Module, batch: ParityBatch, count: int) -> list[list[int]]:
    """Generate a greedy continuation of each prompt separately, with `generate` of `transformers` and its cache."""
    model.generation_config.eos_token_id = None  # type: ignore[union-attr]  # no token ends a text
    options: dict[str, Any] = {"max_new_tokens": count, "do_sample": False, "pad_token_id": 0}
    written = []
    for length, row, source in zip(PROMPTS, batch.tokens, batch.source, strict=True):
        prompt = row[None, :length]
        if getattr(model.config, "is_encoder_decoder", False):
            # Without a cache, because theirs requires a decoder with as many layers as the encoder.
            start = {"decoder_input_ids": prompt, "decoder_start_token_id": int(row[0]), "use_cache": False}
            text = model.generate(source[None], **start, **options)  # type: ignore[operator]
        else:
            text = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)  # type: ignore[operator]
        written.append(text[0, -count:].tolist())
    return written


def our_greedy(model: Model, batch: ParityBatch, count: int) -> list[list[int]]:
    """Generate our greedy continuations of both prompts at once, with our cache."""
    prompts = [row[:length].tolist() for length, row in zip(PROMPTS, batch.tokens, strict=True)]
    sources = batch.source.tolist() if isinstance(model, EncoderDecoder) else None
    return generate(model, prompts, count, sources=sources)
