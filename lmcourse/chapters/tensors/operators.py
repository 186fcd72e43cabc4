"""The operators that torch runs for a line of code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmcourse.exercises.rules import WithoutCompiler


class _Recorder(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Note the name of each operator that runs."""

    def __init__(self, views: bool) -> None:
        super().__init__()
        self.views = views
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").partition(".")[0]
        if self.views or not (func.is_view or name == "_unsafe_view"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def operators(function: Callable[..., Any], *args: Any, views: bool = False) -> list[str]:
    """Return the names of torch's operators that run in `function(*args)`, in order.

    Operators that only make a view are left out unless `views`.
    """
    recorder = _Recorder(views)
    with recorder:
        function(*args)
    return recorder.names
