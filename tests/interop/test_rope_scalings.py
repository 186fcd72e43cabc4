"""Settings of RoPE scaling have the same effect as in transformers, number by number."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmcourse.models.interop import FAMILIES
from lmcourse.models.interop.hugging_face import import_transformers
from lmcourse.nn.rotary import Rotary

pytestmark = pytest.mark.prove

D_HEAD = 16
SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6}
TRAINED = {"original_max_position_embeddings": 100}
DIVISORS = {"short_factor": [1.0 + i / 10 for i in range(8)], "long_factor": [1.0 + i for i in range(8)]}
BANDS = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
STATED = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {"rope_type": "llama3", "factor": 4.0, **BANDS, **TRAINED},
    "yarn": {"rope_type": "yarn", "factor": 4.0, **TRAINED},
    "yarn, bounds": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 5.0, "beta_slow": 0.5, **TRAINED},
    "yarn, not rounded": {"rope_type": "yarn", "factor": 4.0, "truncate": False, **TRAINED},
    "yarn, sharpened": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5, **TRAINED},
    "yarn, by a ratio": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.4, **TRAINED},
    "yarn, half a ratio": {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, **TRAINED},
    "yarn, factor from lengths": {"rope_type": "yarn", "factor": None, **TRAINED},
    "longrope": {"rope_type": "longrope", "factor": 4.0, **DIVISORS, **TRAINED},
    "longrope, sharpened": {"rope_type": "longrope", "factor": 4.0, "attention_factor": 1.5, **DIVISORS, **TRAINED},
    "longrope, factor from lengths": {"rope_type": "longrope", **DIVISORS, **TRAINED},
}


@pytest.mark.parametrize("length", [90, 110])
@pytest.mark.parametrize("stated", STATED.values(), ids=STATED)
def test_rope_scalings_are_read_and_written(stated: dict[str, Any], length: int) -> None:
    import_transformers()
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    settings = {**SIZES, "max_position_embeddings": 400, "rope_parameters": {"rope_theta": 10_000.0, **stated}}
    family = FAMILIES["llama"]
    config = family.read(settings)
    assert family.read(family.write(config)) == config
    # LongRoPE does not use its long list for short texts.
    init = ROPE_INIT_FUNCTIONS[stated["rope_type"]]
    frequencies, attention = init(LlamaConfig(**settings), torch.device("cpu"), seq_len=length)
    at = torch.arange(length)[None]
    rotary = Rotary(config.layers[0].attention.rotary, D_HEAD)
    cos, sin = (table[0, 0] for table in rotary.cos_sin(at))
    angles = torch.cat([at[0, :, None] * frequencies] * 2, dim=-1)
    torch.testing.assert_close(cos, attention * angles.cos(), atol=5e-5, rtol=0)
    torch.testing.assert_close(sin[:, D_HEAD // 2 :], attention * angles.sin()[:, D_HEAD // 2 :], atol=5e-5, rtol=0)
