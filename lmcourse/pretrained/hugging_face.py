"""Write and read a trained model with its tokenizer in the format of `transformers`.

config.json, model.safetensors   in the format of `lmcourse.models.interop`
tokenizer.json                   in the format of `lmcourse.data.tokenizers`
tokenizer_config.json            the class of `transformers` that AutoTokenizer uses for tokenizer.json
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import combinations
from pathlib import Path

import torch

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json
from lmcourse.data.tokenizers import Tokenizer, open_any_tokenizer, save_tokenizer
from lmcourse.models.interop import from_hugging_face, to_hugging_face
from lmcourse.models.interop.convert import family_for
from lmcourse.models.transformer import Transformer
from lmcourse.training.checkpoint_format import make_staging_folder
from lmcourse.training.run_config import UNCHANGED, ModelChanges, RunConfig
from lmcourse.training.trained_model import TrainedModel

CONFIG, GENERATION_CONFIG = "config.json", "generation_config.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublishedModel:
    """A model in evaluation mode, with the dtype of its weights, and its tokenizer, from a folder of `transformers`.

    `stop` has the tokens that end a text.
    """

    model: Transformer
    tokenizer: Tokenizer
    stop: tuple[int, ...] = ()


def export_model(trained: TrainedModel, out: Path) -> str:
    """Write a trained model so that `AutoModelForCausalLM` and `AutoTokenizer` load it; return its family.

    The folder gets its name when it is completely on the disk. CourseError is raised if it already exists or cannot be
    written, or if no family can express the model.
    """
    if out.exists():
        raise CourseError(f"{out} already exists: choose another --out")
    try:
        staging = make_staging_folder(out)
        try:
            try:
                to_hugging_face(trained.model, staging)
            except CourseError as error:
                advice = how_to_train_for_export(trained.run, trained.model.config.vocab_size)
                raise CourseError(f"{error}{advice}") from None
            save_tokenizer(trained.tokenizer, staging / TOKENIZER)
            config = {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": trained.run.training.seq_len,
                # Otherwise decoding would remove the space before a full stop and so change the text.
                "clean_up_tokenization_spaces": False,
            }
            (staging / TOKENIZER_CONFIG).write_text(json.dumps(config, indent=2) + "\n")
            family = str(json.loads((staging / CONFIG).read_text())["model_type"])
            staging.replace(out)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise CourseError(f"{out} cannot be written: {error.strerror}") from None
    return family


def is_published(folder: Path) -> bool:
    """Return True if a folder is a model of `transformers` and not a run."""
    return (folder / CONFIG).is_file()


def load_published_model(folder: Path, *, device: torch.device | None = None) -> PublishedModel:
    """Load the model and tokenizer from a folder of `transformers`, written by `export_model` or downloaded.

    The folder must have config.json, safetensors and tokenizer.json. If one is missing, damaged or not supported,
    CourseError is raised. The device is the CPU by default.
    """
    model = from_hugging_face(folder)
    if not isinstance(model, Transformer):
        raise CourseError(f"{folder} has an encoder–decoder, which cannot continue a text: use a decoder")
    path = folder / TOKENIZER
    if not path.is_file():
        raise CourseError(f"{folder} has no {TOKENIZER}: download it too, or save it with tokenizer.save_pretrained")
    tokenizer, vocab_size = open_any_tokenizer(path), model.config.vocab_size
    return PublishedModel(model.to(device), tokenizer, _stop(folder, vocab_size))


def _stop(folder: Path, vocab_size: int) -> tuple[int, ...]:
    """Return the tokens that end a text, from generation_config.json and config.json; there may be none.

    If a token is outside the vocabulary, it can never be sampled, and a line on stderr says so, as in transformers.
    """
    ends: dict[int, None] = {}
    for path in (folder / GENERATION_CONFIG, folder / CONFIG):
        told = read_json(path).get("eos_token_id") if path.is_file() else None
        for token in told if isinstance(told, list) else [] if told is None else [told]:
            if type(token) is not int:
                raise CourseError(f"{path}: eos_token_id must be a whole number or a list of them, not {told!r}")
            ends[token] = None
    for token in ends:
        if not 0 <= token < vocab_size:
            outside = f"is outside the vocabulary of {vocab_size} tokens, so it never ends a text"
            log.warning("%s: eos_token_id %d %s", folder, token, outside)
    return tuple(token for token in ends if 0 <= token < vocab_size)


def how_to_train_for_export(run: RunConfig, vocab_size: int) -> str:
    """Return the end of an error message: the fewest flags to leave out, and the family that then fits; or ""."""
    changed = [field.name for field in fields(ModelChanges) if getattr(run.model, field.name) != field.default]
    for count in range(1, len(changed) + 1):
        for names in combinations(changed, count):
            without = replace(run.model, **{name: getattr(UNCHANGED, name) for name in names})
            with suppress(CourseError):
                family = family_for(replace(run, model=without).model_config(vocab_size))
                return f"; train {_flags(names)}, and it is written as {family.name}"
    return ""


def _flags(names: Sequence[str]) -> str:
    """Return the flags to type. If a recipe may have switched a setting on, its `--no-` flag is named."""
    told = [
        f"with --no-{name}" if isinstance(getattr(UNCHANGED, name), bool) else f"without --{name}" for name in names
    ]
    return " and ".join(told).replace("_", "-")
