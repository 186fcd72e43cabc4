"""Weights are saved and loaded bit for bit."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file, save_model

from lmcourse.base.errors import CourseError
from lmcourse.models.interop import from_hugging_face, to_hugging_face
from lmcourse.models.interop.hugging_face import import_transformers
from tests.interop.reference import TOLERANCE, batch_for, build_reference, our_logits, their_logits
from tests.interop.samples import SAMPLES, VOCAB_SIZE

from .test_parity import EVERY_SAMPLE

pytestmark = pytest.mark.prove

SHARD = 60_000
"""Bytes per file, so few that a tiny model has several files."""


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    first, second = dict(a.named_parameters()), dict(b.named_parameters())
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def load_in_transformers(folder, sample):
    transformers = import_transformers()
    kind = transformers.AutoModelForSeq2SeqLM if sample.model_type == "t5" else transformers.AutoModelForCausalLM
    model, report = kind.from_pretrained(folder, attn_implementation=sample.attention, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[problem], f"{problem}: {report[problem]}"
    return model.eval()


@pytest.mark.parametrize(
    ("sample", "limit"),
    [
        *((sample, 10**9) for sample in SAMPLES),
        *((sample, SHARD) for sample in SAMPLES if sample.name in ("llama2", "gpt2", "t5-v1.0")),
    ],
    ids=lambda each: each if isinstance(each, int) else each.name,
)
def test_exported_folders_load_again(sample, limit, pairs, tmp_path) -> None:
    pair = pairs(sample.name)
    to_hugging_face(pair.ours, tmp_path, family=sample.model_type, shard_bytes=limit)
    files = {file.name for file in tmp_path.iterdir()}
    assert ("model.safetensors" in files) == (limit > SHARD)
    assert ("model.safetensors.index.json" in files) == (limit == SHARD)
    theirs = load_in_transformers(tmp_path, sample)
    assert same_weights(theirs, pair.theirs)
    batch = batch_for(sample)
    with torch.no_grad():
        assert torch.equal(their_logits(theirs, batch), their_logits(pair.theirs, batch))
    ours = from_hugging_face(tmp_path)
    assert same_weights(ours, pair.ours)
    assert str(ours.config) == str(pair.ours.config)


@EVERY_SAMPLE
def test_a_folder_written_by_transformers_loads(sample, pairs, tmp_path) -> None:
    pair = pairs(sample.name)
    pair.theirs.save_pretrained(tmp_path, max_shard_size=SHARD)
    if sample.name == "t5-v1.1":
        # transformers 5 writes tie_word_embeddings=true here and would tie the weights again that it has just untied.
        settings = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**settings, "tie_word_embeddings": False}))
    assert same_weights(from_hugging_face(tmp_path), pair.ours)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_dtype_is_kept(dtype, tmp_path) -> None:
    sample = SAMPLES[0]
    theirs = build_reference(sample).to(dtype)
    ours = from_hugging_face(theirs)
    assert {parameter.dtype for parameter in ours.parameters()} == {dtype}
    to_hugging_face(ours, tmp_path)
    assert same_weights(load_in_transformers(tmp_path, sample), theirs)
    assert same_weights(from_hugging_face(tmp_path), ours)


@EVERY_SAMPLE
def test_a_folder_written_by_save_model_loads(sample, tmp_path) -> None:
    """The file stores a tied weight under the first of its names in the alphabet, which is not the embedding's."""
    theirs, batch = (
        build_reference(replace(sample, settings={**sample.settings, "tie_word_embeddings": True})),
        batch_for(sample),
    )
    theirs.config.save_pretrained(tmp_path)
    save_model(theirs, str(tmp_path / "model.safetensors"))
    ours = from_hugging_face(tmp_path)
    torch.testing.assert_close(our_logits(ours, batch), their_logits(theirs, batch), rtol=0, atol=TOLERANCE)


def change_weights(folder, changed) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, **changed(weights)}, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("name", ["gpt2", "gemma", "t5-v1.0"])
def test_a_tied_head_with_other_numbers_is_untied(name, pairs, tmp_path, caplog) -> None:
    """transformers does the same."""
    pair, sample = pairs(name), next(each for each in SAMPLES if each.name == name)
    pair.theirs.save_pretrained(tmp_path)
    change_weights(tmp_path, lambda weights: {"lm_head.weight": 0.1 * torch.randn(VOCAB_SIZE, 60)})
    caplog.clear()
    ours, theirs, batch = from_hugging_face(tmp_path), load_in_transformers(tmp_path, sample), batch_for(sample)
    (line,) = (record.getMessage() for record in caplog.records if record.name.startswith("lmcourse"))
    assert line.startswith(f"{sample.model_type}: config.json ties lm_head.weight to ")
    torch.testing.assert_close(our_logits(ours, batch), their_logits(theirs, batch), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("part", ["norm", "lm_head", "embed", "mlp", "layers.1."])
@pytest.mark.parametrize("told", [{}, {"dtype": None}, {"dtype": None, "torch_dtype": "float16"}], ids=str)
def test_weights_of_two_dtypes_load_in_one(part, told, pairs, tmp_path, caplog) -> None:
    """It is the configuration's, or else that of the first weight, as in transformers."""
    pairs("llama2").theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))
    change_weights(tmp_path, lambda weights: {key: each.bfloat16() for key, each in weights.items() if part in key})
    theirs = import_transformers().AutoModelForCausalLM.from_pretrained(tmp_path)
    caplog.clear()
    ours, batch = from_hugging_face(tmp_path), batch_for(SAMPLES[0])
    assert {parameter.dtype for parameter in ours.parameters()} == {theirs.dtype}
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("llama: the weights are in ")
    with torch.no_grad():
        far = (our_logits(ours, batch) - their_logits(theirs, batch)).abs().max()
    assert far < (TOLERANCE if theirs.dtype == torch.float32 else 0.3)


@EVERY_SAMPLE
def test_export_fills_a_model_of_transformers(sample, pairs) -> None:
    pair, other = pairs(sample.name), build_reference(sample, seed=5)
    assert not same_weights(other, pair.theirs)
    to_hugging_face(pair.ours, other)
    assert same_weights(other, pair.theirs)


def test_a_smaller_export_removes_files_of_a_larger_one(pairs, tmp_path) -> None:
    large, small = pairs("llama2").ours, pairs("gpt2").ours
    to_hugging_face(large, tmp_path, shard_bytes=SHARD)
    to_hugging_face(small, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    assert same_weights(from_hugging_face(tmp_path), small)


def test_a_failed_export_does_not_change_the_folder(pairs, tmp_path, monkeypatch) -> None:
    to_hugging_face(pairs("gpt2").ours, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("lmcourse.models.interop.convert.save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        to_hugging_face(pairs("llama2").ours, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_family_is_found(pairs, tmp_path) -> None:
    for name in ("gpt2", "bloom", "gemma2", "t5-v1.1", "falcon-40b"):
        to_hugging_face(pairs(name).ours, tmp_path / name, tokens={"eos_token_id": 3})
        settings = json.loads((tmp_path / name / "config.json").read_text())
        assert settings["model_type"] == pairs(name).theirs.config.model_type
        assert settings["eos_token_id"] == 3


def test_old_files_without_the_models_prefix_load(pairs, tmp_path) -> None:
    """GPT-2's original file lacks the prefix "transformer." and has masks among its weights."""
    pair = pairs("gpt2")
    to_hugging_face(pair.ours, tmp_path)
    file = tmp_path / "model.safetensors"
    weights = {name.removeprefix("transformer."): weight for name, weight in load_file(file).items()}
    weights["h.0.attn.bias"] = torch.ones(1, 1, 4, 4).tril()
    weights["lm_head.weight"] = weights["wte.weight"].clone()
    save_file(weights, file)
    assert same_weights(from_hugging_face(tmp_path), pair.ours)


INDEX = "model.safetensors.index.json"
NO_OBJECT = "is damaged: it is not a JSON object but a"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("config.json", "[]", f"config.json {NO_OBJECT}"),
        ("config.json", "{", "config.json"),
        (INDEX, "null", f"{INDEX} {NO_OBJECT}"),
        (INDEX, "{}", "does not list a file for every weight"),
        ("model-00002-*", None, "model-00002-"),
        ("model-00002-*", "cut off", "model-00002-"),
    ],
)
def test_a_missing_or_damaged_file_is_named(name, content, told, pairs, tmp_path) -> None:
    to_hugging_face(pairs("llama2").ours, tmp_path, shard_bytes=SHARD)
    (file,) = tmp_path.glob(name)
    file.unlink()
    if content is not None:
        file.write_text(content)
    with pytest.raises(CourseError, match=told) as caught:
        from_hugging_face(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../other/model.safetensors", "/etc/passwd", "..\\\\model.safetensors", "", ".", ".."]
)
def test_an_index_that_names_a_file_elsewhere_is_rejected(name, pairs, tmp_path) -> None:
    to_hugging_face(pairs("llama2").ours, tmp_path / "model", shard_bytes=SHARD)
    shutil.copytree(tmp_path / "model", tmp_path / "other")
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(CourseError, match=r"lists .*, which is not a file in this folder") as caught:
        from_hugging_face(tmp_path / "model")
    assert "\n" not in str(caught.value)
