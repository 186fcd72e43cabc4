"""Losses per byte, the best possible loss, and the progress of a tokenizer's training."""

from __future__ import annotations

import random

import pytest
import torch

from lmcourse.data.grammar import story_grammar
from lmcourse.data.tokenizers import BPETokenizer, ByteTokenizer
from lmcourse.training.command.training_data import REPORT_SECONDS, loss_baseline, report_merges


def test_learning_byte_pairs_prints_a_line_every_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    report = report_merges(512, lambda: now)
    for merges in range(1, 257):
        now += REPORT_SECONDS / 100
        report(merges)
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"Learning byte pairs: {made} of 512 tokens" for made in (356, 456)]
    assert printed.out == ""


def story(seed: int) -> str:
    return story_grammar().generate(random.Random(seed))


def test_a_loss_per_byte_does_not_depend_on_the_tokenizer() -> None:
    """A loss of ln 2 per byte stays the same for any number of bytes per token."""
    text = "".join(map(story, range(8))) + "é漢"
    for tokenizer in (ByteTokenizer(), BPETokenizer.train([text], 300)):
        tokens = torch.tensor(tokenizer.encode(text))
        measure = loss_baseline("somebody's text", tokenizer, tokens)
        assert measure.best_possible is None
        assert measure.per_byte(0.5 * len(text.encode()) / len(tokens)) == pytest.approx(0.5)


def test_the_best_possible_loss_on_stories_is_their_entropy() -> None:
    """It is close to the language's entropy, and the cut-off document does not count."""
    stories = [story(seed) for seed in range(200)]
    tokens = torch.tensor(ByteTokenizer().encode("".join(stories) + story(201)[:40]))
    best = loss_baseline("synthetic", ByteTokenizer(), tokens).best_possible
    surprise = -sum(map(story_grammar().log_probability, stories))
    assert best == pytest.approx(surprise / sum(map(len, stories)))
    assert best == pytest.approx(story_grammar().entropy_per_byte, rel=0.02)


def test_a_text_without_one_whole_story_has_no_best() -> None:
    tokens = torch.tensor(ByteTokenizer().encode(story(1)[:30]))
    assert loss_baseline("synthetic", ByteTokenizer(), tokens).best_possible is None
