"""The page of the library's public names, made from their docstrings."""

from __future__ import annotations

GROUPS = {
    "Models": "Transformer TransformerConfig llama_like gpt_like find_model initialize load_pretrained",
    "Training": "Trainer TrainingConfig",
    "Tokens and text": "ByteTokenizer BPETokenizer generate Sampling",
    "Hugging Face": "from_hugging_face to_hugging_face",
    "Accounting": "Workload account find_recipe",
    "Errors": "CourseError",
}
"""All public names of `lmcourse`, by topic."""

SETTINGS = {
    "autodoc_preserve_defaults": True,
    "autodoc_typehints": "none",  # the whole names of types are wider than a phone
    "default_role": "code",
    "html_domain_indices": False,
    "napoleon_attr_annotations": False,
    "napoleon_use_ivar": True,  # attributes as a list: entries of their own would fill the contents
}
"""Sphinx's settings for this page."""

HEAD = """# The library

The names that `from lmcourse import *` imports, with an example of each. The examples begin with these lines:

```python
import tempfile
from pathlib import Path

import torch

from lmcourse import *
```
"""


def reference_page() -> str:
    """Return the page as MyST Markdown."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        kinds = [("class" if name[0].isupper() else "function", name) for name in names.split()]
        entries = "\n".join(f".. auto{kind}:: lmcourse.{name}" for kind, name in kinds)
        parts.append(f"## {group}\n\n```{{eval-rst}}\n{entries}\n```\n")
    return "\n".join(parts)
