"""Run the cells of notebooks that depend on the device on a simulated GPU."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from lmcourse.authoring.source import Source, read_source
from lmcourse.chapters.gpu_timing import slow_step
from lmcourse.chapters.gpu_timing.exercises import EXERCISES
from lmcourse.chapters.gpu_timing.measuring import in_turns
from lmcourse.models.zoo import find_model
from tests.pretended_gpu.once import timed_once

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def cells(notebook: Source, names: set[str]) -> Iterator[str]:
    """Yield the imports, then each cell that uses one of these names or names defined by such cells."""
    code = [cell for cell in notebook.cells if cell.kind == "code" and not cell.exercise and not cell.check]
    trees = [node for cell in code for node in ast.parse(cell.text).body]
    yield "\n".join(ast.unparse(node) for node in trees if isinstance(node, ast.Import | ast.ImportFrom))
    for cell in code:
        table = symtable.symtable(cell.text, "cell", "exec")
        defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
        if names & (set(_referenced(table)) - defined):
            names = names | defined
            yield cell.text


def _referenced(table: symtable.SymbolTable) -> Iterator[str]:
    """Return the global names that code refers to."""
    top = table.get_type() == "module"
    yield from (each.get_name() for each in table.get_symbols() if each.is_referenced() and (top or each.is_global()))
    for inner in table.get_children():
        yield from _referenced(inner)


def shallow(name: str) -> SimpleNamespace:
    """Return a zoo model with only two layers, because the other layers are the same."""
    config = find_model(name).decoder
    return SimpleNamespace(decoder=replace(config, layers=config.layers[:2]))


def gpu_timing() -> None:
    """Run all measurements of notebook 19."""
    namespace: dict[str, Any] = {}
    notebook = read_source(SOLUTIONS / "19-gpu-timing" / "gpu_timing.py")
    imports, *code = cells(notebook, {"best_device"})
    exec(imports, namespace)
    namespace["find_model"] = shallow
    namespace["your"] = lambda *names: nullcontext()  # the references need no check
    namespace |= {exercise.name: exercise.reference for exercise in EXERCISES}
    namespace["in_turns"] = partial(in_turns, rounds=1)
    short = mock.patch.object(slow_step, "make", partial(slow_step.make, texts=1, length=4))
    with timed_once(), short:
        for cell in code:
            exec(cell, namespace)
    assert (namespace["device"].type, namespace["number"]) == ("cuda", "bf16")
    assert namespace["a"].device.type == "cuda"
    assert str(namespace["a"].dtype) == "torch.bfloat16"
    assert namespace["peak"] == namespace["known"].peak("bf16")
    assert [each.name for each in namespace["speedups"]][-1] == "compiled"


WORK: dict[str, Callable[[], object]] = {"19-gpu-timing": gpu_timing}
