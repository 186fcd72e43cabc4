"""The class report has right numbers and a right page, and its files are complete and harmless."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from lmcourse.grading.class_report import sections_of, write_report
from lmcourse.grading.result import Lateness, SubmissionResult
from lmcourse.report import Report
from tests.grading.made_up_class import CHAPTER, MISTAKE, NAMES, report, result, small_class, solved, unanswered

ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>`<b>`{{ 7*7 }}'
DANGEROUS = ("=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "－1", "x;=1", "x; @1", "\0=1")


def page_of(results: list[SubmissionResult], folder: Path) -> BeautifulSoup:
    return BeautifulSoup(write_report(results, folder)[0].read_text(encoding="utf-8"), "html.parser")


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "students.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def folded(page: BeautifulSoup) -> dict[str, list[str]]:
    """Return the text of each box after it is opened."""
    return {str(box.summary.text): [each.text for each in box.select("li")] for box in page.select("details.box")}  # type: ignore[union-attr]


def test_scores_match_graded_submissions() -> None:
    # the scores are 7, 3, 5, 2 and 0 of 7 points, and one notebook is unreadable
    [section] = sections_of(small_class())
    assert (len(section.results), len(section.graded), section.max_score) == (6, 5, 7)
    assert section.quartiles == [2, 3, 5]
    assert sections_of([result("Ada", *map(solved, NAMES))])[0].quartiles == [7, 7, 7]
    assert sections_of([result("Flo", reason="It is empty.")])[0].quartiles == []


def test_page_counts_each_exercise(tmp_path: Path) -> None:
    page = page_of(small_class(), tmp_path)
    table = [[cell.text for cell in row.select("th, td:not(.chart)")] for row in page.select("tr")]
    assert table == [
        ["exercise", "solved", "partly", "wrong", "not answered", "points earned"],
        ["attention_weights", "3", "0", "1", "1", "60 %"],
        ["causal_mask", "2", "1", "1", "1", "50 %"],
        ["causal_attention", "2", "0", "1", "2", "40 %"],
    ]
    bar = page.select("tbody .bar")[1]
    assert [(part["class"], part["style"]) for part in bar.select("i")] == [
        *((["solved"], "flex: 2"), (["partly"], "flex: 1"), (["wrong"], "flex: 1"), (["unanswered"], "flex: 1")),
    ]


def test_page_shows_core_and_further(tmp_path: Path) -> None:
    last = frozenset(NAMES[2:])
    page = page_of([replace(each, further=last) for each in small_class()], tmp_path)
    rows = [row.th.text for row in page.select("tbody tr")]  # type: ignore[union-attr]
    assert rows == ["attention_weights", "causal_mask", "Further", "causal_attention"]
    tiles = {tile.dt.text: tile.dd.text for tile in page.select(".tiles div")}  # type: ignore[union-attr]
    assert tiles.pop("solved the core") == "1", "only Ada solved both"
    assert tiles == {"submissions": "6", "graded": "5", "median of 7 points": "3", "quartiles": "2 – 5"}


def test_known_mistakes_count_with_any_text_after_the_sentence(tmp_path: Path) -> None:
    [section] = sections_of(small_class())
    assert [(one.exercise, one.sentence, one.students) for one in section.mistakes] == [
        ("causal_mask", MISTAKE, ("Bo", "Di"))
    ]
    assert section.unknown == 2
    page = page_of(small_class(), tmp_path)
    [known] = page.select(".mistakes li")
    assert known.b is not None
    assert known.b.text == "2"
    assert known.p is not None
    assert known.p.text == "Bo, Di"
    assert "2 answers fail a check and fit no known mistake." in page.text


def test_marks_by_hand_decide_what_is_solved() -> None:
    higher = replace(result("Ada", report(NAMES[0], 1, MISTAKE)), exercises={NAMES[0]: 2.0})
    lower = replace(result("Bo", solved(NAMES[0])), exercises={NAMES[0]: 1.5})
    [section] = sections_of([higher, lower])
    assert section.exercises[0].counts == {"solved": 1, "partly": 1, "wrong": 0, "unanswered": 0}
    assert [one.students for one in section.mistakes] == [("Ada",)], "the answer shows it, whatever its mark"
    assert section.unknown == 0


def test_the_most_frequent_mistake_comes_first() -> None:
    first = [result(f"a{n}", report(NAMES[0], 0, "Rare.")) for n in range(2)]
    second = [result(f"b{n}", report(NAMES[2], 0, "Frequent.")) for n in range(3)]
    assert [one.sentence for one in sections_of(first + second)[0].mistakes] == ["Frequent.", "Rare."]


def test_late_broken_and_edited_work_is_collapsed(tmp_path: Path) -> None:
    late = result("Ada", solved(NAMES[0]), late=Lateness(7200, 3))
    stopped = result("Bo", solved(NAMES[0]), broke_off="Cell 9 used too much memory.", edited=NAMES[:2])
    failed = result("Cy", failed=True, reason="The grader failed.")
    page = page_of(
        [late, stopped, failed, result("Di", reason="It is empty."), result("Ed", *map(solved, NAMES))], tmp_path
    )
    assert folded(page) == {
        "3 learners: notebook not read, or its run broke off": [
            *("Bo: Cell 9 used too much memory.", "Cy: The grader failed.", "Di: It is empty."),
        ],
        "1 learner: late, or with a note on the time": ["Ada: Late by 2 h, penalty 3 points."],
        "1 learner: check cells edited, and restored for grading": ["Bo: attention_weights, causal_mask"],
    }


def test_names_appear_only_inside_details(tmp_path: Path) -> None:
    page = page_of([*small_class(), result("Gus", late=Lateness(60, 0))], tmp_path)
    names = [tag for tag in page.select("bdi") if tag.text in ("Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus")]
    assert names
    assert all(tag.find_parent("details") for tag in names)
    for box in page.select("details"):
        box.decompose()
    assert not [name for name in ("Bo", "Flo", "Gus") if f"{name}," in page.text or f"{name}:" in page.text]


def test_assignments_come_in_order_and_unknown_work_last(tmp_path: Path) -> None:
    own = result("Ada", Report("mine", 1.0, 2, True, ()), assignment="99-mine")
    unknown = SubmissionResult("Lou", "", 0, 0, reason="No cell belongs to the course.")
    page = page_of([unknown, own, *small_class()], tmp_path)
    assert [heading.text for heading in page.select("h2")] == ["08 · Attention", "99-mine", "Not recognised"]
    links = [str(link["href"]) for link in page.select("nav a")]
    assert [page.find(id=link[1:]) for link in links] == page.select("h2")


CLASSES = {
    "small": small_class(),
    "hostile": [
        result(ATTACK, *(report(name, 0, ATTACK) for name in NAMES), reason=ATTACK, edited=(ATTACK,)),
        result(ATTACK, reason=ATTACK, late=Lateness(5, 0, ATTACK)),
        result("\u202eLou \ud800", Report(ATTACK, 0.0, 2, True, ()), broke_off=ATTACK, assignment=ATTACK),
        result("x" * 5000, solved(NAMES[0]), broke_off="y" * 5000),
    ],
    "nobody answered": [result(f"s{n}", *map(unanswered, NAMES)) for n in range(4)],
    "nothing can be read": [result(f"s{n}", reason="It is empty.") for n in range(3)],
    "nobody": [],
}


@pytest.mark.parametrize("results", CLASSES.values(), ids=CLASSES)
def test_no_page_runs_scripts_or_loads_files(results: list[SubmissionResult], tmp_path: Path) -> None:
    page = page_of(results, tmp_path)
    assert not page.select("script, link, img, iframe, object, embed, form, base, svg, style + style")
    for tag in page.find_all(True):
        assert not [name for name in tag.attrs if name.startswith("on") or name in ("src", "srcset")]
        assert str(tag.get("href", "#")).startswith("#")
    assert "49" not in page.text
    assert not [word for word in page.text.split() if len(word) > 400]
    policy = page.select_one('meta[http-equiv="Content-Security-Policy"]')
    assert policy is not None
    assert str(policy["content"]).startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_table_has_a_row_for_each_submission(tmp_path: Path) -> None:
    other = SubmissionResult("Ada", "01-floating-point", 1.5, 2, {"ulp": 1.5}, late=Lateness(7200, 3))
    write_report([*small_class(), other], tmp_path)
    rows = rows_of(tmp_path)
    assert list(rows[0]) == ["assignment", "student", "score", "max_score", "late", "reason", *NAMES, "ulp"]
    assert list(rows[0].values()) == [
        *("01-floating-point", "Ada", "1.5", "2", "Late by 2 h, penalty 3 points.", "", "", "", "", "1.5")
    ]
    assert list(rows[2].values()) == [CHAPTER, "Bo", "3", "7", "", "", "2", "1", "0", ""]
    assert list(rows[6].values())[1:6] == ["Flo", "0", "7", "", "It cannot be read as a notebook."]


@pytest.mark.parametrize("text", DANGEROUS)
def test_no_cell_of_the_table_is_a_formula(text: str, tmp_path: Path) -> None:
    odd = Report(text, 1.0, 2, True, ())
    write_report([result(text, odd, assignment=text, reason=text, late=Lateness(0, 0, text))], tmp_path)
    data = (tmp_path / "students.csv").read_text(encoding="utf-8")
    for delimiter in ",;":  # separators in spreadsheets of different countries
        cells = [cell for row in csv.reader(io.StringIO(data, newline=""), delimiter=delimiter) for cell in row]
        assert cells
        assert not [cell for cell in cells if cell.lstrip(' \t\r\n"').startswith(tuple("=+-@＝＋－＠"))]
