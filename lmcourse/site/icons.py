"""The icons of the theme as small pictures in its style sheet: the font that it has them in holds two thousand."""

from __future__ import annotations

import re
from collections.abc import Collection

_ICON = re.compile(r'[{,]"?([a-z][\w-]*)"?:\[(\d+),(\d+),\[([^\]]*)\],"[0-9a-f]+","([^"]+)"\]')
"""An icon in Font Awesome's script: its name, width and height, other names (strings among numbers), and its path."""

_ALIAS = re.compile(r'"([\w-]+)"')
_FONT_FACE = re.compile(r"@font-face\{[^{}]*Font Awesome[^{}]*\}")
_DRAWN = (
    '.fa-solid::before{content:"";display:inline-block;width:1.25em;height:1.25em;margin:-.125em 0;'
    "background:currentColor;mask:var(--icon) center/contain no-repeat}"
)

_BOX = 640
"""Units of an icon's square, as wide as the font makes it: its own height is 512, and some reach beyond that."""


def with_drawn_icons(css: str, words: Collection[str], script: str) -> str:
    """A style sheet that draws the solid icons in use, and asks for no font of icons.

    Args:
        css: the theme's.
        words: of all pages and scripts; an icon in use is one of them, as "fa-sun".
        script: Font Awesome's, which has the path of every icon, the solid ones last.
    """
    paths: dict[str, tuple[str, str, str]] = {}
    for name, width, height, aliases, path in _ICON.findall(script):
        paths |= {f"fa-{known}": (width, height, path) for known in (name, *_ALIAS.findall(aliases))}
    rules = [f'.{word}{{--icon:url("{_svg(*paths[word])}")}}' for word in sorted(paths.keys() & set(words))]
    return "".join([_FONT_FACE.sub("", css), _DRAWN, *rules, "\n"])


def _svg(width: str, height: str, path: str) -> str:
    left, top = (int(width) - _BOX) // 2, (int(height) - _BOX) // 2
    return (
        f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='{left} {top} {_BOX} {_BOX}'%3E"
        f"%3Cpath d='{path}'/%3E%3C/svg%3E"
    )
