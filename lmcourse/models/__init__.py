"""Whole models: configurations, the transformer in its three forms, published models by name, and weights of other
libraries. The public names are in `__init__.pyi`."""

from lmcourse.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
