"""Import from and export to Hugging Face: configurations and weights, in both directions.

A family is one description (`families`): what its settings are called (`config_schema`, `flat_config`), and where its
weights lie (`weight_layouts`). Both directions read the same description. `python -m lmcourse.parity` compares every
family with `transformers` itself; `lmcourse export` writes whole folders, with a tokenizer.

BERT is not among them, though the zoo has its body. Its files have two parts that the model here does not: a second
embedding that tells two sentences apart, and between the last block and the output matrix a linear layer with GELU and
a norm. Read without them, the weights would not be BERT.
"""

from __future__ import annotations

from lmcourse.models.interop.convert import from_hugging_face, to_hugging_face
from lmcourse.models.interop.families import FAMILIES

__all__ = ["FAMILIES", "from_hugging_face", "to_hugging_face"]
