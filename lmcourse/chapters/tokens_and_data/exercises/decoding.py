"""The exercise on turning tokens into text."""

from __future__ import annotations

from random import Random

from lmcourse.chapters.tokens_and_data.exercises.calls import call
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise

TOY = [(101, 115), (256, 116), (108, 111), (258, 119), (101, 119)]
_HALF = [(101, 240), (159, 152), (257, 128)]
"""Merges: e with the first byte of 😀, its two middle bytes, and its last three."""


def _reference(tokens: list[int], merges: list[tuple[int, int]]) -> str:
    """Take each token apart until only bytes are left."""

    def raw(token: int) -> bytes:
        if not 0 <= token < 256 + len(merges):
            raise ValueError(f"there is no token {token}")
        return bytes([token]) if token < 256 else b"".join(map(raw, merges[token - 256]))

    return b"".join(map(raw, tokens)).decode("utf-8", "replace")


def _hidden(random: Random) -> list[Case]:
    cases = [
        *(call("cut inside a character", "decode", each, []) for each in ([240, 159, 152], [97, 195, 98, 169, 99])),
        call("characters of several tokens", "decode", [104, 256, 257, 128, 33], _HALF),
        call("merges of merges", "decode", [97, 256, 257, 258, 259], [(97, 97), (256, 256), (257, 257), (258, 98)]),
        call("the last token there is", "decode", [260], TOY),
        *(call("bad input", "decode", tokens, TOY) for tokens in ([261], [97, -1, 98])),
        call("no tokens", "decode", [], []),
    ]
    for _ in range(4):
        tokens = [random.choice([97, 32, 195, 169, 233, 256, 257, 258, 259, 260]) for _ in range(10)]
        tokens += [257, 260, 195, 169, 195, 97]  # a merge of a merge, the last merge, a whole letter, half a letter
        cases.append(call("other tokens", "decode", tokens, TOY))
    return cases


decode = Exercise(
    "decode",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_reference,
    cases=[
        call("two bytes, one letter", "decode", [195, 169], []),
        call("half a letter", "decode", [195], []),
        call("low, est", "decode", [259, 257], TOY),
        call("a space inside", "decode", [97, 32, 98], TOY),
        call("a letter that two tokens share", "decode", [256, 258], _HALF),
        call("three bytes that begin no letter", "decode", [97, 159, 152, 128], []),
        call("token 0", "decode", [0, 97], []),
        call("no such token", "decode", [97, 261], TOY),
        call("no such token, and it comes first", "decode", [261, 97], TOY),
        call("a negative one", "decode", [97, -1], TOY),
        call("no tokens", "decode", [], TOY),
    ],
    hidden_cases=_hidden,
    hints=[
        "Make a list of the bytes of every token: first bytes([0]) to bytes([255]), then one for each merge.",
        "A merge has the bytes of its left token, then the bytes of its right token. Both are in the list.",
        'Join the bytes of all tokens, and only then b"…".decode(errors="replace").',
    ],
    forbid=["tokenizers", "tiktoken"],
)


@decode.variant
def by_joining(tokens: list[int], merges: list[tuple[int, int]]) -> str:
    pieces = [bytes([value]) for value in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    if any(not 0 <= token < len(pieces) for token in tokens):
        raise ValueError("the token does not exist")
    return b"".join(pieces[token] for token in tokens).decode(errors="replace")


decode.slips(
    by_joining,
    {
        'b"".join(pieces[token] for token in tokens).decode(errors="replace") → '
        '"".join(pieces[token].decode(errors="replace") for token in tokens)': "You decode each token by itself, or as "
        "ASCII. One letter may be in two tokens: join all bytes, then decode UTF-8.",
        'errors="replace" → ': "You raise an error for half a letter. A model may stop there: use U+FFFD.",
        "replace → ignore": "You drop bytes that are not UTF-8. Put U+FFFD in their place.",
        'errors="replace" → "latin-1"': "You turn each byte into a character. é has two bytes: decode UTF-8.",
        'b"" → b" "': "You add spaces between tokens. Spaces are part of tokens: add none.",
        "not 0 <= token < len(pieces) → token >= len(pieces)": "For token −1 you return the last one, as a Python list "
        "does. Raise ValueError.",
        'if any(not 0 <= token < len(pieces) for token in tokens):\n        raise ValueError("the token does not '
        'exist") → pieces = dict(enumerate(pieces))': "For a token that does not exist, you raise IndexError or "
        "KeyError. Raise ValueError.",
        '    if any(not 0 <= token < len(pieces) for token in tokens):\n        raise ValueError("the token does not '
        'exist")\n → ': "You leave the check of a token to the list: too large a number raises IndexError, and −1 is "
        "its last entry. Check the range, and raise ValueError.",
        'raise ValueError("the token does not exist") → tokens = [token for token in tokens if 0 <= token < '
        "len(pieces)]": "You leave out a token that does not exist. Raise ValueError.",
        'pieces[left] + pieces[right] → bytes(part for part in (left, right) if part < 256) || b"".join(pieces[token] '
        "for token in tokens) → bytes(part for token in tokens for part in (merges[token - 256] if token > 255 else "
        "[token]))": "You expand merges once. A merge may consist of other merges.",
        "pieces[left] + pieces[right] → pieces[right] + pieces[left]": "You put the bytes of a merge's right token "
        "before those of its left token.",
        'return b"" → text = b"" ;; (errors="replace") → (errors="replace")\n    while "��" in text:\n        text = '
        'text.replace("��", "�")\n    return text': "You join several U+FFFD in a row into one. Keep each of them, as "
        "errors=“replace” does.",
    },
)
