"""The references of notebook 06 against real networks, differences, enumeration and closed forms."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import nn

from lmcourse.chapters.recurrence_and_attention import exercises
from lmcourse.exercises import Case
from lmcourse.models.seq2seq import Seq2Seq, Seq2SeqConfig


def test_rows_of_probabilities_are_those_by_hand() -> None:
    h, rows = 0.0, []
    for e in (1.0, -0.5, 1.0):
        h = math.tanh(0.5 * h + e)
        logits = (h + 0.5, -h)
        rows.append([math.exp(logit) / sum(map(math.exp, logits)) for logit in logits])
    found = exercises.rnn_probabilities.reference(*exercises.rnn_probabilities.cases[0].args)
    torch.testing.assert_close(found, torch.tensor(rows))


def test_the_sizes_of_the_specification() -> None:
    assert exercises.rnn_parameters.reference(10_000, 128, 512) == 6_738_704
    assert exercises.rnn_parameters.reference(5, 2, 3) == 51
    notes = next(wrong for wrong in exercises.rnn_parameters.misconceptions if wrong.name == "as in the notes")
    assert notes.answer(10_000, 128, 512) == 5_458_192 == 6_738_704 - 1_280_512


@pytest.mark.parametrize("case", exercises.through_time.cases, ids=lambda case: case.name)
def test_the_slope_through_time_is_that_of_differences(case: Case) -> None:
    w, inputs, h0 = case.args

    def last(weight: float) -> float:
        h = h0
        for x in inputs:
            h = math.tanh(weight * h + x)
        return float(h)

    slope = (last(w + 1e-6) - last(w - 1e-6)) / 2e-6
    assert exercises.through_time.reference(*case.args) == pytest.approx(slope, abs=1e-8)


def test_the_slopes_of_the_specification() -> None:
    slopes = [exercises.through_time.reference(*case.args) for case in exercises.through_time.cases[:4]]
    assert [round(slope, 5) for slope in slopes] == [0.78645, 0.66102, 0.67208, 0.0]


@pytest.mark.parametrize(("t", "d"), [(5, 3), (1, 2), (8, 1)])
def test_gradients_at_each_lag_are_those_of_a_real_network(t: int, d: int) -> None:
    W_h, v, inputs = (torch.randn(*shape, dtype=torch.float64) for shape in ((d, d), (d,), (t, d)))
    states, h = [], torch.zeros(d, dtype=torch.float64, requires_grad=True)
    for x in inputs:
        h = torch.tanh(W_h @ h + x)
        states.append(h)
    gradients = torch.autograd.grad(states[-1] @ v, states)
    expected = torch.stack([gradient.norm() for gradient in reversed(gradients)])
    found = exercises.gradient_at_lag.reference(W_h, torch.stack(states).detach(), v)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


def test_a_step_of_an_lstm_is_that_of_the_courses_own_cell() -> None:
    network = nn.LSTM(3, 2, dtype=torch.float64)
    x = torch.randn(4, 1, 3, dtype=torch.float64)
    h = c = torch.zeros(1, 2, dtype=torch.float64)
    W, U, b, other_b = network.parameters()
    with torch.no_grad():
        expected, _ = network(x)
        for step in range(4):
            h, c = exercises.lstm_step.reference(x[step], h, c, W, U, b + other_b)
            torch.testing.assert_close(h, expected[step], rtol=1e-10, atol=1e-14)


def test_waiting_is_what_the_closed_forms_say() -> None:
    for n, layers in product(range(1, 12), range(1, 5)):
        assert exercises.waiting.reference("rnn", n, layers) == (n + layers - 1, n - 1)
        assert exercises.waiting.reference("attention", n, layers) == (layers, int(n > 1))
        for window in range(2, 6):
            moves = -(-(n - 1) // (window - 1))
            if moves <= layers:
                assert exercises.waiting.reference("window", n, layers, window) == (layers, moves)
            else:
                with pytest.raises(ValueError, match="do not reach"):
                    exercises.waiting.reference("window", n, layers, window)


@pytest.mark.parametrize(("temperature", "answer"), [(1.0, 11.4906), (0.1, 10.0), (1e6, 20.0), (0.0, 10.0)])
def test_the_answers_of_the_specification(temperature: float, answer: float) -> None:
    query, keys, values, _ = exercises.soft_lookup.cases[0].args
    assert exercises.soft_lookup.reference(query, keys, values, temperature).item() == pytest.approx(answer, abs=1e-4)


def test_attention_to_the_source_is_what_the_courses_translator_reads() -> None:
    model = Seq2Seq(Seq2SeqConfig(6, 6, 4, 4))
    model.head = nn.Identity()  # type: ignore[assignment]
    source, target = torch.randint(6, (1, 5)), torch.randint(6, (1, 3))
    real = torch.tensor([[True, True, True, False, False]])
    with torch.no_grad():
        encoded = model.encode(source, real)
        read, _, _ = model.decode(target, encoded)
        s, _ = model.decoder(model.target_embedding(target), encoded.states)
    torch.testing.assert_close(exercises.attend_source.reference(s[0], encoded.hidden[0], real[0]), read[0])


def test_in_every_case_both_runs_make_the_first_error_together() -> None:
    for case in [*exercises.after_the_first_error.cases, *exercises.after_the_first_error.hidden]:
        forced, free, gold = case.args
        for place in range(len(gold)):
            assert forced[place] == free[place], case
            if free[place] != gold[place]:
                break
