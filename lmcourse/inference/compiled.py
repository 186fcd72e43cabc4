"""A decoding step compiled with `torch.compile`.

In a small model most of a decoding step is not arithmetic: it is Python, calling some hundred kernels one after the
other. `torch.compile` makes one program of them, and packs the weights as the processor likes to read them. That costs
some twenty seconds, once for every batch size and length of memory; a long text earns them back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
        """Make the error, with the line that says what to do."""
        super().__init__(
            "the decoding step could not be compiled; on a CPU that needs a C++ compiler, such as g++. "
            "Install one, or do without compiling"
        )


class CompiledStep:
    """The compiled decoding step of a model, with its current weights.

    The weights become part of the program: after training, make a new one. Give it to `generate`:

        generate(model, prompts, 200, compiled=CompiledStep(model))

    Args:
        model: a decoder, or an encoder–decoder.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._programs: dict[tuple[Any, ...], _Program] = {}

    def bind(self, session: DecodingSession) -> Callable[[Int[Tensor, "b 1"]], Float[Tensor, "b v"]]:
        """Return a function from the next token of every text to the logits of the token after it.

        Args:
            session: of this model, with a capacity; it has read the prompts, and is not used any more.

        Raises:
            ValueError: the session is another model's, or has no capacity. What is returned raises
                NoCompilerError.
        """
        if session.model is not self.model:
            raise ValueError("this step was compiled for another model: make a CompiledStep of this one")
        kv_cache, memory = session.cache.to_static(), session.memory
        tensors = [*kv_cache.tensors(), *([] if memory is None else memory.tensors())]
        made_for = (torch.get_num_threads(), *((x.shape, x.stride(), x.dtype, x.device) for x in tensors))
        if made_for not in self._programs:
            self._programs[made_for] = _Program()
        program = self._programs[made_for]
        return lambda tokens: program(self.model, tokens, None, kv_cache, memory)


class _Program:
    """A step compiled for tensors of fixed sizes, those of its first call.

    The compiler would ask in each call whether all is as it was then, hundreds of questions about a model that was
    promised to stay as it is: in a small one they take longer than the step. Here whoever calls sees to it.
    """

    def __init__(self) -> None:
        self._run = torch.compile(_own(next_logits), dynamic=False, options={"guard_filter_fn": _unguarded})
        self._compiled = False

    @torch.inference_mode()
    def __call__(self, model: Model, *inputs: Any) -> Float[Tensor, "b v"]:
        """Return the logits; raises NoCompilerError."""
        if self._compiled:
            return self._run(model, *inputs)
        # Here and not above: the compiler takes longer to import than a short text to write.
        from torch._dynamo.exc import BackendCompilerFailed
        from torch._inductor import config

        # Packing pays on a CPU only. The compiler's first half asks for this too, so `options` would come too late.
        freezing = next(model.parameters()).device.type == "cpu"
        # Calls of the kernels in C++ and not in Python, tried on Linux.
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

    The compiler keeps its programs with the code: of one that many models share, only the first would be made.
    """
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__)


def _unguarded(guards: Sequence[Any]) -> list[bool]:
    """Return no guards: a call checks none of torch's assumptions again."""
    return [False] * len(guards)


def compiled_capacity(tokens: int) -> int:
    """Return the capacity to compile for, in tokens: a power of two, so that texts of similar lengths share a
    program.
    """
    return max(MIN_COMPILED_CAPACITY, 1 << (tokens - 1).bit_length())
