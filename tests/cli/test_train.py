"""Test `lmcourse train` from the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from lmcourse.accounting.counter import counted_flops
from lmcourse.cli import main
from lmcourse.training.checkpoint_format import MODEL
from lmcourse.training.trained_model import load_trained_model
from tests.cli.tiny import FLAGS, STEPS, command, environment, losses, settings, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of stories."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "stories")


@pytest.fixture(scope="module")
def whole(one_thread: None, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of an uninterrupted run, and its output."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    often = ["--checkpoint-every", "3", "--evaluate-every", "4", "--keep-checkpoints", "9"]
    with redirect_stdout(StringIO()) as out:
        assert main(["train", "--corpus", str(corpus), "--out", str(folder), *FLAGS, *often, "--json"]) == 0
    return folder, json.loads(out.getvalue())


def checkpoint(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"step-{step:08}"


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    """Return the JSON document of a successful command."""
    status = main([*map(str, words), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out)


def test_a_run_writes_the_files_that_the_docs_list(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, told = whole
    names = {"run.json", "tokenizer.json", "train.tokens", "validation.tokens", "metrics.jsonl", "checkpoints"}
    assert {path.name for path in folder.iterdir()} == names
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == list(range(1, STEPS + 1))
    assert all(record["loss"] > 0 and record["tokens_per_second"] > 0 for record in records)
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {
        f"step-{step:08}" for step in (3, 4, 6, STEPS)
    }
    assert (told["step"], told["tokens"], told["reason"]) == (STEPS, STEPS * 2 * 16, "steps")
    validation = {record["step"]: record["validation_loss"] for record in records if "validation_loss" in record}
    assert told["best_loss"] == min(validation.values()) == validation[told["best_step"]]
    assert Path(told["checkpoint"]) == checkpoint(folder, STEPS)


def test_a_resumed_run_equals_an_uninterrupted_run(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run is killed after step 3, and later steps are lost. `--out` is enough to resume it."""
    folder, killed = whole[0], tmp_path / "killed"
    shutil.copytree(folder, killed)
    for step in (4, 6, STEPS):
        shutil.rmtree(checkpoint(killed, step))
    assert main(["train", "--resume", "--out", str(killed)]) == 0
    assert "going on after step 3" in capsys.readouterr().out
    assert losses(killed) == losses(folder)
    weights = [(checkpoint(one, STEPS) / MODEL).read_bytes() for one in (folder, killed)]
    assert weights[0] == weights[1]


@pytest.mark.prove
def test_ctrl_c_saves_a_checkpoint_without_losing_steps(
    course: Path, corpus: Path, one_thread: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["train", "--corpus", corpus, "--schedule", "constant", "--held-out", "0", *FLAGS, "--out"]
    stopped, straight = tmp_path / "stopped", tmp_path / "straight"
    metrics = stopped / "metrics.jsonl"
    process = subprocess.Popen(
        command(*base, stopped, "--steps", "1000000"),
        cwd=course,
        env=environment(course),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 0):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == ""
    assert "stopping after this step" in out
    assert "Stopped by Ctrl-C: step " in out.splitlines()[-1]
    last = losses(stopped)[-1][0]
    assert checkpoint(stopped, last).is_dir()
    for run in (["train", "--resume", "--out", stopped], [*base, straight]):
        assert printed(capsys, *run, "--steps", str(last + 2))["step"] == last + 2
    assert losses(stopped) == losses(straight)


@pytest.mark.prove
def test_module_accepts_the_same_flags(course: Path, corpus: Path, tmp_path: Path) -> None:
    """`torchrun -m lmcourse.training` starts this module."""
    words = ["--corpus", str(corpus), *FLAGS, "--out", str(tmp_path), "--steps", "0"]
    run = subprocess.run(
        [sys.executable, "-m", "lmcourse.training", *words],
        capture_output=True,
        text=True,
        env=environment(course),
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "lmcourse: steps must be at least 1, not 0\n")


def test_settings_in_a_file_equal_flags(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Flags override the file."""
    file = tmp_path / "run.toml"
    file.write_text(
        f'corpus = "{corpus.as_posix()}"\ntokenizer = "bytes"\nseq_len = 16\ngrad_clip = "none"\n'
        "[training]\nbatch = 2\nsteps = 50\nbetas = [0.8, 0.9]\nschedule = 'wsd'\ndecay_steps = 1\n"
        "[parallel]\npipeline_schedule = 'gpipe'\n"
    )
    told = printed(capsys, "train", "--config", file, "--steps", "2", "--out", tmp_path / "run")
    assert told["step"] == 2
    saved = settings(tmp_path / "run")
    wanted = {"steps": 2, "batch": 2, "betas": [0.8, 0.9], "schedule": "wsd", "decay_steps": 1, "grad_clip": None}
    assert {name: saved[name] for name in wanted} == wanted
    assert saved["pipeline_schedule"] == "gpipe"


def test_more_steps_extend_a_finished_run(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = tmp_path / "longer"
    shutil.copytree(whole[0], longer)
    assert printed(capsys, "train", "--resume", "--out", longer, "--steps", "10")["step"] == 10
    assert settings(longer)["steps"] == 10
    assert printed(capsys, "train", "--resume", "--out", longer)["step"] == 10


@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_train_accepts_every_kind_of_tokenizer(
    kind: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model's vocabulary has the size of the tokenizer's."""
    words = ["--corpus", corpus, *FLAGS, "--tokenizer", kind, "--vocab-size", "300", "--steps", "2", "--held-out", "0"]
    told = printed(capsys, "train", *words, "--out", tmp_path / "run")
    assert (told["step"], told["best_loss"]) == (2, None)
    trained = load_trained_model(tmp_path / "run")
    assert trained.model.config.vocab_size == trained.tokenizer.vocab_size
    assert trained.tokenizer.decode(trained.tokenizer.encode("One 漢 or é.")) == "One 漢 or é."


def test_a_dry_run_is_right_and_writes_nothing(
    corpus: Path, whole: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    words = ["train", "--corpus", corpus, *FLAGS, "--grad-accum-steps", "3", "--out", tmp_path / "run", "--dry-run"]
    told = printed(capsys, *words)
    assert sorted(tmp_path.iterdir()) == before
    trained = load_trained_model(whole[0])
    parameters = sum(parameter.numel() for parameter in trained.model.parameters())
    assert told["parameters"]["total"] == parameters
    assert told["memory"]["weights"] == 4 * parameters
    assert told["memory"]["optimizer moments"] == 8 * parameters
    counted = counted_flops(trained.model.config, 6, 16, backward=True).total
    assert told["flops_per_step"] == counted
    assert told["flops"] == STEPS * counted
    assert told["tokens"] == STEPS * 3 * 2 * 16
    assert (told["needed"], told["fits"]) == (told["memory"]["total"], True)
    assert told["epochs"] == told["tokens"] / told["corpus_tokens"]
    assert told["seconds"] == pytest.approx(told["flops"] / (told["mfu"] * told["peak"]["flops_per_second"]))
    assert main(list(map(str, words))) == 0
    out = capsys.readouterr().out
    assert f"{parameters:,}" in out
    assert "It fits this machine: a step takes 0.0" in out


def test_a_dry_run_names_what_exceeds_memory(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model has 400 billion weights. It is not built, so the test is fast."""
    words = ["train", "--corpus", corpus, *FLAGS, "--preset", "llama-3.1-405b", "--dry-run"]
    told = printed(capsys, *words)
    assert told["needed"] > told["room"] > 2**30
    assert told["fits"] is False
    assert main(list(map(str, words))) == 0
    line = capsys.readouterr().out.replace("\n", " ")
    assert "It does not fit this machine" in line
    assert "--activation-checkpointing" in line


def test_a_dry_run_counts_the_training_part_of_the_corpus(
    corpus: Path, whole: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes are those of each file in the training part, and of the empty line after it."""
    told = printed(capsys, "train", "--corpus", corpus, *FLAGS, "--dry-run")
    held_out = (whole[0] / "validation.tokens").stat().st_size
    texts = [path.read_text(encoding="utf-8").rstrip("\n").encode() for path in corpus.iterdir()]
    everything = sum(len(text) + 2 for text in texts)
    assert 0 < told["corpus_tokens"] < everything
    assert everything - told["corpus_tokens"] in {len(text) + 2 for text in texts}
    assert held_out > 2 * (everything - told["corpus_tokens"])


NEW = ["--corpus", "CORPUS", "--out", "OUT"]
MISTAKES = [
    ([], "name the folder of the run: --out"),
    (["--corpus", "CORPUS", "--out", ""], "a path is empty (is a variable not set?): give a path"),
    (["--resume"], "name the run to resume: --resume --out FOLDER"),
    (["--resume", "--out", "OUT"], "has no run"),
    (["--corpus", "sinthetic", "--out", "OUT"], "Did you mean 'synthetic'?"),
    ([*NEW, "--preset", "t5-small"], "does not predict the next token"),
    ([*NEW, "--stepz", "5"], "there is no flag --stepz; the nearest is --steps (lmcourse train --help)"),
    ([*NEW, "--steps", "ten"], "steps must be a whole number, not 'ten' (lmcourse train --help)"),
    ([*NEW, "--seed", str(2**63)], "seed must be below 2⁶³"),
    ([*NEW, "--vocab-size", "255"], "vocab_size must be at least 256"),
    ([*NEW, "--held-out", "1"], "held_out must be at least 0 and below 1, not 1.0"),
    ([*NEW, "--validation-tokens", "1"], "validation_tokens must be at least 2"),
    (["--corpus", "CORPUS", "--out", "CORPUS/00.txt"], "cannot be written: File exists"),
    (["--corpus", "CORPUS", "--config", "/nowhere.toml"], "/nowhere.toml cannot be read"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES, ids=lambda item: " ".join(item) if isinstance(item, list) else "")
def test_a_mistake_is_one_line_and_leaves_no_run(
    words: list[str], told: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"CORPUS": str(corpus), "OUT": str(tmp_path / "run")}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    assert main(["train", *FLAGS, *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lmcourse: ")
    assert err.count("\n") == 1
    assert told in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "already has a run: continue it with --resume"),
        (["--resume", "--seq-len", "8"], "seq_len cannot change when a run resumes: it is 16, not 8"),
        (["--resume", "--seed", "1"], "seed cannot change"),
        (["--resume", "--preset", "micro"], "preset cannot change"),
        (["--resume", "--steps", "1"], "does not fit into a run of 1"),
    ],
)
def test_an_existing_run_is_not_overwritten(
    words: list[str], told: str, whole: tuple[Path, dict[str, Any]], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole[0]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    new = [] if "--resume" in words else ["--corpus", str(corpus), *FLAGS]
    assert main(["train", "--out", str(folder), *new, *words]) == 2
    assert told in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
