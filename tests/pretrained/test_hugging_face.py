"""Export trained models to folders of `transformers` and load such folders: both generate the same tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.cli.generating import as_text
from lmcourse.data.tokenizers import ByteTokenizer, CharacterTokenizer, LibraryTokenizer, Tokenizer, open_any_tokenizer
from lmcourse.inference.generate import generate
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.pretrained import load_pretrained
from lmcourse.pretrained.hugging_face import export_model, load_published_model
from lmcourse.training.command.main import parse
from lmcourse.training.command.settings import resolve_run
from lmcourse.training.trained_model import TrainedModel, load_trained_model

TEXT = "Two birds , 1 nest .\n\n  é e\u0301 漢 😀\r\n don't do  not"
"""A text with spaces before punctuation, a combining accent, and characters of one to four bytes."""
CHARACTERS = "".join(sorted(set(TEXT)))


@pytest.fixture(scope="module")
def transformers() -> Any:
    """The library transformers, offline."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        return pytest.importorskip("transformers", reason="pip install 'lmcourse[parity]'")


def trained_with(tokenizer: Tokenizer) -> TrainedModel:
    """Return the pretrained model's preset with another tokenizer and random weights."""
    there = load_pretrained()
    torch.manual_seed(1)
    model = Transformer(there.run.model_config(tokenizer.vocab_size))
    initialize(model)
    return replace(there, model=model.eval(), tokenizer=tokenizer)


def trained(kind: str) -> TrainedModel:
    if kind == "bpe":
        return load_pretrained()
    return trained_with(ByteTokenizer() if kind == "bytes" else CharacterTokenizer(CHARACTERS))


def trained_by_flags(*flags: str) -> TrainedModel:
    """Return the model that `lmcourse train` makes with these flags, with random weights and byte tokens."""
    there, options = load_pretrained(), parse([*flags, "--seq-len", "64"], "train")
    run = resolve_run(options)
    torch.manual_seed(1)
    model = Transformer(run.model_config(ByteTokenizer().vocab_size))
    initialize(model)
    return replace(there, run=run, model=model.eval(), tokenizer=ByteTokenizer())


def their_greedy(model: Any, prompt: torch.Tensor, count: int) -> list[int]:
    """Return prompt and answer. The mask is needed, because otherwise tokens equal to the padding token would be
    ignored."""
    visible = torch.ones_like(prompt)
    found = model.generate(prompt, attention_mask=visible, max_new_tokens=count, do_sample=False, pad_token_id=0)
    return [int(token) for token in found[0]]


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["bpe", "bytes", "characters"])
def test_transformers_loads_model_and_tokenizer(kind: str, transformers: Any, tmp_path: Path) -> None:
    ours, folder = trained(kind), tmp_path / "out"
    assert export_model(ours, folder) == "llama"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = ours.tokenizer.encode(TEXT)
    assert tokenizer(TEXT)["input_ids"] == tokens
    assert tokenizer.decode(tokens) == TEXT
    assert len(tokenizer) == ours.tokenizer.vocab_size
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = torch.tensor([tokens])
    with torch.no_grad():
        torch.testing.assert_close(model(prompt).logits, ours.model(prompt), atol=5e-5, rtol=0)
    written = their_greedy(model, prompt, 6)[len(tokens) :]
    assert written == generate(ours.model, [tokens], 6)[0]


@pytest.fixture(scope="module")
def default_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run by `lmcourse train` with default settings of the model."""
    folder = tmp_path_factory.mktemp("default")
    (folder / "text.txt").write_text("".join(f"{number} owls sleep in the tree. " for number in range(300)))
    words = ["--corpus", str(folder / "text.txt"), "--vocab-size", "270", "--steps", "3"]
    assert main(["train", *words, "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.mark.prove
def test_a_default_model_is_written_and_read_by_course_and_transformers(
    default_run: Path, transformers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["export", "--checkpoint", str(default_run), "--out", str(out)]) == 0
    assert "written as one of the family qwen3." in capsys.readouterr().out
    ours = load_trained_model(default_run)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    model = transformers.AutoModelForCausalLM.from_pretrained(out)
    prompt = tokenizer("7 owls", return_tensors="pt")["input_ids"]
    assert prompt[0].tolist() == ours.tokenizer.encode("7 owls")
    with torch.no_grad():
        torch.testing.assert_close(model(prompt).logits, ours.model(prompt), atol=5e-5, rtol=0)
    written = tokenizer.decode(their_greedy(model, prompt, 12))
    words = ["--prompt", "7 owls", "--tokens", "12", "--temperature", "0", "--json"]
    for checkpoint in (default_run, out):
        assert main(["generate", "--checkpoint", str(checkpoint), *words]) == 0
        assert "7 owls" + json.loads(capsys.readouterr().out)["text"] == written


WITHOUT = [
    (
        ("--value-residual", "--logit-cap", "15"),
        "train with --no-value-residual and without --logit-cap, and it is written as qwen3",
        ("--no-value-residual",),
    ),
    (
        ("--recipe", "adamw", "--feed-forward", "relu2", "--logit-cap", "15"),
        "train without --logit-cap, and it is written as arcee",
        ("--recipe", "adamw", "--feed-forward", "relu2"),
    ),
]


@pytest.mark.prove
@pytest.mark.parametrize(("flags", "line", "instead"), WITHOUT, ids=[" ".join(flags) for flags, _, _ in WITHOUT])
def test_unsupported_settings_are_named_and_without_them_it_exports(
    flags: tuple[str, ...], line: str, instead: tuple[str, ...], transformers: Any, tmp_path: Path
) -> None:
    with pytest.raises(CourseError) as caught:
        export_model(trained_by_flags(*flags), tmp_path / "out")
    assert str(caught.value).endswith(f"; {line}")
    assert "\n" not in str(caught.value)
    ours = trained_by_flags(*instead)
    assert line.endswith(export_model(ours, tmp_path / "out"))
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    prompt = torch.tensor([ours.tokenizer.encode("an owl")])
    with torch.no_grad():
        torch.testing.assert_close(model(prompt).logits, ours.model(prompt), atol=5e-5, rtol=0)


def test_export_command_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "--checkpoint", "micro-python-docs", "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["family"], told["step"], told["out"]) == ("llama", load_pretrained().step, str(tmp_path / "out"))
    names = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert main(words) == 2
    assert capsys.readouterr().err == f"lmcourse: {tmp_path / 'out'} already exists: choose another --out\n"


def test_a_model_that_no_family_can_express_leaves_no_files(tmp_path: Path) -> None:
    palm = replace(load_pretrained().run, preset="palm-8b").model_config(8)
    with torch.device("meta"):
        model = Transformer(palm)
    with pytest.raises(
        CourseError, match="no model family of transformers can store this model; the closest is cohere"
    ):
        export_model(replace(load_pretrained(), model=model), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def published(transformers: Any, folder: Path) -> Any:
    """Save a model whose tokenizer writes spaces as ▁, adds a first space, and puts a token before each text."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    made.train_from_iterator(
        ["the owl sleeps and the fox sleeps"] * 3,
        tokenizers.trainers.BpeTrainer(vocab_size=60, special_tokens=["<s>", "</s>"], show_progress=False),
    )
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.mark.prove
def test_a_foreign_model_generates_the_text_of_transformers(
    transformers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = published(transformers, tmp_path)
    prompt = tokenizer("the owl", return_tensors="pt")["input_ids"]
    written = their_greedy(model, prompt, 20)
    words = ["--prompt", "the owl", "--tokens", "20", "--temperature", "0", "--json"]
    assert main(["generate", "--checkpoint", str(tmp_path), *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "the owl" + told["text"] == tokenizer.decode(written, skip_special_tokens=True)
    found = load_published_model(tmp_path)
    assert isinstance(found.tokenizer, LibraryTokenizer)
    assert found.tokenizer.encode("the owl") == prompt[0].tolist()
    assert found.stop == (1,)


@pytest.mark.prove
def test_generation_stops_at_the_models_stop_token(
    transformers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third generated token is declared to be the stop token."""
    published(transformers, tmp_path)
    found = load_published_model(tmp_path)
    prompt = found.tokenizer.encode("the owl")
    tokens = generate(found.model, [prompt], 8)[0]
    end = next(token for token in tokens[1:] if token != tokens[0])
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "eos_token_id": [end]}))
    words = ["--prompt", "the owl", "--tokens", "8", "--temperature", "0", "--json"]
    assert main(["generate", "--checkpoint", str(tmp_path), *words]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == tokens.index(end)


@pytest.mark.prove
def test_spaces_between_printed_pieces_are_kept(transformers: Any, tmp_path: Path) -> None:
    """Each token alone would decode without its leading space."""
    tokenizer = published(transformers, tmp_path) and open_any_tokenizer(tmp_path / "tokenizer.json")
    tokens = tokenizer.encode("the owl sleeps")
    assert "".join(as_text(tokenizer, tokens)) == "the owl sleeps"
    begin = tokenizer.decode(tokens[:2])
    assert begin + "".join(as_text(tokenizer, tokens[2:], tokens[:2])) == "the owl sleeps"


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json: download it too"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json cannot be read"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors: download it too"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "a pickle can run code"),
        (lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs."), "run `git lfs pull`"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), "nested too deeply"),
        (lambda folder: (folder / "generation_config.json").write_text('{"eos_token_id": ""}'), "eos_token_id must be"),
    ],
)
def test_a_damaged_folder_is_reported_in_one_line(
    spoil: Any, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export_model(load_pretrained(), tmp_path / "out")
    spoil(tmp_path / "out")
    assert main(["generate", "--checkpoint", str(tmp_path / "out"), "--prompt", "x"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert line in err


def test_stop_tokens_of_both_files_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    export_model(load_pretrained(), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    (tmp_path / "out" / "config.json").write_text(json.dumps({**config, "eos_token_id": 50_256}))
    (tmp_path / "out" / "generation_config.json").write_text('{"eos_token_id": [7, 9]}')
    assert load_published_model(tmp_path / "out").stop == (7, 9)
    assert "eos_token_id 50256 is outside the vocabulary of 512 tokens" in caplog.text


@pytest.mark.prove
def test_an_encoder_decoder_cannot_continue_a_text(transformers: Any, tmp_path: Path) -> None:
    sizes = {"vocab_size": 8, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)).save_pretrained(tmp_path)
    with pytest.raises(CourseError, match="has an encoder–decoder"):
        load_published_model(tmp_path)
