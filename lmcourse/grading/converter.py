"""nbgrader's converters, which tell only that something went wrong, made to remember what."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def remembering(converter: Any) -> Any:
    """A converter of nbgrader's that keeps in `error` what went wrong, of which nbgrader tells only that it did."""

    class Remembering(converter):  # type: ignore[misc]
        error: Exception | None = None

        def init_assignment(self, *arguments: Any) -> None:
            self._noting(super().init_assignment, *arguments)

        def convert_single_notebook(self, *arguments: Any) -> None:
            self._noting(super().convert_single_notebook, *arguments)

        def set_permissions(self, *arguments: Any) -> None:
            self._noting(super().set_permissions, *arguments)

        def _noting(self, act: Callable[..., None], *arguments: Any) -> None:
            try:
                act(*arguments)
            except Exception as error:
                self.error = error
                raise

    return Remembering
