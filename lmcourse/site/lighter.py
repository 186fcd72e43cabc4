"""Take from the pages of a site what no reader needs: a first view is to be small."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from lmcourse.site.icons import with_drawn_icons

MADE_BY_SCRIPTS = ("bs-", "collaps", "dropdown", "modal", "offcanvas", "popover", "tooltip")
"""Beginnings of classes that Bootstrap's scripts put together from parts, so that no file holds them whole."""

SEARCH = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")
"""What searches. The theme loads it on every page, for results while one types, which the site does not show."""

_WORD = re.compile(r"-?[a-zA-Z_][\w-]*")
_CLASS = re.compile(r"\.(-?[a-zA-Z_][\w-]*)")
_WITHOUT_CLASSES = re.compile(r":not\([^()]*\)|\[[^\]]*\]")
"""Parts of a selector that want no class, or want one not to be there."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PLAIN_SPAN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
_GROUPS = ("@media", "@supports", "@layer")
"""At-rules that hold rules."""


def make_lighter(out: Path) -> None:
    """Remove maps for debuggers, two thousand icons but those in use, searching from most pages, and unused style.

    Args:
        out: the folder that Sphinx made.
    """
    static = out / "_static"
    for unneeded in static.rglob("*.map"):
        unneeded.unlink()
    icons = static / "scripts" / "fontawesome.js"
    paths = icons.read_text(encoding="utf-8")
    icons.write_text("/* the icons are in the style sheet */\n", encoding="utf-8")
    pages = [*out.glob("*.html")]
    for page in pages:
        text = without_plain_spans(page.read_text(encoding="utf-8"))
        page.write_text(text if page.name == "search.html" else without_search(text), encoding="utf-8")
    texts = (path.read_text(encoding="utf-8") for path in (*pages, *static.rglob("*.js")))
    words = {word for text in texts for word in _WORD.findall(text)}
    theme = static / "styles" / "pydata-sphinx-theme.css"
    for style in (theme, *static.glob("mystnb.*.css")):
        style.write_text(used_rules(style.read_text(encoding="utf-8"), words), encoding="utf-8")
    theme.write_text(with_drawn_icons(theme.read_text(encoding="utf-8"), words, paths), encoding="utf-8")
    shutil.rmtree(static / "vendor" / "fontawesome")


def without_search(page: str) -> str:
    """A page without the scripts that search."""
    for script in SEARCH:
        page = page.replace(f'<script src="{script}"></script>', "")
    return page


def without_plain_spans(page: str) -> str:
    """A page without the elements around names, punctuation and spaces in code: a tenth of its bytes, and no colour."""
    return _PLAIN_SPAN.sub(r"\1", page)


def used_rules(css: str, words: Collection[str]) -> str:
    """A style sheet without the selectors that cannot apply, as they want a class that is nowhere.

    Args:
        css: the style sheet. Its notices of rights are kept, at the end.
        words: of all pages and scripts.
    """
    notices = [comment for comment in _COMMENT.findall(css) if comment.startswith("/*!")]
    return "".join([*_used(_COMMENT.sub("", css), words), "\n", *notices])


def _used(css: str, words: Collection[str]) -> Iterator[str]:
    for prelude, body in _blocks(css):
        if body is None:
            yield prelude
        elif prelude.lstrip().startswith(_GROUPS):
            if inside := "".join(_used(body, words)):
                yield f"{prelude}{{{inside}}}"
        elif prelude.lstrip().startswith("@"):
            yield f"{prelude}{{{body}}}"
        elif kept := [selector for selector in _selectors(prelude) if _may_apply(selector, words)]:
            yield f"{','.join(kept)}{{{body}}}"


def _blocks(css: str) -> Iterator[tuple[str, str | None]]:
    """What stands before each pair of outer braces, and in them; None for a statement, and for the rest at the end."""
    start = opened = depth = 0
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{};]', css):
        sign = found.group()
        if sign == "{":
            opened = found.start() if depth == 0 else opened
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                yield css[start:opened], css[opened + 1 : found.start()]
                start = found.end()
        elif sign == ";" and depth == 0:
            yield css[start : found.end()], None
            start = found.end()
    if css[start:].strip():
        yield css[start:], None


def _selectors(prelude: str) -> list[str]:
    """The selectors of a rule: what commas outside of brackets part."""
    parts, depth = [""], 0
    for sign in prelude:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _may_apply(selector: str, words: Collection[str]) -> bool:
    """Whether every class that a selector wants is somewhere; of alternatives, as in `:is(.a, .b)`, we do not know."""
    if ":is(" in selector or ":where(" in selector or "\\" in selector:
        return True
    wanted = _CLASS.findall(_WITHOUT_CLASSES.sub("", selector))
    return all(name in words or name.startswith(MADE_BY_SCRIPTS) for name in wanted)
