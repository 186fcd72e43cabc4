"""Detect forbidden torch operators at run time, under any name.

Two of torch's modes detect ordinary use. `TorchFunctionMode` sees a function before torch splits it into operators, and
`TorchDispatchMode` sees the operators. They surround only the learner's function, so copying its inputs does not count.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import FrameType
from typing import Any

import torch
from torch._C import (
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
    _pop_torch_dispatch_stack,
    _pop_torch_function_stack,
)
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from lmcourse.base.text import one_line
from lmcourse.exercises.forbidden_names import MAX_LINE_CHARS, Names, Use, matches
from lmcourse.exercises.limits import in_library

_ATTENTION = r"attention|transformer_encoder"
_SOFTMAX = rf"softmax|softmin|softplus|logsumexp|logcumsumexp|cross_entropy|{_ATTENTION}"
_NORM = r"(layer|group|batch|instance|rms|weight)_?norm|(^|_)normalize|renorm|cosine_(similarity|embedding)"
_GELU = r"gelu|ndtr"
_RELU = r"relu|(^|_)s?c?elu|hardtanh|margin|hinge"
_SIGMOID = r"silu|sigmoid|expit|mish|glu(_|$)"
_RECURRENT = r"lstm|(^|_)gru|rnn_?(tanh|relu|cell|base)"

FAMILIES: dict[str, str] = {
    **dict.fromkeys((".softmax", ".log_softmax", ".logsumexp", ".softmin", ".Softmax", ".LogSoftmax"), _SOFTMAX),
    ".Softmin": _SOFTMAX,
    ".scaled_dot_product_attention": _ATTENTION,
    ".multi_head_attention_forward": r"multi_?head|transformer_encoder",
    "torch.nn.MultiheadAttention": r"multi_?head|transformer_encoder",
    **dict.fromkeys((".gelu", ".ndtr", ".log_ndtr"), _GELU),
    **dict.fromkeys((".relu", ".relu_"), _RELU),
    **dict.fromkeys((".silu", ".sigmoid", ".sigmoid_", ".logsigmoid", ".expit"), _SIGMOID),
    **dict.fromkeys((".layer_norm", ".rms_norm", ".LayerNorm", ".RMSNorm", ".normalize"), _NORM),
    **dict.fromkeys((".cross_entropy", ".nll_loss"), r"nll_loss|(^|_)cross_entropy|ctc_loss|kl_div"),
    **dict.fromkeys((".lstm", ".lstm_cell", ".LSTM", ".LSTMCell"), _RECURRENT),
    **dict.fromkeys((".rnn_tanh", ".rnn_tanh_cell", ".RNN", ".RNNCell", ".RNNBase"), _RECURRENT),
    "torch.gradient": r"^gradient(\.|$)",
    "torch": r"^(?!empty|clone|copy_|detach|alias|item|_local_scalar_dense|is_|set_|lift|resize_)",
}
"""For each rule, a pattern of its operators' names with overload ("view.dtype"). Any other rule that starts with a dot
covers the operators whose names contain its word."""

SETTINGS = ("torch.autograd.grad_mode",)
"""Modules with settings such as `torch.no_grad`, which an answer may always use."""


def watched(answer: Callable[..., Any], rules: Names, seen: dict[str, Use]) -> Callable[..., Any]:
    """Wrap an answer so that `seen` records its uses of functions that these rules cover."""
    warm_up()  # done here, outside the answer's time limit

    @wraps(answer)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _watching(rules, seen):
            return answer(*args, **kwargs)

    return call


@contextmanager
def modes_end() -> Iterator[None]:
    """Remove modes that remained on torch's stacks because a time limit interrupted their start or end.

    Use this context outside the time limit.
    """
    warm_up()
    functions, operators = _len_torch_function_stack(), _len_torch_dispatch_stack()
    try:
        yield
    finally:
        while _len_torch_function_stack() > functions:
            _pop_torch_function_stack()
        while _len_torch_dispatch_stack() > operators:
            _pop_torch_dispatch_stack(None)


@contextmanager
def _watching(rules: Names, seen: dict[str, Use]) -> Iterator[None]:
    """Record calls inside the `with` block. A time limit may interrupt a mode while torch has removed it from its
    stack, so the modes left at the end are counted."""
    functions, operators = _len_torch_function_stack(), _len_torch_dispatch_stack()
    modes: Any = (_Operators(rules, seen), _Functions(rules, seen))
    try:
        for mode in modes:
            mode.__enter__()
        yield
    finally:
        if _len_torch_function_stack() > functions:
            modes[1].__exit__(None, None, None)
        if _len_torch_dispatch_stack() > operators:
            modes[0].__exit__(None, None, None)


class _Functions(TorchFunctionMode):
    def __init__(self, rules: Names, seen: dict[str, Use]) -> None:
        super().__init__()
        self.rules, self.seen = rules, seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if name := _ruled_out(func, self.rules):
            _note(self.seen, name)
        return func(*args, **(kwargs or {}))


class WithoutCompiler(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode for which torch does not import its compiler, which takes seconds."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class _Operators(WithoutCompiler):  # type: ignore[no-untyped-call]
    def __init__(self, rules: Names, seen: dict[str, Use]) -> None:
        super().__init__()
        self.rules, self.seen = rules, seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if rule := _rule_of(func.name(), self.rules):
            _note(self.seen, rule)
        return func(*args, **(kwargs or {}))


def _note(seen: dict[str, Use], name: str) -> None:
    if name not in seen:
        seen[name] = Use(name, *_own_line())


def _own_line() -> tuple[str, int]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not in_library(file) and (line := linecache.getline(file, frame.f_lineno).strip()):
            return one_line(line, MAX_LINE_CHARS), frame.f_lineno
        frame = frame.f_back
    return "", 0


@cache
def _ruled_out(function: Any, rules: Names) -> str:
    """Return the dotted name of a function, such as "torch.Tensor.softmax", if the rules cover it."""
    name = resolve_name(function) or f"torch.{getattr(function, '__name__', '')}"
    return name if matches(name, rules) and not matches(name, SETTINGS) else ""


@cache
def _rule_of(operator: str, rules: Names) -> str:
    """Return the first rule that covers an operator with a torch name such as "aten::softmax.int"."""
    name = operator.partition("::")[2]
    return next((rule for rule in rules if (pattern := _pattern(rule)) and re.search(pattern, name)), "")


def _pattern(rule: str) -> str:
    return FAMILIES.get(rule, rf"(^|_){re.escape(rule[1:])}(_|\.|$)" if rule.startswith(".") else "")


@cache
def warm_up() -> None:
    """Make torch import the modules that it needs inside a mode; otherwise their calls would count as the answer's."""
    with _Operators((), {}), _Functions((), {}):
        torch.ones(2, requires_grad=True).softmax(0).sum().backward()  # type: ignore[no-untyped-call]
