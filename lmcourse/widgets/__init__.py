"""Controls for the figures of `lmcourse.plots`, live in JupyterLab and a still picture everywhere else."""

from lmcourse.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
