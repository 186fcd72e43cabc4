"""A decoding step compiled with `torch.compile`.

In a small model most of a decoding step is not arithmetic: it is Python, calling some hundred kernels one after the
other. `torch.compile` makes one program of them, and packs the weights as the processor likes to read them. That costs
some ten seconds, once for every batch size and length of memory; a long text earns them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.decoding_session import DecodingSession, Model, next_logits

MIN_COMPILED_CAPACITY = 256
"""Tokens that a compiled step has room for at least."""


class NoCompilerError(RuntimeError):
    """A decoding step could not be compiled."""

    def __init__(self) -> None:
        """With the line that says what to do."""
        super().__init__(
            "the decoding step could not be compiled; on a CPU that needs a C++ compiler, such as g++. "
            "Install one, or do without compiling"
        )


class CompiledStep:
    """The decoding step of a model, with the weights that it has now.

    The weights become part of the program: after training, make a new one. Give it to `generate`:

        generate(model, prompts, 200, compiled=CompiledStep(model))

    Args:
        model: a decoder, or an encoder–decoder.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        # Packing pays on a CPU only. The compiler's first half asks for this too, so `options` would come too late.
        self._freezing = next(model.parameters()).device.type == "cpu"
        self._run = torch.compile(_own(next_logits), dynamic=False, options={"guard_filter_fn": _guarded})

    def bind(self, session: DecodingSession) -> Callable[[Int[Tensor, "b 1"]], Float[Tensor, "b v"]]:
        """A function from the next token of every text to the logits of the one after it.

        Args:
            session: of this model, with a capacity; it has read the prompts, and is not used any more.

        Raises:
            ValueError: the session is another model's, or has no capacity. What is returned raises
                NoCompilerError.
        """
        # Here and not above: the compiler takes longer to import than a short text to write.
        from torch._dynamo.exc import BackendCompilerFailed
        from torch._inductor import config

        if session.model is not self.model:
            raise ValueError("this step was compiled for another model: make a CompiledStep of this one")
        kv_cache, memory = session.cache.to_static(), session.memory

        @torch.inference_mode()
        def decode(tokens: Int[Tensor, "b 1"]) -> Float[Tensor, "b v"]:
            try:
                with config.patch(freezing=self._freezing):
                    return self._run(self.model, tokens, None, kv_cache, memory)
            except BackendCompilerFailed as error:
                raise NoCompilerError from error

        return decode


def _own(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same function with code of its own.

    The compiler keeps its programs with the code: of one that many models share, each call would first ask for every
    model's program whether it is the right one, and after eight of them nothing more would be compiled.
    """
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__)


def _guarded(guards: Sequence[Any]) -> list[bool]:
    """Which assumptions a call asks for again: those on what it is given, and none of the model's hundreds, which was
    promised to stay as it is.
    """
    return [not guard.name.startswith("L['model']") for guard in guards]


def compiled_capacity(tokens: int) -> int:
    """The capacity to compile for, in tokens: a power of two, so that texts of similar lengths share a program."""
    return max(MIN_COMPILED_CAPACITY, 1 << (tokens - 1).bit_length())
