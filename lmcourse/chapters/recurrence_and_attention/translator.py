"""Two networks that translate rows of symbols, with attention and without, and how notebook 06 trains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

AttendSource = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Source states, mask of real words, decoder's states → means of source states, joined with the decoder's states."""
Attend = Callable[[Tensor, Tensor], Tensor]
Pairs = Iterable[tuple[Tensor, Tensor]]


class Translator(nn.Module):
    """An LSTM reads a row of symbols, another writes one; symbol 0 is the start."""

    def __init__(self, attend: Attend | None = None, symbols: int = 11, d: int = 64) -> None:
        super().__init__()
        self.attend = attend
        self.source, self.target = nn.Embedding(symbols, d), nn.Embedding(symbols, d)
        self.encoder, self.decoder = nn.LSTM(d, d, batch_first=True), nn.LSTM(d, d, batch_first=True)
        self.head = nn.Linear(2 * d if attend else d, symbols)

    def forward(self, source: Int[Tensor, "b n"], read: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return logits for each step, when the decoder reads `read`."""
        h, state = self.encoder(self.source(source))
        s, _ = self.decoder(self.target(read), state)
        logits: Tensor = self.head(self.attend(s, h) if self.attend else s)
        return logits

    @torch.no_grad()
    def write(self, source: Int[Tensor, "b n"], teacher: Int[Tensor, "b n"] | None = None) -> Int[Tensor, "b n"]:
        """Return the likeliest symbol at each step, which reads the teacher's words, or else its own."""
        h, state = self.encoder(self.source(source))
        word, said = torch.zeros_like(source[:, :1]), []
        for step in range(source.shape[1]):
            s, state = self.decoder(self.target(word), state)
            said.append(self.head(self.attend(s, h) if self.attend else s).argmax(dim=-1))
            word = said[-1] if teacher is None else teacher[:, step : step + 1]
        return torch.cat(said, dim=1)

    @torch.no_grad()
    def looks(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b n"]) -> Float[Tensor, "b n n"]:
        """Return the weights of each step on each word of the source, when the decoder reads the true words."""
        h, state = self.encoder(self.source(source))
        s, _ = self.decoder(self.target(F.pad(target, (1, -1))), state)
        return weights(s, h)


def train(seed: int, pairs: Pairs, read: Callable[[Tensor, int], Tensor], attend: Attend | None = None) -> Translator:
    """Return a translator with a step of training for each pair of source and target."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Translator(attend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for source, target in pairs:
        logits = model(source, read(target, 0))
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def rows(count: int, length: int, seed: int = 99) -> Int[Tensor, "b n"]:
    """Return rows of symbols from 1 to 10."""
    return torch.randint(1, 11, (count, length), generator=torch.Generator().manual_seed(seed))


def reversals(seed: int, steps: int = 400) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of 64 rows of 2 to 12 symbols, and the same rows reversed."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        length = int(torch.randint(2, 13, (), generator=generator))
        source = torch.randint(1, 11, (64, length), generator=generator)
        yield source, source.flip(1)


def perfect(model: Translator, source: Int[Tensor, "b n"], target: Int[Tensor, "b n"]) -> float:
    """Return the share of rows that a model writes without an error, reading its own words."""
    return (model.write(source) == target).all(dim=1).double().mean().item()


def by_length(models: list[Translator]) -> dict[int, list[float]]:
    """Return for rows of each length the share that each model reverses without an error."""
    lengths = (2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 20)
    return {n: [round(perfect(model, rows(512, n), rows(512, n).flip(1)), 3) for model in models] for n in lengths}


def weights(s: Float[Tensor, "b t d"], h: Float[Tensor, "b n d"]) -> Float[Tensor, "b t n"]:
    """Return the attention of each of the decoder's states to each source state."""
    return (s @ h.mT).softmax(dim=-1)


def course_attend(s: Float[Tensor, "b t d"], h: Float[Tensor, "b n d"]) -> Float[Tensor, "b t 2d"]:
    """Return `attend_source` of the course for a batch of texts without padding."""
    return torch.cat([weights(s, h) @ h, s], dim=-1)


def batched(answer: AttendSource) -> Attend:
    """Return `attend_source` for a batch of texts without padding, which a model can be trained with.

    If `torch.vmap` cannot vectorize it, or it has no gradient, the result is the course's, and a line says so.
    """

    def of_batch(s: Tensor, h: Tensor) -> Tensor:
        real: Bool[Tensor, "b n"] = torch.ones(h.shape[:2], dtype=torch.bool)
        return torch.vmap(answer)(s, h, real)

    s, h = torch.ones(2, 1, 4), torch.ones(2, 3, 4, requires_grad=True)
    try:
        torch.autograd.grad(of_batch(s, h).sum(), h)
    except RuntimeError:
        print("training runs with the course's `attend_source`: this one has no gradient, or cannot run on a batch")
        return course_attend
    return of_batch
