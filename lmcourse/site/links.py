"""The links of a chapter: its notebook, its source, its exercises' cells, and how to cite it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import Chapter

GITHUB, COLAB = "https://github.com/", "https://colab.research.google.com/github/"

ABOUT_MARK = '<div class="open about">'
"""The beginning of the HTML at the end of a chapter, which is used to find it in a page's tree."""


@dataclass(frozen=True)
class Links:
    """Where a chapter can be opened, read and changed.

    Attributes:
        notebook: the released notebook, both beside the page and in the repository.
        source: the text it is built from, in the repository.
        repository: the address of the course's repository, or "" if there is none. Then only the download is left.
        licence: the name of the course's licence.
        bibtex: an entry for a list of references, or "".
    """

    notebook: str
    source: str
    repository: str = ""
    licence: str = ""
    bibtex: str = ""

    @property
    def colab(self) -> str:
        """The address of the notebook in Colab, or "" if it is not on GitHub."""
        place = self.in_repository(self.notebook)
        return place.replace(GITHUB, COLAB) if place.startswith(GITHUB) else ""

    def in_repository(self, file: str, view: str = "blob") -> str:
        """Return the address of a file, or "" if there is no repository."""
        return f"{self.repository}/{view}/main/{file}" if self.repository else ""

    def top(self) -> str:
        """Return the links under a chapter's title."""
        links = [
            f'<a href="{escape(self.notebook, quote=True)}" download>Download the notebook</a>',
            _link("Open it in Colab", self.colab),
            _link("See it in the repository", self.in_repository(self.notebook)),
        ]
        return f'<p class="open">{" · ".join(filter(None, links))}</p>'

    def cell(self, name: str, words: str) -> str:
        """Return a link to the cell of an exercise: in Colab, or else to the notebook with the cell."""
        address, download = (f"{self.colab}#scrollTo={name}", "") if self.colab else (self.notebook, " download")
        return f'<a class="open" href="{escape(address, quote=True)}"{download}>{escape(words)} in the notebook</a>'

    def about(self) -> str:
        """Return the links at the end of a chapter: its source, how to change and to cite it, and the licence."""
        licence = f"{self.licence} licence" if self.licence else ""
        links = [
            _link("Source of this page", self.in_repository(self.source)),
            _link("Edit it", self.in_repository(self.source, "edit")),
            _link(licence, self.in_repository("LICENSE")) or licence,
        ]
        entry = f'<div class="highlight"><pre>{escape(self.bibtex)}</pre></div>'  # with a button that copies it
        cite = f"<details><summary>Cite this chapter</summary>{entry}</details>"
        line = f"<p>{' · '.join(filter(None, links))}</p>" if any(links) else ""
        return f"{ABOUT_MARK}{line}{cite if self.bibtex else ''}</div>"


def _link(words: str, address: str) -> str:
    return f'<a href="{escape(address, quote=True)}">{escape(words)}</a>' if words and address else ""


def chapter_links(
    chapter: Chapter, files: ChapterFiles, root: Path, repository: str = "", published: str = ""
) -> Links:
    """Return the links of a chapter. What the course's CITATION.cff says is left out if there is no such file.

    Args:
        chapter: a chapter of the course.
        files: its files.
        root: the course's folder.
        repository: the address of the course's repository, if there is one.
        published: the address of the site, if it is known.
    """
    import yaml

    notebook, source = (file.relative_to(root).as_posix() for file in (files.release, files.source))
    links = Links(notebook, source, repository)
    try:
        said = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return links
    address = f"{published}/{chapter.id}.html" if published else links.in_repository(notebook)
    return replace(links, licence=said["license"], bibtex=bibtex(said, chapter, address))


def bibtex(said: Mapping[str, Any], chapter: Chapter, address: str) -> str:
    """Return a BibTeX entry for a chapter from what a CITATION.cff says; without an address, it has none."""
    fields = {
        "author": " and ".join(map(_author, said["authors"])),
        "title": f"{{{said['title']}}}",
        "note": f"Chapter {chapter.number}, {chapter.title}. Version {said['version']}",
        "year": str(said.get("date-released", ""))[:4],
        "url": address,
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{lmcourse-{chapter.number},\n{lines}}}"


def _author(said: Mapping[str, str]) -> str:
    """Return an author as BibTeX reads it: a group in braces, a person with the family name first."""
    return f"{{{said['name']}}}" if "name" in said else f"{said['family-names']}, {said.get('given-names', '')}"
