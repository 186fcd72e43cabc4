"""Link citations and the titles of reading lists to their papers, and names in the package to their source.

`lmcourse/site/papers.tsv` has a row for each paper: as it is cited ("Hoffmann 2022"), the notebooks in which this
citation means it (all if none is named), its place (an arXiv identifier, a DOI, or an address), its authors, its title.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

READING = "## Further reading"

_TITLE = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")
_NAME = re.compile(r"(?<!\[)`(lmcourse[./][\w./]*)`")
_YEAR = re.compile(r"(?:19|20)\d\d\b")
_TEXTLESS = r"(?:a|button|code|h\d|math|pre|script|summary)"
_KEPT = re.compile(rf"(<{_TEXTLESS}\b.*?</{_TEXTLESS}>|<[^>]*>)", re.DOTALL)
"""HTML that stays as it is: tags, and elements whose text gets no links."""


@dataclass(frozen=True)
class Paper:
    """A row of `lmcourse/site/papers.tsv`."""

    cited: str
    notebooks: str
    place: str
    authors: str
    title: str

    @property
    def address(self) -> str:
        """The address of the paper."""
        if self.place.startswith("https://"):
            return self.place
        return f"https://{'doi.org' if self.place.startswith('10.') else 'arxiv.org/abs'}/{self.place}"

    @property
    def described(self) -> str:
        """Its title and, in a second line, its authors and year."""
        return f"{self.title}\n{self.authors}, {self.cited.rpartition(' ')[2]}"


@cache
def all_papers() -> tuple[Paper, ...]:
    """Return the papers of the course."""
    with Path(__file__).with_name("papers.tsv").open(encoding="utf-8", newline="") as rows:
        return tuple(Paper(**row) for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def _citation() -> re.Pattern[str]:
    """Return a pattern of all citations of known papers, in text or HTML: the first author, the others, the year."""
    names = sorted({paper.cited.rpartition(" ")[0] for paper in all_papers()}, key=len, reverse=True)
    first = "|".join(re.escape(name).replace("'", "['’]").replace(r"\ ", r"\s+") for name in names)
    name = r"\w[\w'’-]*"
    others = rf"(?:,\s+{name})*(?:,?\s+(?:&amp;|&|and)\s+{name}|\s+et\s+al\.)?"
    return re.compile(rf"(?<![\w-])({first}){others}(?:['’]s)?,?\s+\(?((?:19|20)\d\d)\b")


def find_papers(text: str, notebook: str) -> Iterator[tuple[re.Match[str], Paper]]:
    """Yield the citations in a text, or in HTML without tags, and the papers they mean in a notebook, such as "09"."""
    for citation in _citation().finditer(text) if _YEAR.search(text) else ():
        cited = " ".join([*citation[1].replace("’", "'").split(), citation[2]])
        found = [paper for paper in all_papers() if paper.cited == cited and notebook in (paper.notebooks or notebook)]
        if found:
            yield citation, max(found, key=lambda paper: paper.notebooks)


def link_citations(html: str, notebook: str) -> str:
    """Return a page's HTML with a link to its paper for each citation outside links, code, headings and scripts.

    A citation stays as it is if the title after it is a link, as in a reading list.
    """
    parts = _KEPT.split(html)  # texts and, at odd places, what stays
    for place in range(0, len(parts), 2):
        title_follows = "".join(parts[place + 1 : place + 2]).startswith("<a ")
        for citation, paper in reversed([*find_papers(parts[place], notebook)]):
            if title_follows and re.fullmatch(r"\)?,\s", parts[place][citation.end() :]):
                continue
            said = escape(paper.described, quote=True).replace("\n", "&#10;")
            link = f'<a class="cite" href="{escape(paper.address, quote=True)}" title="{said}">{citation[0]}</a>'
            parts[place] = parts[place][: citation.start()] + link + parts[place][citation.end() :]
    return "".join(parts)


def link_papers(text: str) -> str:
    """Return a cell's text with links for all titles in its reading list whose papers are known.

    A title there may be the beginning of the paper's own. If several papers begin so, the one whose author stands
    before the title is meant.
    """
    before, heading, reading = text.partition(READING)

    def linked(title: re.Match[str]) -> str:
        begins = re.compile(rf"{re.escape(' '.join(title[1].split()))}(?!\w)", re.IGNORECASE)
        found = [paper for paper in all_papers() if begins.match(paper.title)]
        cited = reading[: title.start()].rpartition(";")[2].rpartition("- ")[2]
        paper = max(found, key=lambda paper: paper.cited.rpartition(" ")[0] in cited, default=None)
        return f"[{title[0]}](<{paper.address}>)" if paper else title[0]

    return before + heading + _TITLE.sub(linked, reading)


def link_sources(text: str, repository: str) -> str:
    """Return a text with names of the package, such as `lmcourse/nn/` or `lmcourse.nn.attend`, linked to their source.

    The text does not change if there is no repository, or for a name that is not a file, a folder or defined in a
    module.
    """

    def linked(name: re.Match[str]) -> str:
        place = _source_of(name[1])
        return f"[{name[0]}]({repository}/blob/main/{place})" if repository and place else name[0]

    return _NAME.sub(linked, text)


def _source_of(name: str) -> str:
    """Return the file or folder of a name of the package, from the course's folder; "" if there is none."""
    place = name.rstrip("/") if "/" in name else name.replace(".", "/")
    candidates = (place, f"{place}.py", f"{place.rpartition('/')[0]}.py")
    return next((one for one in candidates if (ROOT / one).exists()), "")
