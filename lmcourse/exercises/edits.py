"""Edits of a text: "old → new", and several of them as "old → new ;; old → new".

Known mistakes are edits of a right answer, and mutants are edits of the printed solution.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise

from lmcourse.base.errors import CourseError

ARROW = " → "
ALSO = " ;; "
EITHER = " || "
"""Separates edits that make the same mistake; each is a known mistake of its own."""


class EditError(CourseError):
    """An edit that does not fit its text; the message says why."""


def edited(text: str, edits: str) -> str:
    """Return a text with edits; all of them refer to the original text, so their order does not matter.

    Raises EditError unless each old text occurs exactly once, and no two overlap.
    """
    for start, end, new in reversed(spans(text, edits)):
        text = text[:start] + new + text[end:]
    return text


def spans(text: str, edits: str) -> list[tuple[int, int, str]]:
    """Return the start, the end and the replacement of each edit, in the order of the text; raise EditError as
    `edited` does."""
    found = sorted(_span(text, edit) for edit in edits.split(ALSO))
    if overlap(found):
        raise EditError("two of its edits change the same text")
    return found


def overlap(found: list[tuple[int, int, str]]) -> bool:
    """Return True if two edits, given by their `spans`, change the same text."""
    return any(start < end for (_, end, _), (start, _, _) in pairwise(sorted(found)))


def _span(text: str, edit: str) -> tuple[int, int, str]:
    old, arrow, new = edit.partition(ARROW)
    if not arrow or not old:
        raise EditError('write it as "old → new", with a space on both sides of the arrow')
    if old == new:
        raise EditError("it changes nothing")
    if times := text.count(old) - 1:
        raise EditError(f"{shown(old)!r} " + ("does not occur" if times < 0 else f"occurs {times + 1} times"))
    start = text.index(old)
    return start, start + len(old), new


def edit_between(text: str, changed: str) -> str:
    """Return the edit that makes one text into another, in whole lines, with as few lines around as make it unique."""
    old, new = text.splitlines(), changed.splitlines()
    blocks = [block for block in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if block[0] != "equal"]
    (_, first, _, start, _), (_, _, last, _, end) = blocks[0], blocks[-1]
    below = len(old) - last
    while True:
        before, after = ("\n".join(lines) for lines in (old[first:last], new[start:end]))
        indent = len(before) - len(before.lstrip(" "))
        if before[:indent] == after[:indent]:
            before, after = before[indent:], after[indent:]
        if before and text.count(before) == 1 and edited(text, f"{before}{ARROW}{after}") == changed:
            return f"{before}{ARROW}{after}"
        if first:
            first, start = first - 1, start - 1
        elif below:
            last, end, below = last + 1, end + 1, below - 1


def shown(edits: str) -> str:
    """Return edits on one line, for tables and messages; a new line in them is shown as in Python's source."""
    return edits.replace("\n", "\\n")
