"""The layers of a transformer, one idea per file; the public names are in `__init__.pyi`.

Read them in the order of a forward pass: `embedding`, `norm`, `attention` (with `attend` and `attention_pattern`; for
positions, `rotary` and `position_bias`), `feed_forward`, `block`.
"""

from lmcourse.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
