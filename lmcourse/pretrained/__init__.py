"""Trained models that ship with the course, by name: `load_pretrained().model(tokens)`.

Each model has a folder here with the necessary files of a `lmcourse train` run (see `export`), and a README with the
command, the text and the length of the training.
"""

from pathlib import Path

import torch

from lmcourse.base.errors import CourseError
from lmcourse.training.trained_model import TrainedModel, load_trained_model

__all__ = ["PRETRAINED", "load_pretrained", "pretrained_folder"]

PRETRAINED = ("micro-python-docs",)
"""The names of the models. Each consists of a preset of the zoo and the corpus that the model was trained on."""


def pretrained_folder(name: str = PRETRAINED[0]) -> Path:
    """Return the folder of a model that ships with the course, in the format of a run for `load_trained_model`.

    An unknown name raises CourseError.
    """
    if name not in PRETRAINED:
        raise CourseError(
            f"no model called {name!r} ships with the course; choose from {', '.join(PRETRAINED)}; "
            "from_hugging_face reads a folder in Hugging Face's format"
        )
    return Path(__file__).parent / name


def load_pretrained(name: str = PRETRAINED[0], *, device: torch.device | None = None) -> TrainedModel:
    """Load a model that ships with the course in evaluation mode, with its tokenizer and the settings of its run.

    The device is the CPU by default. An unknown name, or damaged files, raise CourseError.

    Example:
        >>> trained = load_pretrained()
        >>> trained.model(torch.tensor([trained.tokenizer.encode("The ")])).shape
        torch.Size([1, 2, 512])
    """
    return load_trained_model(pretrained_folder(name), device=device)
