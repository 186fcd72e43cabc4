"""Pre-tokenization: split text into words before byte pairs are merged, so that no token crosses a word's border.

The rule is GPT-2's (Radford et al., 2019), but a letter is A to Z, a to z, or any character beyond ASCII. GPT-2 uses
Unicode's classes of letters, which differ between regular-expression engines and change over time. Our classes are the
same in Python's `re` and in `tokenizers`, so both split text into the same words. The disadvantage: “ and — become part
of the words next to them.
"""

from __future__ import annotations

import re

from lmcourse.data.tokenizers.tokenizer import to_utf8

_SPACE = " \t\n\r\v\f"
_LETTER = "A-Za-z\u0080-\U0010ffff"

PATTERN = "|".join(
    (
        "'(?:[sdmt]|ll|ve|re)",  # the endings of it's, they'll, …
        f" ?[{_LETTER}]+",  # a word, with the space before it
        " ?[0-9]+",
        f" ?[^{_SPACE}{_LETTER}0-9]+",  # punctuation
        f"[{_SPACE}]+(?![^{_SPACE}])",  # white space, except a last space before a word
        f"[{_SPACE}]+",
    )
)
"""The pattern of a word. Every text is a sequence of matches without gaps."""

_COMPILED = re.compile(PATTERN)


def split_words(text: str) -> list[str]:
    """Return the words of a text; joined, they are the text. A lone surrogate raises ValueError."""
    to_utf8(text)  # raises the error here, because it should name a position in the text, not in a word
    return _COMPILED.findall(text)
