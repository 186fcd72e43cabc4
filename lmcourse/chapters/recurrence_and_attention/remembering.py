"""Networks of notebook 06 that have to remember: random ones, and trained ones with their stored results."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

NETWORKS = {"tanh": None, "LSTM as PyTorch makes it": None, "LSTM, forget bias 1": 1.0, "LSTM, forget bias 3": 3.0}
"""Each network's name and the bias of its forget gates; None keeps PyTorch's initial weights."""

_NAMES = tuple(NETWORKS)
REMEMBERED: dict[int, dict[str, tuple[float, float, float]]] = {
    between: dict(zip(_NAMES, shares, strict=True))
    for between, shares in {
        10: ((1.00, 1.00, 1.00), (1.00, 1.00, 1.00), (1.00, 1.00, 1.00), (1.00, 1.00, 1.00)),
        20: ((0.49, 1.00, 0.47), (0.49, 0.53, 0.46), (1.00, 1.00, 1.00), (1.00, 1.00, 1.00)),
        40: ((0.53, 0.48, 0.48), (0.54, 0.48, 0.48), (0.55, 0.48, 1.00), (1.00, 1.00, 1.00)),
        80: ((0.50, 0.52, 0.53), (0.52, 0.53, 0.53), (0.51, 0.53, 0.53), (1.00, 1.00, 0.52)),
    }.items()
}
"""Words between the first word and the question → network → fraction of right answers of the seeds 0, 1 and 2.

Made by `remember(name, between, seed)`.
"""

STORED = "\n".join(
    f"{between} words between, {name:24} {shares}"
    for between, networks in REMEMBERED.items()
    for name, shares in networks.items()
)
_WIDTH, _FEATURES, _WORDS = 32, 8, 10


class _Reader(nn.Module):
    """A recurrent layer over word vectors, and two scores from its last state."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.words = nn.Embedding(_WORDS, _FEATURES)
        kind = nn.RNN if name == "tanh" else nn.LSTM
        self.layer: nn.RNNBase = kind(_FEATURES, _WIDTH, batch_first=True)
        self.head = nn.Linear(_WIDTH, 2)
        if (bias := NETWORKS[name]) is not None:
            with torch.no_grad():
                weights = dict(self.layer.named_parameters())
                weights["bias_ih_l0"][_WIDTH : 2 * _WIDTH] = bias
                weights["bias_hh_l0"][_WIDTH : 2 * _WIDTH] = 0.0

    def forward(self, tokens: Int[Tensor, "b s"]) -> Float[Tensor, "b 2"]:
        scores: Tensor = self.head(self.layer(self.words(tokens))[0][:, -1])
        return scores


def remember(name: str, between: int, seed: int, steps: int = 500) -> float:
    """Return the fraction of 1,000 new texts whose first word a trained network names; `between` words follow it.

    Each step is one of Adam at 0.003 on 64 texts, with gradients clipped at 1.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _Reader(name)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for _ in range(steps):
        tokens, first = _texts(64, between, generator)
        loss = F.cross_entropy(network(tokens), first)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    tokens, first = _texts(1000, between, torch.Generator().manual_seed(99))
    with torch.no_grad():
        right: Tensor = network(tokens).argmax(dim=1) == first
    return right.double().mean().item()


def random_network(
    radius: float, seed: int
) -> tuple[Float[Tensor, "d d"], Float[Tensor, "t d"], Float[Tensor, " d"], Float[Tensor, " d"]]:
    """Return a matrix with this spectral radius, 200 inputs, a gradient to send back, and a small first state."""
    source = torch.Generator().manual_seed(seed)
    shapes = (64, 64), (200, 64), (64,), (64,)
    W, x, v, first = (torch.randn(*shape, generator=source, dtype=torch.float64) for shape in shapes)
    return W * (radius / torch.linalg.eigvals(W).abs().max()), x, v, 0.01 * first


def lstm_gradients(forget_bias: float | None, seed: int) -> Float[Tensor, " t"]:
    """Return what is left of a gradient of length 1 at the cell of an untrained LSTM, 0 to 59 steps back.

    `forget_bias` None keeps PyTorch's initial bias of the forget gates.
    """
    _, x, v, _ = random_network(1.0, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = nn.LSTMCell(64, 64).double()
    if forget_bias is not None:
        with torch.no_grad():
            layer.bias_ih[64:128] = forget_bias
            layer.bias_hh[64:128] = 0.0
    h = c = torch.zeros(64).double()
    cells = []
    for row in x[:60]:
        h, c = layer(row, (h, c))
        cells.append(c)
    gradients = torch.autograd.grad(cells[-1] @ (v / v.norm()), cells)
    return torch.stack([gradient.norm() for gradient in reversed(gradients)])


def _texts(count: int, between: int, generator: torch.Generator) -> tuple[Int[Tensor, "b s"], Int[Tensor, " b"]]:
    """Return texts that begin with word 0 or 1 and continue with others, and their first words."""
    first = torch.randint(2, (count, 1), generator=generator)
    others = torch.randint(2, _WORDS, (count, between), generator=generator)
    return torch.cat([first, others], dim=1), first[:, 0]
