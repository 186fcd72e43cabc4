"""What the report on a class counts: by hand for a small class, and again in another way for random ones."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.grading.class_report.dropoff import what_to_explain
from lmcourse.grading.class_report.flags import KIND_LABELS, SOURCE_LABELS, flagged_submissions
from lmcourse.grading.class_report.section import section_of, sections_of
from lmcourse.grading.class_report.statistics import MAX_BINS, questions_of, summarize_scores
from lmcourse.grading.examination_result import Evidence, EvidenceKind, EvidenceSource
from lmcourse.grading.result import SubmissionResult
from tests.grading.made_up_class import (
    CHAPTER,
    NAMES,
    NO_RETURN,
    UPSIDE_DOWN,
    report,
    result,
    small_class,
    solved,
    unanswered,
)


def test_scores_of_the_small_class() -> None:
    scores = summarize_scores(small_class())  # 7, 3, 5, 2, 0 of 7 points; one cannot be read
    assert (scores.submissions, scores.graded, scores.full, scores.max_score) == (6, 5, 1, 7)
    assert [one.student for one in scores.unreadable] == ["Flo"]
    assert scores.quartiles == (2, 3, 5)
    assert {bin_.low: bin_.count for bin_ in scores.histogram if bin_.count} == {0: 1, 2: 1, 3: 1, 5: 1, 6.5: 1}


def test_exercises_of_the_small_class() -> None:
    section = section_of(CHAPTER, small_class())
    assert [exercise.question.name for exercise in section.exercises] == list(NAMES)
    counts = [list(exercise.counts.values()) for exercise in section.exercises]  # solved, partly, wrong, unanswered
    assert counts == [[3, 0, 1, 1], [2, 1, 1, 1], [2, 0, 1, 2]]
    assert [exercise.answered for exercise in section.exercises] == [4, 4, 3]
    assert [exercise.share for exercise in section.exercises] == pytest.approx([3 / 5, 2.5 / 5, 2 / 5])
    failing = [[(one.category, one.answers) for one in exercise.failed_categories] for exercise in section.exercises]
    assert failing == [[("other shapes", 1)], [("other lengths", 2), ("one query", 1)], [("other shapes", 1)]]


def test_mistakes_of_the_small_class() -> None:
    found = section_of(CHAPTER, small_class()).mistakes
    assert [(one.question.name, one.sentence, one.known, one.students) for one in found] == [
        ("causal_mask", UPSIDE_DOWN, True, ("Bo", "Di")),
        ("attention_weights", "", False, ("Cy",)),
        ("causal_attention", NO_RETURN, False, ("Di",)),
    ]


def test_stops_of_the_small_class() -> None:
    section = section_of(CHAPTER, small_class())
    assert (section.began, section.finished) == (4, 1)
    assert [(dropoff.reached, dropoff.stopped, dropoff.gave_up, dropoff.untried) for dropoff in section.dropoffs] == [
        (4, ("Cy",), (), 0),
        (3, ("Bo", "Di"), ("Bo",), 0),
        (1, (), (), 0),
    ]


def test_advice_for_the_small_class() -> None:
    first, second = what_to_explain(section_of(CHAPTER, small_class()).dropoffs)
    assert first.place == "2 of 3 who got here stop at `causal_mask`."
    assert first.answers == f"2 of their 2 answers make this mistake: “{UPSIDE_DOWN}”"
    assert first.hint == find_exercise("causal_mask").hints[0]
    assert second.place == "1 of 4 who got here stops at `attention_weights`."
    assert second.answers == "The course knows none of the mistakes in their answer."


def test_nobody_gives_up_at_the_last_exercise() -> None:
    *first, last = NAMES
    [*_, dropoff] = section_of(CHAPTER, [result("Ada", *map(solved, first), unanswered(last))]).dropoffs
    assert (dropoff.reached, dropoff.stopped, dropoff.gave_up, dropoff.untried) == (1, ("Ada",), (), 1)
    assert what_to_explain([dropoff])[0].place == "The only one who got here stops at `causal_attention`."
    assert what_to_explain([dropoff])[0].answers == "Nobody tried it."


def test_an_exercise_without_a_report_is_not_answered() -> None:
    section = section_of(CHAPTER, [result("Ada", *map(solved, NAMES)), result("Bo", solved(NAMES[0]))])
    assert [exercise.counts["unanswered"] for exercise in section.exercises] == [0, 1, 1]
    assert section.dropoffs[1].gave_up == ("Bo",)


def test_exercises_stand_in_the_order_of_the_notebook() -> None:
    asked = questions_of(CHAPTER, [result("Ada", *map(solved, reversed(NAMES)))])
    assert [question.name for question in asked] == list(NAMES)
    every = exercises_of(find_chapter(CHAPTER))
    asked = questions_of(CHAPTER, [result("Ada", *(solved(one.name) for one in every))])
    assert [(one.name, one.points, one.hint) for one in asked] == [(e.name, e.points, e.hints[0]) for e in every]


def test_an_assignment_that_the_course_does_not_know_keeps_the_order_of_its_results() -> None:
    reports = {"mine": solved(NAMES[2]), "yours": solved(NAMES[0])}
    [section] = sections_of([SubmissionResult("Ada", "99-ours", 5, 5, reports=reports)])
    assert section.title == "99-ours"
    assert [question.name for question in section.questions] == ["mine", "yours"]


def test_each_assignment_has_a_section_and_what_was_not_recognised_comes_last() -> None:
    lost = SubmissionResult("Lou", "", 0, 0, reason="No cell of this notebook belongs to the course.")
    other = SubmissionResult("Ada", "01-floating-point", 2, 2, reports={"ulp": solved(NAMES[0])})
    sections = sections_of([lost, *small_class(), other])
    assert [section.title for section in sections] == ["01 · Floating point", "08 · Attention", "Not recognised"]
    assert [section.scores.submissions for section in sections] == [1, 6, 1]
    assert sections_of([]) == []


def test_evidence_is_grouped_by_kind_and_the_most_certain_comes_first() -> None:
    read = Evidence("text", "Cell 1 mentions gc", "read")
    told = [Evidence("network", f"a socket, {n}", "told") for n in range(2)]
    seen = Evidence("flood", "It wrote 4 MB", "seen")
    class_ = [result("Ada", evidence=(read,)), result("Bo"), result("Cy", evidence=(told[0], seen, told[1]))]
    found = flagged_submissions(class_)
    assert [(one.student, one.found) for one in found] == [
        ("Cy", {"network": tuple(told), "flood": (seen,)}),
        ("Ada", {"text": (read,)}),
    ]


def test_every_kind_and_source_of_evidence_has_words() -> None:
    assert (set(KIND_LABELS), set(SOURCE_LABELS)) == (set(get_args(EvidenceKind)), set(get_args(EvidenceSource)))


@settings(deadline=None)
@given(st.lists(st.integers(0, 54), min_size=1, max_size=30), st.integers(54, 400))
def test_quartiles_and_columns(halves: list[int], highest: int) -> None:
    most = highest / 2
    reports = {"a": solved(NAMES[0])}
    class_ = [SubmissionResult("x", CHAPTER, half / 2, most, reports=reports) for half in halves]
    scores = summarize_scores(class_)
    assert scores.quartiles == pytest.approx(np.percentile([half / 2 for half in halves], [25, 50, 75]))
    bins = scores.histogram
    assert len(bins) <= MAX_BINS
    assert (bins[0].low, bins[-1].high) == (0, most)
    assert all(left.high == right.low for left, right in pairwise(bins))
    edges = [bin_.low for bin_ in bins] + [bins[-1].high]
    # NumPy, too, closes the last bin on both sides.
    assert [bin_.count for bin_ in bins] == np.histogram([half / 2 for half in halves], edges)[0].tolist()


STATES = ("solved", "half", "known", "other", "silent", "unanswered")
MOST = (2, 2, 3)


def made(student: int, states: tuple[str, ...]) -> SubmissionResult:
    reports = []
    for name, state in zip(NAMES, states, strict=True):
        known = find_exercise(name).misconceptions[student % 3].sentence
        says = {"half": known, "known": known, "other": f"Strange, says {student % 2}."}.get(state, "")
        full = {"solved": solved, "unanswered": unanswered}.get(state)
        reports.append(full(name) if full else report(name, 1 if state == "half" else 0, (), says))
    return result(f"s{student}", *reports)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(STATES)] * 3), min_size=1, max_size=12))
def test_a_random_class_counted_in_another_way(class_: list[tuple[str, ...]]) -> None:
    section = section_of(CHAPTER, [made(student, states) for student, states in enumerate(class_)])
    order = sorted(range(len(class_)), key=lambda student: f"s{student}")
    for place in range(3):
        column = [states[place] for states in class_]
        exercise = section.exercises[place]
        wrong = sum(column.count(state) for state in ("known", "other", "silent"))
        expected = [column.count("solved"), column.count("half"), wrong, column.count("unanswered")]
        assert list(exercise.counts.values()) == expected
        assert exercise.share == pytest.approx((expected[0] + expected[1] / MOST[place]) / len(class_))
        for known, states in ((True, ("half", "known")), (False, ("other", "silent"))):
            found = [one for one in section.mistakes if one.question.number == place + 1 and one.known == known]
            told = sorted(student for one in found for student in one.students)
            assert told == sorted(f"s{student}" for student, state in enumerate(column) if state in states)
        dropoff = section.dropoffs[place]
        before = [
            s for s in order if all(x == "solved" for x in class_[s][:place]) and set(class_[s]) != {"unanswered"}
        ]
        stopped = [s for s in before if class_[s][place] != "solved"]
        rest = [s for s in stopped if place < 2 and set(class_[s][place + 1 :]) == {"unanswered"}]
        assert dropoff.reached == len(before)
        assert dropoff.stopped == tuple(f"s{s}" for s in stopped)
        assert dropoff.gave_up == tuple(f"s{s}" for s in rest)
    sizes = [len(one.students) for one in section.mistakes]
    assert sizes == sorted(sizes, reverse=True)
    assert section.finished == class_.count(("solved",) * 3)
    assert section.began == len(class_) - class_.count(("unanswered",) * 3)
