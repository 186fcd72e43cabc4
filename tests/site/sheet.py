"""A page with parts of the site and its own style and script, which opens faster than a page of the whole site."""

from __future__ import annotations

from pathlib import Path

from lmcourse.site import blocks

STATIC = Path(blocks.__file__).parent / "static"


def write_sheet(folder: Path, body: str, script: str) -> str:
    """Write a page into a folder, and return its address.

    Args:
        folder: the folder of the page.
        body: the page's HTML.
        script: the file of the site's static files that the page runs.
    """
    path = folder / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>A sheet</title>'
        f'<meta name="viewport" content="width=device-width"><style>{(STATIC / "site.css").read_text()}</style>'
        f'<main class="bd-content">{body}</main><script>{(STATIC / script).read_text()}</script>',
        encoding="utf-8",
    )
    return path.as_uri()
