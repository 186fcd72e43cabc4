"""The page of a class report, read as a browser reads it."""

from __future__ import annotations

import html.parser
from datetime import date

import pytest
from bs4 import BeautifulSoup, Tag

from lmcourse.exercises.registry import find_exercise
from lmcourse.grading.class_report.page import page
from lmcourse.grading.class_report.section import sections_of
from lmcourse.grading.examination_result import Evidence
from lmcourse.grading.result import SubmissionResult
from tests.grading.made_up_class import (
    ALIKE,
    CHAPTER,
    NAMES,
    UPSIDE_DOWN,
    long_answer,
    report,
    result,
    small_class,
    solved,
    unanswered,
)

DAY = date(2026, 3, 9)
ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def text_of(results: list[SubmissionResult]) -> str:
    return page(sections_of(results), DAY)


def soup_of(results: list[SubmissionResult]) -> BeautifulSoup:
    return BeautifulSoup(text_of(results), "html.parser")


def part(soup: BeautifulSoup, heading: str) -> list[Tag]:
    """What stands between this heading and the next."""
    [found] = [tag for tag in soup.find_all(["h3", "h4"]) if tag.text == heading]
    tags = []
    for sibling in found.find_next_siblings():
        if sibling.name in ("h2", "h3", "h4"):
            break
        tags.append(sibling)
    return tags


def rows(soup: BeautifulSoup, heading: str) -> list[tuple[str, str, str]]:
    """The rows of a chart: label, what its bar says to a screen reader, what stands at the end."""
    found = [row for tag in part(soup, heading) for row in tag.select("li.row, summary.row")]
    return [(row.select_one(".label").text, row.svg["aria-label"], row.select_one(".end").text) for row in found]  # type: ignore[union-attr, index, misc]


class Balance(html.parser.HTMLParser):
    """Every element ends where it should."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        assert tag in ("rect", "line")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def awkward_class() -> list[SubmissionResult]:
    """Names and texts that somebody chose to do harm, wherever one can stand."""
    attack = (Evidence("protocol", ATTACK, "seen"), Evidence("text", "`<b>`" + ATTACK, "read"))
    wrong = [report(name, 0, ["other shapes"], ATTACK) for name in NAMES]
    cell = {NAMES[0]: f"{long_answer()}# {ATTACK} \u202e"}
    same = [result(name, *wrong, evidence=attack, answers=cell, reason=ATTACK) for name in (ATTACK, f"b{ATTACK}")]
    return [
        *same,
        result(ATTACK, reason=ATTACK, answers={NAMES[0]: ATTACK}),
        SubmissionResult("Lou", ATTACK, 2, 2, reports={ATTACK: solved(NAMES[0])}),
    ]


CLASSES = {
    "small": small_class(),
    "awkward": awkward_class(),
    "one": [result("Ada", *map(solved, NAMES))],
    "perfect": [result(f"s{n}", *map(solved, NAMES)) for n in range(9)],
    "nobody answered": [result(f"s{n}", *map(unanswered, NAMES)) for n in range(4)],
    "none can be read": [result(f"s{n}", reason="It is empty.") for n in range(3)],
    "not recognised": [SubmissionResult("Lou", "", 0, 0, reason="No cell belongs to the course.")],
    "nobody": [],
}


@pytest.mark.parametrize("results", CLASSES.values(), ids=CLASSES)
def test_every_page_is_whole_and_harmless(results: list[SubmissionResult]) -> None:
    text = text_of(results)
    balance = Balance()
    balance.feed(text)
    balance.close()
    assert balance.open == []
    soup = BeautifulSoup(text, "html.parser")
    assert not soup.select("script, link, img, iframe, object, embed, form, base, style + style")
    for tag in soup.find_all(True):
        assert not [name for name in tag.attrs if name.startswith("on") or name in ("src", "xlink:href", "srcset")]
        assert str(tag.get("href", "#")).startswith("#")
    assert "url(" not in text
    assert "@import" not in text
    policy = soup.select_one('meta[http-equiv="Content-Security-Policy"]')
    assert policy is not None
    assert str(policy["content"]).startswith("default-src 'none'")
    assert "9 March 2026" in soup.text


def test_exercises_of_the_small_class() -> None:
    soup = soup_of(small_class())
    assert rows(soup, "Exercises") == [
        ("1 · attention_weights", "3 solved, 0 partly, 1 wrong, 1 not answered", "60 %"),
        ("2 · causal_mask", "2 solved, 1 partly, 1 wrong, 1 not answered", "50 %"),
        ("3 · causal_attention", "2 solved, 0 partly, 1 wrong, 2 not answered", "40 %"),
    ]
    notes = [note.text for tag in part(soup, "Exercises") for note in tag.select("li .note")]
    assert notes[1] == "Hidden checks that fail most, of 4 answers: other lengths (2), one query (1)"
    table = [[cell.text for cell in row.find_all(["th", "td"])] for row in soup.select("tbody tr")]
    assert table[1] == ["causal_mask", "2", "1", "1", "1", "50 %"]


def test_the_parts_of_a_bar_are_as_wide_as_their_numbers() -> None:
    bar = soup_of(small_class()).select("svg.bar")[1]
    drawn = [(rect["class"], rect["x"], rect["width"]) for rect in bar.find_all("rect")]
    assert drawn == [
        (["solved"], "0%", "40.0%"),
        (["partly"], "40.0%", "20.0%"),
        (["wrong"], "60.0%", "20.0%"),
        (["unanswered"], "80.0%", "20.0%"),
    ]


def test_scores_of_the_small_class() -> None:
    soup = soup_of(small_class())
    tiles = {tile.dt.text: tile.dd.text for tile in soup.select(".tiles div")}  # type: ignore[union-attr]
    assert tiles == {
        "submissions": "6",
        "graded": "5",
        "could not be graded": "1",
        "median of 7 points": "3",
        "middle half": "2 – 5",
        "have all points": "1",
    }
    spoken = str(soup.select_one(".histogram")["aria-label"])  # type: ignore[index]
    assert spoken.startswith("Histogram of scores. 0 to 0.5 points: 1. 2 to 2.5 points: 1. 3 to 3.5 points: 1. 5 to")
    assert "Flo: It cannot be read as a notebook." in " ".join(soup.select_one("details.box").text.split())  # type: ignore[union-attr]


def test_mistakes_of_the_small_class() -> None:
    soup = soup_of(small_class())
    [known] = [tag for tag in part(soup, "Misconceptions") if tag.name == "ol"]
    [one] = known.select("li")
    assert UPSIDE_DOWN in one.text
    assert one.svg["aria-label"] == "2 give this answer"  # type: ignore[index]
    assert [name.text for name in one.select("bdi")] == ["Bo", "Di"]
    assert rows(soup, "Wrong, but no known misconception") == [
        ("1 · attention_weights", "0 known, 1 not known", "1 of 1"),
        ("2 · causal_mask", "2 known, 0 not known", "0 of 2"),
        ("3 · causal_attention", "0 known, 1 not known", "1 of 1"),
    ]


def test_stops_of_the_small_class() -> None:
    soup = soup_of(small_class())
    stops = rows(soup, "Where learners stop")
    assert [(label, end) for label, _, end in stops] == [
        ("1 · attention_weights", "1 of 4"),
        ("2 · causal_mask", "2 of 3"),
        ("3 · causal_attention", "0 of 1"),
    ]
    assert stops[1][1] == "1 stopped here, 1 stopped here and answered nothing after it"
    advice = soup.select(".advice > li")
    assert next(one.b.text for one in advice if one.b) == "2 of 3 who got here stop at causal_mask."
    assert UPSIDE_DOWN in advice[0].text


def test_names_are_folded_away() -> None:
    names = {f"learner {number}" for number in range(6)}
    class_ = [result(name, *one.reports.values()) for name, one in zip(sorted(names), small_class(), strict=True)]
    seen = Evidence("file", "Cell 2 opened a file", "seen")
    same = [result(f"twin {n}", *map(solved, NAMES), answers=ALIKE, evidence=(seen,)) for n in range(2)]
    soup = soup_of([*class_, *same])
    assert {"learner 0", "learner 5", "twin 0"} & {tag.text for tag in soup.select("bdi")} == {"learner 5", "twin 0"}
    for fold in soup.select("details"):
        summary = fold.summary.extract()  # type: ignore[union-attr]
        fold.replace_with(summary)
    assert "learner" in soup.text
    assert not any(name in soup.text for name in [*names, "twin"])


def test_evidence_says_how_it_is_known_and_that_it_decides_nothing() -> None:
    found = (
        *(Evidence("network", f"Cell {n} asked for a socket", "told") for n in range(5)),
        Evidence("text", "Cell 3 mentions `gc`", "read"),
    )
    same = [result(name, solved(NAMES[0]), answers=ALIKE) for name in ("Bo", "Cy")]
    soup = soup_of([result("Ada", solved(NAMES[0]), evidence=found), *same])
    text = " ".join(" ".join(tag.text for tag in part(soup, "For a closer look")).split())
    assert text.startswith("None of this decides guilt, and every mark is what it would be without it.")
    [box] = [tag for tag in part(soup, "For a closer look") if tag.name == "details"]
    assert "1 submission with evidence, 1 group of alike answers" in box.text
    groups = [" ".join(group.text.split()) for group in box.select("dl > div")]
    assert groups == [
        "The network Cell 0 asked for a socket told by a hook in their process "
        "Cell 1 asked for a socket told by a hook in their process and 3 more in evidence.csv",
        "Words in its cells Cell 3 mentions gc read in the text; may never have run",
    ]
    assert f"1 · {NAMES[0]}, 100 %: Bo, Cy" in " ".join(box.text.split())
    cells = [
        (cell.figcaption.text, cell.pre.text) for cell in box.select(".pair figure") if cell.figcaption and cell.pre
    ]
    assert cells == [("Bo", long_answer()), ("Cy", long_answer())]


@pytest.mark.parametrize(
    "name", ["محمد العربي", "🦊👩‍👩‍👧 fox", "a <b> & c", "\u202egnirts", "Zoë\u0301", "'); DROP TABLE students;--"]
)
def test_a_name_is_shown_as_it_is(name: str) -> None:
    found = {tag.text for tag in soup_of([result(name, report(NAMES[0], 0))]).select("bdi")}
    assert name in found


def test_a_name_that_no_page_can_hold_is_mended() -> None:
    class_ = [result(name, report(NAMES[0], 0)) for name in ("n" * 300, "a\nb\x00c", "half \udc80", "")]
    text = text_of(class_)
    text.encode("utf-8")
    names = [tag.text for tag in BeautifulSoup(text, "html.parser").select("details.fold li bdi")][1:]
    assert sorted(names) == ["(no name)", "a b c", "half ?", "n" * 47 + "…"]


def test_five_hundred_long_names_fit_on_a_page() -> None:
    seen = tuple(Evidence("file", f"{n} " + "y" * 190, "seen") for n in range(50))
    class_ = []
    for n in range(500):
        wrong = [report(name, 0, ["other shapes"], f"{n} " + "x" * 1990) for name in NAMES]
        class_.append(result(f"{n} " + "n" * 290, *wrong, evidence=seen, answers={NAMES[0]: long_answer(n % 50)}))
    assert len(text_of(class_)) < 1_000_000


def test_known_mistakes_beyond_ten_are_folded() -> None:
    sentences = [wrong.sentence for wrong in find_exercise(NAMES[2]).misconceptions][:12]
    attempts = [report(NAMES[2], 0, (), sentence) for sentence in sentences]
    class_ = [result(f"s{n}", attempt) for n, attempt in enumerate([*attempts, attempts[0]])]
    soup = soup_of(class_)
    summaries = [" ".join(tag.text.split()) for tag in soup.select("summary")]
    assert "2 more, each by 1 learner" in summaries
    counts = [tag.svg["aria-label"] for tag in soup.select("summary.mistake") if tag.svg]
    assert counts == ["2 give this answer", *["1 give this answer"] * 11]


def test_two_assignments_have_a_section_each_and_links_to_them() -> None:
    soup = soup_of(
        [*small_class(), SubmissionResult("Ada", "01-floating-point", 2, 2, reports={"ulp": solved(NAMES[0])})]
    )
    assert [tag.text for tag in soup.select("h2")] == ["01 · Floating point", "08 · Attention"]
    assert [str(tag["href"]) for tag in soup.select("nav a")] == [f"#{tag['id']}" for tag in soup.select("section")]
    assert not soup_of(small_class()).select("nav")
    assert CHAPTER not in soup.text
