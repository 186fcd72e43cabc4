"""Every number of the whole budget equals its module's result, and the command prints it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.costs import account, estimate_performance, estimate_training_run
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout, all_reduce_bytes
from lmcourse.accounting.recipes import RECIPES, find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.cli import main
from lmcourse.cli.account_command import gib, si
from lmcourse.models.zoo import find_model

H100 = find_accelerator("h100")
MIXED = find_recipe("mixed")


LLAMA = find_model("llama-3-8b").decoder


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["account", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_inference_memory_uses_the_format_of_the_products() -> None:
    for name, width in (("fp32", 4), ("autocast", 2)):
        found = account(Workload(LLAMA, 1, 128, find_recipe(name)))
        assert found.inference is not None
        assert found.inference.parts == {"weights": width * 8_030_261_248, "KV cache": width * 128 * 65_536}


def test_encoders_cannot_generate_and_inference_recipes_cannot_train() -> None:
    bert = find_model("bert-base").decoder
    found = account(Workload(bert, 2, 128, MIXED))
    assert (found.cache, found.inference) == (None, None)
    performance = estimate_performance(Workload(bert, 2, 128, MIXED), H100)
    assert (performance.prefill, performance.decode, performance.largest_inference_batch) == (None, None, None)
    served = Workload(LLAMA, 1, 128, find_recipe("inference"))
    assert account(served).training is None
    assert estimate_performance(served, H100).largest_training_batch is None


def test_tensor_parallelism_divides_time_and_adds_the_network() -> None:
    one, eight = (
        estimate_performance(Workload(LLAMA, 1, 512, MIXED, layout=Layout(tensor=t)), H100).prefill for t in (1, 8)
    )
    assert one is not None
    assert eight is not None
    network = 32 * 2 * all_reduce_bytes(512 * 4096 * 2, 8) / 450e9
    assert eight.seconds["network"] == pytest.approx(network)
    assert eight.seconds.total == pytest.approx(one.seconds.total / 8 + network)
    assert one.limits["feed-forward"] == "arithmetic"


def test_json_has_exact_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--model", "llama3-8b", "--gpu", "h100", "--gpus", "16", "--tensor-parallel", "8", "--zero", "1")
    found = answer(capsys, *words, "--batch", "2", "--seq-len", "4096", "--tokens", "15e12")
    assert found["model"] == "llama-3-8b"
    assert found["accelerator"] == "h100-sxm"
    assert found["account"]["parameters"]["total"] == 8_030_261_248
    assert found["account"]["flops"]["forward"]["total"] == training_flops(LLAMA, 2, 4096).forward.total
    assert found["account"]["cache"] == {"full": 2 * 4096 * 131_072, "total": 2 * 4096 * 131_072}
    layout = Layout(data=2, tensor=8, zero=1)
    assert found["account"]["training"]["total"] == training_memory(LLAMA, 2, 4096, MIXED, layout=layout).total
    assert found["layout"] == {"data": 2, "tensor": 8, "pipeline": 1, "zero": 1, "devices": 16}
    assert isinstance(found["performance"]["decode"]["seconds"]["total"], float)
    assert found["run"]["tokens"] == 15 * 10**12
    assert isinstance(found["run"]["flops"], int)


def test_account_without_hardware_prints_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--model", "gpt-2")
    assert (found["batch"], found["seq_len"], found["recipe"]) == (1, 1024, "mixed")
    assert (found["accelerator"], found["performance"], found["run"]) == (None, None, None)
    assert main(["account", "--model", "gpt-2"]) == 0
    out = capsys.readouterr().out
    assert "124,439,808" in out
    assert "fits" not in out
    assert "time at best" not in out
    assert "made for" not in out


def test_a_text_too_long_for_the_model_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "--model", "gpt-2", "--seq-len", "1025"]) == 0
    assert "longer than the 1,024 tokens that it was made for" in capsys.readouterr().out


def test_recomputation_takes_longer_at_an_hfu_than_at_an_mfu(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["account", "--model", "llama-3-8b", "--gpu", "h100", "--tokens", "1e12", "--mfu", "0.5"]
    assert main([*words, "--activation-checkpointing", "blocks"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    found = re.search(r" days ([\d,.]+) .*If 0.5 is an HFU, which counts it, training takes ([\d,.]+) days", out)
    assert found is not None
    days, more = (float(each.replace(",", "")) for each in found.groups())
    flops = training_flops(LLAMA, 1, 8192, recompute="blocks")
    assert more / days == pytest.approx(flops.hardware.total / flops.model.total, rel=1e-3)


def test_tables_show_if_a_batch_fits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["account", "--model", "llama-3-8b", "--gpu", "h100", "--seq-len", "2048"]
    assert main([*words, "--tokens", "1e12"]) == 0
    alone = capsys.readouterr().out
    assert "✗ does not fit" in alone
    assert "✓ fits" in alone
    assert "GPU-hours" in alone
    assert "HFU" not in alone
    assert main([*words, "--gpus", "8", "--zero", "3"]) == 0
    assert "✗" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "recipe"),
    [("bert-base", "fp32"), ("gemma-2-2b", "autocast"), ("opt-350m", "inference"), ("mpt-7b", "muon"), ("nano", "sgd")],
)
def test_account_works_for_every_kind_of_model(name: str, recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["account", "--model", name, "--gpu", "a100", "--recipe", recipe, "--seq-len", "64"]
    assert main([*words, "--tensor-parallel", "2", "--gpus", "2"]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--model", "llama-9"], "There is no model 'llama-9' in the zoo. Did you mean 'llama-"),
        (["--model", "t5-small"], "t5-small is an encoder–decoder"),
        (["--model", "nano", "--gpu", "h1000"], "There is no accelerator 'h1000'. The nearest are h100"),
        (["--model", "nano", "--tokens", "1e9"], "add --gpu"),
        (["--model", "nano", "--recipe", "fp31"], "There is no recipe 'fp31': choose from fp32, mixed"),
        (["--model", "nano", "--gpus", "3", "--tensor-parallel", "2"], "must be a multiple of --tensor-parallel"),
        (["--model", "nano", "--batch", "0"], "not 0 and 128"),
        (["--model", "nano", "--seq-len", "0"], "a seq_len of at least 2, not 1 and 0"),
        (["--model", "nano", "--seq", "0"], "account does not take --seq 0"),
        (["--model", "nano", "--gpu", "h100", "--tokens", "nan"], "must be finite and at least 1"),
        (["--model", "nano", "--gpu", "h100", "--tokens", "inf"], "must be finite and at least 1"),
        (
            ["--model", "llama-3-8b", "--gpus", "5", "--tensor-parallel", "5"],
            "Layer 0 has 32 heads, which 5 devices cannot divide evenly",
        ),
        (["--model", "falcon-7b", "--gpus", "2", "--tensor-parallel", "2"], "Layer 0 has 71 heads"),
        (["--model", "nano", "--gpu", "v100"], "V100 SXM2 32 GB has no bf16 units"),
        (["--model", "nano", "--gpu", "h100", "--tokens", "1e9", "--mfu", "40"], "MFU is a fraction of the peak"),
        (["--model", "nano", "--mfu", "nan", "--json"], "MFU is a fraction of the peak"),
        (["--model", "nano", "--seq-len", "1" + 400 * "0"], "a number that was given is too large to compute with"),
        (
            ["--model", "nano", "--gpu", "h100", "--tokens", "1e9", "--recipe", "inference"],
            "needs a recipe for training",
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert told in err


def test_tensor_parallelism_copies_key_heads_but_never_splits_one() -> None:
    """With 16 devices, each of 8 key heads is on two devices, as in inference servers; 3 devices are impossible."""
    account(Workload(LLAMA, 1, 128, MIXED, layout=Layout(tensor=16)))
    impossible = Workload(find_model("llama-3.2-3b").decoder, 1, 128, MIXED, layout=Layout(tensor=12))
    for estimate in (account, lambda work: estimate_training_run(work, H100, 10**9, 0.4)):
        with pytest.raises(ValueError, match="8 key heads, which 12 devices cannot divide evenly"):
            estimate(impossible)


def test_units_are_formatted() -> None:
    assert si(1_265_000_000_000_000) == "1.265 P"
    assert si(12) == "12"
    assert gib(3 * 2**30 // 2) == "1.50 GiB"
    assert gib(2**20) == "1.00 MiB"
    assert gib(512) == "0.50 KiB"


def test_differences_from_other_calculators_are_documented(course: Path) -> None:
    text = (course / "docs" / "accounting.md").read_text(encoding="utf-8")
    recipe = find_recipe("mixed")
    fused, readable = (training_memory(LLAMA, 1, 8192, recipe, attention=form) for form in ("fused", "readable"))
    again = training_memory(LLAMA, 1, 8192, recipe, activation_checkpointing="blocks")
    gpt_2, llama = training_flops(find_model("gpt-2").decoder, 1, 1024).model, training_flops(LLAMA, 1, 8192).model
    wanted = [
        f"| {gpt_2.total / 1e9:.1f} GFLOPs | they count only the forward pass of the head",
        f"79 instead of {gpt_2['head'] / 1e9:.0f};",
        f"| {llama.total / 1e12:.1f} TFLOPs | the head again (8.6 instead of {llama['head'] / 1e12:.1f})",
        f"(316.7 instead of {llama['feed-forward'] / 1e12:.1f})",
        f"| 2.00 GiB | {gib(cache_bytes(LLAMA, 1, 8192).total)} |",
        f"| 15.02 GiB | {gib(fused['weights'])} |",
        f"| 354.0 GiB | {fused['activations'] / 2**30:.1f} GiB |",
        f"With unfused attention, ours is {readable['activations'] / 2**30:.1f} GiB |",
        f"| 34.0 GiB | {again['activations'] / 2**30:.1f} GiB |",
        f"| 8,030,261,248 | {account(Workload(LLAMA, 1, 8192, recipe)).parameters.total:,} |",
        f"| 32.0 GiB | {fused['activations'] / 2**30:.1f} GiB |",
        f"0.1 of inputs | {fused['logits'] / 2**30:.1f} GiB |",
    ]
    assert [line for line in wanted if line not in text] == []


def test_every_recipe_is_in_the_documentation(course: Path) -> None:
    text = (course / "docs" / "accounting.md").read_text(encoding="utf-8")
    assert [name for name in RECIPES if f"`{name}`" not in text] == []
