"""Compare recurrent models with torch.nn.RNN and torch.nn.LSTM, and seq2seq with its formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from lmcourse.models.recurrent import Kind, Recurrent, RecurrentConfig, RecurrentModel
from lmcourse.models.seq2seq import Seq2Seq, Seq2SeqConfig
from tests.models.tiny import randomise, tokens

KINDS = pytest.mark.parametrize("kind", ["rnn", "lstm"])


def torchs(ours: Recurrent, kind: str, d_in: int, d: int, layers: int) -> nn.Module:
    """Return torch's module with our weights."""
    theirs = {"rnn": nn.RNN, "lstm": nn.LSTM}[kind](d_in, d, layers, batch_first=True)
    with torch.no_grad():
        for layer, cell in enumerate(ours.cells):
            for part, name in (("input", "ih"), ("recurrent", "hh")):
                linear: Any = getattr(cell, part)
                getattr(theirs, f"weight_{name}_l{layer}").copy_(linear.weight)
                getattr(theirs, f"bias_{name}_l{layer}").copy_(linear.bias)
    return theirs


@KINDS
@pytest.mark.parametrize("layers", [1, 3])
def test_layers_match_torchs(kind: Kind, layers: int) -> None:
    ours = Recurrent(kind, 5, 7, layers)
    theirs = torchs(ours, kind, 5, 7, layers)
    x = torch.randn(2, 11, 5, requires_grad=True)
    (hidden, ends), (expected, last) = ours(x), theirs(x)
    torch.testing.assert_close(hidden, expected)
    parts = last if kind == "lstm" else (last,)
    torch.testing.assert_close(torch.stack(ends), torch.stack(list(parts), dim=1))
    upstream = torch.randn_like(hidden)
    (got,), (wanted,) = torch.autograd.grad(hidden, x, upstream), torch.autograd.grad(expected, x, upstream)
    torch.testing.assert_close(got, wanted)


@KINDS
def test_continuing_from_a_state_matches_reading_at_once(kind: Kind) -> None:
    model, ids = RecurrentModel(RecurrentConfig(53, 5, 7, 2, kind)), tokens()
    whole, end = model(ids)
    first, states = model(ids[:, :8])
    second, states = model(ids[:, 8:], states)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(states, end)
    assert whole.shape == (2, 21, 53)


@KINDS
def test_a_later_token_changes_no_earlier_logit(kind: Kind) -> None:
    model, ids = RecurrentModel(RecurrentConfig(53, 5, 7, 2, kind)), tokens()
    changed = ids.clone()
    changed[:, 9] = (ids[:, 9] + 1) % 53
    before, after = model(ids)[0], model(changed)[0]
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.equal(before[:, 9], after[:, 9])


@KINDS
def test_padding_does_not_change_the_state(kind: Kind) -> None:
    ours, x = Recurrent(kind, 5, 7, 2), torch.randn(2, 6, 5)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    _, ends = ours(x, token_mask=real)
    _, alone = ours(x[1:, :4])
    torch.testing.assert_close(torch.stack(ends)[:, :, 1:], torch.stack(alone))


def test_an_open_gate_carries_a_gradient_where_an_rnn_loses_it() -> None:
    """The gradient of the last state with respect to the first input, 60 steps back, shows the reason for the LSTM."""
    gradients = {}
    for kind in ("rnn", "lstm"):
        torch.manual_seed(0)
        ours = Recurrent(kind, 4, 16, 1)  # type: ignore[arg-type]
        if kind == "lstm":
            with torch.no_grad():
                ours.cells[0].input.bias[16:32] = 5.0  # opens the forget gate, so that it keeps c
        x = torch.randn(1, 60, 4, requires_grad=True)
        ours(x)[0][:, -1].sum().backward()
        assert x.grad is not None
        gradients[kind] = float(x.grad[0, 0].norm() / x.grad[0, -1].norm())
    assert gradients["rnn"] < 1e-6
    assert gradients["lstm"] > 1e-2


def translator(kind: Kind = "lstm", attention: bool = True) -> Seq2Seq:
    model = randomise(Seq2Seq(Seq2SeqConfig(53, 47, 6, 8, 2, kind, attention)))
    assert isinstance(model, Seq2Seq)
    return model


@KINDS
def test_recurrent_attention_matches_the_formula(kind: Kind) -> None:
    """e_i = s · h_i, α = softmax e, a = Σ α_i h_i, logits = U [a; s]."""
    model, source, target = translator(kind), tokens(length=9), tokens(length=5, vocab_size=47)
    read = model.encode(source)
    hidden, _ = model.decoder(model.target_embedding(target), read.states)
    logits, _, weights = model.decode(target, read)
    for row in range(2):
        for step in range(5):
            s = hidden[row, step]
            alpha = torch.stack([s @ h for h in read.hidden[row]]).softmax(0)
            a = sum(weight * h for weight, h in zip(alpha, read.hidden[row], strict=True))
            assert weights is not None
            torch.testing.assert_close(weights[row, step], alpha)
            torch.testing.assert_close(logits[row, step], model.head(torch.cat([a, s])))
    torch.testing.assert_close(model(source, target), logits)


@KINDS
@pytest.mark.parametrize("attention", [True, False])
def test_teacher_forcing_matches_reading_step_by_step(kind: Kind, attention: bool) -> None:
    model, source, target = translator(kind, attention), tokens(length=9), tokens(length=5, vocab_size=47)
    at_once = model(source, target)
    read, states = model.encode(source), None
    for step in range(5):
        logits, states, _ = model.decode(target[:, step : step + 1], read, states)
        torch.testing.assert_close(logits[:, 0], at_once[:, step])


@pytest.mark.parametrize("attention", [True, False])
def test_source_padding_is_ignored(attention: bool) -> None:
    model, source, target = translator(attention=attention), tokens(length=9), tokens(length=5, vocab_size=47)
    real = torch.arange(9).expand(2, 9) < torch.tensor([[9], [6]])
    torch.testing.assert_close(model(source, target, real)[1:], model(source[1:, :6], target[1:]))


def test_translate_feeds_back_its_own_output() -> None:
    model, source = translator(), tokens(length=9)
    said = model.translate(source, start=3, length=6)
    inputs = torch.cat([torch.full((2, 1), 3), said[:, :-1]], dim=1)
    assert torch.equal(model(source, inputs).argmax(-1), said)


@pytest.mark.prove
def test_attention_learns_to_copy() -> None:
    """The task is to reverse eight symbols. With attention, the model learns much more in the same few steps."""
    losses = {}
    for attention in (True, False):
        torch.manual_seed(0)
        model = Seq2Seq(Seq2SeqConfig(12, 12, 16, 32, kind="lstm", attention=attention))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(150):
            source = torch.randint(1, 12, (64, 8))
            target = source.flip(1)
            inputs = torch.cat([torch.zeros(64, 1, dtype=torch.long), target[:, :-1]], dim=1)
            loss = nn.functional.cross_entropy(model(source, inputs).flatten(0, 1), target.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses[attention] = float(loss.detach())
    assert losses[True] < 0.5 * losses[False]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RecurrentConfig(0, 5, 7), "at least 1"),
        (lambda: RecurrentConfig(9, 5, 7, kind="gru"), "unknown kind 'gru'; choose from rnn, lstm"),  # type: ignore[arg-type]
        (lambda: Seq2SeqConfig(9, 9, 5, 7, layers=0), "at least 1"),
        (lambda: Seq2SeqConfig(9, 9, 5, 7, kind="gru"), "unknown kind 'gru'"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments_are_rejected(make: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()
