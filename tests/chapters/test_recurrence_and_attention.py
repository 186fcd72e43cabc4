"""Notebook 06: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.recurrence_and_attention import exercises
from lmcourse.chapters.recurrence_and_attention.exercises import attend_source
from lmcourse.chapters.recurrence_and_attention.invented import (
    Task,
    agreement,
    different_symbols,
    inspect_task,
    judge,
    lesson,
    measure_task,
)
from lmcourse.chapters.recurrence_and_attention.remembering import (
    REMEMBERED,
    lstm_gradients,
    random_network,
    remember,
)
from lmcourse.chapters.recurrence_and_attention.translator import Translator, batched, reversals, train, weights
from lmcourse.exercises.open_task import Unfit


def test_the_slope_through_time_matches_torchs() -> None:
    for case in exercises.through_time.cases:
        w, inputs, h = case.args
        weight = torch.tensor(float(w), dtype=torch.float64, requires_grad=True)
        for x in inputs:
            h = torch.tanh(weight * h + x)
        (slope,) = torch.autograd.grad(h + 0 * weight, weight)
        assert exercises.through_time.reference(*case.args) == pytest.approx(slope.item(), abs=1e-12)


def test_gradients_at_each_lag_match_a_real_network() -> None:
    t, d = 5, 3
    W_h, v, inputs = (torch.randn(*shape, dtype=torch.float64) for shape in ((d, d), (d,), (t, d)))
    states, h = [], torch.zeros(d, dtype=torch.float64, requires_grad=True)
    for x in inputs:
        h = torch.tanh(W_h @ h + x)
        states.append(h)
    gradients = torch.autograd.grad(states[-1] @ v, states)
    expected = torch.stack([gradient.norm() for gradient in reversed(gradients)])
    found = exercises.gradient_at_lag.reference(W_h, torch.stack(states).detach(), v)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("keep", "share", "span"), [(0.9, 0.5, 7), (0.9, 0.1, 22), (0.5, 0.5, 2), (0.3, 0.5, 1), (1.0, 0.5, None)]
)
def test_the_span_of_a_cell_that_decays_follows_from_a_logarithm(keep: float, share: float, span: int | None) -> None:
    state, inputs, v = torch.zeros(3), torch.randn(40, 3), torch.tensor([1.0, 2.0, 2.0])
    assert exercises.memory_span.reference(lambda s, x: keep * s + x, state, inputs, v, share) == span


def test_the_span_of_a_tanh_network_agrees_with_its_gradients_at_each_lag() -> None:
    torch.manual_seed(0)
    W, U = torch.randn(4, 4).double() / 1.5, torch.randn(4, 2).double() / 2
    state, inputs, v = torch.zeros(4).double(), torch.randn(30, 2).double(), torch.randn(4).double()
    states = [state]
    for x in inputs:
        states.append(torch.tanh(W @ states[-1] + U @ x))
    lengths = exercises.gradient_at_lag.reference(W, torch.stack(states), v)
    below = (lengths < v.norm() / 2).nonzero()
    span = exercises.memory_span.reference(lambda s, x: torch.tanh(W @ s + U @ x), state, inputs, v)
    assert span == int(below[0]) > 1


def test_waiting_matches_the_closed_forms() -> None:
    for n, layers in ((1, 1), (9, 2), (11, 4)):
        assert exercises.waiting.reference("rnn", n, layers) == (n + layers - 1, n - 1)
        assert exercises.waiting.reference("attention", n, layers) == (layers, int(n > 1))
        for window in range(2, 6):
            moves = -(-(n - 1) // (window - 1))
            if moves <= layers:
                assert exercises.waiting.reference("window", n, layers, window) == (layers, moves)
            else:
                with pytest.raises(ValueError, match="do not reach"):
                    exercises.waiting.reference("window", n, layers, window)


def test_the_temperature_gives_the_best_match_its_weight() -> None:
    scores = torch.tensor([2.0, 0.0, -2.0], dtype=torch.float64)
    assert exercises.temperature_for.reference(scores[:2], 0.75) == pytest.approx(2 / math.log(3))
    for share in (0.34, 0.6, 0.99):
        temperature = exercises.temperature_for.reference(scores, share)
        assert (scores / temperature).softmax(dim=0)[0].item() == pytest.approx(share)


def test_attention_to_the_source_is_torchs_without_a_scale() -> None:
    s, h = torch.randn(3, 4), torch.randn(5, 4)
    real = torch.tensor([True, True, True, False, False])
    read = F.scaled_dot_product_attention(s[None], h[None], h[None], attn_mask=real, scale=1.0)[0]
    torch.testing.assert_close(exercises.attend_source.reference(s, h, real), torch.cat([read, s], dim=-1))


def test_a_random_network_has_its_spectral_radius() -> None:
    for radius in (0.5, 1.5):
        W, inputs, v, first = random_network(radius, 3)
        assert torch.linalg.eigvals(W).abs().max().item() == pytest.approx(radius)
        assert (inputs.shape, v.shape) == ((200, 64), (64,))
        assert first.norm() < 0.2


def test_lstms_fade_with_another_seed_until_the_gate_opens() -> None:
    left = {bias: lstm_gradients(bias, seed=3)[50].item() for bias in (None, 1.0, 3.0)}
    assert lstm_gradients(None, seed=3)[0].item() == pytest.approx(1.0)
    assert left[None] < 1e-9 < left[1.0] < 1e-2 < left[3.0]


SCORES_HIDDEN, *_, BY_NUMPY = (variant.answer for variant in attend_source.variants)
COURSES_TRAINS = "training runs with the course's `attend_source`: this one has no gradient, or cannot run on a batch\n"


def without_gradient(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    """Attention that runs on a batch, and does not train what comes before it."""
    return SCORES_HIDDEN(s, h.detach(), real)


@pytest.mark.parametrize(
    ("answer", "line"), [(SCORES_HIDDEN, ""), (without_gradient, COURSES_TRAINS), (BY_NUMPY, COURSES_TRAINS)]
)
def test_attention_can_be_trained_in_batches(answer: Any, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    s, h = torch.randn(4, 3, 8), torch.randn(4, 5, 8, requires_grad=True)
    expected = torch.stack([attend_source.reference(*pair, torch.ones(5).bool()) for pair in zip(s, h, strict=True)])
    found = batched(answer)(s, h)
    torch.testing.assert_close(found, expected)
    assert torch.autograd.grad(found.sum(), h)[0].any()
    assert capsys.readouterr().out == line
    torch.testing.assert_close(weights(s, h) @ h, expected[..., :8])


def test_a_tanh_network_remembers_over_ten_words_as_stored() -> None:
    assert round(remember("tanh", 10, 0), 2) == REMEMBERED[10]["tanh"][0]


@pytest.mark.prove
@pytest.mark.parametrize(("name", "between"), [("LSTM as PyTorch makes it", 20), ("LSTM, forget bias 3", 40)])
def test_lstms_remember_as_stored(name: str, between: int) -> None:
    assert abs(remember(name, between, 0) - REMEMBERED[between][name][0]) < 0.06


def sort(source: Tensor) -> tuple[Tensor, Tensor]:
    target, places = source.sort(dim=1)
    return target, places


def test_rows_have_different_symbols_and_a_task_is_called_once_per_batch() -> None:
    called: list[tuple[int, ...]] = []

    def counted(source: Tensor) -> tuple[Tensor, Tensor]:
        called.append(tuple(source.shape))
        source.zero_()  # a copy
        return source + 1, source

    given = lesson(counted)
    assert len(called) == 401
    assert called[-1] == (512, 9)
    assert {length for _, length in called} == set(range(2, 11))
    rows = given.source.sort(dim=1).values
    assert (rows.diff(dim=1) > 0).all()
    assert rows.min() == 1
    assert rows.max() == 10


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (lambda source: source, "Return two tensors"),
        (lambda source: (source, source[:, :1]), "`places` is not a tensor of whole numbers"),
        (lambda source: (source - 1, source - 1), "`target` has numbers outside 1 to 10"),
        (lambda source: (source, torch.arange(source.shape[1]).expand_as(source) + 1), "`places` has numbers outside"),
        (lambda source: (source.roll(1, 0), source.argsort(1)), "rows beside it"),
        (lambda source: (torch.randint_like(source, 1, 11), source.argsort(1)), "Called again"),
        (lambda source: (source[:, torch.arange(9)], source.argsort(1)), "Rows of 9 symbols work, and rows of 2 raise"),
    ],
)
def test_a_task_without_a_rule_is_unfit(task: Task, told: str) -> None:
    with pytest.raises(Unfit, match=told):
        inspect_task(task)
    inspect_task(sort)


def test_a_fixed_picture_has_nothing_by_content() -> None:
    model = Translator()
    source = different_symbols(64, 9, torch.Generator().manual_seed(0))
    commonest = model.looks(source, source).argmax(dim=-1).mode(dim=0).values
    assert agreement(model, source, source) == agreement(model, source, source, commonest) > 0


def test_the_best_translator_of_each_kind_counts() -> None:
    class Sorter(Translator):
        def write(self, source: Tensor, teacher: Tensor | None = None) -> Tensor:
            return source.sort(dim=1).values

    measured = judge(lesson(sort), [Translator(), Sorter()], [Sorter(), Translator()])
    assert (measured["perfect"], measured["one state"]) == (1, 1)


@pytest.mark.prove
def test_one_state_sorts() -> None:
    assert measure_task(sort, [4])["one state"] > 0.95


def test_training_lowers_the_loss_of_reversing() -> None:
    def loss(model: Translator) -> float:
        source, target = next(iter(reversals(9)))
        return F.cross_entropy(model(source, F.pad(target, (1, -1))).flatten(0, 1), target.flatten()).item()

    trained = train(0, reversals(0, 40), lambda target, start: F.pad(target, (1, -1), value=start))
    assert loss(trained) < loss(Translator()) - 0.2
