"""Build the site: read the notebooks, draw the frames that are missing, let Sphinx make the pages."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.errors import CourseError

CACHE = Path(".cache") / "site"
"""In the course's folder: frames, Sphinx's source and what it has read."""

MARK = ".lmcourse-site"
"""A file in a folder that was made by this command, and may be replaced by it."""

MISSING = "The site needs Sphinx and its theme. Install them: python -m pip install 'lmcourse[site]'"


@dataclass(frozen=True)
class BuiltSite:
    """What was built: the folder, and how many chapters, figures that move, and pictures of them it has."""

    folder: Path
    chapters: int
    figures: int
    frames: int

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def build_site(root: Path, out: Path, chapters: Sequence[Chapter], cache: Path | None = None) -> BuiltSite:
    """Build the site of some chapters into a folder, which is replaced as a whole.

    Args:
        root: the course's folder.
        out: the site's.
        chapters: what it has, in this order.
        cache: what is kept between two builds; `.cache/site` of the course by default.

    Raises:
        CourseError: a package is missing, a notebook is not built, `out` holds something else, or Sphinx warns.
    """
    try:
        import myst_nb  # noqa: F401
        import sphinx_book_theme  # noqa: F401
        import sphinx_copybutton  # noqa: F401
        import sphinxcontrib.katex  # noqa: F401
    except ImportError as error:
        raise CourseError(MISSING) from error
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(f"{out} holds something that is no site of the course: name another folder with --out.")
    from lmcourse.site.frames import draw_frames
    from lmcourse.site.front import front_page
    from lmcourse.site.pages import Page

    cache = cache or root / CACHE
    pictures = cache / "frames"
    pictures.mkdir(parents=True, exist_ok=True)
    pages = [Page(chapter, _built(chapter, root), pictures) for chapter in chapters]
    drawn = draw_frames({frame: None for page in pages for frame in page.frames}, pictures)
    ids = frozenset(chapter.id for chapter in chapters)
    texts = {f"{page.chapter.id}.ipynb": page.for_sphinx(drawn, ids) for page in pages}
    texts["index.md"] = front_page(pages, drawn)
    html = cache / "html"
    _write_changed(cache / "source", texts)
    # All is written anew: Sphinx refuses to copy over what was made lighter, and leaves pages of chapters that went.
    shutil.rmtree(html, ignore_errors=True)
    _run_sphinx(cache / "source", html, cache / "doctrees")
    scripts = [explorable.script(drawn) for page in pages for explorable in page.explorables.values()]
    _publish(html, pictures, {f"{script.name}.js": script.text for script in scripts}, out)
    return BuiltSite(out, len(pages), sum(len(page.explorables) for page in pages), len(drawn))


def _built(chapter: Chapter, root: Path) -> ChapterFiles:
    files = ChapterFiles.of(chapter, root)
    for file in (files.solution, files.release):
        if not file.is_file():
            raise CourseError(f"{file} is not there: build it first, lmcourse build {chapter.number}")
    return files


def _write_changed(source: Path, texts: dict[str, str]) -> None:
    """Write what has changed and remove what is no more: Sphinx reads again what is newer than its pages."""
    source.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = source / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _run_sphinx(source: Path, html: Path, doctrees: Path) -> None:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    from lmcourse.site.configuration import SETTINGS
    from lmcourse.site.lighter import make_lighter

    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        # In one process: two take as long, as each hands over all that it has read.
        app = Sphinx(source, None, html, doctrees, "html", SETTINGS, status=None, warning=warnings)
        app.build(force_all=True)  # each page shows the titles of all: write all, read what has changed
    said = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()).strip()
    if app.statuscode or said:
        first = said.partition("\n")[0] or "no page was made"
        raise CourseError(f"Sphinx warns, {len(said.splitlines())} lines in all: {first}")
    make_lighter(html)


def _publish(html: Path, pictures: Path, scripts: dict[str, str], out: Path) -> None:
    """Put the pages, the scripts of figures and the pictures that they name into a new folder; move it to its place."""
    from lmcourse.site.html import FRAMES

    new = out.with_name(f".{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(html, new, ignore=shutil.ignore_patterns(".buildinfo*", "objects.inv", "_sources"))
    (new / FRAMES).mkdir()
    for name, text in scripts.items():
        (new / FRAMES / name).write_text(text, encoding="utf-8")
    texts = "".join([path.read_text(encoding="utf-8") for path in new.glob("*.html")] + [*scripts.values()])
    for name in sorted(set(re.findall(r"\b[0-9a-f]{20}\.webp\b", texts))):
        shutil.copyfile(pictures / name, new / FRAMES / name)
    (new / MARK).touch()
    (new / ".nojekyll").touch()  # GitHub Pages would leave out folders that begin with an underscore
    shutil.rmtree(out, ignore_errors=True)
    new.replace(out)
