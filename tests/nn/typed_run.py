"""Run every layer and model with shapes checked at run time; test_shapes.py starts this in a separate process.

The import hook must be installed before the modules are imported, and it cannot be removed, so it must not affect other
tests. Prints the public functions of `lmcourse.nn` that were not called.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from types import FrameType, FunctionType, ModuleType
from typing import Any

from jaxtyping import install_import_hook

install_import_hook(["lmcourse.nn", "lmcourse.models"], "beartype.beartype")

import torch  # noqa: E402

import lmcourse.nn  # noqa: E402
from lmcourse.models.config import EncoderDecoderConfig  # noqa: E402
from lmcourse.models.encoder_decoder import EncoderDecoder  # noqa: E402
from lmcourse.models.loss import next_token_loss  # noqa: E402
from lmcourse.models.transformer import Transformer  # noqa: E402
from lmcourse.models.zoo import find_model  # noqa: E402
from lmcourse.nn.attend import attention_weights, block_update  # noqa: E402
from lmcourse.nn.attention import AttentionConfig  # noqa: E402
from lmcourse.nn.feed_forward import ACTIVATIONS  # noqa: E402
from lmcourse.nn.norm import Norm, NormConfig  # noqa: E402
from lmcourse.nn.position_bias import RelativePositionVectorsConfig  # noqa: E402
from lmcourse.nn.rope_scaling import Llama3RopeScaling, LongRope, Yarn  # noqa: E402
from lmcourse.nn.rotary import Rotary, RotaryConfig  # noqa: E402
from tests.models.tiny import SPARSE, architectures, shrink, tokens  # noqa: E402

called: set[tuple[str, str]] = set()


def note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call":
        called.add((frame.f_code.co_filename, frame.f_code.co_qualname))


def public(module: ModuleType) -> list[str]:
    """Return the names of a module's own public functions and methods."""
    found = []
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", "") != module.__name__ or name.startswith("_"):
            continue
        if isinstance(thing, FunctionType):
            found.append(name)
        elif inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
            found += [f"{name}.{m}" for m, f in vars(thing).items() if callable(f) and f.__module__ == module.__name__]
    # Configurations were created before we recorded calls, and methods for printing have no shapes.
    return [name for name in found if not name.rsplit(".", 1)[-1].startswith(("_", "extra_repr"))]


def every_decoder() -> None:
    for config in [*architectures().values(), *SPARSE.values()]:
        model = Transformer(config)
        ids = tokens()
        next_token_loss(model(ids), ids, z_loss=1e-4).backward()
        model(ids, torch.arange(-3, 18).clamp(min=-1).expand(2, 21), prefix_lengths=torch.tensor([2, 5]))


def every_kind_of_attention() -> None:
    base = architectures()["llama-3-8b"]
    first = base.layers[0]
    for changes in (
        {"relative_position_vectors": RelativePositionVectorsConfig(4)},
        {"relative_position_vectors": RelativePositionVectorsConfig(4, on_values=False)},
    ):
        attention = AttentionConfig(4, kv_heads=2, dropout=0.1, **changes)
        Transformer(base.with_(layers=(type(first)(attention, first.feed_forward),)))(tokens())
    Llama3RopeScaling(8.0, 100)(1e4, 10)
    Yarn(8.0, 100)(1e4, 10)
    LongRope((1.0, 2.0), (2.0, 3.0), 100, 2.0)(1e4, 4)
    for scaling in (Yarn(8.0, 100), LongRope((1.0,) * 4, (2.0,) * 4, 5, 2.0)):
        Rotary(RotaryConfig(scaling=scaling), 8)(torch.randn(2, 3, 7, 8), torch.arange(7).expand(2, 7))
    Rotary(RotaryConfig(), 4)(torch.randn(2, 3, 5, 4), torch.arange(10).view(2, 5))
    for activation in ACTIVATIONS.values():
        activation(torch.randn(3))


def other_models() -> None:
    block_update(
        torch.full((3, 1), -torch.inf), torch.zeros(3, 1), torch.zeros(3, 2), torch.randn(3, 5), torch.randn(5, 2)
    )
    for name in ("transformer-base", "t5-small", "t5-v1.1-small"):
        config = find_model(name).config
        assert isinstance(config, EncoderDecoderConfig)
        model = EncoderDecoder(EncoderDecoderConfig(shrink(config.encoder), shrink(config.decoder)))
        model(tokens(length=9), tokens()).sum().backward()


def refused() -> list[str]:
    """Return the wrong arguments that the checker rejects; without it each of these calls would succeed."""
    q, seen = torch.randn(1, 2, 3, 4), torch.ones(1, 3, 3, dtype=torch.bool)
    wrong = {
        "shape": lambda: attention_weights(q, q, seen, torch.zeros(1, 1, 3, 3), scale=1.0),
        "dtype": lambda: Norm(NormConfig(), 3)(torch.ones(2, 3, dtype=torch.long)),
        "length": lambda: Rotary(RotaryConfig(), 4)(q, torch.zeros(1, 1, dtype=torch.long)),
    }
    stopped = []
    for name, call in wrong.items():
        try:
            call()
        except TypeError:
            stopped.append(name)
    return stopped


def main() -> None:
    sys.setprofile(note)
    every_decoder()
    every_kind_of_attention()
    other_models()
    sys.setprofile(None)
    for info in pkgutil.iter_modules(lmcourse.nn.__path__, "lmcourse.nn."):
        module = importlib.import_module(info.name)
        for name in public(module):
            if (module.__file__, name) not in called:
                print("not called:", info.name, name)
    print("refused:", *refused())


if __name__ == "__main__":
    main()
