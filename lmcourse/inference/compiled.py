"""A decoding step compiled with `torch.compile`.

In a small model most of the time of a decoding step is not arithmetic but Python, which calls about a hundred kernels
one after the other. `torch.compile` turns them into one program, and stores the weights in the order in which the
processor reads them fastest. This takes about twenty seconds for every batch size and length of memory, and pays off
for long texts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.decoding_session import DecodingSession, Model, next_logits

MIN_COMPILED_CAPACITY = 256
"""Smallest capacity of a compiled step, in tokens."""


class NoCompilerError(RuntimeError):
    """A decoding step could not be compiled."""

    def __init__(self) -> None:
        super().__init__(
            "the decoding step could not be compiled; on a CPU that needs a C++ compiler, such as g++. "
            "Install one, or do without compiling"
        )


class CompiledStep:
    """The compiled decoding step of a model, with its current weights.

    The weights become part of the program, so create a new step after training. Pass it to `generate`:

        generate(model, prompts, 200, compiled=CompiledStep(model))

    Args:
        model: a decoder, or an encoder–decoder.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._programs: dict[tuple[Any, ...], _Program] = {}

    def bind(self, session: DecodingSession) -> Callable[[Int[Tensor, "b 1"]], Float[Tensor, "b v"]]:
        """Return a function that maps the next token of every text to the logits of the token after it.

        The session must be one of this model, with a capacity, and have read the prompts; otherwise ValueError is
        raised. Do not use it afterwards. The returned function raises NoCompilerError if there is no compiler.
        """
        if session.model is not self.model:
            raise ValueError("this step was compiled for another model: make a CompiledStep for this one")
        kv_cache, memory = session.cache.to_static(), session.memory
        tensors = [*kv_cache.tensors(), *([] if memory is None else memory.tensors())]
        made_for = (torch.get_num_threads(), *((x.shape, x.stride(), x.dtype, x.device) for x in tensors))
        if made_for not in self._programs:
            self._programs[made_for] = _Program()
        program = self._programs[made_for]
        return lambda tokens: program(self.model, tokens, None, kv_cache, memory)


class _Program:
    """A step that is compiled for the tensor sizes of its first call.

    By default, torch checks in every call that nothing has changed since the compilation. In a small model these
    hundreds of checks take longer than the step, so they are switched off, and the caller must make sure that nothing
    changes.
    """

    def __init__(self) -> None:
        unguarded: dict[str, Any] = {"guard_filter_fn": lambda guards: [False] * len(guards)}
        self._run = torch.compile(_own(next_logits), dynamic=False, options=unguarded)
        self._compiled = False

    @torch.inference_mode()
    def __call__(self, model: Model, *inputs: Any) -> Float[Tensor, "b v"]:
        """Return the logits, or raise NoCompilerError."""
        if self._compiled:
            return self._run(model, *inputs)
        # Imported here because importing the compiler takes longer than generating a short text.
        from torch._dynamo.exc import BackendCompilerFailed
        from torch._inductor import config

        # Packing weights helps only on a CPU. The first part of the compiler needs this, too, so `options` would be too
        # late.
        freezing = next(model.parameters()).device.type == "cpu"
        # Call the kernels from C++ instead of Python; tested only on Linux.
        cpp_wrapper = freezing and sys.platform == "linux"
        try:
            with config.patch(freezing=freezing, cpp_wrapper=cpp_wrapper):
                logits = self._run(model, *inputs)
        except BackendCompilerFailed as error:
            raise NoCompilerError from error
        self._compiled = True
        return logits


def _own(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the same function with its own code object.

    The compiler stores programs by code object: if several models shared one, only the first would be compiled.
    """
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__)


def compiled_capacity(tokens: int) -> int:
    """Return the capacity to compile for: a power of two, so that texts of similar lengths share a program."""
    return max(MIN_COMPILED_CAPACITY, 1 << (tokens - 1).bit_length())
