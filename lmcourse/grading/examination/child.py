"""The program that runs a notebook and answers for it: the only one that holds a learner's objects.

It gets requests over the socket that is its standard input, one at a time: to run the text of a cell, or to put a case
to something that the cells defined. It knows neither what is right nor what a case is for. Nothing that it says is
believed beyond being an outcome, because everything here may have been changed by the code that it runs.

The cells are run by `exec` in one namespace; `texts` says why not by IPython.

`serve` may also be called in a fork of a process that has torch loaded already.
"""

from __future__ import annotations

import asyncio
import inspect
import linecache
import os
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from lmcourse.exercises.failure import Failure, failure_of
from lmcourse.exercises.outcome import Outcome, evaluate
from lmcourse.exercises.rules import forbidden_in_source
from lmcourse.exercises.values import Plain
from lmcourse.exercises.wire import pack
from lmcourse.exercises.wire_limits import WireError
from lmcourse.exercises.wire_records import case_from_plain, outcome_to_plain
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.missing import not_defined
from lmcourse.grading.examination.printed import Page, cell_to_plain
from lmcourse.grading.examination.quiet import quieten
from lmcourse.grading.examination.texts import compiled


def serve(channel: Channel) -> None:
    """Answer requests until the other end hangs up. The notebook's namespace becomes this process's `__main__`."""
    notebook = sys.modules["__main__"] = ModuleType("__main__")
    while True:
        try:
            request = channel.receive()
        except OSError:
            return
        if "text" in request:
            result = _run(request["text"], request["place"], vars(notebook))
        else:
            result = _evaluate(request, vars(notebook))
        channel.send({"nonce": request["nonce"], "result": result})


def _run(text: str, place: int, names: dict[str, Any]) -> Plain:
    """Run a cell; what it printed, and the failure it ended with, if any."""
    file = f"<cell {place}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    page, failure = Page(), None
    with redirect_stdout(page), redirect_stderr(page):
        try:
            waiting = eval(compiled(text, file), names)
            if inspect.iscoroutine(waiting):
                asyncio.run(waiting)
        except BaseException as error:  # a cell that calls sys.exit() has ended, not the notebook
            failure = failure_of(error)
    return cell_to_plain(page, failure)


def _evaluate(request: dict[str, Any], names: dict[str, Any]) -> Plain:
    """Put a case to what the notebook calls by this name; the outcome."""
    name = request["name"]
    if name not in names:
        return outcome_to_plain(Outcome(failure=not_defined(name)))
    answer = (lambda: names[name]) if request["value"] else names[name]
    case, forbid = case_from_plain(request["case"]), tuple(request["forbid"])
    outcome = evaluate(answer, case, name=name, seconds=request["seconds"], forbid=forbid)
    if not request["value"]:
        outcome = replace(outcome, forbidden=(*outcome.forbidden, *_forbidden(answer, forbid)))
    try:
        sent = outcome_to_plain(outcome)
        pack(sent)
    except WireError as error:
        failure = Failure(("NotPlainError",), f"returned what cannot be graded: {error}")
        return outcome_to_plain(Outcome(failure=failure))
    return sent


def _forbidden(answer: Any, forbid: tuple[str, ...]) -> list[str]:
    """The names ruled out that the answer refers to, as its live objects tell: the text may hide some (`rules`)."""
    if isinstance(answer, FunctionType | type):  # of anything else there is nothing to read
        with suppress(Exception):  # strange objects can make it fail; the text is judged as well
            return _forbidden_once(answer, forbid)
    return []


@cache
def _forbidden_once(answer: FunctionType | type, forbid: tuple[str, ...]) -> list[str]:
    return forbidden_in_source(answer, forbid)


def main() -> None:
    """Serve on the socket that is the standard input, and leave the notebook none of the standard streams."""
    end = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    quieten()
    serve(Channel(end))


if __name__ == "__main__":
    main()
