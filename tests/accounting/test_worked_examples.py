"""Check the right values of all worked examples, to the digits that are known."""

from __future__ import annotations

import runpy
import sys

import pytest

from lmcourse.accounting.worked_examples import AGREE, all_examples

RIGHT = {
    "70B on 15T tokens, 1024 H100 at MFU 0.5": "143.9",
    "GPT-3 on 300B tokens": "3.14e+23",
    "GPT-3 on A100 at MFU 0.4": "2.91e+04",
    "GPT-3 on H100 at MFU 0.4": "9.19e+03",
    "MFU of a 7B at 1e5 tokens/s, 32 A100": "0.421",
    "Largest model on 8 × 80 GB, AdamW in fp32": "40000000000",
    "The same in mixed precision": "3.56e+10",
    "GPT-3: weights in 16 bits": "325",
    "GPT-3: gradients in fp32": "650",
    "GPT-3: master weights and moments": "1951",
    "GPT-3: all of them": "2927",
    "GPT-3: all of them on each of 8 devices": "366",
    "36 parameters, 16 activations, AdaGrad": "496",
    "Llama 3 405B": "405853388800",
    "GPT-3: activations per token, S → 0": "3.74e-02",
    "GPT-3: S from which scores need more": "870",
    "GPT-3: activations over states, S = 2048": "0.088",
    "GPT-3 on 8: activations per B·S": "1.43e-02",
    "GPT-3 on 8: activations per B·S²": "5.36e-06",
    "Factor of A·S in fp32 activations": "9",
    "NeoX-20B: batch from which mixed pays": "0.61",
    "GPT-3: batch from which mixed pays": "1.5",
    "Llama 3 8B: KV cache per token": "131072",
    "Llama 3 405B: KV cache per token": "516096",
    "GPT-3: cache larger than weights from": "74007",
    "Falcon-40B with a key head per query head": "90",
    "40B weights in bf16": "74.5",
    "Falcon-40B: cache of 2048 tokens, all heads": "3.75",
    "Falcon-40B: the same with its 8 key heads": "0.234",
    "200 texts: devices of 80 GiB": "11",
    "200 texts on 4: arithmetic of a step": "12.8",
    "200 texts on 4: memory of a step": "107",
    "Product, D = 8192, one token": "1.0",
    "Product, D = 8192, 200 tokens": "190.7",
    "Tokens that saturate an A100 80 GB": "162",
    "Tokens that saturate an A100 40 GB": "205",
    "Training, D = 12,288, 4M tokens": "6135",
}


def with_the_digits_of(value: float, wanted: str) -> str:
    """Round a number to the digits of the expected number."""
    mantissa, _, exponent = wanted.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{value:.{decimals}{'e' if exponent else 'f'}}"


def test_every_value_has_the_right_digits() -> None:
    examples = all_examples()
    assert [example.name for example in examples] == list(RIGHT)
    assert {e.name: with_the_digits_of(e.computed, RIGHT[e.name]) for e in examples} == RIGHT


def test_numbers_that_agree_with_the_notes_are_close() -> None:
    for example in all_examples():
        if example.explanation == AGREE:
            said = example.published.split()[0].replace(",", "")
            assert float(f"{example.computed:.3g}") == pytest.approx(float(said), rel=7e-3), example.name


def test_the_module_prints_the_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lmcourse.accounting.worked_examples")
    runpy.run_module("lmcourse.accounting.worked_examples", run_name="__main__")
    assert "143.9 days" in capsys.readouterr().out
