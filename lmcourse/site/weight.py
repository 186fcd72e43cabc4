"""Make pages light: one style sheet with the rules that some page uses, and scripts that do not delay the first view.

The theme's style sheets have rules for all of Bootstrap and two thousand icons, 490 kB in all. A rule stays if the
classes, ids and elements of its selector are on some page or are named in a script, which may add them later.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import tinycss2

STYLES = "course.css"
"""The style sheet of all pages, in the folder `_static`."""

NEVER_USED = ("doctools.js", "sphinx_highlight.js")
"""Scripts for Sphinx's own search, which the site does not have."""

STATES = frozenset(["active", "collapsed", "collapsing", "fade", "hiding", "show", "showing"])
"""The classes that Bootstrap gives to parts of all its components. Of a single component it needs those with its name,
if a page has the component at all."""

_SHEET_TAG = re.compile(r'<link (?=[^>]*rel="stylesheet")[^>]*>\n?')
_SHEET = re.compile(r'<link (?=[^>]*rel="stylesheet")[^>]*href="([^"?]+)')
_SCRIPT = re.compile(r'<script (?:defer )?src="([^"?]+)[^>]*></script>\n?')
_PRELOAD = re.compile(r'<link rel="preload" as="script"[^>]*>\n?')
_NAMES = re.compile(r"""<([a-z][\w-]*)|\b(?:class|id|for)=\\?["']([^"'\\]*)""")
_WORD = re.compile(r"[a-zA-Z_-][\w-]*")
_URL = re.compile(r"""url\((?!["']?(?:data:|#))(["']?)([^)"']+)\1\)""")
_IMPORT = re.compile(r'@import "([^"]+)";')
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)")


def lighten(folder: Path) -> None:
    """Change the pages in this folder, and replace their style sheets by one."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html"))}
    text = "".join(pages.values())
    sheets = list(dict.fromkeys(_SHEET.findall(text)))
    scripts = {name: (folder / name).read_text(encoding="utf-8") for name in set(_SCRIPT.findall(text))}
    css = trim("\n".join(_read(folder / name, folder / "_static") for name in sheets), words_of(text, scripts))
    for name in (*sheets, "_static/basic.css"):
        (folder / name).unlink(missing_ok=True)
    (folder / "_static" / STYLES).write_text(css, encoding="utf-8")
    version = hashlib.sha256(css.encode()).hexdigest()[:8]
    for path, page in pages.items():
        head, end, body = page.partition("</head>")
        before, *after = _SHEET_TAG.split(head)
        head = f'{before}<link rel="stylesheet" href="_static/{STYLES}?v={version}"/>\n{"".join(after)}'
        path.write_text(_light_scripts(head, folder) + end + body, encoding="utf-8")


def _light_scripts(head: str, folder: Path) -> str:
    """Return the head of a page with scripts that run once the page is read, and load after the style sheet."""

    def light(tag: re.Match[str]) -> str:
        name = tag[1].rpartition("/")[2]
        if name in NEVER_USED:
            return ""
        if name == "documentation_options.js":  # later lines of the head change it
            return f"<script>{(folder / tag[1]).read_text(encoding='utf-8')}</script>\n"
        return tag[0] if " defer " in tag[0] else tag[0].replace("<script ", "<script defer ")

    return _PRELOAD.sub("", _SCRIPT.sub(light, head))


def _read(path: Path, base: Path) -> str:
    """Return a style sheet with those that it imports, and addresses relative to the folder `base`."""
    here = posixpath.relpath(path.parent.as_posix(), base.as_posix())

    def moved(url: re.Match[str]) -> str:
        return f"url({url[1]}{posixpath.normpath(posixpath.join(here, url[2]))}{url[1]})"

    text = _URL.sub(moved, path.read_text(encoding="utf-8"))
    return _IMPORT.sub(lambda found: _read(path.parent / found[1], base), text)


def words_of(pages: str, scripts: dict[str, str]) -> set[str]:
    """Return the names of elements, classes and ids in pages, and the words of scripts.

    Args:
        pages: HTML.
        scripts: the text of each script by its file name; of Bootstrap's, only the words that pages need count.
    """
    words = {word for tag, names in _NAMES.findall(pages) for word in (tag, *names.split())} | STATES
    for name, text in scripts.items():
        found = set(_WORD.findall(text))
        if name.endswith("/bootstrap.js"):
            components = set(re.findall(r'data-bs-toggle="(\w+)"', pages))
            found = {word for word in found if any(component in word for component in components)}
        words |= found
    return words | set(_VARIABLE.findall(pages))


@dataclass
class _Rule:
    """A rule: its selectors or its condition, and declarations or further rules."""

    prelude: str
    content: list[Any]

    def declarations(self) -> Iterator[Any]:
        """Yield the declarations, also those of rules inside."""
        for part in self.content:
            if isinstance(part, _Rule):
                yield from part.declarations()
            elif part.type == "declaration":
                yield part

    def without(self, unused: Collection[str]) -> _Rule | None:
        """Return the rule without these variables, or None if nothing is left."""
        parts = [part.without(unused) if isinstance(part, _Rule) else part for part in self.content]
        content = [part for part in parts if part is not None and getattr(part, "name", "") not in unused]
        return _Rule(self.prelude, content) if content else None

    def serialize(self) -> str:
        """Return the rule as CSS."""
        parts = (part.serialize().strip() + ";" * (getattr(part, "type", "") == "declaration") for part in self.content)
        return f"{self.prelude}{{{''.join(parts)}}}"


def trim(css: str, words: Collection[str]) -> str:
    """Return the rules of a style sheet whose selectors consist of these words, without variables that none uses."""
    sheet = _Rule("", list(_used_rules(_parse(tinycss2.parse_stylesheet, css), frozenset(words))))
    while True:
        declarations = list(sheet.declarations())
        used = {name for part in declarations for name in _VARIABLE.findall(part.serialize())}.union(words)
        unused = {part.name for part in declarations if part.name.startswith("--") and part.name not in used}
        if not unused:
            return "\n".join(rule.serialize() for rule in sheet.content) + "\n"
        sheet = sheet.without(unused) or _Rule("", [])


def _parse(parser: Callable[..., list[Any]], tokens: Any) -> list[Any]:
    nodes = parser(tokens, skip_comments=True, skip_whitespace=True)
    return [node for node in nodes if node.type != "error"]  # browsers skip them, too


def _used_rules(nodes: Iterable[Any], words: frozenset[str]) -> Iterator[Any]:
    """Yield the rules that count for elements with these names; fonts and animations stay as they are."""
    for node in nodes:
        if node.type == "qualified-rule":
            kept = [selector for selector in _selectors(node.prelude) if _names(selector) <= words]
            if kept and (content := _parse(tinycss2.parse_blocks_contents, node.content)):
                yield _Rule(",".join(map(tinycss2.serialize, kept)).strip(), content)
        elif node.lower_at_keyword in ("media", "supports"):
            if content := list(_used_rules(_parse(tinycss2.parse_rule_list, node.content), words)):
                yield _Rule(f"@{node.at_keyword}{tinycss2.serialize(node.prelude)}", content)
        elif node.content is not None:
            yield node


def _selectors(tokens: Sequence[Any]) -> list[list[Any]]:
    """Split the selectors of a rule at their commas."""
    found: list[list[Any]] = [[]]
    for token in tokens:
        if token == ",":
            found.append([])
        elif token.type != "comment":
            found[-1].append(token)
    return found


def _names(selector: Sequence[Any]) -> set[str]:
    """Return the elements, classes and ids that a selector names, without those inside of :is(…) or :not(…)."""
    found = set()
    for before, token in pairwise([None, *selector]):
        if token.type == "hash" or (token.type == "ident" and before != ":"):
            found.add(token.value)
    return found
