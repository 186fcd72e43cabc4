"""How Sphinx makes the pages: its settings, and the two things that no setting does.

`SETTINGS` stands in place of a conf.py; this module is one of the extensions in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

from docutils import nodes
from sphinx.application import Sphinx

from lmcourse.site.cards import CARD_MARK

TITLE = "Transformers, by hand"
STATIC = Path(__file__).parent / "static"


def _fraction(sign: str) -> str:
    above, below = normalize("NFKD", sign).split("\N{FRACTION SLASH}")
    return f"\\tfrac{{{above}}}{{{below}}}"


FRACTIONS = {sign: _fraction(sign) for sign in "½⅓⅔¼¾⅕⅙⅛"}
"""Signs that KaTeX's fonts do not have, as fractions."""

SETTINGS: dict[str, Any] = {
    "project": TITLE,
    "html_title": TITLE,
    "language": "en",
    "extensions": ["myst_nb", "sphinx_copybutton", "sphinxcontrib.katex", "lmcourse.site.configuration"],
    "nb_execution_mode": "off",
    "nb_merge_streams": True,
    "nb_ipywidgets_js": {},
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "myst_enable_extensions": ["dollarmath", "amsmath", "attrs_block"],
    "myst_dmath_double_inline": True,
    "myst_update_mathjax": False,
    "html_math_renderer": "katex",
    "katex_css_path": "katex/katex.min.css",
    "katex_options": f"{{macros: {json.dumps(FRACTIONS)}}}",
    "html_theme": "sphinx_book_theme",
    "html_context": {"default_mode": "auto"},
    "html_theme_options": {
        "logo": {"text": TITLE},
        "pygments_light_style": "a11y-high-contrast-light",
        "pygments_dark_style": "a11y-high-contrast-dark",
        "show_toc_level": 2,
        "home_page_in_toc": False,
        "use_download_button": False,
        "use_fullscreen_button": False,
        "use_source_button": False,
        "search_bar_text": "Search the course",
        "navbar_persistent": [],
    },
    "html_static_path": [str(STATIC)],
    "html_css_files": ["site.css"],
    "html_js_files": ["site.js"],
    "html_copy_source": False,
    "html_show_search_summary": False,  # it fetches pages, which a browser forbids for files
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_permalinks_icon": "#",
    "copybutton_exclude": ".linenos, .gp, .go",
}


def setup(app: Sphinx) -> None:
    """What Sphinx calls of an extension."""
    app.connect("doctree-read", wrap_exercises)


def wrap_exercises(app: Sphinx, tree: nodes.document) -> None:
    """Put a frame around each exercise: from the line below its heading to its answer."""
    for raw in list(tree.findall(nodes.raw)):
        section = raw.parent
        if not raw.astext().startswith(CARD_MARK) or not isinstance(section, nodes.section):
            continue
        last = section.index(raw)
        first = next((place + 1 for place, child in enumerate(section) if isinstance(child, nodes.title)), 0)
        section["classes"].append("exercise")
        section[first : last + 1] = [nodes.container("", *section[first : last + 1], classes=["exercise-body"])]
