"""Pre-tokenization: text is cut into words before byte pairs are merged, so that no token reaches over a word's border.

The rule is GPT-2's (Radford et al., 2019) with its classes of characters written out: a letter is A to Z, a to z, or
anything beyond ASCII. GPT-2 asks Unicode what a letter is, and the answer differs between engines and changes with the
years; ours is the same in Python's `re` and in `tokenizers`, so both cut the same words. The price: “ and — stick
to words.
"""

from __future__ import annotations

import re

from lmcourse.data.tokenizers.tokenizer import to_utf8

_SPACE = " \t\n\r\v\f"
_LETTER = "A-Za-z\u0080-\U0010ffff"

PATTERN = "|".join(
    (
        "'(?:[sdmt]|ll|ve|re)",  # the ends of it's, they'll, …
        f" ?[{_LETTER}]+",  # a word, with the space before it
        " ?[0-9]+",
        f" ?[^{_SPACE}{_LETTER}0-9]+",  # punctuation
        f"[{_SPACE}]+(?![^{_SPACE}])",  # white space; its last space is left to the word behind it
        f"[{_SPACE}]+",
    )
)
"""Every text is a sequence of matches, with nothing in between."""

_COMPILED = re.compile(PATTERN)


def split_words(text: str) -> list[str]:
    """The words; together they are the text.

    Raises:
        ValueError: the text has half a character (a lone surrogate).
    """
    to_utf8(text)  # tells where in the text it is; a word could not
    return _COMPILED.findall(text)
