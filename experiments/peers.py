"""Implementations by other people for the comparison with our model.

transformers comes with the extra `parity`. litgpt and x-transformers take part if they are installed. nanoGPT and
gpt-fast, which are not packages, take part if PEERS_NANOGPT and PEERS_GPT_FAST name the `model.py` of a clone (gpt-fast
at c9f683e, because later versions need a mask).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; `gated_ff` is the width of SwiGLU. A layer without a gate is 4 times as wide as the model."""

    layers: int
    width: int
    heads: int
    gated_ff: int


SHAPES = {
    "nano": Shape(2, 64, 4, 192),
    "micro": Shape(4, 128, 4, 352),
    "mini": Shape(6, 384, 6, 1024),
    "course-124m": Shape(12, 768, 12, 2048),
}
"""The shapes of the course's presets."""
MINI = SHAPES["mini"]

Decoder = Callable[[Tensor, int], Tensor]
"""A function from prompts (b, s) and a number of new tokens to the texts (b, s + new)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""A function from inputs and targets to the mean loss."""


def module_at(variable: str) -> ModuleType | None:
    """Load the Python file that an environment variable names."""
    path = os.environ.get(variable)
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location(variable.lower(), path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def hugging_face(family: str, shape: Shape, vocab_size: int, seq_len: int) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    shared: dict[str, Any] = {"vocab_size": vocab_size, "bos_token_id": None, "eos_token_id": None}
    if family == "llama":
        llama = LlamaConfig(
            hidden_size=shape.width,
            intermediate_size=shape.gated_ff,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            max_position_embeddings=seq_len,
            tie_word_embeddings=True,
            **shared,
        )
        return LlamaForCausalLM(llama)
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"n_positions": seq_len, "n_embd": shape.width, "n_layer": shape.layers, "n_head": shape.heads}
    gpt2 = GPT2Config(**sizes, **no_dropout, **shared)
    return GPT2LMHeadModel(gpt2)


def litgpt(shape: Shape, vocab_size: int, seq_len: int) -> nn.Module:
    from litgpt import GPT, Config

    config = Config(
        block_size=seq_len,
        vocab_size=vocab_size,
        padded_vocab_size=vocab_size,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_embd=shape.width,
        rotary_percentage=1.0,
        parallel_residual=False,
        bias=False,
        norm_class_name="RMSNorm",
        mlp_class_name="LLaMAMLP",
        intermediate_size=shape.gated_ff,
    )
    return GPT(config)


def x_transformers(vocab_size: int, seq_len: int) -> nn.Module:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=MINI.width,
        depth=MINI.layers,
        heads=MINI.heads,
        attn_dim_head=MINI.width // MINI.heads,
        attn_flash=True,
        rotary_pos_emb=True,
        use_rmsnorm=True,
        ff_swish=True,
        ff_glu=True,
        ff_no_bias=True,
        ff_mult=MINI.gated_ff / MINI.width,
    )
    return TransformerWrapper(num_tokens=vocab_size, max_seq_len=seq_len, attn_layers=layers, tie_embedding=True)


def decoders(family: str, shape: Shape, vocab_size: int, batch: int, seq_len: int) -> dict[str, Decoder]:
    """Return greedy decoders of all peers of this family; `seq_len` is the length of prompt and answer."""
    their = hugging_face(family, shape, vocab_size, seq_len).eval()

    def generate(prompts: Tensor, new: int) -> Tensor:
        mask = torch.ones_like(prompts)
        options = {"attention_mask": mask, "max_new_tokens": new, "do_sample": False, "pad_token_id": 0}
        return their.generate(prompts, **options)

    result: dict[str, Decoder] = {"transformers": generate}
    if family == "llama" and installed("litgpt"):
        model = litgpt(shape, vocab_size, seq_len).eval()
        model.set_kv_cache(batch_size=batch, max_seq_length=seq_len)
        result["litgpt"] = with_cache(model)
        result["litgpt compiled"] = with_cache(model, torch.compile(model, fullgraph=True, dynamic=False))
    gpt_fast = module_at("PEERS_GPT_FAST")
    if family == "llama" and gpt_fast is not None:
        arguments = gpt_fast.ModelArgs(
            block_size=seq_len,
            vocab_size=vocab_size,
            n_layer=shape.layers,
            n_head=shape.heads,
            dim=shape.width,
            intermediate_size=shape.gated_ff,
        )
        fast = gpt_fast.Transformer(arguments).eval()
        fast.setup_caches(max_batch_size=batch, max_seq_length=seq_len)
        fast.output.weight = fast.tok_embeddings.weight
        result["gpt-fast"] = with_cache(fast)
        result["gpt-fast compiled"] = with_cache(fast, torch.compile(fast, fullgraph=True, dynamic=False))
    return result


def with_cache(
    read: Callable[[Tensor, Tensor], Tensor], step: Callable[[Tensor, Tensor], Tensor] | None = None
) -> Decoder:
    """Return a plain greedy loop for a model that takes tokens and positions and keeps its own cache."""
    step = read if step is None else step

    @torch.inference_mode()
    def run(prompts: Tensor, new: int) -> Tensor:
        text, count = [prompts], prompts.shape[1]
        logits = read(prompts, torch.arange(count))
        for position in range(count, count + new):
            text.append(logits[:, -1:].argmax(dim=-1))
            if position < count + new - 1:
                logits = step(text[-1], torch.tensor([position]))
        return torch.cat(text, dim=1)

    return run


def trainees(vocab_size: int, seq_len: int) -> dict[str, tuple[nn.Module, Loss]]:
    """Return all trainable peers with their losses; peers with their own loss use it."""

    def from_logits(model: Callable[[Tensor], Tensor]) -> Loss:
        return lambda inputs, targets: F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    result: dict[str, tuple[nn.Module, Loss]] = {}
    for family in ("llama", "gpt2"):
        their = hugging_face(family, MINI, vocab_size, seq_len)
        logits = from_logits(lambda inputs, m=their: m(inputs, use_cache=False).logits)
        result[f"transformers {family}"] = their, logits
    if installed("litgpt"):
        model = litgpt(MINI, vocab_size, seq_len)
        model.lm_head.weight = model.transformer.wte.weight
        result["litgpt"] = model, from_logits(model)
    if installed("x_transformers"):
        model = x_transformers(vocab_size, seq_len)
        result["x-transformers"] = model, from_logits(model)
    nanogpt = module_at("PEERS_NANOGPT")
    if nanogpt is not None:
        arguments = nanogpt.GPTConfig(
            block_size=seq_len, vocab_size=vocab_size, n_layer=MINI.layers, n_head=MINI.heads, n_embd=MINI.width
        )
        model = nanogpt.GPT(arguments)
        result["nanoGPT"] = model, lambda inputs, targets: model(inputs, targets)[1]
    return result
