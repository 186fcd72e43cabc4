"""Greedy generation, token by token the same as `transformers` writes with the same weights."""

from __future__ import annotations

import pytest
import torch

from lmcourse.inference.generate import generate
from lmcourse.models.interop import from_hugging_face

transformers = pytest.importorskip("transformers")
VOCABULARY, NEW = 50, 24
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6, 5], [3, 7], [5, 8, 9, 7]]
COMMON = {
    "vocab_size": VOCABULARY,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
SIZES = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6}


def theirs(family: str):
    torch.manual_seed(0)
    if family == "gpt2":
        config = transformers.GPT2Config(**COMMON, n_positions=64, n_embd=48, n_layer=3, n_head=4)
    elif family == "llama":
        config = transformers.LlamaConfig(**COMMON, **SIZES, num_key_value_heads=2)
    else:  # a window much shorter than the text
        config = transformers.MistralConfig(**COMMON, **SIZES, num_key_value_heads=2, sliding_window=6)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # with weights of 0.02 the same token would follow for ever
            parameter.add_(torch.randn(parameter.shape), alpha=0.4 if parameter.dim() > 1 else 0.05)
    return model


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_greedy_generation(family: str) -> None:
    their = theirs(family)
    expected = []
    for prompt in PROMPTS:
        tokens = torch.tensor([prompt])
        mask = torch.ones_like(tokens)
        text = their.generate(tokens, attention_mask=mask, max_new_tokens=NEW, do_sample=False, pad_token_id=0)
        expected.append(text[0, len(prompt) :].tolist())
    assert min(len(set(text)) for text in expected) > 3, "texts that repeat themselves prove nothing"
    assert generate(from_hugging_face(their), PROMPTS, NEW) == expected
