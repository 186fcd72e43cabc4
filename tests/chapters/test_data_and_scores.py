"""Notebook 21: references against independent sources, the pool, stored numbers, and what its figures show."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
import torch

from lmcourse import plots
from lmcourse.chapters.data_and_scores import figures
from lmcourse.chapters.data_and_scores.exercises import EXERCISES
from lmcourse.chapters.data_and_scores.filters import bigram_score
from lmcourse.chapters.data_and_scores.leaks import leaked_losses, within
from lmcourse.chapters.data_and_scores.letters import fit, letters, new_model
from lmcourse.chapters.data_and_scores.near import (
    COEFFICIENTS,
    jaccard,
    pairs_in_bands,
    shingles,
    signature,
    similar_pairs,
    true_pairs,
)
from lmcourse.chapters.data_and_scores.pool import HELD_OUT, RARE, kinds, made_of, paragraphs, place, pool, trusted
from lmcourse.chapters.data_and_scores.questions import (
    CONTEXT,
    SCORED,
    draw_questions,
    is_right,
    log_probabilities,
    stored_rights,
    stored_scores,
)
from lmcourse.chapters.data_and_scores.stored import LEAKED
from lmcourse.chapters.data_and_scores.task import BUDGET, without_near_copies
from lmcourse.data.grammar.stories import TOPICS
from lmcourse.data.loader import Loader
from lmcourse.exercises.registry import find_exercise
from lmcourse.training.run_settings import Settings
from tests.plots.figures import check_figure

REFERENCE = {exercise.name: exercise.reference for exercise in EXERCISES}


def test_the_paired_error_counts_questions_on_which_models_disagree() -> None:
    a, b = stored_rights(10, 48), stored_rights(10, 8)
    for_a, for_b, n = sum(x > y for x, y in zip(a, b)), sum(x < y for x, y in zip(a, b)), len(a)  # noqa: B905
    difference, paired, _ = REFERENCE["paired_difference"](a, b)
    assert difference == pytest.approx((for_a - for_b) / n)
    assert paired**2 * (n - 1) == pytest.approx((for_a + for_b) / n - difference**2)


def test_pass_at_k_matches_the_formula_of_its_paper() -> None:
    for n, c, k in ((8, 2, 4), (200, 3, 100), (20, 15, 10)):
        paper = 1 - math.prod(1 - k / m for m in range(n - c + 1, n + 1)) if n - c >= k else 1.0
        assert REFERENCE["pass_at_k"](n, c, k) == pytest.approx(paper)


def test_the_fast_versions_match_the_references() -> None:
    source = random.Random(1)
    texts = [shingles(document) for document in source.sample(pool(), 60)]
    signatures = [signature(text, COEFFICIENTS[:8]) for text in texts]
    assert signatures == [REFERENCE["minhash"](text, COEFFICIENTS[:8]) for text in texts]
    for bands in (1, 2, 4, 8):
        assert pairs_in_bands(signatures, bands) == REFERENCE["candidates"](signatures, bands)
    assert pairs_in_bands([], 2) == []


def test_signatures_agree_as_often_as_shingles_are_shared() -> None:
    errors = []
    for one, other in similar_pairs(100):
        same = [a == b for a, b in zip(signature(one, COEFFICIENTS), signature(other, COEFFICIENTS), strict=True)]
        errors.append(sum(same) / 64 - jaccard(one, other))
    assert abs(sum(errors)) / 100 < 0.02
    assert math.sqrt(sum(error**2 for error in errors) / 100) < 0.07


def test_true_pairs_are_those_above_one_half() -> None:
    documents = pool()[:80]
    sets = [shingles(document) for document in documents]
    expected = {(i, j) for j in range(80) for i in range(j) if jaccard(sets[i], sets[j]) > 0.5}
    assert true_pairs(documents) == expected
    assert expected


def test_no_document_that_stays_is_a_near_copy_of_another() -> None:
    kept = without_near_copies(pool()[:300])
    sets = [set(shingles(document)) for document in kept]
    assert all(sets[i] != sets[j] for j in range(len(sets)) for i in range(j))
    assert kept == [document for document in dict.fromkeys(pool()[:300]) if document in set(kept)]


@pytest.mark.parametrize("rare", [False, True])
def test_the_pool_has_its_kinds_in_ascii(rare: bool) -> None:
    documents = pool(0, rare)
    assert len(documents) == 1770
    assert all(map(str.isascii, documents))
    count = Counter(kinds(0, rare)[document] for document in documents)
    assert count["help"] == 250
    assert count["false sums"] == 80
    assert count["true, sea"] > 8 * count["true, wood"]
    copied = {place(document) for document, kind in kinds(0, rare).items() if kind == "copies"}
    assert copied == (set(RARE) if rare else {"sea"})


def test_no_pool_has_a_paragraph_of_the_test_but_the_shortest() -> None:
    test = {p for p in paragraphs(HELD_OUT, 260) if len(p) > 90}
    assert not any(test & set(pool(number, rare)) for number in (0, 1) for rare in (False, True))


def test_trusted_paragraphs_name_each_place_five_times() -> None:
    assert Counter(map(place, trusted())) == dict.fromkeys(TOPICS, 5)


def test_bigrams_stop_help_texts_and_let_shuffled_words_pass() -> None:
    passed: dict[str, list[bool]] = {kind: [] for kind in set(kinds().values())}
    for document, kind in list(kinds().items())[:400]:
        passed[kind].append(bigram_score(document, trusted()) > -2.6)
    assert not any(passed["help"])
    assert sum(passed["shuffled"]) > 0.9 * len(passed["shuffled"]) > 0


def test_documents_are_repeated_until_the_budget_is_spent() -> None:
    assert within(["aaa", "bb"], 9) == ["aaa", "bb", "aaa"]
    assert sum(made_of(pool()[:20]).values()) == sum(map(len, pool()[:20]))


def test_letters_are_trained_as_notebook_13_trains() -> None:
    models = [new_model(0), new_model(0)]
    for model, trainer in zip(models, (fit, find_exercise("fit").course_answer), strict=True):
        loader = Loader(letters(pool()[:50]), 4, 64, seed=0, prefetch=0)
        trainer(model, loader, Settings(4, rate=0.01, warmup=2, decay=2))
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_stored_scores_are_the_shipped_models() -> None:
    questions = draw_questions(SCORED[0, 4], 4, 0)
    torch.testing.assert_close(log_probabilities(questions), stored_scores(0, 4)[0], rtol=2e-3, atol=2e-3)
    some = draw_questions(300, 8, 10)
    assert sum(a == b for a, b in zip(is_right(some, 8).tolist(), stored_rights(10, 8), strict=True)) >= 298


def test_the_first_answer_continues_the_context() -> None:
    questions = draw_questions(5, 6, 3)
    again = draw_questions(5, 6, 3)
    assert questions.contexts.shape == (5, CONTEXT)
    assert (questions.lengths[:, 0] == 6).all()
    assert torch.equal(questions.answers, again.answers)
    inside = torch.arange(6) < questions.lengths[:, :, None]
    assert not questions.answers[~inside].any()


def test_stored_losses_of_a_leak_can_be_trained_again() -> None:
    assert leaked_losses("B", 0) == pytest.approx(LEAKED["B", 0], abs=0.02)
    assert BUDGET == 60_000


def test_figures_say_what_they_show() -> None:
    assert "one half at J = 0.45" in plots.alt_text(check_figure(figures.s_curve(16, 4)))
    results = {"8": [(0.05, 0.02, 0.03)], "32": [(0.01, 0.01, 0.03)]}
    alt = plots.alt_text(check_figure(figures.intervals(results)))
    assert "8: 0 of 1 clear of 0 as if independent, 1 paired; 32: 0 of 1" in alt
    assert "shingles is 1.00" in plots.alt_text(check_figure(figures.document(3)))
