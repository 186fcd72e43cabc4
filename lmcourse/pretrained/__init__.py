"""Trained models that ship with the course, by name: `load_pretrained().model(tokens)`.

Each is a folder here with what `lmcourse train` left (`export` keeps what is needed) and a README that says with which
command, on which text and how far it was trained.
"""

from lmcourse.pretrained.load import PRETRAINED, load_pretrained, pretrained_folder

__all__ = ["PRETRAINED", "load_pretrained", "pretrained_folder"]
