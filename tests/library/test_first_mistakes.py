"""What a newcomer gets wrong in the first ten minutes: each mistake raises one line that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lmcourse import (
    ByteTokenizer,
    CourseError,
    Trainer,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    Workload,
    account,
    find_model,
    find_recipe,
    from_hugging_face,
    generate,
    initialize,
    llama_like,
    load_pretrained,
    to_hugging_face,
)
from lmcourse.models import NGram

CONFIG = llama_like(layers=1, d_model=16, heads=2, d_ff=32, vocab_size=256, context=32)
MODEL: Any = Transformer(CONFIG)
PROMPT: Any = ByteTokenizer().encode("hello")
LISTS = r"prompts must be a list of lists of token ids, such as \[tokenizer.encode\(text\)\]"
ROW = (
    r"tokens must be one row of token ids, as a tensor or a TokenFile, such as torch.tensor\(tokenizer.encode\(text\)\)"
)


def train(folder: Path, tokens: Any) -> Any:
    return Trainer(MODEL, TrainingConfig(steps=1, batch=1, seq_len=4), tokens, folder).run()


MISTAKES: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "a name for a config": (lambda _: Transformer("gpt-2"), TypeError, "must be a TransformerConfig, not str"),
    "an entry for a config": (lambda _: Transformer(find_model("nano")), TypeError, "not Entry: such as llama_"),
    "a number of layers": (lambda _: TransformerConfig(256, 16, 2, CONFIG.block), TypeError, "layers must be a"),
    "a config to initialize": (lambda _: initialize(CONFIG), TypeError, "must be a Module, not Transformer"),
    "a list to read": (lambda _: MODEL(PROMPT), TypeError, "tokens must be a Tensor, not list: encode the text"),
    "one axis": (
        lambda _: MODEL(torch.tensor(PROMPT)),
        ValueError,
        r"two axes, texts and tokens, not the shape \(5,\)",
    ),
    "another vocabulary": (lambda _: MODEL(torch.tensor([[300]])), ValueError, "token 300 is not in the model's"),
    "text to continue": (lambda _: generate(MODEL, "hello", 5), TypeError, LISTS),
    "one list to continue": (lambda _: generate(MODEL, PROMPT, 5), TypeError, LISTS),
    "a tensor to continue": (lambda _: generate(MODEL, torch.tensor([PROMPT]), 5), TypeError, LISTS),
    "a temperature": (lambda _: generate(MODEL, [PROMPT], 5, 0.8), TypeError, r"Sampling\(temperature=0.8\)"),
    "a run to write": (lambda _: generate(load_pretrained(), [PROMPT], 5), TypeError, r"load_pretrained\(\).mo"),
    "text to learn": (lambda folder: train(folder, "hello " * 20), TypeError, ROW),
    "a list to learn": (lambda folder: train(folder, PROMPT * 20), TypeError, ROW),
    "a table to learn": (lambda folder: train(folder, torch.tensor([PROMPT * 20])), TypeError, ROW),
    "a config to train": (
        lambda folder: Trainer(CONFIG, TrainingConfig(steps=1, batch=1, seq_len=4), PROMPT, folder),
        TypeError,
        "model must be a Module, not TransformerConfig: such as Transformer",
    ),
    "a number of steps": (
        lambda folder: Trainer(MODEL, 100, PROMPT, folder),
        TypeError,
        "config must be a TrainingConfig, not int",
    ),
    "a config to account for": (lambda _: account(CONFIG), TypeError, "workload must be a Workload, not Transformer"),
    "names to account for": (
        lambda _: Workload("gpt-2", 1, 128, find_recipe("mixed")),
        TypeError,
        "config must be a TransformerConfig, not str: such as find_model",
    ),
    "a name of a recipe": (
        lambda _: Workload(CONFIG, 1, 128, "mixed"),
        TypeError,
        "recipe must be a PrecisionRecipe, not str: such as find_recipe",
    ),
    "a model that we have not": (lambda _: load_pretrained("gpt2"), CourseError, "from_hugging_face reads a folder"),
    "half a name": (lambda _: find_model("llama3"), CourseError, "Did you mean .*'llama-3-8b'"),
    "a name for a folder": (lambda _: from_hugging_face("gpt2"), CourseError, "hf download NAME --local-dir"),
    "no transformer": (lambda folder: to_hugging_face(NGram(2, 3), folder), TypeError, "not NGram: such as Tra"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_line(mistake: str, tmp_path: Path) -> None:
    make, kind, line = MISTAKES[mistake]
    with pytest.raises(kind, match=line) as caught:
        make(tmp_path)
    assert "\n" not in str(caught.value)
