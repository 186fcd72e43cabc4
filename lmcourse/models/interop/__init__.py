"""Import from and export to Hugging Face: configurations and weights, in both directions.

A family is one description (`families`) of the names of its settings (`config_schema`, `flat_config`) and of how its
files store weights (`weight_layouts`). Both directions read the same description. `python -m tests.interop` compares
every family with `transformers` itself; `lmcourse export` writes complete model folders, including a tokenizer.

BERT is not among the families, though the zoo has its blocks. Its files have two parts that our model lacks: an
embedding that distinguishes two sentences, and a linear layer with GELU and a norm before the output matrix. Without
these two parts the model would not compute what BERT computes.
"""

from __future__ import annotations

from lmcourse.models.interop.convert import from_hugging_face, to_hugging_face
from lmcourse.models.interop.families import FAMILIES

__all__ = ["FAMILIES", "from_hugging_face", "to_hugging_face"]
