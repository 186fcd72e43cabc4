"""The names that the cells of a notebook define and use. This module loads little, neither torch nor IPython."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from symtable import SymbolTable, symtable


def bound_names(source: str) -> set[str]:
    """Return the names that a cell defines outside its functions; none if it is not plain Python."""
    outer = islice(_tables(source), 1)
    return {one.get_name() for table in outer for one in table.get_symbols() if one.is_assigned() or one.is_imported()}


def needed_cells(sources: Sequence[str], marked: Sequence[bool]) -> list[bool]:
    """Return for each cell whether it must run, if marked cells run only for names that no other cell defines."""
    runs = [not one for one in marked]
    while True:
        running = [source for source, run in zip(sources, runs, strict=True) if run]
        missing = set().union(*map(_used_names, running)) - set().union(*map(bound_names, running))
        more = [run or bool(bound_names(source) & missing) for source, run in zip(sources, runs, strict=True)]
        if more == runs:
            return runs
        runs = more


def _used_names(source: str) -> set[str]:
    """Return the global names that a cell, or a function in it, looks up."""
    symbols = (one for table in _tables(source) for one in table.get_symbols())
    return {one.get_name() for one in symbols if one.is_global() and one.is_referenced()}


def _tables(source: str) -> Iterator[SymbolTable]:
    with suppress(SyntaxError, ValueError):
        waiting = [symtable(source, "<cell>", "exec")]
        while waiting:
            yield (table := waiting.pop())
            waiting += table.get_children()
