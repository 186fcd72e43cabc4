"""Notebook 23: references against independent sources, the stored models, and what its figures show."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.chapters.inside import circuits, cut, exercises, figures, measured
from lmcourse.chapters.inside.copier import trained_copier
from lmcourse.chapters.inside.crowded import train_crowded
from lmcourse.chapters.inside.models import SEEDS, story_model
from lmcourse.chapters.inside.words import StoryRows, hero_tokens, paragraphs, split_words, vocabulary
from lmcourse.data.grammar import story_grammar
from lmcourse.data.grammar.stories import HEROES
from lmcourse.exercises.open_task import Unfit
from lmcourse.exercises.registry import find_exercise
from tests.plots.figures import said

TEST = paragraphs(77, 64)
ANSWERS = {exercise.name: exercise for exercise in exercises.EXERCISES}


def test_the_vocabulary_is_that_of_the_stories() -> None:
    drawn = random.Random(0)
    stories = [split_words(story_grammar().generate(drawn)) for _ in range(400)]
    assert sorted({word for story in stories for word in story}) == list(vocabulary())
    assert len(vocabulary()) == 145


def test_paragraphs_name_their_hero_once_and_end_with_so() -> None:
    for row, end, hero in zip(TEST.texts, TEST.ends.tolist(), TEST.hero.tolist(), strict=True):
        words = [vocabulary()[token] for token in row[: end + 1].tolist()]
        assert words[0] == HEROES[hero]
        assert words[-1] == "So"
        assert not {*words[1:]} & {*HEROES}
        assert 12 <= len(words) <= 40
    assert not (TEST.hero == TEST.other).any()
    assert torch.equal(TEST.others[:, 1:], TEST.texts[:, 1:])
    assert torch.equal(TEST.others[:, 0], hero_tokens()[TEST.other])


def test_the_places_of_a_paragraph_cover_it_without_overlap() -> None:
    counts = torch.stack([mask.int() for mask in TEST.places.values()]).sum(dim=0)
    assert torch.equal(counts > 0, torch.arange(counts.shape[1]) <= TEST.ends[:, None])
    assert counts.max() == 1


def test_training_rows_begin_with_a_hero_and_resume() -> None:
    rows, again = StoryRows(3, batch=8), StoryRows(4, batch=8)
    first = next(rows)
    assert torch.isin(first.inputs[:, 0], torch.cat([hero_tokens(), torch.tensor([vocabulary().index("\n")])])).all()
    assert torch.equal(first.inputs[:, 1:], first.targets[:, :-1])
    again.load_state_dict(rows.state_dict())
    assert torch.equal(next(rows).inputs, next(again).inputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_stored_models_name_the_hero(seed: int) -> None:
    run = cut.story_run(story_model(seed), TEST)
    assert run(TEST.texts) > 7.5
    assert run(TEST.others) < -7.5


def test_there_is_no_fifth_stored_model() -> None:
    with pytest.raises(ValueError, match="there are models of the seeds 0 to 3, not of 4"):
        story_model(4)


def test_a_change_that_returns_its_values_changes_nothing() -> None:
    model = story_model(0)
    with cut.edited(model, lambda _, __, values: values.clone(), lambda _, stream: stream.clone()):
        seen = model(TEST.texts)
    assert torch.equal(seen, model(TEST.texts))


def test_the_parts_add_up_to_the_last_stream() -> None:
    model = story_model(1)
    whole = torch.stack([*cut.parts_at_so(model, TEST).values()]).sum(dim=0)
    torch.testing.assert_close(whole, TEST.at_so(cut.streams(model, TEST.texts)[-1]), rtol=1e-4, atol=1e-5)


def test_attributions_are_gradients_of_a_norm_with_a_fixed_root() -> None:
    torch.manual_seed(0)
    parts = {"one": torch.randn(5, 4, requires_grad=True), "two": torch.randn(5, 4, requires_grad=True)}
    weight, rows = torch.rand(4), torch.randn(6, 4)
    right, wrong = torch.randint(6, (2, 5))
    whole = parts["one"] + parts["two"]
    logits = whole / (whole.square().mean(dim=1, keepdim=True) + 1e-5).sqrt().detach() * weight @ rows.T
    at = torch.arange(5)
    (logits[at, right] - logits[at, wrong]).mean().backward()  # type: ignore[no-untyped-call]
    found = ANSWERS["attribution"].reference({k: v.detach() for k, v in parts.items()}, weight, rows, right, wrong)
    for name, part in parts.items():
        assert part.grad is not None
        assert found[name] == pytest.approx((part.grad * part).sum().item(), abs=1e-5)


def test_all_of_the_clean_stream_restores_all() -> None:
    run = cut.story_run(story_model(0), TEST)
    everywhere = torch.ones_like(TEST.so)
    for layer in range(3):
        share = ANSWERS["restore_stream"].reference(run, TEST.others, TEST.texts, layer, everywhere)
        assert share == pytest.approx(1, abs=1e-3)


def test_after_erasing_all_class_means_are_the_same() -> None:
    torch.manual_seed(0)
    x, labels = torch.randn(60, 7).double(), torch.arange(60) % 3
    means = measured.class_means(x, labels)
    after = measured.class_means(ANSWERS["erase"].reference(x, means), labels)
    torch.testing.assert_close(after, means.mean(dim=0).expand(3, 7))


def test_steering_by_one_takes_a_mean_to_the_other_mean() -> None:
    means = torch.randn(4, 3)
    hero, other = torch.tensor([0, 2]), torch.tensor([3, 1])
    pushed = ANSWERS["steer"].reference(means[hero][:, None], means, hero, other, 1.0, torch.ones(2, 1).bool())
    torch.testing.assert_close(pushed[:, 0], means[other])


def test_a_circuit_of_everything_keeps_all_and_of_nothing_little() -> None:
    model = story_model(0)
    means = cut.mean_parts(model)
    heads, units = ([(layer, one) for layer in (0, 1) for one in range(count)] for count in (4, 128))
    assert circuits.fraction_kept(model, heads, units, means) == pytest.approx(1, abs=1e-5)
    assert circuits.fraction_kept(model, [], [], means) < 0.4
    assert circuits.price(heads, units) == 384


def test_odds_have_gradients_and_a_budget() -> None:
    odds = circuits.Odds(story_model(0), TEST, budget=100)
    factor = torch.ones((), requires_grad=True)
    (slope,) = torch.autograd.grad(odds(lambda _, __, values: values * factor, torch.arange(8)).mean(), factor)
    assert slope.abs() > 0.1
    assert len(odds) == len(odds()) == 64
    with pytest.raises(Unfit, match="Your search has read 100 texts"):
        odds()


def test_a_model_changed_by_a_search_is_not_the_one_that_counts() -> None:
    """With the last norm ten times as large, one head would keep more than all of the odds."""

    def cheat(odds: Any, means: Any) -> Any:
        vars(odds)["_Odds__model"].norm.weight.data *= 10
        return [(1, 0)], []

    assert circuits.measure_circuit(cheat, [0])["odds kept"] < 0.9


def test_kept_features_of_the_toy() -> None:
    toy = train_crowded(0.7)
    shares = ANSWERS["features_kept"].reference(toy.weights)
    assert len(shares) == 10
    assert all(0.45 < share < 0.55 for share in shares.values())
    assert said(figures.crowded_features({"70 % zeros": toy.weights})).endswith("70 % zeros: 10 kept")


@pytest.mark.prove
def test_the_copier_copies_until_its_first_copy_is_gone() -> None:
    multi_head = find_exercise("multi_head").course_answer
    copier = trained_copier(multi_head)
    assert copier.loss() < 0.8
    assert copier.loss(corrupted=True) > 3
    own = copier.heads()[0]
    assert copier.loss(0, lambda results: own) == pytest.approx(copier.loss())


def test_the_odds_of_a_paragraph_turn_with_its_hero() -> None:
    assert "after So, with Anna" in said(figures.odds_along(0))
    with pytest.raises(ValueError, match="paragraph must be from 0 to 5, not 6"):
        figures.odds_along(6)


def test_figures_show_what_was_measured() -> None:
    alt = said(figures.written_odds({"seed 0": {"units": 5.0, "head": -1.0}}))
    assert "seed 0: units 5.00 of 4.00" in alt
    rows = [[1.0, 0, 0, 0, 0], [0.9, 0, 0, 0, 0.1], [0, 0, 0, 0, 1.0]]
    assert "after block 0 0.90 at the first word, 0.10 at So" in said(figures.restored_map({"seed 0": rows}))
    alt = said(figures.circuit_parts({"seed 0": ([(1, 0)], [(0, 1), (1, 2), (1, 3)])}))
    assert "layer 1 head 0, 1 and 2 units, price 19" in alt


def test_probe_tasks_have_new_texts_except_where_they_say_so() -> None:
    name, tasks = next(measured.probe_tasks(story_model(0)))
    (x, labels, classes), points, wanted = tasks["hero"]
    assert (name, classes, len(x), len(labels), len(points), len(wanted)) == ("embedded", 8, 800, 800, 400, 400)
    fitted, points, _ = tasks["60 shuffled, on themselves"]
    assert isinstance(points, Tensor)
    assert torch.equal(fitted[0], points)
