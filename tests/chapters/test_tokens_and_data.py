"""Notebook 07: references against independent sources, and what its figures show."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise, permutations
from typing import Any

import pytest
import tokenizers
import torch

from lmcourse.chapters.tokens_and_data import exercises, figures
from lmcourse.chapters.tokens_and_data.counted_text import NO_MORE, CountedText, Pair
from lmcourse.chapters.tokens_and_data.everybody import (
    Texts,
    measure_table,
    names_for_everybody,
    plain_mix,
    swap_letters,
)
from lmcourse.chapters.tokens_and_data.exercises.everybody import each_merge_for_the_dearest, everybodys_table
from lmcourse.chapters.tokens_and_data.figures.boxes import course_tokenizer, shown
from lmcourse.chapters.tokens_and_data.figures.timeline import LOOPS, Clocks
from lmcourse.check_tests.answers import AnswerCell
from lmcourse.data.corpora import find_corpus
from lmcourse.data.loader import Loader
from lmcourse.data.tokenizers import BPETokenizer
from lmcourse.data.tokenizers.bpe import learn_merges
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.open_task import Unfit


def library(merges: list[tuple[int, int]]) -> tokenizers.Tokenizer:
    """A byte-pair tokenizer of Hugging Face's library: bytes become the characters of the same numbers, and words stay
    whole."""
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


@pytest.mark.parametrize("seed", range(3))
def test_words_are_cut_as_by_the_library(seed: int) -> None:
    words, merges = learned(seed)
    theirs = library(merges)
    for word in [*words, "abéabéab", "é", ""]:
        tokens = exercises.encode_word.reference(word, merges)
        assert tokens == theirs.encode(word.encode().decode("latin-1")).ids
        assert exercises.decode.reference(tokens, merges) == word


def test_ties_the_other_way_round_agree_in_111_merges() -> None:
    words = Counter(split_words(*find_corpus("course-text").texts()))
    wrong, right = (
        train(words, 256) for train in (exercises.train_bpe.misconceptions[0].answer, exercises.train_bpe.reference)
    )
    assert sum(map(tuple.__eq__, wrong, right)) == 111


@pytest.mark.parametrize("seed", range(3))
def test_merges_match_the_librarys_trainer(seed: int) -> None:
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


def full_count(words: list[list[int]], times: list[int]) -> tuple[Counter[Pair], dict[Pair, set[int]]]:
    """Count all pairs, and note the words that hold them."""
    counts: Counter[Pair] = Counter()
    where: dict[Pair, set[int]] = defaultdict(set)
    for number, (word, many) in enumerate(zip(words, times, strict=True)):
        for pair in zip(word, word[1:], strict=False):  # noqa: RUF007
            counts[pair] += many
            where[pair].add(number)
    return counts, where


@pytest.mark.parametrize("seed", range(3))
def test_incremental_counts_match_full_recounts(seed: int) -> None:
    source = random.Random(seed)
    words = [[source.randint(1, 3) for _ in range(source.randint(0, 12))] for _ in range(8)]
    text = CountedText(words, [source.randint(1, 5) for _ in words])
    for new in range(256, 266):
        pair = source.choice(sorted(text.counts))
        expected = [exercises.merge.reference(word, pair, new) for word in text.words]
        assert text.merge(exercises.merge_counted.reference, pair, new) is None
        assert text.words == expected
        assert (text.counts, text.where) == full_count(expected, text.times)
        assert text.work == NO_MORE


def test_a_merge_looks_at_the_words_that_hold_its_pair() -> None:
    words = Counter(split_words(*find_corpus("course-text").texts()))
    merges = learn_merges(find_corpus("course-text").texts(), 256)
    looks = CountedText.of_bytes(words).train(exercises.merge_counted.reference, merges).looks
    tokenizers = [BPETokenizer(merges[:count]) for count in range(257)]
    assert (
        looks
        == sum(before.encode(word) != after.encode(word) for before, after in pairwise(tokenizers) for word in words)
        == 7318
    )


@pytest.mark.parametrize(
    "look",
    [
        list,
        lambda words: words.copy(),
        lambda words: words[:],
        lambda words: [*reversed(words)],
        lambda words: [words[-1], words[0]],
        lambda words: dict(enumerate(words)),
    ],
)
def test_every_way_to_read_words_is_recorded(look: Callable[[Any], object]) -> None:
    text = CountedText([[1, 2], [3, 4]], [1, 1])
    text.merge(lambda words, *rest: look(words), (1, 2), 256)
    assert text.looks == 2
    assert text.work.startswith("2 of 2 words")


@pytest.mark.parametrize(
    "write",
    [
        lambda counts: counts.update({(3, 4): 1}),
        lambda counts: counts.clear(),
        lambda counts: counts.pop((3, 4)),
        lambda counts: counts.setdefault((3, 3), 0),
        lambda counts: counts.__delitem__((3, 4)),
    ],
)
def test_every_way_to_write_counts_is_recorded(write: Callable[[Any], object]) -> None:
    text = CountedText([[1, 2], [3, 4]], [1, 1])
    text.merge(lambda words, times, counts, *rest: write(counts), (1, 2), 256)
    assert text.work == "1 counts of pairs that are not in these words"


def test_batches_match_the_loader() -> None:
    tokens = torch.arange(100, 160)
    batch = next(Loader(tokens, batch=4, seq_len=7, seed=3, prefetch=0))
    starts = (batch.inputs[:, 0] - 100).tolist()
    inputs, targets = exercises.batch_at.reference(tokens, starts, 7)
    assert torch.equal(inputs, batch.inputs)
    assert torch.equal(targets, batch.targets)


def legal_orders(batches: int) -> Iterator[tuple[str, ...]]:
    """All legal orders: each batch is copied, then trained on, and one copy is ahead as long as there are batches."""
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


@pytest.mark.parametrize("batches", [0, 3])
def test_the_references_order_is_the_only_legal_one(batches: int) -> None:
    log: list[str] = []

    def copied(batch: int) -> int:
        log.append(f"copy {batch}")
        return batch

    exercises.train_ahead.reference(range(batches), copied, lambda batch: log.append(f"train {batch}"))
    assert list(legal_orders(batches)) == [tuple(log)]


def test_the_boxes_are_the_tokens_of_the_text() -> None:
    text = "the token of notebook 12"
    tokenizer = course_tokenizer(700)
    drawn = [box.get_text() for box in figures.token_colours(text, 700).axes[0].texts]
    assert drawn == [tokenizer.decode([token]).replace(" ", "·") for token in tokenizer.encode(text)]
    assert [shown(raw) for raw in (b" a\n", "é".encode(), b"\xc3", "東".encode(), b"\x00")] == [
        "·a↵",
        "é",
        "C3",
        "E6 9D B1",
        "00",
    ]


def trained(loop: str, batches: int, **settings: Any) -> Clocks:
    clocks = Clocks(**{"copy": 2.0, "step": 10.0, "own_stream": True, "pinned": True, "waits": True, **settings})
    LOOPS[loop](range(batches), clocks.copy, clocks.train)
    return clocks


def test_the_notes_loop_never_trains_on_the_last_batch() -> None:
    for batches in (2, 3, 6):
        steps = [work.batch for work in trained("i + 2", batches).lanes["train"]]
        assert steps == [*range(batches - 1), batches - 2]


def test_clocks_agree_with_a_queue_model_by_hand() -> None:
    ends = {(loop, own): trained(loop, 100, own_stream=own).end for loop in LOOPS for own in (True, False)}
    assert ends["one ahead", True] == 1002
    assert {ends["one ahead", False], *(ends["copy, then train", own] for own in (True, False))} == {1200}
    assert trained("one ahead", 100, for_all=True).end == 1200
    slow = trained("one ahead", 6, copy=20.0, step=5.0, pinned=False)
    assert slow.end == 165
    for lane in slow.lanes.values():
        assert all(before.end <= after.start for before, after in pairwise(lane))


LITERAL = [list(pair) for pair in plain_mix(names_for_everybody())]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("open('x')", "io.open"),
        ("__import__('babel')", "builtins.__import__"),
        ("return learn_merges(texts.values(), 256)", "learn_merges"),
        ("from babel import Locale", "babel"),
        ("from pathlib import Path; Path('x').read_text()", "pathlib"),
        ("from lmcourse.data.tokenizers import BPETokenizer", "BPETokenizer"),
    ],
)
def test_a_table_may_not_be_read_from_elsewhere(body: str, reason: str) -> None:
    text = f"def everybodys_table(texts):\n    {body}\n"
    answer = AnswerCell(everybodys_table, text, "", {"__name__": "__main__", "learn_merges": learn_merges}).run(text)
    report = check_exercise(everybodys_table, answer)
    assert report.points == 0
    assert reason in report.diagnosis


def test_a_table_of_the_true_letters_fits_no_text() -> None:
    assert measure_table(lambda texts: LITERAL, seed=1)["ratio"] > 1.4


def test_a_table_for_the_checks_letters_alone_is_unfit() -> None:
    texts = swap_letters(names_for_everybody(), 0)
    known, written = {*texts["Burmese"].split()}, each_merge_for_the_dearest(texts)

    def answer(rest: Texts) -> list[tuple[int, int]]:
        return written if known.issuperset(rest["Burmese"].split()) else plain_mix(rest)

    with pytest.raises(Unfit, match=r"With other letters swapped, the dearest reader pays 1\d % more"):
        measure_table(answer, seed=0)


def test_lines_name_the_same_things_and_swaps_keep_their_bytes() -> None:
    texts = names_for_everybody()
    swapped = swap_letters(texts, 3)
    assert {text.count("\n") for text in texts.values()} == {text.count("\n") for text in swapped.values()}
    for reader, text in texts.items():
        assert swapped[reader] != text
        assert [len(letter.encode()) for letter in text] == [len(letter.encode()) for letter in swapped[reader]]
