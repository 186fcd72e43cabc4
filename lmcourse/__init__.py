"""A hands-on course about transformer language models, and the library that it is built on.

The notebooks use it for code that earlier notebooks built, for checks of answers, and for figures. `docs/library.md`
shows how to use it without the notebooks; the public names are in `__init__.pyi`. Importing the package does not load
these names; each is loaded when you first use it.
"""

from lmcourse.base.lazy import lazy_names

__version__ = "1.0.0"

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
