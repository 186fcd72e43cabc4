"""Take away the ways past the restrictions: kernels held without the dispatcher, TorchScript, and torch's tracers.

A function that torch has traced, in a cell or at any time before an exercise's rules hold, would do what they refuse in
pieces that they do not.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import torch
import torch._decomp.decompositions_for_jvp  # written in TorchScript: torch.func would load it at its first use
from torch._functorch.vmap import lazy_load_decompositions  # type: ignore[attr-defined]
from torch.fx.experimental import proxy_tensor

from lmcourse.grading.restrictions.library_functions import Refusal, refusing_code

KERNEL_FUNCTIONS = ("_dispatch_get_computed_kernel_for_dispatch_key", "_te")
"""Parts of torch by which a kernel can be kept, to be called without the dispatcher, or made from pieces."""

SCRIPT_FUNCTIONS = (
    *("_jit_script_compile", "_jit_script_class_compile", "_create_function_from_trace", "_create_method_from_trace"),
    *("_create_function_from_graph", "_create_function_from_trace_with_dict", "CompilationUnit"),
    *(
        "import_ir_module",
        "import_ir_module_from_buffer",
        "parse_ir",
        "_jit_to_static_module",
        "_load_for_lite_interpreter",
    ),
    *("_load_for_lite_interpreter_from_buffer", "_jit_interpret_graph", "GraphExecutorState"),
)
"""TorchScript, which differentiates by itself, and computes some things past the dispatcher. No exercise needs it."""


TRACERS: tuple[Any, ...] = (
    proxy_tensor.ProxyTorchDispatchMode.__enter__,
    proxy_tensor.ProxyTorchDispatchMode.__torch_dispatch__,
    proxy_tensor.PreDispatchTorchFunctionMode.__torch_function__,
    proxy_tensor.proxy_call,
    proxy_tensor.make_fx,
)
"""What writes down torch's operators as they are called, to be called again with other numbers."""


def close_side_doors() -> None:
    """Take the ways past the dispatcher away from this process. To be called before any code of a notebook runs, and
    after what needs them was made."""
    for name in (*KERNEL_FUNCTIONS, *SCRIPT_FUNCTIONS):
        if hasattr(torch._C, name):
            setattr(torch._C, name, _unavailable)
    lazy_load_decompositions()  # what `torch.func` would do at its first use, by the function that refuses below
    new_library = torch._C._dispatch_library

    def dispatch_library(kind: str, namespace: str, *rest: Any) -> Any:
        """As torch's own; but operators that exist get no other kernels."""
        return _unavailable() if kind == "IMPL" and namespace == "aten" else new_library(kind, namespace, *rest)

    torch._C._dispatch_library = dispatch_library  # type: ignore[assignment]
    _close_tracers()


def _close_tracers() -> None:
    """`make_fx` and what is built on it refuse; `torch.compile` works as ever, without compiling anything."""
    refusal = Refusal(_unavailable)
    for function in TRACERS:
        function.__code__ = refusing_code(function.__code__, refusal)
    original = torch._C._dynamo.eval_frame.set_eval_frame

    def set_eval_frame(callback: Any) -> Any:
        """As torch's own, but for who would be called to compile."""
        return original(None if callable(callback) else callback)

    for module in [torch._C._dynamo.eval_frame, *_loaded_below("torch._dynamo")]:
        if getattr(module, "set_eval_frame", None) is original:
            module.set_eval_frame = set_eval_frame


def _loaded_below(package: str) -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if f"{name}.".startswith(f"{package}.")]


def _unavailable(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(
        "TorchScript, traced functions and torch's own kernels are not available while a notebook is graded"
    )
