"""The references of notebook 07 against libraries, enumeration and search."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations

import pytest
import tokenizers
import torch

from lmcourse.chapters.tokens_and_data import exercises
from lmcourse.chapters.tokens_and_data.exercises.encoding import TOY
from lmcourse.data.loader import Loader
from lmcourse.data.tokenizers import BPETokenizer


def library(merges: list[tuple[int, int]]) -> tokenizers.Tokenizer:
    """Byte pairs of Hugging Face's library: bytes are the characters of the same numbers, and words are not cut."""
    names = [bytes([value]) for value in range(256)]
    for left, right in merges:
        names.append(names[left] + names[right])
    texts = [name.decode("latin-1") for name in names]
    vocabulary = {text: token for token, text in enumerate(texts)}
    model = tokenizers.models.BPE(vocabulary, [(texts[left], texts[right]) for left, right in merges])
    return tokenizers.Tokenizer(model)


def learned(seed: int) -> tuple[dict[str, int], list[tuple[int, int]]]:
    source = random.Random(seed)
    words = {"".join(source.choice("abé") for _ in range(source.randint(1, 8))): source.randint(1, 5) for _ in range(9)}
    return words, exercises.train_bpe.reference(words, 8)


@pytest.mark.parametrize("seed", range(20))
def test_words_are_cut_as_by_the_library(seed: int) -> None:
    words, merges = learned(seed)
    theirs = library(merges)
    for word in [*words, "abéabéab", "é", ""]:
        tokens = exercises.encode_word.reference(word, merges)
        assert tokens == theirs.encode(word.encode().decode("latin-1")).ids
        assert exercises.decode.reference(tokens, merges) == word


@pytest.mark.parametrize("seed", range(5))
def test_merges_are_those_of_the_librarys_trainer(seed: int) -> None:
    words, merges = learned(seed)
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    alphabet = [chr(byte) for byte in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=264, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Split("\n", behavior="removed")
    text = "\n".join(word.encode().decode("latin-1") for word, times in words.items() for _ in range(times))
    theirs.train_from_iterator([text], trainer)
    pieces = [theirs.id_to_token(token) for token in range(256, theirs.get_vocab_size())]
    ours = BPETokenizer(merges).token_bytes[256:]
    assert pieces == [piece.decode("latin-1") for piece in ours]


def test_the_toy_of_the_text() -> None:
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    assert exercises.train_bpe.reference(words, 5) == TOY
    counts = exercises.count_pairs.reference([list(word.encode()) for word in words], list(words.values()))
    assert counts[101, 115] == counts[115, 116] == 9 == max(counts.values())


def places(tokens: list[int], pair: tuple[int, int]) -> Iterator[int]:
    """Where the pair is merged: each place that is free, from the left."""
    at = 0
    while at < len(tokens) - 1:
        if (tokens[at], tokens[at + 1]) == pair:
            yield at
            at += 1
        at += 1


def test_merging_puts_the_token_at_each_free_place() -> None:
    for tokens in {each for length in range(6) for each in permutations([1, 1, 1, 2, 2, 3], length)}:
        for pair in ((1, 1), (1, 2), (2, 1), (3, 3)):
            taken = list(places(list(tokens), pair))
            expected = [9 if at in taken else token for at, token in enumerate(tokens) if at - 1 not in taken]
            assert exercises.merge.reference(list(tokens), pair, 9) == expected


def test_batches_are_those_of_the_loader() -> None:
    tokens = torch.arange(100, 160)
    batch = next(Loader(tokens, batch=4, seq_len=7, seed=3, prefetch=0))
    starts = (batch.inputs[:, 0] - 100).tolist()
    inputs, targets = exercises.batch_at.reference(tokens, starts, 7)
    assert torch.equal(inputs, batch.inputs)
    assert torch.equal(targets, batch.targets)


def legal_orders(batches: int) -> Iterator[tuple[str, ...]]:
    """All orders in which each batch is copied, then trained on, in turn, and one is ahead whenever there is one."""
    acts = [f"{act} {i}" for act in ("copy", "train") for i in range(batches)]
    for order in permutations(acts):
        at = {act: place for place, act in enumerate(order)}
        rows = ([at[f"{act} {i}"] for i in range(batches)] for act in ("copy", "train"))
        copies, steps = rows
        in_turn = copies == sorted(copies) and steps == sorted(steps) and all(map(int.__lt__, copies, steps))
        ahead = all(copies[i + 1] < steps[i] for i in range(batches - 1))
        no_more = all(steps[i] < copies[i + 2] for i in range(batches - 2))
        if in_turn and ahead and no_more:
            yield order


@pytest.mark.parametrize("batches", range(4))
def test_there_is_one_legal_order_and_it_is_the_references(batches: int) -> None:
    log: list[str] = []

    def copied(batch: int) -> int:
        log.append(f"copy {batch}")
        return batch

    exercises.train_ahead.reference(range(batches), copied, lambda batch: log.append(f"train {batch}"))
    assert list(legal_orders(batches)) == [tuple(log)]


def test_own_numbers_are_torchs_and_nobody_notices() -> None:
    torch.manual_seed(4)
    expected, then = torch.rand(5), torch.rand(2)
    torch.manual_seed(4)
    torch.rand(5)
    assert torch.equal(exercises.own_numbers.reference(4, 5), expected)
    assert torch.equal(torch.rand(2), then)
