"""`lmcourse generate` continues a text with a trained model."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lmcourse.cli import main
from lmcourse.inference.generate import generate
from lmcourse.inference.weight_only import narrow_weights
from lmcourse.training.checkpoint_format import MANIFEST, MODEL
from lmcourse.training.trained_model import load_trained_model
from tests.cli.tiny import FLAGS, STEPS, typed, write_corpus

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with several checkpoints."""
    folder = tmp_path_factory.mktemp("generate")
    corpus = write_corpus(folder / "stories")
    often = ["--checkpoint-every", "2", "--evaluate-every", "3", "--keep-checkpoints", "9", "--json"]
    assert main(["train", "--corpus", str(corpus), "--out", str(folder / "run"), *FLAGS, *often]) == 0
    return folder / "run"


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may change."""
    return Path(shutil.copytree(run, tmp_path / "copy"))


def answer(capsys: pytest.CaptureFixture[str], folder: Path, *words: str, prompt: str = "One ") -> dict[str, Any]:
    """Return the JSON document about a generated text."""
    assert main(["generate", "--checkpoint", str(folder), "--prompt", prompt, *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def place(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"step-{step:08}"


def told(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Return the line that reports a mistake."""
    assert main(["generate", *map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_a_seed_gives_the_same_text(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (answer(capsys, run, "--seed", seed) for seed in ("1", "1", "2"))
    assert first["text"] == again["text"] != other["text"]
    drawn = answer(capsys, run)
    assert drawn["text"] == answer(capsys, run, "--seed", str(drawn["seed"]))["text"]


def test_text_output_equals_the_json_text(course: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text of an untrained byte model is full of broken characters."""
    words = ["--seed", "3", "--tokens", "12"]
    found = answer(capsys, run, *words)
    shown = typed(course, "generate", "--checkpoint", run, "--prompt", "One ", *words)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == "One " + found["text"] + "\n"
    assert shown.stderr.startswith("12 tokens in ")
    assert "tokens/s; seed 3, model of step " in shown.stderr
    assert found["tokens"] == 12
    assert found["tokens_per_second"] == found["tokens"] / found["seconds"] > 0


@pytest.mark.parametrize("flags", [["--temperature", "0"], ["--top-k", "1"], ["--top-p", "1e-9"], ["--min-p", "1"]])
def test_temperature_0_chooses_the_most_likely_token(
    flags: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The expected tokens are computed one by one, without a cache."""
    trained = load_trained_model(run)
    tokens = trained.tokenizer.encode("One ")
    for _ in range(8):
        tokens.append(int(trained.model(torch.tensor([tokens]))[0, -1].argmax()))
    found = answer(capsys, run, *flags, "--tokens", "8")
    assert found["text"] == trained.tokenizer.decode(tokens[4:])


def test_generate_stops_when_the_context_is_full(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, run)["tokens"] == 16 - len("One ")


def test_the_prompt_may_come_from_stdin(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Two é"))
    assert answer(capsys, run, "--temperature", "0", prompt="-")["prompt"] == "Two é"
    expected = answer(capsys, run, "--temperature", "0", prompt="Two é")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Two é"))
    assert answer(capsys, run, "--temperature", "0", prompt="-")["text"] == expected["text"]


def test_a_prompt_in_utf_16_is_rejected(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bytes_in = io.BytesIO("Two".encode("utf-16"))  # read as Python reads stdin in the C locale
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(bytes_in, encoding="utf-8", errors="surrogateescape"))
    assert "the prompt on stdin is not UTF-8" in told(capsys, "--checkpoint", str(run), "--prompt", "-")


def test_generate_loads_the_best_the_last_or_a_named_checkpoint(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The losses of the run are changed, so that the best checkpoint is not the last."""
    metrics = copy / "metrics.jsonl"
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    for record in records:
        if "validation_loss" in record:
            record["validation_loss"] = abs(record["step"] - 6) + 1.0
    metrics.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert answer(capsys, copy)["step"] == 6
    assert answer(capsys, copy, "--last")["step"] == STEPS
    assert answer(capsys, place(copy, 4))["step"] == 4
    shutil.rmtree(place(copy, 6))
    assert answer(capsys, copy)["step"] == STEPS
    metrics.unlink()
    assert answer(capsys, copy)["step"] == STEPS


def test_a_moved_run_works_without_its_training_text(copy: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train.tokens", "validation.tokens"):
        (copy / name).unlink()
    assert answer(capsys, copy, "--seed", "1")["text"] == answer(capsys, run, "--seed", "1")["text"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--prompt", ""], "prompt 0 is empty"),
        (["--prompt", "x" * 16], "the prompt has 16 tokens, which fill the model's context of 16"),
        (["--prompt", "x", "--tokens", "16"], "longer than the model's context of 16"),
        (["--prompt", "x", "--tokens", "0"], "must be at least 1, not 0"),
        (["--prompt", "x", "--temperature", "-1"], "a temperature must be positive and finite, not -1"),
        (["--prompt", "x", "--top-p", "2"], "not 2"),
        (["--prompt", "x", "--seed", "-1"], "--seed must be from 0 to 2⁶³ − 1, not -1"),
        (["--prompt", "x", "--seed", str(2**63)], "--seed must be from 0 to 2⁶³ − 1"),
    ],
)
def test_impossible_requests_are_reported_in_one_line(
    words: list[str], line: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line in told(capsys, "--checkpoint", run, *words)


@pytest.mark.parametrize("name", [f"checkpoints/step-{STEPS:08}/{MODEL}", "tokenizer.json", "run.json"])
def test_a_damaged_file_is_named(name: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / name).write_bytes((copy / name).read_bytes()[:-9])
    err = told(capsys, "--checkpoint", place(copy, STEPS), "--prompt", "x")
    assert f"{copy / name} is damaged" in err


def test_a_damaged_best_checkpoint_is_reported_with_an_alternative(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default the best checkpoint is used. The last one is damaged, too, so it is not suggested."""
    best = Path(answer(capsys, copy)["checkpoint"])
    steps = sorted(path.name for path in (copy / "checkpoints").iterdir())
    for path in {best, place(copy, STEPS)}:
        (path / MODEL).write_bytes(b"")
    whole = max(path for path in (copy / "checkpoints").iterdir() if path not in (best, place(copy, STEPS)))
    line = told(capsys, "--checkpoint", copy, "--prompt", "x")
    damaged = f"{best / MODEL} is damaged: its contents do not match the checksum"
    assert line == f"lmcourse: {damaged}; {whole} is whole: take that as --checkpoint\n"
    assert answer(capsys, whole)["tokens"] > 0
    for name in steps:
        (copy / "checkpoints" / name / MODEL).write_bytes(b"")
    assert "no other checkpoint of the run is whole" in told(capsys, "--checkpoint", copy, "--prompt", "x")


@pytest.mark.parametrize("name", [MODEL, MANIFEST, "tokenizer.json", "run.json"])
def test_a_missing_file_is_named(name: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in copy.rglob(name):
        path.unlink()
    assert name in told(capsys, "--checkpoint", copy, "--prompt", "x")


def test_a_folder_that_is_not_a_run_is_reported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = tmp_path / "nowhere"
    assert f"there is no folder {nowhere}" in told(capsys, "--checkpoint", nowhere, "--prompt", "x")
    assert "a path is empty (is a variable not set?)" in told(capsys, "--checkpoint", "", "--prompt", "x")
    assert "is neither a run nor a checkpoint" in told(capsys, "--checkpoint", tmp_path, "--prompt", "x")
    shutil.copy(run / "run.json", tmp_path)
    assert "has no checkpoint: train for longer" in told(capsys, "--checkpoint", tmp_path, "--prompt", "x")


def test_settings_of_another_model_are_reported(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(settings | {"preset": "micro"}))
    assert "does not fit the model in" in told(capsys, "--checkpoint", copy, "--prompt", "x")


def test_a_character_without_a_token_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write_corpus(tmp_path / "stories")
    words = ["train", "--corpus", str(corpus), "--out", str(tmp_path / "run"), *FLAGS]
    assert main([*words, "--tokenizer", "characters", "--steps", "2"]) == 0
    capsys.readouterr()
    assert "has no token for 'ß'" in told(capsys, "--checkpoint", tmp_path / "run", "--prompt", "Fuß")


def test_generate_works_with_int8_and_bf16_weights(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, run, "--weights", "int8", "--temperature", "0")["text"]
    trained = load_trained_model(run)
    narrow, prompt = narrow_weights(trained.model, "int8"), trained.tokenizer.encode("One ")
    [tokens] = generate(narrow, [prompt], trained.run.training.seq_len - len(prompt))
    assert text == trained.tokenizer.decode(tokens)


def test_without_a_compiler_one_line_reports_it(run: Path, tmp_path: Path) -> None:
    """The compiler's cache must be empty, because cached programs do not need a compiler."""
    machine = {**os.environ, "PATH": "", "CXX": "", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    words = ["generate", "--checkpoint", str(run), "--prompt", "One ", "--tokens", "2", "--compile"]
    done = subprocess.run([sys.executable, "-m", "lmcourse", *words], env=machine, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "g++" in done.stderr
