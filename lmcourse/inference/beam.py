"""Beam search: keep the most likely partial texts, and extend them all.

Greedy decoding takes the best next token and may miss the best text. Beam search keeps the `beams` best beginnings,
tries every token after each of them, and keeps the best again. With as many beams as there are beginnings it is
exhaustive.
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
        tokens: the new ones; the last is a stop token, unless the text was cut off.
        log_probability: of these tokens after the prompt, in nats.
        score: that, divided by the length penalty.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α (Wu et al., 2016, eq. 14). Every token makes a text less likely; α makes up for that."""
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
    """Return the best texts that the search finds, best first: at most `beams`.

    Args:
        model: a decoder, or an encoder–decoder.
        prompt: token ids; for an encoder–decoder, how the answer begins.
        max_new_tokens: texts are cut off here.
        beams: how many beginnings are followed.
        stop: tokens that end a text.
        alpha: the length penalty's exponent; 0 compares plain probabilities.
        source: for an encoder–decoder, the text that it answers.

    Raises:
        ValueError: as in `generate`; fewer than one beam; a negative alpha.
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
    """The search's state: the beams still open, as rows of a session, and the texts that have ended."""

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
        self.open: list[tuple[tuple[int, ...], float]] = [((), 0.0)]  # with log probabilities, the highest first
        self.log_probabilities = torch.zeros(1, device=self.session.device)
        self.stop_tokens = torch.tensor(stop, device=self.session.device, dtype=torch.long)
        self.found: list[Hypothesis] = []

    def run(self) -> list[Hypothesis]:
        """The hypotheses found, the best first."""
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
        """Extend the beams by one token. Every beam with a stop token is a finished text; the best other
        continuations become the beams. Return the rows they continue, and their last tokens.
        """
        vocab_size = longer.shape[1]
        ended = longer[:, self.stop_tokens].flatten()
        ways = min(self.beams, len(self.open) * (vocab_size - len(self.stop)))
        self.log_probabilities, best = longer.index_fill(1, self.stop_tokens, -torch.inf).flatten().topk(ways)
        # To look at numbers is to wait for the device: once for all that are fractions, once for all that are whole.
        seen, whole = torch.cat([ended, self.log_probabilities]).tolist(), best.tolist()
        self.finish(seen[: len(ended)])
        texts = [(*self.open[way // vocab_size][0], way % vocab_size) for way in whole]
        self.open = list(zip(texts, seen[len(ended) :], strict=True))
        return best // vocab_size, best % vocab_size

    def finish(self, log_probabilities: list[float]) -> None:
        """Consider every beam as a finished text, given the log probabilities of the stop tokens."""
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
        """Return True if no open beam can still be among the best: its probability only falls, and no penalty
        exceeds the longest text's.
        """
        if not self.open:
            return True
        best = self.open[0][1] / length_penalty(self.max_new_tokens, self.alpha)
        return len(self.found) == self.beams and best <= self.found[-1].score
