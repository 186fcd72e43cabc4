"""formgrader's pages with names escaped: nbgrader writes ids into its HTML and its JavaScript as they are.

A student's id is the name of a folder, or part of an address that somebody follows; beside these pages lies the whole
Jupyter server, which a script in them could use.
"""

from __future__ import annotations

import sys
from typing import Any

from markupsafe import Markup, escape

PAGES = "nbgrader.server_extensions.formgrader.base"
FILES = "nbgrader.server_extensions.formgrader.handlers"

SHOWN_RESOURCES = ("assignment_id", "notebook_id", "student", "first_name", "last_name", "notebook_path")
"""What a submission's page shows besides its notebook."""


def secure_formgrader() -> None:
    """Have formgrader escape what it puts into its templates, and show files of submissions without running them, if
    this process is one with formgrader in it."""
    if module := sys.modules.get(PAGES):
        module.BaseHandler.render = _render
    if module := sys.modules.get(FILES):
        module.SubmissionFilesHandler.set_extra_headers = _forbid_scripts


def _render(handler: Any, name: str, **values: Any) -> str:
    """A page of formgrader; takes the place of `BaseHandler.render`."""
    page: str = handler.settings["nbgrader_jinja2_env"].get_template(name).render(**escaped(values))
    return page


def _forbid_scripts(handler: Any, path: str) -> None:
    """Headers of a file that somebody handed in; tornado asks for them. XML is a page too, and so is `x.HTML`."""
    handler.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
    handler.set_header("X-Content-Type-Options", "nosniff")


def escaped(value: Any) -> Any:
    """The value, texts in it such that they neither end nor begin anything in HTML and in a string of JavaScript."""
    if isinstance(value, str):
        return Markup(str(escape(value)).replace("\\", "&#92;").replace("\n", "&#10;").replace("\r", "&#13;"))
    if isinstance(value, dict):
        return {key: escaped(part) for key, part in value.items()}
    return value
