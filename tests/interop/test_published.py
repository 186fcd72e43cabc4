"""Published models in LLaMA's format: found in `models/`, and read for a decoder of separate parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_model
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.published import find_published, read_llama, read_words
from lmcourse.models.parity.parts import COURSE_PARTS, decoder, pair_neighbours

transformers: Any = pytest.importorskip("transformers")
NAME = "somebody/little-llama"


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Path]:
    """A random model as transformers saves it, in `models/`, and its folder as it is found from a folder below."""
    torch.manual_seed(1)
    sizes = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 3, "vocab_size": 512}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True}
    config = transformers.LlamaConfig(**sizes, **heads, rms_norm_eps=1e-5)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.15) if parameter.dim() > 1 else parameter.uniform_(0.5, 1.5)
    model.save_pretrained(tmp_path / "models" / "little-llama")
    below = tmp_path / "notebooks" / "12"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    folder = find_published(NAME)
    assert folder is not None
    return model, folder


def logits(folder: Path, order: Any, tokens: Tensor) -> Tensor:
    weights, sizes = read_llama(folder)
    for layer in weights["blocks"]:
        q, k, v = (layer.pop(name) for name in "qkv")
        layer["qkv"] = torch.cat([order(q, sizes["d_head"]), order(k, sizes["d_head"]), v])
    with torch.no_grad():
        return decoder(tokens, weights, sizes, COURSE_PARTS)


@pytest.mark.parametrize(("order", "least", "most"), [(pair_neighbours, 0, 1e-5), (lambda rows, _: rows, 0.1, 9)])
def test_decoder_of_parts_has_the_logits_of_transformers(
    published: tuple[Any, Path], order: Any, least: float, most: float
) -> None:
    model, folder = published
    tokens = torch.randint(512, (2, 30), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model(tokens).logits
    error = (logits(folder, order, tokens) - expected).abs().max() / expected.abs().max()
    assert least <= error <= most


def test_base_is_read_from_new_and_old_files(published: tuple[Any, Path]) -> None:
    path = published[1] / "config.json"
    settings = json.loads(path.read_text())
    settings.pop("rope_theta", None)
    path.write_text(json.dumps({**settings, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}))
    assert read_llama(published[1])[1]["theta"] == 300.0
    path.write_text(json.dumps({**settings, "rope_parameters": None, "rope_theta": 200.0}))
    assert read_llama(published[1])[1]["theta"] == 200.0
    path.write_text(json.dumps({**settings, "rope_scaling": {"factor": 8.0}}))
    with pytest.raises(CourseError, match="scales its rotation"):
        read_llama(published[1])


def test_tied_embedding_may_have_the_name_of_the_head(published: tuple[Any, Path]) -> None:
    model, folder = published
    expected = read_llama(folder)[0]["embedding"]
    save_model(model, str(folder / "model.safetensors"))
    assert torch.equal(read_llama(folder)[0]["embedding"], expected)


def test_folder_without_a_tokenizer_has_bytes_as_tokens(published: tuple[Any, Path]) -> None:
    encode, decode = read_words(published[1])
    assert (encode("ab"), decode([97, 98])) == ([97, 98], "[97, 98]")


def test_missing_model_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_published("nobody/has-this-model") is None
    told = "nobody/has-this-model is not here: copy its folder to models/has-this-model, or set download = True.\n"
    assert capsys.readouterr().out == told
