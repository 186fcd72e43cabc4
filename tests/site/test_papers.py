"""Test that citations and reading lists lead to their papers."""

from __future__ import annotations

import re

import pytest

from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.site.papers import READING, all_papers, find_papers, link_citations, link_papers
from tests.course.chapters import prose
from tests.site.test_site import text_of

NAME = r"(?:(?:Le|OLMo|Gemma|Qwen|Kimi|Llama|Hugging|Open Compute) )?[A-ZÉÖ][\w'’-]+"
CITED = re.compile(rf"{NAME}(?:, {NAME})*(?:,? (?:&|and) {NAME}| et al\.)?(?:'s)?,? \(?(?:19|20)\d\d\b")
"""Matches what looks like a citation: names, and a year."""

NO_PAPER = re.compile(
    r"(?:May|July|October|November|Since|Until|At|Rights|BERT|GPT|GELU|ReLU|DeepSeek-V3|Scout|Qwen3-235B-A22B)\b"
)
"""Words before other years: a month, the declaration of human rights, a model."""


def text(chapter: Chapter) -> str:
    return " ".join(text_of(chapter).split())


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_every_citation_has_a_paper(chapter: Chapter) -> None:
    known = {citation.end() for citation, _ in find_papers(text(chapter), chapter.number)}
    cited = [found for found in CITED.finditer(text(chapter)) if not NO_PAPER.match(found[0])]
    assert [found[0] for found in cited if found.end() not in known] == []


def test_every_paper_is_cited() -> None:
    cited = {paper for chapter in CHAPTERS for _, paper in find_papers(text(chapter), chapter.number)}
    lists = " ".join(" ".join(prose(chapter).partition(READING)[2].split()) for chapter in CHAPTERS)
    assert [paper.cited for paper in all_papers() if paper not in cited and f"*{paper.title}*" not in lists] == []


def test_papers_are_complete_and_in_order() -> None:
    papers = all_papers()
    assert [paper.cited for paper in papers if not all((paper.place, paper.authors, paper.title))] == []
    assert [paper.place for paper in papers if not re.match(r"\d{4}\.\d{4,5}$|10\.\d+/|https://", paper.place)] == []
    keys = [(paper.cited, paper.notebooks) for paper in papers]
    assert len(set(keys)) == len(keys)
    names = [paper.cited.rpartition(" ")[0].casefold() for paper in papers]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("words", "notebook", "address"),
    [
        ("Hoffmann et al.,\n2022", "20", "2203.15556"),
        ("Chen et al. (2023", "09", "2306.15595"),
        ("Chen et al. (2023", "17", "2302.01318"),
        ("Griewank &amp; Walther, 2008", "03", "10.1137/1.9780898717761"),
        ("D’Angelo, Andriushchenko et al. (2023", "04", "2310.04415"),
        ("Nesterov’s (1983", "04", "mathnet.ru/eng/dan46009"),
        ("Gemma Team, 2025", "08", "2503.19786"),
    ],
)
def test_a_citation_links_to_its_paper(words: str, notebook: str, address: str) -> None:
    html = link_citations(f"<p>({words})</p>", notebook)
    link = re.fullmatch(r'<p>\(<a class="cite" href="(\S+)" title="[^"]+">(.*)</a>\)</p>', html, re.DOTALL)
    assert link is not None
    assert link[1].endswith(address)
    assert link[2] == words


@pytest.mark.parametrize(
    "html",
    [
        "<p>Nobody et al., 2022, and Hoffmann et al., 1922</p>",
        "<pre># Hoffmann et al., 2022</pre>",
        '<img alt="Hoffmann et al., 2022">',
        '<li>Hoffmann et al. (2022), <a href="x"><em>Training compute-optimal large language models</em></a></li>',
    ],
)
def test_other_years_code_and_reading_lists_stay(html: str) -> None:
    assert link_citations(html, "20") == html


def test_only_titles_of_a_reading_list_are_linked() -> None:
    text = f"*Adam* forgets.\n\n{READING}\n\n- Kingma & Ba, 2015, *Adam*; *Layer\n  normalization*; *My notes*."
    assert link_papers(text) == (
        f"*Adam* forgets.\n\n{READING}\n\n- Kingma & Ba, 2015, [*Adam*](<https://arxiv.org/abs/1412.6980>); "
        "[*Layer\n  normalization*](<https://arxiv.org/abs/1607.06450>); *My notes*."
    )


def test_a_short_title_is_that_of_the_author_before_it() -> None:
    listed = "- Kaplan et al. (2020), *Scaling laws*; Tao et al. (2024), *Scaling laws*."
    assert re.findall(r"abs/([\d.]+)", link_papers(f"{READING}\n\n{listed}")) == ["2001.08361", "2407.13623"]
