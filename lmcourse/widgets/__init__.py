"""Controls for figures of `lmcourse.plots`, which are live in JupyterLab and static pictures elsewhere."""

from lmcourse.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
