"""Find and read published models in LLaMA's format, for code that builds the model itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.convert import read_folder

FILES = ("config.json", "model.safetensors", "tokenizer.json")


def find_published(name: str, download: bool = False) -> Path | None:
    """Return the folder of a published model, such as "HuggingFaceTB/SmolLM2-135M". If there is none, print what to do.

    It is looked for in `models/` of this folder and those above, then in the cache of `huggingface_hub`. If
    `download`, missing files are fetched from the hub.
    """
    below = Path("models", name.rpartition("/")[2])
    for own in (folder / below for folder in (Path.cwd(), *Path.cwd().parents)):
        if all((own / file).is_file() for file in FILES[:2]):
            return own
    try:
        return _from_hub(name, download)
    except Exception as error:  # no package, no network, no such model: all mean that the model is not here
        why = f" ({type(error).__name__})" if download else ""
        print(f"{name} is not here{why}: copy its folder to {below}, or set download = True.")
        return None


def _from_hub(name: str, download: bool) -> Path:
    from huggingface_hub import constants, hf_hub_download  # imported here because it is optional

    if download:
        constants.HF_HUB_OFFLINE = False  # comparisons with transformers set it
    paths = [Path(hf_hub_download(name, file, local_files_only=not download)) for file in FILES]
    return paths[0].parent


NAMES = {
    "norm_1": "input_layernorm",
    **{name: f"self_attn.{name}_proj" for name in "qkv"},
    "out": "self_attn.o_proj",
    "norm_2": "post_attention_layernorm",
    **{name: f"mlp.{name}_proj" for name in ("gate", "up", "down")},
}
"""The tensors of a block: the names in `lmcourse.models.parity.parts`, and those in a file."""


def read_llama(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the weights of a folder in LLaMA's format, in fp32, and the model's sizes.

    The weights are those of `decoder_weights`, but queries, keys and values are apart ("q", "k", "v") and as in the
    file. Raises CourseError if the folder cannot be read, or scales its rotation.
    """
    settings, tensors = read_folder(folder)
    heads = settings["num_attention_heads"]
    rotation = settings.get("rope_parameters") or {}  # new files; older ones have the base at the top
    if settings.get("rope_scaling") or rotation.get("rope_type", "default") != "default":
        raise CourseError(f"{folder} scales its rotation, which these parts do not")
    sizes = {
        "layers": settings["num_hidden_layers"],
        "heads": heads,
        "kv_heads": settings.get("num_key_value_heads") or heads,
        "d_head": settings.get("head_dim") or settings["hidden_size"] // heads,
        "theta": settings.get("rope_theta") or rotation.get("rope_theta", 10_000.0),
        "eps": settings["rms_norm_eps"],
        "tied": settings.get("tie_word_embeddings", False),
    }
    found = {name.removesuffix(".weight"): tensor.float() for name, tensor in tensors.items()}
    blocks = [
        {name: found[f"model.layers.{number}.{theirs}"] for name, theirs in NAMES.items()}
        for number in range(sizes["layers"])
    ]
    embedding = found.get("model.embed_tokens", found.get("lm_head"))  # of a tied pair, a file may have either
    weights = {"embedding": embedding, "blocks": blocks, "norm": found["model.norm"]}
    return weights if sizes["tied"] else {**weights, "head": found["lm_head"]}, sizes


def read_words(folder: Path) -> tuple[Callable[[str], list[int]], Callable[[list[int]], str]]:
    """Return functions from a text to tokens and back, by the folder's tokenizer.json.

    Without the package `tokenizers` or that file, tokens are bytes, and are shown as numbers.
    """
    try:
        from tokenizers import Tokenizer  # imported here because it is optional

        tokenizer = Tokenizer.from_file(str(folder / FILES[2]))
    except Exception:  # tokenizers has no exception class of its own
        return lambda text: list(text.encode()), str
    return lambda text: list(tokenizer.encode(text).ids), tokenizer.decode
