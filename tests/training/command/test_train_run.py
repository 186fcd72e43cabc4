"""Test a run's model, text and folder."""

from __future__ import annotations

import os
import random
import shutil
import signal
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.data.corpora import find_corpus, split
from lmcourse.data.grammar import story_grammar
from lmcourse.data.token_file import TokenFile
from lmcourse.data.tokenizers import BPETokenizer, CharacterTokenizer, save_tokenizer
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.settings import load_run, save_run
from lmcourse.training.command.train_run import InterruptHandler, StoppedError, train
from lmcourse.training.command.training_data import open_data, prepare_data, tokenize_corpus
from lmcourse.training.metrics import Record
from lmcourse.training.run_config import RunConfig, find_decoder
from lmcourse.training.trained_model import load_trained_model
from lmcourse.training.training_config import TrainingConfig

TRAINING = TrainingConfig(steps=4, batch=2, seq_len=16)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Five stories, one of them with different line endings."""
    folder = tmp_path / "stories"
    folder.mkdir()
    source = random.Random(2)
    for index in range(5):
        (folder / f"{index}.txt").write_text(story_grammar().generate(source).rstrip() + "\n" * index)
    return folder


def run(corpus: Path, **changes: object) -> RunConfig:
    return replace(RunConfig(corpus=str(corpus), training=TRAINING, tokenizer="bytes"), **changes)


@pytest.mark.parametrize("preset", ["nano", "gpt-2"])
def test_the_model_has_the_vocabulary_and_context_of_the_run(preset: str, corpus: Path) -> None:
    """There are exactly as many learned positions as needed, so one more token is rejected."""
    config = run(corpus, preset=preset).model_config(300)
    assert (config.vocab_size, config.context) == (300, 16)
    assert config.layers == find_decoder(preset).layers
    with torch.device("meta"):
        model = Transformer(config)
        assert model(torch.zeros(1, 16, dtype=torch.long)).shape == (1, 16, 300)
        if config.embedding.max_positions is not None:
            with pytest.raises(ValueError, match="longer than the 16 learned positions"):
                model(torch.zeros(1, 17, dtype=torch.long))


def test_an_existing_tokenizer_is_used_unchanged(corpus: Path, tmp_path: Path) -> None:
    """It is copied to the run's folder, so the original file may be deleted."""
    file, folder = tmp_path / "mine.json", tmp_path / "run"
    mine = BPETokenizer.train(["the cat sat on the mat " * 3], 260)
    save_tokenizer(mine, file)
    chosen = run(corpus, tokenizer=str(file))
    prepare_data(chosen, folder)
    file.unlink()
    texts = open_data(chosen, folder)
    assert texts.tokenizer.vocab_size == mine.vocab_size > 256
    assert texts.tokenizer.encode("the cat") == mine.encode("the cat")
    with pytest.raises(CourseError, match=r"mine\.json cannot be read: No such file"):
        prepare_data(chosen, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_documents_end_with_one_empty_line(corpus: Path, tmp_path: Path) -> None:
    """The rest of the text does not change, and whole documents are held out."""
    chosen = run(corpus, held_out=0.4)
    prepare_data(chosen, tmp_path)
    texts = open_data(chosen, tmp_path)
    assert texts.validation is not None
    parts = split(find_corpus(str(corpus)), 0.4)
    for part, tokens in zip(parts, (texts.training, texts.validation), strict=True):
        wanted = "".join(text.rstrip("\n") + "\n\n" for text in part.texts())
        assert texts.tokenizer.decode(tokens[:].tolist()) == wanted
    assert isinstance(texts.training, TokenFile)
    assert texts.training.tokenizer == {"kind": "bytes"}


def test_an_evaluation_reads_at_most_the_requested_tokens(corpus: Path) -> None:
    """It reads the beginning of the validation text."""
    whole = tokenize_corpus(run(corpus, held_out=0.4)).validation
    some = tokenize_corpus(run(corpus, held_out=0.4, validation_tokens=500)).validation
    assert whole is not None
    assert some is not None
    assert list(chain(*some)) == list(chain(*whole))[:500]
    assert some.count() == 500 < whole.count()


def test_byte_pairs_are_learned_from_the_training_text(tmp_path: Path) -> None:
    """The end of a single document is held out. Its characters must have tokens, too."""
    (tmp_path / "text.txt").write_text("abc " * 500 + "ζ" * 500)
    chosen = run(tmp_path / "text.txt", tokenizer="bpe", held_out=0.2)
    assert len(tokenize_corpus(chosen).tokenizer.encode("ζ")) == 2
    assert len(tokenize_corpus(replace(chosen, held_out=0.0)).tokenizer.encode("ζ")) == 1
    assert len(tokenize_corpus(replace(chosen, tokenizer="characters")).tokenizer.encode("ζ")) == 1


def test_a_text_that_is_too_short_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a")
    with pytest.raises(CourseError, match="the part to train on has no text"):
        train(run(tmp_path / "text.txt"), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_text_without_characters_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n" * 100)
    with pytest.raises(CourseError, match="contains only line breaks"):
        tokenize_corpus(run(tmp_path / "text.txt", tokenizer="characters"))


def test_a_character_that_the_tokenizer_lacks_is_reported(corpus: Path, tmp_path: Path) -> None:
    save_tokenizer(CharacterTokenizer("ab"), tmp_path / "tokenizer.json")
    with pytest.raises(CourseError, match="the tokenizer has no token for"):
        tokenize_corpus(run(corpus, tokenizer=str(tmp_path / "tokenizer.json"))).training.count()


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.tokens"])
def test_a_run_never_waits_for_a_pipe(name: str, corpus: Path, tmp_path: Path) -> None:
    train(run(corpus), tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(CourseError, match="pipe"):
        train(run(corpus), tmp_path, resume=True)


@pytest.mark.parametrize("name", ["train.tokens", "validation.tokens"])
def test_text_that_was_changed_is_detected(name: str, corpus: Path, tmp_path: Path) -> None:
    """Two blocks are swapped, so all tokens are still in the vocabulary."""
    chosen = run(corpus)
    save_run(chosen, tmp_path, prepare_data(chosen, tmp_path))
    open_data(chosen, tmp_path)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-200] + data[-100:] + data[-200:-100])
    with pytest.raises(CourseError, match="is damaged or was changed"):
        open_data(chosen, tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"version": 9}', "has format 9, but this code reads format 1"),
        ('{"version": 1, "steps": 5}', "give a value for batch, seq_len"),
    ],
)
def test_unreadable_settings_are_reported(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CourseError, match=told):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "train.tokens", "validation.tokens"])
def test_a_new_run_overwrites_no_file(name: str, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(CourseError, match=f"{name} already exists and would be overwritten"):
        train(run(corpus), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path != corpus} == {name: "mine"}


def test_a_run_that_ends_before_its_first_step_leaves_nothing(corpus: Path, tmp_path: Path) -> None:
    """The causes are a kill during preparation, a window that is longer than the text, and a signal."""
    folder = tmp_path / "run"
    (folder / ".text-killed").mkdir(parents=True)
    with pytest.raises(CourseError, match="use a longer text or shorter windows"):
        train(run(corpus, training=replace(TRAINING, seq_len=10**6)), folder)
    assert list(folder.iterdir()) == []
    with pytest.MonkeyPatch.context() as patch:
        stop = "lmcourse.training.command.train_run.make_trainer"
        patch.setattr(stop, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(StoppedError):
            train(run(corpus), folder)
    assert list(folder.iterdir()) == []
    assert train(run(corpus), folder).step == 4


@pytest.mark.parametrize("lost", ["empty", "dangling", "never any but the last"])
def test_a_run_does_not_resume_without_its_checkpoints(lost: str, corpus: Path, tmp_path: Path) -> None:
    """This happens if the disk with the checkpoints is not mounted. The metrics are kept."""
    every = None if lost.startswith("never") else 2
    folder, chosen = tmp_path / "run", run(corpus, training=replace(TRAINING, checkpoint_every=every), held_out=0.0)
    train(chosen, folder)
    shutil.rmtree(folder / "checkpoints")
    if lost == "empty":
        (folder / "checkpoints").mkdir()
    elif lost == "dangling":
        (folder / "checkpoints").symlink_to(tmp_path / "nowhere")
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(CourseError, match=r"checkpoints (has no checkpoint|cannot be read).*mount or restore it"):
        train(chosen, folder, resume=True)
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_run_stopped_before_its_first_checkpoint_starts_again(corpus: Path, tmp_path: Path) -> None:
    def stop(record: Record) -> None:
        if record["step"] == 3:
            raise KeyboardInterrupt

    folder, chosen = tmp_path / "run", run(corpus, held_out=0.0)
    with pytest.raises(KeyboardInterrupt):
        train(chosen, folder, callbacks=[stop])
    before = (folder / "metrics.jsonl").read_bytes()
    assert train(chosen, folder, resume=True).step == 4
    assert (folder / "metrics.jsonl.old").read_bytes() == before


def test_equal_seeds_give_equal_runs(corpus: Path, tmp_path: Path) -> None:
    """This includes the weights, and does not depend on earlier random numbers."""
    weights = []
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        torch.rand(3)
        train(run(corpus, training=replace(TRAINING, seed=seed)), tmp_path / name)
        weights.append(load_trained_model(tmp_path / name).model.embedding.tokens.weight)
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


def test_a_second_ctrl_c_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that torchrun passes on counts as the same Ctrl-C."""
    seconds = 0.0
    monkeypatch.setattr("lmcourse.training.command.train_run.time.monotonic", lambda: seconds)
    with InterruptHandler() as interrupt_handler:
        interrupt_handler.finish_steps = True
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(StoppedError):
            interrupt_handler({})
        seconds = 5.0
        with pytest.raises(KeyboardInterrupt) as error:
            os.kill(os.getpid(), signal.SIGINT)
    assert error.type is KeyboardInterrupt
