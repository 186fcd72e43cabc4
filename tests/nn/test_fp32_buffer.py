"""Fp32 buffers survive casts, the meta device and pickling."""

from __future__ import annotations

import copy
from functools import partial

import torch

from lmcourse.models.transformer import Transformer
from lmcourse.nn.fp32_buffer import Fp32Buffer
from lmcourse.nn.position_bias import alibi_slopes
from tests.models.tiny import architectures, randomise, tokens


def test_casts_do_not_change_an_fp32_buffer() -> None:
    table = Fp32Buffer(partial(alibi_slopes, 12))
    for cast in (table.bfloat16(), copy.deepcopy(table).double(), table.to(torch.float16)):
        assert cast().dtype == torch.float32
        assert torch.equal(cast(), alibi_slopes(12))
    assert not table.state_dict()


def test_an_fp32_buffer_is_computed_on_the_cpu() -> None:
    with torch.device("meta"):
        table = Fp32Buffer(lambda: torch.ones(2) * torch.tensor(1.0).item())  # meta tensors have no item
    assert table().is_meta
    assert table.to_empty(device="cpu")().tolist() == [1, 1]


def test_a_model_built_on_the_meta_device_gives_the_same_results() -> None:
    for name in ("llama-7b", "bloom-560m"):
        config = architectures()[name]
        model = randomise(Transformer(config))
        with torch.device("meta"):
            empty = Transformer(config)
        filled = empty.to_empty(device="cpu").eval()
        filled.load_state_dict(model.state_dict())
        assert torch.equal(filled(tokens()), model(tokens()))
