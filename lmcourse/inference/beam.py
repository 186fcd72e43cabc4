"""Beam search: keep the most likely partial texts, and extend them all.

Greedy decoding takes the most likely next token and may miss the most likely text. Beam search keeps the `beams` best
beginnings, tries every token after each of them, and again keeps the best. With enough beams for all possible
beginnings, the search is exhaustive.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.decoding_session import DecodingSession, Model, check_request, left_pad


@dataclass(frozen=True)
class Hypothesis:
    """A finished text that the search has found.

    Attributes:
        tokens: the new tokens; the last is a stop token, unless the text was cut off.
        log_probability: the log-probability of these tokens after the prompt, in nats.
        score: the log-probability divided by the length penalty.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^α (Wu et al., 2016, eq. 14), which compensates for long texts being less likely."""
    return float(((5 + length) / 6) ** alpha)


def beam_search(
    model: Model,
    prompt: Sequence[int],
    max_new_tokens: int,
    beams: int = 4,
    stop: Collection[int] = (),
    *,
    alpha: float = 0.6,
    source: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """Return the best texts that the search finds, at most `beams`, best first.

    Raises ValueError as `generate` does, and if `beams` is below 1, or `alpha` is negative.

    Args:
        model: a decoder, or an encoder–decoder.
        prompt: token ids; for an encoder–decoder, the beginning of the answer.
        max_new_tokens: largest number of new tokens; longer texts are cut off.
        beams: number of beginnings to keep.
        stop: tokens that end a text.
        alpha: the exponent of the length penalty; 0 compares plain probabilities.
        source: for an encoder–decoder, the source text.
    """
    sources = None if source is None else [source]
    check_request(model, [prompt], max_new_tokens, stop, sources)
    if beams < 1 or alpha < 0:
        raise ValueError(f"beam search needs at least one beam and alpha ≥ 0, not {beams} and {alpha:g}")
    was_training = model.training
    model.eval()
    try:
        return _Search(model, prompt, max_new_tokens, beams, sorted(set(stop)), alpha, sources).run()
    finally:
        model.train(was_training)


class _Search:
    """The state of a search: the open beams, as rows of a session, and the finished texts."""

    def __init__(
        self,
        model: Model,
        prompt: Sequence[int],
        max_new_tokens: int,
        beams: int,
        stop: list[int],
        alpha: float,
        sources: Sequence[Sequence[int]] | None,
    ) -> None:
        self.max_new_tokens, self.beams, self.stop, self.alpha = max_new_tokens, beams, stop, alpha
        self.session = DecodingSession(model, len(prompt) + max_new_tokens, sources)
        self.logits = self.session.next_logits(*left_pad([prompt], self.session.device))
        # new tokens and log-probabilities of the beams, most likely first
        self.open: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        self.log_probabilities = torch.zeros(1, device=self.session.device)
        self.stop_tokens = torch.tensor(stop, device=self.session.device, dtype=torch.long)
        self.found: list[Hypothesis] = []

    def run(self) -> list[Hypothesis]:
        for length in range(1, self.max_new_tokens + 1):
            parents, tokens = self.extend(self.log_probabilities[:, None] + self.logits.float().log_softmax(dim=-1))
            if self.is_done():
                return self.found
            if length < self.max_new_tokens:
                self.session.select(parents)
                self.logits = self.session.next_logits(tokens[:, None])
        for text, log_probability in self.open:
            self.keep(text, log_probability)
        return self.found

    def extend(self, longer: Float[Tensor, "beams v"]) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
        """Extend the beams by one token. A beam that gets a stop token is a finished text; the best other continuations
        are the new beams. Return the rows that they continue, and their last tokens.
        """
        vocab_size = longer.shape[1]
        ended = longer[:, self.stop_tokens].flatten()
        ways = min(self.beams, len(self.open) * (vocab_size - len(self.stop)))
        self.log_probabilities, best = longer.index_fill(1, self.stop_tokens, -torch.inf).flatten().topk(ways)
        # Reading numbers waits for the device, so do it only twice: once for all floats, once for all integers.
        seen, whole = torch.cat([ended, self.log_probabilities]).tolist(), best.tolist()
        self.finish(seen[: len(ended)])
        texts = [(*self.open[way // vocab_size][0], way % vocab_size) for way in whole]
        self.open = list(zip(texts, seen[len(ended) :], strict=True))
        return best // vocab_size, best % vocab_size

    def finish(self, log_probabilities: list[float]) -> None:
        """Consider every beam followed by a stop token as a finished text."""
        texts = ((*text, token) for text, _ in self.open for token in self.stop)
        for text, log_probability in zip(texts, log_probabilities, strict=True):
            self.keep(text, log_probability)

    def keep(self, text: tuple[int, ...], log_probability: float) -> None:
        """Add a finished text if it is among the best."""
        score = log_probability / length_penalty(len(text), self.alpha)
        self.found.append(Hypothesis(text, log_probability, score))
        self.found.sort(key=lambda hypothesis: -hypothesis.score)
        del self.found[self.beams :]

    def is_done(self) -> bool:
        """Return True if no open beam can become one of the best: its probability only falls, and the longest text has
        the largest penalty.
        """
        if not self.open:
            return True
        best = self.open[0][1] / length_penalty(self.max_new_tokens, self.alpha)
        return len(self.found) == self.beams and best <= self.found[-1].score
