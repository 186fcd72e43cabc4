"""The exercise on the forward pass of a recurrent language model."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _by_torch(
    tokens: Tensor, E: Tensor, W_h: Tensor, W_e: Tensor, b1: Tensor, U: Tensor, b2: Tensor, h0: Tensor
) -> Tensor:
    """Compute with torch's own network in double precision, with these weights."""
    d, e = W_e.shape
    network = nn.RNN(e, d, dtype=torch.float64)
    weights = {"weight_ih_l0": W_e, "weight_hh_l0": W_h, "bias_ih_l0": b1, "bias_hh_l0": torch.zeros(d)}
    network.load_state_dict({name: weight.double() for name, weight in weights.items()})
    with torch.no_grad():
        states, _ = network(E.double().T[tokens], h0.double()[None])
        return nn.functional.linear(states, U.double(), b2.double()).softmax(dim=-1).to(E.dtype)


def _weights(
    random: Random, v: int, e: int, d: int, *, zero_h0: bool = False, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    """E, W_h, W_e, b1, U, b2 and h0 of a network that does not amplify rounding errors."""
    shapes = [(e, v), (d, d), (d, e), (d,), (v, d), (v,), (d,)]
    scales = [1.0, 0.6 / d**0.5, 1.0 / e**0.5, 0.5, 1.0, 1.0, 0.0 if zero_h0 else 0.8]
    return tuple(normal(random, *shape, scale=scale, dtype=dtype) for shape, scale in zip(shapes, scales, strict=True))


def _ids(random: Random, v: int, length: int) -> Tensor:
    return torch.tensor([random.randrange(v) for _ in range(length)])


def _saturated(random: Random) -> tuple[Tensor, ...]:
    """States of exactly ±1 and logits of hundreds, all whole numbers."""
    signs = torch.tensor([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
    U = 100 * integers(random, 3, 2, low=2, high=4) * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    return signs, torch.zeros(2, 2), 40 * torch.eye(2), torch.zeros(2), U, torch.tensor([1.0, 0.0, -1.0]), torch.ones(2)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    sizes = [(5, 3, 4), (3, 4, 2), (6, 6, 6), (4, 2, 1), (2, 1, 5), (1, 2, 3)]
    cases = [case("other sizes", _ids(seen, v, 4), *_weights(seen, v, e, d)) for v, e, d in sizes]
    cases += [
        case("double precision", _ids(seen, 5, 6), *_weights(seen, 5, 3, 4, dtype=torch.float64)),
        case("a long row", _ids(seen, 4, 90), *_weights(seen, 4, 3, 5, dtype=torch.float64)),
        case("one token", torch.tensor([2]), *_weights(seen, 3, 2, 2)),
        case("one token, over and over", torch.tensor([1, 1, 1, 1]), *_weights(seen, 3, 2, 2)),
        case("large logits", torch.tensor([2, 1, 0, 0]), *_saturated(seen)),
    ]
    for _ in range(3):
        v, e, d = random.sample(range(2, 8), 3)
        cases.append(case("other sizes", _ids(random, v, random.randint(2, 6)), *_weights(random, v, e, d)))
    return cases


_FIXED = Random(6)
_ONE = [[[1.0, -0.5]], [[0.5]], [[1.0]], [0.0], [[1.0], [-1.0]], [0.5, 0.0], [0.0]]

rnn_probabilities = Exercise(
    "rnn_probabilities",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_torch,
    cases=[
        case("three words, by hand", torch.tensor([0, 1, 0]), *(torch.tensor(weights) for weights in _ONE)),
        case("three tokens", torch.tensor([3, 0, 2]), *_weights(_FIXED, 4, 3, 2, zero_h0=True)),
        case("a first state that is not zero", torch.tensor([2, 0, 1, 1]), *_weights(_FIXED, 3, 3, 3)),
        case("one token", torch.tensor([1]), *_weights(_FIXED, 3, 2, 4)),
        case("large logits", torch.tensor([0, 1, 2]), *_saturated(_FIXED)),
        case("weights of 64 bits", torch.tensor([0, 2, 1]), *_weights(_FIXED, 3, 2, 2, dtype=torch.float64)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep one vector h, which starts as h0, and go through the tokens. What does each step do to h?",
        "h = torch.tanh(W_h @ h + W_e @ E[:, token] + b1). After each step, keep h.",
        "The logits of a step are U @ h + b2; a softmax over the words makes them probabilities. torch.stack makes "
        "rows of them.",
    ],
    forbid=[".RNN", ".RNNCell", ".RNNBase", ".rnn_tanh", ".rnn_tanh_cell"],
)


@rnn_probabilities.variant
def word_by_word(
    tokens: Tensor, E: Tensor, W_h: Tensor, W_e: Tensor, b1: Tensor, U: Tensor, b2: Tensor, h0: Tensor
) -> Tensor:
    h, rows = h0, []
    for token in tokens:
        h = torch.tanh(W_h @ h + W_e @ E[:, token] + b1)
        logits = U @ h + b2
        rows.append(logits.softmax(dim=-1))
    return torch.stack(rows)


rnn_probabilities.slips(
    word_by_word,
    {
        "torch.stack(rows) → torch.stack(rows).float()": "Your rows are float32, whatever came in. Return the dtype of "
        "E.",
        " + b1) → ) + b1": "You add b1 after the tanh. It is added before, so that states stay between −1 and 1.",
        "tanh → sigmoid": "You use a sigmoid, so all states are positive. Use tanh, which can be negative.",
        "W_h @ h → W_h @ h0": "Every step starts from h0: your network forgets all but the newest word.",
        "h, rows = h0 → h, rows = torch.zeros_like(h0)": "You start from a state of zeros. The first state is h0.",
        "E[:, token] → E[token]": "You take a row of E. Here a word's vector is a column: E[:, token].",
        "W_h @ h + W_e @ → W_e @ h + W_h @": "Two weights are swapped: W_h belongs to the state, W_e to the word.",
        "W_h @ h → h @ W_h": "You multiply by W_h on the wrong side: use W_h @ h, not h @ W_h.",
        "torch.tanh → ": "There is no tanh in your step. Without it every step is linear.",
        "h = torch → before, h = h, torch ;; U @ h → U @ before": "You predict from the state before the token. Row t "
        "must use token t.",
        "logits.softmax(dim=-1) → logits": "Your rows do not sum to one: they are the scores. The softmax is missing.",
        "logits.softmax(dim=-1) → logits.log_softmax(dim=-1)": "Your rows hold logarithms of probabilities. Return the "
        "probabilities themselves.",
        "rows.append(logits.softmax(dim=-1)) → rows.append(h)": "You return the states. Return the probabilities of "
        "the words.",
        "torch.stack(rows) → rows[-1]": "You return the last row alone. Return one after each token.",
        "logits.softmax(dim=-1) → logits ;; torch.stack(rows) → torch.stack(rows).softmax(dim=0)": "Your softmax runs "
        "over time. It should run over the words, so that each row sums to one.",
        " + b1) → )": "b1 is missing: it is added before the tanh, in every step.",
        "U @ h + b2 → U @ h": "b2 is missing: it is added to the logits of every step.",
        "U @ h + b2 → torch.tanh(U @ h + b2)": "You apply tanh to the logits, too. Only the state goes through tanh.",
        "logits.softmax(dim=-1) → logits.exp() / logits.exp().sum()": "The exponential of a large logit is infinite, "
        "and ∞/∞ is NaN. Subtract the largest logit of each row first.",
    },
)


rnn_probabilities.equivalent_mutant(
    "rows.append((U @ h + b2).softmax(dim=0)) → rows.append((U @ h + b2).softmax(dim=-1))",
    "The logits of one step have one axis: it is the first and the last.",
)
