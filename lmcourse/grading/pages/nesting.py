"""How deep HTML is nested, found before it is parsed into a tree.

A parser repeats every formatting element that is open, such as `<b>`, in every block that follows: 10,000 characters
can become a tree of a hundred thousand elements, and a page of megabytes.
"""

from __future__ import annotations

from collections.abc import Collection

from bleach.html5lib_shim import TAG_TOKEN_TYPE_END, TAG_TOKEN_TYPE_START, BleachHTMLParser, BleachHTMLTokenizer

FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
"""The elements that are repeated (HTML standard, 13.2.4.3, "The list of active formatting elements")."""

WITHOUT_END = frozenset({"br", "dd", "dt", "hr", "img", "li", "p"})
"""Elements that need no end tag. They are not counted, so none of them can make up for another's end."""

MAX_NESTING = 50
MAX_FORMATTING = 8
"""Elements, and formatting elements, that may be open at once; tables and reports need 6."""


def is_nested_too_deep(html: str, tags: Collection[str]) -> bool:
    """Whether too many elements are open somewhere. An end tag that is not the innermost element's closes nothing.

    Args:
        html: any text.
        tags: the names that are allowed; other tags are not there for the parser either.
    """
    # bleach's own tokenizer: what another one took for the end of an element might be a comment to it.
    parser = BleachHTMLParser(tags=tags, strip=True, consume_entities=False, namespaceHTMLElements=False)
    opened: list[str] = []
    formatting = 0
    for token in BleachHTMLTokenizer(stream=html, parser=parser, consume_entities=False):
        name = token.get("name", "")
        if token["type"] == TAG_TOKEN_TYPE_START and name not in WITHOUT_END:
            opened.append(name)
            formatting += name in FORMATTING
            if len(opened) > MAX_NESTING or formatting > MAX_FORMATTING:
                return True
        elif token["type"] == TAG_TOKEN_TYPE_END and opened and opened[-1] == name:
            opened.pop()
            formatting -= name in FORMATTING
    return False
