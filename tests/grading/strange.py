"""Anything at all, as JSON, and a sound notebook in which anything is replaced by anything."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.grading.tiny_course import EXERCISES, tiny_notebook

Path = tuple[str | int, ...]

TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
"""Halves of surrogate pairs, NUL and writing from right to left included."""

ODD_TEXTS = st.sampled_from(
    [
        "__proto__",
        "grade_id",
        "x" * 5_000,
        "\x00",
        "\ud800",
        "\u202e",
        "check_one",
        "[" * 2_000,
        "> " * 2_000,
        "<b>" * 2_000,
        "$$",
        "\\begin{a}",
        "![x](attachment:a.png)",
        *EXERCISES,
    ]
)

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    ODD_TEXTS,
    st.just(10**4000),
    st.just(-1),
    st.just(1e400),
)

KEYS = st.one_of(TEXTS, st.sampled_from(["nbgrader", "cell_type", "source", "metadata", "text/html", "image/png"]))

ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def sound() -> dict[str, Any]:
    """A notebook with something of everything, as it lies in a file."""
    notebook = json.loads(json.dumps(tiny_notebook()))
    title = notebook["cells"][0]
    title["source"] = ["# Tiny\n", "![p](attachment:p.png)"]
    title["attachments"] = {"p.png": {"image/png": "AAAA"}}
    notebook["cells"][1]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["a\n"]},
        {"output_type": "error", "ename": "E", "evalue": "e", "traceback": ["t"]},
        {"output_type": "display_data", "data": {"text/plain": "x", "text/html": ["<b>"]}, "metadata": {}},
    ]
    notebook["cells"].append(
        {"cell_type": "raw", "id": "raw", "metadata": {"raw_mimetype": "text/html"}, "source": "<i>"}
    )
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    notebook["metadata"]["lmcourse"] = {"problem": "", "put_back": []}
    return notebook


def places(node: Any, here: Path = ()) -> Iterator[Path]:
    """The way to each node."""
    yield here
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(child, (*here, key))


PLACES = sorted(places(sound()), key=str)


def with_replaced(place: Path, value: Any) -> Any:
    """The sound notebook with something else in one place."""
    if not place:
        return value
    notebook = copy.deepcopy(sound())
    node: Any = notebook
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return notebook


REPLACED = st.builds(with_replaced, st.sampled_from(PLACES), ANYTHING)
