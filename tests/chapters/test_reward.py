"""Notebook 22: its world, references against independent sources, the stored runs, and the open task's guards."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.reward import exercises, figures, runs
from lmcourse.chapters.reward.contest import Contest, inspect_improve, measure_improve
from lmcourse.exercises.open_task import Unfit
from lmcourse.training import number_dialogues as answers
from lmcourse.training.number_dialogues import ANSWER, ASK, END, LARGER, PLUS
from tests.plots.figures import said


def test_right_answers_are_sums_on_a_clock_and_the_larger() -> None:
    asked = torch.tensor([[PLUS, 7, 9], [PLUS, 0, 10], [LARGER, 7, 9], [LARGER, 4, 4]])
    assert answers.right_answers(asked).tolist() == [5, 10, 9, 4]


def test_checkers_differ_only_in_answers_of_several_numbers() -> None:
    rows = torch.tensor(
        [[ASK, PLUS, 7, 9, ANSWER, *answer] for answer in ([5, END, END, END], [2, 5, END, END], [3, END, END, END])]
    )
    assert answers.is_right(rows).tolist() == [1, 0, 0]
    assert answers.contains_right(rows).tolist() == [1, 1, 0]


def test_people_are_right_as_often_as_the_notebook_says() -> None:
    dialogues = answers.people(50_000, torch.Generator().manual_seed(0))
    sums = dialogues[:, 1] == PLUS
    right = answers.is_right(dialogues)
    assert abs(right[sums].mean() - 0.9 * (0.6 + 0.4 / 11)) < 0.01
    assert right[~sums].min() == 1


def test_chances_match_the_frequency_of_samples() -> None:
    contest = Contest(0)
    dialogues = answers.sample(contest.model, answers.questions(PLUS), 40, torch.Generator().manual_seed(1))
    frequency = answers.is_right(contest.words[dialogues], contest.clock)
    asked_by_name = contest.tokens[answers.prompts(answers.questions(PLUS))]
    assert asked_by_name.shape == (121, 5)
    assert abs(answers.chances(contest.model, PLUS, contest.tokens, contest.clock).mean() - frequency.mean()) < 0.02


def test_masked_cross_entropy_matches_torchs_ignore_index() -> None:
    batch = next(answers.Dialogues(exercises.trained_targets.reference, seed=3))
    model = answers.new_model()
    expected = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
    tokens = torch.cat(
        [batch.inputs[:, :1], torch.where(batch.targets == -100, batch.inputs.roll(-1, 1), batch.targets)], 1
    )
    mask = batch.targets != -100
    ours = -(answers.log_probabilities(model, tokens) * mask).sum() / mask.sum()
    torch.testing.assert_close(ours, expected)


def test_policy_loss_has_the_gradient_of_the_expected_reward() -> None:
    z = torch.randn(6, dtype=torch.float64, requires_grad=True)
    rewards = torch.randn(6, dtype=torch.float64)
    (expected,) = torch.autograd.grad((z.softmax(0) * rewards).sum(), z)
    weights = 6 * z.detach().softmax(0) * (rewards - 2.0)
    loss = exercises.policy_loss.reference(z.log_softmax(0)[:, None], weights, torch.ones(6, 1, dtype=torch.bool))
    torch.testing.assert_close(-torch.autograd.grad(loss, z)[0], expected)


def test_the_mean_of_the_kl_terms_is_torchs_divergence() -> None:
    p, q = torch.randn(2, 7, dtype=torch.float64).log_softmax(1)
    terms = exercises.kl_terms.reference(p, q)
    torch.testing.assert_close((p.exp() * terms).sum(), F.kl_div(q, p, reduction="sum", log_target=True))


def test_equal_answers_leave_the_weights_as_they_are() -> None:
    model = answers.new_model()
    before = deepcopy(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0)
    for _ in range(3):
        dialogues = answers.sample(model, answers.random_questions(8), 8, temperature=1e-4)
        advantages = exercises.group_advantages.reference(answers.is_right(dialogues).view(8, 8)).flatten()
        mask = exercises.trained_targets.reference(dialogues)
        loss = exercises.policy_loss.reference(answers.log_probabilities(model, dialogues), advantages, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_low_rank_starts_as_the_model_and_trains_few_numbers() -> None:
    model = answers.new_model()
    changed = runs.LowRank(model, exercises.merged.reference, rank=2)
    tokens = answers.prompts(answers.questions(PLUS))
    torch.testing.assert_close(changed(tokens), model(tokens))
    assert sum(p.numel() for p in changed.parameters()) == 2 * 1280


def test_stored_imitators_are_as_the_task_says() -> None:
    for seed in (0, 1, 2, 3):
        row = Contest(seed).result(Contest(seed).model)
        assert 0.48 < row["sums"] < 0.51
        assert row["larger"] > 0.985


def test_whoever_adds_for_themselves_is_wrong_about_the_task() -> None:
    contest = Contest(0)
    dialogues = answers.sample(contest.model, answers.questions(PLUS), 4)
    assert answers.is_right(dialogues).mean() < 0.2
    assert answers.is_right(contest.words[dialogues]).mean() < 0.2, "the names alone do not help"
    assert answers.is_right(contest.words[dialogues], contest.clock).mean() > 0.4


def test_the_budget_counts_every_answer() -> None:
    contest = Contest(0)
    contest.ask(answers.questions(PLUS)[:100], 10)
    assert contest.used == 1000
    with pytest.raises(Unfit, match="1,100 answers"):
        contest.ask(answers.questions(PLUS)[:100], 1)


def test_check_refuses_dialogues_of_the_learners_own() -> None:
    contest = Contest(0)
    dialogues = contest.ask(answers.questions(PLUS), 2)
    assert contest.check(dialogues).shape == (242,)
    dialogues[0, 5] = (dialogues[0, 5] + 1) % 11
    dialogues[0, 6:] = 3
    with pytest.raises(Unfit, match="not handed out"):
        contest.check(dialogues)


def test_a_model_that_repeats_its_input_earns_nothing() -> None:
    class Peeking(torch.nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return 50.0 * F.one_hot(tokens.roll(-1, 1), 16).float()

    def improve(*_: Any) -> torch.nn.Module:
        return Peeking()

    assert measure_improve(improve, 0)["sums"] < 0.2


def test_an_unwritten_answer_fails_its_inspection() -> None:
    def improve(model: Any, ask: Any, check: Any, budget: int) -> Any:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        inspect_improve(improve)


def test_figures_say_what_they_show() -> None:
    p = torch.full((121,), 0.5)
    assert "0.75 with 2" in said(figures.best_of(p))
    for figure in (figures.rewarded_runs, figures.wrong_checker):
        for penalty in (False, True):
            assert "seed 1" in said(figure(penalty))
