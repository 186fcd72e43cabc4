"""Recurrent language models: one state, updated token after token (Elman, 1990; Hochreiter and Schmidhuber, 1997).

They are written as loops over time, because no step can start before the previous step has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Kind = Literal["rnn", "lstm"]


@dataclass(frozen=True)
class RecurrentConfig:
    """Configuration of a recurrent language model: kind of cell, sizes, layers.

    Attributes:
        vocab_size: how many tokens there are.
        d_embedding: the width of a token's vector.
        d_hidden: the width of the state.
        layers: the number of layers; each reads the states of the layer below.
        kind: "rnn" or "lstm".
    """

    vocab_size: int
    d_embedding: int
    d_hidden: int
    layers: int = 1
    kind: Kind = "lstm"

    def __post_init__(self) -> None:
        if min(self.vocab_size, self.d_embedding, self.d_hidden, self.layers) < 1:
            raise ValueError("vocab_size, d_embedding, d_hidden and layers must be at least 1")
        if self.kind not in CELLS:
            raise ValueError(f"unknown kind {self.kind!r}; choose from {', '.join(CELLS)}")


class RNNCell(nn.Module):
    """Elman's RNN cell: h ← tanh(W x + U h + b). Its state has one part, h."""

    parts = 1

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.input = nn.Linear(d_in, d_hidden)
        self.recurrent = nn.Linear(d_hidden, d_hidden)

    def forward(self, x: Float[Tensor, "b d_in"], state: Float[Tensor, "1 b d"]) -> Float[Tensor, "1 b d"]:
        """Return the state after one more input."""
        (h,) = state
        return torch.tanh(self.input(x) + self.recurrent(h))[None]


class LSTMCell(nn.Module):
    """LSTM cell: c ← f ⊙ c + i ⊙ g and h ← o ⊙ tanh c. Its state has two parts, h and c.

    The gates f (keep), i (write) and o (show) are between 0 and 1; g is the candidate for writing. From step to step c
    is only multiplied by f and added to, so its gradient need not vanish.
    """

    parts = 2

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.input = nn.Linear(d_in, 4 * d_hidden)
        self.recurrent = nn.Linear(d_hidden, 4 * d_hidden)

    def forward(self, x: Float[Tensor, "b d_in"], state: Float[Tensor, "2 b d"]) -> Float[Tensor, "2 b d"]:
        """Return the state after one more input."""
        h, c = state
        i, f, g, o = (self.input(x) + self.recurrent(h)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return torch.stack([o.sigmoid() * c.tanh(), c])


CELLS: dict[Kind, type[RNNCell] | type[LSTMCell]] = {"rnn": RNNCell, "lstm": LSTMCell}


class Recurrent(nn.Module):
    """Stacked recurrent layers, run over a sequence."""

    def __init__(self, kind: Kind, d_in: int, d_hidden: int, layers: int) -> None:
        super().__init__()
        self.d_hidden, self.parts = d_hidden, CELLS[kind].parts
        self.cells = nn.ModuleList(CELLS[kind](d_in if layer == 0 else d_hidden, d_hidden) for layer in range(layers))

    def forward(
        self,
        x: Float[Tensor, "b s d_in"],
        states: Sequence[Float[Tensor, "parts b d"]] | None = None,
        token_mask: Bool[Tensor, "b s"] | None = None,
    ) -> tuple[Float[Tensor, "b s d"], list[Float[Tensor, "parts b d"]]]:
        """Return the last layer's h at every step, and each layer's state after the last step.

        Args:
            x: the inputs.
            states: each layer's state before the first step; zeros if not given.
            token_mask: True for inputs that are not padding; padding leaves the state unchanged.
        """
        ends = []
        for layer, cell in enumerate(self.cells):
            state = x.new_zeros(self.parts, x.shape[0], self.d_hidden) if states is None else states[layer]
            hidden = []
            for step in range(x.shape[1]):
                new = cell(x[:, step], state)
                state = new if token_mask is None else torch.where(token_mask[:, step, None], new, state)
                hidden.append(state[0])
            x = torch.stack(hidden, dim=1)
            ends.append(state)
        return x, ends


class RecurrentModel(nn.Module):
    """A recurrent language model: embedding, recurrent layers, head."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_embedding)
        self.recurrent = Recurrent(config.kind, config.d_embedding, config.d_hidden, config.layers)
        self.head = nn.Linear(config.d_hidden, config.vocab_size)

    def forward(
        self, tokens: Int[Tensor, "b s"], states: Sequence[Float[Tensor, "parts b d"]] | None = None
    ) -> tuple[Float[Tensor, "b s v"], list[Float[Tensor, "parts b d"]]]:
        """Return the logits for each next token, and the states; pass them to the next call to continue the text."""
        hidden, ends = self.recurrent(self.embedding(tokens), states)
        return self.head(hidden), ends
