"""Python's help texts as tokens, stored because they differ between versions of Python.

They are the corpus "python-docs" of Python 3.11 in the 512 byte-pair tokens of the model `micro-python-docs`: copyright
of the Python Software Foundation, under the license in `help_texts.LICENSE.txt`.
"""

from __future__ import annotations

from pathlib import Path

from jaxtyping import Int
from safetensors.torch import load_file
from torch import Tensor

_FILE = Path(__file__).with_suffix(".safetensors")


def help_texts() -> tuple[Int[Tensor, " 194606"], Int[Tensor, " 22768"]]:
    """Return the tokens of the training text and of the text that is held out, as `micro-python-docs` had them."""
    stored = load_file(_FILE)
    return stored["training"].long(), stored["validation"].long()
