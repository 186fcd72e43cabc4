"""Reference for a validation loss: nats per byte, independent of the tokenizer, and the text's entropy if known."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Tokens
from lmcourse.data.tokenizers import Tokenizer
from lmcourse.training.command.training_data import DOCUMENT_END


@dataclass(frozen=True)
class LossBaseline:
    """Baseline for losses on a text.

    Attributes:
        bytes_per_token: of the text as it was cut.
        best_possible: nats per byte that this text takes whoever knows the language exactly; None if nobody does. A
            model that reads windows sees less than that, so its loss is a little higher even then.
    """

    bytes_per_token: float
    best_possible: float | None

    def per_byte(self, loss: float) -> float:
        """A loss in nats per token, in nats per byte."""
        return loss / self.bytes_per_token


def loss_baseline(corpus: str, tokenizer: Tokenizer, tokens: Tokens) -> LossBaseline:
    """The baseline for a text of a corpus: what the synthetic language takes is known from its grammar."""
    text = tokenizer.decode(tokens[0 : len(tokens)].tolist())
    known = corpus == "synthetic"
    return LossBaseline(len(text.encode()) / len(tokens), _surprise(text) if known else None)


def _surprise(text: str) -> float | None:
    """−ln P per byte under the grammar, of the documents that are whole: the last may be cut off."""
    whole = text[: text.rfind(DOCUMENT_END) + len(DOCUMENT_END)] if DOCUMENT_END in text else ""
    return -story_grammar().log_probability(whole) / len(whole.encode()) if whole else None
