"""Build the site: read the notebooks, draw missing frames, and make the pages with Sphinx.

`SETTINGS` replaces a conf.py, and this module is one of the Sphinx extensions in it.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.site import reference
from lmcourse.site.blocks import CARD_MARK, FRAMES, STILL_MARK
from lmcourse.site.code_lines import hang_lines
from lmcourse.site.formulas import KATEX_FRACTIONS, NODE, connect
from lmcourse.site.further import fold_further
from lmcourse.site.links import chapter_links
from lmcourse.site.papers import link_citations
from lmcourse.site.search_index import write_index
from lmcourse.site.weight import lighten

if TYPE_CHECKING:  # Sphinx is an optional package
    from docutils.nodes import document
    from sphinx.application import Sphinx

TITLE = "Transformers, by hand"
SEARCH = "Search the course"

HERE = Path(__file__).parent

CACHE = Path(".cache") / "site" / "frames"
"""The folder in the course's folder with drawn frames, which later builds use again."""

MARK = ".lmcourse-site"
"""A file that marks folders which this command has made and so may replace."""

SEARCH_PAGE = f"""---
orphan: true
---

# Search

```{{raw}} html
<form class="search" role="search"><input type="search" name="q" aria-label="{SEARCH}"> <button>Search</button></form>
<noscript><p>The search is the one thing here that needs JavaScript.</p></noscript>
<p class="search-count" role="status"></p><ol class="found"></ol>
<script src="_static/sections.js"></script><script src="_static/search.js"></script>
```
"""

MISSING = "The site needs Sphinx and its theme. Install them: python -m pip install 'lmcourse[site]'"

AUTODOC = ("sphinx.ext.autodoc", "sphinx.ext.napoleon")

SETTINGS: dict[str, Any] = {
    "project": TITLE,
    "author": "the lmcourse authors",
    "html_title": TITLE,
    "language": "en",
    "extensions": ["myst_nb", "sphinx_copybutton", "sphinxcontrib.katex", *AUTODOC, "lmcourse.site.builder"],
    "nb_execution_mode": "off",
    "suppress_warnings": ["mystnb.unknown_mime_type"],  # for files that learners hand in, which pages do not show
    "nb_merge_streams": True,
    "nb_ipywidgets_js": {},
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "myst_enable_extensions": ["dollarmath", "amsmath", "attrs_block"],
    "myst_dmath_double_inline": True,
    "myst_update_mathjax": False,
    "html_math_renderer": "katex",
    "katex_css_path": "katex/katex.min.css",
    "katex_options": f"{{macros: {json.dumps(KATEX_FRACTIONS)}}}",
    "katex_prerender": NODE is not None,
    "html_theme": "sphinx_book_theme",
    "templates_path": [str(HERE / "templates")],
    "html_theme_options": {
        "logo": {"text": TITLE},
        "pygments_light_style": "a11y-high-contrast-light",
        "pygments_dark_style": "a11y-high-contrast-dark",
        "show_toc_level": 2,
        "home_page_in_toc": False,
        "use_download_button": False,
        "use_fullscreen_button": False,
        "use_source_button": False,
        "search_bar_text": SEARCH,
        "navbar_persistent": [],
    },
    # The files include an empty scripts/fontawesome.js, which replaces 1.6 MB of icons that are also in the theme's
    # font.
    "html_static_path": [str(HERE / "static")],
    "html_favicon": str(HERE / "static" / "favicon.svg"),
    "html_css_files": ["site.css"],
    "html_js_files": ["figures.js", "site.js", "reading.js"],
    "html_copy_source": False,
    "html_use_index": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_permalinks_icon": "#",
    "copybutton_exclude": ".linenos, .gp, .go",
    **reference.SETTINGS,
}


@dataclass(frozen=True)
class BuiltSite:
    """The folder of a site, and the numbers of its chapters, of figures with controls, and of their frames."""

    folder: Path
    chapters: int
    figures: int
    frames: int

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def build_site(root: Path, out: Path, chapters: Sequence[Chapter]) -> BuiltSite:
    """Build the site of these chapters, and replace the whole folder `out` by it.

    Raises CourseError if a package is missing, a notebook is not built, `out` contains other files, or Sphinx prints
    warnings.

    Args:
        root: the course's folder.
        out: the folder of the site.
        chapters: in the order of the site.
    """
    if not all(map(find_spec, ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx_copybutton", "sphinxcontrib.katex"))):
        raise CourseError(MISSING)
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(
            f"{out} contains files that are not from a site of the course: choose another folder with --out."
        )
    from lmcourse.site.frames import draw_frames
    from lmcourse.site.front import LEAD, front_figure, front_page, teaser
    from lmcourse.site.pages import Page

    frames = root / CACHE
    frames.mkdir(parents=True, exist_ok=True)
    pages = [Page(chapter, _built(chapter, root), frames) for chapter in chapters]
    titles = {frame: f"{page.chapter.number} · {page.chapter.title}" for page in pages for frame in page.frames}
    drawn = draw_frames(titles, frames)
    print("Sphinx makes the pages.", flush=True)
    ids = frozenset(chapter.id for chapter in chapters)
    repository, published = find_url(root, "Repository"), find_url(root, "Documentation")
    front = front_figure(pages)
    preview = drawn[next(iter(front.frames.values()))].file if front else ""
    context = {
        "default_mode": "auto",
        "descriptions": {"index": LEAD, **{page.chapter.id: teaser(page) for page in pages}},
        "preview": f"{published}/{FRAMES}/{preview}".lstrip("/"),
    }
    links = [chapter_links(page.chapter, page.files, root, repository, published) for page in pages]
    texts = {f"{p.chapter.id}.ipynb": p.for_sphinx(drawn, ids, its) for p, its in zip(pages, links, strict=True)}
    with tempfile.TemporaryDirectory(prefix="lmcourse-site-") as folder:
        source = Path(folder, "source")
        source.mkdir()
        texts |= {"index.md": front_page(pages, drawn, repository), "search.md": SEARCH_PAGE}
        texts["reference.md"] = reference.reference_page()
        for name, text in texts.items():
            (source / name).write_text(text, encoding="utf-8")
        _run_sphinx(source, Path(folder, "html"), Path(folder, "doctrees"), context)
        for page, its in zip(pages, links, strict=True):
            beside = Path(folder, "html", its.notebook)
            beside.parent.mkdir(parents=True)
            shutil.copyfile(page.files.release, beside)
        _publish(Path(folder, "html"), frames, out)
    return BuiltSite(out, len(pages), sum(len(page.explorables) for page in pages), len(drawn))


def find_url(root: Path, name: str) -> str:
    """Return an entry of `project.urls` in a course's pyproject.toml, or "" if there is none."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["urls"][name]).removesuffix("/")
    except (OSError, KeyError):
        return ""


def _built(chapter: Chapter, root: Path) -> ChapterFiles:
    files = ChapterFiles.of(chapter, root)
    for file in (files.solution, files.release):
        if not file.is_file():
            raise CourseError(f"{file} is missing: build it first, lmcourse build {chapter.number}")
    return files


def _run_sphinx(source: Path, html: Path, doctrees: Path, context: dict[str, Any]) -> None:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        # One process: two would take as long, because each would have to send all that it has read.
        settings = SETTINGS | {"html_context": context}
        app = Sphinx(source, None, html, doctrees, "html", settings, status=None, warning=warnings)
        app.builder.search = False  # type: ignore[attr-defined]
        app.build()
    said = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()).strip()
    if app.statuscode or said:
        first = said.partition("\n")[0] or "no page was made"
        raise CourseError(f"Sphinx printed {len(said.splitlines())} lines of warnings, the first: {first}")


def _publish(html: Path, frames: Path, out: Path) -> None:
    """Copy the pages and the frames that they use into a new folder, and move it to its place."""
    new = out.with_name(f".{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(html, new, ignore=shutil.ignore_patterns(".buildinfo*", "objects.inv", "_sources", "*.map"))
    (new / FRAMES).mkdir()
    names = set()
    for path in new.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        names.update(re.findall(r"\b[0-9a-f]{20}\.webp\b", text))
        # A script sets the theme again. Without scripts, "auto" would mix light and dark.
        path.write_text(text.replace('data-theme="auto"', 'data-theme="light"', 1), encoding="utf-8")
    for name in names:
        shutil.copyfile(frames / name, new / FRAMES / name)
    lighten(new)
    (new / MARK).touch()
    (new / ".nojekyll").touch()  # otherwise GitHub Pages omits folders whose names begin with an underscore
    shutil.rmtree(out, ignore_errors=True)
    new.replace(out)


def setup(app: Sphinx) -> None:
    """Connect the extension; Sphinx calls this."""
    app.connect("doctree-read", keep_punctuation)
    app.connect("doctree-read", find_formulas)
    if NODE:
        connect(app)
    app.connect("doctree-read", wrap_exercises)
    app.connect("doctree-read", fold_further)
    app.connect("html-page-context", hang_lines)
    app.connect("html-page-context", cite)
    app.connect("build-finished", write_index)


def cite(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: document | None) -> None:
    """Link the citations on a page to their papers."""
    if "body" in context:
        context["body"] = link_citations(context["body"], name.partition("-")[0])


def wrap_exercises(app: Sphinx, tree: document) -> None:
    """Put a border around each exercise, from the line after its heading to its answer."""
    from docutils import nodes

    for raw in list(tree.findall(nodes.raw)):
        section = raw.parent
        if not raw.astext().startswith(CARD_MARK) or not isinstance(section, nodes.section):
            continue
        last = section.index(raw)
        first = next((place + 1 for place, child in enumerate(section) if isinstance(child, nodes.title)), 0)
        section["classes"].append("exercise")
        section[first : last + 1] = [nodes.container("", *section[first : last + 1], classes=["exercise-body"])]


def keep_punctuation(app: Sphinx, tree: document) -> None:
    """Move the marks and brackets beside a formula into the formula, so that no line begins or ends with one."""
    from docutils import nodes

    for formula in list(tree.findall(nodes.math)):
        if isinstance(formula.parent, nodes.title):
            continue  # Sphinx has copied it already
        before, after = formula.previous_sibling(), formula.next_node(descend=False, siblings=True)
        latex = formula.astext()
        if isinstance(before, nodes.Text) and (mark := OPENING.search(before)):
            latex = rf"\mathopen{{\text{{{mark[0]}}}}}{latex}"
            before.parent.replace(before, nodes.Text(before[: mark.start()]))
        if isinstance(after, nodes.Text) and (mark := CLOSING.match(after)):
            latex = rf"{latex}\text{{{mark[0]}}}"
            after.parent.replace(after, nodes.Text(after[mark.end() :]))
        if latex != formula.astext():
            formula.replace_self(nodes.math("", latex))


OPENING, CLOSING = re.compile(r"[(\[“]+$"), re.compile(r"[.,;:?!)\]”]+")

DOLLARS = re.compile(r"\$(\S(?:[^$<>\n]*\S)?)\$(?!\d|[^<]*>)")
"""A formula in HTML, but not in a tag's attribute."""


def find_formulas(app: Sphinx, tree: document) -> None:
    """Make formulas of the dollars in HTML that Markdown does not read: folded blocks, and captions of pictures."""
    from docutils import nodes

    for raw in list(tree.findall(nodes.raw)):
        parts = DOLLARS.split(raw.astext()) if raw.astext().startswith(("<details>", STILL_MARK)) else []
        new: list[nodes.Node] = [nodes.raw("", part, format="html") for part in parts]
        new[1::2] = [nodes.math("", unescape(latex)) for latex in parts[1::2]]
        if len(parts) > 1:
            raw.parent.replace(raw, new)
