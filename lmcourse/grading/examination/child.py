"""The process that runs a learner's cells and answers cases on request; only it holds the learner's objects.

It gets requests over the socket that is its standard input, one at a time: to run the text of a cell, to refuse what
the rules of an exercise cover, or to put a case to something that the cells defined. It knows neither what is right nor
what a case is for. Nothing that it says is believed beyond being an outcome, because everything here may have been
changed by the code that it runs.

The cells are run by `exec` in one namespace; `code_cells` says why not by IPython.

`serve` may also be called in a fork of a process that has torch loaded already.
"""

from __future__ import annotations

import gc
import linecache
import os
import socket
import sys
from _hashlib import compare_digest, hmac_digest  # of hmac, without what could be replaced of it
from collections.abc import Callable, Generator, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cache, partial
from itertools import count
from types import FunctionType, ModuleType
from typing import Any

import torch

import lmcourse.exercises
import lmcourse.notebook
from lmcourse.exercises.failure import Failure, failure_of
from lmcourse.exercises.forbidden_calls import dotted_name
from lmcourse.exercises.forbidden_names import Names, forbidden_in_source
from lmcourse.exercises.isolated_state import BoundedBuffer
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.channel import ANSWER, QUESTION, UNSIGNED, Channel, signed_text
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import ProtocolError
from lmcourse.grading.examination.messages import (
    KEPT_CELL_PRINTED_CHARS,
    MAX_CELL_PRINTED_CHARS,
    CellOutcome,
    case_from_plain,
    cell_to_plain,
    outcome_to_plain,
)
from lmcourse.grading.examination.missing_answers import not_defined
from lmcourse.grading.examination.own_answers import OwnAnswers
from lmcourse.grading.examination.remote_answer import RemoteAnswer
from lmcourse.grading.examination.running_cells import NOTHING_REFUSED, line_of, run_statements, run_whole
from lmcourse.grading.restrictions import Restrictions, RuledOutError, close_side_doors


class TooMuchPrintedError(Exception):
    """Raised inside of a cell, by its own `print`."""


class PrintedText(BoundedBuffer):
    """Takes what a cell prints, keeps the first of it, and refuses more when it is too much."""

    def __init__(self) -> None:
        super().__init__(KEPT_CELL_PRINTED_CHARS)
        self.written = 0

    def write(self, text: str) -> int:
        """Keep the text as far as there is room. Raises TooMuchPrintedError."""
        self.written += len(text)
        if self.flooded:
            raise TooMuchPrintedError(
                f"this cell printed more than {MAX_CELL_PRINTED_CHARS:,} characters: is there a print in a loop?"
            )
        return super().write(text)

    @property
    def flooded(self) -> bool:
        """Whether it was too much."""
        return self.written > MAX_CELL_PRINTED_CHARS


def serve(channel: Channel, restrictions: Restrictions, end_others: Callable[[], None] = lambda: None) -> None:
    """Answer requests until the other end hangs up. The notebook's namespace becomes this process's `__main__`.

    Args:
        channel: where they come from.
        restrictions: what refuses, while an answer is judged, what its exercise rules out.
        end_others: ends what the notebook has started: no rules hold in a process that began before them.
    """
    notebook = sys.modules["__main__"] = ModuleType("__main__")
    answers = OwnAnswers(vars(notebook))
    sign: Callable[[bytes], bytes] | None = None
    same = compare_digest
    restrictions.watch_imports()
    for number in count():
        try:
            message, signature = channel.take()
        except OSError:
            return
        request = decode(message, channel.limits)
        if sign is None:  # before any code of the notebook's
            sign = signer(bytes.fromhex(request.pop("key", ""))).send
            sign(b"")
        elif not same(sign(signed_text(QUESTION, number, message)), signature):
            return
        for name in request.get("stand_ins", []):
            answers.stand_in(name, RemoteAnswer(name, channel))
        if "rules" in request:
            end_others()
            restrictions.enforce(tuple(request["rules"]))
            result: dict[str, Any] = {}
        elif "text" in request:
            restrictions.enforce(tuple(request["under"]))
            result = _run_cell(request, vars(notebook), answers, restrictions.take_broken)
        else:
            result = _evaluate_case(request, answers)
            result["forbidden"] += restrictions.take_broken()
        message = _encoded(channel, request, result)
        channel.put(message, sign(signed_text(ANSWER, number, message)))


def _run_cell(
    request: dict[str, Any], names: dict[str, Any], answers: OwnAnswers, take_broken: Callable[[], Names]
) -> dict[str, Plain]:
    """Run a cell, and keep the answer that it defines, if it is the cell for one; what it printed, the failure it ended
    with, if any, and which of its statements were refused something."""
    text, file, name = request["text"], f"<cell {request['number']}>", request["answer"]
    before = answers.before(name)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    printed, refused = PrintedText(), NOTHING_REFUSED
    error: BaseException | None = None
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            if request["statements"] is None:
                run_whole(text, file, names)
            else:
                rules = tuple(request["under"])
                refused, error = run_statements(text, file, names, request["statements"], rules, take_broken)
        except BaseException as raised:  # a cell that calls sys.exit() has ended, not the notebook
            error = raised
    failure = failure_of(error) if error else None
    if name:
        answers.note(name, before, text, failed=failure is not None)
    line = line_of(error, file) if error else 0
    return cell_to_plain(CellOutcome(printed.getvalue(), printed.flooded, failure, line, refused))


def _evaluate_case(request: dict[str, Any], answers: OwnAnswers) -> dict[str, Plain]:
    """Put a case to the answer to an exercise; the outcome."""
    name = request["name"]
    if name not in answers:
        return outcome_to_plain(Outcome(failure=not_defined(name)))
    answer = partial(answers.judged, name) if request["value"] else answers.judged(name)
    case, forbid = case_from_plain(request["case"]), tuple(request["forbid"])
    outcome = run_case(answer, case, name=name, seconds=request["seconds"], forbid=forbid)
    if not request["value"]:
        outcome = replace(outcome, forbidden=(*outcome.forbidden, *_forbidden(answer, forbid)))
    try:
        return outcome_to_plain(outcome)
    except (ProtocolError, RuledOutError) as error:
        return _not_gradable(error)


def _encoded(channel: Channel, request: dict[str, Any], result: dict[str, Plain]) -> bytes:
    """The answer to a request, as bytes; of an outcome that cannot be sent, why."""
    try:
        return channel.encoded({"nonce": request["nonce"], "result": result})
    except (ProtocolError, RuledOutError) as error:
        return channel.encoded({"nonce": request["nonce"], "result": _not_gradable(error)})


def _not_gradable(error: Exception) -> dict[str, Plain]:
    failure = Failure(("NotPlainError",), f"returned what cannot be graded: {error}")
    return outcome_to_plain(Outcome(failure=failure))


def signer(key: bytes) -> Generator[bytes, bytes, None]:
    """What signs messages for the one function that begins with it, whoever else gets hold of it.

    Code of the notebook's can find the frames of its callers, and in them what they hold; but it cannot be them. All
    that is called here is held here, whatever becomes of the modules that it is from.
    """

    def signing() -> Generator[bytes, bytes, None]:
        frame_of, digest, home = sys._getframe, hmac_digest, None
        message = yield b""
        home = frame_of(1)
        while True:
            message = yield digest(key, message, "sha256") if frame_of(1) is home else UNSIGNED

    ready = signing()
    next(ready)
    return ready


def _forbidden(answer: Any, forbid: tuple[str, ...]) -> list[str]:
    """The names ruled out that the answer refers to, as its live objects tell: the text may hide some (`rules`)."""
    if isinstance(answer, FunctionType | type):  # of anything else there is nothing to read
        with suppress(Exception):  # strange objects can make it fail; the text is judged as well
            return _forbidden_once(answer, forbid)
    return []


@cache
def _forbidden_once(answer: FunctionType | type, forbid: tuple[str, ...]) -> list[str]:
    return forbidden_in_source(answer, forbid)


def disable_checks() -> None:
    """Have `check`, `hint`, `predict` and `explore` do nothing, and `start` only seed, in this process.

    The exercises themselves, with what is right and what is hidden, are not to be seen from here (see
    `lmcourse.grading.sandbox.filesystem`), so they could not answer.
    """
    for module in (lmcourse.notebook, lmcourse.exercises):
        for name in {"check", "check_exercise", "explore", "hint", "predict"} & vars(module).keys():
            setattr(module, name, _do_nothing)
    lmcourse.notebook.start = _only_seed


def prepare_restrictions(prepared: Iterable[Names] = ()) -> Restrictions:
    """What enforces an exercise's rules in this process, made before any code of a notebook runs.

    Args:
        prepared: the rules of exercises to come, which are then quick to enforce.
    """
    preload()
    restrictions = Restrictions()
    close_side_doors()
    restrictions.prepare(prepared)
    return restrictions


def preload() -> None:
    """Have torch do what it does once in a process: within a case it would take the time of that, or be refused.

    For the first operator on the meta device it loads sympy. That takes a second, and many times as long under the
    profiler that watches an answer's calls beside other busy workers. For the first function whose name is asked for it
    lists all of its functions.
    """
    torch.empty(0, device="meta").add(0)
    dotted_name(torch.softmax)


def _do_nothing(*_: object, **__: object) -> None:
    pass


def _only_seed(chapter: str) -> None:
    torch.manual_seed(0)


def main() -> None:
    """Serve on the socket that is the standard input, and leave the notebook none of the standard streams.

    To be called by a program that has switched the garbage collector off (see `environment.program`).
    """
    connection = socket.socket(fileno=os.dup(0))
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(devnull, stream)
    disable_checks()
    restrictions = prepare_restrictions()
    gc.freeze()
    gc.enable()
    serve(Channel(connection), restrictions)
