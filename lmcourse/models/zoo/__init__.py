"""Published models by name: `find_model("llama-3-8b").config`.

Every number comes from the source that its entry names, and the parameter count confirms most of them. Unpublished
parts are left out, and the entry says so. Mixtures of experts are not here, except for the dense part of Llama 4.
"""

import re
from difflib import get_close_matches

from lmcourse.base.errors import CourseError
from lmcourse.models.zoo import course, early_models, llamas, scaling, variations
from lmcourse.models.zoo.entry import Entry

__all__ = ["Entry", "all_models", "find_model"]

_MODELS: dict[str, Entry] = {
    entry.name: entry
    for entries in (early_models.ENTRIES, scaling.ENTRIES, llamas.ENTRIES, variations.ENTRIES, course.ENTRIES)
    for entry in entries
}


def all_models() -> list[Entry]:
    """Return all models, family by family; the course's own models come last."""
    return list(_MODELS.values())


def find_model(name: str) -> Entry:
    """Return the model with this name; case, dashes, dots, underscores and spaces do not matter.

    An unknown name raises CourseError, which suggests similar names.

    Example:
        >>> find_model("Llama 3 8B").config.vocab_size
        128256
    """
    if name in _MODELS:
        return _MODELS[name]
    alike = [entry for entry in all_models() if _bare(entry.name) == _bare(name)]
    if len(alike) == 1:
        return alike[0]
    beginning = [known for known in _MODELS if _bare(known).startswith(_bare(name))][:4]
    nearest = beginning or get_close_matches(name.lower(), _MODELS, n=1, cutoff=0.0)
    raise CourseError(f"There is no model {name!r} in the zoo. Did you mean {' or '.join(map(repr, nearest))}?")


def _bare(name: str) -> str:
    return re.sub(r"[-._ ]", "", name.lower())
